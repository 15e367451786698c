#!/usr/bin/env python3
"""antifreeze.Loader(transform=...): a function of the program's, in workers that write into the loader's memory.

usage: test_feed_transform.py PYTHON_FOLDER LIBRARY [TEST...]

LIBRARY: libantifreeze-loader.so. Needs NumPy; torch is tried where it is.
"""
import ctypes
import functools
import gc
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import feed_case

SAMPLES, WIDTH, BATCH = 1003, 64, 32
BATCHES = -(-SAMPLES // BATCH)
PATIENCE_S = 120  # the machine may be busy

TRANSFORMS = """
import os, random, signal, sys, time
import numpy

def plain(x, y):
    return x.astype("float16"), y

def drawn(x, y):
    return x + numpy.float32(numpy.random.rand()), y, numpy.array([random.random() for _ in y])

def in_place(x, y):
    x *= 2
    return x, y

def named(x, y):
    return {"picture": x[:, :3], "label": y, "count": len(y)}

def one(x, y):
    return x.sum(1)

def turned(x, y):
    return numpy.asarray(x)[:, ::-1].astype(">f4"), numpy.broadcast_to(numpy.asarray(y)[:1], len(y))

def kinds(x, y):
    return numpy.zeros(len(y)) + (type(x).__module__ == "torch")

def tensors(x, y):
    import torch
    return torch.rand(len(y), 2) + x[:, :2], y

def slow(x, y):
    time.sleep(.02)
    return x, y

def at(y, *which):
    return any(int(i) in which for i in y)

def raises(x, y):
    if at(y, 500):
        raise ValueError("no 500")
    return x, y

def raises_at_once(x, y):
    raise ValueError("never")

def exits(x, y):
    if at(y, 500):
        os._exit(3)
    return x, y

def crashes(x, y):
    if at(y, 500):
        os.kill(os.getpid(), signal.SIGSEGV)
    return x, y

def is_killed(x, y):
    if at(y, 500):
        os.kill(os.getpid(), signal.SIGKILL)
    return x, y

def sleeps(x, y):
    if at(y, 500):
        time.sleep(1000)
    return x, y

def grows(x, y):
    return (x.astype("float64") if at(y, 500) else x), y

def widens(x, y):
    return (numpy.concatenate([x, x], 1) if at(y, 500) else x), y

def doubles(x, y):
    return (numpy.concatenate([x, x]) if at(y, 500) else x), y

def leaves(x, y):
    return (x,) if at(y, 500) else (x, y)

def listed(x, y):
    return [row * 2 for row in x] * 2

def texts(x, y):
    return [object() for _ in y]

def wide(x, y):
    return numpy.repeat(x, 1000, 1)

class Scaled:
    def __init__(self, by):
        self.by = by

    def __call__(self, x, y):
        return x * self.by, y

class Unloadable:
    def __call__(self, x, y):
        return x, y

    def __reduce__(self):
        return fail, ()

def fail():
    raise RuntimeError("not in a worker")
"""

# A program as people write them, without `if __name__ == "__main__":`.
BARE = """
import os, sys
sys.path.insert(0, sys.argv[1])
import numpy
import antifreeze
with open(sys.argv[2] + "/runs", "a") as file:
    file.write("begun\\n")
def transform(x, y):
    return x * 3, y
loader = antifreeze.Loader(sys.argv[2] + "/x.npy", labels=sys.argv[2] + "/y.npy", batch=32, budget="1M", as_="numpy", workers=2,
                           transform=transform)
print(sum(int((x[:, 0] == 3 * y).all()) for x, y in loader))
with open(sys.argv[2] + "/runs", "a") as file:
    file.write("done\\n")
"""
GUARDED = BARE.replace("loader = ", "if __name__ == '__main__':\n  loader = ").replace("\nprint", "\n  print")
GUARDED = "\n  with open".join(GUARDED.rsplit("\nwith open", 1))

# Says which processes its workers are, and works on a batch until it is killed.
VICTIM = """
import sys
sys.path[:0] = sys.argv[1:3]
import antifreeze, transforms
loader = antifreeze.Loader(sys.argv[2] + "/x.npy", labels=sys.argv[2] + "/y.npy", batch=32, budget="1M", as_="numpy", shuffle="none",
                           transform=transforms.sleeps, workers=2)
print(*[process.pid for process in loader._native._pool.processes], flush=True)
for batch in loader:
    pass
"""


class Transform(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("error")

    def loader(self, transform, workers, **options):
        options = {"batch": BATCH, "budget": "1M", "seed": 5, "as_": "numpy", **options}
        return antifreeze.Loader(X, labels=Y, transform=transform, workers=workers, **options)

    def epoch(self, loader):
        return [[part.tobytes() for part in batch] for batch in loader]

    def labels(self, loader):
        return [int(i) for batch in loader for i in batch[1]]

    # ---- what comes out ----

    def test_same_for_any_workers(self):
        """Order, values and draws, bit by bit; and the budget is the same."""
        found = []
        for workers in (0, 1, 2, 3):
            loader = self.loader(transforms.drawn, workers)
            found.append([self.epoch(loader), self.epoch(loader), loader.group_samples])
            loader.close()
        for other in found[1:]:
            self.assertEqual(other, found[0])
        first, second, _ = found[0]
        self.assertEqual(len(first), BATCHES)
        self.assertEqual(len({batch[2] for batch in first + second}), 2 * BATCHES)  # each batch draws anew
        labels = numpy.concatenate([numpy.frombuffer(batch[1], "int64") for batch in first])
        self.assertEqual(sorted(labels), list(range(SAMPLES)))
        other = self.loader(transforms.drawn, 0, seed=6)
        self.assertNotEqual(next(iter(other))[2].tobytes(), first[0][2])

    def test_draws_of_ranks_differ(self):
        draws = [next(iter(self.loader(transforms.drawn, 0, rank=rank, ranks=2)))[2].tolist() for rank in (0, 1)]
        self.assertNotEqual(*draws)

    def test_draws_of_the_program_go_on(self):
        import random
        random.seed(1)
        numpy.random.seed(1)
        before = random.random(), numpy.random.rand()
        random.seed(1)
        numpy.random.seed(1)
        self.epoch(self.loader(transforms.drawn, 0))
        self.assertEqual((random.random(), numpy.random.rand()), before)

    def test_kinds_of_results(self):
        for workers in (0, 1):
            with self.subTest(workers=workers):
                for batch in self.loader(transforms.named, workers, shuffle="none"):
                    self.assertEqual(list(batch), ["picture", "label", "count"])
                    self.assertEqual(batch["count"], len(batch["label"]))
                    self.assertTrue((batch["picture"][:, 0] == batch["label"]).all())
                loader = self.loader(transforms.one, workers)
                self.assertEqual(sum(len(batch) for batch in loader), SAMPLES)
                self.assertEqual(loader.fields[0][1:], (numpy.float32, (), 4))
                for x, y in self.loader(transforms.in_place, workers):
                    self.assertTrue((x[:, 0] == 2 * y).all())
                    self.assertEqual(y.ctypes.data % 8, 0)
                for x, y in self.loader(transforms.Scaled(3), workers):
                    self.assertTrue((x[:, 0] == 3 * y).all())
                for x, y in self.loader(functools.partial(transforms.plain), workers, drop_last=True):
                    self.assertEqual(x.shape, (BATCH, WIDTH))

    def test_torch(self):
        if not importlib.util.find_spec("torch"):
            self.skipTest("no torch")
        import torch
        found = []
        for workers in (0, 1):
            loader = self.loader(transforms.tensors, workers, as_="torch")
            batches = list(map(lambda batch: [part.clone() for part in batch], loader))
            self.assertIsInstance(batches[0][0], torch.Tensor)
            found.append(batches)
        for here, there in zip(*found):
            self.assertTrue(all(map(torch.equal, here, there)))
        self.assertEqual([float(next(iter(self.loader(transforms.kinds, 1, as_=name)))[0]) for name in ("torch", "numpy")], [1, 0])
        found = [[part.tolist() for part in next(iter(self.loader(transforms.turned, workers, as_="torch")))] for workers in (0, 1)]
        self.assertEqual(*found)

    def test_ranks_and_parts(self):
        self.assertEqual(sorted(self.labels(self.loader(transforms.plain, 1, subset=(100, 300)))), list(range(100, 300)))
        self.assertEqual(sorted(self.labels(self.loader(transforms.plain, 1, subset=(990, 1000)))), list(range(990, 1000)))
        self.assertEqual(sorted(self.labels(self.loader(transforms.plain, 1, subset=slice(990, None)))), list(range(990, SAMPLES)))
        self.assertEqual(sorted(self.labels(self.loader(transforms.plain, 1, subset=[5, 900, 7]))), [5, 7, 900])
        parts = [self.labels(self.loader(transforms.plain, 1, rank=rank, ranks=3)) for rank in range(3)]
        self.assertEqual(sorted(sum(parts, [])), list(range(SAMPLES)))

    # ---- places ----

    def test_state(self):
        whole = self.loader(transforms.drawn, 0)
        epochs = [self.epoch(whole), self.epoch(whole)]
        whole = sum(epochs, [])
        for batches, workers in ((0, 1), (1, 2), (17, 0), (BATCHES, 1), (BATCHES + 3, 2)):
            with self.subTest(batches=batches):
                first = self.loader(transforms.drawn, 2)
                loop = iter(first)
                for _ in range(min(batches, BATCHES)):
                    next(loop)
                if batches >= BATCHES:
                    self.assertEqual(list(loop), [])
                    loop = iter(first)
                    for _ in range(batches - BATCHES):
                        next(loop)
                then = self.loader(transforms.drawn, workers)
                then.load_state_dict(first.state_dict())
                self.assertEqual(self.epoch(then), whole[batches:BATCHES if batches < BATCHES else 2 * BATCHES])
                first.load_state_dict(then.state_dict())  # also of one that has batches on their way
                self.assertEqual(first.epoch, then.epoch)
        with self.assertRaisesRegex(antifreeze.LoaderError, "seed"):
            first.load_state_dict(self.loader(transforms.drawn, 0, seed=6).state_dict())
        first.set_epoch(1)
        self.assertEqual(self.epoch(first), epochs[1])

    def test_refused_state_changes_nothing(self):
        whole = self.epoch(self.loader(transforms.drawn, 0))
        loader = self.loader(transforms.drawn, 1)
        loop = iter(loader)
        for _ in range(5):
            next(loop)
        with self.assertRaisesRegex(antifreeze.LoaderError, "seed"):
            loader.load_state_dict(self.loader(transforms.drawn, 0, seed=6).state_dict())
        self.assertEqual([part.tobytes() for part in next(loop)], whole[5])

    def test_loops(self):
        plain = self.loader(transforms.drawn, 0)
        epochs = [self.epoch(plain) for _ in range(3)]
        loader = self.loader(transforms.drawn, 2)
        next(iter(loader))
        self.assertEqual(self.epoch(loader), epochs[1])  # who leaves a loop begins the next epoch
        self.assertEqual(self.epoch(loader), epochs[2])
        loader.set_epoch(0)
        self.assertEqual(self.epoch(loader), epochs[0])

    # ---- memory ----

    def test_budget(self):
        """All files without a name that there are, for the loader and its slots, are within the budget together, and nothing lies in
        /dev/shm."""
        before, shm = memory_files(), set(os.listdir("/dev/shm"))
        for budget in (400 << 10, 1 << 20, 4 << 20):
            loader = self.loader(transforms.plain, 1, budget=budget)
            loop = iter(loader)
            next(loop)
            mine = memory_files() - before
            self.assertLessEqual(sum(size for _, size in mine), budget)
            self.assertEqual(len(mine), 2)
            self.assertEqual(memory_files(loader._native._pool.processes[0].pid), mine)
            loader.close()
            del loop, loader
            gc.collect()
            self.assertEqual(memory_files(), before)
        self.assertEqual(set(os.listdir("/dev/shm")) - shm, set())

    def test_floor(self):
        for workers in (0, 1):
            with self.assertRaisesRegex(MemoryError, "batches of 7.8M, of which 3 have to fit") as raised:
                self.loader(transforms.wide, workers)
            words = str(raised.exception)
            floor = words.split("at least ")[1].split(",")[0]
            self.assertEqual(sum(map(len, self.loader(transforms.wide, workers, budget=floor))), SAMPLES)

    def test_hoarder(self):
        loader = self.loader(transforms.plain, 2)
        with self.assertWarnsRegex(RuntimeWarning, "you hold [0-9]+ batches"):
            kept = list(loader)
        self.assertEqual(sorted(int(i) for _, y in kept for i in y), list(range(SAMPLES)))
        self.assertTrue(all((x[:, 0] == y.astype("float16")).all() for x, y in kept))
        self.assertGreater(loader.times().copies, 0)
        self.assertEqual(loader.times().held, BATCHES)
        del kept
        self.assertEqual(loader.times().held, 0)
        self.epoch(loader)
        self.assertEqual(loader.times().copies, 0)

    def test_views_keep_their_slot(self):
        loader = self.loader(transforms.plain, 1)
        loop = iter(loader)
        x, y = next(loop)
        view, before = x[3:5, 7], x[3:5, 7].copy()
        del x, y
        for _ in range(BATCHES - 1):
            next(loop)
        self.assertEqual(loader.times().held, 1)
        self.assertTrue((view == before).all())
        loader.close()
        del loader, loop
        gc.collect()
        self.assertTrue((view == before).all())

    def test_shrinks(self):
        loader = self.loader(transforms.drawn, 2, budget="4M")
        loop = iter(loader)
        seen = [int(i) for i in next(loop)[1]]
        self.assertTrue(loader.shrink(loader.floor_bytes))
        self.assertFalse(loader.shrink("4K"))
        self.assertEqual(sorted(seen + self.labels(loop)), list(range(SAMPLES)))
        self.assertEqual(sorted(self.labels(loader)), list(range(SAMPLES)))

    def test_copies_of_the_loader(self):
        """Where less was asked for at that moment, a batch may lie where no worker reaches."""
        loader = self.loader(transforms.drawn, 3)
        source, copies = loader._native._native, []
        shared = source.shared

        def more():
            found = shared()
            found.leases = 100
            return found

        source.shared = more
        there = loader._native._do_here
        loader._native._do_here = lambda entry: (copies.append(entry), there(entry))
        source.ask(source.facts().floor_bytes)
        self.assertEqual(sorted(self.labels(loader)), list(range(SAMPLES)))
        self.assertTrue(copies)

    # ---- what goes wrong ----

    def test_a_file_that_makes_a_loader(self):
        """Workers import it for the transform: theirs would import it, too, and so on."""
        with open(FOLDER + "/mydata.py", "w", encoding="utf-8") as file:
            file.write(f"import antifreeze\ndef augment(x, y): return x, y\n"
                       f"loader = antifreeze.Loader({X!r}, labels={Y!r}, batch=32, budget='4M', as_='numpy', transform=augment)\n")
        r = subprocess.run([sys.executable, "-B", "-c", "import sys; sys.path[:0] = sys.argv[1:]; import mydata", PYTHON, FOLDER],
                           capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("make the Loader in a function", r.stderr)

    def test_interrupted(self):
        loader = self.loader(transforms.slow, 1)
        loop = iter(loader)
        seen = next(loop)[1].tolist()
        loader._native._pool._asked[0].clear()  # as if its answer had been read, and then Ctrl-C came
        for _, y in loop:  # another worker goes on
            seen += y.tolist()
        self.assertEqual(sorted(seen), list(range(SAMPLES)))

    def test_raises(self):
        for workers in (0, 1, 2):
            loader = self.loader(transforms.raises, workers, shuffle="none")
            loop = iter(loader)
            seen = [int(i) for _ in range(15) for i in next(loop)[1]]
            words = r"(?s)batch 15 of epoch 0 \(samples 480 to 511 .*ValueError: no 500"
            with self.assertRaisesRegex(antifreeze.LoaderError, words) as raised:
                next(loop)
            if workers:
                self.assertIn("in raises", str(raised.exception))  # the traceback
            else:
                self.assertIsInstance(raised.exception.__cause__, ValueError)
            self.assertEqual(seen + self.labels(loop), [*range(480), *range(512, SAMPLES)])  # who goes on, can
            with self.assertRaisesRegex(antifreeze.LoaderError, r"(?s)samples from 0 to 31 .*at the open.*ValueError: never"):
                self.loader(transforms.raises_at_once, workers)

    def test_skips(self):
        for workers in (0, 2):
            loader = self.loader(transforms.raises, workers, shuffle="none", on_error="skip")
            with self.assertWarnsRegex(RuntimeWarning, "left out: .*batch 15 of epoch 0.*ValueError: no 500"):
                self.assertEqual(self.labels(loader), [*range(480), *range(512, SAMPLES)])
            self.assertEqual(loader.times().skipped, 32)
            part = self.loader(transforms.raises, workers, shuffle="none", on_error="skip", subset=(495, 700))  # the first batch
            with self.assertWarnsRegex(RuntimeWarning, "no 500"):
                self.assertEqual(self.labels(part), list(range(527, 700)))
            with self.assertRaisesRegex(antifreeze.LoaderError, "on all batches that it was tried on: ValueError: never"):
                self.loader(transforms.raises_at_once, workers, on_error="skip")

    def test_bad_data(self):
        path = FOLDER + "/cut.npy"
        with open(X, "rb") as whole, open(path, "wb") as cut:
            cut.write(whole.read()[:128 + 4 * WIDTH * 800 + 5])
        for workers in (0, 1):
            loader = antifreeze.Loader(path, labels=Y, batch=BATCH, budget="1M", on_error="skip", as_="numpy", transform=transforms.plain,
                                       workers=workers)
            with self.assertWarnsRegex(RuntimeWarning, "were left out"):
                self.assertEqual(sorted(self.labels(loader)), list(range(800)))
            self.assertEqual(loader.times().skipped, SAMPLES - 800)

    def test_worker_dies(self):
        for transform, words in ((transforms.exits, "exit code 3"), (transforms.crashes, "signal 11"),
                                 (transforms.is_killed, "SIGKILL.*memory")):
            with self.subTest(words):
                loader = self.loader(transform, 2, shuffle="none", on_error="skip")
                loop = iter(loader)
                with self.assertRaisesRegex(antifreeze.LoaderError, rf"worker .* ended on batch 15 of epoch 0 \(samples 480 .*{words}"):
                    self.labels(loop)
                with self.assertRaisesRegex(antifreeze.LoaderError, words):  # and again, at once
                    next(iter(loader))
                self.assertEqual([process.poll() is not None for process in loader._native._pool.processes], [True, True])
        with self.assertRaisesRegex(antifreeze.LoaderError, "ended on the first samples .* at the open: with exit code 3"):
            self.loader(transforms.exits, 1, subset=(495, 700))

    def test_changes(self):
        for workers in (0, 1):
            for transform, words in ((transforms.grows, r"float64 \(32, 64\).*first batch float32 \(32, 64\)"),
                                     (transforms.widens, r"\(32, 128\)"), (transforms.doubles, r"\(64, 64\)"),
                                     (transforms.leaves, "first batch .* and ")):
                for on_error in ("raise", "skip"):  # it is no bad sample
                    with self.assertRaisesRegex(antifreeze.LoaderError, rf"(?s){words}.*batch 15 of epoch 0"):
                        self.labels(self.loader(transform, workers, shuffle="none", on_error=on_error))
            with self.assertRaisesRegex(antifreeze.LoaderError, "gave 64 things.*stack"):
                self.loader(transforms.listed, workers)
            with self.assertRaisesRegex(antifreeze.LoaderError, "no array of numbers"):
                self.loader(lambda x, y: numpy.array([object()]), 0)

    def test_options(self):
        for transform, workers, kind, words in ((lambda x, y: x, 1, antifreeze.LoaderError, "lambda.*top of a file.*workers=0"),
                                                (self.loader, 1, antifreeze.LoaderError, "cannot be sent.*workers=0"),
                                                (transforms.Unloadable(), 1, antifreeze.LoaderError, "(?s)could not.*not in a worker"),
                                                (3, 1, TypeError, "a function"), (transforms.plain, -1, ValueError, "workers=-1"),
                                                (transforms.plain, 1.5, ValueError, "workers=1.5")):
            with self.assertRaisesRegex(kind, words):
                self.loader(transform, workers)
        self.assertEqual(sum(1 for _ in self.loader(lambda x, y: x, 0)), BATCHES)

    def test_fork(self):
        loader = self.loader(transforms.plain, 1)
        x, _ = next(iter(loader))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            try:
                list(loader)
            except antifreeze.LoaderError as error:
                del x, loader
                gc.collect()
                os._exit(0 if "fork" in str(error) else 1)
            os._exit(2)
        ended = [0, 0]

        def is_ended():
            ended[:] = os.waitpid(pid, os.WNOHANG)
            return ended[0]

        if not wait_until(is_ended):
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(ended, [pid, 0])
        self.assertEqual(sorted(self.labels(loader)), list(range(SAMPLES)))

    # ---- processes ----

    def test_workers_end(self):
        for how in ("close", "forget", "error"):
            with self.subTest(how):
                loader = self.loader(transforms.sleeps if how == "close" else transforms.plain, 2, shuffle="none")
                processes = loader._native._pool.processes
                loop = iter(loader)
                for _ in range(14 if how == "close" else 1):  # then one is busy for long
                    next(loop)
                began = time.monotonic()
                if how == "close":
                    loader.close()
                    with self.assertRaisesRegex(antifreeze.LoaderError, "closed"):
                        next(loop)
                del loop, loader
                gc.collect()
                self.assertTrue(all(process.poll() is not None for process in processes))
                self.assertLess(time.monotonic() - began, 60)

    def test_parent_is_killed(self):
        """Also in the midst of a transform, workers end with the program."""
        child = subprocess.Popen([sys.executable, "-B", "-c", VICTIM, PYTHON, FOLDER], stdout=subprocess.PIPE, text=True)
        pids = [int(pid) for pid in child.stdout.readline().split()]
        self.assertEqual(len(pids), 2)
        self.assertTrue(wait_until(lambda: any(is_asleep(pid) for pid in pids)))
        child.kill()
        child.wait()
        child.stdout.close()
        self.assertTrue(wait_until(lambda: not any(is_alive(pid) for pid in pids)))

    def test_started_by_a_thread(self):
        """Linux would end workers with the thread that started them."""
        made = []
        thread = threading.Thread(target=lambda: made.append(self.loader(transforms.plain, 1)))
        thread.start()
        thread.join()
        self.assertEqual(sorted(self.labels(made[0])), list(range(SAMPLES)))

    def test_programs(self):
        """The transform is found in the program's own file, whether its work stands under `if __name__ == "__main__":` or not."""
        for name, program in (("bare", BARE), ("guarded", GUARDED)):
            for way in ("file", "module"):
                with self.subTest(name, way=way), tempfile.TemporaryDirectory() as folder:
                    for file in "x.npy", "y.npy":
                        os.symlink(f"{FOLDER}/{file}", f"{folder}/{file}")
                    os.mkdir(folder + "/package")
                    with open(folder + "/package/program.py", "w", encoding="utf-8") as file:
                        file.write(program)
                    command = ["package/program.py"] if way == "file" else ["-m", "package.program"]
                    done = subprocess.run([sys.executable, "-B", *command, PYTHON, folder], cwd=folder, capture_output=True, text=True,
                                          timeout=PATIENCE_S, check=False)
                    self.assertEqual((done.stdout.strip(), done.stderr), (str(BATCHES), ""))
                    with open(folder + "/runs", encoding="ascii") as file:
                        self.assertEqual(sorted(file), ["begun\n"] * 3 + ["done\n"])  # two workers have read it, and stopped in time

    def test_session(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in "x.npy", "y.npy":
                os.symlink(f"{FOLDER}/{file}", f"{folder}/{file}")
            done = subprocess.run([sys.executable, "-B", "-c", BARE, PYTHON, folder], capture_output=True, text=True,
                                  timeout=PATIENCE_S, check=False)
        self.assertRegex(done.stderr, "LoaderError: transform=transform was written in a session .*workers=0")

    # ---- figures ----

    def test_slowest(self):
        loader = self.loader(transforms.slow, 1, subset=(0, 320))
        self.epoch(loader)
        times = loader.times()
        self.assertEqual(times.limited_by, "transform")
        self.assertRegex(times.words, r"^the transform: [\d,]+ samples/s in 1 worker; the program waited for data \d+ % of the time$")
        self.assertGreaterEqual(times.transform_s, 10 * .02)
        loader = self.loader(transforms.plain, 1, subset=(0, 320))
        for _ in loader:
            time.sleep(.05)
        self.assertEqual(loader.times().limited_by, "consumer")
        self.assertRegex(loader.times().words, r"^your training step: batches waited for it \d+ % of the time$")


def memory_files(pid="self"):
    """(inode, bytes) of files without a name that a process has open."""
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/memfd:"):
                status = os.stat(f"/proc/{pid}/fd/{fd}")
                found.add((status.st_ino, status.st_size))
        except FileNotFoundError:
            pass
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_asleep(pid):
    """In a transform that sleeps."""
    try:
        with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
            return "nanosleep" in file.read()
    except FileNotFoundError:
        return False


def wait_until(condition):
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(.02)
    return False


if __name__ == "__main__":
    PYTHON = feed_case.enter(__doc__, "numpy")
    import numpy

    import antifreeze
    with tempfile.TemporaryDirectory() as FOLDER:
        X, Y = FOLDER + "/x.npy", FOLDER + "/y.npy"
        rows = numpy.arange(SAMPLES, dtype=numpy.float32)[:, None] + numpy.arange(WIDTH, dtype=numpy.float32)
        numpy.save(X, rows)
        numpy.save(Y, numpy.arange(SAMPLES))
        with open(FOLDER + "/transforms.py", "w", encoding="utf-8") as program:
            program.write(TRANSFORMS)
        sys.path.insert(0, FOLDER)
        import transforms
        unittest.main()
