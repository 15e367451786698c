#!/usr/bin/env python3
"""The freeze lab's own reckoning, without its machine: beats, plans, verdicts on a cell, the table."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

LAB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab")
sys.dont_write_bytecode = True
sys.path.insert(0, LAB)


def load(name, path):
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


cells = load("cells", f"{LAB}/cells.py")
guest = load("guest", f"{LAB}/guest.py")
lab = load("lab", f"{LAB}/lab")
MS = 1_000_000


def result(**changes):
    return {"calm": True, "worst_ms": 20., "idle_worst_ms": 10., "late_ms": 10., "stalled_s": 0., "witness_ms": 5.,
            "host_busy": .01, "noisy": False, "after_s": 3.2, "ended": True, "status": 75, "oom_kill": 0,
            "else_died": [], "left": [], "left_shm": [], "rate_mb_s": 200, "said": "",
            "verdict": {"tier": "scope", "end": {"how": "stopped"}}, **changes}


class Beats(unittest.TestCase):
    def test_figures(self):
        beats = [(1000 * MS, 1010 * MS, 1 * MS), (1050 * MS, 1550 * MS, 7 * MS), (1600 * MS, 1700 * MS, 2 * MS),
                 (9000 * MS, 19000 * MS, 9 * MS)]
        self.assertEqual(guest.beats.figures(beats, 1000 * MS, 2000 * MS),
                         {"beats": 3, "worst_ms": 500.0, "stalled_s": .5, "witness_ms": 7.0})

    def test_no_beats(self):
        self.assertEqual(guest.beats.figures([], 0, 1)["beats"], 0)


class Cells(unittest.TestCase):
    def test_names(self):
        self.assertEqual(cells.parse("none/burst").name, "none/burst/disk/root")
        for wrong in ("", "none", "none/", "none/burst/disk/root/x", "nobody/burst", "cgroup1/burst/disk/user"):
            with self.assertRaises(ValueError, msg=wrong):
                cells.parse(wrong)
        with self.assertRaises(ValueError):
            cells.find("nobody/*")
        self.assertEqual(len(cells.find("scope/*/disk/user")), len(cells.JOBS))

    def test_telling(self):
        self.assertEqual(len({cells.parse(name) for name in cells.TELLING}), 12)
        self.assertTrue(set(cells.matrix()) <= set(cells.every()))
        self.assertTrue({cells.parse(name) for name in cells.TELLING} <= set(cells.matrix()))

    def test_plan(self):
        wanted = [(cell, 3) for cell in cells.find("*/leak-200/*/*")]
        boots = list(lab.plan(wanted))
        self.assertEqual(sum(len(boot) for boot in boots), 3 * len(wanted))
        for boot in boots:
            self.assertEqual(len({cell.machine for cell in boot}), 1)
            self.assertLessEqual(len(boot), lab.CELLS_A_BOOT)


class NoMachine(unittest.TestCase):
    """What stands in for vm says why there is none; that is the lab's last line, and its status is 2."""

    def ended(self, program):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            vm = os.path.join(folder, "vm")
            with open(vm, "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\n{program}\n")
            os.chmod(vm, 0o755)
            with unittest.mock.patch.object(lab, "VM", vm):
                try:
                    lab.make_machine()
                    return 0, said.getvalue()
                except SystemExit as end:
                    return end.code, said.getvalue().replace(vm, "vm")

    def test_line(self):
        for program, code, last in (
                ("exit 0", 0, ""),
                ("echo vm: kernel 6.1 >&2; echo >&2; echo vm: please install: QEMU >&2; exit 125", 2,
                 "lab: no machine to run in: vm: please install: QEMU"),
                ("exit 7", 2, "lab: no machine to run in: vm build ended with 7")):
            with self.subTest(program):
                got, said = self.ended(program)
                self.assertEqual((got, (said.splitlines() or [""])[-1]), (code, last))


class Listening(unittest.TestCase):
    def test_progress(self):
        """A cell is told of when it starts, and its result comes with the host's load."""
        words = ["begin 0\n", "end 0\n", 'result 0 {"calm": true}\n']
        with contextlib.redirect_stderr(io.StringIO()) as said:
            heard = list(lab.listen(words, [cells.parse("scope/burst")], 90))
        self.assertIn("scope/burst/disk/root: started, for 90 s at most", said.getvalue())
        self.assertEqual([(cell.name, told["noisy"]) for cell, told in heard], [("scope/burst/disk/root", True)])


