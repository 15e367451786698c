#!/usr/bin/env python3
"""A batch that needs three times the memory: with Antifreeze, and without.

    bench/adapt.py BUILD [--python PYTHON] [--only torch,trainer,lightning,keras] [--rounds N] [--gpu] [--all-of-it] [--json]

Each program of adapt_programs is run without a limit first, and what its training takes is measured: the most memory that it had,
less what it had before the first step. The budget is what it had before and a third of that (--all-of-it: a third of the whole,
so that everything that was imported has to find its place in it, too). Then it is run under `antifreeze run --policy adapt
--budget`, and without us held to the same by the kernel alone (a cgroup; where none can be made, RLIMIT_AS), where it should die.
The programs know nothing of any of it. With --gpu it is the memory of the GPU, held by --gpu-budget and by torch's own limit.

Told are medians of N rounds (3), and of time the least and the most. Processor time is the one to believe on a machine where others
work, too. "in vain" is what went through the model for gradients beyond each sample of each step once, in batches, and how often
memory ran out; where the program cannot count (Keras compiles its step) only the latter. A plain torch loop goes there without
keeping anything, and each part is computed for its gradients on the way back: that is time, but not in vain. Ends with 1 when a
target is missed.
"""
import argparse
import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
PATIENCE_S = 900  # for one run on a busy machine
LATE = 124  # the status of one that took longer
TIMES = 3
ROUNDING = 2e-4  # of a loss, in float32 over some steps of Adam
ROUNDING_GPU = 5e-4  # the same: convolutions take other ways there for other sizes. By hand in 4 parts, without us: 3.4e-4
PROGRAMS = {"torch": "torch_cnn.py", "trainer": "trainer.py", "lightning": "lightning_cnn.py", "keras": "keras_cnn.py"}
MODULES = {"torch": "torch", "trainer": "transformers", "lightning": "lightning", "keras": "tensorflow"}
BATCH = {"torch": 2048, "trainer": 64, "lightning": 2048, "keras": 2048}
ON_GPU = {"torch": ["--batch", "8192", "--width", "64"], "lightning": ["--batch", "8192", "--width", "64"],
          "trainer": ["--batch", "256", "--width", "512", "--words", "32000"]}
ALL_OF_IT = {name: ["--batch", str(3 * batch), "--steps", "4"] for name, batch in BATCH.items()}


class Played:
    """One run of a program, by the notes that it has left."""

    def __init__(self, status, said, notes):
        self.status, self.said, self.rows = status, said, notes
        begun = [row for row in notes if row["what"] == "begin"]
        self.begin, self.starts = begun[-1] if begun else None, len(begun)
        self.end = next((row for row in notes if row["what"] == "end"), None)
        self.losses = []
        for row in notes:  # of the last attempt
            if row["what"] == "begin":
                self.losses = []
            elif row["what"] == "loss":
                self.losses.append(row["value"])
        self.seconds = self.end["at"] - begun[0]["at"] if self.end else None
        self.cpu_seconds = self.end["cpu"] - begun[-1]["cpu"] if self.end else None
        self.peak, self.attempts, self.events, self.told = None, 1, [], {}

    def how(self):
        """How it ended, in words."""
        if self.status in (0, LATE):
            return f"not done in {PATIENCE_S} s" if self.status else "finished"
        if self.status < 0:
            return "killed" if self.status == -9 else f"signal {-self.status}"
        last = [line for line in self.said.splitlines() if line.strip()]
        for name in "OutOfMemoryError", "MemoryError", "can't allocate memory", "ResourceExhaustedError", "bad_alloc":
            if any(name in line for line in last[-40:]):
                return name
        return f"exit {self.status}"


def environment(gpu, **more):
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("ANTIFREEZE")}
    env.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TF_CPP_MIN_LOG_LEVEL="2", PYTHONDONTWRITEBYTECODE="1", **more)
    if gpu:
        env["NVIDIA_TF32_OVERRIDE"] = "0"  # its ten bits differ more from one size of batch to another than anything that is asked here
    else:
        env.update(OMP_NUM_THREADS=env.get("OMP_NUM_THREADS", "1"), CUDA_VISIBLE_DEVICES="")
    return env


def play(command, gpu=False, enter=None, more=None):
    with tempfile.TemporaryDirectory() as folder:
        notes = folder + "/notes"
        env = environment(gpu, NOTES=notes, XDG_STATE_HOME=folder, **(more or {}))
        try:
            r = subprocess.run(command, env=env, cwd=folder, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False, preexec_fn=enter)
            status, said = r.returncode, r.stdout
        except subprocess.TimeoutExpired:
            status, said = LATE, ""
        rows = []
        if os.path.exists(notes):
            with open(notes, encoding="utf-8") as file:
                rows = [json.loads(line) for line in file if line.endswith("\n")]
        return Played(status, said, rows)


# ---- held by the kernel alone ----

