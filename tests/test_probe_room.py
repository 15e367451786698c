#!/usr/bin/env python3
"""Memory that is refused (probe/room.c): large allocations that a job has no room for fail where somebody can catch it, and
nowhere else.

usage: test_probe_room.py KEEPER PROBE PROGRAM UMATH DEAF

KEEPER (probe_keeper.c) plays the guard, too: with -l it tells how far all that was touched is from a line. UMATH is by its name
a library that looks at the answer, DEAF one that does not.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

KEEPER = PROBE = PROGRAM = UMATH = DEAF = None
MIB = 1 << 20
LINE = 512 * MIB
PATIENCE = 120  # seconds that one program may take on a busy machine

# In front of each program in Python.
HELPERS = """
import ctypes, mmap, os, threading
MIB = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)
umath = ctypes.CDLL(os.environ["UMATH"], use_errno=True)
take, take_zeroed, take_aligned, grow = umath.take, umath.take_zeroed, umath.take_aligned, umath.grow
for function in take, take_zeroed, take_aligned, grow, libc.malloc, libc.realloc, libc.aligned_alloc:
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_size_t]
grow.argtypes = libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.antifreeze_room.restype = ctypes.c_uint64
room = libc.antifreeze_room

def fill(size, most=64):
    "So many blocks that are touched could be had."
    held = []
    try:
        for _ in range(most):
            held.append(bytearray(size))
    except MemoryError:
        pass
    return held
"""


def run(*command, line=LINE, looks=None, env=None):
    """The first book, and what the program printed. A busy keeper may be too late with a book: then again."""
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            options = (["-l", str(line)] if line else []) + (["-L", looks] if looks else [])
            environment = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "MALLOC_PERTURB_")}
            environment |= {"UMATH": UMATH, "DEAF": DEAF} | (env or {})
            result = subprocess.run([KEEPER, *options, PROBE, folder + "/socket", *command], env=environment,
                                    capture_output=True, text=True, timeout=PATIENCE, check=True)
        answer = json.loads(result.stdout)
        if answer["books"] and answer["books"][0]["state"] != 0:
            book = answer["books"][0]
            book["status"], book["books"] = answer["status"], answer["books"]
            return book, result.stderr
    raise AssertionError("no book in five tries")


def numbers(text):
    return {name: int(number) for name, number in re.findall(r"^(\w+) (-?\d+)$", text, re.M)}


class Case(unittest.TestCase):
    def python(self, program, **how):
        book, said = run(sys.executable, "-c", HELPERS + program, **how)
        self.assertEqual(book["status"], 0, said)
        self.assertEqual(book["inside"], 0)
        return book, numbers(said)

    def program(self, mode, **how):
        book, said = run(PROGRAM, mode, **how)
        self.assertEqual(book["status"], 0, said)
        self.assertEqual(book["inside"], 0)
        return book, said


class Refused(Case):
    def test_what_is_touched(self):
        """MemoryError before the line, and with less the program goes on."""
        book, said = self.python("""
held = fill(64 * MIB)
print("first", len(held))
del held
held = fill(64 * MIB)
print("again", len(held))
""")
        self.assertIn(said["first"], range(5, 9))
        self.assertIn(said["again"], range(5, 9))
        self.assertEqual(book["refused"], 2)
        self.assertEqual(book["refused_bytes"] // (64 * MIB), 2)

    def test_what_is_not_touched_yet(self):
        """The kernel would grant all of it, and end the program later."""
        book, said = self.python("""
held = []
while len(held) < 64:
    at = take_zeroed(100 * MIB)
    if not at:
        print("errno", ctypes.get_errno())
        break
    held.append(at)
