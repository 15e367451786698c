#!/usr/bin/env python3
"""The agent's way into Python programs: it comes in by itself, finds the frameworks, and any program runs as if it were alone.

usage: test_agent.py ANTIFREEZE KEEPER PROBE AGENT_FOLDER

The frameworks here are stand-ins of a few lines (the real ones: test_frameworks.py), the interpreters are all that are to be had.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

from agent_harness import Harness

ANTIFREEZE = HARNESS = None
PYTHON = sys.executable
VERSIONS = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python")) + glob.glob("/usr/bin/pypy3"))

# What the agent takes hold of in torch, and nothing else; `more` imports follow, as they do in the real one.
TORCH = {
    "torch/__init__.py": """
        __version__ = "2.4.0+cpu"
        class compiler:
            is_compiling = staticmethod(lambda: False)
        from torch import optim
        import torch.more
        """,
    "torch/more.py": "",
    "torch/optim/__init__.py": "from torch.optim.optimizer import Optimizer",
    "torch/optim/optimizer.py": """
        import ctypes
        hooks = []
        register_optimizer_step_pre_hook = hooks.append
        class Optimizer:
            def step(self):
                for hook in hooks: hook(self, (), {})
        """,
}
TRAIN = """
import torch
opt = torch.optim.Optimizer()
for _ in range(10): opt.step()
print("done")
"""
# All that a program can see of how it was started, but for the environment
LOOK = """
import json, sys, os
print(json.dumps([sys.path, sorted(sys.modules), sys.flags.__repr__(), sys.argv, sorted(sys.path_importer_cache),
                  [getattr(f, "__name__", "") for f in sys.meta_path]]))
