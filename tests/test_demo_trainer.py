#!/usr/bin/env python3
"""Scenarios of afz-trainer as a whole: it learns, repeats itself, and each pitfall does what it says.

usage: test_demo_trainer.py PATH/TO/afz-trainer

Nothing here waits a fixed time: every wait polls a fact in /proc until it holds or the deadline passes.
"""
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TRAINER = None
DEADLINE_S = 60  # generous: sanitizer builds on a busy machine are slow, and a passing test never waits it out
MB = 1 << 20


def until(what, fact):
    """Polls until fact() is true and returns it; fails the test at the deadline."""
    end = time.monotonic() + DEADLINE_S
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {DEADLINE_S} s: {what}")
        time.sleep(0.01)


def run(*args, **kwargs):
    return subprocess.run([TRAINER, *args], capture_output=True, text=True, timeout=DEADLINE_S, **kwargs)


def peak_rss(*args):
    """The peak RSS in bytes of a run that must succeed."""
    process = subprocess.Popen([TRAINER, "--quiet", *args], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise AssertionError(f"{args}: exit status {process.returncode}")
    return usage.ru_maxrss * 1024


def figures(output):
    """(step, loss, accuracy) of each line, and the held-out accuracies: all that does not depend on the clock."""
    steps = [(int(s), float(l), float(a))
             for s, l, a in re.findall(r"^step +(\d+)  loss +([\d.]+)  accuracy +([\d.]+) %", output, re.M)]
    return steps, [float(a) for a in re.findall(r"^epoch .*accuracy ([\d.]+) %", output, re.M)]


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def stat_fields(path):
    """State and CPU ticks of a process or thread; None when it is gone."""
    rest = read(f"{path}/stat").rpartition(")")[2].split()
    return (rest[0], int(rest[11]) + int(rest[12])) if rest else None


def tasks(pid):
    return [f"/proc/{pid}/task/{tid}" for tid in os.listdir(f"/proc/{pid}/task")]


def children(pid):
    return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]


def is_alive(pid):
    fields = stat_fields(f"/proc/{pid}")
    return fields is not None and fields[0] not in "ZX"


def catches(pid, number):
    mask = re.search(r"^SigCgt:\s*(\w+)", read(f"/proc/{pid}/status"), re.M)
    return bool(mask and int(mask[1], 16) & 1 << (number - 1))


class Scenario(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = os.path.join(self.folder.name, "out")
        self.data = os.path.join(self.folder.name, "data")
        os.mkdir(self.data)

    def start(self, *args):
        """A run in the background whose output goes to self.out; it is killed with the test at the latest."""
        with open(self.out, "w", encoding="utf-8") as out:
            process = subprocess.Popen([TRAINER, *args], stdout=out, stderr=subprocess.STDOUT)

        def end():
            process.kill()
            process.wait()
        self.addCleanup(end)
        return process

    def output(self):
        return read(self.out)

    def steps_seen(self):
        return len(figures(self.output())[0])


class Learning(Scenario):
    def test_loss_falls_and_accuracy_rises(self):
        for optimizer in "adam", "sgd":
            result = run("--optimizer", optimizer, "--steps", "250")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            steps, held_out = figures(result.stdout)
            self.assertEqual([step for step, _, _ in steps], [50, 100, 150, 200, 250])
            self.assertLess(steps[-1][1], steps[0][1] / 2)
            self.assertGreater(steps[-1][2], steps[0][2] + 15)
            self.assertGreater(held_out[-1], 80)

    def test_same_seed_same_run(self):
        base = figures(run("--steps", "60", "--log-every", "10").stdout)
        self.assertEqual(len(base[0]), 6)
        for more in ["--seed=1"], ["--threads=2"], ["--workers=2"], ["--workers=3", "--threads=2"]:
            self.assertEqual(figures(run("--steps", "60", "--log-every", "10", *more).stdout), base, more)
        self.assertNotEqual(figures(run("--steps", "60", "--log-every", "10", "--seed=2").stdout), base)

    def test_quiet_is_one_line(self):
        result = run("--quiet", "--steps", "3")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^done: 3 steps, loss [\d.]+, held-out accuracy [\d.]+ %, [\d.]+ s\n$")


class Memory(Scenario):
    """Lower bounds hold in every build; what is kept is kept in full."""

    def test_what_takes_memory_takes_it(self):
        base = peak_rss("--steps", "40")
        for wanted, args in [
                (40 * MB, ["--retain-history=1M", "--steps", "40"]),
                (80 * MB, ["--retain-history=1M", "--steps", "80"]),
                (100 * MB, ["--whole-dataset=100M", "--steps", "1"]),
                (4096 * 4 * (784 + 2 * 1024), ["--large-batch=4096", "--steps", "1"]),
                (40 * MB, ["--retain-intermediate", "--batch", "512", "--steps", "40"]),
                (64 * MB, ["--leaky-layer=16", "--steps", "1"])]:
            grown = peak_rss(*args) - base
            self.assertGreater(grown, 0.9 * wanted, args)

    def test_without_pitfall_it_stays_level(self):
        process = self.start("--log-every", "1", "--epochs", "1000")

        def rss():
            return int(read(f"/proc/{process.pid}/statm").split()[1]) * os.sysconf("SC_PAGESIZE")
        until("50 steps", lambda: self.steps_seen() >= 50)
        early = rss()
        until("300 steps", lambda: self.steps_seen() >= 300)
        self.assertLess(rss() - early, 8 * MB)


class Hangs(Scenario):
    def test_deadlock_is_one(self):
        process = self.start("--deadlock=20", "--log-every", "1")

        def all_asleep():
            return [stat_fields(task)[0] for task in tasks(process.pid)] == ["S", "S"] and self.steps_seen() >= 19

        def ticks():
            return sum(stat_fields(task)[1] for task in tasks(process.pid))
        until("two threads asleep", all_asleep)
        self.assertIn("afz-loader\n", [read(f"{task}/comm") for task in tasks(process.pid)])
        before = ticks()
        self.assertEqual(figures(self.output())[0][-1][0], 19)

        # The handler runs (and is gone then) but nobody looks at what it wrote; the second signal ends the run.
        process.send_signal(signal.SIGTERM)
        until("the first SIGTERM taken", lambda: not catches(process.pid, signal.SIGTERM))
        until("asleep again", all_asleep)
        self.assertLessEqual(ticks() - before, 1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE_S), -signal.SIGTERM)

    def test_deadlock_never_reached_ends_well(self):
        self.assertEqual(run("--deadlock=20", "--steps", "10").returncode, 0)

    def test_spin_burns_and_gets_nowhere(self):
        process = self.start("--spin=20", "--log-every", "1")
        until("19 lines", lambda: self.steps_seen() == 19)
        before = stat_fields(f"/proc/{process.pid}")[1]
        until("half a second of CPU time", lambda: stat_fields(f"/proc/{process.pid}")[1] - before
              >= os.sysconf("SC_CLK_TCK") / 2)
        self.assertEqual(self.steps_seen(), 19)
        self.assertIsNone(process.poll())


