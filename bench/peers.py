#!/usr/bin/env python3
"""What it costs a program to have its allocations watched: by Antifreeze, memray, heaptrack and Scalene, in one run.

usage: bench/peers.py BUILD_FOLDER [--python PYTHON] [--launches N] [--rounds N] [--job NAME]... [--json FILE]

Each job runs under each tool, all at the same time, and makes blocks of steps in turns: a block of the plain one, a
block of each other, and again. What disturbs the machine disturbs neighbours alike, so each block is compared with the
mean of the plain ones before and after it; the median of these ratios is one launch. Where a process happens to have
its memory makes some per cent either way for as long as it lives, so there are several launches: told are the median,
the least and the most of them, for processor time (all threads of the process) and the wall clock; then the memory that
the process had more than the plain one at its most, and what was written for an hour of it. "plain again" is the plain
job once more: what the measure itself is worth. Tools that are not installed are left out and named.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BLOCK_S = 0.1  # of the plain job
JOBS = {"torch": "PyTorch transformer step", "tensorflow": "Keras/TensorFlow step", "numpy": "NumPy loop",
        "json": "JSON parser", "trainer": "the C trainer", "malloc-1": "malloc at 10 M/s, 1 thread",
        "malloc-4": "malloc at 10 M/s, 4 threads", "malloc-8": "malloc at 10 M/s, 8 threads"}

PYTHON_JOBS = ("torch", "tensorflow", "numpy", "json")


# Whether glibc gives large blocks back to the kernel and faults them in anew depends on where the heap's end happens to
# lie, and makes a factor of five in a NumPy loop: fixed, so that it is the tools that are compared.
STEADY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30), "TF_CPP_MIN_LOG_LEVEL": "3"}


class Tool:
    """A job under a tool, waiting for orders."""

    def __init__(self, wrap, command, folder):
        self.folder = pathlib.Path(folder)
        orders, answers = str(self.folder / "orders"), str(self.folder / "answers")
        os.mkfifo(orders)
        os.mkfifo(answers)
        with open(self.folder / "said", "wb") as said:
            self.process = subprocess.Popen(wrap(self.folder) + command, stdout=subprocess.DEVNULL, stderr=said, cwd=folder,
                                            env={**os.environ, **STEADY, "PEER_ORDERS": orders, "PEER_ANSWERS": answers})
        # Both ends at once, so that a tool which fails is seen and not waited for.
        self.orders = os.fdopen(os.open(orders, os.O_RDWR), "w", buffering=1)
        self.answers = os.fdopen(os.open(answers, os.O_RDWR | os.O_NONBLOCK), "rb", buffering=0)
        self.buffer = b""
        self.ratios_cpu, self.ratios_wall, self.began = [], [], time.monotonic()

    def line(self):
        until = time.monotonic() + 120
        while b"\n" not in self.buffer:
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "said").read_text(errors="replace")[-300:])
            self.buffer += self.answers.read(4096) or b""
            if b"\n" not in self.buffer:
                time.sleep(0.0005)
        line, self.buffer = self.buffer.split(b"\n", 1)
        return [int(x) for x in line.split()]

    def block(self, steps):
        print(steps, file=self.orders)
        return self.line()

    def peak_bytes(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def end(self):
        """Bytes written, an hour of it."""
        lived = time.monotonic() - self.began
        print("end", file=self.orders)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(60)
        self.process.kill()
        files = [f for f in self.folder.rglob("*") if f.is_file() and f.name not in ("said",)]
        return sum(f.stat().st_size for f in files) * 3600 / lived


def tools(args, is_python):
    """{name: how its command begins}, and the names of those that are not here."""
    found = {"plain": lambda folder: [],
             "plain again": lambda folder: [],
             "antifreeze": lambda folder: [f"{args.build}/antifreeze", "run", "--quiet", "--run-dir", str(folder / "run"), "--"]}
    absent = []
    if shutil.which("heaptrack"):
        found["heaptrack"] = lambda folder: ["heaptrack", "-o", str(folder / "heap")]
    else:
        absent.append("heaptrack")
    for name in ("memray", "scalene") if is_python else ():
        if subprocess.run([args.python, "-c", f"import {name}"], capture_output=True, check=False).returncode:
            absent.append(name)
    if is_python and "memray" not in absent:
        found["memray"] = lambda folder: [args.python, "-m", "memray", "run", "-q", "-o", str(folder / "out.bin")]
        # What Antifreeze sees, too: native frames, and Python's small objects.
        found["memray, all"] = lambda folder: [args.python, "-m", "memray", "run", "--native", "--trace-python-allocators",
                                               "-q", "-o", str(folder / "out.bin")]
    if is_python and "scalene" not in absent:
        found["scalene"] = lambda folder: [args.python, "-m", "scalene", "run", "-o", str(folder / "scalene.json")]
    return found, absent


def command_of(args, job, tool):
    if job not in PYTHON_JOBS:
        return [f"{args.build}/bench/bench-peer-job", job]
    begins = [] if tool.startswith(("memray", "scalene")) else [args.python]
    return [*begins, str(HERE / "peer_job.py"), job]


def play(running, rounds):
    """Blocks in turns; each tool's ratios to its plain neighbours."""
    plain = running["plain"]
    for name, tool in list(running.items()):
        try:
            tool.pid = tool.line()[0]
            tool.block(3)
        except RuntimeError as e:  # a tool that cannot run the job
            print(f"{name} failed: {' '.join(str(e).split())[-200:]}", file=sys.stderr)
            running.pop(name).end()
    steps, took = 1, 0
    while took < BLOCK_S * 1e9:
        steps *= 2
        took = plain.block(steps)[1]
    before = plain.block(steps)
    for turn in range(rounds):
        for name, tool in running.items():
            if name == "plain" or (turn % 5 and tool.ratios_wall[-1] > 3):  # of one that slow a fifth will do
                continue
            got, after = tool.block(steps), plain.block(steps)
            tool.ratios_cpu.append(2 * got[0] / (before[0] + after[0]))
            tool.ratios_wall.append(2 * got[1] / (before[1] + after[1]))
            before = after


