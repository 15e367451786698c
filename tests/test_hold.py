#!/usr/bin/python3
"""`antifreeze run` holds a job: what it does to one that outgrows its budget, and what it leaves alone.

    test_hold.py ANTIFREEZE [TIER...]

Each scenario is run in every tier that is to be had here (or those named), with budgets so small that the machine
never feels it.
"""
import concurrent.futures
import json
import os
import signal
import subprocess
import tempfile
import time

from scenario import MB, PYTHON, Scenario, child_called, guard_of

world = Scenario(deadline=90)
check, environment, DEADLINE = world.check, world.environment, world.deadline


def arguments(code, *options):
    cmd = [PYTHON, "-c", code] if isinstance(code, str) else code
    return [world.antifreeze, "run", *options, "--", *cmd]


class Run:
    """One run to its end: status, words, and what was recorded."""

    def __init__(self, code, *options, budget="200M"):
        self.dir = tempfile.mkdtemp(dir=world.state)
        r = subprocess.run(arguments(code, "--budget", budget, "--swap", "0", "--json", "--run-dir", self.dir, *options),
                           capture_output=True, text=True, timeout=DEADLINE, env=environment(), stdin=subprocess.DEVNULL)
        self.status, self.stdout, self.stderr = r.returncode, r.stdout, r.stderr
        self.words = []
        for line in r.stderr.splitlines():
            if line.startswith("{"):
                self.words.append(json.loads(line))
        self.events = [w["antifreeze"] for w in self.words]
        self.why = json.load(open(os.path.join(self.dir, "verdict.json")))
        self.did = self.why.get("did", {})

    def __repr__(self):
        return f"status {self.status}, {self.why['end']}, did {self.did}\n{self.stdout[-300:]}\n{self.stderr[-900:]}"


# A job that grows at a given rate, touching every page, and says how far it came.
GROW = """
import mmap, sys, time
def grow(total_mb, mb_per_s=0, piece=1 << 20):
    kept = []
    begin = time.monotonic()
    for i in range(total_mb):
        m = mmap.mmap(-1, piece, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for at in range(0, piece, 4096): m[at] = 1
        kept.append(m)
        ahead = (i + 1) / mb_per_s - (time.monotonic() - begin) if mb_per_s else 0
        if ahead > 0: time.sleep(ahead)
    return kept
"""


def test_leak_is_stopped():
    r = Run(GROW + "grow(2000, 100)")
    check("a leak ends with 75", r.status == 75, r)
    check("by the ladder", r.why["end"]["how"] == "stopped" and not r.did.get("kernel"), r)
    check("with a verdict", "host-exhaustion" in [v["id"] for v in r.why["verdicts"]] and "verdict" in r.events, r)
    check("told before", "warn" in r.events and r.events.index("warn") < r.events.index("verdict"), r)
    check("peak within its budget", 100 * MB < r.why["peak"]["ram_bytes"] <= 200 * MB, r)


def test_fits_is_left_alone():
    r = Run(GROW + "k = grow(120); time.sleep(.3); print('done')")
    check("a job that fits is not touched", r.status == 0 and r.stdout == "done\n" and not any(r.did.values()), r)
    check("and is called clean", r.why["verdicts"][0]["id"] == "clean", r)


def test_peak_that_fits():
    # Not faster: where looks come late, what grows faster than they do is stopped early.
    r = Run(GROW + "for i in range(3):\n    k = grow(160, 100); del k; time.sleep(.2)\nprint('done')")
    check("a short peak over the act line finishes", r.status == 0 and r.stdout == "done\n", r)


def test_burst():
    r = Run("b = bytearray(700 << 20)\nimport time; time.sleep(20)")  # more than a small machine has is refused at once
    check("a burst ends with 75", r.status == 75 and r.why["end"]["how"] in ("stopped", "oom-killed"), r)
    check("and is explained", {"host-exhaustion", "oom-killed"} & {v["id"] for v in r.why["verdicts"]}, r)


def test_ignores_term():
    r = Run("import signal\nfor s in (signal.SIGTERM, signal.SIGINT): signal.signal(s, signal.SIG_IGN)\n"
            + GROW + "grow(2000, 60)", "--grace", "1s")
    check("a job that ignores SIGTERM ends all the same", r.status == 75, r)


def test_finally_runs():
    r = Run(GROW + "try:\n    k = []\n    while True: k.append(grow(1, 12))\nfinally: print('saved', flush=True)", "--grace", "5s")
    check("where time allows, finally blocks run", r.status == 75 and "saved" in r.stdout, r)


