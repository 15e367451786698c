"""The jobs of the corpus: what really runs, and what a right verdict says of it.

A row is (name, label, options of antifreeze run, command). The label is the id that must come first (or, where nobody could
tell them apart, one of several: a list that fills the budget within seconds may be a leak or a large dataset). `clean` also
stands for every job that may warm up, breathe or fill its caches as it likes. Programs are Python without any package, or the C trainer.
"""
PYTHON = "python3"  # by its name alone, as all that is in a recording
TRAINER = "./afz-trainer"

# grow(n): n bytes more, touched. Kept in a list, so they stay.
HEAD = """
import mmap, os, signal, sys, threading, time
kept = []
def grow(n):
    n = max(4096, int(n) // 4096 * 4096)
    m = mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, n, 4096): m[at] = 1
    return m
MB = 1 << 20
"""


def py(code, *args):
    return [PYTHON, "-c", HEAD + code, *map(str, args)]


def leaks():
    """So many MB a step, with steps of 50 to 200 ms: stopped at the budget, or ended before it."""
    for mb, step, seconds, budget in ((.1, .05, 25, "2G"), (.2, .1, 30, "2G"), (.5, .05, 25, "2G"), (1, .2, 25, "2G"), (1, .05, 20, "4G"),
                                      (2, .1, 20, "4G"), (4, .1, 20, "4G"), (5, .2, 60, "600M"), (8, .1, 60, "1G"), (10, .05, 60, "1500M"),
                                      (10, .2, 60, "700M"), (16, .2, 60, "900M"), (20, .1, 60, "2G"), (32, .1, 60, "2G"), (64, .2, 60, "3G"),
                                      (100, .2, 60, "4G"), (100, .1, 60, "4G"), (50, .05, 60, "3G")):
        for base in (30, 300):
            fast = "leak|host-exhaustion" if mb / step > 150 else "leak"
            yield (f"leak-{mb}mb-{step}s-{base}", fast, ["--budget", budget],
                   py(f"kept.append(grow({base} * MB))\nend = time.monotonic() + {seconds}\n"
                      f"while time.monotonic() < end: kept.append(grow({mb} * MB)); time.sleep({step})"))
    for mb in (2, 20):  # with the breathing of a step on top of it
        yield (f"leak-breathing-{mb}mb", "leak", ["--budget", "2G"],
               py(f"end = time.monotonic() + 40\nwhile time.monotonic() < end:\n    b = grow(80 * MB); time.sleep(.1); kept.append(grow({mb} * MB)); del b; time.sleep(.05)"))


def trainer_leaks():
    """Silent ones and such that tell their progress; the larger sizes fill the budget within seconds."""
    for size, label in (("64K", "leak"), ("256K", "leak"), ("1M", "leak|host-exhaustion"), ("4M", "leak|host-exhaustion")):
        command = [TRAINER, "--epochs", "30", "--steps", "9000", f"--retain-history={size}"]
        yield f"trainer-history-{size}", label, ["--budget", "1G"], command
        yield f"trainer-history-quiet-{size}", label, ["--budget", "1G"], [*command, "--quiet"]


