#!/usr/bin/env python3
"""antifreeze.Loader: arrays over the loader's own memory, in an order that can be gone on with. How they get to other frameworks, to
GPUs and ranks: test_feed_handover.py.

usage: test_feed_loader.py PYTHON_FOLDER LIBRARY [TEST...]

LIBRARY: libantifreeze-loader.so. Needs NumPy and torch.
"""
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import warnings
import zlib

import feed_case

SAMPLES, WIDTH = 5003, 64
KILLS = int(os.environ.get("KILLS", 10))

# Goes through an epoch and writes each batch's labels and the state behind it, until it is killed; goes on where it finds itself.
TRAINER = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import antifreeze
loader = antifreeze.Loader(sys.argv[2] + "/x.npy", labels=sys.argv[2] + "/y.npy", batch=32, budget="1M", seed=5, as_="numpy", threads=int(sys.argv[3]))
log = sys.argv[2] + "/log"
if os.path.exists(log):
    with open(log) as file:
        lines = [line for line in file.read().split("\\n")[:-1]]
    with open(log, "w") as file:
        file.write("".join(line + "\\n" for line in lines))
    if lines:
        loader.load_state_dict(json.loads(lines[-1])[1])
with open(log, "a", buffering=1) as file:
    for x, y in loader:
        file.write(json.dumps([y.tolist(), loader.state_dict()]) + "\\n")