class Keeping(unittest.TestCase):
    def test_after_each(self):
        """What is known is kept after each result, so that a run that is cut off has not been in vain."""
        both, kept = [cells.parse("scope/burst"), cells.parse("none/burst")], []
        options = types.SimpleNamespace(build="", repeat=1, tries=1)
        with unittest.mock.patch.object(lab, "make_share"), contextlib.redirect_stderr(io.StringIO()), \
                unittest.mock.patch.object(lab, "boot", lambda share, group, options: ((cell, result()) for cell in group)):
            lab.run(both, options, lambda so_far: kept.append([len(so_far[cell]) for cell in both]))
        self.assertEqual(kept, [[1, 0], [1, 1]])

    def test_document(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "results.json")
            lab.write(out, {Words.ours: [result()], Words.fits: []}, types.SimpleNamespace(cap=90, repeat=1), 0)
            with open(out, encoding="utf-8") as file:
                found = json.load(file)["cells"]
            self.assertEqual([(cell["cell"], cell["missed"]) for cell in found],
                             [("scope/burst/disk/root", []), ("scope/peak/disk/root", ["not run"])])
            self.assertEqual(os.listdir(folder), ["results.json"])


class Ending(unittest.TestCase):
    def ended_by(self, name):
        """The signal that ends a job whose process is called so."""
        job = guest.Job.__new__(guest.Job)
        with subprocess.Popen(["sleep", "60"]) as job.process:
            def there():
                return {(job.process.pid, "1"): name} if job.process.poll() is None else {}
            with unittest.mock.patch.object(guest, "processes", there):
                job.end()
        return -job.process.returncode

    def test_in_time(self):
        self.assertEqual(self.ended_by("antifreeze"), signal.SIGTERM)  # so that it writes its verdict
        self.assertEqual(self.ended_by("lab-job"), signal.SIGKILL)

    def test_gone(self):
        with subprocess.Popen(["true"]) as gone:
            pass
        with unittest.mock.patch.object(guest, "processes", lambda: {(gone.pid, "1"): "lab-job"}):
            self.assertTrue(guest.send(signal.SIGTERM, guest.is_family))
            self.assertFalse(guest.send(signal.SIGTERM, lambda name: name == "sshd"))


class Words(unittest.TestCase):
    ours = cells.parse("scope/burst")
    fits = cells.parse("scope/peak")
    peer = cells.parse("earlyoom/burst")

    def test_noise(self):
        self.assertFalse(lab.is_noisy(result()))
        for change in ({"calm": False}, {"host_busy": .5}, {"host_busy": None}, {"error": "no"}):
            self.assertTrue(lab.is_noisy(result(**change)), change)

    def test_targets(self):
        self.assertIsNone(lab.targets(self.peer, [result()]))
        self.assertEqual(lab.targets(self.ours, [result()]), [])
        for change in ({"late_ms": 101.}, {"stalled_s": .3}, {"else_died": ["dbus-daemon"]}, {"left": ["lab-job"]},
                       {"left_shm": ["/dev/shm/x"]},
                       {"verdict": None}, {"verdict": {"tier": "none"}}):
            self.assertEqual(len(lab.targets(self.ours, [result(**change)])), 1, change)
        self.assertEqual(lab.targets(self.fits, [result()]), ["a job that fits was ended"])
        self.assertEqual(lab.targets(self.fits, [result(status=0)]), [])

    def test_how_it_ended(self):
        for cell, change, words in (
                (self.ours, {}, "3.2 s: stopped, exit 75"),
                (self.ours, {"verdict": None}, "3.2 s: no verdict, exit 75"),
                (self.fits, {"status": 0}, "finished, 3.2 s"),
                (self.peer, {"status": 137, "oom_kill": 2}, "3.2 s: exit 137; oom_kill 2"),
                (self.peer, {"ended": False, "after_s": 90.02}, "never: still running after 90 s")):
            self.assertEqual(lab.how_it_ended(cell, result(**change)), words)

    def test_table(self):
        text = lab.table({self.ours: [result(), result(worst_ms=40.)], self.peer: [{"error": "gate\nno"}],
                          self.fits: []})
        lines = text.splitlines()
        self.assertEqual({line.count(" | ") for line in lines}, {len(lab.HEAD) - 1})
        self.assertIn("0.03 (0.02 to 0.04)", lines[2])
        self.assertIn(" no |", lines[3])
        self.assertIn("not run", lines[4])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
