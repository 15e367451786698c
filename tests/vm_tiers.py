#!/usr/bin/python3
"""The tiers scope and cgroup2 on a real kernel: what is limited is limited, what is braked stands
still, what is killed is gone, and nothing is left. Runs inside tests/vm/vm, as root and as a user:

    vm_tiers.py HOLD_DRIVER

One line a check; exit status 1 when one failed.
"""
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

DRIVER = sys.argv[1]
ROOT = os.geteuid() == 0
MIB = 1 << 20
failed = 0

# Takes memory at once (argument: MiB), says so, and stays; with a second argument it forks first.
HOG = """
import os, sys, time
n = int(sys.argv[1]) << 20
if len(sys.argv) > 2 and os.fork():
    os.wait()
    time.sleep(1000)
b = bytearray(n)
for i in range(0, n, 4096):
    b[i] = 1 + i % 251
open(os.environ["MARK"], "w").close()
time.sleep(1000)
"""
# Counts in a file, without a pause.
COUNT = """
import os
fd = os.open(os.environ["MARK"], os.O_CREAT | os.O_WRONLY)
n = 0
while True:
    n += 1
    os.pwrite(fd, b"%d\\n" % n, 0)
"""
STORM = """
import os, time
open(os.environ["MARK"], "w").close()
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
"""
# Three children that sleep; their pids are in the file.
SERVER = """
import os, time
pids = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        b = bytearray(10 << 20)
        for i in range(0, len(b), 4096):
            b[i] = 1
        time.sleep(1000)
    pids.append(pid)
with open(os.environ["MARK"] + ".new", "w") as f:
    print(*pids, file=f)
os.rename(os.environ["MARK"] + ".new", os.environ["MARK"])
while True:
    try:
        os.wait()
    except ChildProcessError:
        time.sleep(1)
"""


def check(what, ok, seen=""):
    global failed
    failed += not ok
    print("ok  " if ok else "FAIL", what, seen, flush=True)


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.02)
    return condition()


