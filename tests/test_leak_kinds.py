#!/usr/bin/python3
"""Which kind of leak it is, and which line: real programs that grow in one way each, stopped at a small budget, and some
that do not grow.

    test_leak_kinds.py ANTIFREEZE
"""
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import sys

from scenario import PYTHON, Checks, World

ANTIFREEZE = os.path.abspath(sys.argv[1])
ALL = Checks(deadline=120)
check = ALL.check
BUDGET = ["--swap", "0", "--budget"]

# What holds some memory from its start on, as all real programs do.
BASE = "import time\nbase = [b'y' * 200_000 for i in range(120)]\n"

HISTORY = BASE + """
kept = []
def predict(i):
    return [float(n + i) for n in range(9000)]  # here
def step(i):
    scratch = bytearray(6_000_000)
    kept.append(predict(i))
for i in range(10**9):
    step(i)
    time.sleep(.02)
"""
SHARED = BASE + """
import sys
from multiprocessing import shared_memory
kept = []
def put(i):
    block = shared_memory.SharedMemory(f"{sys.argv[1]}-{i}", create=True, size=1_000_000)
    block.buf[:] = b"z" * 1_000_000
    return block
try:
    for i in range(10**9):
        kept.append(put(i))
        time.sleep(.07)
finally:
    for block in kept:
        block.close()
        block.unlink()
"""
# What is cut leaves a hole behind it, and what comes next is larger than any hole.
PIECES = BASE + """
kept = []
for size in range(5000, 10**9, 100):
    rows = [bytearray(b"x" * size) for i in range(200)]
    for row in rows:
        del row[20:]
    kept.extend(rows)
    time.sleep(.12)
"""
# Each look at an object counts a reference in it: its page is copied.
COPIES = """
import multiprocessing, sys, time
rows = [("row %d" % i, float(i)) for i in range(400_000)]
def work(k):
    for i, row in enumerate(rows):
        if i % 4000 == 0:
            time.sleep(.12)
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    workers = [multiprocessing.Process(target=work, args=(k,)) for k in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
"""
FORGETS = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *forget(size_t n)
{
        return memset(malloc(n), 1, n); /* here */
}
int main(void)
{
        for (;;) {
                void *scratch = memset(malloc(4000000), 1, 4000000);
                for (int i = 0; i < 60; i++)
                        forget(3000);
                usleep(15000);
                free(scratch);
        }
}
"""
# The same work, but nothing is kept for long.
BOUNDED = BASE + """
import collections
kept = collections.deque(maxlen=40)
end = time.monotonic() + 22
while time.monotonic() < end:
    kept.append([float(n) for n in range(9000)])
    time.sleep(.01)
"""


class Runs(World):
    def program(self, text, name):
        with open(self.at(name), "w") as file:
            file.write(text)
        self.line = next((i + 1 for i, line in enumerate(text.splitlines()) if "here" in line), 0)
        return self.at(name)

    def verdicts(self, *command, budget):
        """How it ended, and what is said of it, strongest first."""
        r = self.call(ANTIFREEZE, "run", *BUDGET, budget, "--", *command)
        told = self.call(ANTIFREEZE, "why", "--json")
        return r, json.loads(told.stdout)["verdicts"]


def is_kind(what, verdicts, kind, r):
    """The leak among them, if it is of that kind."""
    leak = next((v for v in verdicts if v["id"].split(":")[0] == "leak"), {})
    check(f"{what} is {kind}", leak.get("id") == kind, json.dumps(verdicts, indent=1) + r.stderr)
    return leak


def at_line(what, leak, file, line):
    where = leak.get("where") or {}
    check(f"{what}: its line", (where.get("file"), where.get("line")) == (file, line), f"{where}, not {line}")


def test_history():
    with Runs() as w:
        job = w.program(HISTORY, "job.py")
        r, verdicts = w.verdicts(PYTHON, job, budget="320M")
        leak = is_kind("a list of lists", verdicts, "leak:retained-history", r)
        at_line("a list of lists", leak, job, w.line)
        check("it says how old what is kept is", any("old on the mean" in e for e in leak.get("evidence", [])), leak)
        check("and the stop is told as its end", "leak:retained-history" in [v.get("caused_by") for v in verdicts], verdicts)


def test_forgotten():
    if not shutil.which("cc"):
        print("# no cc: native lines are not looked for")
        return
    with Runs() as w:
        source = w.program(FORGETS, "job.c")
        subprocess.run(["cc", "-g", "-O1", "-o", w.at("job"), source], check=True)
        r, verdicts = w.verdicts(w.at("job"), budget="120M")
        leak = is_kind("memory that C forgets", verdicts, "leak", r)
        if leak.get("where"):  # without libdw no native lines are known
            at_line("memory that C forgets", leak, source, w.line)


def test_shared():
    with Runs() as w:
        name = f"afz-leak-kinds-{os.getpid()}"
        r, verdicts = w.verdicts(PYTHON, w.program(SHARED, "job.py"), name, budget="160M")
        for left in glob.glob(f"/dev/shm/{name}-*"):  # it may be killed before it unlinks them
            os.unlink(left)
        is_kind("blocks of shared memory", verdicts, "leak:shm", r)


def test_pieces():
    with Runs() as w:
        r, verdicts = w.verdicts(PYTHON, w.program(PIECES, "job.py"), budget="160M")
        leak = is_kind("a heap in pieces", verdicts, "leak:fragmentation", r)
        check("malloc_trim is offered", "malloc_trim" in leak.get("fix", ""), leak)


def test_copies():
    with Runs() as w:
        r, verdicts = w.verdicts(PYTHON, w.program(COPIES, "job.py"), budget="180M")
        is_kind("pages that workers copy", verdicts, "leak:worker-copy", r)


def test_bounded():
    with Runs() as w:
        r, verdicts = w.verdicts(PYTHON, w.program(BOUNDED, "job.py"), budget="300M")
        check("what is bounded is clean", r.returncode == 0 and [v["id"] for v in verdicts] == ["clean"], verdicts)


def main():
    tests = [test for name, test in globals().items() if name.startswith("test_") and os.environ.get("ONLY", "") in name]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:  # they mostly wait
        for done in [pool.submit(test) for test in tests]:
            done.result()
    ALL.finish()


if __name__ == "__main__":
    main()
