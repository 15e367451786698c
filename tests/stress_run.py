#!/usr/bin/python3
"""Starts and stops many runs, kills guards at random points, and counts what is left behind.

    stress_run.py ANTIFREEZE [--quick] [--only PART,...] [--tiers TIER,...] [--trainer PROGRAM] [--seed N]

Parts: cycles (start and stop, in many ways), guard (kill -9 of the guard), both (kill -9 of front and guard), clean
(jobs that fit are not touched), shared (two runs at once; workers that share a parent). Each in every tier that is to be
had here. `make stress` runs it whole; the test `run_stress` runs it --quick.
"""
import argparse
import concurrent.futures
import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

from stress_jobs import CLEAN_JOBS, GROW, WORKERS, clean_files

PYTHON = sys.executable
DEADLINE = 60  # seconds that anything may take
MIB = 1 << 20
KEPT = {"verdict.json", "verdict.txt", "flight.afz"}  # of a run that is over
TIERS = ("cgroup1", "none")
AMOUNT = {  # how often, in full and in the quick version
    "cycles": (1000, 30),
    "guard": (200, 8),
    "both": (50, 4),
    "clean": (50, 8),
}

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also under nohup
problems = []


def say(text):
    print(text, flush=True)


def bad(what):
    problems.append(what)
    say(f"NOT OK  {what}")


