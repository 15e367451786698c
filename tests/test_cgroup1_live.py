#!/usr/bin/python3
"""Tier cgroup1 on a real kernel: limited, braked, killed, and nothing left behind.

    test_cgroup1_live.py HOLD_DRIVER

Skipped where no cgroup v1 with the memory controller may be divided by us. The budgets are so small that the machine
never feels it.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

from scenario import Checks

DRIVER = os.path.abspath(sys.argv[1])
ALL = Checks(deadline=30)
check, wait_for, DEADLINE = ALL.check, ALL.wait_for, ALL.deadline
MB = 1 << 20
PYTHON = sys.executable


def cgroup_of(pid, controller):
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
        for line in file:
            _, names, path = line.rstrip("\n").split(":", 2)
            if controller in names.split(","):
                return path
    return None


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def leftovers(run):
    """Folders of this run in any tree."""
    return [os.path.join(at, name) for at, names, _ in os.walk("/sys/fs/cgroup") for name in names
            if name == "antifreeze-" + run]


class Hold:
    """A job in tier cgroup1, by its driver."""
    count = 0

    def __init__(self, code=None, *options):
        Hold.count += 1
        self.run = f"v1test-{os.getpid()}-{Hold.count}"
        cmd = ["--", PYTHON, "-c", code] if code else []
        self.process = subprocess.Popen([DRIVER, "cgroup1", "id=" + self.run, *options, *cmd], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.opened = self.process.stdout.readline().rstrip("\n")
        self.ok = self.opened.startswith("ok ")
        if self.ok:
            self.pid = int(self.opened.split()[1])
            if code:
                check("the job is let go", self.process.stdout.readline() == "ok 0\n")

    def word(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def look(self):
        return {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", self.word("look"))}

    def place(self, controller):
        """The folder in one tree."""
        for entry in self.word("place")[3:].split(";"):
            names, _, path = entry.partition(":")
            if controller in names.split(","):
                return f"/sys/fs/cgroup/{controller}{path}"
        return None

    def value(self, controller, file):
        with open(os.path.join(self.place(controller), file), encoding="ascii") as f:
            return f.read().strip()

    def close(self):
        self.process.stdin.close()
        said = self.process.stdout.read()
        self.process.wait()
        check("closed", said.endswith("ok closed\n"), said)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.close()
        check("no cgroup is left", not leftovers(self.run), leftovers(self.run))


def counter(path):
    return ("n = 0\nwith open(%r, 'w') as f:\n    while True:\n"
            "        n += 1; f.seek(0); f.write(str(n)); f.flush()\n" % path)


def read_number(path):
    with open(path, encoding="ascii") as f:
        return int(f.read() or 0)


def test_limits():
    code = "import time; x = bytearray(40 << 20); time.sleep(60)"
    with Hold(code, f"ram={200 * MB}", "swap=0", "pids=77", "weight=50") as h:
        check("the limit is the kernel's", h.value("memory", "memory.limit_in_bytes") == str(200 * MB))
        check("swap is bounded with it", h.place("memory") and (
            not os.path.exists(h.place("memory") + "/memory.memsw.limit_in_bytes")
            or h.value("memory", "memory.memsw.limit_in_bytes") == str(200 * MB)))
        check("the memory cgroup is ours", cgroup_of(h.pid, "memory").endswith("/antifreeze-" + h.run))
        if h.place("pids"):
            check("processes are bounded", h.value("pids", "pids.max") == "77")
        if h.place("cpu"):
            check("its share of the CPU is half", h.value("cpu", "cpu.shares") == "512")
        seen = wait_for("need is seen", lambda: (lambda p: p if p["need"] > 40 * MB else None)(h.look()))
        check("and only that", seen and seen["need"] < 80 * MB and seen["processes"] == 1 and seen["oom_kills"] == 0, seen)
        for ram, swap in ((300, 100), (100, 0), (100, 50), (400, 0), (150, 300)):
            check(f"the limit can become {ram} + {swap}", h.word(f"limit {ram * MB} {swap * MB}") == "ok 0")
            check("and it is so", h.value("memory", "memory.limit_in_bytes") == str(ram * MB))
        check("not below what is needed", h.word(f"limit {20 * MB} 0").startswith("no 16 "))
        check("what v1 cannot do is said", h.word(f"squeeze {MB}").startswith("no 95 ")
              and h.word(f"slow {MB}").startswith("no 95 "))
        check("a tick's look is cheap", int(re.search(r"median_ns=(\d+)", h.word("bench"))[1]) < 2_000_000)
        check("it can be killed", h.word("kill") == "ok 0")
        wait_for("and dies", lambda: h.word("status") == "ok signal 9")


def test_page_cache_is_no_need():
    with tempfile.NamedTemporaryFile(dir=os.environ.get("TMPDIR", "/var/tmp")) as big:
        big.write(bytes(1 << 20) * 100)
        big.flush()
        os.posix_fadvise(big.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        code = f"n = len(open({big.name!r}, 'rb').read(1))\nf = open({big.name!r}, 'rb')\nwhile f.read(1 << 20): pass\nimport time; time.sleep(60)"
        with Hold(code, f"ram={60 * MB}", "swap=0") as h:
            time.sleep(.3)
            seen = h.look()
            check("reading a file larger than the budget is no need", seen["need"] < 30 * MB and seen["oom_kills"] == 0, seen)
            h.word("kill")
            wait_for("gone", lambda: h.word("status") == "ok signal 9")


def test_kernel_kills_at_the_limit():
    with Hold("import time; time.sleep(.2); x = bytearray(300 << 20)", f"ram={64 * MB}", "swap=0") as h:
        check("no word of OOM yet", h.word("oom") == "ok 0")
        wait_for("the kernel tells of it", lambda: h.word("oom") == "ok 1")
        wait_for("it is killed", lambda: h.word("status") == "ok signal 9")
        seen = wait_for("its memory is back", lambda: (lambda p: p if p["need"] < 4 * MB else None)(h.look()))
        check("one kill is counted", seen and seen["oom_kills"] == 1 and seen["processes"] == 0, seen)
        check("the word is taken back when it was heard", h.word("oom") == "ok 0")


def test_brake():
    with tempfile.NamedTemporaryFile() as file, Hold(counter(file.name), f"ram={100 * MB}") as h:
        wait_for("it counts", lambda: read_number(file.name) > 100)
        check("braked", h.word("brake") == "ok 0")
        wait_for("frozen", lambda: h.value("freezer", "freezer.state") == "FROZEN")
        before = read_number(file.name)
        time.sleep(.1)
        check("it stands still", read_number(file.name) == before, (before, read_number(file.name)))
        check("released", h.word("release") == "ok 0")
        wait_for("it goes on", lambda: read_number(file.name) > before)
        h.word("brake")
        check("killed while braked", h.word("kill") == "ok 0")
        wait_for("and dies", lambda: h.word("status") == "ok signal 9")


def test_brake_is_lifted_at_the_end():
    with tempfile.NamedTemporaryFile() as file:
        h = Hold(counter(file.name), f"ram={100 * MB}")
        wait_for("it counts", lambda: read_number(file.name) > 100)
        h.word("brake")
        place = h.word("place")[3:]
        h.close()
        before = read_number(file.name)
        wait_for("a job that lives on is not left frozen", lambda: read_number(file.name) > before)
        check("and keeps its cgroup", leftovers(h.run))
        r = subprocess.run([DRIVER, "collect", place], capture_output=True, text=True, check=False)
        check("which nobody takes away", r.stdout.startswith("no 16 ") and leftovers(h.run), r)
        os.kill(h.pid, 9)
        wait_for("until it has ended", lambda: subprocess.run([DRIVER, "collect", place], capture_output=True, text=True,
                                                             check=False).stdout == "ok 0\n")
        check("no cgroup is left", not leftovers(h.run), leftovers(h.run))


def test_fork_storm():
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    with Hold(code, f"ram={1000 * MB}", "pids=300") as h:
        wait_for("it storms, up to its bound", lambda: h.look()["processes"] >= 295)
        check("it is bounded", h.look()["processes"] <= 300)
        check("it can be killed", h.word("kill") == "ok 0")
        wait_for("nobody is left", lambda: h.look()["processes"] == 0)
        wait_for("the root is dead", lambda: h.word("status") == "ok signal 9")
        check("nobody else is named", h.word("other 1") == "ok 0")


def test_survivors_are_named():
    code = "import os, time\nif os.fork() == 0: time.sleep(60)\n"
    with Hold(code, f"ram={100 * MB}") as h:
        wait_for("the job ends", lambda: h.word("status") == "ok exit 0")
        left = int(h.word(f"other {h.pid}").split()[1])
        check("who survives is named", left > 0 and cgroup_of(left, "memory").endswith(h.run), left)
        h.word("kill")
        wait_for("nobody is left", lambda: h.look()["processes"] == 0)


def test_parts():
    go = tempfile.mktemp()
    code = ("import os, time\nfor i in range(2):\n    if os.fork() == 0:\n        while not os.path.exists(%r): time.sleep(.01)\n"
            "        if i == 0: x = bytearray(30 << 20)\n        time.sleep(60)\ntime.sleep(60)\n" % go)
    with Hold(code, f"ram={200 * MB}", "swap=0", "parts") as h:
        wait_for("three run", lambda: h.look()["processes"] == 3)
        children = sorted(children_of(h.pid))
        check("one is split off", h.word(f"split {children[0]}") == "ok 0")
        check("and another", h.word(f"split {children[1]}") == "ok 1")
        check("a stranger is not", h.word(f"split {os.getpid()}").startswith("no 3 "))
        check("into a cgroup of its own", cgroup_of(children[0], "memory").endswith(h.run + "/part-0"))
        with open(go, "w", encoding="ascii"):
            pass
        wait_for("its need is its own", lambda: int(h.word("part 0").partition("need=")[2]) > 25 * MB)
        check("the other's is not", int(h.word("part 1").partition("need=")[2]) < 15 * MB)
        os.unlink(go)
        check("the whole has both", h.look()["need"] > 25 * MB and h.look()["processes"] == 3)
        check("one is killed alone", h.word("killpart 0") == "ok 0")
        wait_for("two go on", lambda: h.look()["processes"] == 2)
        check("namely the others", os.path.exists(f"/proc/{h.pid}") and cgroup_of(children[1], "memory"))
        h.word("kill")
        wait_for("nobody is left", lambda: h.look()["processes"] == 0)
        wait_for("the root is dead", lambda: h.word("status") == "ok signal 9")


def test_cgroups_of_the_job_itself():
    """A job that makes cgroups below ours is still held with all of them."""
    code = ("import os, time\nat = [l.rstrip().split(':', 2)[2] for l in open('/proc/self/cgroup') if ':memory:' in l][0]\n"
            "os.mkdir('/sys/fs/cgroup/memory' + at + '/inner')\n"
            "if os.fork() == 0: open('/sys/fs/cgroup/memory' + at + '/inner/cgroup.procs', 'w').write(str(os.getpid()))\n"
            "time.sleep(60)\n")
    with Hold(code, f"ram={100 * MB}") as h:
        wait_for("both are counted", lambda: h.look()["processes"] == 2)
        h.word("kill")
        wait_for("both are killed", lambda: h.look()["processes"] == 0)
        wait_for("the root is dead", lambda: h.word("status") == "ok signal 9")


def test_attach():
    code = ("import os, time\nx = bytearray(30 << 20)\nif os.fork() == 0:\n    x = bytearray(20 << 20)\nprint('ready', flush=True)\n"
            "time.sleep(60)\n")
    with subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE, start_new_session=True) as job:
        try:
            job.stdout.readline()
            job.stdout.readline()
            before = cgroup_of(job.pid, "memory")
            child, = children_of(job.pid)
            with Hold(None, f"attach={job.pid}", f"ram={200 * MB}", "swap=0") as h:
                check("attached", h.ok, h.opened)
                check("all of it is inside", all(cgroup_of(p, "memory").endswith(h.run) for p in (job.pid, child)))
                # A fork's share is known when its pages were read, a moment later.
                wait_for("what it had before counts", lambda: 45 * MB < h.look()["need"] < 120 * MB)
                check("and both are counted", h.look()["processes"] == 2)
                check("braked", h.word("brake") == "ok 0")
                wait_for("frozen", lambda: h.value("freezer", "freezer.state") == "FROZEN")
            check("put back where it was", cgroup_of(job.pid, "memory") == before == cgroup_of(child, "memory"))
            with open(f"/proc/{child}/stat", encoding="ascii") as f:
                check("and alive", f.read().split()[2] == "S")
        finally:
            os.killpg(job.pid, 9)


def main():
    with Hold("pass", f"ram={100 * MB}") as h:
        if not h.ok:
            h.process.communicate()  # it has nothing to close
            print(f"no cgroup v1 to be had: {h.opened}")
            sys.exit(77)
        wait_for("a short job ends", lambda: h.word("status") == "ok exit 0")
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
    ALL.finish()


if __name__ == "__main__":
    main()
