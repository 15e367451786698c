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
from frameworks import skip_without

KILLS = int(os.environ.get("AFZ_KILLS", "6"))
PATIENCE = 300  # seconds for one program: importing a framework on a busy machine alone takes 30
SEED = int(os.environ.get("AFZ_SEED", "0")) or random.SystemRandom().randrange(1 << 30)

# A model, and a loop over shuffled data that depends on every random number. HOG: seconds until all memory is taken.
HEAD = """
    import os, sys, threading, time
    def take_memory():
        time.sleep(float(os.environ["HOG"]))
        kept = []
        while True:
            kept.append(bytearray(os.urandom(1 << 20)) * 16)
            time.sleep(.002)
    if "HOG" in os.environ:
        threading.Thread(target=take_memory, daemon=True).start()
    """
PLAIN = HEAD + """
    import random
    import antifreeze
    class Data:
        def __iter__(self):
            order = list(range(60))
            random.shuffle(order)
            return iter(order)
    random.seed(7)
    model = {"weights": [0.0] * 20000, "steps": 0}
    saved = antifreeze.autosave(model, path="state.pt", every=.02)
    with open("training.part", "w") as file:
        file.write(str(os.getpid()))
    os.rename("training.part", "training")
    for epoch in range(USE):
        for item in antifreeze.steps(Data()):
            for _ in range(20):
                model["weights"][random.randrange(20000)] += random.random() * item
            model["steps"] += 1
            time.sleep(.004)
    print("END", model["steps"], sum(model["weights"]))
    """
TORCH = HEAD + """
    import torch
    import antifreeze
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(16, 200), torch.nn.Dropout(.5), torch.nn.Linear(200, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 7)
    data = torch.utils.data.TensorDataset(torch.randn(240, 16), torch.randn(240, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    saved = antifreeze.autosave(model, optimizer, schedule, path="state.pt", every=.02)
    with open("training.part", "w") as file:
        file.write(str(os.getpid()))
    os.rename("training.part", "training")
    for epoch in range(USE):
        for x, y in antifreeze.steps(loader):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            schedule.step()
            time.sleep(.004)
    print("END", schedule.last_epoch, sum(p.double().sum().item() for p in model.parameters()))
    """
# Without antifreeze.steps(): counted by the optimizer, and the place is the program's own.
COUNTED = TORCH.replace("for epoch in range(USE):\n        for x, y in antifreeze.steps(loader):",
                        "for n in range(saved.step, 240):\n        for x, y in [data[4 * n % 240:4 * n % 240 + 4]]:") \
               .replace("torch.nn.Dropout(.5)", "torch.nn.Identity()")
TRANSFORMERS = """
    import os, time, torch
    from transformers import Trainer, TrainerCallback, TrainingArguments
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.drop, self.b = torch.nn.Linear(8, 8), torch.nn.Dropout(.1), torch.nn.Linear(8, 1)
        def forward(self, x=None, labels=None):
            y = self.b(self.drop(self.a(x))).squeeze(-1)
            return {"loss": ((y - labels) ** 2).mean(), "logits": y}
    class Stop(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            time.sleep(.02)
            if state.global_step == int(os.environ.get("STOP_AT", "0")): os._exit(9)
    torch.manual_seed(0)
    data = [{"x": torch.randn(8), "labels": torch.randn(())} for _ in range(64)]
    args = TrainingArguments(output_dir="out", per_device_train_batch_size=4, num_train_epochs=3, report_to=[], logging_steps=1,
                             save_strategy="no", disable_tqdm=True, use_cpu=True)
    trainer = Trainer(Net(), args, train_dataset=data, callbacks=[Stop()])
    trainer.train()
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    os.write(1, f"END {trainer.state.global_step} {losses}\\n".encode())
    """
LIGHTNING = """
    import os, time, torch
    import lightning
    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
        def training_step(self, batch, index):
            self.last = ((self.b(self.a(batch[0])).squeeze(-1) - batch[1]) ** 2).mean()
            return self.last
        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-2)
        def on_train_batch_end(self, *_):
            time.sleep(.02)
            if self.global_step == int(os.environ.get("STOP_AT", "0")): os._exit(9)
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64))
    net = Net()
    trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(net, torch.utils.data.DataLoader(data, batch_size=4))
    print("END", trainer.global_step, net.last.item())
    """
KERAS = """
    import os, time, numpy
    import keras
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(.02)
            if int(self.model.optimizer.iterations.numpy()) == int(os.environ.get("STOP_AT", "0")): os._exit(9)
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    told = model.fit(numpy.random.randn(64, 8), numpy.random.randn(64), batch_size=4, epochs=3, shuffle=False, verbose=0,
                     callbacks=[Stop()])
    print("END", int(model.optimizer.iterations.numpy()), told.history["loss"][-2:])
    """

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


class Transformers(Asked):
    text = TRANSFORMERS

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
        job = self.job(self.text.replace("time.sleep(.02)", "time.sleep(.05)"))
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


class Lightning(Asked):
    text = LIGHTNING


class Keras(Asked):
    text = KERAS


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
        self.text = PLAIN.replace("range(USE)", "range(saved.epoch, 4)")
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
            print("END", saved.step, model["n"])
            """)
        self.assertEqual((status, end), (0, "END 0 4\n"), said)
        self.assertIn("state.pt.unreadable", said)
        self.assertTrue(os.path.exists(self.folder + "/state.pt.unreadable"))

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
    suite = unittest.TestSuite(map(case, sys.argv[4:] or unittest.defaultTestLoader.getTestCaseNames(case)))
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
