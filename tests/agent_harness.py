"""What the tests of the agent share: a program with the probe and the agent in it, and one alone."""
import json
import os
import subprocess
import tempfile
import textwrap
from dataclasses import dataclass

NEW = 0  # of a book: handed over, but nobody came for it
PATIENCE = 200  # seconds that one program may take: importing a framework on a busy machine alone takes 30


@dataclass
class Ended:
    status: int  # as waitpid() has it
    said: str  # stdout and stderr
    books: list

    @property
    def steps(self):
        """Of all processes."""
        return sum(book["steps"] for book in self.books)

    @property
    def wait_s(self):
        return sum(book["wait_ns"] for book in self.books) / 1e9


class Harness:
    def __init__(self, keeper, probe, agent):
        """agent: the folder that goes ahead on PYTHONPATH."""
        self.keeper, self.probe, self.agent = map(os.path.abspath, (keeper, probe, agent))

    def play(self, python, text, args=(), options=(), env=None, folder=None, agent=True):
        """The program `text` (a path, if it is one line) with the probe, and with the agent if it is not to be without."""
        with tempfile.TemporaryDirectory() as own:
            command = self.command(python, text, args, options, own)
            env = self.environment(env)
            if agent:
                env["PYTHONPATH"] = ":".join(filter(None, [self.agent, env.get("PYTHONPATH")]))
            for _ in range(5):  # the probe waits 1 s for a book, which may be too little on a busy machine
                r = subprocess.run([self.keeper, self.probe, own + "/s", *command], env=env, cwd=folder or own, text=True,
                                   capture_output=True, timeout=PATIENCE, check=True, stdin=subprocess.DEVNULL)
                told = json.loads(r.stdout)
                if told["books"] and all(book["state"] != NEW for book in told["books"]):
                    break
            return Ended(told["status"], r.stderr, told["books"])

    def alone(self, python, text, args=(), options=(), env=None, folder=None):
        """The same program, started as if there were no Antifreeze."""
        with tempfile.TemporaryDirectory() as own:
            r = subprocess.run(self.command(python, text, args, options, own), env=self.environment(env),
                               cwd=folder or own, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL)
            return Ended(r.returncode << 8 if r.returncode >= 0 else -r.returncode, r.stdout, [])

    @staticmethod
    def command(python, text, args, options, folder):
        if "\n" in text:
            path = os.path.join(folder, "job.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(textwrap.dedent(text))
            text = path
        return [python, *options, text, *args]

    @staticmethod
    def environment(more):
        env = {k: v for k, v in os.environ.items()
               if k not in ("LD_PRELOAD", "PYTHONPATH") and not k.startswith("ANTIFREEZE")}
        return {**env, "PYTHONHASHSEED": "0", **(more or {})}
