#!/usr/bin/env python3
"""Loaders side by side: a small training that reads 8 GB of data, held to 2 GB of memory.

    bench/feed.py BUILD --data FOLDER [--small] [--python PYTHON] [--only arrays,zarr,...] [--how ours,torch,...] [--rounds N] [--json FILE]

The data are made first, where they are not there yet (feed_data.py: 8 GB each as npy, Zarr v3 with zstd, and a tar of JPEGs, some 20 GB
of disk, and 9 GB for copies in the formats that some of the others have of their own; --small: 256 MB each, to try it out). PYTHON has
NumPy, and what of torch, TensorFlow, zarr, dask, datasets, webdataset, mosaicml-streaming, litdata, spdl and grain is to be seen: what
it has not is left out, and named.

Each loader feeds a process of its own (feed_programs/train.py) in a cgroup of its own, whose limit of 2 GB is over everything: page
cache and /dev/shm, too. Before each cold run the data's files are put out of the page cache. A run is some seconds to get warm and some
in which samples are counted; loaders take turns, and told are medians of rounds with the least and the most. Sections:

arrays    cold, shuffled, npy: Antifreeze, a global shuffle over mmap, windows of the same size, the disk itself
zarr      the same from Zarr, with Dask and with zarr-python
pictures  JPEGs, a random part of each to 224 x 224, by seconds and by processor seconds
cached    data that fit into memory
workers   data that fit into memory and a transform in NumPy, by the number of its workers: 0, 1, 2, 4, ... cores
memory    what a loader takes beyond the program without one, at budgets of 64 MiB, 256 MiB and 1 GiB
waits     how long next() takes where the training is the slower side
epochs    memory over 50 epochs
kills     SIGKILL at 100 random moments, and the order behind it
accuracy  what an order is worth, on data that lie in the order of their classes

Ends with 1 when a target is missed.
"""
import argparse
import json
import mmap
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import adapt
import feed_held
from feed_loaders import ACCURACY, ARRAYS, CACHED, COPIES, MODULES, OURS, PICTURES, ZARR, Row

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
SAMPLE_BYTES = 3072
BUDGET, SMALL_BUDGET = 512 * MIB, 32 * MIB
PATIENCE_S = 60  # beyond the time that is measured
RUN_MOST = 512  # samples in a row: a chunk of the Zarr
ALIKE = .9  # as much of reach and places as ours: an order as good
OVER_BUDGET = 16 * MIB
FLAT = MIB  # more than so much after 50 epochs is growth
KILLS = 100
PICTURE_BYTES = 108_000
COPY_SAMPLES = 3_000_000_000 // SAMPLE_BYTES // 512 * 512  # files.py

