#!/usr/bin/python3
"""What `antifreeze run` adds to a command: to its start, and to its work.

    bench/run_cost.py [BUILD] [--starts N] [--rounds N] [--windows N] [--tiers TIER,...]

The candidates (the command alone, and held in each tier) take turns in an order that is drawn anew each round, so that
what disturbs one disturbs all. Of starts and ends the wall clock is taken. Of work the job's own processor time is, held
against alone, with a bootstrap interval of the median of the rounds' ratios; what our own processes use meanwhile is
taken from the kernel's count of them beside longer jobs. bench/run calls this, too.

On a machine where others work, too, their new processes and files in /dev/shm are looked at as well. In namespaces of
its own (as root) it does not see them:

    unshare -pfm --mount-proc sh -c 'mount -t tmpfs none /dev/shm && exec bench/run_cost.py BUILD'
"""
import argparse
import contextlib
import ctypes
import os
import random
import signal
import statistics
import sys
import tempfile
import time

START_MS, WORK_PERCENT = 20, .5  # what was asked for
TIERS = ("none", "cgroup1", "cgroup2", "scope")
JOBS = {"a job that computes": ("spin", "1000000"), "32 lively processes": ("lively", "32"),
        "32 that all grow": ("growing", "32")}
WORK = {"spin": "cpu-bound", "calls": "bound by system calls", "faults": "bound by page faults"}


def percentile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def interval(values, rng, rounds=2000):
    """95 % of the median, by drawing again."""
    n = len(values)
    medians = sorted(statistics.median(rng.choices(values, k=n)) for _ in range(rounds))
    return medians[int(.025 * rounds)], medians[int(.975 * rounds)]


class Bench:
    def __init__(self, build, folder, memory):
        self.antifreeze, self.job = f"{build}/antifreeze", f"{build}/bench/bench-run-job"
        self.environment = {**os.environ, "XDG_STATE_HOME": folder, "XDG_RUNTIME_DIR": memory}
        self.out = os.open(f"{folder}/out", os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def run(self, tier, *command, options=()):
        """Seconds of wall clock, processor seconds of all processes, when it began, the job's output."""
        os.ftruncate(self.out, 0)
        os.lseek(self.out, 0, os.SEEK_SET)
        argv = list(command)
        env = self.environment
        if tier:
            argv = [self.antifreeze, "run", "-q", *options, "--", *command]
            env = {**env, "ANTIFREEZE_TIER": tier}
        begin = time.clock_gettime(time.CLOCK_MONOTONIC)
        pid = os.posix_spawn(argv[0], argv, env, file_actions=[(os.POSIX_SPAWN_DUP2, self.out, 1)])
        _, status, usage = os.wait4(pid, 0)
        wall = time.clock_gettime(time.CLOCK_MONOTONIC) - begin
        cpu = usage.ru_utime + usage.ru_stime
        while True:  # the guard, which comes to us when the front has gone, and with it all that it reaped
            try:
                _, _, usage = os.wait4(-1, 0)
                cpu += usage.ru_utime + usage.ru_stime
            except ChildProcessError:
                break
        if status:
            raise SystemExit(f"run_cost: {argv} ended with {status}")
        return wall, cpu, begin, [int(x) for x in os.pread(self.out, 200, 0).split()]


def offered(bench, tiers):
    """Those that can be had here: the others say so by falling back."""
    got = []
    for tier in tiers:
        with tempfile.TemporaryDirectory() as folder:
            bench.run(tier, "/bin/true", options=["--run-dir", f"{folder}/run"])
            with open(f"{folder}/run/verdict.json", encoding="utf-8") as f:
                if f'"tier":"{tier}"' in f.read():
                    got.append(tier)
    return got


def turns(bench, candidates, rounds, rng, *command):
    """{candidate: [what run() gave, round by round]}"""
    got = {c: [] for c in candidates}
    for c in candidates * 3:  # warm
        bench.run(c, *command)
    for _ in range(rounds):
        for c in rng.sample(candidates, len(candidates)):
            got[c].append(bench.run(c, *command))
    return got


def bench_start(bench, tiers, rounds, rng):
    print(f"\n### What `run` adds to a command that ends at once, {rounds} times each, in turns\n")
    print("| what | ms: median (10th to 95th percentile) | more than alone: median (10th to 95th) | of it before, after CMD | "
          "processor ms of all | |")
    print("| --- | --- | --- | --- | --- | --- |")
    got = turns(bench, [None, *tiers], rounds, rng, bench.job, "mark")
    spread = lambda v: [x * 1e3 for x in (statistics.median(v), percentile(v, .1), percentile(v, .95))]
    begun = {c: statistics.median(r[3][0] / 1e9 - r[2] for r in runs) * 1e3 for c, runs in got.items()}
    alone = spread([r[0] for r in got[None]])
    for c, runs in got.items():
        walls, cpu = spread([r[0] for r in runs]), statistics.median(r[1] for r in runs) * 1e3
        row = "{:.1f} ({:.1f} to {:.1f})".format(*walls)
        if c is None:
            print(f"| CMD alone | {row} | | | {cpu:.1f} | |")
            continue
        more = [a - b for a, b in zip(walls, alone)]
        before = begun[c] - begun[None]
        print(f"| in tier {c} | {row} | {'{:.1f} ({:.1f} to {:.1f})'.format(*more)} | {before:.1f}, {more[0] - before:.1f} | "
              f"{cpu:.1f} | target at most {START_MS}: {'met' if more[0] <= START_MS else 'MISSED'} |")


def amount_for(bench, kind, seconds):
    """So much that it takes about so long here."""
    amount = 20
    for _ in range(3):
        took = statistics.median(bench.run(None, bench.job, kind, str(amount))[3][1] for _ in range(3)) / 1e9
        amount = max(1, int(amount * seconds / took))
    return str(amount)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(x) for x in f.read().split()]


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as f:
        return f.read().strip()


