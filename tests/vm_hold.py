#!/usr/bin/python3
"""`antifreeze run` on cgroup v2 and systemd, with real swap and a machine that can be filled: for the virtual machine.

    vm_hold.py ANTIFREEZE TIER...

What test_hold.py cannot ask for on a machine that others use: the whole memory, swap, scopes and their manager. Meant
for 1 GiB of RAM, as root or from a login session, with and without swap.
"""
import glob
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

from scenario import MB, PYTHON, Scenario, guard_of

MANAGER = [] if os.geteuid() == 0 else ["--user"]
world = Scenario(deadline=120, runtime=False)
check, until, environment, DEADLINE = world.check, world.until, world.environment, world.deadline

# Fills by faults of user space, at a rate; says how fast it was.
GROW = """
import ctypes, mmap, os, signal, sys, time
kept = []
def grow(total_mb, mb_per_s=0, piece=1 << 20):
    begin = time.monotonic()
    for i in range(total_mb):
        m = mmap.mmap(-1, piece, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(m)), i % 251 + 1, piece)
        kept.append(m)
        if i % 32 == 31: print('rate', round((i + 1) / (time.monotonic() - begin)), flush=True)
        ahead = (i + 1) / mb_per_s - (time.monotonic() - begin) if mb_per_s else 0
        if ahead > 0: time.sleep(ahead)
def touch():
    for m in kept:
        for at in range(0, len(m), 4096): m[at]
"""


def say(text):
    print(f"        [{world.tier}] {text}", flush=True)


def number(path, key=None):
    try:
        with open(path) as f:
            text = f.read()
    except OSError:
        return 0
    if key is None:
        return int(text) if text.strip() != "max" else 1 << 63
    return next((int(line.split()[1]) for line in text.splitlines() if line.split()[0].rstrip(":") == key), 0)


def meminfo(key):
    return number("/proc/meminfo", key) * 1024


def oom_kills():
    return number("/proc/vmstat", "oom_kill")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def run(code, *options):
    """To its end: (exit status, what was recorded, stdout, stderr)."""
    with tempfile.TemporaryDirectory(dir=world.state, ignore_cleanup_errors=True) as d:
        cmd = [PYTHON, "-c", GROW + code]
        p = subprocess.run([world.antifreeze, "run", "--run-dir", d, *options, "--", *cmd], capture_output=True, text=True,
                           timeout=DEADLINE, env=environment(), stdin=subprocess.DEVNULL)
        with open(os.path.join(d, "verdict.json")) as f:
            return p.returncode, json.load(f), p.stdout, p.stderr


class Job:
    """A run that is spoken to: each line on stdin is a Python statement, answered by a line."""

    def __init__(self, *options):
        self.dir = tempfile.mkdtemp(dir=world.state)
        loop = GROW + "print('pid', os.getpid(), flush=True)\nfor line in sys.stdin: exec(line); print('ok', flush=True)\n"
        self.p = subprocess.Popen([world.antifreeze, "run", "--run-dir", self.dir, *options, "--", PYTHON, "-c", loop],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=environment())
        self.pid = int(self.p.stdout.readline().split()[1])
        self.group = cgroup_of(self.pid)

    def say(self, statement):
        self.p.stdin.write(statement + "\n")
        self.p.stdin.flush()

    def answer(self):
        return next((line for line in iter(self.p.stdout.readline, "") if line == "ok\n"), "")

    def do(self, statement):
        self.say(statement)
        return self.answer()

    def file(self, name):
        """Of the group with the limits, which is above the leaf."""
        return os.path.join(os.path.dirname(self.group), name)

    def guard(self):
        return guard_of(self.p.pid)

    def end(self):
        """(exit status, what was recorded, stderr)"""
        err = self.p.communicate(timeout=DEADLINE)[1]
        try:
            with open(os.path.join(self.dir, "verdict.json")) as f:
                return self.p.returncode, json.load(f), err
        except OSError:
            return self.p.returncode, None, err


def cgroup_of(pid):
    with open(f"/proc/{pid}/cgroup") as f:
        return "/sys/fs/cgroup" + f.read().strip().split("::")[1]


def held():
    """Whether this tier has limits of the kernel."""
    return world.tier != "none"


def test_contained():
    j = Job("--budget", "300M", "--swap", "100M")
    if held():
        check("the limit stands", number(j.file("memory.max")) == 300 * MB, j.group)
        check("swap is bounded with it", number(j.file("memory.swap.max")) == 100 * MB, j.group)
        check("the kernel kills all or nothing", number(j.file("memory.oom.group")) == 1, j.group)
        check("processes are bounded", number(j.file("pids.max")) < 100000, j.group)
        check("the guard is outside", not cgroup_of(j.guard()).startswith(os.path.dirname(j.group)), cgroup_of(j.guard()))
    check("the job is the kernel's first choice", number(f"/proc/{j.pid}/oom_score_adj") == 800)
    j.p.stdin.close()
    j.p.stdin = None
    status, why, err = j.end()
    check("and ends as it likes", status == 0 and why["tier"] == world.tier, (status, why, err))