class Bench:
    """What was asked for, and what was found."""

    def __init__(self, args):
        self.args = args
        self.samples = samples_in(args.data + "/x.npy")
        self.budget = SMALL_BUDGET if args.small else BUDGET
        self.missing = {name for name in MODULES if not adapt.installed(args.python, name)}
        self.results, self.missed, self.is_held = {}, [], True
        self.env = {**adapt.environment(False), "PYTHONPATH": os.path.dirname(HERE) + "/python",
                    "ANTIFREEZE_LOADER": args.build + "/loader/libantifreeze-loader.so"}

    def run(self, how, kind, **more):
        """A training with that loader, held."""
        samples = min(self.samples, COPY_SAMPLES) if how in COPIES else self.samples
        options = {"how": how, "kind": kind, "data": self.args.data, "samples": samples, "warm_s": self.args.warm, "seconds": self.args.seconds,
                   "budget": self.budget, "window": self.budget // 2 // SAMPLE_BYTES, **more}
        command = [self.args.python, "-B", HERE + "/feed_programs/train.py", json.dumps(options)]
        one = feed_held.Held(command, self.env, options["warm_s"] + options["seconds"] + options.get("patience_s", PATIENCE_S))
        self.is_held &= one.is_held
        if self.args.verbose:
            print(how, options, one.how(), one.said[-2000:], *one.rows[-3:], sep="\n", file=sys.stderr)
        return one

    def wanted(self, table):
        return [row for row in table if row.module not in self.missing and (not self.args.how or row.how.startswith(tuple(self.args.how)))]

    def met(self, what, is_met):
        """The word for it."""
        if not is_met:
            self.missed.append(what)
        return "met" if is_met else "MISSED"

    def judge(self, what, value, target, is_met):
        print(f"- {what}: {value}; target {target}: **{self.met(what, is_met)}**", flush=True)

    def keep(self, section, found):
        self.results[section] = found
        if self.args.json:
            with open(self.args.json, "w", encoding="utf-8") as file:
                json.dump(self.results, file, indent=1)


def title(text, *columns):
    print(f"\n### {text}\n" + (f"\n| {' | '.join(columns)} |\n" + "| --- " * len(columns) + "|" if columns else ""), flush=True)


def samples_in(path):
    """Of an npy file, by its size."""
    return (os.stat(path).st_size - 128) // SAMPLE_BYTES


# ---- what is measured of one run ----

def figures(one):
    end, warm = one.row("end"), one.row("warm")
    found = {"ended": one.how(), "peak": one.peak, "peak_all": one.peak_all}
    if end and warm and end["seconds"] > 0:
        cpu = one.watcher.cpu_between(warm["at"], end["at"])
        found.update(rate=end["samples"] / end["seconds"], cpu=cpu, per_cpu=end["samples"] / cpu if cpu else None, reach=end["reach"],
                     places=end["places"], next_median=end["next_median"], next_99=end["next_99"], next_most=end["next_most"])
    elif one.row("first"):
        found["ended"] += " after its first batch"
    window = one.row("window")
    if window:
        found.update(window=window["samples"], quality=window["quality"])
    return found


def middle(rounds, name):
    values = [found[name] for found in rounds if found.get(name) is not None]
    return statistics.median(values) if values else None


def spread(rounds, name, scale=1., form="{:,.0f}"):
    values = [found[name] * scale for found in rounds if found.get(name) is not None]
    if not values:
        return ""
    text = form.format(statistics.median(values))
    return text + (f" ({form.format(min(values))} to {form.format(max(values))})" if len(values) > 1 else "")


def in_turns(bench, table, kind, paths, before=None, **more):
    """{row: [figures of each round]}, and what `before`, which is asked before ours, has said. paths: to be cold."""
    rows, said = {row: [] for row in bench.wanted(table)}, []
    for _ in range(bench.args.rounds):
        window = {}
        for row, rounds in rows.items():
            for path in paths:
                feed_held.forget(path)
            if before and row is OURS:
                said.append(before())
            found = figures(bench.run(row.how, kind, workers=row.workers, **{**window, **more}))
            rounds.append(found)
            if row is OURS and "window" in found:
                window = like(found, kind)
            print(f"  {row.how} {row.workers}: {found['ended']} {found.get('rate') or 0:,.0f}/s", file=sys.stderr, flush=True)
    return rows, said


def like(found, kind):
    """A window for the others that is as large, of runs that are as long: then orders are as good."""
    run = round(found["window"] / found["places"]) if found.get("places") else RUN_MOST
    return {"window": found["window"], "chunk": RUN_MOST if kind == "zarr" else max(16, min(RUN_MOST, run))}


def direct_read(path, seconds, piece):
    """Bytes a second of a plain read from the file's start on, past the page cache."""
    file, buffer = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, piece)
    at = done = 0
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        got = os.preadv(file, [buffer], at)
        at, done = (at + got if got == piece else 0), done + got
    os.close(file)
    return done / (time.monotonic() - began)


# ---- rates ----

