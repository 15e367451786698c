#!/usr/bin/python3
"""Kills a run at random moments, and looks at its recording: it opens, it is whole, and it ends where the run was killed.

    test_flight_kill.py ANTIFREEZE FLIGHT_DUMP [KILLS [AT ONCE [SEED]]]

Who is killed: the guard; guard and front; or all of it at once, the writer too. Whoever is left ends by himself, and nothing
is left behind. A machine that is late itself (measured meanwhile) is given that much more time.
"""
import concurrent.futures
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

ANTIFREEZE, FLIGHT_DUMP = map(os.path.abspath, sys.argv[1:3])
KILLS, AT_ONCE, SEED = [int(x) for x in sys.argv[3:6]] + [20, 4, time.time_ns() % 1000000][len(sys.argv[3:6]):]
LOST_MS = 1000      # what a kill may cost
SLACK_MS = 50       # between our killing and our looking at the clock
DEADLINE = 60       # seconds; a sanitizer build on a busy machine is slow
GONE = 2            # seconds, after which nobody of ours is there any more
WHO = {"guard": ("guard",), "guard and front": ("guard", "front"), "all": ("afz-writer", "guard", "front", "others")}
JOBS = {
    "sleep": ["sleep", "60"],
    "grow": [sys.executable, "-c", "import time\nx = []\nwhile len(x) < 4000: x.append(bytearray(1 << 14)); time.sleep(.002)"],
    "forks": ["sh", "-c", "while :; do sleep .05; done"],
}
problems = []
late = [0.]         # how late this machine was at worst, seconds, in the last moments


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def watch_lateness():
    recent = []
    while True:
        before = time.monotonic()
        time.sleep(.05)
        recent = recent[-59:] + [time.monotonic() - before - .05]
        late[0] = max(recent)


def stat_of(pid):
    """comm, state and parent; None: it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            head, tail = f.read().rsplit(")", 1)
    except OSError:
        return None
    return head.split("(", 1)[1], tail.split()[0], int(tail.split()[1])


def below(root):
    """{pid: comm} of all living ones below a process."""
    seen = {int(p): stat_of(int(p)) for p in os.listdir("/proc") if p.isdigit()}
    seen = {p: s for p, s in seen.items() if s and s[1] != "Z"}
    found, more = {}, [root]
    while more:
        parent = more.pop()
        for pid, (comm, _, above) in seen.items():
            if above == parent and pid not in found:
                found[pid] = comm
                more.append(pid)
    return found


def until(probe, seconds=DEADLINE):
    end = time.monotonic() + seconds
    while not (got := probe()) and time.monotonic() < end:
        time.sleep(.01)
    return got


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def lives(pid, comm):
    stat = stat_of(pid)
    return stat is not None and stat[0] == comm and stat[1] != "Z"


def reaped(pid):
    """Orphans come to us, and are let go of."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return stat_of(pid) is None