"""


class Agent(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="afz-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def files(self, files, folder="."):
        for name, text in files.items():
            path = os.path.join(self.folder, folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(textwrap.dedent(text))
        return os.path.join(self.folder, folder)

    def same(self, text, **how):
        """Plays it both ways; what it says and how it ends must not differ."""
        alone = HARNESS.alone(how.pop("python", PYTHON), text, folder=self.folder, **how)
        ours = HARNESS.play(PYTHON, text, folder=self.folder, **how)
        self.assertEqual((ours.status, ours.said), (alone.status, alone.said))
        return ours

    def job(self, text, name="job.py"):
        return os.path.join(self.files({name: text}), name)

    # ---- it comes in

    def test_every_version(self):
        """From 3.8 on steps are counted; older ones are left as they are."""
        place = self.files(TORCH, "site")
        for python in VERSIONS or [PYTHON]:
            with self.subTest(python):
                job = self.job("from __future__ import print_function\n" + TRAIN)
                r = HARNESS.play(python, job, env={"PYTHONPATH": place}, folder=self.folder)
                self.assertEqual((r.status, r.said), (0, "done\n"))
                is_new = subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 8))"]).returncode == 0
                self.assertEqual(r.steps, 10 if is_new else 0)

    def test_children(self):
        place = self.files(TORCH, "site")
        job = self.job("""
            import multiprocessing, subprocess, sys
            def train():
                import torch
                kept = bytearray(8 << 20)  # a child of fork() asks for its book when it allocates
                opt = torch.optim.Optimizer()
                for _ in range(10): opt.step()
            if __name__ == "__main__":
                for how in "spawn", "forkserver", "fork":
                    p = multiprocessing.get_context(how).Process(target=train); p.start(); p.join()
                    print(how, p.exitcode)
                subprocess.run([sys.executable, "-c", "import torch; torch.optim.Optimizer().step()"], check=True)
            """)
        r = self.same(job, env={"PYTHONPATH": place})
        self.assertEqual(r.steps, 31)

    def test_clock_of_the_probe(self):
        """antifreeze_clock(): where the numbers of this process are; in a child elsewhere, or not yet."""
        r = HARNESS.play(PYTHON, self.job("""
            import ctypes, os
            clock = ctypes.PyDLL(None).antifreeze_clock
            clock.restype, clock.argtypes = ctypes.c_void_p, ()
            words = (ctypes.c_uint64 * 2).from_address(clock())
            words[0] += 3; words[1] += 50
            assert clock() == ctypes.addressof(words)
            ctypes.PyDLL(None).antifreeze_step()
            assert words[0] == 4
            child = os.fork()
            if not child:
                first = clock()
                kept = bytearray(8 << 20)
                (ctypes.c_uint64 * 2).from_address(clock())[0] += 9
                os._exit(0 if first is None and clock() != ctypes.addressof(words) else 1)
            print(os.waitpid(child, 0)[1])
            """))
        self.assertEqual((r.status, r.said), (0, "0\n"))
        self.assertEqual(sorted((book["steps"], book["wait_ns"]) for book in r.books), [(4, 50), (9, 0)])

    def test_kept_out(self):
        """-I, -E and -S keep it out, -P and -s do not."""
        place = self.files(TORCH, "site")
        text = f"import sys; sys.path.append({place!r})\n" + TRAIN
        for option, steps in ("-I", 0), ("-E", 0), ("-S", 0), ("-s", 10), ("-B", 10), ("-O", 10), ("-P", 10):
            if option == "-P" and sys.version_info < (3, 11):
                continue
            with self.subTest(option):
                self.assertEqual(self.same(self.job(text), options=[option]).steps, steps)

    # ---- nobody notices

    def test_nothing_is_seen(self):
        """Path, modules, flags: as alone, but for what is named here."""
        for env in {}, {"PYTHONPATH": "/nowhere:."}, {"PYTHONSAFEPATH": "1"}, {"PYTHONDONTWRITEBYTECODE": "1"}:
            with self.subTest(env):
                job = self.job(LOOK)
                alone = json.loads(HARNESS.alone(PYTHON, job, folder=self.folder, env=env).said)
                ours = json.loads(HARNESS.play(PYTHON, job, folder=self.folder, env=env).said)
                more = {"_antifreeze", "_antifreeze.watch", "atexit"}  # the last is in Python itself
                self.assertEqual(set(ours[1]) - set(alone[1]), more)
                self.assertEqual(ours[5][0], "")
                ours[1], ours[5] = [m for m in ours[1] if m not in more], ours[5][1:]
                ours[4] = [place for place in ours[4] if place != os.path.dirname(HARNESS.agent)]
                self.assertEqual(ours, alone)

    def test_no_bytecode(self):
        before = sorted(glob.glob(os.path.dirname(HARNESS.agent) + "/**", recursive=True))
        place = self.files(TORCH, "site")
        for python in VERSIONS or [PYTHON]:
            HARNESS.play(python, self.job(TRAIN), env={"PYTHONPATH": place})
        self.assertEqual(sorted(glob.glob(os.path.dirname(HARNESS.agent) + "/**", recursive=True)), before)

    def test_sitecustomize_of_others(self):
        """It is imported as without us, and so is one that behaves like ours; one that fails says so as without us."""
        gentle = self.files({"sitecustomize.py": "print('theirs', __name__, __file__)\nvalue = 7"}, "theirs")
        chaining = self.files({"sitecustomize.py": """
            import sys, os
            here = os.path.dirname(__file__)
            sys.path.remove(here); del sys.modules["sitecustomize"]
            try:
                import sitecustomize
            except ImportError:
                print("nothing behind me")
            """}, "chaining")
        failing = self.files({"sitecustomize.py": "import not_there"}, "failing")
        broken = self.files({"sitecustomize.py": "1 / 0"}, "broken")
        look = self.job("""
            import sys
            try:
                import sitecustomize
                print(sitecustomize.__file__, getattr(sitecustomize, "value", None), sys.modules["sitecustomize"] is sitecustomize)
            except ImportError as error:
                print(repr(error), "sitecustomize" in sys.modules)
            """)
        for path in "", gentle, chaining, f"{chaining}:{gentle}", failing, broken:
            with self.subTest(path):
                self.same(look, env={"PYTHONPATH": path} if path else None)

    def test_sitecustomize_that_ends_the_program(self):
        leaving = self.files({"sitecustomize.py": "import os; os._exit(3)"}, "leaving")
        self.assertEqual(self.same(self.job("print('not reached')"), env={"PYTHONPATH": leaving}).status, 3 << 8)

    def test_module_named_antifreeze(self):
        """The program's own is the program's own, wherever it has it; else ours is there."""
        place = self.files({**TORCH, "antifreeze.py": "name = 'theirs'"}, "site")
        text = TRAIN + "import antifreeze; print(antifreeze.name)"
        self.assertEqual(self.same(self.job(text), env={"PYTHONPATH": place}).steps, 10)
        self.files({"antifreeze.py": "name = 'beside the program'"})
        self.assertEqual(self.same(self.job(text), env={"PYTHONPATH": place}).steps, 10)
        os.remove(os.path.join(self.folder, "antifreeze.py"))
        os.remove(os.path.join(place, "antifreeze.py"))
        r = HARNESS.play(PYTHON, "import antifreeze\nfor n in antifreeze.steps(range(5)): pass\nantifreeze.step()\n")
        self.assertEqual((r.status, r.steps, r.said), (0, 6, ""))

    def test_our_own_clock_outside(self):
        """Without `antifreeze run` the package does nothing."""
        r = HARNESS.alone(PYTHON, "import antifreeze\nprint(sum(antifreeze.steps(range(5))), antifreeze.step())\n",
                          env={"PYTHONPATH": HARNESS.agent.rsplit("/", 2)[0]})
        self.assertEqual((r.status, r.said), (0, "10 None\n"))

    def test_broken_frameworks(self):
        """Half-installed, too old, something else of that name: fails as alone, or runs as alone."""
        for what, files in {
            "an import that fails": {"torch/__init__.py": "from torch import optim\nimport torch._C\n"},
            "no such hook": {"torch/optim/optimizer.py": "class Optimizer:\n    def step(self): pass\n"},
            "too old": {"torch/__init__.py": "__version__ = '1.13.1'\nfrom torch import optim\nimport torch.more\n"},
            "no version": {"torch/__init__.py": "from torch import optim\nimport torch.more\n"},
            "a file of that name": {"torch.py": "class optim:\n    class Optimizer:\n        def step(self): pass\n"},
            "hooks that raise": {"torch/optim/optimizer.py": """
                def register_optimizer_step_pre_hook(hook): raise RuntimeError
                class Optimizer:
                    def step(self): pass
                """},
            "an error of syntax": {"torch/optim/optimizer.py": "class Optimizer(:\n"},
        }.items():
            with self.subTest(what):
                place = self.files(files if "torch.py" in files else {**TORCH, **files}, what.replace(" ", "-"))
                self.assertEqual(self.same(self.job(TRAIN), env={"PYTHONPATH": place}).steps, 0)

    def test_threads_and_imports(self):
        """Many threads that import at the same time."""
        place = self.files({**TORCH, **{f"m{n}.py": "import torch, json, decimal\n" for n in range(16)}}, "site")
        self.same(self.job("""
            import threading
            threads = [threading.Thread(target=__import__, args=("m%d" % n,)) for n in range(16)]
            for t in threads: t.start()
            for t in threads: t.join()
            import torch; torch.optim.Optimizer().step(); print("done")
            """), env={"PYTHONPATH": place})

    def test_no_room(self):
        """A folder that may not be written to, a home that is not there, a standard error that is closed."""
        self.same(self.job("import os\nos.close(2)\nprint('done')\n"), env={"HOME": "/nowhere", "TMPDIR": "/nowhere"})

    def test_version(self):
        r = HARNESS.alone(PYTHON, "import antifreeze\nprint(antifreeze.__version__)\n",
                          env={"PYTHONPATH": HARNESS.agent.rsplit("/", 2)[0]})
        told = subprocess.run([ANTIFREEZE, "--version"], capture_output=True, text=True, check=False).stdout
        self.assertIn(r.said.strip(), told.split())

    # ---- antifreeze run

    def run_it(self, *command, options=(), **env):
        os.makedirs(self.folder + "/run", mode=0o700, exist_ok=True)
        env = {"XDG_RUNTIME_DIR": self.folder + "/run", "XDG_STATE_HOME": self.folder + "/state", **env}
        env = HARNESS.environment(env)
        r = subprocess.run([ANTIFREEZE, "run", *options, "--", *command], env=env, cwd=self.folder, text=True,
                           capture_output=True, timeout=200, check=False, stdin=subprocess.DEVNULL)
        told = subprocess.run([ANTIFREEZE, "export", "--format", "jsonl"], env=env, text=True, capture_output=True, check=False)
        rows = [json.loads(line) for line in told.stdout.splitlines()]
        counts = [row["values"].get("step_count", 0) for row in rows if (row["type"], row.get("kind")) == ("sample", "inside")]
        return r, max(counts, default=0)

    def test_run(self):
        place = self.files(TORCH, "site")
        train = self.job(TRAIN + "import time\ntime.sleep(2.5)\n")
        r, steps = self.run_it(PYTHON, train, PYTHONPATH=place)
        self.assertEqual((r.returncode, r.stdout, steps), (0, "done\n", 10), r.stderr)
        r, steps = self.run_it("sh", "-c", f"{PYTHON} {train}", PYTHONPATH=place)
        self.assertEqual((r.returncode, r.stdout, steps), (0, "done\n", 10), r.stderr)
        for option in "--no-agent", "--no-probe":
            r, steps = self.run_it(PYTHON, train, options=[option], PYTHONPATH=place)
            self.assertEqual((r.returncode, r.stdout, steps), (0, "done\n", 0), r.stderr)

    def test_an_error_is_told_with_its_line(self):
        """Of a program without any framework, too; one that it caught, or that ended it well, is none."""
        for text, line in ("def step():\n    return undefined\n\n\nstep()\n", 2), ("try:\n    undefined\nexcept NameError:\n    raise SystemExit(3)\n", None):
            with self.subTest(text):
                r, _ = self.run_it(PYTHON, self.job(text), options=["--run-dir", tempfile.mkdtemp(dir=self.folder)])
                said = [row for row in r.stderr.splitlines() if row.startswith("antifreeze: exception: ")]
                self.assertEqual(len(said), 1, r.stderr)
                self.assertEqual(said[0].endswith(f"NameError: name 'undefined' is not defined, at job.py:{line} in step()"), line is not None, said)

    def test_dask(self):
        """What its arrays take to be computed is waiting for data."""
        place = self.files({"dask/__init__.py": "import dask.base\nimport dask.more\n", "dask/more.py": "", "dask/base.py": """
            import functools, time
            def compute(*args, **named): time.sleep(.05); return args
            class Array:
                def compute(self): return compute(self, traverse=False)[0]
            """}, "site")
        r = HARNESS.play(PYTHON, self.job("""
            import dask, sys
            array = dask.base.Array()
            assert all(array.compute() is array for _ in range(3))
            clock = sys.modules.get("_antifreeze.clock")
            print(150 <= clock.waited / 1e6 < 5000)
            """), folder=self.folder, env={"PYTHONPATH": place})
        self.assertEqual((r.status, r.said), (0, "True\n"))

    def test_run_says_what_keeps_it_out(self):
        for options, said in (["-I"], "-I"), (["-sE"], "-E"), (["-X", "dev", "-S"], "-S"), (["-W", "-I"], ""), ([], ""):
            with self.subTest(options):
                r, _ = self.run_it(PYTHON, *options, "-c", "pass", "-I")
                self.assertEqual(f"python {said} keeps the agent out" in r.stderr, bool(said), r.stderr)
        r, _ = self.run_it(PYTHON, "-I", "-c", "pass", options=["--quiet"])
        self.assertNotIn("agent", r.stderr)

    def test_python_path(self):
        """What PYTHONPATH was stays behind ours; nothing empty comes in, which would be the folder one is in."""
        show = [PYTHON, "-c", "import os; print(os.environ.get('PYTHONPATH'))"]
        for before, after in ("", HARNESS.agent), ("/x:/y", HARNESS.agent + ":/x:/y"), (HARNESS.agent + ":/x",) * 2:
            r, _ = self.run_it(*show, **({"PYTHONPATH": before} if before else {}))
            self.assertEqual(r.stdout.strip(), os.path.realpath(after.partition(":")[0]) + after[len(HARNESS.agent):])
        r, _ = self.run_it(*show, options=["--no-agent"])
        self.assertEqual(r.stdout.strip(), "None")

    # ---- what it costs

    def test_import_cost(self):
        """15 ms of the processor are allowed for a start; the best of many, as others may have the caches."""
        env = {**HARNESS.environment({"ANTIFREEZE_PROBE": "/nowhere"}), "PYTHONPATH": HARNESS.agent}
        text = "import time, os, site; t = time.process_time(); site.execsitecustomize(); print(time.process_time() - t)"
        took = [float(subprocess.run([PYTHON, "-S", "-c", text], env=env, capture_output=True, text=True, check=True).stdout)
                for _ in range(15)]
        print(f"coming in takes {min(took) * 1e3:.2f} ms", flush=True)
        self.assertLess(min(took), .015)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    ANTIFREEZE = os.path.abspath(sys.argv[1])
    HARNESS = Harness(*sys.argv[2:5])
    unittest.main(argv=sys.argv[:1], verbosity=2)