def show_rates(rows, what, sample_bytes, disk=None):
    columns = ["loader", f"{what} a second", "MB/s", f"{what} a processor second", "memory of its processes, MiB", "with the page cache",
               "reach", "places", ""]
    print("| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")
    for row, rounds in rows.items():
        rate, reach, places = (middle(rounds, name) for name in ("rate", "reach", "places"))
        speed = f"{rate * sample_bytes / 1e6:,.0f}" + (f" ({rate * sample_bytes / disk:.0%} of the disk)" if disk else "") if rate else ""
        mixed = f"{reach:.2f} | {places:,.0f}" if reach is not None else " | "
        most = " | ".join(f"{max((found[name] or 0) for found in rounds) / MIB:,.0f}" for name in ("peak", "peak_all"))
        ended = ", ".join(sorted({found["ended"] for found in rounds} - {"finished"}))
        print(f"| {row.name} | {spread(rounds, 'rate')} | {speed} | {spread(rounds, 'per_cpu')} | {most} | {mixed} | {ended} |")
    print(flush=True)


def versus(bench, what, rows, target, is_in, figure="rate"):
    """Ours against the best of those that are in."""
    if OURS not in rows:
        return
    mine = middle(rows[OURS], figure) or 0
    other, name = max(((middle(rounds, figure) or 0, row.name) for row, rounds in rows.items() if row is not OURS and is_in(row)),
                      default=(0, "nobody"))
    if other:
        bench.judge(f"{what}, against {name}", f"{mine / other:.2f} times", f"at least {target}", mine >= target * other)
    else:
        print(f"- {what}: nobody to compare with")


def as_good(rows):
    """Whether a row is a window whose order is about as good as ours."""
    least = [ALIKE * (middle(rows.get(OURS, []), name) or 0) for name in ("reach", "places")]
    return lambda row: row.order == "window" and all((middle(rows[row], name) or 0) >= limit for name, limit in zip(("reach", "places"), least))


def kept(rows):
    return [{**row._asdict(), "rounds": rounds} for row, rounds in rows.items()]


def arrays(bench):
    data = bench.args.data
    look_s = min(2, bench.args.seconds / 2)
    disk_of = lambda: max(direct_read(data + "/x.npy", look_s, piece) for piece in (1 << 20, 4 << 20))
    rows, disk = in_turns(bench, ARRAYS, "npy", [f"{data}/{name}" for name in ("x.npy", "y.npy", "x.arrow", "x.mds", "x.litdata")], disk_of)
    disk = statistics.median(disk) if disk else None
    title("Arrays, cold and shuffled")
    if disk:
        print(f"A plain sequential read past the page cache, in turns with ours: {disk / 1e6:,.0f} MB/s.\n")
    show_rates(rows, "samples", SAMPLE_BYTES, disk)
    bench.keep("arrays", {"disk": disk, "rows": kept(rows)})
    versus(bench, "cold arrays, a global shuffle", rows, 10, lambda row: row.order == "global" and "memory" not in row.how)
    versus(bench, "cold arrays, a window with an order as good", rows, 1.2, as_good(rows))
    if disk:
        speed = (middle(rows[OURS], "rate") or 0) * SAMPLE_BYTES
        bench.judge("cold arrays, of what the disk gives", f"{speed / disk:.0%}", "at least 80 %", speed >= .8 * disk)


def zarr(bench):
    rows, _ = in_turns(bench, ZARR, "zarr", [bench.args.data + "/x.zarr"])
    title("Zarr v3 with zstd, cold and shuffled")
    show_rates(rows, "samples", SAMPLE_BYTES)
    bench.keep("zarr", kept(rows))
    versus(bench, "cold Zarr, a window with an order as good", rows, 1.2, as_good(rows))


def pictures(bench):
    rows, _ = in_turns(bench, PICTURES, "tar", [bench.args.data + "/pictures.tar"], batch=64, budget=256 * MIB, seconds=2 * bench.args.seconds)
    title("JPEGs of 500 x 375 in a tar, a random part of each to 224 x 224")
    show_rates(rows, "pictures", PICTURE_BYTES)
    bench.keep("pictures", kept(rows))
    versus(bench, "JPEG by processor seconds", rows, 1.0, lambda row: True, "per_cpu")
    versus(bench, "JPEG by seconds", rows, 1.0, lambda row: True)


