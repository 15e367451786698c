#!/usr/bin/env python3
"""Antifreeze beside others that find out what fits: accelerate's find_executable_batch_size and Lightning's Tuner.scale_batch_size.

    bench/adapt_peers.py BUILD [--python PYTHON] [--rounds N] [--only plain,accelerate,...] [--gpu] [--json]

The same model, data and number of samples, and the same limit for all of a family (plain loops; Lightning): what the process had
before the training, and a third of what the training takes without a limit.

The others need an error to catch, and on a CPU Linux gives none: held by a cgroup they are killed. So all of them, Antifreeze, too,
are held by what raises one: their address space may grow by that third from the beginning of the training on (RLIMIT_AS). The guard's
own limit is out of play then; bench/adapt.py is about that. The C library is told to give back what is freed, for all of them: else
its heap, which never shrinks, is the limit after some tries. On a GPU (--gpu) it is torch's own limit for all.

in vain: samples that went through the model for gradients beyond each one once, trials and what was begun anew with them, in batches
of the unlimited run. A plain loop that Antifreeze splits computes each part again on the way back, which is counted apart.
"""
import argparse
import json
import os
import statistics
import sys

import adapt

FAMILIES = {"plain": ("plain", "micro", "accelerate"), "lightning": ("lightning", "power", "binsearch")}
NAMES = {"plain": "Antifreeze, the loop unchanged", "micro": "Antifreeze, antifreeze.micro()",
         "accelerate": "accelerate: find_executable_batch_size", "lightning": "Antifreeze, the module unchanged",
         "power": "Lightning: scale_batch_size, power", "binsearch": "Lightning: scale_batch_size, binsearch"}
OURS = ("plain", "micro", "lightning")
BATCH, STEPS = 2048, 8
GIVE_BACK = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "262144", "MALLOC_TRIM_THRESHOLD_": "1048576"}
ON_GPU = {"batch": 8192, "width": 64}


class Found:
    """One run to its end, in figures."""

    def __init__(self, one, how, batch, samples):
        self.ended = one.how()
        rows = one.rows
        self.attempts = [row["batch"] for row in rows if row["what"] == "attempt"]
        self.batch = self.attempts[-1] if self.attempts else None
        self.steps = len(losses_after(rows, "attempt"))
        end = next((row for row in rows if row["what"] == "end"), None)
        begin = next((row for row in rows if row["what"] == "begin"), None)
        self.final = next((row["loss"] for row in rows if row["what"] == "final"), None)
        self.at_once = one.told.get("micro_count", self.batch) if how in OURS else self.batch
        self.ok = end is not None and self.final is not None
        if self.ok:
            self.again = one.told.get("splits_count", 0) if how == "plain" else 0
            self.vain = end["kept"] / batch - samples / batch
            self.seconds, self.cpu_seconds = end["at"] - begin["at"], end["cpu"] - begin["cpu"]
            self.most = one.peak or end["most"]


def losses_after(rows, what):
    last = max((n for n, row in enumerate(rows) if row["what"] == what), default=0)
    return [row["value"] for row in rows[last:] if row["what"] == "loss"]


def program(args, how):
    more = ["--batch", args.batch, "--samples", args.batch * STEPS, "--width", args.width]
    return [args.python, "-B", f"{adapt.HERE}/adapt_programs/finders.py", "--how", how, *map(str, more)]


def held(args, how, budget, room):
    command, more = program(args, how), {} if args.gpu else {"ROOM": str(room), **GIVE_BACK}
    if how in OURS:
        return adapt.adapted(args.build + "/antifreeze", command, budget if args.gpu else None, args.gpu, more)
    if args.gpu:
        return adapt.play([args.python, "-B", f"{adapt.HERE}/adapt_programs/gpu_limit.py", str(budget), *command[2:]], True)
    return adapt.play(command, more=more)


