"""Jobs of kinds that the other lists do not have, written after the judges: all of them are set aside (test_corpus.py).

Rows are as in jobs.py. A change to a judge that was made because of one of these makes it one of the others: then new ones
are due. That happened twice: `fresh-` is the first round, `fresh2-` was written after what it had taught, and `fresh3-` after
that. The one thing changed since: a run that tells its steps need not grow in a straight line (fresh3-history-told).
"""
from jobs import py

# work(ms): what a step computes; the seconds of a job are counted on the clock, not in steps.
WORK = """
import collections, functools, random, sys, time
random.seed(7)
def work(ms):
    end = time.perf_counter() + ms / 1000
    while time.perf_counter() < end: sum(range(500))
begin = time.monotonic()
def going(seconds): return time.monotonic() - begin < seconds
"""


def fresh(name, label, budget, code, *args):
    return f"fresh-{name}", label, ["--budget", budget], py(WORK + code, *args)


def again(name, label, budget, code, *args):
    return f"fresh2-{name}", label, ["--budget", budget], py(WORK + code, *args)


def third(name, label, budget, code, *args):
    return f"fresh3-{name}", label, ["--budget", budget], py(WORK + code, *args)


def caches():
    """What fills and then stays, as it should."""
    yield fresh("memmap-reader", "clean", "1G", """
import tempfile
f = tempfile.TemporaryFile(); f.truncate(300 * MB)
for i in range(300): f.seek(i * MB); f.write(random.randbytes(MB))
m = mmap.mmap(f.fileno(), 0); n = 0
while going(28):
    at = random.randrange(299) * MB; n += sum(m[at:at + MB:4096]); work(3)
""")
    yield fresh("image-lru", "clean", "1G", """
import zlib
files = [zlib.compress(bytes(random.randrange(200, 900) * 1000), 1) for i in range(600)]
@functools.lru_cache(180)
def decode(i): return zlib.decompress(files[i])
while going(28): decode(min(599, int(random.expovariate(1 / 150)))); work(8)
""")
    yield fresh("sqlite-page-cache", "clean", "1G", """
import sqlite3, tempfile
d = tempfile.TemporaryDirectory(); db = sqlite3.connect(d.name + '/a.db'); db.execute('pragma cache_size=-80000')
db.execute('create table t (k integer primary key, v blob)'); n = 0
while going(30):
    db.executemany('insert into t values (?, ?)', ((n + i, random.randbytes(2000)) for i in range(1500))); db.commit(); n += 1500
    for i in range(300): db.execute('select v from t where k = ?', (random.randrange(n),)).fetchone()
    if n > 150000: db.execute('delete from t where k < ?', (n - 100000,)); db.commit()
    time.sleep(.05)
""")
    yield fresh("jit-code-cache", "clean", "1G", """
code = {}
while going(26):
    k = int(random.paretovariate(.6)) % 6000
    if k not in code: code[k] = compile('\\n'.join(f'def f{i}(x): return [x * {k} + {i} for x in range({i})]' for i in range(40)), 'jit', 'exec')
    work(1)
""")
    yield fresh("vocabulary", "clean", "1G", """
words = {}
while going(26):
    for i in range(2000):
        w = int(random.paretovariate(.5)) % 400000
        if w not in words: words[w] = [0, 'token-' + str(w) * 8]
        words[w][0] += 1
    work(4)
""")
    yield fresh("fragments", "clean", "1G", """
live = [None] * 4000
while going(26):
    for i in range(300): live[random.randrange(4000)] = bytes(random.randrange(100, 60000))
    work(10)
""")