def test_workers_share():
    """8 forked workers of a large parent are one parent, not nine."""
    code = GROW + ("import os\nk = grow(100)\npids = []\n"
                   "for i in range(8):\n    p = os.fork()\n    if p == 0:\n        time.sleep(1.5); os._exit(0)\n    pids.append(p)\n"
                   "for p in pids: os.waitpid(p, 0)\nprint('done')")
    r = Run(code)
    check("forked workers are counted once", r.status == 0 and r.stdout == "done\n", r)
    check("peak is the parent's", r.why["peak"]["ram_bytes"] < 180 * MB, r)


def test_workers_copy():
    """Workers that write to what they share copy it: that counts."""
    code = GROW + ("import os\nk = grow(60)\n"
                   "for i in range(8):\n    if os.fork() == 0:\n        for m in k:\n            for at in range(0, 1 << 20, 4096): m[at] = 2\n"
                   "            time.sleep(.01)\n        time.sleep(30)\ntime.sleep(30)")
    r = Run(code)
    check("copies of workers are counted and the whole job ends", r.status == 75, r)


# Ways to fill /dev/shm, at 100 MB a second. Other tests put files there, too: ours begin so.
PREFIX = f"afz-hold-{os.getpid()}-"
SHM = f"prefix = '{PREFIX}'" + """
import mmap, os, sys, tempfile, time
from multiprocessing import shared_memory
kept = []
def name(): return '%s%d-%d' % (prefix, os.getpid(), len(kept))
def pace(mb): time.sleep(mb / 100)
def write(f, mb):
    for i in range(mb): f.write(bytes(1 << 20)); f.flush(); pace(1)
def touch(m, mb):
    for i in range(mb):
        for at in range(i << 20, i + 1 << 20, 4096): m[at] = 1
        pace(1)
def written(mb):  # and never mapped
    f = open('/dev/shm/' + name(), 'wb'); kept.append(f); write(f, mb)
def nameless(mb):
    f = tempfile.TemporaryFile(dir='/dev/shm'); kept.append(f); write(f, mb)
def mapped(mb):
    s = shared_memory.SharedMemory(name(), create=True, size=mb << 20); kept.append(s); touch(s.buf, mb)
def unmapped(mb):  # filled, then let go of: it stays until somebody unlinks it
    mapped(mb); kept[-1].close()
def torch(mb):  # as it shares tensors: without name or descriptor
    path = '/dev/shm/' + name()
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600); os.ftruncate(fd, mb << 20)
    m = mmap.mmap(fd, mb << 20); os.unlink(path); os.close(fd); kept.append(m); touch(m, mb)
"""


def shm_left():
    return {f for f in os.listdir("/dev/shm") if f.startswith(PREFIX)}


def shm_clean():
    for f in shm_left():
        os.unlink(os.path.join("/dev/shm", f))


def test_shm_filled():
    for way in "written(1000)", "nameless(1000)", "mapped(1000)", "torch(1000)", "unmapped(120); mapped(1000)":
        r = Run(SHM + way)
        check(f"filling /dev/shm counts: {way}", r.status == 75, r)
        check(f"what the job left in /dev/shm is unlinked: {way}", not shm_left(), (shm_left(), r))
        told = [w["text"] for w in r.words if w["antifreeze"] == "swept"]
        check(f"and told: {way}", not way.startswith("written") or "removed 1 file (" in told[0], (told, r))
        shm_clean()


def test_shm_fits():
    """What is mapped, and by how many, is counted once."""
    for way in "written", "mapped", "torch":
        r = Run(SHM + f"{way}(110)\nfor i in range(3):\n    if os.fork() == 0:\n"
                "        if hasattr(kept[0], 'read') and kept[0].readable(): kept[0].read()\n"
                "        elif hasattr(kept[0], 'buf'): bytes(kept[0].buf[:1 << 20])\n"
                "        time.sleep(1.5); os._exit(0)\ntime.sleep(1.5)\nprint('done', flush=True); os._exit(0)")
        check(f"a job whose files in /dev/shm fit is left alone: {way}", r.status == 0 and r.stdout == "done\n", r)
        check(f"they are counted: {way}", 100 * MB < r.why["peak"]["ram_bytes"] < 180 * MB, r)
        shm_clean()


STRANGER = f"prefix = '{PREFIX}'" + """
import mmap, os, sys, time
for i, how in enumerate(('closed', 'open', 'mapped')):
    f = open('/dev/shm/' + prefix + 'stranger-' + how, 'wb+'); f.write(bytes(20 << 20)); f.flush()
    if how == 'mapped': m = mmap.mmap(f.fileno(), 0)
    if how != 'open': f.close()
    else: kept = f
    time.sleep(.2)
sys.stdin.read()
"""