print("held", len(held))
print("room", room() // MIB)
for at in held:
    libc.free(at)
print("free", room() // MIB)
""")
        self.assertIn(said["held"], range(4, 6))
        self.assertEqual(said["errno"], 12)
        self.assertLess(said["room"], 100)
        self.assertGreater(said["free"], 400)
        self.assertEqual(book["refused"], 1)

    def test_touched_little_by_little(self):
        """What was granted stays granted while it is filled; the rest of the room can be had meanwhile."""
        book, said = self.python("""
at = take_zeroed(300 * MIB)
for i in range(300):
    ctypes.memset(at + i * MIB, 1, MIB)
    if i % 50 == 49:
        libc.free(take(100 * MIB))
print("refused", int(take(300 * MIB) is None))
print("some", int(take(50 * MIB) is not None))
""")
        self.assertEqual(said, {"refused": 1, "some": 1})
        self.assertEqual(book["refused"], 1)

    def test_growth(self):
        """A block that grows (realloc): by what it grows, and it keeps what it has."""
        book, said = self.python("""
size, at = 32 * MIB, take(32 * MIB)
ctypes.memset(at, 7, size)
while size < 2048 * MIB:
    to = grow(at, size + 32 * MIB)
    if not to:
        break
    at = to
    ctypes.memset(at + size, 7, 32 * MIB)
    size += 32 * MIB
print("mib", size // MIB)
print("whole", int(ctypes.string_at(at + size - 1, 1) == bytes([7])))
data = bytearray()
libc.free(at)
try:
    while len(data) < 2048 * MIB:
        data += bytes(MIB)
except MemoryError:
    print("bytearray", len(data) // MIB)
""")
        self.assertIn(said["mib"], range(320, 513))
        self.assertEqual(said["whole"], 1)
        self.assertLess(said.get("bytearray", 0), 513)

    def test_aligned(self):
        _, said = self.python("""
held = fill(64 * MIB)
print("aligned", int(take_aligned(256 * MIB) is None))
""")
        self.assertEqual(said, {"aligned": 1})

    def test_moved_and_not_touched(self):
        """A block that grows by little, and one that could not be moved: what is not touched of them still counts."""
        for size in "305 * MIB", "1 << 50":
            with self.subTest(size=size):
                book, said = self.python(f"""
at = take_zeroed(300 * MIB)
to = libc.realloc(at, {size})
print("refused", int(take(300 * MIB) is None))
libc.free(to or at)
print("then", int(take(300 * MIB) is not None))
""")
                self.assertEqual(said, {"refused": 1, "then": 1})
                self.assertEqual(book["refused"], 1)

    def test_where_malloc_writes_all_over_it(self):
        """No trial is made of memory that there is no room for."""
        for env in {"MALLOC_PERTURB_": "7"}, {"GLIBC_TUNABLES": "glibc.malloc.perturb=7"}:
            for size in 3 << 30, 30 << 20:
                with self.subTest(env=env, size=size):
                    book, said = self.python(f"""
import resource
held = fill(4 * MIB, 200)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("refused", int(take({size}) is None))
print("more", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
""", env=env)
                    self.assertEqual(said["refused"], 1)
                    self.assertLess(said["more"], 16)

    def test_threads(self):
        """Each with Python of its own: all of them together do not cross the line."""
        _, said = self.python("""
counts, held = [], []
def work():
    mine = fill(32 * MIB)
    held.append(mine)
    counts.append(len(mine))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("mib", sum(counts) * 32)
""")
        self.assertIn(said["mib"], range(300, 513))

    def test_children(self):
        """What a child asks for counts, too; nothing of its parent's list does."""
        book, said = self.python("""
held = [bytearray(64 * MIB) for _ in range(2)]
reserve = take_zeroed(200 * MIB)
pid = os.fork()
if pid == 0:
    held = fill(64 * MIB)
    print("child", len(held), flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print("parent", int(take(250 * MIB) is None))
libc.free(reserve)
print("then", int(take(250 * MIB) is not None))
""")
        self.assertIn(said["child"], range(1, 7))
        self.assertEqual((said["parent"], said["then"]), (1, 1))
        self.assertEqual(book["refused"], 1)

    def test_armed(self):
        """Threads without Python: aligned memory alone, which frameworks ask for and look at."""
        book, said = self.program("armed")
        said = numbers(said)
        self.assertIn(said["aligned"], range(5, 9))
        self.assertEqual((said["unheard"], said["malloc"], said["mapped"], said["disarmed"]), (16, 16, 16, 16))
        self.assertEqual(book["refused"], 1)

    def test_armed_threads(self):
        book, said = self.program("threads")
        granted, refused = map(int, re.search(r"granted (\d+) refused (\d+)", said).groups())
        self.assertEqual(granted + refused, 320)
        self.assertGreater(granted, 10)
        self.assertGreater(refused, 0)
        self.assertEqual(book["refused"], refused)

    def test_armed_children(self):
        _, said = self.program("forks")
        said = numbers(said)
        self.assertIn(said["child"], range(0, 7))
        self.assertIn(said["parent"], range(4, 7))


class Together(Case):
    """Processes of one job that ask at the same moment: no look of the guard's knows yet what the other was granted."""

    def mostly(self, program, granted):
        """On a busy machine a look may come too late, and the request is granted: three times of five."""
        counts = [0, 0]
        while max(counts) < 3:
            counts[self.python(program)[1]["granted"] in granted] += 1
        self.assertEqual(counts[1], 3)

    def test_at_once(self):
        """Both ask before either touches anything."""
        self.mostly("""
import time
results, result = os.pipe()
at = time.time() + .5
pid = os.fork()
libc.free(take_zeroed(16 * MIB))
while time.time() < at: pass
got = take_zeroed(300 * MIB)
if got: ctypes.memset(got, 1, 300 * MIB)
os.write(result, b"1" if got else b"0")
if pid == 0:
    time.sleep(3)  # it has it until the other has its answer
    os._exit(0)
print("granted", int(os.read(results, 1)) + int(os.read(results, 1)))
os.kill(pid, 9)
os.waitpid(pid, 0)
""", (0, 1))

    def test_one_after_the_other(self):
        """Who would be refused for what the other was granted waits until that is touched, which is seen then; or the other is gone."""
        for goes, granted in (False, 0), (True, 1):
            with self.subTest(goes=goes):
                self.mostly(f"""
import time
asked, ready = os.pipe()
pid = os.fork()
if pid == 0:
    at = take_zeroed(300 * MIB)
    os.write(ready, b".")
    if {goes}: os._exit(0)
    ctypes.memset(at, 1, 300 * MIB)
    time.sleep(3)
    os._exit(0)
os.read(asked, 1)
print("granted", int(take_zeroed(300 * MIB) is not None))
os.kill(pid, 9)
os.waitpid(pid, 0)
""", (granted,))

    def test_both_fit(self):
        """What one has touched long since is no promise any more, however much it asks for and frees."""
        book, said = self.python("""
import time
pid = os.fork()
held = take(150 * MIB)
ctypes.memset(held, 1, 150 * MIB)
for _ in range(60):
    at = take(50 * MIB)
    assert at
    ctypes.memset(at, 1, 50 * MIB)
    libc.free(at)
if pid == 0:
    os._exit(0)
print("child", os.waitpid(pid, 0)[1])
""")
        self.assertEqual(said, {"child": 0})
        self.assertEqual([one["refused"] for one in book["books"]], [0] * len(book["books"]))


class Granted(Case):
    """What must not be refused."""

    def test_what_comes_and_goes(self):
        """A step that fits: again and again, though looks may be from when it was there."""
        book, said = self.python("""
for i in range(25):
    held = [bytearray(100 * MIB) for _ in range(4)]
    del held
print("steps", i + 1)
""")
        self.assertEqual(said, {"steps": 25})
        self.assertEqual(book["refused"], 0)

    def test_small_blocks(self):
        book, said = self.python("""
held = fill(8 * MIB, 100)
print("held", len(held))
""")
        self.assertEqual(said, {"held": 100})
        self.assertEqual(book["refused"], 0)

    def test_what_the_heap_has(self):
        """Memory that malloc kept and that is there already is had without any room."""
        book, said = self.python("""
for _ in range(3):
    libc.free(take(31 * MIB))  # from here on such blocks come out of the heap
hole = take(24 * MIB)
ctypes.memset(hole, 1, 24 * MIB)
wall = take(1000)
held = []
while room() > 12 * MIB:
    held.append(bytearray(4 * MIB))
libc.free(hole)
at = take(23 * MIB)
print("same", int(at is not None and hole <= at < hole + 24 * MIB))
print("more", int(take(28 * MIB) is None))
""")
        self.assertEqual(said, {"same": 1, "more": 1})
        self.assertEqual(book["refused"], 1)

    def test_who_does_not_look(self):
        """Libraries that are not known to look at the answer, and whose memory is not malloc's."""
        book, said = self.python("""
held = fill(64 * MIB)
for library in ctypes.CDLL, ctypes.PyDLL:
    library(os.environ["DEAF"]).deaf(ctypes.c_size_t(300 * MIB))
print("malloc", int(libc.malloc(256 * MIB) is not None))
print("aligned", int(libc.aligned_alloc(64, 256 * MIB) is not None))
mmap.mmap(-1, 256 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
""")
        self.assertEqual(said, {"malloc": 1, "aligned": 1})
        self.assertEqual(book["refused"], 1)

    def test_without_python(self):
        book, said = self.program("plain")
        self.assertEqual(numbers(said), {"malloc": 16})
        self.assertEqual(book["refused"], 0)

    def test_threads_of_a_python_without_frames(self):
        """A thread that a library started, in a program that runs Python."""
        book, said = self.python("""
start = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
held = fill(64 * MIB)
thread = ctypes.c_ulong()
malloc = ctypes.cast(libc.malloc, ctypes.c_void_p)
assert libc.pthread_create(ctypes.byref(thread), None, malloc, ctypes.c_void_p(256 * MIB)) == 0
got = ctypes.c_void_p()
assert libc.pthread_join(thread, ctypes.byref(got)) == 0
print("got", int(got.value is not None))
""")
        self.assertEqual(said, {"got": 1})
        self.assertEqual(book["refused"], 1)

    def test_no_page_or_a_bad_one(self):
        for line, looks in (0, None), (LINE, "unsealed"), (LINE, "short"), (LINE, "old"):
            with self.subTest(looks=looks):
                book, said = self.python("""
print("held", len(fill(64 * MIB, 12)))
print("all", int(room() == 2**64 - 1))
""", line=line, looks=looks)
                self.assertEqual(said, {"held": 12, "all": 1})
                self.assertEqual(book["refused"], 0)

    def test_a_guard_that_looks_no_more(self):
        book, said = self.python("""
import time
print("held", len(fill(64 * MIB, 12)))
time.sleep(1.2)
began = time.monotonic()
take(1024 * MIB)
print("at", int(time.monotonic() - began < 0.2))
""", looks="blind")
        self.assertEqual(said["held"], 12)
        self.assertEqual(book["refused"], 0)


class Told(Case):
    def test_told(self):
        book, _ = self.program("tells", line=0)
        self.assertEqual(book["told"], {"phase": 0, "saved_step": 1, "held_bytes": 2, "batch_count": 64})

    def test_nothing(self):
        book, _ = self.program("plain", line=0)
        self.assertEqual(book["told"], {})


if __name__ == "__main__":
    KEEPER, PROBE, PROGRAM, UMATH, DEAF = sys.argv[1:6]
    unittest.main(argv=sys.argv[:1] + sys.argv[6:])