def rhythms():
    """What goes up and down, or up once."""
    yield fresh("gc-freeze-workers", "clean", "1G", """
import gc
rows = [{'id': i, 'text': 'row %d' % i} for i in range(250000)]
gc.collect(); gc.freeze(); pids = []
for w in range(3):
    p = os.fork()
    if p == 0:
        while going(24):
            for i in range(0, len(rows), 50): rows[i]['text'].upper()
            time.sleep(.2)
        os._exit(0)
    pids.append(p)
for p in pids: os.waitpid(p, 0)
""")
    yield fresh("checkpoints", "clean", "1G", """
import pickle, tempfile
d = tempfile.TemporaryDirectory(); weights = [random.randbytes(MB) for i in range(60)]; n = 0
while going(32):
    for i in range(12): b = grow(25 * MB); work(60); del b
    with open(f'{d.name}/{n}.tmp', 'wb') as f: pickle.dump(weights, f)
    os.replace(f'{d.name}/{n}.tmp', f'{d.name}/{n}.ckpt'); n += 1
    if n > 2: os.unlink(f'{d.name}/{n - 3}.ckpt')
""")
    yield fresh("evaluation-lists", "clean", "1G", """
model = grow(120 * MB)
while going(32):
    for i in range(30): b = grow(30 * MB); work(40); del b
    seen = []
    for i in range(25): seen.append([random.random() for j in range(20000)]); work(30)
    sum(map(sum, seen)); del seen
""")
    yield fresh("imports-then-idle", "clean", "1G", """
import importlib, pkgutil
for name in ('asyncio', 'email', 'xml', 'json', 'http', 'unittest', 'concurrent', 'multiprocessing', 'ctypes', 'sqlite3', 'encodings', 'importlib', 'logging', 'distutils', 'lib2to3', 'pydoc_data'):
    try:
        p = importlib.import_module(name)
        for m in pkgutil.walk_packages(getattr(p, '__path__', []), name + '.'):
            if '__main__' not in m.name: importlib.import_module(m.name)
    except Exception: pass
while going(25): time.sleep(1)
""")
    yield fresh("table-then-queries", "clean", "1G", """
table = {}
while going(14):
    for i in range(3000): table[len(table)] = ('name %d' % i, i / 3)
    work(5)
while going(34): sum(table[random.randrange(len(table))][1] for i in range(4000)); work(10)
""")
    yield fresh("shared-ring", "clean", "1G", """
from multiprocessing import shared_memory, Process, Semaphore
ring = shared_memory.SharedMemory(create=True, size=64 * MB); free, full = Semaphore(16), Semaphore(0)
def fill(k):
    n = 0
    while going(24):
        if not free.acquire(timeout=1): continue
        at = (k * 8 + n % 8) * 4 * MB; ring.buf[at:at + 4 * MB] = bytes([n % 251]) * (4 * MB); n += 1; work(20); full.release()
ps = [Process(target=fill, args=(k,)) for k in (0, 1)]
for p in ps: p.start()
while going(25):
    if full.acquire(timeout=1): work(10); free.release()
for p in ps: p.join()
ring.close(); ring.unlink()
""")
    yield fresh("queue-bounded", "clean", "1G", """
import queue
q = queue.Queue(60)
def eat():
    while True: b = q.get(); work(15)
for i in range(2): threading.Thread(target=eat, daemon=True).start()
while going(25): q.put(bytes(MB))
""")
    yield fresh("server-and-client", "clean", "1G", """
import http.server, urllib.request
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(bytes(200000))
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H); threading.Thread(target=s.serve_forever, daemon=True).start()
while going(25): urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}/').read(); time.sleep(.02)
""")
    yield fresh("rotating-log", "clean", "1G", """
import logging.handlers, tempfile
d = tempfile.TemporaryDirectory(); log = logging.getLogger('x'); log.propagate = False
log.addHandler(logging.handlers.RotatingFileHandler(d.name + '/log', maxBytes=4 * MB, backupCount=3))
while going(25):
    for i in range(200): log.warning('step %d loss %f', i, random.random())
    time.sleep(.05)
""")
    yield fresh("subinterpreter-tests", "clean", "1G", """
import subprocess
while going(25): subprocess.run([sys.executable, '-c', 'import unittest, json, asyncio; x = [i for i in range(900000)]'], check=True)
""")


