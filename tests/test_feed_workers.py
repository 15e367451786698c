#!/usr/bin/env python3
"""The processes that run antifreeze.Loader's transform=: what goes wrong in them, and that they end with the program.

usage: test_feed_workers.py PYTHON_FOLDER LIBRARY [TEST...]

LIBRARY: libantifreeze-loader.so. Needs NumPy and torch.
"""
import gc
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
from feed_case import TransformCase

SAMPLES, WIDTH, BATCH = 1003, 64, 32
BATCHES = -(-SAMPLES // BATCH)
PATIENCE_S = 120  # the machine may be busy

feed_case.begin(__doc__, SAMPLES)
import numpy

import antifreeze
import feed_transforms as transforms

PYTHON, FOLDER = feed_case.PYTHON, feed_case.FOLDER

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
sys.path[:0] = sys.argv[1:4]
import antifreeze, feed_transforms as transforms
loader = antifreeze.Loader(sys.argv[2] + "/x.npy", labels=sys.argv[2] + "/y.npy", batch=32, budget="1M", as_="numpy", shuffle="none",
                           transform=transforms.sleeps, workers=2)
print(*[process.pid for process in loader._native._pool.processes], flush=True)
for batch in loader:
    pass
"""

# Ends while a thread is in a loop over batches that take their time.
LEFT = """
import sys, threading
sys.path[:0] = sys.argv[1:4]
import antifreeze, feed_transforms as transforms
loader = antifreeze.Loader(sys.argv[2] + "/x.npy", labels=sys.argv[2] + "/y.npy", batch=32, budget="1M", as_="numpy",
                           transform=transforms.slow, workers=2)
is_begun = threading.Event()
def loop():
    while True:
        for batch in loader:
            is_begun.set()
threading.Thread(target=loop, daemon=True).start()
is_begun.wait()
print("looping")
"""


class Workers(TransformCase):
    # ---- what goes wrong ----

    def test_a_file_that_makes_a_loader(self):
        """Workers import it for the transform: theirs would import it, too, and so on."""
        with open(FOLDER + "/mydata.py", "w", encoding="utf-8") as file:
            file.write(f"import antifreeze\ndef augment(x, y): return x, y\n"
                       f"loader = antifreeze.Loader({feed_case.X!r}, labels={feed_case.Y!r}, batch=32, budget='4M', as_='numpy', transform=augment)\n")
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
        with open(feed_case.X, "rb") as whole, open(path, "wb") as cut:
            cut.write(whole.read()[:128 + 4 * WIDTH * 800 + 5])
        for workers in (0, 1):
            loader = antifreeze.Loader(path, labels=feed_case.Y, batch=BATCH, budget="1M", on_error="skip", as_="numpy", transform=transforms.plain,
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

    def test_end_with_a_forked_child(self):
        """It has their sockets, too, and may live for long: who closes the loader does not wait for that."""
        loader = self.loader(transforms.plain, 2)
        processes = loader._native._pool.processes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            signal.pause()
        try:
            loader.close()
            self.assertEqual([process.returncode for process in processes], [0, 0])  # none had to be killed
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def test_a_thread_that_nobody_waits_for(self):
        """It is in a loop while the program ends, and its workers before it: nobody is told of that."""
        for _ in range(3):
            done = subprocess.run([sys.executable, "-B", "-c", LEFT, PYTHON, FOLDER, feed_case.HERE], capture_output=True, text=True,
                                  timeout=PATIENCE_S, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "looping\n", ""))

    def test_parent_is_killed(self):
        """Also in the midst of a transform, workers end with the program."""
        child = subprocess.Popen([sys.executable, "-B", "-c", VICTIM, PYTHON, FOLDER, feed_case.HERE], stdout=subprocess.PIPE, text=True)
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
    unittest.main()
