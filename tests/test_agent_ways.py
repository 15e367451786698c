"""The ways into a program beside `antifreeze run`: the wheel, antifreeze.guard(), `antifreeze kernel`, `antifreeze python`. Whatever
is wrong with them, the program runs as if it were alone.

usage: test_agent_ways.py ANTIFREEZE AGENT_FOLDER
"""
import glob
import json
import os
import shutil
import signal
import sys

from agent_case import AGENT, ANTIFREEZE, PYTHON, STEPS, Case, main

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Wheel(Case):
    def setUp(self):
        super().setUp()
        # As pip would: the wheel is plain files.
        shutil.copytree(ROOT + "/python", self.folder + "/source", ignore=shutil.ignore_patterns("__pycache__"))
        r = self.call(PYTHON, "-c", "import make_wheel, sys; print(make_wheel.build_wheel(sys.argv[1]))", self.folder,
                      cwd=self.folder + "/source")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.python = self.venv() + "/bin/python"
        self.site = glob.glob(self.folder + "/venv/lib/python3*/site-packages")[0]
        shutil.unpack_archive(os.path.join(self.folder, r.stdout.strip()), self.site, "zip")

    LOOK = "import sys; print(sorted(m for m in sys.modules if 'antifreeze' in m), sys.path[-1:])"

    def test_inert(self):
        """Without a guard nothing of it is loaded."""
        for env in {}, {"ANTIFREEZE_AGENT": AGENT}, {"ANTIFREEZE_SOCKET": "/nowhere"}:
            r = self.call(self.python, "-c", self.LOOK, **env)
            self.assertEqual((r.stdout, r.stderr), (f"[] ['{self.site}']\n", ""))
        r = self.call(self.python, self.job(STEPS))
        self.assertEqual((r.stdout, r.stderr), ("done\n", ""))

    def test_comes_in(self):
        """Also where PYTHONPATH does not reach; with the run's agent, or its own where that cannot be read."""
        for agent, options in (AGENT, []), (AGENT, ["-I"]), (AGENT, ["-E"]), ("/nowhere", ["-I"]), (AGENT, ["-S"]):
            r = self.call(self.python, *options, "-c", self.LOOK, ANTIFREEZE_AGENT=agent, ANTIFREEZE_SOCKET="/nowhere",
                          PYTHONPATH=agent)
            expected = [] if "-S" in options else ["_antifreeze", "_antifreeze.watch"]
            self.assertTrue(r.stdout.startswith(str(expected)), (agent, options, r.stdout, r.stderr))
            self.assertEqual(r.stderr, "")

    def test_under_run(self):
        text = "import sys\nprint('_antifreeze' in sys.modules)\n"
        out = ["--no-agent"]
        for options, python, comes in ([], ["-I"], True), ([], [], True), (out, [], False), (out, ["-I"], False):
            r = self.call(ANTIFREEZE, "run", "-q", *options, "--", self.python, *python, self.job(text))
            self.assertEqual((r.returncode, r.stdout), (0, f"{comes}\n"), (options, python, r.stderr))

    def test_broken(self):
        """An agent that raises does not reach the program."""
        os.makedirs(self.folder + "/bad/enter")
        self.job("", "bad/enter/sitecustomize.py")
        self.job("1 / 0", "bad/watch.py")
        r = self.call(self.python, "-c", "print('done')", ANTIFREEZE_AGENT=self.folder + "/bad/enter", ANTIFREEZE_SOCKET="/x")
        self.assertEqual((r.stdout, r.stderr), ("done\n", ""))