class Hold:
    """A hold_driver and the words to it."""

    def __init__(self, tier, name, *options, program=None, args=(), attach=None):
        self.mark = tempfile.mktemp()
        env = dict(os.environ, MARK=self.mark)
        what = ["--", "python3", "-c", program, *args] if program else [f"attach={attach}"]
        self.id = f"{name}-{os.getpid()}"
        self.p = subprocess.Popen([DRIVER, tier, f"id={self.id}", *options, *what], env=env, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1)
        answer = self.p.stdout.readline().split()
        self.opened = bool(answer) and answer[0] == "ok"
        self.why = " ".join(answer)
        if self.opened:
            self.job = int(answer[1])
            if program:
                self.p.stdout.readline()
            self.place = self.say("place")[3:]

    def say(self, word):
        self.p.stdin.write(word + "\n")
        return self.p.stdout.readline().rstrip("\n")

    def look(self):
        return {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", self.say("look"))}

    def ready(self, seconds=60):
        return until(lambda: os.path.exists(self.mark), seconds)

    def file(self, name):
        with open(f"/sys/fs/cgroup{self.place}/{name}") as f:
            return f.read()

    def ended(self, seconds=20):
        got = []

        def ask():
            got.append(self.say("status"))
            return got[-1].startswith("ok")
        until(ask, seconds)
        return got[-1]

    def close(self):
        try:
            self.p.stdin.write("close\n")
            self.p.stdin.close()
        except BrokenPipeError:
            pass
        self.p.wait(30)
        if os.path.exists(self.mark):
            os.unlink(self.mark)

    def close_by_kill(self):
        self.say("kill")
        end = self.ended()
        self.close()
        return end


def leftovers():
    """Cgroups and units of ours, also failed ones."""
    def left():
        units = subprocess.run(["systemctl", *([] if ROOT else ["--user"]), "list-units", "--all", "--no-legend",
                                "--plain", "antifreeze-*-*.scope"], capture_output=True, text=True).stdout
        groups = [d for d in glob.glob("/sys/fs/cgroup/**/antifreeze-*", recursive=True) if "vm-job" not in d]
        return units.split("\n")[:-1] + groups
    until(lambda: not left(), 5)
    return left()


def limits_hold(tier):
    h = Hold(tier, "limit", f"ram={64 * MIB}", "swap=0", "keeper", program=HOG, args=["200"])
    end = h.ended(60)
    after = h.look()
    check(f"{tier}: the kernel ends what outgrows its limit", end == "ok signal 9", end)
    check(f"{tier}: and counts it, and tells at once", after["oom_kills"] >= 1 and h.say("oom") == "ok 0", after)
    peak = int(h.file("job/memory.peak"))
    check(f"{tier}: it never had more than the limit", peak <= 64 * MIB, peak)
    h.close()

    h = Hold(tier, "swap", f"ram={64 * MIB}", f"swap={64 * MIB}", program=HOG, args=["90"])
    check(f"{tier}: what swap allows fits", bool(h.ready(120)), h.say("status"))
    seen = h.look()
    check(f"{tier}: need counts what is in swap", 90 * MIB <= seen["need"] <= 110 * MIB and seen["swap"] > 20 * MIB, seen)
    h.close_by_kill()

    h = Hold(tier, "swapmax", f"ram={64 * MIB}", f"swap={16 * MIB}", "keeper", program=HOG, args=["200"])
    check(f"{tier}: swap is bounded too", h.ended(120) == "ok signal 9")
    h.close()


def whole_or_leaf(tier):
    for options, alive in (["parts"], True), ([], False):
        h = Hold(tier, "oom", f"ram={100 * MIB}", "swap=0", *options, program=SERVER)
        h.ready()
        with open(h.mark) as f:
            child = int(f.read().split()[0])
        h.say(f"split {child}")
        # A process that grows, moved beside the first one into the part.
        hog = subprocess.Popen(["python3", "-c", HOG, "200"], env=dict(os.environ, MARK=h.mark + "x"))
        moved = True
        try:
            with open(f"/sys/fs/cgroup{h.place}/job/part-0/cgroup.procs", "w") as f:
                f.write(str(hog.pid))
        except OSError:  # out of a session only root may take it
            moved = False
        if moved:
            hog.wait(60)
            time.sleep(0.2)
            what = "a part alone dies of it" if alive else "the job dies whole"
            check(f"{tier}: {what}", h.say("status").startswith("no") == alive)
            check(f"{tier}: with all that was in the part", not os.path.exists(f"/proc/{child}") or zombie(child))
        hog.kill()
        hog.wait()
        h.close_by_kill()


def zombie(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def counter(h):
    try:
        with open(h.mark) as f:
            return int(f.read() or 0)
    except (OSError, ValueError):
        return 0


def brake_stops(tier):
    h = Hold(tier, "brake", program=COUNT)
    until(lambda: counter(h) > 100)
    check(f"{tier}: brake", h.say("brake") == "ok 0")
    until(lambda: "frozen 1" in h.file("job/cgroup.events"), 2)
    before = counter(h)
    time.sleep(0.5)
    check(f"{tier}: a braked job stands still", before == counter(h), before)
    check(f"{tier}: it can be looked at meanwhile", h.look().get("processes") == 1)
    h.say("release")
    check(f"{tier}: and goes on", bool(until(lambda: counter(h) > before, 5)))
    h.say("brake")
    check(f"{tier}: a frozen job can be killed", h.close_by_kill() == "ok signal 9")


def kill_ends_a_storm(tier):
    for word in "keep", "forget":
        h = Hold(tier, "storm", "pids=150", "keeper", program=STORM)
        h.ready()
        until(lambda: h.look().get("processes", 0) >= 140)
        seen = h.look()
        if word == "forget":
            h.say("forget-kill")
        h.say("kill")
        gone = until(lambda: h.say("kill") and h.look().get("processes") == 0, 20)
        how = "cgroup.kill" if word == "keep" else "pidfds"
        check(f"{tier}: a fork storm is bounded", seen["processes"] <= 150, seen["processes"])
        check(f"{tier}: and gone after a kill by {how}", bool(gone), h.look())
        check(f"{tier}: nobody else is in it", h.say("other 0") == "ok 0")
        h.close()


def parts(tier):
    h = Hold(tier, "parts", "parts", program=SERVER)
    h.ready()
    with open(h.mark) as f:
        pids = [int(p) for p in f.read().split()]
    check(f"{tier}: a sub-job gets a leaf", h.say(f"split {pids[0]}") == "ok 0" and h.say(f"split {pids[1]}") == "ok 1")
    check(f"{tier}: a stranger does not", h.say("split 1").startswith("no"))
    check(f"{tier}: the leaf has the process", h.file("job/part-0/cgroup.procs").split() == [str(pids[0])])
    check(f"{tier}: its need is told", h.say("part 0").startswith("ok need="), h.say("part 0"))
    h.say("killpart 0")
    check(f"{tier}: it is killed alone", bool(until(lambda: zombie(pids[0]))) and not zombie(pids[1]) and
          h.say("status").startswith("no"))
    check(f"{tier}: its place is free again", bool(until(lambda: "populated 0" in h.file("job/part-0/cgroup.events"))) and
          h.say(f"split {pids[2]}") == "ok 0")
    h.close_by_kill()


def squeezing(tier):
    h = Hold(tier, "squeeze", f"ram={200 * MIB}", f"swap={100 * MIB}", program=HOG, args=["80"])
    h.ready(120)
    h.say("brake")
    start = time.monotonic()
    h.say(f"squeeze {40 * MIB}")
    took = time.monotonic() - start
    check(f"{tier}: squeeze does not wait", took < 0.2, f"{took * 1000:.0f} ms")
    got = until(lambda: h.look()["swap"] > 20 * MIB, 60)
    seen = h.look()
    check(f"{tier}: cold pages go to swap", bool(got), seen)
    check(f"{tier}: and need stays what it was", 80 * MIB <= seen["need"] <= 105 * MIB, seen["need"])
    check(f"{tier}: a live limit is proved", h.say(f"limit {150 * MIB} {100 * MIB}") == "ok 0" and
          int(h.file("job/memory.max")) == 150 * MIB)
    h.say(f"slow {120 * MIB}")
    check(f"{tier}: slow is memory.high", bool(until(lambda: h.file("job/memory.high").strip() == str(120 * MIB), 5)))
    h.say("slow")
    check(f"{tier}: and is lifted", bool(until(lambda: h.file("job/memory.high").strip() == "max", 5)))
    h.say("release")
    check(f"{tier}: what a look costs here", True, h.say("bench"))
    h.close_by_kill()


def guard_killed(tier):
    h = Hold(tier, "lost", f"ram={64 * MIB}", "swap=0", program=COUNT)
    until(lambda: counter(h) > 10)
    h.say("brake")
    h.p.kill()
    h.p.wait()
    check(f"{tier}: the limit outlives the guard", int(h.file("job/memory.max")) == 64 * MIB)

    def collect():
        return subprocess.run([DRIVER, "collect", h.place], capture_output=True, text=True).stdout.strip()
    check(f"{tier}: the collector leaves a living job alone", collect().startswith("no 16"))
    before = counter(h)
    check(f"{tier}: but thaws it", bool(until(lambda: counter(h) > before, 5)))
    os.kill(h.job, signal.SIGKILL)
    until(lambda: zombie(h.job))
    check(f"{tier}: and collects what it left", bool(until(lambda: collect() == "ok 0", 5)), collect())
    os.unlink(h.mark)


def attach(tier):
    mark = tempfile.mktemp()
    p = subprocess.Popen(["python3", "-c", HOG, "60", "fork"], env=dict(os.environ, MARK=mark))
    until(lambda: os.path.exists(mark), 60)
    with open(f"/proc/{p.pid}/cgroup") as f:
        origin = f.read()
    h = Hold(tier, "attach", f"ram={100 * MIB}", "swap=0", attach=p.pid)
    if not h.opened:
        check(f"{tier}: attach", False, h.why)
    else:
        inside = h.file("job/main/cgroup.procs").split()
        check(f"{tier}: attach takes the whole tree", len(inside) == 2 and str(p.pid) in inside, inside)
        seen = h.look()
        check(f"{tier}: its need is reckoned from its processes", seen.get("need", 0) > 50 * MIB, seen)
        h.close()
        with open(f"/proc/{p.pid}/cgroup") as f:
            now = f.read()
        if ROOT:
            check(f"{tier}: it is put back", now == origin, now)
        else:
            print("     ", now.strip(), flush=True)
    subprocess.run(["pkill", "-9", "-P", str(p.pid)])
    p.kill()
    p.wait()
    os.unlink(mark)


SCENES = limits_hold, brake_stops, kill_ends_a_storm, parts, whole_or_leaf, squeezing, guard_killed, attach


def main():
    only = sys.argv[2:]
    for tier in ("scope", "cgroup2") if ROOT else ("scope",):
        h = Hold(tier, "first", "weight=50", program=COUNT)
        check(f"{tier}: opens", h.opened, h.why)
        if not h.opened:
            continue
        check(f"{tier}: the weight is set", h.file("cpu.weight").strip() == "50" if
              os.path.exists(f"/sys/fs/cgroup{h.place}/cpu.weight") else True)
        h.close_by_kill()
        for scene in SCENES:
            if only and scene.__name__ not in only:
                continue
            scene(tier)
            check(f"{tier}: nothing is left after {scene.__name__}", not leftovers(), leftovers())
    if not ROOT:
        h = Hold("cgroup2", "user", program=COUNT)
        check("cgroup2: says why not", not h.opened and "no write access" in h.why, h.why)
    print(f"{failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
