#!/usr/bin/python3
"""Runs cells inside the lab's machine, as root, one after the other: guest.py SECONDS CELL...

Prints `begin N`, `end N` around the time that counts (the host watches its own load meanwhile) and `result N JSON`.
Everything is set up before the clock runs; while it runs, this program only looks whether the job still lives, with
its own memory locked.
"""
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import beats  # noqa: E402
from cells import GUARDS, JOBS, parse  # noqa: E402

RUN = "/run/lab"  # tmpfs
OUT = "/out"  # the host's, where it wants recordings
BIN = "/opt/lab"  # the root disk, which is not slow: a program's own code is not what is measured
PROGRAMS = ("lab-job", "lab-neighbour", "lab-desktop", "antifreeze", "afz-trainer")
FAMILY = ("lab-job", "antifreeze", "afz-")  # what belongs to the job or to Antifreeze, by the name of the process
UID = 1000

BASELINE_S = 5  # beats on the idle machine, right before the job starts
CALM_NS = 60_000_000  # no beat of those may be later
CALM_WAIT_S = 20
AFTER_S = 2  # beats after the job's end that still count: what it left behind is its own
LOOK_S = .05
END_S = 20  # for a job that did not end in time, and what is written down about it


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def read(path, otherwise=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return otherwise


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def quiet(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)


def lock_memory():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(3) != 0:  # MCL_CURRENT | MCL_FUTURE
        raise OSError(ctypes.get_errno(), "mlockall")
    write("/proc/self/oom_score_adj", "-1000")


def processes():
    """{(pid, start time): name} of everything but kernel threads."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        match = re.match(r"(\d+) \((.*)\) \S (\d+) (?:\S+ ){17}(\d+) ", read(path), re.S)
        if match and match[3] != "2" and match[1] != "2":
            found[(int(match[1]), match[4])] = match[2]
    return found


def is_family(name):
    return name.startswith(FAMILY)


def vmstat(word):
    return int(re.search(rf"^{word} (\d+)$", read("/proc/vmstat"), re.M)[1])


class Machine:
    """What is the same for all cells of a boot."""

    def __init__(self):
        os.makedirs(RUN, exist_ok=True)
        os.chmod(RUN, 0o777)
        os.makedirs(BIN, exist_ok=True)
        for name in PROGRAMS:
            source = f"/share/{'lab-job' if name == 'lab-neighbour' else name}"
            if os.path.exists(source):
                shutil.copy(source, f"{BIN}/{name}")
        os.makedirs(f"{BIN}/probe", exist_ok=True)  # where Antifreeze looks for it
        shutil.copy("/share/libantifreeze-probe.so", f"{BIN}/probe")
        with open("/lab-4g", "wb") as file:  # holes: they fill the page cache like anything else, and need no disk
            file.truncate(4 << 30)
        self.swaps = [line.split() for line in read("/proc/swaps").splitlines()[1:]]
        # Somebody is logged in all the time, as on a desktop; so the user's manager and bus stay.
        self.keeper = subprocess.Popen(as_user("sleep", "infinity"), stdin=subprocess.DEVNULL)

    def clean(self):
        """As after boot: nothing of the last cell, swap empty, no cache."""
        for guard in GUARDS.values():
            if guard.service:
                quiet("systemctl", "stop", guard.service)
        # Units that name oomd, as Debian's user@.service does, start it again by themselves.
        quiet("systemctl", "mask", "--runtime", "--now", "systemd-oomd.service", "systemd-oomd.socket")
        kill_all(lambda name: is_family(name) or name in ("lab-desktop", "lab-neighbour"))
        for path in glob.glob("/dev/shm/*") + glob.glob(f"{RUN}/*"):
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.unlink(path)
        quiet("systemctl", "reset-failed")
        quiet("swapoff", "-a")
        quiet("sync")
        write("/proc/sys/vm/drop_caches", "3")
        for swap in self.swaps:
            priority = int(swap[4])
            quiet("swapon", *(["--priority", str(priority)] if priority >= 0 else []), swap[0])


def send(number, wanted):
    """To every process whose name is wanted; the oldest first, so that a storm of forks loses its root. Says whether there are any."""
    victims = sorted(pid for (pid, _), name in processes().items() if wanted(name))
    for pid in victims:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
    return bool(victims)


def kill_all(wanted):
    """Ends every process whose name is wanted."""
    for _ in range(50):
        if not send(signal.SIGKILL, wanted):
            return
        time.sleep(.2)


def as_user(*command):
    return ["choom", "--adjust", "0", "--", "runuser", "--login", "--command", 'exec "$@"', "--", "user", "bash",
            *command]


def scope_words(unit, *options):
    return ["choom", "--adjust", "0", "--", "systemd-run", "--quiet", "--scope", f"--unit={unit}", *options, "--"]


class Desktop:
    def __init__(self, number):
        self.path = f"{RUN}/desktop"
        # Where a login would be: in the slice of the user whose desktop it is.
        command = scope_words(f"lab-desktop-{number}", f"--slice=user-{UID}.slice")
        self.process = subprocess.Popen([*command, f"{BIN}/lab-desktop", self.path, "/disk/desktop", str(UID)])

    def beats(self):
        return beats.read(self.path)

    def alive(self):
        return self.process.poll() is None

    def wait_calm(self):
        """(beats of the idle machine, whether it was calm)."""
        give_up = now_ns() + (CALM_WAIT_S + 30) * 10**9
        while now_ns() < give_up and self.alive():
            time.sleep(.5)
            so_far = self.beats()
            if not so_far or so_far[-1][0] - so_far[0][0] < BASELINE_S * 10**9:
                continue
            last = [b for b in so_far if b[0] > so_far[-1][0] - BASELINE_S * 10**9]
            if max(end - due for due, end, _ in last) <= CALM_NS:
                return last, True
        return [b for b in self.beats() if b[0] > now_ns() - BASELINE_S * 10**9], False

    def wait_beat(self, after_ns, seconds):
        """Until a beat that was due after that time is through."""
        give_up = now_ns() + seconds * 10**9
        while now_ns() < give_up and self.alive():
            so_far = self.beats()
            if so_far and so_far[-1][0] > after_ns:
                return
            time.sleep(.1)


class Job:
    """The job behind its gate, with its guard around it."""

    def __init__(self, cell, number):
        guard, job = GUARDS[cell.guard], JOBS[cell.job]
        self.board, self.fifo, self.run_dir = f"{RUN}/job", f"{RUN}/gate", f"{RUN}/run"
        self.stderr = f"{RUN}/stderr"
        os.mkfifo(self.fifo)
        os.chmod(self.fifo, 0o666)
        write(self.board, "")
        os.chmod(self.board, 0o666)
        environment = ["env", f"PATH={BIN}:/usr/bin:/bin:/usr/sbin:/sbin", f"LAB_BOARD={self.board}"]
        command = [*job.command]
        if guard.tier:
            environment.append(f"ANTIFREEZE_TIER={guard.tier}")
            command = ["antifreeze", "run", "--run-dir", self.run_dir, *job.options, "--", *command]
        command = [*environment, "lab-job", "gate", self.fifo, *command]
        properties = [word for text in guard.properties for word in ("-p", text)]
        if cell.user == "root":
            command = [*scope_words(f"lab-job-{number}", *properties), *command]
        else:
            # An ordinary user may write only below the own manager, so that is where tier cgroup2 starts from.
            if guard.tier == "cgroup2":
                properties = ["-p", "Delegate=yes"]
            if properties:
                command = ["systemd-run", "--user", "--quiet", "--scope", f"--unit=lab-job-{number}", *properties,
                           "--", *command]
            command = as_user(*command)
        with open(self.stderr, "w", encoding="ascii") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        self.start_ns = self.end_ns = 0
        self.gate = self.wait_gate()

    def wait_gate(self):
        for _ in range(600):
            try:
                return os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(.1)
        raise RuntimeError(f"the job did not come to its gate: {read(self.stderr)}")

    def go(self):
        self.start_ns = now_ns()
        os.write(self.gate, b"x")
        os.close(self.gate)

    def wait(self, seconds):
        """True if it ended within that time."""
        give_up = self.start_ns + seconds * 10**9
        while self.process.poll() is None and now_ns() < give_up:
            time.sleep(LOOK_S)
        self.end_ns = now_ns()
        return self.process.returncode is not None

    def end(self):
        """As its user would do it, so that there is a verdict; and by force, where that takes too long."""
        if send(signal.SIGTERM, lambda name: name == "antifreeze"):
            try:
                self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                pass
        kill_all(is_family)

    def status(self):
        """As a shell has it; None while it runs."""
        code = self.process.returncode
        return 128 - code if code is not None and code < 0 else code

    def grown(self):
        try:
            with open(self.board, "rb") as file:
                _, size, first, last, forks = struct.unpack("5Q", file.read(40))
        except (OSError, struct.error):
            return {}
        rate = size / (last - first) * 1000 if last > first else None
        return {"grown_mb": round(size / 1e6), "rate_mb_s": rate and round(rate), "forks": forks}

    def keep(self, name):
        """The recording, where the host wants it."""
        if os.path.ismount(OUT) and os.path.isdir(self.run_dir):
            kept = f"{OUT}/{name.replace('/', '-')}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(self.run_dir, kept)

    def verdict(self):
        try:
            return json.loads(read(f"{self.run_dir}/verdict.json"))
        except ValueError:
            return None


class KernelLog:
    """The kernel's own words, from now on."""

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def victims(self):
        """Names of those the OOM killer took."""
        found = []
        while True:
            try:
                line = os.read(self.fd, 8192).decode(errors="replace")
            except BrokenPipeError:  # lines were overwritten before we read them
                continue
            except BlockingIOError:
                os.close(self.fd)
                return found
            found += re.findall(r"Killed process \d+ \((.*?)\)", line)


def last_word(cell, job, since):
    """What the guard said last, for whoever asks why."""
    if GUARDS[cell.guard].tier:
        lines = [line for line in read(job.stderr).splitlines() if line.startswith("antifreeze")]
        names = [verdict["id"] for verdict in (job.verdict() or {}).get("verdicts", [])]
        lines = [line for line in lines if any(line.startswith(f"antifreeze: {name}:") for name in names)] or lines
    elif GUARDS[cell.guard].service:
        text = quiet("journalctl", "--unit", GUARDS[cell.guard].service, "--since", f"@{since}", "--output=cat").stdout
        lines = [line for line in text.splitlines() if re.search(r"kill|sending SIG|terminat", line, re.I)]
    else:
        lines = []
    return lines[-1].strip() if lines else ""


def start_beside(cell, number):
    if JOBS[cell.job].beside:
        command = [f"{BIN}/{JOBS[cell.job].beside[0]}", *JOBS[cell.job].beside[1:]]
        subprocess.Popen([*scope_words(f"lab-beside-{number}", f"--slice=user-{UID}.slice"), *command])


def run_cell(machine, cell, number, seconds):
    guard = GUARDS[cell.guard]
    machine.clean()
    if guard.service:
        quiet("systemctl", "unmask", "--runtime", "systemd-oomd.service", "systemd-oomd.socket")
        started = quiet("systemctl", "start", guard.service)
        if started.returncode != 0:
            raise RuntimeError(f"{guard.service} did not start: {started.stdout}")
        time.sleep(3)  # for its own start to be over
    desktop = Desktop(number)
    job = Job(cell, number)
    idle, calm = desktop.wait_calm()
    since, before, kills, log = int(time.time()), processes(), vmstat("oom_kill"), KernelLog()
    print(f"begin {number}", flush=True)
    start_beside(cell, number)
    job.go()
    ended = job.wait(seconds)
    if not ended:
        job.end()
    desktop.wait_beat(job.end_ns + AFTER_S * 10**9, 60)
    print(f"end {number}", flush=True)

    after = processes()
    victims = log.victims()
    gone = [name for key, name in before.items()
            if key not in after and key[0] != job.process.pid and not is_family(name)]
    gone += [name for name in victims if not is_family(name) and name not in gone]
    late = [end - due for due, end, _ in idle]
    result = {
        "cell": cell.name, "calm": calm, "idle_worst_ms": round(max(late, default=0) / 1e6, 1),
        "idle_median_ms": round(statistics.median(late) / 1e6, 1) if late else None,
        # A job that we had to end ourselves answers for the time until then.
        **beats.figures(desktop.beats(), job.start_ns, job.end_ns + (AFTER_S * 10**9 if ended else 0)),
        "after_s": round((job.end_ns - job.start_ns) / 1e9, 1), "ended": ended, "status": job.status(),
        "oom_kill": vmstat("oom_kill") - kills, "kernel_victims": sorted(set(victims)), "else_died": sorted(set(gone)),
        "left": [] if not ended else sorted(name for name in after.values() if is_family(name)),
        "left_shm": [path for path in glob.glob("/dev/shm/*") if os.path.isfile(path)] if ended else [],
        **job.grown(), "verdict": job.verdict(), "said": last_word(cell, job, since),
        "stderr": read(job.stderr)[-2000:],
    }
    job.keep(cell.name)
    result["late_ms"] = round(result["worst_ms"] - result["idle_worst_ms"], 1)
    return result


def main(seconds, names):
    lock_memory()
    machine = Machine()
    for number, name in enumerate(names):
        try:
            result = run_cell(machine, parse(name), number, seconds)
        except (OSError, RuntimeError) as error:
            result = {"cell": name, "error": str(error)}
        print(f"result {number} {json.dumps(result)}", flush=True)
    machine.clean()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
