#!/usr/bin/python3
"""What `antifreeze run` adds to a command: to its start, and to its work.

    bench/run_cost.py [BUILD] [--starts N] [--rounds N] [--tiers TIER,...]

The candidates (the command alone, and held in each tier) take turns in an order that is drawn anew each round, so that
what disturbs one disturbs all. Of starts and ends the wall clock is taken; of work the processor time of the job and of
everything of ours together (it is their reaper and adds up what the kernel counted), against that of the job alone,
with a bootstrap interval of the median of the rounds' ratios. bench/run calls this, too.
"""
import argparse
import contextlib
import ctypes
import os
import random
import statistics
import sys
import tempfile
import time

START_MS, WORK_PERCENT = 20, .5  # what was asked for
TIERS = ("none", "cgroup1", "cgroup2", "scope")
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


def bench_work(bench, tiers, rounds, seconds, rng):
    print(f"\n### What `run` adds to work of {seconds} s, {rounds} times each, in turns: processor time\n")
    print("| work | tier | the job itself, %: median (95 % interval) | with all of ours, %: median (95 % interval) | "
          "ours while it works, % of one core | |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind, name in WORK.items():
        got = turns(bench, [None, *tiers], rounds, rng, bench.job, kind, amount_for(bench, kind, seconds))
        # What starting and ending cost stands in the other table.
        fixed = {c: statistics.median(r[1] for r in turns(bench, [c], 10, rng, bench.job, "mark")[c]) for c in got}
        for tier in tiers:
            pairs = list(zip(got[None], got[tier]))
            own = [(b[3][1] / a[3][1] - 1) * 100 for a, b in pairs]
            more = [(b[1] - fixed[tier] - b[3][1] / 1e9) / (b[3][2] / 1e9) * 100 for _, b in pairs]
            both = [((b[1] - fixed[tier]) / (a[1] - fixed[None]) - 1) * 100 for a, b in pairs]
            cells = []
            for values in (own, both, more):
                low, high = interval(values, rng)
                cells.append(f"{statistics.median(values):+.2f} ({low:+.2f} to {high:+.2f})")
            low = interval(both, rng)[0]
            middle = statistics.median(both)
            word = "met" if middle <= WORK_PERCENT else "MISSED" if low > WORK_PERCENT else "not decided by this noise"
            print(f"| {name} | {tier} | {' | '.join(cells)} | target at most {WORK_PERCENT} %: {word} |")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("build", nargs="?", default="build")
    ap.add_argument("--starts", type=int, default=200)
    ap.add_argument("--rounds", type=int, default=60)
    ap.add_argument("--seconds", type=float, default=.5)
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
            if args.rounds:
                bench_work(bench, tiers, args.rounds, args.seconds, rng)
            sys.exit(0)
        sys.exit("run_cost: build it first (make bench)")


main()