def kept():
    """What is never let go of."""
    yield fresh("rows-of-dicts", "leak", "1G", """
rows = []
while going(32):
    for i in range(1500): rows.append({'step': len(rows), 'loss': random.random(), 'name': 'run-%d' % i})
    work(30); time.sleep(.02)
""")
    yield fresh("queue-unbounded", "leak", "1G", """
import queue
q = queue.Queue()
def eat():
    while True: b = q.get(); work(25)
threading.Thread(target=eat, daemon=True).start()
while going(30): q.put(bytes(200000)); time.sleep(.012)
""")
    yield fresh("sqlite-in-memory", "leak", "1G", """
import sqlite3
db = sqlite3.connect(':memory:'); db.execute('create table t (k integer primary key, v blob)')
while going(30):
    db.executemany('insert into t (v) values (?)', ((random.randbytes(4000),) for i in range(150))); work(20); time.sleep(.03)
""")
    yield fresh("memo-unbounded", "leak", "1G", """
@functools.cache
def features(k): return bytes(60000)
n = 0
while going(30): features(n); n += 1; work(6); time.sleep(.004)
""")
    yield fresh("tasks-kept", "leak", "1G", """
import asyncio
async def one(n): await asyncio.sleep(0); return bytearray(50000)
async def all_of_them():
    tasks = []
    while going(30): t = asyncio.ensure_future(one(len(tasks))); tasks.append(t); await t; await asyncio.sleep(.01)
asyncio.run(all_of_them())
""")
    yield fresh("one-worker-keeps", "leak", "1G", """
from multiprocessing import Process
def turn(k):
    mine = []
    while going(30):
        b = bytearray(6 * MB); work(20)
        if k == 1: mine.append(bytearray(300000))
        del b; time.sleep(.03)
ps = [Process(target=turn, args=(k,)) for k in range(3)]
for p in ps: p.start()
for p in ps: p.join()
""")
    yield fresh("cycles-without-gc", "leak", "1G", """
import gc
gc.disable()
class Node: pass
while going(30):
    for i in range(60): a, b = Node(), Node(); a.b, b.a, a.load = b, a, bytearray(9000)
    work(20); time.sleep(.02)
""")
    yield fresh("tracebacks-kept", "leak", "800M", """
errors = []
def fails(): batch = bytearray(900000); raise ValueError(len(batch))
while going(60):
    try: fails()
    except ValueError as e: errors.append(e)
    work(20); time.sleep(.02)
""")
    yield ("fresh-node-listeners", "leak", ["--budget", "1G"], ["node", "-e", """
const { EventEmitter } = require('events'); const bus = new EventEmitter(); bus.setMaxListeners(0); const begin = Date.now();
(function turn() { const data = new Array(60000).fill(Math.random()); bus.on('step', () => data.length); let s = 0;
  for (let i = 0; i < 2e6; i++) s += i; if (Date.now() - begin < 30000) setTimeout(turn, 25); })();
"""])
    java = ["sh", "-c", "d=$(mktemp -d); printf '%s' \"$1\" > $d/Main.java; java -Xmx1g $d/Main.java; s=$?; rm -r $d; exit $s", "sh"]
    for name, label, keep in (("map", "leak", "1 << 30"), ("lru", "clean", "3000")):
        yield (f"fresh-java-{name}", label, ["--budget", "2G"], [*java, """
import java.util.*;
public class Main { public static void main(String[] a) throws Exception {
  Map<Integer, long[]> seen = new LinkedHashMap<Integer, long[]>() { protected boolean removeEldestEntry(Map.Entry<Integer, long[]> e) { return size() > %s; } };
  long end = System.nanoTime() + 35000000000L; int n = 0;
  while (System.nanoTime() < end) { for (int i = 0; i < 12; i++) seen.put(n++, new long[1500]); Thread.sleep(12); } } }
""" % keep])


def ends(small):
    """Other things that run out, and other ends."""
    yield fresh("socket-pairs", "fd-leak", "1G", """
import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
while going(28): kept.append(socket.socketpair()); work(3); time.sleep(.03)
""")
    yield fresh("pool-a-request", "thread-leak", "1G", """
from concurrent.futures import ThreadPoolExecutor
while going(26): p = ThreadPoolExecutor(2); kept.append(p); [f.result() for f in [p.submit(work, 5) for i in range(2)]]; time.sleep(.12)
os._exit(0)
""")
    yield fresh("memory-error", "exception", "1G", """
import resource
resource.setrlimit(resource.RLIMIT_AS, (600 * MB, 600 * MB))
for i in range(10): b = bytearray(100 * MB); time.sleep(.5); del b
kept.append(bytearray(900 * MB))
""")
    yield fresh("worker-segfaults", "exception|crash", "1G", """
from concurrent.futures import ProcessPoolExecutor
import ctypes
with ProcessPoolExecutor(2) as pool:
    for i in range(8): list(pool.map(work, [200] * 4))
    pool.submit(ctypes.string_at, 0).result()
""")
    yield fresh("assertion-late", "exception", "1G", """
while going(15): b = grow(40 * MB); work(50); del b
assert random.random() > 2, 'loss is not finite'
""")
    yield ("fresh-supervisor-ends-it", "killed-externally", ["--budget", "1G"], ["timeout", "-s", "TERM", "14", *py(WORK + """
while going(60): b = grow(40 * MB); work(50); del b
""")])
    if small:
        yield fresh("log-debug", "log-growth|disk-full", "1G", """
f = open(sys.argv[1] + '/debug.log', 'w')
while going(30):
    for i in range(2000): f.write('DEBUG tensor %d %s\\n' % (i, random.random()))
    f.flush(); work(5); time.sleep(.01)
""", small)


TEXT = """
import tempfile
f = tempfile.NamedTemporaryFile('w+'); words = ['w%x' % (i * 7919 % 65521) for i in range(60000)]
def text(mb, name):
    with open(name, 'w') as g:
        for i in range(mb * 10): g.write(' '.join(random.choices(words, k=17000)) + '\\n')
"""


