#!/usr/bin/env python3
"""The probe in real programs: does it tell the truth, and does it do no harm?

usage: test_probe.py KEEPER PROBE PROGRAM PROGRAM_WITHOUT_FRAME_POINTERS OWN_MALLOC FAKE_TORCH BEFORE_MMAP
                     [STATIC_PROGRAM]

KEEPER (probe_keeper.c) runs a program with the probe and prints the books.
"""
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

KEEPER = PROBE = PROGRAM = BARE = OWN_MALLOC = FAKE_TORCH = BEFORE_MMAP = STATIC = None
HEAP, MAP, OBJECT, PINNED, SHARED = 1, 2, 3, 4, 5
NEW = 0
MIB = 1 << 20
PATIENCE = 120  # seconds that one program may take on a busy machine; a deadlock takes longer


def run(*command, bad=None, **how):
    """What the keeper prints, with what the program said to stderr. On a busy machine a program may go without a book, as
    it waits for the keeper no longer than 1 s: then again."""
    for _ in range(5):
        answer = run_once(*command, bad=bad, **how)
        if bad or answer["books"] and answer["books"][0]["state"] != NEW:
            return answer
    raise AssertionError("no book in five tries")


def run_once(*command, mean=MIB, seed=1, bad=None, behind=None, recycle=False, env=None, patience=PATIENCE):
    with tempfile.TemporaryDirectory() as folder:
        options = ["-m", str(mean), "-s", str(seed)]
        options += ["-b", bad] if bad else []
        options += ["-p", behind] if behind else []
        options += ["-r"] if recycle else []
        environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"} | (env or {})
        result = subprocess.run([KEEPER, *options, PROBE, folder + "/socket", *command], env=environment,
                                capture_output=True, text=True, timeout=patience, check=True)
    answer = json.loads(result.stdout)
    answer["stderr"] = result.stderr
    return answer


def functions(program):
    """(address, name) of a program's functions, in order."""
    out = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    return sorted((int(at, 16), name) for at, name in re.findall(r"^([0-9a-f]+) [tT] (\w+)$", out, re.M))


def function_at(book, table, program, address):
    for module in book["modules"]:
        if module["base"] <= address < module["end"]:
            if os.path.basename(module["path"]) != os.path.basename(program):
                return os.path.basename(module["path"])
            below = [name for at, name in table if at <= address - 1 - module["shift"]]
            return below[-1] if below else "?"
    return "?"


def named_stacks(book, program):
    """Each site with its frames as names."""
    table = functions(program)
    for site in book["sites"]:
        yield site, [function_at(book, table, program, f) if isinstance(f, int) else f for f in site["frames"]]


def live(book, *kinds):
    return sum(site["live"] for site in book["sites"] if not kinds or site["kind"] in kinds)


def truth_of(answer):
    """What a program says that each of its lines or functions holds."""
    return {name: int(n) for name, n in re.findall(r"TRUTH (\w+) (\d+)", answer["stderr"])}


def has_mallinfo2():
    return hasattr(ctypes.CDLL(None), "mallinfo2")


def pythons():
    """One interpreter of each version that is here."""
    found = {}
    paths = glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")) + glob.glob("/usr/bin/python3.[0-9]*")
    for path in sorted(paths):
        if path.endswith("-config"):
            continue
        result = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                                capture_output=True, text=True, check=False)
        version = result.stdout.strip()
        if result.returncode == 0 and 9 <= int(version.split(".")[1]) <= 14:
            found.setdefault(version, path)
    return found


