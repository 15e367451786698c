#!/usr/bin/python3
"""Which line holds the memory: `antifreeze run` gives a job the probe, keeps its books, and `why` names the line.

    test_sites.py ANTIFREEZE TRAINER
"""
import glob
import json
import os
import signal
import subprocess
import sys
import time
import zipfile

from scenario import PYTHON, Checks, World, guard_of

ANTIFREEZE, TRAINER = map(os.path.abspath, sys.argv[1:3])
ALL = Checks(deadline=90)
check, until, DEADLINE = ALL.check, ALL.until, ALL.deadline
SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Runs(World):
    def program(self, text, name="job.py"):
        """A program, in which the line that counts says so."""
        with open(self.at(name), "w") as file:
            file.write(text)
        self.line = next((i + 1 for i, line in enumerate(text.splitlines()) if "# here" in line), 0)
        return self.at(name)

    def run(self, *args, options=(), **more):
        env = self.env
        self.env = {**env, **more}
        r = self.call(ANTIFREEZE, "run", *options, "--", *args)
        self.env = env
        return r

    def start(self, *args, options=()):
        return subprocess.Popen([ANTIFREEZE, "run", *options, "--", *map(str, args)], env=self.env, cwd=self.dir,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def verdicts(self):
        return json.loads(self.call(ANTIFREEZE, "why", "--json").stdout)["verdicts"]

    def where(self):
        """The line that a verdict names: file, line, function."""
        for verdict in self.verdicts():
            if verdict.get("where"):
                return verdict["where"]
        return {}

    def stacks(self):
        """At the peak: bytes by stack."""
        text = self.call(ANTIFREEZE, "export", "--format", "collapsed").stdout
        return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in text.splitlines()}

    def sites(self, kind="site"):
        """All that was recorded of sites: (name, values), by time."""
        text = self.call(ANTIFREEZE, "export", "--format", "jsonl").stdout
        rows = [json.loads(line) for line in text.splitlines()]
        return [(row["name"], row["values"]) for row in rows if row["type"] == "sample" and row["kind"] == kind]

    def share_of(self, line):
        stacks = self.stacks()
        return sum(v for k, v in stacks.items() if line in k.split(";")) / max(1, sum(stacks.values()))


KEEPS = {
    "a list": """
import time
kept = []
def step():
    kept.append(bytearray(1_000_000))  # here
def main():
    while True:
        step()
        time.sleep(.01)
main()
""",
    "small objects in a dict": """
import time
kept = {}
def label(i):
    return {n: b"%d" % n * 9 for n in range(3000)}  # here
def main():
    for i in range(10**9):
        kept[i] = label(i)
        time.sleep(.004)
main()
""",
    "strings through a library": """
import json, time
TEXT = json.dumps(["x%d" % n * 20 for n in range(20000)])
kept = []
def main():
    while True:
        kept.append(json.loads(TEXT))  # here
        time.sleep(.01)
main()
""",
}
NUMPY = """
import time
import numpy
kept = []
def features(n):
    return numpy.random.rand(n)  # here
while True:
    kept.append(features(100_000))
    time.sleep(.005)
"""


def test_python_lines():
    programs = dict(KEEPS)
    if subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True).returncode == 0:
        programs["numpy"] = NUMPY
    for what, text in programs.items():
        with Runs() as w:
            job = w.program(text)
            r = w.run(PYTHON, job, options=["--budget", "150M", "--swap", "0"])
            check(f"{what}: it is stopped", r.returncode == 75, r)
            where = w.where()
            check(f"{what}: the line is named", (where.get("file"), where.get("line")) == (job, w.line),
                  f"{where}, not {w.line}\n{w.stacks()}")
            name = f"job.py:{w.line}"
            plain, full = w.call(ANTIFREEZE, "why").stdout, w.call(ANTIFREEZE, "why", "--verbose").stdout
            check(f"{what}: why says so", name in plain, plain)
            check(f"{what}: with the stack, and the probe", "its stack" in full and "the probe was in" in full, full)
            w.call(ANTIFREEZE, "report", "-o", w.at("report.html"))
            check(f"{what}: so does the report", name in open(w.at("report.html")).read())
            check(f"{what}: nothing is left in the runtime folder", not glob.glob(w.at("run/antifreeze/*.probe")))