def test_growth_is_met_in_time():
    """Up to 500 MB/s the ladder is first, and the job is asked to save."""
    for rate in (50, 200, 500):
        before = oom_kills()
        status, why, out, err = run("signal.signal(signal.SIGUSR1, lambda *a: print('saved', flush=True))\n"
                                    f"grow(900, {rate})", "--checkpoint-signal", "USR1", "--budget", "500M", "--swap", "0")
        reached = [int(line.split()[1]) for line in out.splitlines() if line.startswith("rate")]
        say(f"growth asked for {rate} MB/s, was {max(reached, default=0)} MB/s: {why['end']['how']}, "
            f"peak {why['peak']['ram_bytes'] / MB:.0f} MB of 500, checkpoint {'made' if 'saved' in out else 'not made'}")
        check(f"a growth of {rate} MB/s ends with 75", status == 75, (status, err))
        check(f"at {rate} MB/s the ladder is first", why["end"]["how"] == "stopped" and oom_kills() == before, (why, err))
        check(f"at {rate} MB/s a checkpoint was asked for", why["did"].get("checkpoint", 0) >= 1, (why, err))


def test_kernel_was_first():
    """A guard that stands still: the kernel ends all of the job, and the guard explains it when it comes to."""
    if not held():
        return
    j = Job("--budget", "200M", "--swap", "0")
    j.do("child = os.fork() or (time.sleep(1000), os._exit(0))")
    j.do("open('/proc/self/comm').read()")
    with open(f"/proc/{j.pid}/task/{j.pid}/children") as f:
        child = int(f.read().split()[0])
    guard, before = j.guard(), oom_kills()
    os.kill(guard, signal.SIGSTOP)
    j.say("grow(600)")
    check("without a guard the kernel ends it at its limit", until(lambda: not alive(j.pid)), j.pid)
    check("and its child with it", until(lambda: not alive(child), 10), child)
    check("it was the kernel", oom_kills() > before, oom_kills())
    begin = time.monotonic()
    os.kill(guard, signal.SIGCONT)
    status, why, err = j.end()
    check("exit status 75", status == 75, (status, err))
    check("told as the kernel's deed", why["end"]["how"] == "oom-killed" and why["verdicts"][0]["id"] == "oom-killed", why)
    check("at once", time.monotonic() - begin < 10, time.monotonic() - begin)


def test_kernel_wakes_the_guard():
    """A part is killed within a calm job: the guard hears of it before its next look would be due."""
    if not held():
        return
    status, why, _, err = run("m = mmap.mmap(-1, 700 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000)\n"
                              "time.sleep(60)", "--budget", "200M", "--swap", "0")
    check("a fill by the kernel itself ends with 75", status == 75, (status, err))
    check("and is explained", why["end"]["how"] in ("stopped", "oom-killed"), why)


def test_swap_is_bounded():
    if not held() or meminfo("SwapTotal") < 300 * MB:
        return
    j = Job("--budget", "200M", "--swap", "200M")
    most = {"memory.current": 0, "memory.swap.current": 0}
    over = threading.Event()

    def watch():
        while not over.wait(.02):
            for name in most:
                most[name] = max(most[name], number(j.file(name)))
    w = threading.Thread(target=watch)
    w.start()
    check("what fits into RAM and swap fits", j.do("grow(300, 40)") == "ok\n", j.p.poll())
    check("it is all there", j.do("touch()") == "ok\n", j.p.poll())
    j.say("grow(600, 40)")
    status, why, err = j.end()
    over.set()
    w.join()
    say(f"RAM {most['memory.current'] / MB:.0f} MB and swap {most['memory.swap.current'] / MB:.0f} MB at most, of 200 and 200")
    check("what does not is stopped", status == 75 and why["end"]["how"] == "stopped", (status, why, err))
    check("swap was used", most["memory.swap.current"] > 50 * MB, most)
    check("and bounded with the memory", most["memory.swap.current"] <= 200 * MB and most["memory.current"] <= 200 * MB, most)


