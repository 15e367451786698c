#!/usr/bin/python3
"""Three runs without --budget at once share the machine, and who is left has it back.

    test_share.py ANTIFREEZE

The sum of what living runs were promised never exceeds what there is to promise. In every tier that is to be had here.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

ANTIFREEZE = os.path.abspath(sys.argv[1])
DEADLINE = 60  # seconds; a sanitizer build on a busy machine is slow
GIB, MIB = 1 << 30, 1 << 20
problems = []
checks = 0
tier = "none"


def check(what, ok, detail=""):
    global checks
    checks += 1
    if not ok:
        problems.append(what)
        print(f"NOT OK  [{tier}] {what}: {detail}")


def meminfo(key):
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(key + ":"))


def reserve():
    return min(max(meminfo("MemTotal") // 10, 256 * MIB), 4 * GIB)


class World:
    """Runs in folders of their own, and the most that there was to promise while they lived."""

    def __init__(self, folder):
        self.runtime = os.path.join(folder, "run")
        os.mkdir(self.runtime, 0o700)
        self.env = {**os.environ, "ANTIFREEZE_TIER": tier, "XDG_RUNTIME_DIR": self.runtime,
                    "XDG_STATE_HOME": os.path.join(folder, "state")}
        self.env.pop("ANTIFREEZE_RUN", None)
        self.most = 0
        self.runs = []

    def start(self, *options):
        """A run that goes on until its stdin ends."""
        self.runs.append(subprocess.Popen([ANTIFREEZE, "run", *options, "--", "cat"], stdin=subprocess.PIPE,
                                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=self.env))

    def end(self, number):
        run = self.runs[number]
        said = run.communicate(timeout=DEADLINE)[1]
        check("it ends well", run.returncode == 0, f"{run.returncode} {said}")
        return said

    def snapshot(self):
        self.most = max(self.most, meminfo("MemAvailable") - reserve())
        budgets = {}
        for path in glob.glob(os.path.join(self.runtime, "antifreeze", "*.run")):
            run = os.path.basename(path)[:-4]
            told = subprocess.run([ANTIFREEZE, "why", "--json", run], capture_output=True, text=True, env=self.env,
                                  timeout=DEADLINE)
            if told.returncode == 0:
                budgets[run] = json.loads(told.stdout)["budget_bytes"]
        return budgets

    def budgets(self):
        """What each living run may use, at one moment: twice the same, or it was in between."""
        one, two = self.snapshot(), self.snapshot()
        if one != two:
            return {}
        sum_of_all = sum(one.values())
        if len(one) > 1:
            check("nothing is promised twice", sum_of_all <= self.most + 64 * MIB, f"{one}, {self.most} to promise")
        return one

    def wait_for(self, what, probe):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            seen = self.budgets()
            if seen and probe(seen):
                check(what, True)
                return seen
            time.sleep(.02)
        check(what, False, f"{seen}, {self.most} to promise")
        return None


def even(seen, count):
    return len(seen) == count and min(seen.values()) > .7 * max(seen.values())


def test_three_at_once(world):
    for _ in range(3):
        world.start()
    world.wait_for("three have a third each", lambda seen: even(seen, 3) and sum(seen.values()) > .5 * world.most)
    said = [world.end(0)]
    world.wait_for("two have a half each", lambda seen: even(seen, 2) and sum(seen.values()) > .5 * world.most)
    said.append(world.end(1))
    world.wait_for("the last has it all", lambda seen: len(seen) == 1 and sum(seen.values()) > .7 * world.most)
    said.append(world.end(2))
    for text in said:
        check("nobody gets next to nothing", "gets only" not in text and "hardly any" not in text, text)
    check("who made room says so", any("shares the machine" in text for text in said), said)


def test_given_is_not_touched(world):
    world.start("--budget", "256M")
    world.wait_for("it has its budget", lambda seen: list(seen.values()) == [256 * MIB])
    world.start()
    seen = world.wait_for("two live", lambda seen: len(seen) == 2)
    check("the given one stays", seen and min(seen.values()) == 256 * MIB, seen)
    check("the other has the rest", seen and max(seen.values()) > .7 * (world.most - 256 * MIB), (seen, world.most))
    world.end(0)
    world.end(1)


def test_who_has_it_is_named(world):
    world.start("--budget", f"{meminfo('MemTotal') >> 20}M")
    (run,) = world.wait_for("it has its budget", lambda seen: len(seen) == 1)
    world.start()
    said = world.end(1)
    check("who has it all is named", f"run {run} was promised" in said and "give both a --budget" in said, said)
    world.end(0)


def to_be_had():
    """The tiers that work here, told by a dry run."""
    for name, words in (("none", "looking"), ("cgroup1", "cgroup (v1)"), ("cgroup2", "a cgroup:"), ("scope", "scope")):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            env = {**os.environ, "ANTIFREEZE_TIER": name, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
            os.chmod(folder, 0o700)
            told = subprocess.run([ANTIFREEZE, "run", "--dry-run", "--", "true"], capture_output=True, text=True,
                                  env=env, timeout=DEADLINE)
            if words in told.stderr + told.stdout:
                yield name


for tier in to_be_had():
    for test in (test_three_at_once, test_given_is_not_touched, test_who_has_it_is_named):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            world = World(folder)
            try:
                test(world)
            finally:
                for left in world.runs:
                    if left.poll() is None:
                        left.kill()
                        left.communicate()
print(f"{checks} checks, {len(problems)} problems")
sys.exit(1 if problems else 0)