# Starts the job while the keeper of its books stands still, as on a machine that is all busy.
STANDS_STILL = """
import os, signal, sys
from scenario import child_called
keeper = child_called("afz-keeper", os.getppid())
os.kill(keeper, signal.SIGSTOP)
os.execv(sys.executable, [sys.executable, *sys.argv[1:], str(keeper)])
"""


def test_keeper_is_late():
    with Runs() as w:
        job = w.program("import os, signal, sys\nos.kill(int(sys.argv[1]), signal.SIGCONT)\n" + KEEPS["a list"])
        r = w.run(PYTHON, "-c", STANDS_STILL, job, options=["--budget", "150M", "--swap", "0"], PYTHONPATH=os.path.join(SOURCE, "tests"))
        check("a late keeper: it is stopped", r.returncode == 75, r)
        where = w.where()
        check("the line is named all the same", (where.get("file"), where.get("line")) == (job, w.line), (where, r.stderr))


def line_of(file, text):
    for i, line in enumerate(open(os.path.join(SOURCE, file))):
        if text in line:
            return i + 1
    raise AssertionError(text)


def test_native_lines():
    with Runs() as w:
        r = w.run(TRAINER, "--retain-history=4M", options=["--budget", "150M", "--swap", "0"])
        check("the trainer is stopped", r.returncode == 75, r)
        full = w.call(ANTIFREEZE, "why", "--verbose").stdout
        if "libdw" not in w.call(ANTIFREEZE, "doctor").stdout and "pitfalls.c" not in full:
            print("# no libdw: native lines are not looked for")
            return
        line = line_of("demo/pitfalls.c", "malloc(sizeof(*kept)")
        check("its line is named", f"pitfalls.c:{line} in keep()" in full, full)
        where = w.where()
        check("and in the verdict", where.get("file", "").endswith("pitfalls.c") and where.get("line") == line, where)


GROWS = """
import os, sys, time
kept = []
for i in range(20):
    kept.append(bytearray(2_000_000))  # here
    time.sleep(.005)
print(os.getpid(), flush=True)
time.sleep(600)
"""


def grown(w, p):
    """The job has all it wants, and two looks have seen it."""
    pid = int(p.stdout.readline())
    time.sleep(3)
    return pid


def test_job_is_killed():
    with Runs() as w:
        with w.start(PYTHON, w.program(GROWS)) as p:
            os.kill(grown(w, p), signal.SIGKILL)
            p.wait(DEADLINE)
        last = dict(w.sites()).get(f"job.py:{w.line}", {})
        check("what a killed job held is known", 35e6 < last.get("live_bytes", 0) < 45e6, w.sites())
        check("in one process", last.get("processes_count") == 1, last)


def below(pid):
    """The process and all below it."""
    found = [pid]
    for pid in found:
        for task in glob.glob(f"/proc/{pid}/task/*/children"):
            try:
                found += map(int, open(task).read().split())
            except OSError:
                pass
    return found


def test_everything_is_killed():
    with Runs() as w:
        with w.start(PYTHON, w.program(GROWS)) as p:
            grown(w, p)
            for pid in below(p.pid):
                os.kill(pid, signal.SIGKILL)
            p.wait(DEADLINE)
        check("what it held is known though nobody is left",
              until(lambda: 35e6 < dict(w.sites()).get(f"job.py:{w.line}", {}).get("live_bytes", 0) < 45e6), w.sites())