class Disk(Scenario):
    def test_log_grows_and_goes(self):
        process = self.start("--log-everything", "--data-dir", self.data, "--epochs", "1000")
        until("a log of 4 MB", lambda: any(os.path.getsize(os.path.join(self.data, name)) > 4 * MB
                                           for name in os.listdir(self.data)))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGTERM)
        self.assertRegex(self.output(), r"stopped by SIGTERM after \d+ steps, loss [\d.]+, [\d.]+ s\n$")
        self.assertEqual(os.listdir(self.data), [])

    def test_own_folder_goes_too(self):
        result = run("--log-everything", "--slow-disk=100M", "--samples", "200", "--steps", "3",
                     env={**os.environ, "TMPDIR": self.data})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn(f"data folder {self.data}/afz-trainer-", result.stdout)
        self.assertEqual(os.listdir(self.data), [])

    def test_slow_disk_makes_steps_wait(self):
        result = run("--slow-disk=64K", "--data-dir", self.data, "--samples", "500", "--steps", "3",
                     "--log-every", "1")
        waits = re.findall(r"([\d.]+) samples/s  data +(\d+) %", result.stdout)
        self.assertEqual(len(waits), 3)
        for rate, share in waits:
            self.assertLess(float(rate), 65536 / 785 * 1.05)
            self.assertGreater(int(share), 70)

    def test_slow_disk_can_be_interrupted(self):
        process = self.start("--slow-disk=1", "--data-dir", self.data, "--samples", "100")
        until("the wait for data", lambda: self.output().count("data folder") and
              stat_fields(f"/proc/{process.pid}")[0] == "S")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGINT)
        self.assertRegex(self.output(), r"stopped by SIGINT after 0 steps, [\d.]+ s\n$")

    def test_full_disk_is_told(self):
        """A limit on the size of files stands in for the end of the disk (SIGXFSZ is ignored in Python's children)."""
        result = run("--log-everything", "--data-dir", self.data, "--steps", "50", restore_signals=False,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (MB, MB)))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^afz-trainer: --log-everything, step \d+: File too large\n$")
        self.assertEqual(os.listdir(self.data), [])

    def test_missing_folder_is_told(self):
        result = run("--log-everything", "--data-dir", "/nonexistent")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr,
                         "afz-trainer: data folder /nonexistent: No such file or directory\n")


class Workers(Scenario):
    def started(self):
        process = self.start("--workers", "2", "--epochs", "1000", "--log-every", "1")
        until("some steps", lambda: self.steps_seen() >= 3)
        workers = children(process.pid)
        if not workers:
            self.skipTest("this kernel does not list children")
        self.assertEqual(len(workers), 2)
        return process, workers

    def test_they_die_with_a_killed_parent(self):
        process, workers = self.started()
        self.assertEqual(sorted(read(f"/proc/{worker}/comm") for worker in workers),
                         ["afz-loader/0\n", "afz-loader/1\n"])
        process.kill()
        process.wait()
        until("both workers gone", lambda: not any(map(is_alive, workers)))

    def test_they_end_with_a_stopped_parent(self):
        process, workers = self.started()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGTERM)
        self.assertFalse(any(map(is_alive, workers)))

    def test_a_dead_one_is_told(self):
        process, workers = self.started()
        os.kill(workers[0], signal.SIGKILL)
        self.assertEqual(process.wait(DEADLINE_S), 1)
        self.assertIn(f"afz-trainer: loader worker {workers[0]} was killed by signal 9", self.output())


class Usage(Scenario):
    def test_wrong_usage_is_one_line(self):
        for args in ["--nonsense"], ["--batch", "many"], ["--batch"], ["x\ny"]:
            result = run(*args)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertRegex(result.stderr, r"^afz-trainer: [^\n]+\n$")

    def test_help_and_list_come_from_the_same_rows(self):
        text = run("--help").stdout
        for line in run("--list-pitfalls").stdout.splitlines():
            name, description = line.split("\t")
            self.assertIn(f"--{name}", text)
            self.assertIn(description, text)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    TRAINER = os.path.abspath(sys.argv.pop(1))
    # In a sanitizer build, freed memory goes back at once, so that a level RSS can be told from a growing one.
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
    unittest.main()