def test_shm_of_others():
    """Another program of the same user makes files while the job runs: they are not the job's."""
    p = subprocess.Popen([PYTHON, "-c", "import time; time.sleep(.3)\n" + STRANGER], stdin=subprocess.PIPE)
    r = Run(SHM + "written(1000)")
    p.communicate(b"", timeout=DEADLINE)
    check("only the job's own files are unlinked", r.status == 75 and
          shm_left() == {PREFIX + "stranger-" + how for how in ("closed", "open", "mapped")}, (shm_left(), r))
    shm_clean()
    p = subprocess.Popen([PYTHON, "-c", STRANGER.replace("20 << 20", "150 << 20")], stdin=subprocess.PIPE)
    r = Run("import time; time.sleep(2); print('done')")
    check("and only they are counted", r.status == 0 and r.why["peak"]["ram_bytes"] < 100 * MB, r)
    p.communicate(b"", timeout=DEADLINE)
    shm_clean()


def test_shm_checkpoint():
    """A file that the job has finished is data, also in /dev/shm."""
    r = Run(SHM + "written(30); kept[0].close()\n" + GROW + "time.sleep(1); grow(2000, 100)")
    check("what the job has finished stays", r.status == 75 and len(shm_left()) == 1, (shm_left(), r))
    shm_clean()


def test_fork_storm():
    # Should nobody stop it, it stops by itself: a machine with a storm on it is hard to get back.
    code = ("import mmap, os, struct, time\nborn = mmap.mmap(-1, 8)\nend = time.monotonic() + 60\nwhile time.monotonic() < end:\n"
            "    n = struct.unpack('q', born)[0]\n    if n > 6000: time.sleep(1); continue\n    born[:] = struct.pack('q', n + 1)\n"
            "    try: os.fork()\n    except OSError: time.sleep(.01)\n")
    r = Run(code)
    check("a fork storm ends", r.status == 75, r)
    # What it left is dead by now, if not yet gone; our own writer, whose command line is the same, ends soon after.
    world.until(lambda: not alive(code), 10)
    check("with nothing left of it", alive(code) == [], alive(code))


def alive(code):
    return [p for p in os.listdir("/proc") if p.isdigit() and code[:40].encode() in cmdline(p)]