def test_guard_is_killed():
    """The keeper has last words: what came after its last look is in them."""
    with Runs() as w:
        job = w.program("""
import os, sys, time
kept = [bytearray(2_000_000) for i in range(10)]
print(os.getpid(), flush=True)
sys.stdin.readline()
kept += [bytearray(2_000_000) for i in range(10)]  # here
print("grown", flush=True)
time.sleep(600)
""")
        p = subprocess.Popen([ANTIFREEZE, "run", "--", PYTHON, job], env=w.env, cwd=w.dir, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        pid = int(p.stdout.readline())
        time.sleep(1.5)
        p.stdin.write("go\n")
        p.stdin.flush()
        p.stdout.readline()
        os.kill(guard_of(p.pid), signal.SIGKILL)
        check("its last words are in the recording",
              until(lambda: dict(w.sites()).get(f"job.py:{w.line}", {}).get("live_bytes", 0) > 15e6, 10), w.sites())
        os.kill(pid, signal.SIGKILL)
        p.wait(DEADLINE)
        p.stdin.close()
        p.stdout.close()


SHOW = "import os; print(os.environ.get('LD_PRELOAD'), os.environ.get('ANTIFREEZE_PROBE')); " \
       "print(any('antifreeze-probe' in line for line in open('/proc/self/maps')))"


def test_left_out():
    with Runs() as w:
        r = w.run(PYTHON, "-c", SHOW, options=["--no-probe"])
        check("--no-probe: nothing is loaded", r.stdout == "None None\nFalse\n", r.stdout)
        full = w.call(ANTIFREEZE, "why", "--verbose").stdout
        check("and why says so", "left out: --no-probe" in full, full)
        check("there are no sites", w.sites() == [])
        r = w.call(ANTIFREEZE, "export", "--format", "pprof", "-o", "none.pb")
        check("a profile of none is not written", r.returncode == 2 and "without the probe" in r.stderr, r.stderr)
        r = w.run(PYTHON, "-c", SHOW)
        check("else it is", r.stdout.splitlines()[1] == "True", r.stdout)


def test_preload_is_kept():
    libc = next(line.split()[-1] for line in open("/proc/self/maps") if "libc.so" in line or "libc-2" in line)
    with Runs() as w:
        # A build with the address sanitizer does not start behind another library unless it is told to.
        r = w.run(PYTHON, "-c", SHOW, LD_PRELOAD=libc, ASAN_OPTIONS="verify_asan_link_order=0")
        preload = r.stdout.split()[0].split(":")
        check("what was in LD_PRELOAD stays", preload[-1] == libc and "antifreeze-probe" in preload[0], r)
        job = w.program("import os, sys\nprint(os.environ['LD_PRELOAD'])\n")
        r = w.run(ANTIFREEZE, "run", "-q", "--", PYTHON, job)
        check("a run inside a run loads it once", r.stdout.count("antifreeze-probe") == 1, r)


def test_trees():
    """Processes that fork, and that exec, stand at the same line: one site."""
    with Runs() as w:
        job = w.program("""
import glob, os, subprocess, sys, time
def work():
    kept = [bytearray(2_000_000) for i in range(10)]  # here
    open(f"{__file__}.{os.getpid()}", "w").close()
    while len(glob.glob(__file__ + ".*")) < 4: time.sleep(.02)  # all are there at once, on a busy machine too
    time.sleep(2.5)
if len(sys.argv) > 1:
    work()
else:
    children = [subprocess.Popen([sys.executable, __file__, "x"]) for i in range(2)]
    for i in range(2):
        if os.fork() == 0:
            work()
            os._exit(0)
    for child in children:
        child.wait()
    for i in range(2):
        os.wait()
""")
        r = w.run(PYTHON, job)
        check("the tree ends well", r.returncode == 0, r)
        seen = [v for name, v in w.sites() if name == f"job.py:{w.line} in work()"]
        both = [v for v in seen if v["processes_count"] == 2 and 39e6 < v["live_bytes"] < 41e6]
        check("two that were forked are one site, and so are two that were started", len(both) >= 2, seen)


# A process that says of its own book that a thread is inside, and dies of a fault.
DIES_INSIDE = """
import os
base = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "antifreeze-book" in line)
with open("/proc/self/mem", "r+b", 0) as mem:
    mem.seek(base + 320)
    mem.write((1).to_bytes(8, "little"))
os.abort()
"""


def test_death_inside():
    with Runs() as w:
        job = w.program(DIES_INSIDE)
        r = w.run(PYTHON, job)
        check("it dies", r.returncode == -signal.SIGABRT, r)
        check("and it is said", "goes without" in r.stderr, r.stderr)
        w.program(SHOW.replace("; ", "\n"))
        r = w.run(PYTHON, job)
        check("the next run is without, and says so", r.stdout.splitlines()[1] == "False" and "left out" in r.stderr, r)
        other = w.program(SHOW.replace("; ", "\n"), "other.py")
        r = w.run(PYTHON, other)
        check("another command is not", r.stdout.splitlines()[1] == "True", r)
        os.remove(w.at("state/antifreeze/probe-left-out"))
        r = w.run(PYTHON, job)
        check("without the note it is there again", r.stdout.splitlines()[1] == "True", r)


def test_untouched_memory():
    """What is reserved and never touched is not held."""
    with Runs() as w:
        job = w.program("""
import mmap, time
m = mmap.mmap(-1, 500_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # here
for at in range(0, 50_000_000, 4096):
    m[at] = 1
time.sleep(2.5)
""")
        w.run(PYTHON, job)
        seen = [v["live_bytes"] for name, v in w.sites() if name == f"job.py:{w.line}"]
        check("a mapping counts with what is there of it", seen and 30e6 < max(seen) < 80e6, w.sites())


def test_steps():
    """What comes and goes within a step is seen by its high water; what stays, by its age in steps."""
    with Runs() as w:
        job = w.program("""
import ctypes, time
step = ctypes.CDLL(None).antifreeze_step
kept = []
time.sleep(1.5)
def batch():
    return b"x" * 60_000_000  # here
for i in range(40):
    step()
    now = batch()
    time.sleep(.1)  # so that a look finds it filled
    del now
    kept.append(bytearray(2_000_000))
    time.sleep(.02)
""")
        r = w.run(PYTHON, job)
        check("it ends well", r.returncode == 0, r)
        steps = [v["step_count"] for _, v in w.sites("inside") if "step_count" in v]
        check("steps are told from 0 on", steps and steps[0] == 0 and steps[-1] == 40 and steps == sorted(steps), steps)
        check("no step is told before the first look that saw one", steps[1:2] and steps[1] > 0, steps)
        batch = [v for name, v in w.sites() if name == f"job.py:{w.line} in batch()"]
        high = max((v["high_bytes"] for v in batch), default=0)
        check("the peak of a step is seen between two looks", 50e6 < high < 130e6, batch)
        check("and so is that it fell", any(v["low_bytes"] == 0 for v in batch[1:]), batch)
        kept = [v for name, v in w.sites() if name == "job.py:13" and v["live_bytes"] > 40e6]
        check("what is kept has an age in steps", kept and 8 <= kept[-1].get("age_steps_count", 0) <= 32, kept)
        check("and in seconds", kept and 5e8 <= kept[-1].get("age_ns", 0), kept)


def test_many_stacks():
    """More stacks than are told apart: each is still told with its line."""
    with Runs() as w:
        job = w.program("""
import time
kept = []
def make(n, way):
    if n == 0:
        kept.append(bytearray(200_000))  # here
    elif way & 1:
        make(n - 1, way >> 1)
    else:
        make(n - 1, way >> 1)
for way in range(512):
    make(9, way)
time.sleep(2.5)
""")
        w.run(PYTHON, job)
        peak = sum(v for k, v in w.stacks().items() if f"job.py:{w.line} in make()" in k.split(";"))
        check("512 stacks of 200 KB are one line of 102 MB", 75e6 < peak < 135e6, w.stacks())


HOLDS = "import time\ndef load():\n    return [bytearray(2_000_000) for i in range(20)]\nkept = load()\ntime.sleep(1.5)\n"


def test_whose_line():
    """However a program is started, the line is its own."""
    with Runs() as w:
        package = w.at("env/lib/python3.11/site-packages/mine")
        os.makedirs(package)
        for at in (w.at("env/train.py"), f"{package}/train.py"):
            with open(at, "w") as file:
                file.write(HOLDS)
        with zipfile.ZipFile(w.at("app.pyz"), "w") as app:
            app.writestr("__main__.py", HOLDS)
        with open(w.at("cell.py"), "w") as file:
            file.write(f"exec(compile({HOLDS!r}, '/tmp/ipykernel_1/2.py', 'exec'), {{}})")
        for what, args, line in (
                ("a text", ["-c", HOLDS], "<string>:3 in load()"),
                ("a project in an environment's folder", [w.at("env/train.py")], "train.py:3 in load()"),
                ("an installed package", ["-m", "mine.train"], "mine/train.py:3 in load()"),
                ("a zip", [w.at("app.pyz")], "__main__.py:3 in load()"),
                ("a notebook's cell", [w.at("cell.py")], "2.py:3 in load()")):
            w.run(PYTHON, *args, PYTHONPATH=os.path.dirname(package))
            most = max((v["live_bytes"] for name, v in w.sites() if name == line), default=0)
            check(f"{what}: its own line", 35e6 < most < 45e6, w.sites())


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_") and os.environ.get("ONLY", "") in name:
            test()
    ALL.finish()
