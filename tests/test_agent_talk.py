"""What the agent has to say in a program, and to whom: the guard's socket, which line held a GPU's memory, those who keep track of
runs. Whatever is wrong with them, the program runs as if it were alone.

usage: test_agent_talk.py ANTIFREEZE AGENT_FOLDER
"""
import json
import os
import socket
import subprocess
import textwrap
import time

from agent_case import AGENT, ANTIFREEZE, PYTHON, STEPS, Case, main
from fake_guard import FakeGuard

EVENT = """
    from _antifreeze import talk
    talk.event("note", "here")
    """


class Talk(Case):
    def play(self, text, *options, **env):
        return self.call(PYTHON, *options, self.job(text), **{"PYTHONPATH": AGENT, **env})

    def same(self, text, *options, **env):
        r = self.play(text, *options, **env)
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "done\n", ""))

    def test_ranks(self):
        """Of several, the first speaks."""
        for env, says in (({}, 1), ({"RANK": "0"}, 1), ({"RANK": "1"}, 0), ({"LOCAL_RANK": "2"}, 0),
                          ({"RANK": "0", "LOCAL_RANK": "3"}, 1)):
            with self.subTest(env), FakeGuard(self.folder) as guard:
                self.same(STEPS, **guard.env, **env)
                self.assertEqual(guard.callers, says)

    def test_ranks_that_fail(self):
        """Each says its own error; who has started them does not speak of theirs as its own."""
        for error, heard in (("ValueError", ["hello rank 1", "event error at=%s:2:<module>: ValueError: mine"]), ("ChildFailedError", [])):
            with self.subTest(error), FakeGuard(self.folder) as guard:
                text = f"import antifreeze; ChildFailedError = type('ChildFailedError', (Exception,), {{}})\nraise {error}('mine')\n"
                self.assertEqual(self.play(text, **guard.env, RANK="1").returncode, 1)
                heard = [line.replace("%s", self.folder + "/job.py") for line in heard]
                if heard:
                    guard.wait_for(heard[-1])
                self.assertEqual(guard.lines, heard)

    def test_lines(self):
        """What the guard would take for nonsense is not sent: too long, control characters, a value that looks like an end."""
        with FakeGuard(self.folder) as guard:
            self.same("""
                import antifreeze
                from _antifreeze import talk
                talk.event("oom", "line\\nof two", at="/a b/c.py:3:f: ", swallowed=True, step=3, device="gpu")
                talk.event("note", "\u00e9" * 2000)
                talk.event("note", "\\ud800 half a character")
                talk.event("note", object)
                talk.saved("/x\\ny")
                antifreeze.step()
                print("done")
                """, **guard.env)
            self.assertEqual(guard.lines[0], "hello job.py 1")
            self.assertEqual(guard.lines[1], "event oom at=/a b/c.py:3:f swallowed=1 step=3 device=gpu: line of two")
            self.assertEqual(len(guard.lines[2].encode()), 1023 - (1023 - len("event note: ")) % 2)
            self.assertEqual(guard.lines[3:], ["event note:   half a character", "event note: <class 'object'>", "saved 0"])

    def test_fork(self):
        """A child is silent, and its end does not end its parent's talk."""
        with FakeGuard(self.folder) as guard:
            self.same("""
                import os, antifreeze
                from _antifreeze import talk
                antifreeze.step()
                talk.event("note", "one")
                for _ in range(3):
                    pid = os.fork()
                    if pid == 0:
                        talk.event("note", "child")
                        for n in antifreeze.steps(range(5)): pass
                        os._exit(0)
                    os.waitpid(pid, 0)
                talk.event("note", "two")
                print("done")
                """, **guard.env)
            guard.wait_for("event note: two")
            self.assertEqual(guard.lines, ["hello job.py 1", "event note: one", "event note: two"])
            self.assertEqual(guard.callers, 1)

    def test_last_words(self):
        """The error that ends a program is told, however soon that is: with a framework that the guard has heard of already, and
        without any. The real guard reads it all, though the program did not read what the guard said."""
        watched = """
            from _antifreeze import talk
            from _antifreeze.see import oom
            oom.watch()
            talk.offer(shrink=print)
            talk.event("note", "one")
            """
        fails = "def fill():\n    return bytearray(1 << 46)\nfill()\n"
        for name, text in ("watched", textwrap.dedent(watched) + fails), ("plain", fails):
            for _ in range(3):
                r = self.call(ANTIFREEZE, "run", "-q", "--budget", "1G", "--restarts", "0", "--", PYTHON, "-X", "dev", self.job(text))
                self.assertEqual((r.returncode, r.stderr.count("MemoryError"), r.stderr.count("Warning")), (1, 1, 0), r.stderr)
                told = json.loads(self.call(ANTIFREEZE, "why", "--json").stdout)["verdicts"][0]
                self.assertEqual((told["id"], told["confidence"]), ("host-exhaustion", .9), (name, told))
                self.assertIn("asked for more than there was at job.py:", told["summary"])

    def test_no_guard(self):
        """No socket, something else in its place, nobody behind it."""
        dead = self.folder + "/dead"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(dead)
        stream = self.folder + "/stream"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.bind(stream)
            s.listen(1)
            for path in "/nowhere", dead, stream, self.folder, self.job("a file", "file"), "x" * 300:
                with self.subTest(path):
                    self.same(STEPS + EVENT, ANTIFREEZE_SOCKET=path)

    def test_guard_that_hears_nothing(self):
        """Its backlog is full, and it takes no line: nobody waits for it."""
        path = self.folder + "/deaf"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(path)
            s.listen(0)
            others = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(4)]
            for other in others:
                other.setblocking(False)
                try:
                    other.connect(path)
                except BlockingIOError:
                    pass
            began = time.monotonic()
            self.same(STEPS + EVENT, ANTIFREEZE_SOCKET=path)
            for other in others:
                other.close()
            self.same("""
                import antifreeze
                from _antifreeze import talk
                for n in range(2000): talk.event("note", "x" * 900)
                print("done")
                """, ANTIFREEZE_SOCKET=path)
            self.assertLess(time.monotonic() - began, 60)

    def test_guard_goes_away(self):
        """In the middle of it; also where SIGPIPE ends a program, and warnings are errors."""
        text = """
            import os, signal, sys, time
            import antifreeze
            from _antifreeze import talk
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            talk.event("note", "one")
            while not os.path.exists("gone"): time.sleep(.01)
            for n in antifreeze.steps(range(20)):
                talk.event("note", "two")
                time.sleep(.01)
            talk.saved("/x")
            print("done")
            """
        for options in [], ["-X", "dev", "-W", "error"]:
            guard = FakeGuard(self.folder)
            with guard:
                p = subprocess.Popen([PYTHON, *options, self.job(text)], env=self.env(PYTHONPATH=AGENT, **guard.env),
                                     cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertTrue(guard.wait_for("event note: one"))
            self.job("", "gone")
            out, err = p.communicate(timeout=60)
            os.remove(self.folder + "/gone")
            self.assertEqual((p.returncode, out, err), (0, "done\n", ""))

    def test_guard_that_raves(self):
        """Words that nobody knows, numbers that are none, no words: passed over."""
        with FakeGuard(self.folder) as guard:
            for line in ("checkpoint", "checkpoint x y", "shrink all", "\x00\xff", "stop budget it is full", " ",
                         "checkpoint 7 100"):
                guard.ask(line)
            self.same("""
                import antifreeze, time
                antifreeze.on_checkpoint(lambda: None)
                for n in antifreeze.steps(range(30)): time.sleep(.01)
                print("done")
                """, **guard.env)
            self.assertEqual([line for line in guard.lines if line.startswith("sav")], ["saving 7", "saved 7"])

    def test_all_who_use_less(self):
        """The splitter and a loader offer different things, hear the same word, and one that fails does not keep it from the other."""
        with FakeGuard(self.folder) as guard:
            guard.ask("shrink")
            self.same("""
                import antifreeze, time
                from _antifreeze import talk
                heard = []
                def splits(): heard.append("split"); 1 / 0
                talk.offer(less=lambda: heard.append("old"))
                talk.offer(less=lambda: heard.append("less"), shrink=splits)
                for n in antifreeze.steps(range(30)): time.sleep(.01)
                assert heard == ["split", "less"], heard
                talk.offer(shrink=None)
                print("done")
                """, **guard.env)
            hellos = [line for line in guard.lines if line.startswith("hello")]
            self.assertEqual((hellos[0], hellos[-1]), ("hello job.py 1 less shrink", "hello job.py 1 less"))

    def test_odd_frameworks(self):
        """Something else under a framework's name, or half of it: runs or fails as alone."""
        for name, files in {
            "transformers": {"transformers/__init__.py": "from transformers.trainer import Trainer\nimport transformers.more",
                             "transformers/trainer.py": "class Trainer:\n    def train(self): print('done')", "transformers/more.py": ""},
            "keras": {"keras/__init__.py": "import keras.src.callbacks, keras.src.more\nclass Trainer:\n    def train(self): print('done')",
                      "keras/src/__init__.py": "", "keras/src/callbacks.py": "class CallbackList: pass", "keras/src/more.py": ""},
            "lightning": {"lightning/__init__.py": "from lightning.pytorch.trainer.trainer import Trainer\nimport lightning.more",
                          "lightning/pytorch/__init__.py": "", "lightning/pytorch/trainer/__init__.py": "", "lightning/more.py": "",
                          "lightning/pytorch/trainer/trainer.py": "class Trainer:\n    def train(self): print('done')\n"
                                                                  "    def fit(self): 1 / 0\n    save_checkpoint = None"},
        }.items():
            with self.subTest(name), FakeGuard(self.folder) as guard:
                for path, text in files.items():
                    self.job(text, path)
                self.same(f"import {name}, decimal\n{name}.Trainer().train()\n", **guard.env)


class Sites(Case):
    """Lines that hold a GPU's memory, by the history of an allocator that this stands for: a snapshot in torch's form."""
    TORCH = """
        import sys, types
        door = sys.modules.setdefault("_antifreeze", types.ModuleType("_antifreeze")); door.__path__ = [PACKAGE]
        from _antifreeze import clock, talk
        from _antifreeze.see import cuda_sites as sites, oom
        GIB = 1 << 30
        def frame(path, line, name): return {"filename": path, "line": line, "name": name}
        def block(size, *frames, state="active_allocated"): return {"size": size, "requested_size": size, "state": state, "frames": list(frames)}
        linear = frame("/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", 125, "forward")
        net, train = frame("/home/me/net.py", 22, "forward"), frame("/home/me/train.py", 9, "<module>")
        ours, made = frame(PACKAGE + "/split/micro.py", 3, "go"), frame("/tmp/torchinductor_me/ab/cab.py", 8, "call")
        snapshot = {"segments": [
            {"blocks": [block(3 * GIB, linear, net, train), block(GIB, ours, made, net, train), block(9 * GIB, train, state="inactive")]},
            {"blocks": [block(2 * GIB, train), block(GIB), block(GIB, linear, state="active_awaiting_free"), block(512, frame("/x.py", 1, "f"))]},
        ], "device_traces": []}
        called, is_enabled = [], False
        stats = {"allocation": {"all": {"allocated": 0}}, "allocated_bytes": {"all": {"peak": 0}}}
        def record(*args, **kwargs): called.append(args[0])
        memory = types.SimpleNamespace(_record_memory_history=record, _snapshot=lambda: snapshot, memory_stats_as_nested_dict=lambda device: stats)
        torch = types.SimpleNamespace(
            _C=types.SimpleNamespace(_cuda_isHistoryEnabled=lambda: is_enabled),
            cuda=types.SimpleNamespace(memory=memory, current_device=lambda: 0, get_device_properties=lambda d: types.SimpleNamespace(total_memory=80 * GIB)))
        """

    def play(self, text, *command, **env):
        before = textwrap.dedent(self.TORCH).replace("PACKAGE", repr(os.path.dirname(AGENT)))
        r = self.call(*command, PYTHON, self.job(before + textwrap.dedent(text)), **env)
        self.assertEqual(r.stdout, "done\n", r.stderr)
        return r

    def test_add_up(self):
        self.play("""
            held, total = sites.add_up(snapshot)
            assert total == 8 * GIB + 512, total
            assert held == {"/home/me/net.py:22:forward": 4 * GIB, "/home/me/train.py:9:<module>": 2 * GIB, None: 2 * GIB, "/x.py:1:f": 512}, held
            assert sites.keys(held, total) == {"total_bytes": 8 * GIB + 512, "a_at": "/home/me/net.py:22:forward", "a_bytes": 4 * GIB,
                                               "b_at": "/home/me/train.py:9:<module>", "b_bytes": 2 * GIB}
            assert sites.keys({None: GIB}, GIB) == {} == sites.keys(*sites.add_up({"segments": []}))
            many = sites.keys({f"/{'d' * 200}/x.py:{n}:f": n for n in range(1, 100)}, 100)
            assert [many[letter + "_bytes"] for letter in "abcde"] == [99, 98, 97, 96, 95] and "f_at" not in many
            long = sites.place_of([frame("/" + "d" * 300 + "/x.py", 1, "f")], {})
            assert len(long) < 130 and long.endswith("/x.py:1:f")
            print("done")
            """)

    def test_when_it_is_on(self):
        """In the first steps; then near the limit, as far as a two hundredth of the time allows; never where the program does it."""
        self.play("""
            sites.start(torch)
            assert called == ["state"] and clock.turns == [sites.turn]
            clock.count = 9
            sites.turn()
            assert called == ["state", None]
            sites._began_ns, S = 0, 1_000_000_000
            for now, allocations, peak, on in ((10, 0, 47, False), (10, 1000, 49, True), (20, 26000, 49, True), (21, 226000, 49, False),
                                               (89, 426000, 49, False), (90, 426000, 49, True)):
                assert sites.is_worth_it(now * S, allocations, peak * GIB, 80 * GIB) == on, now
                sites.switch(on)
            import os
            os.environ["ANTIFREEZE_GPU_BUDGET"] = str(4 * GIB)
            assert sites.figures()[2] == 4 * GIB
            before = called[:]
            memory._record_memory_history("all")
            sites.switch(False)
            assert called == before + ["all"] and sites.lines() == {}
            print("done")
            """)
        self.play("""
            import gc
            sites.start(torch)
            gc.collect()
            assert called == ["state"]
            sites._began_ns -= sites.UNTIL_NS
            gc.collect()
            assert called == ["state", None] and sites.without_steps not in gc.callbacks
            print("done")
            """)
        r = self.play("""
            import gc
            def fails(*_): raise RuntimeError("no history")
            sites.start(torch)
            sites._set = fails
            seen = []
            gc.callbacks.append(lambda phase, about: seen.append(phase))
            sites._began_ns -= sites.UNTIL_NS
            gc.collect()
            gc.collect()
            assert seen == ["start", "stop"] * 2, seen
            print("done")
            """)
        self.assertEqual(r.stderr, "")
        self.play("is_enabled = True\nsites.start(torch)\nassert not called and oom.lines is None\nprint('done')")

    def test_why(self):
        """From the error to what is said of it."""
        self.play("""
            class OutOfMemoryError(RuntimeError): pass
            sites.start(torch)
            oom.watch()
            oom.noticed(device="gpu", asked_bytes=GIB)
            print("done", flush=True)
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
            """, ANTIFREEZE, "run", "-q", "--restarts", "0", "--")
        told = json.loads(self.call(ANTIFREEZE, "why", "--json").stdout)["verdicts"][0]
        self.assertEqual(told["id"], "gpu-oom", told)
        self.assertIn("net.py:22 in forward() held 4.0G of GPU memory (50 %)", told["evidence"])


class Tracked(Case):
    """A run of wandb that the program has open gets the job's peak and the verdict, also when an error ends the program."""
    WANDB = "class Run:\n    def __init__(self): self.summary = {}\n    def finish(self): print(json.dumps(self.summary))\nimport json\n"

    def test_numbers_and_verdict(self):
        self.job("run = None\nfrom wandb.sdk.wandb_run import Run\nimport wandb.more\ndef init():\n    global run\n    run = Run()\n    return run",
                 "wandb/__init__.py")
        for name, text in ("wandb/sdk/__init__.py", ""), ("wandb/more.py", ""), ("wandb/sdk/wandb_run.py", self.WANDB):
            self.job(text, name)
        begin = "import wandb, subprocess, sys\nrun = wandb.init()\nsubprocess.run([sys.executable, '-c', 'import time; x = b\"x\" * (300 << 20); time.sleep(.5)'])\n"
        for text, status, words in ((begin + "run.finish()", 0, "clean: nothing was wrong so far"),
                                    ("import atexit, json\natexit.register(lambda: print(json.dumps(run.summary)))\n" + begin + "bytearray(1 << 46)\n", 1,
                                     "host-exhaustion: it ended with an error for want of memory at job.py:6:<module>")):
            for _ in range(3):  # on a busy machine the guard may not answer in time
                r = self.call(ANTIFREEZE, "run", "-q", "--budget", "1G", "--restarts", "0", "--", PYTHON, self.job(text))
                self.assertEqual(r.returncode, status, r.stderr)
                told = json.loads(r.stdout)
                if "antifreeze/verdict" in told:
                    break
            self.assertEqual(told["antifreeze/verdict"], words)
            self.assertIn(told["antifreeze/ram_peak_bytes"] >> 20, range(300, 400), told)  # of the whole job, not of this process
            self.assertEqual(told["antifreeze/budget_bytes"], 1 << 30)


if __name__ == "__main__":
    main()