def launch(args, job, found):
    """{tool: (processor time, wall clock, bytes of memory, bytes an hour)}, as ratios to plain and differences."""
    with tempfile.TemporaryDirectory() as folder:
        running = {}
        for name, wrap in found.items():
            place = os.path.join(folder, name.replace(" ", ""))
            os.mkdir(place)
            running[name] = Tool(wrap, command_of(args, job, name), place)
        try:
            play(running, args.rounds)
            peak = {name: tool.peak_bytes() for name, tool in running.items()}
        finally:
            written = {name: tool.end() for name, tool in running.items()}
        return {name: (statistics.median(tool.ratios_cpu), statistics.median(tool.ratios_wall), peak[name] - peak["plain"],
                       written[name]) for name, tool in running.items() if name != "plain"}


def measure(args, job):
    found, absent = tools(args, job in PYTHON_JOBS)
    if job.startswith("malloc-"):
        os.environ["PEER_WORK"] = subprocess.run([f"{args.build}/bench/bench-peer-job", "calibrate"], capture_output=True,
                                                 text=True, check=True).stdout.strip()
    launches = [launch(args, job, found) for _ in range(args.launches)]
    rows = []
    for name in found:
        got = [one[name] for one in launches if name in one]
        if not got:
            continue
        cpu, wall, memory, written = zip(*got)
        rows.append({"job": job, "tool": name, "cpu": sorted(cpu), "wall": sorted(wall), "memory_bytes": max(memory),
                     "bytes_an_hour": statistics.median(written)})
    return rows, absent


def show(job, rows, absent):
    print(f"\n{JOBS[job]}" + (f" (not installed: {', '.join(absent)})" if absent else ""))
    print(f"{'':>14}{'processor time':>28}{'wall clock':>28}{'memory':>11}{'an hour':>11}")
    for row in rows:
        said = [f"{statistics.median(v) - 1:+.1%} ({v[0] - 1:+.1%} to {v[-1] - 1:+.1%})" for v in (row["cpu"], row["wall"])]
        print(f"{row['tool']:>14}{said[0]:>28}{said[1]:>28}{row['memory_bytes'] / 2**20:>+7.1f} MiB"
              f"{row['bytes_an_hour'] / 1e6:>8.1f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--job", action="append", choices=JOBS)
    parser.add_argument("--json")
    args = parser.parse_args()
    result = []
    for job in args.job or JOBS:
        if job in ("torch", "tensorflow", "numpy"):
            module = "keras" if job == "tensorflow" else job
            if subprocess.run([args.python, "-c", f"import {module}"], capture_output=True, check=False).returncode:
                print(f"\n{JOBS[job]}: {module} is not installed")
                continue
        try:
            rows, absent = measure(args, job)
        except RuntimeError as e:
            print(f"\n{JOBS[job]}: a tool failed: {e}")
            continue
        show(job, rows, absent)
        result += rows
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1), encoding="ascii")


if __name__ == "__main__":
    main()