def clean():
    for tau, level, seconds in ((2, 300, 20), (4, 800, 30), (1, 100, 10), (6, 400, 40), (3, 1500, 30)):
        yield (f"warm-exponential-{tau}s-{level}mb", "clean", ["--budget", "4G"],
               py(f"import math\nbegin = time.monotonic(); have = 0\nwhile time.monotonic() - begin < {seconds}:\n"
                  f"    want = {level} * (1 - math.exp(-(time.monotonic() - begin) / {tau}))\n"
                  "    if want > have + .5: kept.append(grow((want - have) * MB)); have = want\n    time.sleep(.05)"))
    for rate, limit, seconds in ((20, 200, 30), (50, 300, 25), (10, 120, 35), (100, 1000, 30)):
        yield (f"cache-fills-{rate}mbs-{limit}mb", "clean", ["--budget", "4G"],
               py(f"begin = time.monotonic(); have = 0\nwhile time.monotonic() - begin < {seconds}:\n"
                  f"    if have < {limit}: kept.append(grow({rate} * MB / 10)); have += {rate} / 10\n    time.sleep(.1)"))
    for up, every, seconds in ((10, 20, 25), (4, 50, 25), (30, 10, 20), (2, 100, 30)):
        yield (f"sawtooth-{up}mb-{every}", "clean", ["--budget", "2G"],
               py(f"kept.append(grow(100 * MB)); rest = []\nend = time.monotonic() + {seconds}; n = 0\nwhile time.monotonic() < end:\n"
                  f"    rest.append(grow({up} * MB)); n += 1\n    if n % {every} == 0: rest.clear()\n    time.sleep(.04)"))
    for mb in (50, 400, 1500):
        yield (f"steps-{mb}mb", "clean", ["--budget", "4G"],
               py(f"kept.append(grow(60 * MB))\nend = time.monotonic() + 15\nwhile time.monotonic() < end:\n    b = grow({mb} * MB); time.sleep(.1); del b; time.sleep(.05)"))
    for mb in (200, 1200):
        yield (f"dataset-fits-{mb}mb", "clean", ["--budget", "4G"],
               py(f"for i in range({mb} // 20): kept.append(grow(20 * MB)); time.sleep(.05)\nend = time.monotonic() + 15\nwhile time.monotonic() < end: b = grow(30 * MB); time.sleep(.1); del b"))
    for evals in (3, 6):  # an evaluation that needs more, now and then
        yield (f"evaluation-{evals}", "clean", ["--budget", "2G"],
               py(f"kept.append(grow(100 * MB))\nfor e in range({evals}):\n    for s in range(30): b = grow(20 * MB); time.sleep(.05); del b\n    b = grow(300 * MB); time.sleep(1); del b"))
    for seconds in (.01, .2, 1, 3):
        yield f"short-{seconds}s", "clean", ["--budget", "1G"], py(f"kept.append(grow(20 * MB)); time.sleep({seconds})")
    yield "sleeps", "clean", ["--budget", "1G"], ["sleep", "12"]
    yield "cpu-bound", "clean", ["--budget", "1G"], py("end = time.monotonic() + 12\nwhile time.monotonic() < end: sum(range(10000))")
    for mb in (300, 1500):
        yield (f"page-cache-{mb}mb", "clean", ["--budget", "600M"],
               ["sh", "-c", f"f=$(mktemp); head -c {mb}M /dev/zero > $f; for i in 1 2 3; do cat $f > /dev/null; sleep 1; done; rm -f $f"])
    yield ("workers-share", "clean", ["--budget", "1G"],
           py("kept.append(grow(300 * MB))\npids = []\nfor i in range(6):\n    p = os.fork()\n    if p == 0:\n        end = time.monotonic() + 10\n"
              "        while time.monotonic() < end: kept[0][0:4096]; time.sleep(.05)\n        os._exit(0)\n    pids.append(p)\nfor p in pids: os.waitpid(p, 0)"))
    yield ("pool-per-epoch", "clean", ["--budget", "1G"],
           py("for e in range(6):\n    pids = []\n    for i in range(4):\n        p = os.fork()\n        if p == 0: b = grow(40 * MB); time.sleep(1); os._exit(0)\n        pids.append(p)\n    for p in pids: os.waitpid(p, 0)"))


def trainer_clean():
    for steps, batch in ((300, 64), (2000, 64), (300, 512), (60, 2048)):
        yield f"trainer-clean-{steps}-{batch}", "clean", ["--budget", "1G"], [TRAINER, "--quiet", "--steps", str(steps), "--batch", str(batch)]
    yield "trainer-workers", "clean", ["--budget", "1G"], [TRAINER, "--quiet", "--steps", "800", "--workers", "2"]
    yield "trainer-layers", "clean", ["--budget", "1G"], [TRAINER, "--quiet", "--steps", "300", "--leaky-layer=64"]
    yield "trainer-dataset-fits", "clean", ["--budget", "4G"], [TRAINER, "--quiet", "--steps", "300", "--whole-dataset=500M"]


