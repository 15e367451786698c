"""A program inside a cgroup that limits all of its memory, page cache and /dev/shm with it, and what it took there.

Both versions of cgroups; where none can be made the program runs without a limit, and is_held says so."""
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

import adapt

LIMIT = 2_000_000_000
LOOK_S = .02  # between two looks at memory
TICKS = os.sysconf("SC_CLK_TCK")
ANONYMOUS = {"rss", "anon", "shmem"}  # rows of memory.stat: version 1, version 2, both


def first_of(*paths):
    for path in paths:
        try:
            with open(path, encoding="ascii") as file:
                return file.read()
        except OSError:
            pass
    return None


def rows_of(text):
    return {name: int(value) for name, value in (line.split() for line in (text or "").splitlines() if len(line.split()) == 2)}


def cpu_seconds(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    except (OSError, IndexError):
        return None


class Watcher(threading.Thread):
    """Looks at a group while its program runs."""

    def __init__(self, folder, pid):
        super().__init__(daemon=True)
        self.folder, self.pid = folder, pid
        self.memory, self.cpu = [], []  # (when, bytes that no file backs), (when, seconds of all processes)
        self._gone, self._last = 0., {}  # of processes that are gone, and of those that are there
        self.stop = threading.Event()

    def run(self):
        turn = 0
        while not self.stop.wait(LOOK_S):
            now = time.monotonic()
            if self.folder:
                rows = rows_of(first_of(self.folder + "/memory.stat"))
                self.memory.append((now, sum(rows.get(name, 0) for name in ANONYMOUS)))
            if turn % 5 == 0:
                self.look_at_cpu(now)
            turn += 1

    def look_at_cpu(self, now):
        pids = (first_of(self.folder + "/cgroup.procs") if self.folder else str(self.pid)) or ""
        there = {pid: seconds for pid in pids.split() if (seconds := cpu_seconds(pid)) is not None}
        self._gone += sum(seconds for pid, seconds in self._last.items() if pid not in there)
        self._last = there
        self.cpu.append((now, self._gone + sum(there.values())))

    def cpu_between(self, begin, end):
        at = lambda moment: min(self.cpu, key=lambda row: abs(row[0] - moment), default=None)
        first, last = at(begin), at(end)
        if not first or last[0] <= first[0]:
            return None
        return (last[1] - first[1]) / (last[0] - first[0]) * (end - begin)


class Held:
    """One run: status, what it said and noted, and what it took."""

    def __init__(self, command, env, patience_s, limit=LIMIT):
        with tempfile.TemporaryDirectory() as folder, adapt.group(limit) as group:
            self.is_held = group is not None
            env = {**env, "NOTES": folder + "/notes", "TMPDIR": folder}
            enter = (lambda: enter_group(group)) if group else None
            with open(folder + "/said", "w+", encoding="utf-8", errors="replace") as said:
                child = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, preexec_fn=enter,
                                         start_new_session=True)
                watcher = Watcher(group, child.pid)
                watcher.start()
                try:
                    self.status = child.wait(patience_s)
                except subprocess.TimeoutExpired:
                    self.status = adapt.LATE
                finally:
                    end_all(group, child)
                    watcher.stop.set()
                    watcher.join()
                said.seek(0)
                self.said = said.read()
            self.rows = notes_of(folder + "/notes")
            self.watcher = watcher
            self.peak = max((size for _, size in watcher.memory), default=None)
            self.peak_all = peak_of(group)
            self.ooms = ooms_of(group)
            let_go(group)

    def row(self, what):
        return next((row for row in self.rows if row["what"] == what), None)

    def how(self):
        if self.row("end"):
            return "finished"
        if self.ooms or self.status == -signal.SIGKILL:
            return "killed: out of memory" if self.ooms else "killed"
        if self.status == adapt.LATE:
            return "too slow" if self.row("first") else "no batch came"
        last = [line for line in self.said.splitlines() if line.strip()]
        return last[-1].strip()[:160] if last else f"exit {self.status}"


def enter_group(group):
    with open(group + "/cgroup.procs", "w", encoding="ascii") as file:
        file.write("0")


def end_all(group, child):
    """The program, and the workers that it has left."""
    for _ in range(50):
        pids = [int(pid) for pid in (first_of(group + "/cgroup.procs") or "").split()] if group else []
        if child.poll() is None:
            pids.append(child.pid)
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        child.poll()
        time.sleep(.02)


def peak_of(group):
    """By the kernel's own count, page cache and all."""
    text = first_of(group + "/memory.max_usage_in_bytes", group + "/memory.peak") if group else None
    return int(text) if text else None


def ooms_of(group):
    return rows_of(first_of(group + "/memory.oom_control", group + "/memory.events")).get("oom_kill", 0) if group else 0


def let_go(group):
    """A dead group keeps what it has cached: of version 1 it can be told not to."""
    if group:
        try:
            with open(group + "/memory.force_empty", "w", encoding="ascii") as file:
                file.write("0")
        except OSError:
            pass


def notes_of(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def forget(path):
    """Out of the page cache."""
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names] if os.path.isdir(path) else [path]
    for name in paths:
        try:
            file = os.open(name, os.O_RDONLY)
        except OSError:
            continue
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