print("done")
"""


class Feed(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("error")

    def loader(self, **options):
        options = {"batch": 32, "budget": "1M", "seed": 5, **options}
        return antifreeze.Loader(X, labels=Y, **options)

    def labels(self, loader):
        return [int(i) for _, y in loader for i in y]

    def test_numpy(self):
        loader = self.loader(as_="numpy")
        self.assertEqual(len(loader), -(-SAMPLES // 32))
        self.assertEqual(loader.samples, SAMPLES)
        self.assertTrue(0 < loader.shuffle_quality < 1)
        seen, epochs = [], []
        for x, y in loader:
            self.assertTrue((x[:, 0] == y).all() and (x[:, WIDTH - 1] == y + WIDTH - 1).all())
            self.assertEqual(x.dtype, numpy.float32)
            self.assertEqual(y.ctypes.data % 64, 0)
            seen += y.tolist()
        self.assertEqual(sorted(seen), list(range(SAMPLES)))
        epochs = [self.labels(loader) for _ in range(2)]
        self.assertNotEqual(epochs[0], seen)
        again = self.loader(as_="numpy", threads=3)
        self.assertEqual(self.labels(again), seen)
        self.assertEqual(self.labels(again), epochs[0])
        self.assertIn(loader.times().limited_by, ("disk", "cache", "decode", "gather", "consumer"))

    def test_one_array(self):
        for x in antifreeze.Loader(X, batch=100, budget="4M", as_="numpy"):
            self.assertEqual(x.shape[1:], (WIDTH,))

    def test_torch(self):
        loader = self.loader()
        x, y = next(iter(loader))
        self.assertIsInstance(x, torch.Tensor)
        self.assertTrue(torch.equal(x[:, 0].long(), y))
        for workers, is_good in ((0, True), (1, False)):
            data = torch.utils.data.DataLoader(self.loader(), batch_size=None, num_workers=workers)
            self.assertEqual(len(data), len(loader))
            if is_good:
                self.assertEqual(sorted(int(i) for _, y in data for i in y), list(range(SAMPLES)))
            else:
                with self.assertRaisesRegex(Exception, "num_workers=0"):
                    list(data)

    def test_views_keep_the_lease(self):
        loader = self.loader(as_="numpy")
        loop = iter(loader)
        x, y = next(loop)
        view, before = x[3:5, 7], x[3:5, 7].copy()
        del x, y
        for _ in range(40):
            next(loop)
        self.assertEqual(loader.times().held, 1)
        self.assertTrue((view == before).all())
        loader.close()
        del loader, loop
        gc.collect()
        self.assertTrue((view == before).all())

    def test_all_is_given_back(self):
        loader = self.loader()
        for _ in range(3):
            for x, y in loader:
                z = x * 2
        del x, y, z
        self.assertEqual(loader.times().held, 0)
        self.assertEqual(loader.times().copies, 0)

    def test_hoarder(self):
        loader = self.loader(as_="numpy")
        with self.assertWarnsRegex(RuntimeWarning, "you hold [0-9]+ batches"):
            kept = list(loader)
        self.assertEqual(sorted(int(i) for _, y in kept for i in y), list(range(SAMPLES)))

    def test_state(self):
        whole = self.labels(self.loader())
        for batches in (0, 1, 20, 156, 157):
            first = self.loader()
            loop = iter(first)
            start = [int(i) for _ in range(batches) for i in next(loop)[1]]
            state = first.state_dict()
            then = self.loader(threads=2)
            then.load_state_dict(state)
            self.assertEqual(start + self.labels(then), whole)
        with self.assertRaisesRegex(antifreeze.LoaderError, "no state"):
            then.load_state_dict({"antifreeze.loader": "00"})
        with self.assertRaisesRegex(antifreeze.LoaderError, "seed"):
            self.loader(seed=6).load_state_dict(state)

    def test_loops(self):
        loader = self.loader()
        whole = [self.labels(loader) for _ in range(3)]
        again = self.loader()
        first = iter(again)
        start = [int(i) for i in next(first)[1]]
        self.assertEqual(start, whole[0][:32])
        self.assertEqual(self.labels(again), whole[1])  # who leaves a loop begins the next epoch
        with self.assertRaisesRegex(RuntimeError, "another loop"):
            next(first)
        again.set_epoch(2)
        self.assertEqual(self.labels(again), whole[2])

    def test_less_is_in_a_state(self):
        """After less was asked for, a state leads on to what the run itself had; also where batches are taken ahead of the loop."""
        import feed_transforms
        for options in {}, {"transform": feed_transforms.drawn, "workers": 0}, {"transform": feed_transforms.drawn, "workers": 1}:
            with self.subTest(options):
                loader, then = self.loader(**options), self.loader(**options)
                loop = iter(loader)
                for _ in range(20):
                    next(loop)
                before = loader.state_dict()
                loader.shrink((loader.floor_bytes + loader.budget_bytes) // 2)
                state = loader.state_dict()
                self.assertNotEqual(state, before)
                numbers = lambda batches: [int(number) for batch in batches for number in batch[1]]
                rest, following = numbers(loop), numbers(loader)
                then.load_state_dict(state)
                self.assertEqual((numbers(then), numbers(then)), (rest, following))

    def test_the_end_stays_the_end(self):
        loop = iter(self.loader())
        self.assertEqual(sum(1 for _ in loop), -(-SAMPLES // 32))
        self.assertEqual(list(loop), [])

    def test_closed_by_another_thread(self):
        """Who is in a call meanwhile keeps what it works on until it comes back, and is told then."""
        before = gatherers()
        loader = self.loader(as_="numpy")
        mine = gatherers() - before
        loop, library, seen = iter(loader), loader._native._library, []

        class Slow:
            def __getattr__(self, name):
                return getattr(library, name)

            def afz_loader_next_within(self, handle, *rest):
                loader.close()  # as from another thread, while this one is inside
                seen.append(mine <= gatherers())
                return library.afz_loader_next_within(handle, *rest) if seen[0] else 0

        next(loop)
        loader._native._library = Slow()
        x, y = next(loop)
        with self.assertRaisesRegex(antifreeze.LoaderError, "closed"):
            next(loop)
        self.assertEqual((len(mine), seen), (1, [True]))
        while mine & gatherers():  # it was joined; its folder in /proc goes a moment later
            pass
        self.assertTrue((x[:, 0] == y).all())

    def test_not_closed_at_exit(self):
        """A thread that nobody waits for may be in next() while the program ends."""
        program = ("import atexit, sys; sys.path[:0] = sys.argv[1:3]; import test_feed_loader\n"
                   "atexit.register(lambda: print(len(test_feed_loader.gatherers())))\n"  # comes last
                   "import antifreeze; loader = antifreeze.Loader(sys.argv[3], batch=1, budget='1M', as_='numpy')")
        said = subprocess.run([sys.executable, "-B", "-c", program, PYTHON, os.path.dirname(os.path.abspath(__file__)), X],
                              check=True, timeout=120, stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(said.strip(), "1")

    def test_error_travels(self):
        import pickle
        with self.assertRaises(antifreeze.LoaderError) as raised:
            self.loader(budget="10K")
        again = pickle.loads(pickle.dumps(raised.exception))
        self.assertIs(type(again), type(raised.exception))
        self.assertEqual((str(again), again.errno), (str(raised.exception), raised.exception.errno))

    def test_ranks(self):
        parts = [self.labels(self.loader(rank=rank, ranks=3)) for rank in range(3)]
        self.assertEqual(sorted(sum(parts, [])), list(range(SAMPLES)))
        os.environ.update(RANK="1", WORLD_SIZE="3")
        try:
            self.assertEqual(self.labels(self.loader()), parts[1])
        finally:
            del os.environ["RANK"], os.environ["WORLD_SIZE"]

    def test_subset_and_last(self):
        self.assertEqual(sorted(self.labels(self.loader(subset=(100, 300)))), list(range(100, 300)))
        self.assertEqual(len(self.labels(self.loader(drop_last=True))), SAMPLES // 32 * 32)
        self.assertEqual(self.labels(self.loader(shuffle="none")), list(range(SAMPLES)))

    def test_errors(self):
        for options, kind, words in (({"budget": "10K"}, MemoryError, "needs at least"), ({"budget": "lots"}, ValueError, "no size"),
                                     ({"shuffle": "very"}, ValueError, "window"), ({"as_": "lisp"}, ValueError, "numpy"),
                                     ({"batch": 0}, ValueError, "batch"), ({"batch": 1 << 32 | 32}, ValueError, "batch"),
                                     ({"subset": (0, 0)}, ValueError, "subset"), ({"subset": (-5, 3)}, ValueError, "subset"),
                                     ({"subset": (0, SAMPLES + 1)}, antifreeze.LoaderError, "there are")):
            with self.assertRaisesRegex(kind, words):
                self.loader(**options)
        with self.assertRaisesRegex(antifreeze.LoaderError, "No such file"):
            antifreeze.Loader("/nowhere.npy", batch=1)
        with self.assertRaisesRegex(TypeError, "name of a file"), open(X, "rb") as file:
            antifreeze.Loader(file, batch=1)
        if not torch.cuda.is_available():
            with self.assertRaisesRegex(RuntimeError, "no GPU here"):
                next(iter(self.loader(device="cuda")))

    def test_arguments(self):
        """What is not meant so, and what would do nothing, is said."""
        whole = "it is a whole number"
        for options, words in (({"batch": 2.7}, rf"batch=2.7: {whole} of 1 or more"), ({"batch": -1}, rf"batch=-1: {whole} of 1 or more"),
                               ({"batch": True}, "batch=True"), ({"batch": "32"}, "batch='32'"), ({"batch": 1 << 40}, "4294967295 at most"),
                               ({"threads": -1}, "threads=-1"), ({"seed": .5}, "seed=0.5"), ({"draws": -1}, "draws=-1"),
                               ({"rank": 3, "ranks": 3}, rf"rank=3: {whole} of 2 at most"), ({"rank": 0, "ranks": 0}, "ranks=0"),
                               ({"workers": 2}, "workers=2: these run a transform="), ({"draws": 5}, "draws=5: it goes with weights="),
                               ({"details": {"dtype": "f4"}}, "details=.*x.npy says itself what it is")):
            with self.subTest(str(options)), self.assertRaisesRegex(ValueError, words):
                self.loader(**options)
        self.assertEqual(self.loader(batch=numpy.int32(100), workers=0).batch, 100)

    def test_closed(self):
        with self.loader() as loader:
            loop = iter(loader)
            next(loop)
            before = loader.state_dict(), loader.progress, loader.times().epoch
        loader.close()
        self.assertEqual((loader.state_dict(), loader.progress, loader.times().epoch), before)
        for way in loop.__next__, lambda: next(iter(loader)), lambda: loader.set_epoch(1):
            with self.assertRaisesRegex(antifreeze.LoaderError, "closed"):
                way()

    def test_skip(self):
        path = FOLDER + "/cut.npy"
        with open(X, "rb") as whole, open(path, "wb") as cut:
            cut.write(whole.read()[:128 + 4 * WIDTH * 4000 + 5])
        with self.assertRaisesRegex(antifreeze.LoaderError, "cut off"):
            antifreeze.Loader(path, labels=Y, batch=32, budget="1M")
        loader = antifreeze.Loader(path, labels=Y, batch=32, budget="1M", on_error="skip")
        with self.assertWarnsRegex(RuntimeWarning, "were left out"):
            self.assertEqual(sorted(self.labels(loader)), list(range(4000)))
        self.assertEqual(loader.times().skipped, SAMPLES - 4000)

    def test_first_batch_cannot_be_read(self):
        """The next loop begins anew, and does not go on behind it as if it had been given."""
        folder = FOLDER + "/bad.zarr"
        os.makedirs(folder)
        with open(folder + "/.zarray", "w", encoding="ascii") as file:
            json.dump({"zarr_format": 2, "shape": [1000], "chunks": [100], "dtype": "<i8", "compressor": {"id": "zlib", "level": 1},
                       "fill_value": 0, "order": "C", "filters": None}, file)
        for n in range(10):
            with open(f"{folder}/{n}", "wb") as file:
                file.write(zlib.compress(numpy.arange(100 * n, 100 * n + 100, dtype="<i8").tobytes()) if n else b"rubbish")
        loader = antifreeze.Loader(folder, batch=50, budget="1M", shuffle="none", as_="numpy")
        for _ in range(4):
            with self.assertRaisesRegex(antifreeze.LoaderError, "bad.zarr"):
                for _ in loader:
                    pass

    def test_fork(self):
        loader = self.loader(as_="numpy")
        x, _ = next(iter(loader))
        pid = os.fork()
        if pid == 0:
            try:
                list(loader)
            except antifreeze.LoaderError as error:
                del x
                os._exit(0 if "fork" in str(error) else 1)
            os._exit(2)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(len(self.labels(loader)), SAMPLES)

    def test_killed_anywhere(self):
        """The order after SIGKILL is the order without it."""
        import json
        import random
        whole = self.labels(self.loader())
        chance = random.Random(3)
        for turn in range(KILLS):
            with tempfile.TemporaryDirectory() as folder:
                for name in "x.npy", "y.npy":
                    os.symlink(f"{FOLDER}/{name}", f"{folder}/{name}")
                said = ""
                while "done" not in said:
                    command = [sys.executable, "-B", "-c", TRAINER, PYTHON, folder, str(1 + turn % 4)]
                    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                    stop_at = chance.randrange(5, 60)  # batches
                    before = batches_in(folder)
                    while child.poll() is None and batches_in(folder) < before + stop_at:
                        pass
                    child.send_signal(signal.SIGKILL)
                    said = child.communicate()[0]
                with open(folder + "/log", encoding="ascii") as file:
                    got = [label for line in file for label in json.loads(line)[0]]
                self.assertEqual(got, whole)


def gatherers():
    """Of this process's loaders that are not closed: each has one such thread."""
    found = set()
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm", encoding="ascii") as file:
                found |= {task} if file.read() == "afz-gather\n" else set()
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended meanwhile
    return found


def batches_in(folder):
    try:
        with open(folder + "/log", "rb") as file:
            return file.read().count(b"\n")
    except FileNotFoundError:
        return 0


if __name__ == "__main__":
    PYTHON = feed_case.enter(__doc__, "numpy", "torch")
    import numpy
    import torch

    import antifreeze
    with tempfile.TemporaryDirectory() as FOLDER:
        X, Y = FOLDER + "/x.npy", FOLDER + "/y.npy"
        rows = numpy.arange(SAMPLES, dtype=numpy.float32)[:, None] + numpy.arange(WIDTH, dtype=numpy.float32)
        numpy.save(X, rows)
        numpy.save(Y, numpy.arange(SAMPLES))
        unittest.main()