def too_much():
    for mb, budget in ((1200, "500M"), (3000, "1G"), (700, "400M")):
        yield f"burst-{mb}mb", "host-exhaustion", ["--budget", budget], py(f"time.sleep(2); b = bytearray({mb} << 20); time.sleep(20)")
    for mb, budget in ((900, "600M"), (2500, "1500M")):  # loaded whole, at the pace of a disk, before anything else
        yield (f"dataset-too-large-{mb}mb", "leak|host-exhaustion", ["--budget", budget],
               py(f"for i in range({mb} // 50): kept.append(grow(50 * MB)); time.sleep(.05)\ntime.sleep(5)"))
    yield ("workers-copy", "host-exhaustion", ["--budget", "800M"],
           py("kept.append(grow(150 * MB))\nfor i in range(8):\n    if os.fork() == 0:\n        for at in range(0, 150 * MB, 4096): kept[0][at] = 2\n        time.sleep(20); os._exit(0)\ntime.sleep(20)"))


def ends():
    yield "exit-1", "exception", [], py("time.sleep(2); sys.exit(1)")
    yield "exit-3-at-once", "exception", [], py("sys.exit(3)")
    yield "raises", "exception", [], py("kept.append(grow(50 * MB)); time.sleep(3); raise ValueError('shape mismatch')")
    yield "segfault", "crash", [], py("import ctypes; time.sleep(2); ctypes.string_at(0)")
    yield "abort", "crash", [], py("time.sleep(2); os.abort()")
    yield "floating-point", "crash", [], py("time.sleep(1); os.kill(os.getpid(), signal.SIGFPE)")
    for name in ("TERM", "KILL", "HUP"):
        yield f"killed-{name}", "killed-externally", [], py(f"kept.append(grow(60 * MB)); time.sleep(3); os.kill(os.getpid(), signal.SIG{name})")
    yield ("storm", "fork-storm", ["--budget", "2G"],
           py("import struct\nborn = mmap.mmap(-1, 8)\nend = time.monotonic() + 40\nwhile time.monotonic() < end:\n    n = struct.unpack('q', born)[0]\n"
              "    if n > 6000: time.sleep(1); continue\n    born[:] = struct.pack('q', n + 1)\n    try: os.fork()\n    except OSError: time.sleep(.01)"))


def others():
    for a_step in (1, 5, 20):
        yield (f"fds-{a_step}", "fd-leak|exception" if a_step > 5 else "fd-leak", ["--budget", "1G"],
               py(f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))\ntry:\n    while True:\n        for i in range({a_step}): kept.append(open('/dev/null'))\n        time.sleep(.03)\nexcept OSError: sys.exit(1)"))
    for a_second in (5, 20):
        yield (f"threads-{a_second}", "thread-leak", ["--budget", "2G"],
               py(f"e = threading.Event()\nfor i in range({a_second} * 20):\n    threading.Thread(target=e.wait, daemon=True).start(); time.sleep(1 / {a_second})"))
    for threads in (6, 12):
        yield (f"oversubscribed-{threads}", "cpu-oversubscription", ["--budget", "1G"],
               py(f"for i in range({threads}):\n    if os.fork() == 0:\n        end = time.monotonic() + 30\n        while time.monotonic() < end: sum(range(10000))\n        os._exit(0)\ntime.sleep(31)"))
    yield "trainer-deadlock", "hang:deadlock", ["--budget", "1G"], ["timeout", "-s", "KILL", "85", TRAINER, "--quiet", "--deadlock=200"]
    for rate, steps in (("64K", 45), ("256K", 180)):
        yield f"trainer-slow-disk-{rate}", "data-stall", ["--budget", "1G"], [TRAINER, "--quiet", "--steps", str(steps), f"--slow-disk={rate}"]
    yield ("deadlock", "hang:deadlock", ["--budget", "1G"], ["timeout", "-s", "KILL", "85"] +
           py("end = time.monotonic() + 8\nwhile time.monotonic() < end: b = grow(10 * MB); del b\na, b = threading.Lock(), threading.Lock()\n"
              "def one(x, y):\n    with x:\n        time.sleep(.5)\n        with y: pass\n"
              "t = [threading.Thread(target=one, args=p, daemon=True) for p in ((a, b), (b, a))]\nfor x in t: x.start()\nfor x in t: x.join()"))


NODE = """
const step = %s, seconds = %s, keep = %s; const kept = []; const begin = Date.now(); let n = 0;
(function turn() {
  for (let i = 0; i < 200; i++) { const a = new Array(step).fill(n + i); if (keep && i %% 20 == 0) kept.push(a); }
  n++; if (Date.now() - begin < seconds * 1000) setTimeout(turn, 20);
})();
"""
JAVA = """
import java.util.*;
public class Main { public static void main(String[] a) throws Exception {
  List<byte[]> kept = new ArrayList<>(); long end = System.nanoTime() + Long.parseLong(a[1]) * 1000000000L; byte[] b = null;
  while (System.nanoTime() < end) { for (int i = 0; i < 20; i++) b = new byte[200000];
    if (a[0].equals("leak")) kept.add(new byte[400000]); Thread.sleep(10); } } }
"""