def own_groups():
    """Folders in which a cgroup may be made, with the names of its limits; the nearest first."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        rows = [line.rstrip("\n").split(":", 2) for line in file]
    for _, kinds, path in rows:
        version = 1 if "memory" in kinds.split(",") else 2 if not kinds else 0
        root = "/sys/fs/cgroup/memory" if version == 1 else "/sys/fs/cgroup"
        names = {1: ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), 2: ("memory.max", "memory.swap.max")}.get(version)
        while names:
            yield root + path.rstrip("/"), names
            if path in ("", "/"):
                break
            path = path.rpartition("/")[0]


@contextlib.contextmanager
def group(limit):
    """A cgroup with that limit of RAM and no swap; None: none can be made."""
    made = None
    for folder, (ram, swap) in own_groups():
        path = f"{folder}/antifreeze-bench-{os.getpid()}"
        if ram == "memory.max":  # version 2: groups in there have limits only where that is said; the root takes it, and who has no processes
            with contextlib.suppress(OSError), open(folder + "/cgroup.subtree_control", "w", encoding="ascii") as file:
                file.write("+memory")
        try:
            os.mkdir(path)
            with open(f"{path}/{ram}", "w", encoding="ascii") as file:
                file.write(str(limit))
            made = path
        except OSError:
            with contextlib.suppress(OSError):
                os.rmdir(path)
            continue
        with contextlib.suppress(OSError), open(f"{path}/{swap}", "w", encoding="ascii") as file:
            file.write(str(limit) if "memsw" in swap else "0")
        break
    yield made
    if made:
        with contextlib.suppress(OSError):
            os.rmdir(made)


def unguarded(command, budget, free):
    """The program under the same limit, without us. Gives it, and what held it."""
    with group(budget) as path:
        def enter():
            if path:
                with open(path + "/cgroup.procs", "w", encoding="ascii") as file:
                    file.write("0")
            else:  # of addresses: as much more than memory as the run without a limit had before its training
                limit = budget + free.begin["mapped"] - free.begin["now"]
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        return play(command, enter=enter), "cgroup" if path else "RLIMIT_AS"


# ---- with us ----

def adapted(antifreeze, command, budget, gpu, more=None):
    """budget None: what there is."""
    folder = tempfile.mkdtemp()
    try:
        options = ["--gpu-budget", str(budget)] if gpu else ["--budget", str(budget), "--swap", "0"] if budget else []
        one = play([antifreeze, "run", "--policy", "adapt", "--run-dir", folder + "/run", *options, "--", *command], gpu, more=more)
        with contextlib.suppress(OSError, ValueError), open(folder + "/run/verdict.json", encoding="utf-8") as file:
            verdict = json.load(file)
            one.peak, one.attempts = verdict["peak"]["ram_bytes"], verdict.get("attempts", 1)
        told = subprocess.run([antifreeze, "export", folder + "/run", "--format", "jsonl"], capture_output=True, text=True, check=False)
        for line in told.stdout.splitlines():
            if '"mark":"agent"' in line:
                one.events.append((json.loads(line)["name"], json.loads(line)["text"]))
            elif '"micro_count"' in line:  # figures of the process that trains; the last ones stay
                one.told = json.loads(line)["values"]
        if gpu and one.end:
            one.peak = one.end["gpu_reserved"]
        return one
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- what is told ----

def far(losses, others):
    return max((abs(a - b) / max(abs(b), 1e-9) for a, b in zip(losses, others)), default=None)


def spread(values):
    """The one in the middle, the least and the most."""
    return [statistics.median(values), min(values), max(values)] if values else None


def in_vain(one, steps, batch):
    """(batches through the model for gradients that were thrown away, how often memory ran out)"""
    ooms = sum(kind == "oom" for kind, _ in one.events)
    if not one.end or not one.end["kept"]:
        return None, ooms
    return one.end["kept"] / batch - steps, ooms


def measure(name, args):
    program = [args.python, "-B", f"{HERE}/adapt_programs/{PROGRAMS[name]}"]
    more = ON_GPU[name] if args.gpu else ALL_OF_IT[name] if args.all_of_it else []
    batch = int(more[more.index("--batch") + 1]) if more else BATCH[name]
    command = [*program, *more]
    kind = "gpu_" if args.gpu else ""
    rounds = []
    budget = None
    for _ in range(args.rounds):
        free = play(command, args.gpu)
        if not free.end:
            sys.exit(f"{name} does not run without a limit:\n{free.said[-3000:]}")
        need = free.end[kind + "most"] - free.begin[kind + "now"]
        if budget is None:  # of the first round: all are held to the same
            budget = free.end[kind + "most"] // TIMES if args.all_of_it else free.begin[kind + "now"] + need // TIMES
        held = adapted(args.build + "/antifreeze", command, budget, args.gpu)
        if args.gpu:
            limited = [args.python, "-B", f"{HERE}/adapt_programs/gpu_limit.py", str(budget), *command[2:]]
            dead, by = play(limited, True), "torch's limit"
        else:
            dead, by = unguarded(command, budget, free)
        if args.verbose:
            print(held.said[-6000:], *held.events, sep="\n")
        rounds.append((free, held, dead, by, need))
    return row_of(name, rounds, budget, batch, args.gpu)


def row_of(name, rounds, budget, batch, gpu):
    free, held = rounds[0][:2]
    steps = len(free.losses)
    vain = [in_vain(one, steps, batch) for _, one, _, _, _ in rounds]
    return {"program": name, "batch": batch, "need_bytes": statistics.median(r[4] for r in rounds), "budget_bytes": budget,
            "before_bytes": free.begin["gpu_now" if gpu else "now"],
            "steps": steps, "held_steps": min(len(r[1].losses) for r in rounds),
            "ended": [r[1].how() for r in rounds], "peak_bytes": max((r[1].peak or 0) for r in rounds),
            "attempts": max(r[1].attempts for r in rounds), "far": max((far(r[1].losses, r[0].losses) for r in rounds if r[1].losses), default=None),
            "vain": max((v[0] for v in vain if v[0] is not None), default=None), "ooms": max(v[1] for v in vain),
            "at_once": held.told.get("micro_count"), "gpu": gpu,
            "cpu_times": spread([r[1].cpu_seconds / r[0].cpu_seconds for r in rounds if r[1].end]),
            "times": spread([r[1].seconds / r[0].seconds for r in rounds if r[1].end]),
            "cpu_seconds": statistics.median(r[0].cpu_seconds for r in rounds),
            "unguarded": sorted({f"{r[2].how()} after {len(r[2].losses)} steps ({r[3]})" for r in rounds})}


def met(row):
    """What issue and promise are: it ends, with the same losses, within its budget; without us it does not. A recovery repeats at
    most one step."""
    return [word for word, is_true in (
        ("does not finish", set(row["ended"]) == {"finished"} and row["held_steps"] == row["steps"]),
        ("losses differ", row["far"] is None or row["far"] <= (ROUNDING_GPU if row["gpu"] else ROUNDING)),
        ("over its budget", row["peak_bytes"] <= row["budget_bytes"]),
        ("was started again", row["attempts"] == 1),
        ("repeats more than a step for each recovery", (row["vain"] or 0) <= max(1, row["ooms"])),
        ("survives without us", not any(word.startswith("finished") for word in row["unguarded"]))) if not is_true]


def show(row):
    mib = lambda n: f"{n / MIB:,.0f}"
    need, budget = row["need_bytes"], row["budget_bytes"]
    time = ", ".join("{:.2f} ({:.2f} to {:.2f})".format(*row[kind]) for kind in ("cpu_times", "times") if row[kind])
    vain = f"{row['vain']:.2f}, {row['ooms']}" if row["vain"] is not None else f"not counted, {row['ooms']}"
    ended = "" if set(row["ended"]) == {"finished"} else " (" + ", ".join(sorted(set(row["ended"]))) + ")"
    print(f"| {row['program']} | {mib(row['before_bytes'])} + {mib(need)} | {mib(budget)} | "
          f"{need / max(1, budget - row['before_bytes']):.1f}, {need / budget:.1f} | "
          f"{row['held_steps']} of {row['steps']}{ended} | {row['batch']} in {row['at_once'] or '?'} | {mib(row['peak_bytes'])} | "
          f"{'' if row['far'] is None else format(row['far'], '.1e')} | {vain} | {time} | {'; '.join(row['unguarded'])} | {', '.join(met(row)) or 'met'} |", flush=True)


def installed(python, module):
    look = f"import sys, importlib.util as u; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", look], check=False, capture_output=True).returncode == 0


def find_python(build):
    """As the tests do: what is named, what `make test-frameworks` has made, or this one."""
    made = build + "-frameworks/bin/python"
    return os.environ.get("AFZ_FRAMEWORKS_PYTHON") or (made if os.path.exists(made) else sys.executable)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--python", help="one that has the frameworks")
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--all-of-it", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    args.python = args.python or find_python(args.build)
    names = [name for name in args.only.split(",") if not (args.gpu and name == "keras")]
    for name in (n for n in names if n not in PROGRAMS):
        parser.error(f"no program {name}: {', '.join(PROGRAMS)}")
    if not args.json:
        print("| program | before the training + for it, MiB | budget, MiB | for it, over what is left for it; over the budget | "
              "steps | batch in parts of | most memory, MiB | losses differ by | in vain: batches, out of memory | "
              "times the processor time, the time | without us | |\n" + "| --- " * 12 + "|", flush=True)
    missed = False
    for name in names:
        if not installed(args.python, MODULES[name]):
            print(f"{args.python} has no {MODULES[name]}: {name} is left out", file=sys.stderr)
            continue
        row = measure(name, args)
        missed |= bool(met(row))
        print(json.dumps(row), flush=True) if args.json else show(row)
    sys.exit(missed)


if __name__ == "__main__":
    main()