def used_ns(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0])


def bench_steady(bench, tier, job, windows, seconds, settle, recorded=True):
    """{process of ours: % of one core in each window}, beside a job of that kind; after a while, for the guard's
    helper measures the machine once at the start, and new processes are looked at most."""
    env = {**bench.environment, "ANTIFREEZE_TIER": tier}
    if not recorded:
        env["XDG_STATE_HOME"] = "/proc/self/nowhere"  # no folder can be made there
    argv = [bench.antifreeze, "run", "-q", "--", bench.job, *job]
    front = os.posix_spawn(argv[0], argv, env, file_actions=[(os.POSIX_SPAWN_DUP2, bench.out, 1)])
    time.sleep(settle)
    guard = children_of(front)[0]
    root = [p for p in children_of(guard) if name_of(p) == "bench-run-job"]
    ours = [front, guard, *(p for p in children_of(guard) if p not in root)]
    got = {p: [] for p in ours}
    once = {p: used_ns(p) for p in ours}
    last, at = dict(once), time.monotonic_ns()
    for _ in range(windows):
        time.sleep(seconds)
        now, then = {p: used_ns(p) for p in ours}, time.monotonic_ns()
        for p in ours:
            got[p].append((now[p] - last[p]) / (then - at) * 100)
        last, at = now, then
    names = {p: "front" if p == front else name_of(p) for p in ours}
    os.kill(front, signal.SIGTERM)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait4(-1, 0)
    return {names[p]: v for p, v in got.items()}, sum(once.values()) / 1e6


def bench_own(bench, tiers, windows, seconds):
    """% of one core that our own processes take, for each kind of job; gives it for one that computes, by tier."""
    settle = 6  # the first five seconds are looked at more closely
    print(f"\n### Our own processes, % of one core: {windows} windows of {seconds:g} s each, after {settle} s\n")
    print("| beside | tier | each: median | all: median (10th to 90th percentile) | all, where nothing is recorded | "
          f"so the recorder | ms in the first {settle} s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    steady = {}
    spread = lambda v: f"{statistics.median(v):.2f} ({percentile(v, .1):.2f} to {percentile(v, .9):.2f})"
    for name, job in JOBS.items():
        for tier in tiers:
            each, once = bench_steady(bench, tier, job, windows, seconds, settle)
            total = [sum(v) for v in zip(*each.values())]
            steady.setdefault(tier, statistics.median(total))
            only, _ = bench_steady(bench, tier, job, windows, seconds, settle, recorded=False)
            less = [sum(v) for v in zip(*only.values())]
            print(f"| {name} | {tier} | {', '.join(f'{n} {statistics.median(v):.2f}' for n, v in each.items())} | "
                  f"{spread(total)} | {spread(less)} | {statistics.median(total) - statistics.median(less):+.2f} | "
                  f"{once:.0f} |", flush=True)
    return steady


def bench_work(bench, tiers, rounds, seconds, rng, steady):
    print(f"\n### What a fixed amount of work ({seconds} s) costs, {rounds} times each, in turns: % of processor time\n")
    print("| work | tier | the job itself, more than alone: median (95 % interval) | and our own processes | |")
    print("| --- | --- | --- | --- | --- |")
    for kind, name in WORK.items():
        got = turns(bench, [None, *tiers], rounds, rng, bench.job, kind, amount_for(bench, kind, seconds))
        for tier in tiers:
            own = [(b[3][1] / a[3][1] - 1) * 100 for a, b in zip(got[None], got[tier])]
            middle, (low, high) = statistics.median(own), interval(own, rng)
            both = middle + steady[tier]
            word = "met" if both <= WORK_PERCENT else "not decided" if low + steady[tier] <= WORK_PERCENT else "MISSED"
            print(f"| {name} | {tier} | {middle:+.2f} ({low:+.2f} to {high:+.2f}) | {both:+.2f} "
                  f"({low + steady[tier]:+.2f} to {high + steady[tier]:+.2f}) | target at most {WORK_PERCENT}: {word} |")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("build", nargs="?", default="build")
    ap.add_argument("--starts", type=int, default=200)
    ap.add_argument("--rounds", type=int, default=60)
    ap.add_argument("--seconds", type=float, default=.5)
    ap.add_argument("--windows", type=int, default=12)
    ap.add_argument("--window-seconds", type=float, default=2)
    ap.add_argument("--tiers", type=lambda t: t.split(","), default=list(TIERS))
    args = ap.parse_args()
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=shm) as memory:
        bench = Bench(os.path.abspath(args.build), folder, memory)
        with contextlib.suppress(FileNotFoundError):
            rng = random.Random(1)
            tiers = offered(bench, args.tiers)
            if args.starts:
                bench_start(bench, tiers, args.starts, rng)
            steady = bench_own(bench, tiers, args.windows, args.window_seconds)
            if args.rounds:
                bench_work(bench, tiers, args.rounds, args.seconds, rng, steady)
            sys.exit(0)
        sys.exit("run_cost: build it first (make bench)")


main()