def collected():
    """Other people's runtimes: garbage collectors, compressors, sorters, compilers."""
    for step, seconds in ((1000, 20), (10000, 25), (50000, 20)):
        yield f"node-churn-{step}", "clean", ["--budget", "3G"], ["node", "-e", NODE % (step, seconds, "false")]
    for step in (2000, 8000):
        yield f"node-keeps-{step}", "leak", ["--budget", "3G"], ["node", "-e", NODE % (step, 30, "true")]
    java = ["sh", "-c", "d=$(mktemp -d); printf '%s' \"$1\" > $d/Main.java; java -Xmx$2 $d/Main.java $3 $4; s=$?; rm -r $d; exit $s", "sh", JAVA]
    yield "java-churn-512m", "clean", ["--budget", "2G"], [*java, "512m", "churn", "25"]
    yield "java-churn-128m", "clean", ["--budget", "2G"], [*java, "128m", "churn", "25"]
    yield "java-keeps", "leak", ["--budget", "3G"], [*java, "2g", "leak", "40"]
    yield ("objects-kept", "leak", ["--budget", "2G"],
           py("end = time.monotonic() + 25\nwhile time.monotonic() < end: kept.append([{'step': i, 'loss': i / 7} for i in range(4000)]); time.sleep(.05)"))
    yield ("objects-bounded", "clean", ["--budget", "2G"],
           py("import collections\nd = collections.deque(maxlen=60)\nend = time.monotonic() + 25\nwhile time.monotonic() < end: d.append([{'step': i} for i in range(4000)]); time.sleep(.05)"))
    yield ("memo-bounded", "clean", ["--budget", "2G"],
           py("import functools, random\n@functools.lru_cache(3000)\ndef f(k): return bytes(100000)\nend = time.monotonic() + 25\nwhile time.monotonic() < end: f(int(random.expovariate(1 / 900))); time.sleep(.002)"))
    yield "compress", "clean", ["--budget", "2G"], ["sh", "-c", "head -c 120M /dev/urandom | xz -T1 -6 > /dev/null"]
    yield "sorts", "clean", ["--budget", "2G"], ["sh", "-c", "head -c 60M /dev/urandom | base64 | sort | tail -1 > /dev/null"]
    yield ("compiles", "clean", ["--budget", "2G"],
           ["sh", "-c", "d=$(mktemp -d); for i in 1 2 3 4 5 6; do { for f in $(seq 1500); do echo \"int f$f(int x){int s=0;for(int i=0;i<x;i++)s+=i*$f;return s;}\"; done; } > $d/a.c; cc -O2 -c $d/a.c -o $d/a.o; done; rm -r $d"])
    yield ("subprocesses", "clean", ["--budget", "2G"],
           py("import subprocess\nfor i in range(12): subprocess.run([sys.executable, '-c', 'b = bytearray(80 << 20); import time; time.sleep(.6)'])"))
    yield ("epochs-reload", "clean", ["--budget", "2G"],
           py("for e in range(5):\n    data = [grow(20 * MB) for i in range(12)]\n    for s in range(40): b = grow(10 * MB); time.sleep(.05); del b\n    del data"))


def disks(small):
    """`small` is a file system of its own with 64 MB."""
    for mb in (.2, .4):
        yield (f"log-{mb}mb", "disk-full|log-growth", ["--budget", "1G"],
               py(f"f = open(sys.argv[1] + '/log-{mb}', 'wb')\ntry:\n    while True: f.write(b'x' * int({mb} * MB)); f.flush(); time.sleep(.1)\nexcept OSError: os.unlink(sys.argv[1] + '/log-{mb}'); sys.exit(1)", small))


def every(small):
    yield from leaks()
    yield from trainer_leaks()
    yield from clean()
    yield from trainer_clean()
    yield from too_much()
    yield from ends()
    yield from others()
    yield from collected()
    if small:
        yield from disks(small)