class Guarded(Case):
    """antifreeze.guard()"""

    def play(self, text, path=None, **env):
        return self.call(PYTHON, self.job(text), PYTHONPATH=os.path.dirname(os.path.dirname(AGENT)),
                         PATH=path or os.path.dirname(ANTIFREEZE) + ":" + os.environ["PATH"], **env)

    def test_held_asked_and_ended(self):
        """A process that holds itself: its guard asks it to save, and ends it before the machine suffers."""
        r = self.play("""
            import time
            import antifreeze
            held = antifreeze.guard(budget="200M")
            print(held, bool(held), antifreeze.guard() is held, flush=True)
            @antifreeze.on_checkpoint
            def save():
                print("asked", flush=True)
            kept = []
            for n in antifreeze.steps(range(1000)):
                kept.append(b"x" * (2 << 20))
                time.sleep(.05)
            """)
        self.assertIn(r.returncode, (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, 1), r.stderr)
        self.assertIn("<held by Antifreeze: run ", r.stdout)
        self.assertIn("True True\nasked\n", r.stdout)
        self.assertIn("may use 0.2", r.stderr)

    def test_released(self):
        r = self.play("""
            import time
            import antifreeze
            for n in antifreeze.steps(range(2)): pass  # before there is a guard
            held = antifreeze.guard(quiet=True)
            held.release()
            print(held, bool(held))
            time.sleep(1)
            print(bool(antifreeze.guard(quiet=True)))
            """)
        self.assertEqual((r.returncode, r.stdout), (0, "<not held by Antifreeze: it was released> False\nTrue\n"), r.stderr)

    def test_nothing_found(self):
        r = self.play("""
            import antifreeze
            held = antifreeze.guard()
            print(bool(held))
            for n in antifreeze.steps(range(3)): pass
            """, path="/nowhere", ANTIFREEZE_PROGRAM="/nowhere/antifreeze") if not os.path.exists(
                os.path.join(os.path.dirname(os.path.dirname(AGENT)), "../antifreeze")) else self.play_copied()
        self.assertEqual((r.returncode, r.stdout), (0, "False\n"), r.stderr)
        self.assertIn("was not found on PATH", r.stderr)

    def play_copied(self):
        """The package alone, as the wheel has it: beside the program that was built it would find that."""
        shutil.copytree(os.path.dirname(AGENT), self.folder + "/lib/a/b/antifreeze", ignore=shutil.ignore_patterns("__pycache__"))
        return self.call(PYTHON, self.job("import antifreeze\nprint(bool(antifreeze.guard()))\n"), PATH="/nowhere",
                         PYTHONPATH=self.folder + "/lib/a/b")

    def test_refused(self):
        """What attach does not take is said, and the program runs on."""
        r = self.play("import antifreeze\nprint(bool(antifreeze.guard(budget='nonsense')))\n")
        self.assertEqual((r.returncode, r.stdout), (0, "False\n"), r.stderr)
        self.assertIn("attach", r.stderr)

    def test_in_a_run(self):
        r = self.call(ANTIFREEZE, "run", "-q", "--", PYTHON, self.job("import antifreeze\nprint(antifreeze.guard())\n"))
        self.assertIn("<held by Antifreeze: run ", r.stdout)


class Kernel(Case):
    def fake_python(self):
        python = self.venv() + "/bin/python"
        self.job("", "venv/lib/python%d.%d/site-packages/ipykernel.py" % sys.version_info[:2])
        return python

    def test_install_and_remove(self):
        python = self.fake_python()
        for env, where in ({}, ".local/share/jupyter"), ({"XDG_DATA_HOME": self.folder + "/data"}, "data/jupyter"), \
                          ({"JUPYTER_DATA_DIR": self.folder + "/jup"}, "jup"):
            r = self.call(ANTIFREEZE, "kernel", "install", "--budget", "75%", "--policy", "adapt",
                          VIRTUAL_ENV=self.folder + "/venv", **env)
            self.assertEqual(r.returncode, 0, r.stderr)
            path = f"{self.folder}/{where}/kernels/antifreeze"
            with open(path + "/kernel.json", encoding="utf-8") as file:
                spec = json.load(file)
            self.assertEqual(spec["argv"], [os.path.realpath(ANTIFREEZE), "run", "--policy", "adapt", "--budget", "75.00%", "--",
                                            python + "3", "-m", "ipykernel_launcher", "-f", "{connection_file}"])
            self.assertEqual((spec["language"], os.listdir(path)), ("python", ["kernel.json"]))
            self.assertEqual(self.call(ANTIFREEZE, "kernel", "remove", **env).returncode, 0)
            self.assertFalse(os.path.exists(path))
        r = self.call(ANTIFREEZE, "kernel", "install", "--python", python, "--prefix", self.folder + "/venv", "--name", "b")
        self.assertTrue(os.path.exists(self.folder + "/venv/share/jupyter/kernels/b/kernel.json"), r.stderr)

    def test_what_it_runs(self):
        """The command of the kernel is one that runs, and is held."""
        python = self.fake_python()
        self.job("import os, sys; print(sys.argv[1:], bool(os.environ.get('ANTIFREEZE_RUN')))",
                 "venv/lib/python%d.%d/site-packages/ipykernel_launcher.py" % sys.version_info[:2])
        self.call(ANTIFREEZE, "kernel", "install", "--python", python, "--budget", "1G")
        with open(self.folder + "/.local/share/jupyter/kernels/antifreeze/kernel.json", encoding="utf-8") as file:
            argv = json.load(file)["argv"]
        r = self.call(*[word.replace("{connection_file}", "/x.json") for word in argv])
        self.assertEqual((r.returncode, r.stdout), (0, "['-f', '/x.json'] True\n"), r.stderr)

    def test_refused(self):
        for words, said in ((["instal"], "neither"), (["install", "--name", "a/b"], "--name"),
                            (["install", "--python", "x"], "whole path"),
                            (["install", "--python", "/bin/true", "--prefix", "/proc/x"], "/proc"), (["remove"], "none to remove"),
                            (["install", "--python", "/bin/false"], "ipykernel")):
            r = self.call(ANTIFREEZE, "kernel", *words)
            self.assertEqual(r.returncode, 2, (words, r.stderr))
            self.assertIn(said, r.stderr)
            self.assertEqual(len(r.stderr.splitlines()), 1)