def second_clean():
    yield again("word-count", "clean", "1G", TEXT + """
text(3, f.name); seen = collections.Counter()
while going(28):
    for line in open(f.name): seen.update(line.split()); time.sleep(.005)
""")
    yield again("index-built", "clean", "1G", TEXT + """
text(24, f.name); index = collections.defaultdict(list)
for n, line in enumerate(open(f.name)):
    for w in line.split(): index[w].append(n)
    work(60)
print(len(index))
""")
    yield again("lines-once", "clean", "1G", TEXT + """
text(40, f.name); seen = set()
for n, line in enumerate(open(f.name)):
    for i in range(0, len(line), 40): seen.add(line[i:i + 40])
    work(30)
print(len(seen))
""")
    yield again("downloads", "clean", "1G", """
import socket
a, b = socket.socketpair()
if os.fork() == 0:
    a.close()
    for i in range(600): b.sendall(bytes(400000)); time.sleep(.035)
    os._exit(0)
b.close(); parts = []
while True:
    p = a.recv(1 << 20)
    if not p: break
    parts.append(p)
print(len(b''.join(parts)))
""")
    yield again("results-small", "clean", "1G", """
results = []
while going(28): work(20); results.append((len(results), random.random()))
""")
    yield again("busy-and-level", "clean", "1G", """
a = [[random.random() for j in range(60)] for i in range(60)]
while going(26): a = [[sum(x * y for x, y in zip(r, c)) / 60 for c in zip(*a)] for r in a]
""")
    yield ("fresh2-pipeline", "clean", ["--budget", "1G"], ["sh", "-c", "for i in 1 2 3 4; do seq 900000 | awk '{ print $1 % 50021, length($1) }' | sort | uniq -c | tail -1; done > /dev/null"])
    yield again("archives", "clean", "1G", """
import tempfile, zipfile
d = tempfile.TemporaryDirectory(); n = 0
while going(26):
    with zipfile.ZipFile(f'{d.name}/{n % 4}.zip', 'w', zipfile.ZIP_DEFLATED) as z:
        for i in range(20): z.writestr(str(i), random.randbytes(200000))
    n += 1
""")
    yield again("pool-fills", "clean", "1G", """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(40); state = threading.local()
def turn(n):
    if not hasattr(state, 'buffer'): state.buffer = bytearray(2 * MB)
    work(1); time.sleep(random.random() * n)
while going(30): pool.submit(turn, min(2, (time.monotonic() - begin) / 6)); time.sleep(.03)
os._exit(0)
""")
    yield again("replay-buffer", "clean", "1G", """
ring = collections.deque(maxlen=500)
while going(36): ring.append(bytearray(400000)); work(15); time.sleep(.005); random.choice(ring)[0]
""")
    yield again("collected-late", "clean", "1G", """
import gc
gc.set_threshold(9000, 3, 3)
class Node: pass
while going(28):
    for i in range(40): a, b = Node(), Node(); a.b, b.a, a.load = b, a, bytearray(8000)
    work(6)
""")


def second_ill():
    yield again("callbacks", "leak", "1G", """
import array
calls = []
while going(32):
    data = array.array('d', [random.random()]) * 30000; calls.append(lambda data=data: data[0]); work(40)
""")
    yield again("log-in-memory", "leak", "1G", """
import io, logging
out = io.StringIO(); log = logging.getLogger('x'); log.propagate = False; log.addHandler(logging.StreamHandler(out))
while going(32):
    for i in range(40): log.warning('step %d %s', i, 'x' * 1500)
    work(25); time.sleep(.01)
""")
    yield again("malloc", "leak", "700M", """
import ctypes
libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p
while going(90): ctypes.memset(libc.malloc(1 << 20), 1, 1 << 20); work(30); time.sleep(.02)
""")
    yield again("strings-by-step", "leak", "1G", """
said = {}; n = 0
while going(32): n += 1; said[n] = ('%08d' % n) * 9000; work(12)
""")
    yield ("fresh2-perl-hash", "leak", ["--budget", "1G"], ["perl", "-e", "my %h; my $end = time + 32; my $n = 0; while (time < $end) { $h{$n++} = 'x' x 700 for 1..100; select(undef, undef, undef, .02) }"])
    yield again("pipes", "fd-leak", "1G", """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
while going(60): kept.append(os.pipe()); work(2); time.sleep(.025)
""")
    yield again("timers", "thread-leak", "1G", """
while going(28):
    t = threading.Timer(3600, print); t.daemon = True; t.start(); work(3); time.sleep(.1)
""")
    yield again("recursion", "crash", "2G", """
import ctypes
time.sleep(2); sys.setrecursionlimit(10 ** 8)
F = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
@F
def down(n): return down(n + 1)
down(0)
""")
    yield again("signal-from-child", "killed-externally", "1G", """
b = grow(60 * MB)
if os.fork() == 0: time.sleep(9); os.kill(os.getppid(), signal.SIGUSR2); os._exit(0)
while going(30): work(20); time.sleep(.02)
""")
    yield again("child-bursts", "host-exhaustion|oom-killed", "500M", """
import subprocess
time.sleep(4); subprocess.run([sys.executable, '-c', 'b = bytearray(900 << 20); import time; time.sleep(20)'])
""")