def cmdline(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:
        return b""


def test_checkpoint_signal():
    code = ("import signal\nsignal.signal(signal.SIGUSR1, lambda *a: print('saved', flush=True))\n" + GROW + "k = grow(150, 100); grow(2000, 12)")
    r = Run(code, "--checkpoint-signal", "USR1", "--checkpoint-wait", "1s")
    check("a checkpoint signal arrives before the end", r.status == 75 and "saved" in r.stdout, r)
    check("and is recorded", r.did.get("checkpoint", 0) >= 1, r)


def test_checkpoint_command():
    mark = os.path.join(world.state, "saved-by-command")
    r = Run(GROW + "k = grow(150, 100); grow(2000, 12)", "--checkpoint-cmd", f"touch {mark}")
    check("a checkpoint command runs", r.status == 75 and os.path.exists(mark), r)


def test_checkpoint_socket():
    code = ("import os, socket, threading\n"
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(os.environ['ANTIFREEZE_SOCKET'])\n"
            "s.send(b'hello agent 1 checkpoint'); print(s.recv(1024).decode().split()[0], flush=True)\n"
            "def serve():\n"
            "    while True:\n"
            "        w = s.recv(1024).decode().split()\n"
            "        if not w: return\n"
            "        if w[0] == 'checkpoint': print('asked', flush=True); s.send(f'saved {w[1]} /x/y.pt'.encode())\n"
            "threading.Thread(target=serve, daemon=True).start()\n" + GROW + "k = grow(150, 100); grow(2000, 12)")
    r = Run(code)
    check("an agent is asked to save over the socket", r.status == 75 and "welcome" in r.stdout and "asked" in r.stdout, r)
    check("and its answer is recorded", "/x/y.pt" in r.stderr or "/x/y.pt" in json.dumps(r.why), r)


def test_restart():
    code = GROW + "b, a = int(sys.argv[1]), int(sys.argv[2]); print('batch', b, 'accum', a, flush=True)\nk = grow(b * 10, 100); print('done')"
    r = Run([PYTHON, "-c", code, "{batch}", "{accum}"], "--batch", "64", "--restarts", "4")
    plans = [tuple(map(int, l.split()[1::2])) for l in r.stdout.splitlines() if l.startswith("batch")]
    check("started again, smaller, with the same product", plans == [(64, 1), (32, 2), (16, 4)], (plans, r))
    check("until it fits", r.status == 0 and r.stdout.endswith("done\n"), r)
    check("attempts are counted", r.did.get("restart") == 2, r)
    r = Run([PYTHON, "-c", code, "{batch}", "{accum}"], "--batch", "64", "--restarts", "1")
    check("at most N times", r.status == 75 and r.stdout.count("batch") == 2, r)


def test_watch_never_acts():
    r = Run(GROW + "k = grow(260); print('done')", "--policy", "watch")
    check("--policy watch never acts", r.status == 0 and r.stdout == "done\n", r)
    check("and sets no limits", r.why["tier"] == "none", r)


def test_set():
    """A live budget is raised, and the job that would have ended goes on."""
    p = subprocess.Popen(arguments(GROW + "print('ready', flush=True); sys.stdin.readline(); k = grow(400); print('done')",
                                   "--budget", "200M", "--swap", "0"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, env=environment())
    p.stdout.readline()
    runs = [str(guard_of(p.pid))]
    s = subprocess.run([world.antifreeze, "set", runs[0], "--budget", "900M"], capture_output=True, text=True, env=environment())
    check("set answers", s.returncode == 0, s)
    bad = subprocess.run([world.antifreeze, "set", runs[0], "--budget", "1M"], capture_output=True, text=True, env=environment())
    check("a budget below its need is refused", bad.returncode == 2 and "needs" in bad.stderr, bad)
    out, err = p.communicate("go\n", timeout=DEADLINE)
    check("a raised budget holds", p.returncode == 0 and out == "done\n", (out, err))


def test_guard_killed():
    d = tempfile.mkdtemp(dir=world.state)
    p = subprocess.Popen(arguments(GROW + "print('ready', flush=True); sys.stdin.readline(); k = grow(50); print('done'); sys.exit(9)",
                                   "--budget", "200M", "--swap", "0", "--run-dir", d),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    p.stdout.readline()
    os.kill(guard_of(p.pid), signal.SIGKILL)
    time.sleep(.2)
    out, err = p.communicate("go\n", timeout=DEADLINE)
    check("the job goes on when the guard is killed", out == "done\n" and p.returncode == 9, (out, err, p.returncode))
    subprocess.run(arguments(["true"]), env=environment(), capture_output=True)
    why = json.load(open(os.path.join(d, "verdict.json")))
    check("and its end is recorded as lost", why["end"]["how"] == "lost", why)


def test_guard_killed_at_the_end():
    """Between the end of the job and the word of it the guard waits for its writer, which stands still here."""
    p = subprocess.Popen(arguments("import os, sys; print(os.getpid(), flush=True); sys.stdin.readline(); sys.exit(9)"),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    job, guard = int(p.stdout.readline()), guard_of(p.pid)
    writers = [int(c) for c in open(f"/proc/{guard}/task/{guard}/children", encoding="ascii").read().split()
               if open(f"/proc/{c}/comm", encoding="ascii").read() == "afz-writer\n"]
    check("one writer", len(writers) == 1, writers)
    os.kill(writers[0], signal.SIGSTOP)
    p.stdin.write("go\n")
    p.stdin.flush()
    world.wait_for("the job is reaped", lambda: not os.path.exists(f"/proc/{job}"))
    os.kill(guard, signal.SIGKILL)
    os.kill(writers[0], signal.SIGCONT)
    out, err = p.communicate(timeout=DEADLINE)
    check("what a killed guard has reaped is known", p.returncode == 9, (out, err, p.returncode))


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def test_guard_killed_as_it_brakes():
    """Without a cgroup the brake is a SIGSTOP. The front is not to take it for its user's, and stop as well: nobody would wake it."""
    if world.tier != "none":
        return
    p = subprocess.Popen(arguments(GROW + "import os; print(os.getpid(), flush=True); k = grow(250, 60); sys.exit(9)", "--budget", "200M", "--swap", "0"),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    job, guard = int(p.stdout.readline()), guard_of(p.pid)
    aide = child_called("antifreeze-aide", guard)
    while state_of(job) != "T":
        time.sleep(.0005)
    for pid, sig in ((guard, signal.SIGSTOP), (aide, signal.SIGSTOP), (job, signal.SIGCONT), (job, signal.SIGSTOP), (guard, signal.SIGKILL)):
        os.kill(pid, sig)  # the second stop is seen by nobody but the front
    said = p.stderr.readline()
    while said and "the guard was killed" not in said:
        said = p.stderr.readline()
    time.sleep(.5)
    stopped = state_of(p.pid) == "T"
    check("the front does not stop for a brake", not stopped, said)
    os.kill(aide, signal.SIGCONT)
    os.kill(p.pid, signal.SIGCONT)
    err = p.communicate(timeout=DEADLINE)[1]
    check("the brake is lifted, and the job goes on to its end", p.returncode == 9, (p.returncode, err))


def test_guard_killed_contained():
    if world.tier == "none":
        return
    p = subprocess.Popen(arguments(GROW + "print('ready', flush=True); sys.stdin.readline(); k = grow(1000); print('done')",
                                   "--budget", "200M", "--swap", "0"),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    p.stdout.readline()
    os.kill(guard_of(p.pid), signal.SIGKILL)
    out, err = p.communicate("go\n", timeout=DEADLINE)
    check("without a guard the kernel still holds it", out == "" and p.returncode != 0, (out, err, p.returncode))


def test_attach():
    p = subprocess.Popen([PYTHON, "-c", GROW + "print('ready', flush=True); sys.stdin.readline(); grow(2000, 100)"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    a = subprocess.Popen([world.antifreeze, "attach", "--budget", "200M", "--swap", "0", str(p.pid)], stderr=subprocess.PIPE, text=True,
                         env=environment())
    first = a.stderr.readline()
    check("attach says what holds it", "may use" in first, first)
    p.stdin.write("go\n")
    p.stdin.flush()
    rest = a.communicate(timeout=DEADLINE)[1]
    check("an attached job is stopped at its budget", a.returncode == 75 and "host-exhaustion" in rest, rest)
    p.wait(DEADLINE)
    p = subprocess.Popen(["sleep", "300"])
    a = subprocess.Popen([world.antifreeze, "attach", str(p.pid)], stderr=subprocess.PIPE, text=True, env=environment())
    a.stderr.readline()
    a.send_signal(signal.SIGINT)
    a.communicate(timeout=DEADLINE)
    check("Ctrl-C lets it go", a.returncode == 0 and p.poll() is None, a.returncode)
    p.kill()
    p.wait()
    p = subprocess.Popen([PYTHON, "-c", GROW + "kept = grow(400, 1000); print('ready', flush=True); sys.stdin.readline()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    a = subprocess.Popen([world.antifreeze, "attach", str(p.pid)], stderr=subprocess.PIPE, text=True,
                         env=environment(SLURMD_NODENAME="node1", SLURM_MEM_PER_NODE="256"))
    first = a.stderr.readline()
    check("what the shell was granted is not the job's", "Slurm" not in first and "may use" in first, first)
    p.communicate("go\n", timeout=DEADLINE)
    a.communicate(timeout=DEADLINE)
    check("and the job lives", p.returncode == 0 and a.returncode == 0, (p.returncode, a.returncode))
    r = subprocess.run([world.antifreeze, "attach", "999999"], capture_output=True, text=True, env=environment())
    check("no such process: one line and 125", r.returncode == 125 and r.stderr.count("\n") == 1, r)


# The guard is its parent, and locks its memory when the job runs.
SHOWS_GUARD = """
import os, re, time
for _ in range(500):
    status = open(f"/proc/{os.getppid()}/status").read()
    kb = {name: int(value) for name, value in re.findall(r"^(Vm\\w+):\\s*(\\d+) kB", status, re.M)}
    if kb["VmLck"]: break
    time.sleep(.02)
print(kb["VmLck"], kb["VmPeak"])
"""
MAY_LOCK_KB = 8192  # an ordinary user
TO_SPARE_KB = 256  # for other versions of libc, and for what comes


def test_guard_is_locked():
    """All of it: who is paged out on a machine that pages saves nobody. The kernel counts its whole address space."""
    for policy in "protect", "adapt":
        r = Run(SHOWS_GUARD, "--policy", policy)
        locked, all_kb = map(int, r.stdout.split())
        if all_kb > 1 << 30:
            return  # a sanitizer's shadow
        check(f"{policy}: the guard is locked in memory", locked >= all_kb * .95, (locked, all_kb, r))
        check(f"{policy}: and small enough for an ordinary user", all_kb <= MAY_LOCK_KB - TO_SPARE_KB, all_kb)


def test_zz_nothing_left():
    world.run("true")  # collects what killed guards left
    world.nothing_left()


def play_all(scenes):
    """They mostly wait, so four at a time; but what fills /dev/shm or the table of processes is played alone."""
    alone = [scene for scene in scenes if any(word in scene[0] for word in ("shm", "storm", "zz"))]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(world.scene, [scene for scene in scenes if scene not in alone]))
    for scene in alone:
        world.scene(scene)


world.play(globals(), play_all)