class Interpreter(Case):
    """antifreeze python"""
    LOOK = """
        import os, sys
        print(sys.argv[1:], sys.executable, bool(os.environ.get("ANTIFREEZE_RUN")), "ANTIFREEZE_LINK" in os.environ)
        """

    def test_held(self):
        venv = self.venv()
        os.symlink(ANTIFREEZE, venv + "/bin/antifreeze-python")
        job = self.job(self.LOOK)
        expected = f"['-x', '--help'] {venv}/bin/python3 True False\n"
        for command, env in ([venv + "/bin/antifreeze-python"], {}), ([ANTIFREEZE, "python"], {"VIRTUAL_ENV": venv}), \
                            ([ANTIFREEZE, "python"], {"PATH": venv + "/bin:" + os.environ["PATH"]}), \
                            ([ANTIFREEZE, "python"], {"ANTIFREEZE_PYTHON": venv + "/bin/python3"}), \
                            ([venv + "/bin/antifreeze-python"], {"ANTIFREEZE_SOCKET": "/of/a/run/that/is/over"}), \
                            ([venv + "/bin/antifreeze-python"], {"ANTIFREEZE_PYTHON": venv + "/bin/antifreeze-python"}):
            r = self.call(*command, job, "-x", "--help", **env)
            self.assertEqual((r.returncode, r.stdout, r.stderr), (0, expected, ""))
        r = self.call(venv + "/bin/antifreeze-python", stdin="print(7)\n")
        self.assertEqual((r.returncode, r.stdout), (0, "7\n"), r.stderr)
        r = self.call(venv + "/bin/antifreeze-python", job, ANTIFREEZE_OPTIONS="--budget  1G")
        self.assertIn("may use 1.0 ", r.stderr)
        r = self.call(venv + "/bin/antifreeze-python", job, ANTIFREEZE_OPTIONS="--nonsense")
        self.assertEqual(r.returncode, 125)
        self.assertIn("ANTIFREEZE_OPTIONS", r.stderr)

    def test_passed_on(self):
        """What an IDE asks is Python's own answer, and makes no run; nor does Python inside of a run."""
        for words in (["-V"], ["--version"], ["-c", "print(1)"], ["-m", "pip", "--version"], ["-Bc", "print(2)"],
                      ["-X", "dev", "-V"]):
            ours = self.call(ANTIFREEZE, "python", *words, ANTIFREEZE_PYTHON=PYTHON)
            alone = self.call(PYTHON, *words)
            self.assertEqual((ours.returncode, ours.stdout), (alone.returncode, alone.stdout), words)
        self.assertFalse(os.path.exists(self.folder + "/state"))
        r = self.call(ANTIFREEZE, "run", "-q", "--", ANTIFREEZE, "python", self.job(self.LOOK), ANTIFREEZE_PYTHON=PYTHON)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(len(os.listdir(self.folder + "/state/antifreeze/runs")), 1)

    def test_none(self):
        r = self.call(ANTIFREEZE, "python", "x.py", PATH="/nowhere")
        self.assertEqual(r.returncode, 127)
        self.assertIn("ANTIFREEZE_PYTHON", r.stderr)
        os.makedirs(self.folder + "/bin")
        os.symlink(ANTIFREEZE, self.folder + "/bin/python3")
        self.assertEqual(self.call(ANTIFREEZE, "python", "x.py", PATH=self.folder + "/bin").returncode, 127)
        r = self.call(ANTIFREEZE, "python", "--help")
        self.assertIn("antifreeze-python", r.stdout)


if __name__ == "__main__":
    main()
