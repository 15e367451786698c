"""Checkpoints and restarts: what the guard asks for is saved whole, and training goes on from it to the same end.

usage: test_agent_saving.py ANTIFREEZE AGENT_FOLDER PART [TEST...]

PART: plain (no framework), torch, transformers, lightning, keras. A run that saves by itself is ended by SIGKILL, SIGTERM and for
want of memory at AFZ_KILLS random moments (6; 100 for the measured run), and resumed each time.
"""
import os
import pickle
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from fake_guard import FakeGuard
from frameworks import in_turn, skip_without
from saving_programs import (COUNTED, KERAS, LIGHTNING, MID_LIGHTNING, MID_SAVE, MID_TRANSFORMERS, PLAIN, TORCH,
                             TRANSFORMERS)

KILLS = int(os.environ.get("AFZ_KILLS", "6"))
PATIENCE = 300  # seconds for one program: importing a framework on a busy machine alone takes 30
SEED = int(os.environ.get("AFZ_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
ANTIFREEZE = AGENT = PACKAGE = PYTHON = None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="afz-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.makedirs(self.folder + "/run", mode=0o700)

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONPATH") and not k.startswith("ANTIFREEZE")}
        return {**env, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0", "TF_CPP_MIN_LOG_LEVEL": "3",
                "XDG_RUNTIME_DIR": self.folder + "/run", "XDG_STATE_HOME": self.folder + "/state", **more}

    def job(self, text):
        path = self.folder + "/job.py"
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def play(self, job, options=(), **env):
        r = subprocess.run([PYTHON, *options, job], env=self.env(**env), cwd=self.folder, capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
        return r.returncode, "".join(re.findall(r"END .*\n", r.stdout)), r.stderr  # two ranks may write into one line


class Asked(Case):
    """The guard asks; the program is ended a little later; the next attempt goes on."""
    text = None

    def test_asked_and_resumed(self):
        job = self.job(self.text)
        status, end, said = self.play(job)
        self.assertEqual(status, 0, said)
        with FakeGuard(self.folder) as guard:
            guard.ask("checkpoint 1 10000")
            env = {**guard.env, "PYTHONPATH": AGENT}
            status, _, said = self.play(job, STOP_AT="20", **env)
            self.assertEqual(status, 9, said)
            saved = guard.wait_for("saved 1 ", 1)
            self.assertTrue(saved, (guard.lines, said))
            self.assertIn("saving 1", guard.lines)
            path = saved.split(" ", 2)[2]
            self.assertTrue(os.path.isabs(path) and os.path.exists(path), path)
            self.assertFalse([name for _, folders, names in os.walk(self.folder) for name in folders + names
                              if name.endswith(".part")])
            status, again, said = self.play(job, ANTIFREEZE_ATTEMPT="2", ANTIFREEZE_RESUME=path, **env)
            self.assertEqual((status, again), (0, end), said)
            self.assertTrue(guard.wait_for("event resume step=", 1), guard.lines)

    def test_nobody_asks(self):
        """Nothing is saved, and no folder is made."""
        with FakeGuard(self.folder) as guard:
            status, _, said = self.play(self.job(self.text), **guard.env, PYTHONPATH=AGENT)
            self.assertEqual(status, 0, said)
            self.assertTrue(guard.lines[0].startswith("hello job.py 1"), guard.lines)
            self.assertFalse([line for line in guard.lines if line.split()[0] not in ("hello", "event")])
        self.assertFalse([name for name in os.listdir(self.folder) if "checkpoint" in name])


class MidSave(Asked):
    program, most = None, 0  # most: one of the first so many writes of an attempt is its last

    def test_killed_in_mid_save(self):
        """The framework's own checkpoints, which it makes every few steps: the next attempt goes on from one that is whole, and the
        end is the same."""
        kills, outs = max(KILLS, 20), []
        job = self.job(textwrap.dedent(MID_SAVE).replace("PROGRAM", textwrap.dedent(self.program)).replace("MOST", str(self.most)))
        for folder, count, env in (("alone", 0, {}), ("killed", kills, {"PYTHONPATH": AGENT, "ANTIFREEZE_SOCKET": self.folder + "/none",
                                                                        "ANTIFREEZE_RUN": "afz-test"})):
            os.makedirs(f"{self.folder}/{folder}")
            r = subprocess.run([PYTHON, job, str(SEED), str(count)], cwd=f"{self.folder}/{folder}", capture_output=True, text=True,
                               timeout=PATIENCE + 10 * count, check=False, env=self.env(**env), stdin=subprocess.DEVNULL)
            self.assertEqual(r.returncode, 0, f"seed {SEED}\n{r.stdout}\n{r.stderr}")
            outs.append(r.stdout)
        ends = [re.findall("END .*", out) for out in outs]
        resumed = re.findall(r"RESUMED (\d+)", outs[1])
        print(*re.findall("KILLED .*", outs[1]), "resumed after", *resumed, f"seed {SEED}", flush=True)
        self.assertIn(f"KILLED {kills} FAILED 0", outs[1], f"seed {SEED}")
        self.assertEqual((len(ends[0]), set(ends[1])), (1, set(ends[0])), f"seed {SEED}")
        self.assertGreater(len(resumed), kills // 2, outs[1])


class Transformers(MidSave):
    text, program, most = TRANSFORMERS, MID_TRANSFORMERS, 60

    def test_half_written(self):
        """A folder that a kill has left half-written is not gone on from."""
        job = self.job(self.text.replace('save_strategy="no"', 'save_strategy="steps", save_steps=10')
                       .replace("trainer.train()", 'trainer.train(resume_from_checkpoint=len(os.listdir("out")) > 0 or None)'))
        status, end, said = self.play(job)
        self.assertEqual(status, 0, said)
        shutil.rmtree(self.folder + "/out")
        with FakeGuard(self.folder) as guard:
            env = {**guard.env, "PYTHONPATH": AGENT}
            self.assertEqual(self.play(job, STOP_AT="25", **env)[0], 9)
            self.assertEqual([line for line in guard.lines if line.startswith("saved")],
                             [f"saved 0 {os.path.realpath(self.folder)}/out/checkpoint-{n}" for n in (10, 20)])
            os.remove(self.folder + "/out/checkpoint-20/trainer_state.json")
            os.truncate(self.folder + "/out/checkpoint-20/model.safetensors", 100)
            status, again, said = self.play(job, **env)
            self.assertEqual((status, again), (0, end), said)
            self.assertTrue(guard.wait_for("event resume step=10", 1), guard.lines)


    def test_ranks(self):
        """Two ranks, by torchrun and by accelerate: the first is asked, both save at the same step, and both go on from it."""
        # gloo's threads may abort a process that ends in the ordinary way ("terminate called without an active exception")
        job = self.job(self.text.replace("time.sleep(.02)", "time.sleep(.05)") + "os._exit(0)\n    ")
        port = str(free_port())
        launchers = {
            "torchrun": ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", port],
            "accelerate": ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines", "1", "--num_processes", "2",
                           "--mixed_precision", "no", "--main_process_port", port],
        }
        for name, options in launchers.items():
            with self.subTest(name), FakeGuard(self.folder) as guard:
                shutil.rmtree(self.folder + "/out", ignore_errors=True)
                status, end, said = self.play(job, options=options)
                self.assertEqual((status, end.count("END 24 ")), (0, 2), said)
                guard.ask("checkpoint 1 10000")
                env = {**guard.env, "PYTHONPATH": AGENT}
                self.assertEqual(self.play(job, options=options, STOP_AT="12", **env)[0], 1)
                self.assertEqual(guard.callers, 1, guard.lines)
                path = guard.wait_for("saved 1 ", 1).split(" ", 2)[2]
                self.assertTrue({"rng_state_0.pth", "rng_state_1.pth", "trainer_state.json"} <= set(os.listdir(path)), os.listdir(path))
                status, again, said = self.play(job, options=options, ANTIFREEZE_ATTEMPT="2", ANTIFREEZE_RESUME=path, **env)
                self.assertEqual((status, sorted(again.splitlines())), (0, sorted(end.splitlines())), said)


class Lightning(MidSave):
    text, program, most = LIGHTNING, MID_LIGHTNING, 24


class Keras(Asked):
    text = KERAS

    def test_fewer_steps_in_the_last_execution(self):
        """Saved at the end of an epoch of ten batches, four of which are one execution."""
        status, end, said = self.play(self.job("""
            import os, sys, types
            os.environ["KERAS_BACKEND"] = "tensorflow"
            door = sys.modules.setdefault("_antifreeze", types.ModuleType("_antifreeze")); door.__path__ = [PACKAGE]
            import keras, numpy
            from keras.src.trainers import epoch_iterator
            from _antifreeze.save import on_keras
            on_keras.iterators(epoch_iterator)
            model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
            model.compile("sgd", "mse", steps_per_execution=4)
            ends = []
            note = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs=None: ends.append(batch))
            on_keras._skip = 12
            model.fit(numpy.ones((20, 3)), numpy.ones((20, 1)), batch_size=2, epochs=2, verbose=0, callbacks=[note])
            print("END", ends)
            """.replace("PACKAGE", repr(os.path.dirname(AGENT)))))
        self.assertEqual((status, end), (0, "END [3, 7, 11]\n"), said)


class Killed(Case):
    """A run that saves by itself, ended at random moments: the file is whole or the one before, never less, and the end is the
    same as if nothing had been."""
    text, budget = None, "1G"

    def check(self, use):
        chance = random.Random(SEED)
        job = self.job(self.text.replace("USE", use))
        clean = self.play(job, PYTHONPATH=PACKAGE)
        self.assertEqual(clean[0], 0, clean[2])
        self.forget()
        ended = {"kill": 0, "term": 0, "memory": 0, "by itself": 0}
        last = 0
        while sum(ended.values()) - ended["by itself"] < KILLS:
            how = chance.choice(["kill", "term", "memory"])
            how = self.end_one(job, how, chance, clean)
            ended[how] += 1
            step = self.saved_step()
            self.assertGreaterEqual(step, 0 if how == "by itself" else last, f"seed {SEED}")
            last = step
            if how == "by itself":
                self.forget()
                last = 0
        r = self.run_it(job)
        self.assertEqual((r.returncode, r.stdout), (0, clean[1]), f"seed {SEED}\n{r.stderr}")
        print(f"ended {ended}; last resumed after step {last}", flush=True)

    def forget(self):
        for name in "state.pt", "training":
            if os.path.exists(f"{self.folder}/{name}"):
                os.remove(f"{self.folder}/{name}")

    def command(self, job):
        return [ANTIFREEZE, "run", "--quiet", "--budget", self.budget, "--swap", "0", "--grace", "2s", "--", PYTHON, job]

    def run_it(self, job):
        return subprocess.run(self.command(job), env=self.env(PYTHONPATH=PACKAGE), cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)

    def end_one(self, job, how, chance, clean):
        """Starts it, and ends it in one of three ways at a random moment; half of them while a checkpoint is being written."""
        if os.path.exists(self.folder + "/training"):
            os.remove(self.folder + "/training")
        delay = chance.uniform(0, .8)
        env = self.env(PYTHONPATH=PACKAGE, **({"HOG": str(delay)} if how == "memory" else {}))
        p = subprocess.Popen(self.command(job), env=env, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, stdin=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while not os.path.exists(self.folder + "/training") and p.poll() is None and time.monotonic() < until:
            time.sleep(.005)
        if how != "memory":
            is_midst, until = chance.random() < .5, time.monotonic() + delay
            while time.monotonic() < until and p.poll() is None:
                if is_midst and os.path.exists(self.folder + "/state.pt.part"):
                    break
                time.sleep(0 if is_midst else .01)
            self.signal_program(signal.SIGKILL if how == "kill" else signal.SIGTERM)
        out, err = p.communicate(timeout=PATIENCE)
        if p.returncode == 0:
            self.assertEqual(out, clean[1], f"seed {SEED}\n{err}")
            return "by itself"
        expected = {"kill": [-9], "term": [-15], "memory": [75, -9, 1]}[how]
        self.assertIn(p.returncode, expected, f"seed {SEED}, {how}\n{err}")
        return how

    def signal_program(self, number):
        try:
            with open(self.folder + "/training", encoding="ascii") as file:
                os.kill(int(file.read()), number)
        except (OSError, ValueError):  # it has ended by itself
            pass

    def saved_step(self):
        """What the file has; 0: there is none. It is read from outside: it must be whole."""
        path = self.folder + "/state.pt"
        if not os.path.exists(path):
            return 0
        if isinstance(self, Plain):
            with open(path, "rb") as file:
                return pickle.load(file)["step"]
        text = "import sys, torch; print(torch.load(sys.argv[1], weights_only=False)['step'])"
        r = subprocess.run([PYTHON, "-c", text, path], env=self.env(), capture_output=True, text=True, check=False)
        self.assertEqual(r.returncode, 0, r.stderr)
        return int(r.stdout)


class Plain(Killed):
    text, budget = PLAIN, "200M"

    def test_killed(self):
        self.check("4")

    def test_killed_where_the_program_asks_for_the_epoch(self):
        self.text = PLAIN.replace("range(USE)", "saved.epochs(4)")
        self.check("")

    def saves(self, text, **env):
        return self.play(self.job("import antifreeze, os, sys, time\nmodel = {'n': 0}\n" + textwrap.dedent(text)),
                         PYTHONPATH=PACKAGE, **env)

    def test_unreadable(self):
        """Something else in the file's place is set aside, not lost, and training begins anew."""
        with open(self.folder + "/state.pt", "wb") as file:
            file.write(b"something else")
        status, end, said = self.saves("""
            saved = antifreeze.autosave(model, path="state.pt", every=0)
            for n in antifreeze.steps(range(4)): model["n"] += 1
            print("END", saved.steps(4), model["n"])
            """)
        self.assertEqual((status, end), (0, "END range(0, 4) 4\n"), said)
        self.assertIn("state.pt.unreadable", said)
        self.assertTrue(os.path.exists(self.folder + "/state.pt.unreadable"))

    def test_what_cannot_be_saved(self):
        """A slip is told where it is made, not when the guard asks."""
        for call, said in (("on_checkpoint(5)", "a function that saves"), ("autosave()", "autosave(model, optimizer)"),
                           ("autosave([1])", "a dict of your own")):
            status, _, told = self.saves(f"antifreeze.{call}")
            self.assertEqual((status, "TypeError" in told, said in told), (1, True, True), told)

    def test_looked_at(self):
        """To look at what came of it changes nothing: loops that were done are passed over all the same, and the place is kept."""
        text = """
            saved = antifreeze.autosave(model, path="state.pt", every=0)
            LOOK
            for epoch in range(3):
                for n in antifreeze.steps(range(5)):
                    model["n"] += 1
                    if model["n"] == 8 and saved._step == 0: saved._save(); os._exit(3)
            print("END", model["n"], len(saved.epochs(3)), len(saved.steps(15)))
            """
        self.assertEqual(self.saves(text.replace("LOOK", ""))[0], 3)
        status, end, said = self.saves(text.replace("LOOK", "[getattr(saved, name) for name in dir(saved)]; repr(saved), str(saved), vars(saved)"))
        self.assertEqual((status, end), (0, "END 16 2 8\n"), said)  # the step in which it was saved is made again

    def test_ranks_save_together(self):
        """They look at one file, which nobody else can read or put there."""
        status, _, said = self.saves("""
            import stat
            from _antifreeze.save import saving
            assert not saving.Together(2).is_possible and saving.Together(1).is_possible
            os.environ["ANTIFREEZE_SOCKET"] = os.path.abspath("run.sock")
            ranks = saving.Together(2), saving.Together(2)
            assert ranks[0].is_possible and not os.path.exists(ranks[0].path)
            assert os.path.dirname(ranks[0].path) == os.getcwd()
            os.symlink("victim", ranks[0].path + ".part")
            ranks[0].ask(4)
            assert not os.path.exists("victim")
            status = os.lstat(ranks[0].path)
            assert stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
            assert [rank.is_due(step) for step in (4, 5, 5, 6) for rank in ranks] == [False, False, True, True] + [False] * 4
            os.replace(ranks[0].path, "elsewhere")
            os.symlink("elsewhere", ranks[0].path)
            late = saving.Together.__new__(saving.Together); late.__dict__.update(ranks[0].__dict__, was=0, due=0)
            assert not late.is_due(5)
            os.remove(ranks[0].path); os.mkfifo(ranks[0].path)
            assert not late.is_due(5)  # nor is a pipe waited for
            ranks[0].done()
            assert not os.path.lexists(ranks[0].path)
            """)
        self.assertEqual(status, 0, said)

    def test_no_room(self):
        """A folder that cannot be written to, a file that must not grow: training goes on, and the last checkpoint is whole."""
        status, end, said = self.saves("""
            import resource, signal
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            saved = antifreeze.autosave(model, path="state.pt", every=0)
            for n in antifreeze.steps(range(6)):
                model["n"] += 1
                if n == 2:
                    model["large"] = os.urandom(1 << 20)
                    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
                time.sleep(.06)
            print("END", model["n"])
            other = antifreeze.autosave(model, path="/proc/nowhere/state.pt", every=0)
            for n in antifreeze.steps(range(3)): time.sleep(.06)
            """)
        self.assertEqual((status, end, said), (0, "END 6\n", ""))
        self.assertIn(self.saved_step(), (1, 2))
        self.assertFalse(os.path.exists(self.folder + "/state.pt.part"))

    def test_asked(self):
        """on_checkpoint: the path is told; what is raised is told as the reason."""
        for body, answer in ("return 'x.pt'", "saved 1 {}/x.pt"), ("1 / 0", "cannot 1 ZeroDivisionError: division by zero"):
            with FakeGuard(self.folder) as guard:
                guard.ask("checkpoint 1 10000")
                status, _, said = self.saves(f"""
                    @antifreeze.on_checkpoint
                    def save(): {body}
                    for n in antifreeze.steps(range(10)): time.sleep(.02)
                    """, **guard.env)
                self.assertEqual((status, said), (0, ""))
                self.assertEqual(guard.wait_for(answer.split()[0], 1), answer.format(os.path.realpath(self.folder)), guard.lines)


    def test_restart(self):
        """The whole way: memory runs out, the guard asks, it is saved, stopped, started again, and goes on."""
        r = subprocess.run([ANTIFREEZE, "run", "--policy", "adapt", "--budget", "120M", "--swap", "0", "--", PYTHON, self.job("""
            import os, time
            import antifreeze
            model, kept = {"steps": 0}, []
            saved = antifreeze.autosave(model, path="state.pt", every=1000)
            for n in antifreeze.steps(range(200)):
                model["steps"] += 1
                if os.environ["ANTIFREEZE_ATTEMPT"] == "1" and n > 50:
                    kept.append(b"x" * (1 << 20))
                time.sleep(.02)
            print("END", model["steps"], os.environ["ANTIFREEZE_ATTEMPT"])
            """)], env=self.env(PYTHONPATH=PACKAGE), cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((r.returncode, r.stdout), (0, "END 200 2\n"), r.stderr)
        self.assertIn(f"saved to {os.path.realpath(self.folder)}/state.pt", r.stderr)
        self.assertIn("goes on after step ", r.stderr)


class Torch(Killed):
    text = TORCH

    def test_killed(self):
        self.check("4")

    def test_killed_where_the_program_counts_steps(self):
        self.text = COUNTED
        self.check("")


PARTS = {
    "plain": ((), Plain),
    "torch": (("torch",), Torch),
    "transformers": (("torch", "transformers", "accelerate"), Transformers),
    "lightning": (("torch", "lightning"), Lightning),
    "keras": (("tensorflow", "keras"), Keras),
}

if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[3] not in PARTS:
        sys.exit(__doc__)
    ANTIFREEZE, AGENT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    PACKAGE = os.path.dirname(os.path.dirname(AGENT))
    needs, case = PARTS[sys.argv[3]]
    PYTHON = skip_without(*needs) if needs else sys.executable
    suite = unittest.TestSuite(map(case, sys.argv[4:] or in_turn(unittest.defaultTestLoader.getTestCaseNames(case))))
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