class Strike:
    def __init__(self, number, state, runtime):
        rng = random.Random(SEED * 100000 + number)
        self.number, self.name = number, f"kill {number} (seed {SEED})"
        self.who, self.job = rng.choice(list(WHO)), rng.choice(list(JOBS))
        self.after = rng.choice([rng.uniform(0, .1), rng.uniform(0, 1), rng.uniform(1, 3)])
        self.tier = rng.choice(["none", "scope"])  # the best there is
        self.folder = os.path.join(state, f"run-{number}")
        self.env = {**os.environ, "XDG_STATE_HOME": state, "XDG_RUNTIME_DIR": runtime, "ANTIFREEZE_TIER": self.tier}

    def bad(self, what):
        problems.append(f"{self.name}, {self.who}, {self.job}, tier {self.tier}, after {self.after:.2f} s: {what}")

    def dump(self, *args):
        return subprocess.run([FLIGHT_DUMP, *args], capture_output=True, text=True, timeout=DEADLINE, env=self.env, check=False)

    def start(self):
        self.front = subprocess.Popen([ANTIFREEZE, "run", "--budget", "512M", "--run-dir", self.folder, "--", *JOBS[self.job]],
                                      env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True)
        lines = []
        while not (lines and ("may use" in lines[-1] or lines[-1] == "")):
            lines.append(self.front.stderr.readline())
        threading.Thread(target=self.front.stderr.read, daemon=True).start()
        if lines[-1] == "":
            self.bad(f"did not start: {lines}")
            return False
        if not until(lambda: os.path.exists(os.path.join(self.folder, "flight.afz"))):
            self.bad("there is no recording")
            return False
        self.started_ns = int(self.dump("start", self.folder).stdout or 0)
        return self.started_ns > 0

    def strike(self):
        """Kills; returns when, in ms of the recording, and who of ours there was."""
        all_of_it = below(self.front.pid)
        guard = [p for p, comm in all_of_it.items() if comm == "afz-guard"]
        groups = {
            "guard": guard, "front": [self.front.pid],
            "afz-writer": [p for p, comm in all_of_it.items() if comm == "afz-writer"],
            "others": list(all_of_it),
        }
        at = boot_ns()
        for group in WHO[self.who]:
            for pid in groups[group]:
                kill(pid)
        return (at - self.started_ns) / 1e6, all_of_it

    def look(self, at_ms, late_ms):
        told = self.dump("read", self.folder)
        if told.returncode:
            self.bad(f"the recording does not open: {told.stderr.strip()}")
            return
        words = told.stdout.split()
        got = {k: int(v) for k, v in zip(words[::2], words[1::2])}
        lost_ms = at_ms - got["end_ms"]
        if lost_ms > LOST_MS + SLACK_MS + 2 * late_ms:
            self.bad(f"{lost_ms:.0f} ms are lost (the machine was late by {late_ms:.0f} ms): {got}")
        if lost_ms < -5000:
            self.bad(f"it goes on {-lost_ms:.0f} ms after the end: {got}")
        if got["holes"] or got["gaps"] or got["attempts"] != 1 and at_ms > LOST_MS:
            self.bad(f"not whole: {got}")
        if self.who != "all" and not got["ended"]:
            self.bad(f"not closed though the writer was left alive: {got}")
        self.lost_ms = lost_ms

    def play(self):
        self.lost_ms = None
        if not self.start():
            for pid in [*below(self.front.pid), self.front.pid]:
                kill(pid)
            self.front.wait(DEADLINE)
            return self
        time.sleep(self.after)
        at_ms, ours = self.strike()
        late_ms = late[0] * 1000
        helpers = {p: comm for p, comm in ours.items() if comm.startswith("afz-") or comm == "antifreeze-aide"}
        left = lambda: [f"{comm} {p}" for p, comm in helpers.items() if lives(p, comm)]
        until(lambda: not left(), GONE + 4 * late_ms / 1000)
        if left():
            self.bad(f"still there: {left()}")
        self.look(at_ms, max(late_ms, late[0] * 1000))
        for pid in ours:  # the job
            kill(pid)
        self.front.wait(DEADLINE)
        until(lambda: all(reaped(pid) for pid in ours), GONE)
        return self


def clean_up(state, runtime):
    """The next run collects what guards that were killed have left."""
    env = {**os.environ, "XDG_STATE_HOME": state, "XDG_RUNTIME_DIR": runtime}
    folder = os.path.join(runtime, "antifreeze")
    for _ in range(3):  # it may come so soon that a dying helper still holds a page, and then the one after
        subprocess.run([ANTIFREEZE, "run", "-q", "--", "true"], env=env, timeout=DEADLINE, check=True, stdin=subprocess.DEVNULL)
        left = [f for f in os.listdir(folder) if f.endswith((".run", ".sock"))]
        if not left:
            break
    if left:
        problems.append(f"left in the runtime folder: {left}")


def main():
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: so that what is orphaned is seen below us
    threading.Thread(target=watch_lateness, daemon=True).start()
    shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as state, tempfile.TemporaryDirectory(dir=shm, ignore_cleanup_errors=True) as runtime:
        os.chmod(runtime, 0o700)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            strikes = list(pool.map(lambda n: Strike(n, state, runtime).play(), range(KILLS)))
        clean_up(state, runtime)
    for who in WHO:
        lost = sorted(s.lost_ms for s in strikes if s.who == who and s.lost_ms is not None)
        if lost:
            print(f"{who}: {len(lost)} kills, lost {lost[len(lost) // 2]:.0f} ms in the middle, {lost[-1]:.0f} at most")
    for problem in problems:
        print(f"NOT OK  {problem}")
    print(f"{KILLS} kills, {len(problems)} problems, seed {SEED}")
    sys.exit(1 if problems else 0)


main()
