"""The jobs of stress_run.py: programs as Python text, and a table of such that fit what they are given."""
import os

# argv: MiB to grow to, MB/s (0: at once), seconds to stay there. In steps of 1 MiB, each page written.
GROW = """
import sys, time
most, rate, stay = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
kept, begin = [], time.monotonic()
for i in range(most):
    kept.append(b"\\1" * (1 << 20))
    if rate:
        time.sleep(max(0, begin + (i + 1) * 1.048576 / rate - time.monotonic()))
time.sleep(stay)
"""

# argv: MiB of the parent, workers. The workers read all of it, and write a little of their own.
WORKERS = """
import os, sys, time
data = b"\\1" * (int(sys.argv[1]) << 20)
pids = []
for i in range(int(sys.argv[2])):
    pid = os.fork()
    if pid == 0:
        own = b"\\2" * (4 << 20)
        total = 0
        for k in range(3):
            total += sum(data[j] for j in range(0, len(data), 4096))
        os._exit(0 if total == 3 * len(data) // 4096 else 1)
    pids.append(pid)
sys.exit(max(os.waitpid(p, 0)[1] for p in pids))
"""

SAWTOOTH = """
import sys, time
low, high, rounds = map(int, sys.argv[1:4])
base = b"\\1" * (low << 20)
for i in range(rounds):
    tooth = [b"\\2" * (1 << 20) for _ in range(high - low)]
    time.sleep(.03)
    del tooth
"""

CHURN = """
import random
rng, slots = random.Random(1), [b""] * 2000
for i in range(60000):
    slots[rng.randrange(2000)] = bytes(rng.randrange(1, 60000))
"""

THREADS = """
import threading, time
def work():
    kept = [bytearray(b"\\1" * (1 << 20)) for _ in range(6)]
    time.sleep(.2)
threads = [threading.Thread(target=work) for _ in range(16)]
[t.start() for t in threads]
[t.join() for t in threads]
"""

POOL = """
import multiprocessing, os
def work(n):
    return sum(i * i for i in range(n))
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(work, [20000] * 64)
"""

MAPPED = """
import mmap, sys
with open(sys.argv[1], "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
    for _ in range(3):
        sum(m[i] for i in range(0, len(m), 4096))
"""

SPARSE = """
import mmap
m = mmap.mmap(-1, 64 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
for i in range(0, 20 << 20, 4096):
    m[i * 1000] = 1
"""

SHARED = """
import mmap, os, time
m = mmap.mmap(-1, 80 << 20)
for i in range(0, 80 << 20, 4096):
    m[i] = 1
pids = []
for w in range(4):
    pid = os.fork()
    if pid == 0:
        sum(m[i] for i in range(0, 80 << 20, 4096))
        os._exit(0)
    pids.append(pid)
[os.waitpid(p, 0) for p in pids]
"""

FORKS = """
import os
for i in range(400):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
"""

GC = """
class Node:
    pass
for r in range(6):
    nodes = [Node() for _ in range(60000)]
    for a, b in zip(nodes, nodes[1:]):
        a.next, b.previous = b, a
    del nodes, a, b
"""

RECORDS = """
import json, sqlite3
rows = [{"id": i, "text": "x" * 50} for i in range(60000)]
assert len(json.loads(json.dumps(rows))) == len(rows)
db = sqlite3.connect(":memory:")
db.execute("create table t (id int, text text)")
db.executemany("insert into t values (:id, :text)", rows)
assert db.execute("select count(*) from t where text like 'x%'").fetchone()[0] == len(rows)
"""

PROGRAM = """#include <stdio.h>
int main(void) { puts("hello"); return 0; }
"""


def clean_files(folder):
    """What the jobs work on."""
    with open(f"{folder}/program.c", "w", encoding="ascii") as f:
        f.write(PROGRAM)
    os.mkdir(f"{folder}/tree")
    for i in range(200):
        with open(f"{folder}/tree/{i}", "wb") as f:
            f.write(os.urandom(1000) * 200)
    with open(f"{folder}/big", "wb") as f:
        for _ in range(300):
            f.write(os.urandom(1 << 20))


# name: MiB that it is known to need at most (files that it reads do not count), and CMD. What maps the same shared memory
# may be counted higher for a moment where there is no cgroup.
def CLEAN_JOBS(folder, interpreter, trainer):
    py = lambda code, *args: [interpreter, "-S", "-c", code, *map(str, args)]
    sh = lambda text: ["sh", "-c", f"cd {folder} && {text}"]
    jobs = {
        "true": (6, ["true"]),
        "grows at once": (206, py(GROW, 200, 0, .2)),
        "grows steadily": (206, py(GROW, 200, 400, .2)),
        "grows slowly": (66, py(GROW, 60, 60, 0)),
        "a big one": (1008, py(GROW, 1000, 0, .1)),
        "sawtooth": (206, py(SAWTOOTH, 20, 200, 20)),
        "sharp sawtooth": (408, py(SAWTOOTH, 10, 400, 8)),
        "churn": (72, py(CHURN)),
        "cycles of objects": (32, py(GC)),
        "threads": (118, py(THREADS)),
        "forked pool": (24, py(POOL)),
        "workers that share": (204, py(WORKERS, 180, 4)),
        "shared memory": (110, py(SHARED)),
        "400 forks": (10, py(FORKS)),
        "300 short commands": (6, sh("i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done")),
        "a sparse map": (28, py(SPARSE)),
        "a mapped file": (8, py(MAPPED, f"{folder}/big")),
        "reads a big file": (6, sh("cat big big big > /dev/null")),
        "writes a big file": (8, sh("dd if=/dev/zero of=out bs=1M count=400 2>/dev/null; rm out")),
        "tar and gzip": (8, sh("tar c tree | gzip -1 > t.tgz && tar xzf t.tgz -C . && rm t.tgz")),
        "a sort": (44, sh("seq 400000 | sort -R -S 60M > /dev/null")),
        "a compiler": (60, sh("gcc -O2 -o program program.c && ./program > /dev/null")),
        "records": (52, py(RECORDS)),
        "a pipeline": (6, sh("head -c 60M big | sha256sum | cut -c1-8 > /dev/null")),
        "sleeps": (6, ["sleep", "0.3"]),
    }
    if trainer:
        jobs["the trainer"] = (24, [trainer, "--steps", "60"])
        del jobs["sleeps"]
    return jobs