def third_clean():
    yield third("events", "clean", "1G", """
import heapq
q = [(random.random(), i, bytes(2000)) for i in range(20000)]; heapq.heapify(q); n = 20000
while going(26):
    for i in range(2000): t, k, load = heapq.heappop(q); n += 1; heapq.heappush(q, (t + random.expovariate(1), n, bytes(2000)))
    work(3)
""")
    yield third("tables-each-epoch", "clean", "1G", """
import csv, io
text = '\\n'.join(','.join(str(random.random()) for j in range(12)) for i in range(20000))
while going(28):
    rows = list(csv.reader(io.StringIO(text))); work(300); del rows
""")
    yield third("scratch-resized", "clean", "1G", """
while going(26):
    b = bytearray(5 * MB)
    for i in range(12): b.extend(bytes(random.randrange(1, 8) * MB)); work(40)
    del b; time.sleep(.1)
""")
    yield third("threads-and-barriers", "clean", "1G", """
gate = threading.Barrier(4)
def turn():
    while going(24):
        b = bytearray(3 * MB); work(15)
        try: gate.wait(5)
        except threading.BrokenBarrierError: return
for t in [threading.Thread(target=turn) for i in range(4)]: t.start()
""")
    yield third("memory-then-results", "clean", "1G", """
data = [random.randbytes(100000) for i in range(1200)]
while going(27): hash(random.choice(data)); work(10); time.sleep(.002)
""")
    # Meant to be clean, and called a data-stall: it did wait for a disk that others kept busy, for most of its life.
    yield ("fresh3-searches", "data-stall|clean", ["--budget", "1G"], ["sh", "-c", "for i in 1 2 3; do grep -rc 'the' /usr/share/doc /usr/lib/python3 2> /dev/null | sort -t: -k2 -n | tail -3; done > /dev/null; exit 0"])
    yield ("fresh3-packs", "clean", ["--budget", "1G"], ["sh", "-c", "tar cf - /usr/lib/python3* 2> /dev/null | gzip -6 > /dev/null; exit 0"])
    yield ("fresh3-node-json", "clean", ["--budget", "1G"], ["node", "-e", """
const begin = Date.now(); const text = JSON.stringify(Array.from({length: 20000}, (x, i) => ({id: i, name: 'n' + i, tags: ['a', 'b']})));
(function turn() { const rows = JSON.parse(text); let s = 0; for (const r of rows) s += r.id; if (Date.now() - begin < 25000) setTimeout(turn, 30); })();
"""])


def third_ill():
    yield third("history-told", "leak", "1G", """
import array
history = []
while going(32): history.append(array.array('f', [random.random()]) * 60000); work(20); print('step', len(history), flush=True)
""")
    yield third("linked-list", "leak", "1G", """
head = None
while going(32):
    for i in range(400): head = (random.random(), bytes(300), head)
    work(20)
""")
    yield third("sessions", "leak", "1G", """
sessions = {}
while going(32): sessions[time.monotonic()] = {'user': len(sessions), 'page': 'x' * 40000}; work(3); time.sleep(.01)
""")
    yield ("fresh3-shell-array", "leak", ["--budget", "1G"], ["bash", "-c", "x=$(printf '%020000d' 1); end=$((SECONDS + 32)); while ((SECONDS < end)); do a+=(\"$x$RANDOM\"); sleep .005; done"])
    yield ("fresh3-wrong-usage", "exception", ["--budget", "1G"], ["grep"])
    yield ("fresh3-aborts-late", "crash", ["--budget", "1G"], ["sh", "-c", "sleep 12; kill -ABRT $$"])
    yield third("descriptors-of-folders", "fd-leak", "1G", """
while going(30): kept.append(os.open('/', os.O_RDONLY)); work(2); time.sleep(.04)
""")


def every(small):
    yield from caches()
    yield from rhythms()
    yield from kept()
    yield from ends(small)
    yield from second_clean()
    yield from second_ill()
    yield from third_clean()
    yield from third_ill()
