#!/usr/bin/env python3
"""tools/run_tests.py, with stand-ins for Meson and Ninja: what is built and played where, and what is counted. And whose turn it is."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import frameworks
from frameworks import in_turn

RUN_TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "run_tests.py")
NICE = os.nice(0)
# Both write down what they are asked to do, and how urgent it is. The folder's own file says how that ends.
STAND_IN = """
import json, os, sys, time
argv = sys.argv[1:]
folder = argv[argv.index("-C") + 1]
def settings(): return json.load(open(folder + "/settings.json"))
def note(**more): open(os.environ["NOTES"], "a").write(json.dumps({"folder": os.path.basename(folder), "nice": os.nice(0), **more}) + "\\n")
"""
NINJA = STAND_IN + """
note(did="build", argv=argv)
sys.exit(0 if settings()["builds"] else 1)
"""
MESON = STAND_IN + """
alone = argv[argv.index("--num-processes") + 1] == "1"
waits_for = settings().get("waits_for")
until = time.monotonic() + 30
while waits_for and waits_for not in open(os.environ["NOTES"]).read() and time.monotonic() < until: time.sleep(.01)
note(did="test", argv=argv, in_time=time.monotonic() < until)
rows = [{"name": "antifreeze:unit / " + name, "result": results[alone], "stdout": "NOT OK  it was late"}
        for name, results in settings()["tests"].items() if not alone or name in argv]
with open(folder + "/meson-logs/antifreeze.json", "w") as file:
    file.writelines(json.dumps(row) + "\\n" for row in rows)