class World:
    """Folders of our own, and the means to tell our processes and cgroups from everybody else's."""

    def __init__(self, antifreeze, folder, runtime, tier):
        self.antifreeze, self.folder, self.runtime, self.tier = antifreeze, folder, runtime, tier
        self.tag = uuid.uuid4().hex
        self.states, self.cwd = f"{folder}/state", f"{folder}/cwd"
        self.count = 0
        for path in (self.states, self.cwd):
            os.mkdir(path)

    def environment(self, state):
        return {**os.environ, "ANTIFREEZE_TIER": self.tier, "XDG_RUNTIME_DIR": self.runtime, "XDG_STATE_HOME": state,
                "STRESS_TAG": self.tag, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C"}

    def new_state(self):
        self.count += 1  # one thread makes the plan of all runs
        return f"{self.states}/{self.count}"

    def start(self, command, options=(), state=None, **kw):
        state = state or self.new_state()
        return subprocess.Popen([self.antifreeze, "run", *options, "--", *command], env=self.environment(state),
                                cwd=self.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **kw)

    def run(self, command, options=(), state=None):
        p = self.start(command, ["-q", *options], state, stderr=subprocess.PIPE, text=True)
        _, err = p.communicate(timeout=DEADLINE)
        return p.returncode, err

    def ids(self):
        return {i for s in os.listdir(self.states) for i in listed(f"{self.states}/{s}/antifreeze/runs")}

    def ours(self):
        """Our living processes, and what came to us as the reaper of orphans."""
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if int(pid) != os.getpid() and f"STRESS_TAG={self.tag}".encode() in f.read():
                        found.append(f"process {pid} ({open(f'/proc/{pid}/comm').read().strip()})")
        return found

    def left(self):
        """All that should not be there once every run is over."""
        ids = self.ids()
        found = self.ours()
        found += [f"file {n} in the runtime folder" for n in listed(f"{self.runtime}/antifreeze") if n != "ledger.lock"]
        found += [f"cgroup {p}" for p in cgroups() if os.path.basename(p)[len("antifreeze-"):][:20] in ids]
        for folder in (f"/dev/shm/antifreeze-{os.getuid()}", f"/tmp/antifreeze-{os.getuid()}"):
            found += [f"{folder}/{n}" for n in listed(folder) if n[:20] in ids]
        found += [f"file {n} in the caller's folder" for n in listed(self.cwd)]
        for state in os.listdir(self.states):
            runs = f"{self.states}/{state}/antifreeze/runs"
            for run in listed(runs):
                found += [f"{run}/{n}" for n in listed(f"{runs}/{run}") if n not in KEPT]
                found += [f"{run} has no end" for v in [verdict_at(f"{runs}/{run}")] if v is None or v["end"] is None]
        return found

    def settle(self, seconds=15):
        """Waits until nothing is left; gives what is left all the same."""
        end = time.monotonic() + seconds
        while (found := self.left()) and time.monotonic() < end:
            time.sleep(.05)
        return found

    def verdict(self, state):
        runs = f"{state}/antifreeze/runs"
        folders = listed(runs)
        return verdict_at(f"{runs}/{folders[0]}") if len(folders) == 1 else None

    def forget(self):
        """So that a long session looks only at what is new."""
        shutil.rmtree(self.states)
        os.mkdir(self.states)


def listed(path):
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []


def verdict_at(folder):
    try:
        with open(f"{folder}/verdict.json", encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return None


def own_groups():
    """{controller: our folder} of cgroup v1; the job's are made beside us."""
    groups = {}
    for line in open("/proc/self/cgroup", encoding="utf-8"):
        _, names, path = line.rstrip("\n").split(":", 2)
        for name in filter(None, names.split(",")):
            folder = f"/sys/fs/cgroup/{name}{path}".rstrip("/")
            if os.path.isdir(folder):
                groups[name] = folder
    return groups


GROUPS = own_groups()


def cgroups():
    return [f"{folder}/{n}" for folder in GROUPS.values() for n in listed(folder) if n.startswith("antifreeze-")]


def python(code, *args):
    return [PYTHON, "-S", "-c", code, *map(str, args)]


# ---- cycles ----

def cycle_kinds():
    """name: how often, options, CMD, the statuses that are right."""
    sh = lambda text: ["sh", "-c", text]
    return {
        "true": (50, [], ["true"], {0}),
        "fails": (6, [], sh("exit 3"), {3}),
        "not found": (4, [], ["/no/such/program"], {127}),
        "crashes": (4, [], sh("ulimit -c 0; kill -SEGV $$"), {-11}),
        "killed": (4, [], sh("kill -9 $$"), {-9}),
        "children": (8, [], sh("for i in 1 2 3 4 5 6 7 8 9 10; do true & done; wait; exit 4"), {4}),
        "leaves one": (4, [], sh("sleep 0.05 & exit 5"), {5}),
        "leaves one that stays": (2, ["--grace", "50ms"], sh("sleep 300 & exit 6"), {6}),
        "a daemon": (2, ["--grace", "50ms"], sh("setsid sleep 300 & exit 0"), {0}),
        "dry run": (3, ["--dry-run"], ["true"], {0}),
        "ladder": (3, ["--budget", "48M", "--grace", "200ms"], python(GROW, 300, 200, 0), {75}),
        "ladder, at once": (2, ["--budget", "32M", "--grace", "0s"], python(GROW, 300, 4000, 0), {75}),
        "signalled": (8, [], sh("sleep 5"), {-15, -2, -1, -9}),
    }


def one_cycle(world, state, kind, seed):
    _, options, command, right = cycle_kinds()[kind]
    begin = time.monotonic()
    if kind != "signalled":
        rc, err = world.run(command, options, state)
        return rc in right, f"{kind}: ended with {rc}: {err.strip()}", time.monotonic() - begin
    rng = random.Random(seed)
    sig = rng.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    p = world.start(command, ["-q"], state, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(rng.random() * .03)
    (os.killpg if rng.random() < .5 else os.kill)(p.pid, sig)
    rc = p.wait(DEADLINE)
    return rc == -sig, f"{kind} {sig.name}: ended with {rc}", time.monotonic() - begin


def part_cycles(world, amount, rng):
    kinds = cycle_kinds()
    names = rng.choices(list(kinds), [k[0] for k in kinds.values()], k=amount)
    plan = [(world.new_state(), name, rng.random()) for name in names]
    times, begin = [], time.monotonic()
    for turn in range(0, amount, 10):  # one by one, and then four at a time
        some, alone = plan[turn:turn + 10], turn % 20 == 0
        with concurrent.futures.ThreadPoolExecutor(1 if alone else 4) as pool:
            for (_, name, _), (ok, text, seconds) in zip(some, pool.map(lambda p: one_cycle(world, *p), some)):
                if not ok:
                    bad(f"[{world.tier}] {text}")
                if alone and name == "true":
                    times.append(seconds)
    wall = time.monotonic() - begin
    found = world.settle()
    for f in found[:20]:
        bad(f"[{world.tier}] left after {amount} cycles: {f}")
    say(f"        [{world.tier}] {amount} cycles in {wall:.1f} s, {wall / amount * 1e3:.1f} ms each, of which `true` alone "
        f"{statistics.median(times or [0]) * 1e3:.1f} ms (median of {len(times)}); left behind: {len(found)}")


# ---- the guard is killed ----

def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def kill_surely(pid, parent):
    """By descriptor, and only if it is the child of whom it should be: a pid may have been used again."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            if int(f.read().rsplit(")", 1)[1].split()[1]) != parent:
                return False
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def is_braked(world, state, marker):
    """As the kernel has it."""
    if world.tier == "cgroup1":
        for run in listed(f"{state}/antifreeze/runs"):
            with contextlib.suppress(OSError):
                with open(f"{GROUPS['freezer']}/antifreeze-{run}/freezer.state", encoding="ascii") as f:
                    return f.read().strip() in ("FROZEN", "FREEZING")
        return False
    try:
        with open(marker, encoding="ascii") as f, open(f"/proc/{f.read()}/stat", encoding="ascii", errors="replace") as g:
            return g.read().rsplit(")", 1)[1].split()[0] in "Tt"
    except (OSError, IndexError):
        return False


def memory_of(state):
    """(highest use, limit) of the job's cgroup, which outlives its guard."""
    for run in listed(f"{state}/antifreeze/runs"):
        folder = f"{GROUPS['memory']}/antifreeze-{run}"
        with contextlib.suppress(OSError):
            return [int(open(f"{folder}/{n}", encoding="ascii").read())
                    for n in ("memory.max_usage_in_bytes", "memory.limit_in_bytes")]
    return None


NOTE = "import os, sys\nopen(sys.argv[4], 'w').write(str(os.getpid()))\n"


def victim_kinds(tier):
    """name: options, [MiB, MB/s, seconds at the top], seconds it takes, statuses that are right.

    To 172 MiB (and the interpreter's own 8) at a budget of 200 it is dosed and fits; it ends with 7. To 400 it does not fit."""
    budget = ["--budget", "200M"]
    kinds = {
        "short": (budget, [1, 0, 0], .01, {7}),
        "calm": (budget, [20, 0, .15], .2, {7}),
        "dosed": (budget, [172, 100, .1], .8, {7}),
    }
    if tier != "none":  # where nobody looks any more and the kernel holds nothing, it would just grow
        kinds["leak"] = (budget, [400, 200, 0], .8, {-9})
    return kinds


def aim(world, state, marker, kind, seconds, rng):
    """Waits for the moment to strike."""
    how = rng.random()
    if kind in ("dosed", "leak") and how < .6:
        end = time.monotonic() + 3
        while not is_braked(world, state, marker) and time.monotonic() < end:
            pass
        time.sleep(rng.random() * .01)
    elif how < .7:
        end = time.perf_counter() + rng.random() * .012  # all of the start lies in here
        while time.perf_counter() < end:
            pass
    else:
        time.sleep(rng.random() * seconds)


def strike(world, rng, number, both):
    """One run whose guard (and front) is killed. Gives what it was doing then, and what is wrong."""
    kinds = victim_kinds(world.tier)
    kind = rng.choice(list(kinds))
    options, args, seconds, right = kinds[kind]
    state, marker, wrong = world.new_state(), f"{world.folder}/marker-{number}", []
    done = f"{marker}.done"
    code = NOTE + GROW + f"\nopen({done!r}, 'w').close()\nsys.exit(7)"
    p = world.start(python(code, *args, marker), ["-q", "--grace", "1s", *options], state, stderr=subprocess.PIPE, text=True)
    while not children_of(p.pid) and p.poll() is None:
        pass
    guard = (children_of(p.pid) or [0])[0]
    aim(world, state, marker, kind, seconds, rng)
    ran, braked = os.path.exists(marker), is_braked(world, state, marker)
    if both:
        p.kill()
    hit = guard != 0 and kill_surely(guard, p.pid)
    if both:
        p.wait(DEADLINE)
        after_both(world, state, marker, done, kind, wrong)
    else:
        err = p.communicate(timeout=DEADLINE)[1]
        after_guard(world, state, marker, p.returncode, right, hit, err, wrong)
    phase = "over" if not hit else "braked" if braked else "running" if ran else "starting"
    for path in (marker, done):
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
    return f"{kind}, {phase}", phase, wrong


def check_limit(world, state, wrong):
    used = memory_of(state) if world.tier == "cgroup1" else None
    if used and used[0] > used[1]:
        wrong.append(f"used {used[0]} of {used[1]} bytes")


def after_guard(world, state, marker, rc, right, hit, err, wrong):
    ran = os.path.exists(marker)
    check_limit(world, state, wrong)
    if rc == 75 and (not hit or "stopped" in err):
        pass  # the ladder was first
    elif ran and rc not in right:
        wrong.append(f"ended with {rc}, not {right}: {err.strip()}")
    elif not ran and rc not in {125} | (right if not hit else set()):
        wrong.append(f"ended with {rc} before CMD ran: {err.strip()}")
    after_next_run(world, state, hit, wrong)


def after_both(world, state, marker, done, kind, wrong):
    """Nobody waits for the job now, and it may be frozen; the next run frees it."""
    rc, err = world.run(["true"])
    if rc != 0:
        wrong.append(f"the next run ended with {rc}: {err.strip()}")
    ran, end = os.path.exists(marker), time.monotonic() + 20
    while ran and time.monotonic() < end and any("python" in p for p in world.ours()):
        time.sleep(.01)
    check_limit(world, state, wrong)
    after_next_run(world, state, None, wrong)
    verdict = world.verdict(state)
    stopped = verdict and any(verdict["did"][k] for k in ("interrupt", "terminate", "kill"))  # before it was killed itself
    if ran and kind != "leak" and not stopped and not os.path.exists(done):
        wrong.append(f"the job did not come to its end: {verdict and verdict['did']}")


def after_next_run(world, state, hit, wrong):
    """The next run collects; it may come so soon that a dying helper still holds the page, and then the one after."""
    for _ in range(3):
        rc, err = world.run(["true"])
        if rc != 0:
            wrong.append(f"the next run ended with {rc}: {err.strip()}")
        found = world.settle(2)
        if not found:
            break
    wrong += [f"left: {f}" for f in found]
    verdict = world.verdict(state)
    how = verdict["end"]["how"] if verdict and verdict["end"] else None
    # Killed after its last word, its end is known, and no lie.
    if how in ("exit", "stopped", "oom-killed"):
        wrong.append("known")
    elif how != "lost" and not (hit is False and verdict is None):
        wrong.append(f"its end is recorded as {how}")


def part_kill(world, amount, rng, both):
    who = "front and guard" if both else "the guard"
    phases, known = {}, 0
    for number in range(amount):
        what, phase, wrong = strike(world, rng, number, both)
        phases[phase] = phases.get(phase, 0) + 1
        known += wrong.count("known")
        for w in wrong:
            if w != "known":
                bad(f"[{world.tier}] kill -9 of {who}, {number} ({what}): {w}")
        world.forget()
    say(f"        [{world.tier}] kill -9 of {who}, {amount} times: {phases}; ends that were known all the same: {known}")


# ---- jobs that fit ----

def check_clean(world, name, rc, err, state):
    verdict = world.verdict(state)
    if rc != 0 or verdict is None:
        bad(f"[{world.tier}] {name}: ended with {rc}: {err.strip()[-300:]}")
        return
    did = {k: v for k, v in verdict["did"].items() if v}
    if did or verdict["verdicts"][0]["id"] != "clean" or err.strip():
        bad(f"[{world.tier}] {name}: {did} {verdict['verdicts'][0]['id']}: {err.strip()[-300:]}; "
            f"peak {verdict['peak']['ram_bytes'] / MIB:.0f} of {verdict['budget_bytes'] / MIB:.0f} MiB")


def clean_run(world, name, job, budget):
    state = world.new_state()
    options = ["--budget", f"{budget}M"] if budget else []
    rc, err = world.run(job, options, state)
    check_clean(world, f"{name}{f' --budget {budget}M' if budget else ''}", rc, err, state)
    verdict = world.verdict(state)
    return verdict["peak"]["ram_bytes"] / MIB if verdict else 0


def part_clean(world, amount, trainer):
    """Each once without a budget, and once with one that leaves 15 % to spare over what it is known to need.

    Of a small budget the last 32 MiB are where the ladder begins, whatever the percentage (judge/lines.c)."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        clean_files(folder)
        jobs = CLEAN_JOBS(folder, PYTHON, trainer)
        runs = [(name, job, budget) for name, (need, job) in jobs.items() for budget in (0, max(int(need / .85), need + 32) + 1)]
        # A shorter list is spread over all kinds.
        chosen = [runs[i * len(runs) // amount] for i in range(amount)] if amount < len(runs) else runs
        peaks = {}
        for name, job, budget in chosen:
            peak = clean_run(world, name, job, budget)
            if budget:
                peaks[name] = f"{peak:.0f} of {budget}"
    found = world.settle()
    for f in found:
        bad(f"[{world.tier}] left after the clean runs: {f}")
    say(f"        [{world.tier}] {len(chosen)} clean runs; left behind: {len(found)}")
    say(f"        peaks in MiB: {peaks}")


# ---- two at once ----

def part_shared(world):
    state = world.new_state()
    rc, err = world.run(python(WORKERS, 500, 8), ["--budget", "1G"], state)
    check_clean(world, "8 workers that share a parent of 500 MB, --budget 1G", rc, err, state)
    verdict = world.verdict(state)
    say(f"        [{world.tier}] 8 workers that share a parent of 500 MB: peak "
        f"{verdict['peak']['ram_bytes'] / MIB if verdict else 0:.0f} MiB of 1024")
    # The second may be promised only what the first was not.
    states = [world.new_state(), world.new_state()]
    first = world.start(python(GROW, 300, 0, 2), ["-q", "--budget", "40%"], states[0], stderr=subprocess.PIPE, text=True)
    while children_of(first.pid) == [] or world.verdict(states[0]) is None:
        time.sleep(.005)
    rc, err = world.run(python(GROW, 300, 0, .5), [], states[1])
    check_clean(world, "the second of two runs", rc, err, states[1])
    rc, err = first.wait(DEADLINE), first.stderr.read()
    check_clean(world, "the first of two runs", rc, err, states[0])
    budgets = [v["budget_bytes"] if v else 0 for v in map(world.verdict, states)]
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if sum(budgets) > total * .95:
        bad(f"[{world.tier}] two runs were promised {budgets} of {total} bytes")
    say(f"        [{world.tier}] two runs at once: promised {[f'{b / MIB:.0f}' for b in budgets]} of {total / MIB:.0f} MiB")
    found = world.settle()
    for f in found:
        bad(f"[{world.tier}] left after two runs at once: {f}")


# ---- all of it ----

def is_offered(world):
    state = world.new_state()
    world.run(["true"], [], state)
    verdict = world.verdict(state)
    world.forget()
    return verdict is not None and verdict["tier"] == world.tier


def run_parts(world, args, rng):
    for part in args.only:
        amount = AMOUNT.get(part, (0, 0))[args.quick]
        if part == "cycles":
            part_cycles(world, amount, rng)
        elif part in ("guard", "both"):
            part_kill(world, amount, rng, part == "both")
        elif part == "clean":
            part_clean(world, amount, args.trainer)
        else:
            part_shared(world)
        world.forget()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("antifreeze")
    ap.add_argument("--quick", action="store_true")
    ap.add_argument("--only", type=lambda t: t.split(","), default=["cycles", "guard", "both", "clean", "shared"])
    ap.add_argument("--tiers", type=lambda t: t.split(","), default=list(TIERS))
    ap.add_argument("--trainer")
    ap.add_argument("--seed", type=int, default=int(time.time()))
    args = ap.parse_args()
    args.antifreeze = os.path.abspath(args.antifreeze)
    args.trainer = args.trainer and os.path.abspath(args.trainer)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what is orphaned comes to us
    say(f"seed {args.seed}")
    tried = 0
    for tier in args.tiers:
        # As a login has it: the runtime folder in memory, the rest on a disk.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as runtime:
            world = World(args.antifreeze, folder, runtime, tier)
            if not is_offered(world):
                say(f"        tier {tier} is not to be had here")
                continue
            tried += 1
            run_parts(world, args, random.Random(args.seed))
    if not tried:
        print("no tier can be tried here")
        sys.exit(77)
    say(f"{len(problems)} problems")
    sys.exit(1 if problems else 0)


main()
