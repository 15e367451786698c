#!/usr/bin/env python3
"""What the probe costs the program that it is loaded into.

usage: bench/probe_cost.py BUILD_FOLDER [PYTHON]

Wall-clock time says little on a shared machine, so two other measures are taken: A and B in turns inside one process
(bench/probe_malloc.c), and instructions, counted by valgrind where it is there, of whole programs with and without.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else sys.exit(__doc__)
PYTHON = sys.argv[2] if len(sys.argv) > 2 else sys.executable
PROBE = BUILD + "/probe/libantifreeze-probe.so"
KEEPER = BUILD + "/bench/bench-probe-keeper"
MALLOC = BUILD + "/bench/bench-probe-malloc"
ALLOCATIONS_A_SECOND = 10e6  # of a program that allocates as fast as programs do

JSON_LOOP = """
import json
text = json.dumps([{"id": i, "name": "row %d" % i, "values": [i * 0.5] * 8} for i in range(300)])
for _ in range(@): json.loads(text)
"""
NUMPY_LOOP = """
import numpy
a = numpy.ones((256, 1024), dtype="f4")
for _ in range(@): b = (a * 2 + a).sum(axis=0); a = numpy.maximum(a, 1) - b * 0
"""


def with_probe(command, mean=1 << 20):
    """What the command prints (its stdout goes to the keeper's stderr)."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([KEEPER, "-m", str(mean), PROBE, folder + "/socket", *command],
                              capture_output=True, text=True, check=True).stderr


def fields(line):
    return {key: float(value) for key, value in re.findall(r"(\w+)=([-\d.]+)", line)}


def malloc_pairs():
    print("A malloc and free, ns of processor time, A and B in turns inside one process")
    print(f"{'threads':>8}{'plain':>9}{'more':>8}{'95 % of cases':>18}{'at 10 M/s':>12}")
    for threads in (1, 2, 4, 8):
        f = fields(with_probe([MALLOC, str(threads)]))
        share = f["more_ns"] * ALLOCATIONS_A_SECOND / 1e9
        print(f"{threads:8}{f['plain_ns']:9.2f}{f['more_ns']:8.2f}{f['low_ns']:10.2f} to {f['high_ns']:5.2f}{share:11.1%}")


def samples():
    print("\nOne sample and its free, ns of processor time, by depth of the stack")
    for line in with_probe([MALLOC, "1", "sample"], mean=1).splitlines():
        if line.startswith("depth="):
            f = fields(line)
            print(f"{f['depth']:8.0f} calls: first time {f['cold_ns']:8.0f}, then {f['warm_ns']:6.0f}")


def instructions(command, probed):
    count = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *command]
    text = with_probe(count) if probed else subprocess.run(count, capture_output=True, text=True, check=True).stderr
    return int(re.search(r"I\s+refs:\s+([\d,]+)", text)[1].replace(",", ""))


def loops():
    """A long run less a short one, so that the start does not count."""
    print("\nInstructions of a loop, counted")
    for name, program, short, long in (("JSON parser", JSON_LOOP, 3, 43), ("NumPy", NUMPY_LOOP, 3, 43)):
        if name == "NumPy" and subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True, check=False).returncode:
            print(f"{name:>14}: not installed")
            continue
        cost = {}
        for probed in (False, True):
            counts = [instructions([PYTHON, "-c", program.replace("@", str(n))], probed) for n in (short, long)]
            cost[probed] = counts[1] - counts[0]
        print(f"{name:>14}: {cost[False] / 1e6:8.1f} M without, {cost[True] / 1e6:8.1f} M with: "
              f"{cost[True] / cost[False] - 1:+.2%}")


if __name__ == "__main__":
    malloc_pairs()
    samples()
    if shutil.which("valgrind"):
        loops()
    else:
        print("\nvalgrind is not installed: instructions are not counted")