class Sound(unittest.TestCase):
    """Whatever a program does, it ends as it would without us."""

    def check(self, *command, **how):
        answer = run(*command, **how)
        self.assertEqual(answer["status"], 0, answer["stderr"])
        for book in answer["books"]:
            self.assertEqual(book["inside"], 0)
            if book["state"] == NEW:
                continue
            self.assertEqual(book["blocks"], sum(site["live_blocks"] for site in book["sites"]))
            self.assertEqual(book["samples"] - book["frees"], book["blocks"])
        return answer

    def test_modes(self):
        """With every allocation a sample: the most that can go wrong."""
        for program in (PROGRAM, BARE):
            for mode in ("vforks", "threads", "signals", "coroutines", "coroutine_threads", "deep", "wild", "plugins", "edges"):
                with self.subTest(mode=mode, program=os.path.basename(program)):
                    books = self.check(program, mode, mean=1)["books"]
                    self.assertGreater(books[0]["samples"], 10)

    def test_out_of_a_handler(self):
        """A stack leads on into what the signal interrupted."""
        for program in (PROGRAM, BARE):
            book = self.check(program, "signals", mean=1)["books"][0]
            stacks = [names for _, names in named_stacks(book, program) if names and names[0] == "handler"]
            self.assertTrue(stacks)
            for names in stacks:
                self.assertTrue({"signals", "main"} & set(names), names)

    def test_forks_while_threads_allocate(self):
        answer = self.check(PROGRAM, "forks", mean=16384)
        children = [book for book in answer["books"][1:] if book["state"] != NEW]
        self.assertGreater(len(children), 50)  # the others waited in vain, on a busy machine
        table = functions(PROGRAM)
        for book in children:
            self.assertEqual(book["modules"][0]["shift"], answer["books"][0]["modules"][0]["shift"])
            names = {function_at(book, table, PROGRAM, f) for site in book["sites"] for f in site["frames"]}
            self.assertIn("allocate_in_child", names)
            self.assertNotIn("churn", names)  # that is the parent's

    def test_a_crowd(self):
        """Eight processes of sixteen threads, and forks; for longer by probe_stress.py."""
        answer = run(PROGRAM, "crowd", mean=65536, recycle=True)
        self.assertEqual((answer["status"], answer["faults"]), (0, 0), answer["stderr"])
        self.assertGreater(answer["opened"], 1)

    def test_bare_clone_has_its_own_book(self):
        parent, child = self.check(PROGRAM, "clones")["books"]
        self.assertAlmostEqual(live(parent), 4 * MIB, delta=2 * MIB)
        self.assertAlmostEqual(live(child), 14 * MIB, delta=4 * MIB)
        self.assertNotEqual(parent["pid"], child["pid"])

    def test_exec_asks_again(self):
        answer = self.check("/bin/sh", "-c", f"exec {PROGRAM} steps")
        self.assertEqual([book["program"] for book in answer["books"]], ["sh", os.path.basename(PROGRAM)])
        self.assertEqual(answer["books"][0]["pid"], answer["books"][1]["pid"])

    def test_without_a_keeper_it_does_nothing(self):
        for env in ({}, {"ANTIFREEZE_PROBE": ""}, {"ANTIFREEZE_PROBE": "/nowhere/socket"},
                    {"ANTIFREEZE_PROBE": "/" + "x" * 300}):
            result = subprocess.run([PROGRAM, "inert"], env=os.environ | env | {"LD_PRELOAD": PROBE},
                                    capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_keeper_that_fails(self):
        """No book, and no more than a moment lost."""
        for bad in ("hang", "refuse", "short", "unsealed"):
            with self.subTest(bad):
                answer = run(PROGRAM, "inert", bad=bad)
                self.assertEqual(answer["status"], 0)
                self.assertEqual(answer["books"], [])
                if bad == "hang":
                    self.assertGreater(answer["ms"], 250)
                self.assertLess(answer["ms"], 3000)  # 300, on a machine that is not busy

    def test_a_keeper_that_hangs_is_not_waited_for_by_all(self):
        answer = run("sh", "-c", "for i in $(seq 60); do /bin/true; done", bad="hang")
        self.assertEqual(answer["status"], 0)
        self.assertLess(answer["ms"], 60 * 300 / 2)  # some 1600, on a machine that is not busy

    def test_programs_that_lock_themselves_in(self):
        for mode in ("locked", "filtered"):
            with self.subTest(mode):
                answer = run(PROGRAM, mode, mean=1)
                if answer["status"] == 77 << 8:
                    self.skipTest("there is no seccomp here")
                self.assertEqual(answer["status"], 0, answer["stderr"])
                self.assertIn("seccomp", answer["books"][0]["why"])
                self.assertEqual(len(answer["books"]), 1)  # those that it starts ask for none
        self.assertGreaterEqual(live(answer["books"][0], HEAP), 8 * MIB)  # from before

    def test_another_preloaded_library(self):
        names = ("libmemusage.so", "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libmimalloc.so.2")
        for library in [path for name in names for path in glob.glob("/usr/lib/*-linux-gnu/" + name)]:
            with self.subTest(library):
                book = self.check(PROGRAM, "steps", behind=library)["books"][0]
                self.assertAlmostEqual(live(book), 26 * MIB, delta=MIB)
                self.assertEqual(book["heap_ns"], 0)  # libc's heap is not the one
                for mode in ("threads", "forks", "signals"):
                    self.check(PROGRAM, mode, behind=library, mean=65536)

    def test_a_library_that_stands_before_mmap(self):
        """As the sanitizers' do: it is asked, not passed by."""
        answer = run(PROGRAM, "maps", behind=BEFORE_MMAP)
        self.assertIn("mmap of 64 MiB", answer["stderr"])
        self.assertEqual(live(answer["books"][0], MAP), (36 + 32) * MIB)

    def test_nothing_is_loaded_into_a_static_program(self):
        if not STATIC:
            self.skipTest("no static libc")
        answer = run_once(STATIC)
        self.assertEqual((answer["status"], answer["books"]), (0, []))

    def test_nothing_is_loaded_where_rights_change(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make a program that runs as root")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            keeper, probe, program = [shutil.copy(path, folder) for path in (KEEPER, PROBE, PROGRAM)]
            books = []
            for mode in (0o755, 0o4755):
                os.chmod(program, mode)
                result = subprocess.run([keeper, probe, folder + "/socket", program, "steps"], user=65534, group=65534,
                                        extra_groups=[], capture_output=True, text=True, timeout=PATIENCE, check=True)
                answer = json.loads(result.stdout)
                self.assertEqual(answer["status"], 0, result.stderr)
                books.append(len(answer["books"]))
                os.remove(folder + "/socket")
        self.assertEqual(books, [1, 0])


class Truth(unittest.TestCase):
    def held(self, book, program, truth):
        """What each function of the program holds."""
        held = dict.fromkeys([*truth, "pass_through"], 0)
        for site, names in named_stacks(book, program):
            if names and names[0] in held:
                held[names[0]] += site["live"]
                self.assertEqual(names[1], "truth")
        return held

    def test_who_holds_how_much(self):
        for program in (PROGRAM, BARE):
            answer = run(program, "truth", mean=2048)
            truth = truth_of(answer)
            self.assertEqual(len(truth), 4)
            book = answer["books"][0]
            held = self.held(book, program, truth)
            for name, expected in truth.items():
                # Four deviations: 4 % of the largest, 9 % of the smallest; where the heap lies changes which are drawn.
                self.assertLess(abs(held[name] / expected - 1), 4 * (2048 / expected) ** .5, name)
            self.assertEqual(held["pass_through"], 0)
            self.assertEqual(book["dropped_blocks"], 0)

    def test_shares(self):
        """As of a heap of 3 GB at the mean of every day: 5 points are more than five deviations."""
        answer = run(PROGRAM, "truth", mean=16384)
        truth = truth_of(answer)
        held = self.held(answer["books"][0], PROGRAM, truth)
        for name, expected in truth.items():
            self.assertGreater(expected, 0.02 * sum(truth.values()))
            self.assertAlmostEqual(held[name] / sum(held.values()), expected / sum(truth.values()), delta=0.05)

    def test_many_seeds(self):
        """What each function holds, on average over 200 runs, and how far the runs are from it."""
        mean, table = 8192, functions(PROGRAM)
        sums, squares, runs, truth = {}, {}, 200, {}
        for seed in range(1, runs + 1):
            answer = run(PROGRAM, "truth", mean=mean, seed=seed, env={"PART": "40"})
            truth, book = truth_of(answer), answer["books"][0]
            held = dict.fromkeys(truth, 0)
            for site in book["sites"]:
                name = function_at(book, table, PROGRAM, site["frames"][0]) if site["frames"] else None
                if name in held:
                    held[name] += site["live"]
            for name, expected in truth.items():
                sums[name] = sums.get(name, 0) + held[name] / expected / runs
                squares[name] = squares.get(name, 0) + (held[name] / expected - 1) ** 2 / runs
        for name, expected in truth.items():
            deviation = (mean / expected) ** .5  # of one run, at most: 11 to 28 %
            self.assertAlmostEqual(sums[name], 1, delta=4 * deviation / runs ** .5, msg=name)
            self.assertLess(squares[name] ** .5, 1.25 * deviation, name)
            self.assertGreater(squares[name] ** .5, 0.5 * deviation, name)

    def test_killed(self):
        answer = run(PROGRAM, "killed")
        self.assertEqual(answer["status"], signal.SIGKILL)
        book = answer["books"][0]
        self.assertEqual(book["state"], 1)
        self.assertAlmostEqual(live(book, HEAP), 40 * MIB, delta=3 * MIB)

    def test_maps(self):
        book = run(PROGRAM, "maps")["books"][0]
        self.assertEqual(live(book, MAP), (36 + 32) * MIB)

    def test_shared_memory(self):
        with tempfile.TemporaryDirectory(dir=os.path.dirname(PROGRAM)) as folder:
            kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True).stdout
            env = {} if "tmpfs" in kind else {"FOLDER": folder}
            answer = run(PROGRAM, "shares", env=env)
        self.assertEqual(answer["status"], 0, answer["stderr"])
        book = answer["books"][0]
        self.assertEqual(live(book, SHARED), (16 + 20) * MIB)
        self.assertEqual(live(book, MAP), 0)

    def test_high_water(self):
        book = run(PROGRAM, "tides")["books"][0]
        for site, names in named_stacks(book, PROGRAM):
            if names and names[0] == "hold_for_a_while" and site["total"] > 100 * MIB:
                self.assertEqual((site["live"], site["high"], site["low"]), (0, 40 * MIB, 0))
                break
        else:
            self.fail("no such site")
        self.assertEqual(book["live"], live(book))
        self.assertLess(abs(book["high"] - 40 * MIB), 2 * MIB)

    def test_how_full_the_heap_is(self):
        if not has_mallinfo2():
            self.skipTest("a libc without mallinfo2")
        for env in ({}, {"BY_STEP": "1"}):
            with self.subTest(env):
                book = run(PROGRAM, "holes", env=env)["books"][0]
                self.assertGreater(book["heap_ns"], book["opened_ns"] + 2000000000)
                # 80 MB and what each costs; a quarter of it is in use, with a table of 1.6 MB, and one block of 2 MiB.
                self.assertGreater(book["heap_taken"], 80000000)
                self.assertLess(book["heap_taken"], 110000000)
                self.assertGreater(book["heap_used"], 20000000)
                self.assertLess(book["heap_used"], 35000000)

    def test_steps(self):
        book = run(PROGRAM, "steps")["books"][0]
        self.assertEqual(book["steps"], 5)
        self.assertAlmostEqual(sum(site["early"] for site in book["sites"]), 16 * MIB, delta=MIB)
        self.assertAlmostEqual(live(book), 26 * MIB, delta=MIB)

    def test_pinned(self):
        answer = run(PROGRAM, "pinned", env={"FAKE_TORCH": FAKE_TORCH})
        self.assertEqual(answer["status"], 0, answer["stderr"])
        self.assertEqual(live(answer["books"][0], PINNED), 40 * MIB)

    def test_a_malloc_of_its_own(self):
        answer = run(OWN_MALLOC)
        self.assertEqual(answer["status"], 0)
        book = answer["books"][0]
        self.assertIn("malloc of its own", book["why"])
        self.assertEqual(live(book), 8 * MIB)
        self.assertEqual(run(PROGRAM, "steps")["books"][0]["why"], "")

    def test_modules(self):
        book = run(PROGRAM, "steps")["books"][0]
        paths = [module["path"] for module in book["modules"]]
        self.assertIn(os.path.realpath(PROGRAM), paths)
        self.assertTrue(any("libc.so" in path for path in paths))
        self.assertTrue(all(m["base"] < m["end"] for m in book["modules"]))


PYTHON_PROGRAM = """
import os, sys, threading

def numbers(n):
    return [i * 1.5 for i in range(n)]  # line 5

class Loader:
    def load(self):
        self.raw = bytearray(24 << 20)  # line 9
        return self.raw

def helper(size):
    return bytearray(size)  # line 13

def in_thread(kept):
    kept.append(helper(16 << 20))  # line 16

def recurse(depth):
    if depth:
        return recurse(depth - 1)
    return [bytearray(2 << 20) for _ in range(20)]  # line 21

kept = [numbers(1500000)]  # line 23
loader = Loader()
loader.load()  # line 25
for _ in range(30):
    kept.append(helper(4 << 20))  # line 27
thread = threading.Thread(target=in_thread, args=(kept,))
thread.start()
thread.join()
kept.append(recurse(10))  # line 31
os._exit(0)  # so that all is still there
"""


# Sizes that are known to the byte, each held by one line. NumPy's where it is installed.
SHARES_PROGRAM = """
import os, sys
try:
    import numpy
except ImportError:
    numpy = None
N = 400000
truth = {}

def size(things):
    return sum(sys.getsizeof(t) for t in things)

floats = [0.0] * N
for i in range(N):
    floats[i] = i + 0.5  # line 15: 24 each
truth[15] = size(floats)
texts = [None] * N
for i in range(N):
    texts[i] = 'row %d of a table' % i  # line 19
truth[19] = size(texts)
tuples = [None] * N
for i in range(N):
    tuples[i] = (i, None, floats)  # line 23
truth[23] = size(tuples)
blobs = [None] * 300
for i in range(300):
    blobs[i] = bytearray(60000)  # line 27
truth[27] = size(blobs)
large = [bytearray(2 << 20) for i in range(8)]  # line 29
truth[29] = size(large)
if numpy:
    arrays = [None] * 200
    for i in range(200):
        arrays[i] = numpy.ones(10000)  # line 34
    truth[34] = 200 * 80000
for line, held in truth.items():
    print('TRUTH', line, held, file=sys.stderr, flush=True)
os._exit(0)
"""


def interpreters():
    """Those of pythons(), and what is called python3 here, which may have more installed."""
    asked = subprocess.run(["python3", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True,
                           check=False)
    return list(pythons().values()) + ([asked.stdout.strip()] if asked.returncode == 0 else [])


class Python(unittest.TestCase):
    def test_shares(self):
        """Each line's share of the heap, within 5 points of the truth."""
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(SHARES_PROGRAM)
            file.flush()
            for path in interpreters():
                answer = run(path, file.name, mean=16384)
                with self.subTest(path):
                    self.check_shares(answer, file.name)

    def check_shares(self, answer, file):
        self.assertEqual(answer["status"], 0, answer["stderr"])
        truth = truth_of(answer)
        held = dict.fromkeys(truth, 0)
        for site in answer["books"][0]["sites"]:
            lines = [str(f[1]) for f in site["frames"] if isinstance(f, list) and f[0] == file]
            if lines and lines[0] in held:
                held[lines[0]] += site["live"]
        for line, expected in truth.items():
            self.assertAlmostEqual(held[line] / sum(held.values()), expected / sum(truth.values()), delta=0.05, msg=line)
            # Five deviations, and what belongs to no object that the program can ask.
            self.assertAlmostEqual(held[line] / expected, 1, delta=5 * (16384 / expected) ** .5 + 0.02, msg=line)

    def test_greenlets(self):
        """Stacks that are copied away and back. Of an interpreter that has them."""
        path = next((p for p in interpreters() if not subprocess.run([p, "-c", "import greenlet"], capture_output=True,
                                                                     check=False).returncode), None)
        if not path:
            self.skipTest("no greenlet is installed")
        program = ("import os\nfrom greenlet import greenlet, getcurrent\nkept = []\n"
                   "def one():\n    while True:\n        kept.append(bytearray(1 << 20))\n        main.switch()\n"
                   "def deep(n):\n    return deep(n - 1) if n else one()\n"
                   "main = getcurrent()\ngreen = [greenlet(deep) for _ in range(20)]\n"
                   "for _ in range(10):\n    for i, g in enumerate(green):\n        g.switch(*([i] if not g else []))\n"
                   "os._exit(0)\n")
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            answer = run(path, file.name)
        self.assertEqual(answer["status"], 0, answer["stderr"])
        book = answer["books"][0]
        self.assertGreaterEqual(self.held(book, (6, "one"), (9, "deep")), 200 * MIB)

    def held(self, book, *ends, kind=None):
        """Live bytes of the stacks whose innermost frames are these (line, function's last name)."""
        total = 0
        for site in book["sites"]:
            if kind not in (None, site["kind"]):
                continue
            frames = [f for f in site["frames"] if isinstance(f, list)]
            here = [(f[1], f[2].split(".")[-1]) for f in frames[:len(ends)]]
            total += site["live"] if here == list(ends) else 0
        return total

    def test_lines(self):
        if not pythons():
            self.skipTest("no Python of 3.9 to 3.14")
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(PYTHON_PROGRAM)
            file.flush()
            for version, path in pythons().items():
                with self.subTest(version):
                    self.check_version(version, run(path, file.name, mean=65536))

    def assert_holds(self, book, large, *stack):
        """Large blocks are all seen. The object that holds one is small: by chance it is a sample, too, of one mean."""
        more = self.held(book, *stack) - large
        self.assertTrue(0 <= more <= 4 * (65536 + 100), more)

    def check_version(self, version, answer):
        self.assertEqual(answer["status"], 0, answer["stderr"])
        book = answer["books"][0]
        self.assertEqual((book["why"], book["python"]), ("", "CPython " + version))
        self.assertEqual(book["inside"], 0)
        self.assert_holds(book, (24 << 20) + 1, (9, "load"), (25, "<module>"))
        self.assert_holds(book, 30 * ((4 << 20) + 1), (13, "helper"), (27, "<module>"))
        self.assert_holds(book, (16 << 20) + 1, (13, "helper"), (16, "in_thread"))
        inner = [(21, "<listcomp>")] if int(version.split(".")[1]) < 12 else []
        stack = inner + [(21, "recurse")] + [(20, "recurse")] * 10 + [(31, "<module>")]
        self.assert_holds(book, 20 * ((2 << 20) + 1), *stack)
        inner = [(5, "<listcomp>")] if int(version.split(".")[1]) < 12 else []
        floats = self.held(book, *inner, (5, "numbers"), (23, "<module>"), kind=OBJECT)
        self.assertAlmostEqual(floats / (1500000 * 24), 1, delta=0.2)  # 550 samples: 4.3 % each way
        # Of each import one frame of the import system's.
        for site in book["sites"]:
            ours = [isinstance(f, list) and f[0].startswith("<frozen importlib._bootstrap") for f in site["frames"]]
            self.assertNotIn((True, True), zip(ours, ours[1:]))
        # What is mapped for objects is counted as objects.
        self.assertLess(live(book, MAP), 4 * MIB)

    def test_fork_server(self):
        """Workers have their own books, with Python lines."""
        program = ("import multiprocessing as m\n"
                   "def work(n):\n    global k\n    k = bytearray(8 << 20)\n    return len(k)\n"
                   "if __name__ == '__main__':\n"
                   "    with m.get_context('fork').Pool(3) as pool:\n        print(pool.map(work, range(6)))\n")
        for version, path in pythons().items():
            with self.subTest(version), tempfile.NamedTemporaryFile("w", suffix=".py") as file:
                file.write(program)
                file.flush()
                answer = run(path, file.name)
                self.assertEqual(answer["status"], 0, answer["stderr"])
                seen = [b for b in answer["books"][1:] if self.held(b, (4, "work"))]
                self.assertTrue(seen)
                self.assertEqual(seen[0]["python"], "CPython " + version)


if __name__ == "__main__":
    if len(sys.argv) < 8:
        sys.exit(__doc__)
    KEEPER, PROBE, PROGRAM, BARE, OWN_MALLOC, FAKE_TORCH, BEFORE_MMAP = map(os.path.abspath, sys.argv[1:8])
    del sys.argv[1:8]
    if len(sys.argv) > 1 and os.path.exists(sys.argv[1]):
        STATIC = os.path.abspath(sys.argv.pop(1))
    unittest.main()
