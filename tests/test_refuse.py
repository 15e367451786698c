#!/usr/bin/python3
"""Memory that is refused under `--policy adapt`, with the real guard: what would have been killed gets an error that it can
catch, and goes on with less.

    test_refuse.py ANTIFREEZE [TIER...]
"""
import json
import os
import signal
import subprocess

from scenario import PYTHON, Scenario, child_called, guard_of

world = Scenario(deadline=90)
check, wait_for = world.check, world.wait_for

BUDGET = ["--budget", "600M"]
# 64 MiB at a time, up to twice the budget. What was refused is said, and the program goes on with a quarter of it.
GREEDY = """
import ctypes, os, sys, time
MIB = 1 << 20
def fill(most):
    held = []
    try:
        while len(held) < most:
            held.append(bytearray(64 * MIB))
    except MemoryError:
        return len(held)
    return -len(held)
def room():
    function = ctypes.CDLL(None).antifreeze_room
    function.restype = ctypes.c_uint64
    return function()
"""
FILL = GREEDY + """
print("refused after", fill(20), flush=True)
print("refused after", fill(2), flush=True)
"""


def run(code, *options):
    return world.run(PYTHON, "-c", code, options=[*BUDGET, *options])


def recorded(metric):
    """The most of a metric in the newest recording, over all processes; None: it is not in it."""
    text = world.plain(world.antifreeze, "export", "--format", "jsonl").stdout
    rows = [json.loads(line) for line in text.splitlines()]
    values = [row["values"][metric] for row in rows if row["type"] == "sample" and row["kind"] == "inside" and metric in row["values"]]
    return max(values) if values else None


def test_adapt():
    r = run(FILL, "--policy", "adapt")
    check("it lives", r.returncode == 0, r)
    said = [int(line.rsplit(" ", 1)[1]) for line in r.stdout.splitlines()]
    check("and was refused before its budget was full", len(said) == 2 and 5 <= said[0] <= 9, r)
    check("with less it goes on", said[1:] == [-2], r)
    check("it is counted", recorded("refused_count") == 1, recorded("refused_count"))
    check("with its size", recorded("refused_bytes") in range(64 << 20, 65 << 20), recorded("refused_bytes"))


def test_at_once():
    """It is over before anybody looks: what was refused is told all the same."""
    for code, status in ("", 0), ("sys.exit(3)", 3):
        for _ in range(3):  # on a busy machine the keeper may come too late to refuse anything
            r = run(f"import sys\ntry: bytearray(3 << 30)\nexcept MemoryError: pass\n{code}", "--policy", "adapt", "--no-agent")
            if r.returncode == status:
                break
        check("it ended as it meant to", r.returncode == status, r)
        said = world.plain(world.antifreeze, "why").stdout
        check("why tells that it was refused", "1 large request for memory (3.0G) was refused" in " ".join(said.split()), said)


def test_protect():
    """Nothing is refused: it is stopped, as ever."""
    r = run(FILL, "--policy", "protect")
    check("it is stopped", r.returncode == 75, r)
    check("and was not refused", "refused" not in r.stdout, r)
    check("nothing is counted", recorded("refused_count") is None, recorded("refused_count"))
    r = run(GREEDY + "print(room() == 2**64 - 1)", "--policy", "protect")
    check("there is no room to ask for", r.stdout == "True\n", r)


def test_what_fits():
    """Again and again most of what there is: nothing is refused."""
    r = run(GREEDY + "print(sorted({fill(6) for _ in range(12)}))", "--policy", "adapt")
    check("it fits", r.returncode == 0 and r.stdout == "[-6]\n", r)
    check("nothing is counted", recorded("refused_count") is None, recorded("refused_count"))


SETTLED = GREEDY + """
big = bytearray(700 * MIB)
small = [b"x" * (100_000 + i % 2) for i in range(2710)]
time.sleep(4)
for _ in range(8):
    bytearray(16 * MIB)
print("granted")
"""


def test_settled():
    """A program that lives close below its stop line, and that nobody can make smaller: what it takes for a moment is granted."""
    r = world.run(PYTHON, "-c", SETTLED, options=["--budget", "1G", "--no-agent", "--policy", "adapt"])
    check("nothing is refused", r.returncode == 0 and r.stdout == "granted\n", r)


def test_where_malloc_writes_all_over_it():
    """Nothing is tried out with memory that there is no room for."""
    r = world.run("env", "MALLOC_PERTURB_=7", PYTHON, "-c", "try: bytearray(3 << 30)\nexcept MemoryError: print('refused')",
                  options=[*BUDGET, "--policy", "adapt"])
    check("it is refused", r.returncode == 0 and r.stdout == "refused\n", r)


def waiting(code):
    """A job that says when it is there, and goes on when it is told to."""
    job = world.start(PYTHON, "-c", GREEDY + "print('ready', flush=True)\nsys.stdin.readline()\n" + code, options=[*BUDGET, "--policy", "adapt"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    job.stdout.readline()
    return job


def go_on(job):
    out, err = job.communicate("go\n", timeout=world.deadline)
    return out, f"{out!r} {err!r} {job.returncode}"


def test_a_keeper_that_is_gone():
    """The page is the guard's, and stays."""
    job = waiting("print('refused', fill(20) > 0)")
    keeper = wait_for("the keeper is there", lambda: child_called("afz-keeper", guard_of(job.pid)))
    os.kill(keeper, signal.SIGKILL)
    wait_for("and gone", lambda: not child_called("afz-keeper", guard_of(job.pid)))
    out, shown = go_on(job)
    check("it is refused all the same", out == "refused True\n" and job.returncode == 0, shown)


def test_a_guard_that_is_gone():
    job = waiting("while room() < 2**64 - 1: time.sleep(.01)\nprint('refused', fill(2))")
    os.kill(guard_of(job.pid), signal.SIGKILL)
    out, shown = go_on(job)
    check("nothing is refused any more", out == "refused -2\n", shown)


if __name__ == "__main__":
    world.play(globals())