def test_neighbour_grows():
    """A browser-like neighbour takes half the RAM while the job holds 30 %: the job is slowed down, never ended."""
    total = meminfo("MemTotal") // MB
    j = Job("--json")
    check("the job has its 30 %", j.do(f"grow({total * 3 // 10}, 100)") == "ok\n")
    before = oom_kills()
    n = subprocess.Popen([PYTHON, "-c", GROW + f"grow({total // 2}, 60)\nprint('ok', flush=True)\n"
                          "end = time.monotonic() + 15\nwhile time.monotonic() < end: touch(); time.sleep(.5)\n"],
                         stdout=subprocess.PIPE, text=True)
    low = meminfo("MemAvailable")
    while n.poll() is None and j.p.poll() is None:
        low = min(low, meminfo("MemAvailable"))
        time.sleep(.1)
    goes_on = j.p.poll() is None and alive(j.pid) and j.do("touch()") == "ok\n"
    n.communicate(timeout=DEADLINE)
    check("the neighbour got its memory", n.returncode == 0, n.returncode)
    if j.p.stdin:
        j.p.stdin.close()
        j.p.stdin = None
    status, why, err = j.end()
    did = {k: v for k, v in why["did"].items() if v}
    say(f"swap {meminfo('SwapTotal') // MB} MB, least available {low // MB} MB, did {did}")
    check("the job goes on", goes_on and status == 0, (status, why, err))
    check("the kernel killed nobody", oom_kills() == before, oom_kills() - before)


def test_guard_and_front_killed():
    j = Job("--budget", "200M", "--swap", "0")
    for pid in (j.guard(), j.p.pid):
        os.kill(pid, signal.SIGKILL)
    j.p.wait()
    check("the job goes on without guard and front", alive(j.pid), j.pid)
    if held():
        check("in its limits", number(j.file("memory.max")) == 200 * MB, j.group)
    run("pass")
    check("another run does not disturb it", alive(j.pid) and (not held() or number(j.file("memory.max")) == 200 * MB))
    if held():
        j.say("grow(600)")
        check("the kernel holds it", until(lambda: not alive(j.pid)), j.pid)
    j.p.stdin.close()
    j.p.stdin = None
    until(lambda: not alive(j.pid))
    run("pass")
    base = os.path.dirname(os.path.dirname(j.group))
    check("the next run collects it", not held() or until(lambda: not os.path.exists(base), 10), base)
    with open(os.path.join(j.dir, "verdict.json")) as f:
        why = json.load(f)
    check("and its end is lost", why["end"]["how"] == "lost", why)
    j.end()


def test_logout():
    """systemd ends a session by signalling its processes one by one; in a scope the job is none of them, and hears of it
    all the same. Who was started with nohup lives on."""
    if os.geteuid() != 0 or world.tier == "cgroup2":  # a user has no cgroup2 here
        return
    for word, nohup in (("terminate-session", ""), ("terminate-user", ""), ("", "setsid nohup")):
        folder = tempfile.mkdtemp()
        os.chmod(folder, 0o777)
        job = f"echo $XDG_SESSION_ID $$ >{folder}/new && mv {folder}/new {folder}/ready; exec sleep 1000"
        p = subprocess.Popen(["runuser", "--login", "--command", f"ANTIFREEZE_TIER={world.tier} {nohup} {world.antifreeze} run -q --run-dir "
                              f"{folder}/run -- sh -c '{job}' {'& sleep 4' if nohup else ''}", "user"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not until(lambda: os.path.exists(f"{folder}/ready"), 60):
            check("a login session starts a job", False, os.listdir(folder))
            continue
        session, pid = read(f"{folder}/ready").split()
        if nohup:
            p.wait()
            time.sleep(12)  # logind stops a manager that nobody needs after 10 s
            check("a job under nohup outlives its session", alive(pid), pid)
            os.kill(int(pid), signal.SIGKILL)
        else:
            subprocess.run(["loginctl", word, session if word == "terminate-session" else "user"])
            check(f"{word} ends the job", until(lambda: not alive(pid), 20), pid)
            p.wait()
            end = until(lambda: json.loads(read(f"{folder}/run/verdict.json"))["end"], 20)
            check(f"{word} is recorded", end and end["how"] == "signal", end)
        until(lambda: not leftovers(), 15)


def units():
    r = subprocess.run(["systemctl", *MANAGER, "list-units", "--all", "--plain", "--no-legend", "antifreeze-*.scope"],
                       capture_output=True, text=True)
    return r.stdout.split("\n")[:-1]


def leftovers():
    found = units()
    for root, dirs, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(root, d) for d in dirs if d.startswith("antifreeze-") and not d.endswith(".service")]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "/nonexistent")
    return found + glob.glob(f"{runtime}/antifreeze/*.run") + glob.glob(f"{runtime}/antifreeze/*.sock")


def test_nothing_left():
    until(lambda: not leftovers(), 15)
    check("no scope, failed unit, cgroup, socket or run file is left", leftovers() == [], leftovers())
    left = [p for p in glob.glob("/proc/[0-9]*/comm") if "afz-" in read(p)]
    check("nor a process of ours", left == [], left)


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


world.play(globals())
