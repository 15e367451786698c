"""What the tests of the agent in real programs have in common: folders of their own, and a clean environment.

Takes ANTIFREEZE AGENT_FOLDER from the command line; what comes behind them is for unittest.
"""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

if len(sys.argv) < 3:
    sys.exit(sys.modules["__main__"].__doc__)
ANTIFREEZE, AGENT = map(os.path.abspath, sys.argv[1:3])
PYTHON = sys.executable
STEPS = """
    import time
    import antifreeze
    for n in antifreeze.steps(range(20)):
        time.sleep(.01)
    print("done")
    """


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="afz-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.makedirs(self.folder + "/run", mode=0o700)

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONPATH", "VIRTUAL_ENV", "XDG_DATA_HOME",
                                                                "RANK", "LOCAL_RANK") and not k.startswith("ANTIFREEZE")}
        return {**env, "HOME": self.folder, "XDG_RUNTIME_DIR": self.folder + "/run", "XDG_STATE_HOME": self.folder + "/state",
                "PYTHONDONTWRITEBYTECODE": "1", **more}

    def call(self, *command, cwd=None, stdin="", **env):
        return subprocess.run(command, env=self.env(**env), cwd=cwd or self.folder, capture_output=True, text=True, input=stdin,
                              timeout=120, check=False)

    def job(self, text, name="job.py"):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def venv(self):
        path = self.folder + "/venv"
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", path], check=True, timeout=120)
        return path

    def wait_for(self, look, what):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            found = look()
            if found:
                return found
            time.sleep(.02)
        raise AssertionError(f"{what} did not come")


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