def family(args, name, table):
    kind = "gpu_" if args.gpu else ""
    free, budget, room = [], None, None
    for _ in range(args.rounds):
        one = adapt.play(program(args, name), args.gpu, more={} if args.gpu else GIVE_BACK)
        found = Found(one, "power", args.batch, args.batch * STEPS)
        if not found.ok:
            sys.exit(f"{name} does not run without a limit:\n{one.said[-3000:]}")
        free.append(found)
        if budget is None:
            begin, end = (next(row for row in one.rows if row["what"] == what) for what in ("begin", "end"))
            room = (end[kind + "most"] - begin[kind + "now"]) // adapt.TIMES
            budget = begin[kind + "now"] + room
        for how in FAMILIES[name]:
            if how in args.only:
                one = held(args, how, budget, room)
                table.setdefault(how, []).append(Found(one, how, args.batch, args.batch * STEPS))
                if args.verbose:
                    print(one.said[-3000:], *one.events, *table[how][-1].__dict__.items(), sep="\n")
    return free, budget, room


def row_of(how, founds, free, budget):
    good = [one for one in founds if one.ok]
    row = {"how": how, "ended": sorted({one.ended for one in founds}), "runs": len(founds), "ok": len(good), "budget_bytes": budget}
    if good:
        one = good[0]
        of = lambda name, over=1.: adapt.spread([getattr(g, name) / over for g in good])
        row.update(tries=len(one.attempts), batch=one.batch, at_once=one.at_once, steps=one.steps, vain=of("vain"), again=one.again,
                   final=one.final, far=one.final / free[0].final - 1, most_bytes=max(g.most for g in good),
                   cpu=of("cpu_seconds", statistics.median(f.cpu_seconds for f in free)),
                   time=of("seconds", statistics.median(f.seconds for f in free)))
    return row


def show(row):
    name = NAMES[row["how"]]
    if not row["ok"]:
        print(f"| {name} | 0 of {row['runs']}: {', '.join(row['ended'])} | | | | | | | |", flush=True)
        return
    spread = lambda v: "{:.2f} ({:.2f} to {:.2f})".format(*v)
    again = f", and {row['again']} computed again" if row["again"] else ""
    print(f"| {name} | {row['ok']} of {row['runs']} | {row['at_once']} | {row['batch']} | {row['steps']} | {spread(row['vain'])}{again} | "
          f"{row['final']:.4f} ({row['far']:+.1e}) | {spread(row['cpu'])} | {spread(row['time'])} |", flush=True)


def head(args, name, free, budget, room):
    mib = lambda n: f"{n / adapt.MIB:,.0f}"
    cpu, wall = (statistics.median(getattr(one, what) for one in free) for what in ("cpu_seconds", "seconds"))
    print(f"\n{name}: {args.batch * STEPS} samples in batches of {args.batch}; limit {mib(budget)} MiB, of which {mib(room)} for the training, "
          f"which takes {mib(room * adapt.TIMES)}; without a limit {STEPS} steps, final loss {free[0].final:.4f}, {cpu:.1f} s of processor "
          f"time, {wall:.1f} s\n")
    print("| | finished | samples at once | batch of a step | steps | in vain, batches | final loss (to that without a limit) | "
          "times the processor time | times the time |\n" + "| --- " * 9 + "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--python", help="one that has torch, accelerate and lightning")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(NAMES))
    for name in "gpu", "json", "verbose":
        parser.add_argument("--" + name, action="store_true")
    args = parser.parse_args()
    args.build, args.only = os.path.abspath(args.build), args.only.split(",")
    args.python = args.python or adapt.find_python(args.build)
    args.batch, args.width = (ON_GPU["batch"], ON_GPU["width"]) if args.gpu else (BATCH, 16)
    for name, hows in FAMILIES.items():
        if not set(hows) & set(args.only):
            continue
        module = "lightning" if name == "lightning" else "torch"
        if not adapt.installed(args.python, module):
            print(f"{args.python} has no {module}: left out", file=sys.stderr)
            continue
        table = {}
        free, budget, room = family(args, name, table)
        if not args.json:
            head(args, name, free, budget, room)
        for how, founds in table.items():
            row = row_of(how, founds, free, budget)
            print(json.dumps(row), flush=True) if args.json else show(row)


if __name__ == "__main__":
    main()