def cached(bench):
    samples = samples_in(bench.args.data + "/cached.npy")
    rows, _ = in_turns(bench, CACHED, "npy", (), file="cached", samples=samples, window=samples // 2, budget=samples * SAMPLE_BYTES + 128 * MIB)
    title(f"Data that fit into memory: {samples * SAMPLE_BYTES / 1e6:,.0f} MB")
    show_rates(rows, "samples", SAMPLE_BYTES)
    bench.keep("cached", kept(rows))
    versus(bench, "cached", rows, 1.0, lambda row: True)


def workers(bench):
    """How a transform's rate grows with its workers."""
    samples = samples_in(bench.args.data + "/cached.npy")
    cores = len(os.sched_getaffinity(0))
    counts = sorted({0, 1, cores} | {1 << n for n in range(cores.bit_length())})
    table = [Row(how, count, f"{name}, {count} worker{'s' * (count != 1)}", module, "")
             for how, name, module in (("ours_smoothed", "**antifreeze.Loader**", None), ("torch_smoothed", "torch DataLoader, data in memory", "torch"))
             for count in counts]
    rows, _ = in_turns(bench, table, "npy", (), file="cached", samples=samples, budget=samples * SAMPLE_BYTES + 128 * MIB, is_kept=False)
    title(f"A transform of some milliseconds of NumPy a batch, by its workers, on {cores} cores",
          "loader", "samples a second", "times the rate of 1 worker", "samples a processor second", "memory of its processes, MiB", "")
    one = {row.how: middle(rounds, "rate") for row, rounds in rows.items() if row.workers == 1}
    for row, rounds in rows.items():
        rate, base = middle(rounds, "rate"), one.get(row.how)
        times = f"{rate / base:.2f}" if rate and base else ""
        ended = ", ".join(sorted({found["ended"] for found in rounds} - {"finished"}))
        most = max((found["peak"] or 0) for found in rounds) / MIB
        print(f"| {row.name} | {spread(rounds, 'rate')} | {times} | {spread(rounds, 'per_cpu')} | {most:,.0f} | {ended} |", flush=True)
    bench.keep("workers", kept(rows))


# ---- promises ----

FILES = {"npy": "x.npy", "zarr": "x.zarr", "tar": "pictures.tar"}


def memory(bench):
    title("What a loader takes, over the same program without one",
          "data", "budget, MiB", "more than without, MiB", "page cache counted, too", "", "")
    found = []
    for kind, batch in ("npy", 256), ("zarr", 256), ("tar", 64):
        none = bench.run("none", kind, seconds=1, warm_s=1, batch=batch)
        for budget in 64, 256, 1024:
            feed_held.forget(f"{bench.args.data}/{FILES[kind]}")
            one = bench.run("ours", kind, seconds=bench.args.seconds / 2, warm_s=2, batch=batch, budget=budget * MIB)
            over, every = (one.peak or 0) - (none.peak or 0), (one.peak_all or 0) - (none.peak_all or 0)
            word = bench.met(f"memory of {kind} within {budget} MiB", one.how() == "finished" and over <= budget * MIB + OVER_BUDGET)
            found.append({"kind": kind, "budget": budget, "over": over, "over_all": every, "ended": one.how()})
            print(f"| {kind} | {budget} | {over / MIB:,.1f} | {every / MIB:,.1f} | {one.how()} | {word} |", flush=True)
    bench.keep("memory", found)


def waits(bench):
    title("How long next() takes where the training is the slower side (a step of 5 ms; of 25 ms for 8 pictures)",
          "data", "median, ms", "99th percentile", "longest", "")
    found = []
    for how, kind, batch, pace in ("none", "npy", 256, 5), ("ours", "npy", 256, 5), ("ours", "zarr", 256, 5), ("ours", "tar", 8, 25):
        budget = max(bench.budget, 64 * MIB)
        rounds = [figures(bench.run(how, kind, batch=batch, pace_ms=pace, budget=budget)) for _ in range(bench.args.rounds)]
        median, late, most = ((middle(rounds, name) or 0) * 1e3 for name in ("next_median", "next_99", "next_most"))
        found.append({"how": how, "kind": kind, "rounds": rounds})
        word = "what the machine itself adds" if how == "none" else bench.met(f"next() from {kind}", 0 < late <= median + 1)
        print(f"| {'no loader' if how == 'none' else kind} | {median:.3f} | {late:.3f} | {most:.2f} | {word} |", flush=True)
    bench.keep("waits", found)


def epochs(bench):
    title("Memory over 50 epochs", "data", "after the 2nd, MiB", "after the 50th", "most between", "")
    found = []
    for kind, file, subset, budget, batch in (("npy", "sorted", None, 16, 256), ("zarr", None, (0, 16384), 32, 256),
                                              ("tar", None, (0, 256), 64, 32)):
        one = bench.run("ours", kind, file=file, subset=subset, budget=budget * MIB, batch=batch, epochs=50, seconds=0, is_kept=False,
                        patience_s=3 * PATIENCE_S)
        sizes = [row["bytes"] for row in one.rows if row["what"] == "epoch"]
        word = bench.met(f"memory over 50 epochs of {kind}", len(sizes) == 50 and max(sizes[2:]) - sizes[1] <= FLAT)
        found.append({"kind": kind, "bytes": sizes, "ended": one.how()})
        told = " | ".join(f"{size / MIB:.2f}" for size in (sizes[1], sizes[-1], max(sizes[2:]))) if len(sizes) > 2 else one.how() + " | | "
        print(f"| {kind} | {told} | {word} |", flush=True)
    bench.keep("epochs", found)


def kills(bench):
    """Whether batches come in the order of a run that nobody disturbed."""
    title("SIGKILL at random moments")
    with tempfile.TemporaryDirectory() as folder:
        def start(name, pace_ms):
            options = {"data": bench.args.data, "log": f"{folder}/{name}", "batches": 6000, "pace_ms": pace_ms, "budget": 8 * MIB}
            return subprocess.Popen([bench.args.python, "-B", HERE + "/feed_programs/kills.py", json.dumps(options)], env=bench.env)

        start("whole", 0).wait(PATIENCE_S * 5)
        done = kill_some(lambda: start("killed", 1), folder + "/killed")
        start("killed", 0).wait(PATIENCE_S * 5)
        whole, killed = (sums_of(f"{folder}/{name}") for name in ("whole", "killed"))
    same = sum(a == b for a, b in zip(whole, killed))
    bench.judge("order after SIGKILL", f"{done} kills, {same} of {len(whole)} batches the same", f"all, over {KILLS} kills",
                done == KILLS and whole == killed and len(whole) > 0)
    bench.keep("kills", {"kills": done, "batches": len(whole), "same": same})


def kill_some(start, log):
    """How often it could be killed while it was at work."""
    draw, size = random.Random(1), lambda: os.stat(log).st_size if os.path.exists(log) else 0
    for done in range(KILLS):
        child, before = start(), size()
        while child.poll() is None and size() == before:
            time.sleep(.001)
        time.sleep(draw.uniform(0, .06))
        child.kill()
        if child.wait() != -signal.SIGKILL:
            return done
    return KILLS


def sums_of(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as file:
        return [json.loads(line)[0] for line in file]


def accuracy(bench):
    samples = samples_in(bench.args.data + "/sorted.npy")
    options = {"file": "sorted", "samples": samples, "budget": samples * SAMPLE_BYTES // 8, "window": samples // 16, "chunk": 16, "batch": 64,
               "epochs": 2, "seconds": 0, "warm_s": 0, "test": "cached", "patience_s": 2 * PATIENCE_S}
    title("Right answers after two epochs of data that lie in the order of their classes, a window of a sixteenth of them",
          "order", "right", "reach", "places")
    found = []
    for row in bench.wanted(ACCURACY):
        one = bench.run(row.how, "npy", workers=row.workers, **options)
        right, end = one.row("accuracy"), one.row("end")
        found.append({**row._asdict(), "right": right and right["value"], "ended": one.how()})
        told = f"{right['value']:.1%} | {end['reach']:.2f} | {end['places']:.0f}" if right else one.how() + " | | "
        print(f"| {row.name} | {told} |", flush=True)
    bench.keep("accuracy", found)


SECTIONS = {"arrays": arrays, "zarr": zarr, "pictures": pictures, "cached": cached, "workers": workers, "memory": memory, "waits": waits, "epochs": epochs,
            "kills": kills, "accuracy": accuracy}


# ---- main ----

def prepare(args):
    """Makes what is not there yet."""
    size = 256e6 if args.small else 8e9
    lacks = [name for module, name in (("numpy", "numpy"), ("PIL", "pillow"), ("zarr", "zarr")) if not adapt.installed(args.python, module)]
    if lacks:
        sys.exit(f"{args.python} has no {', '.join(lacks)}, which the data are made with; name another one with --python")
    for command in ([HERE + "/feed_data.py", args.data, "--bytes", str(size)], [HERE + "/feed_programs/files.py", args.data]):
        r = subprocess.run([args.python, "-B", *command], env=adapt.environment(False), stdout=subprocess.DEVNULL, check=False)
        if r.returncode:
            sys.exit("the data could not be made")


def versions(python, names):
    look = ("import sys, importlib.metadata as m\n"
            "for row in sys.argv[1:]:\n"
            "    for name in row.split():\n"
            "        try: print(name, m.version(name)); break\n"
            "        except m.PackageNotFoundError: pass\n")
    return subprocess.run([python, "-c", look, "numpy", *names], capture_output=True, text=True, check=False).stdout.split("\n")[:-1]


def head(bench):
    args = bench.args
    there = [MODULES[name] for name in MODULES if name not in bench.missing]
    rounds = "1 round" if args.rounds == 1 else f"{args.rounds} rounds"
    print(f"Linux {platform.release().partition('-')[0]} {platform.machine()}, {os.cpu_count()} cores; {bench.samples:,} samples of {SAMPLE_BYTES} bytes; {rounds}, "
          f"{args.warm:g} s to get warm and {args.seconds:g} s measured; budget {bench.budget // MIB} MiB.")
    print("; ".join(versions(args.python, there)) + ".")
    if bench.missing:
        print("Not installed, so left out: " + ", ".join(sorted(MODULES[name].split()[0] for name in bench.missing)) + ".")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--data", help="where the data are, or are to be made")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--python")
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("--how", default="", help="only loaders whose name begins so: ours,torch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--warm", type=float, default=3)
    parser.add_argument("--json")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    args.data = os.path.abspath(args.data or f"{cache}/antifreeze-bench/{'small' if args.small else 'feed'}")
    args.how = [name for name in args.how.split(",") if name]
    args.python = args.python or adapt.find_python(args.build)
    for name in args.only.split(","):
        if name not in SECTIONS:
            parser.error(f"no section {name}: {', '.join(SECTIONS)}")
    prepare(args)
    bench = Bench(args)
    head(bench)
    for name in args.only.split(","):
        SECTIONS[name](bench)
    if not bench.is_held:
        print("\nNo cgroup could be made (run it as root, or where one is delegated): nothing here was held to 2 GB, and memory was not measured.")
    print("\n" + (f"Missed: {'; '.join(bench.missed)}." if bench.missed else "All targets that were looked at are met."))
    sys.exit(bool(bench.missed))


if __name__ == "__main__":
    main()