if settings().get("dies") and not alone: os.kill(os.getpid(), 9)
sys.exit(sum(row["result"] == "FAIL" for row in rows))
"""
GOOD = {"one": ["OK", "OK"]}


class RunTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = lambda *path: os.path.join(folder.name, *path)
        for name, text in ("meson", MESON), ("ninja", NINJA):
            with open(self.at(name), "w", encoding="utf-8") as file:
                file.write(f"#!{sys.executable}\n{text}")
            os.chmod(self.at(name), 0o700)

    def folder(self, name, tests, **more):
        for path in ("meson-logs", "meson-info"):
            os.makedirs(self.at(name, path))
        for path, value in ("meson-info/intro-buildoptions.json", []), ("settings.json", {"builds": True, "tests": tests, **more}):
            with open(self.at(name, path), "w", encoding="utf-8") as file:
                json.dump(value, file)
        return self.at(name)

    def play(self, *words):
        """Exit status, last line, all lines; self.notes is what the stand-ins wrote down."""
        r = subprocess.run([sys.executable, "-B", RUN_TESTS, *words], capture_output=True, text=True, timeout=90, check=False,
                           env={"PATH": os.environ["PATH"], "MESON": self.at("meson"), "NINJA": self.at("ninja"), "NOTES": self.at("notes")})
        self.assertEqual(r.stderr, "")
        with open(self.at("notes"), encoding="utf-8") as file:
            self.notes = [json.loads(line) for line in file]
        return r.returncode, r.stdout.splitlines()[-1], r.stdout

    def done(self, *keys):
        return [tuple(note[key] for key in ("did", "folder", *keys)) for note in self.notes]

    def test_one_folder_is_played_in_front(self):
        self.assertEqual(self.play(self.folder("a", GOOD))[:2], (0, "1 passed, 0 failed"))
        self.assertEqual(self.done("nice"), [("build", "a", NICE), ("test", "a", NICE)])

    def test_two_lanes(self):
        """While the first folder is played the others are built, and the last of them played, at the lowest priority."""
        first = self.folder("a", GOOD, waits_for='"folder": "c", "nice": 19, "did": "test"')
        words = [first, self.folder("b", GOOD), self.folder("c", GOOD)]
        self.assertEqual(self.play(*words)[:2], (0, "3 passed, 0 failed"))
        self.assertEqual(self.done("nice")[:4], [("build", "a", NICE), ("build", "b", 19), ("build", "c", 19), ("test", "c", 19)])
        self.assertEqual(sorted(self.done())[-3:], [("test", "a"), ("test", "b"), ("test", "c")], "each once")
        self.assertTrue(all(note["in_time"] for note in self.notes if note["did"] == "test"))
        patience = {note["folder"]: int(note["argv"][note["argv"].index("--timeout-multiplier") + 1])
                    for note in self.notes if note["did"] == "test"}
        self.assertGreater(patience["c"], patience["a"])

    def test_which(self):
        self.play(self.folder("a", GOOD) + ":slow", self.folder("b", GOOD) + ":-slow")
        asked = {note["folder"]: " ".join(note["argv"]) for note in self.notes if note["did"] == "test"}
        self.assertRegex(asked["a"], "--suite slow$")
        self.assertRegex(asked["b"], "--no-suite slow$")

    def test_what_does_not_build(self):
        for at in (0, 1):
            words = [self.folder(f"good{at}", GOOD), self.folder(f"bad{at}", GOOD, builds=False)]
            status, last, said = self.play(*words[::-1] if at else words)
            self.assertEqual((status, last), (1, "1 passed, 1 failed"), said)
            self.assertRegex(said, rf"FAILED +\S*bad{at}: did not build")
            self.assertNotIn(("test", f"bad{at}"), self.done())

    def test_a_run_that_was_cut_off(self):
        """What it had not come to yet is not taken for passed, also where all that had failed passes alone."""
        status, last, said = self.play(self.folder("a", {"late": ["FAIL", "OK"]}, dies=True))
        self.assertEqual((status, last), (1, "0 passed, 1 failed"), said)

    def test_a_lane_that_breaks(self):
        """Nobody waits for what it would have built."""
        with open(self.at("nice"), "w", encoding="ascii"):
            pass  # not one that can be run
        words = self.folder("a", GOOD), self.folder("b", GOOD)
        r = subprocess.run([sys.executable, "-B", RUN_TESTS, *words], capture_output=True, text=True, timeout=90, check=False,
                           env={"PATH": self.at(), "MESON": self.at("meson"), "NINJA": self.at("ninja"), "NOTES": self.at("notes")})
        self.assertEqual((r.returncode, r.stdout.splitlines()[-1]), (1, "1 passed, 1 failed"), r.stderr)

    def test_once_more(self):
        """What fails is played alone when all else is over."""
        a = self.folder("a", {"late": ["FAIL", "OK"], "broken": ["FAIL", "FAIL"], "left out": ["SKIP", "SKIP"], **GOOD})
        status, last, said = self.play(a, self.folder("b", GOOD))
        self.assertEqual((status, last), (1, "3 passed, 1 failed, 1 skipped"))
        self.assertRegex(said, r"unsteady \S*a: late: passed alone\n +NOT OK  it was late")
        self.assertEqual(re.findall(r"FAILED +\S*a: (\w+): fail", said), ["broken"])
        self.assertEqual(self.notes[-1]["argv"][-4:], ["--num-processes", "1", "late", "broken"])
        self.assertEqual(self.done()[-1], ("test", "a"))


class Found(unittest.TestCase):
    def test_only_what_is_whole(self):
        """An environment that is still being filled (.ci/run) is nobody's."""
        with tempfile.TemporaryDirectory() as root, mock.patch.object(frameworks, "ROOT", root):
            made = root + "/build-frameworks"
            os.makedirs(made)
            self.assertNotIn(made + "/bin/python", list(frameworks.candidates()))
            with open(made + "/frameworks.txt", "w", encoding="utf-8"):
                self.assertIn(made + "/bin/python", list(frameworks.candidates()))


class Turns(unittest.TestCase):
    def test_each_has_its_turn(self):
        for count in range(8):
            played = []
            for turn in range(40, 43):
                with mock.patch.dict(os.environ, AFZ_TURN=f"{turn}/3"):
                    played.append(in_turn(range(count)))
            self.assertEqual(set().union(*played), set(range(count)))
            self.assertTrue(all(played) or not count, "a test that plays nothing says nothing")
            self.assertLessEqual(max(map(len, played)), -(-count // 3))
        self.assertEqual(in_turn("abc"), ["a", "b", "c"], "without turns, all")


if __name__ == "__main__":
    unittest.main(verbosity=2)
