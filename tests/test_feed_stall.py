#!/usr/bin/env python3
"""What holds up an antifreeze.Loader, as `antifreeze why` tells it of real runs: a disk that is slow, pictures that take their time,
and a program that is well fed, of which nothing is said.

usage: test_feed_stall.py PYTHON_FOLDER ANTIFREEZE LIBRARY SLOW_READ [TEST...]

LIBRARY: libantifreeze-loader.so; SLOW_READ: slow_read.c. Needs NumPy. The runs go on side by side: most of their time they wait.
"""
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zlib
from concurrent.futures import ThreadPoolExecutor

from frameworks import skip_without
from scenario import World

SECONDS = 27  # a stall is one after 20 s of steps
PATIENCE = 300
RATE = 8 << 20  # bytes a second of the slow disk
ROWS, WIDTH = 128 << 10, 1024  # of 4 KiB: 512 MiB, which the slow disk gives in a minute
HELD = 12
SLOWLY = "lambda x: (time.sleep(.02), x)[1]"
PICTURES, SIDE = 128, 400
IMAGE = {"height": 224, "width": 224}  # 19 MB of them when they are decoded

# Its steps take so long; ends in the midst of an epoch, without a word.
TRAINER = """
import collections, os, sys, time, warnings
data, options, step_s, seconds, held = sys.argv[1], eval(sys.argv[2]), *map(float, sys.argv[3:])
warnings.simplefilter("ignore")  # that it holds batches
import antifreeze
if "transform" in options:
    options["transform"] = eval(options["transform"])
loader = antifreeze.Loader(data, seed=1, as_="numpy", **options)
kept, end = collections.deque(maxlen=int(held)), time.monotonic() + seconds
while time.monotonic() < end:
    for batch in antifreeze.steps(loader):
        kept.append(batch)
        time.sleep(step_s)
        if time.monotonic() > end:
            break
print(loader.times())
print("done", flush=True)
os._exit(0)
"""


def png(side, draw):
    """Of few colours, which are slow to unpack."""
    colours = bytes(i & 15 for i in range(256))
    rows = b"".join(b"\0" + draw.randbytes(side * 3).translate(colours) for _ in range(side))
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)


def write_rows(path, rows):
    """A .npy of zeros that takes no room."""
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, WIDTH)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117) + b"\n")
        file.truncate(128 + rows * WIDTH * 4)


class FakeNative:
    """A loader that is asked for its figures."""
    is_closed, side = False, 2

    def times(self):
        assert not self.is_closed
        return self

    _fields_ = [(name, None) for name in ("epoch", "epoch_ns", "waited_ns", "idle_ns", "read_ns", "decode_ns", "gather_ns", "held_most", "copies")]
    epoch, epoch_ns, waited_ns, idle_ns, read_ns, decode_ns, gather_ns, held_most, copies = 7, 10**10, 4 * 10**9, 0, 0, 0, 0, 12, 3

    def slowest(self):
        return self.side, "the disk: 1M/s"

    def facts(self):
        return self

    threads = 2


class Telling(unittest.TestCase):
    """How often; by a clock of its own."""

    def setUp(self):
        self.now, self.events, self.native = 0, [], FakeNative()
        for where, name, fake in ((stall, "monotonic_ns", lambda: self.now), (stall.talk, "speaks", lambda: True),
                                  (stall.talk, "event", lambda kind, words, **keys: self.events.append((self.now, kind, words, keys)))):
            patch = unittest.mock.patch.object(where, name, fake)
            patch.start()
            self.addCleanup(patch.stop)

    def play(self, teller, seconds, batch_s, batches):
        """Epochs of so many batches."""
        end, number = self.now + seconds * 10**9, 0
        while self.now < end:
            self.now += int(batch_s * 1e9)
            number += 1
            if self.now >= teller.due_ns:
                teller.tell()
            if number % batches == 0:
                teller.over()

    def test_what_is_told(self):
        stall.Teller(self.native).tell()
        self.assertEqual(self.events, [(0, "feed", "the disk: 1M/s", {
            "limit": "disk", "epoch": 7, "epoch_ms": 10000, "waited_ms": 4000, "threads": 2, "held": 12, "copies": 3})])
        self.native.side = 0  # nothing has come yet
        stall.Teller(self.native).tell()
        self.assertEqual(len(self.events), 1)

    def test_every_epoch_that_takes_its_time(self):
        self.play(stall.Teller(self.native), 20, .5, 4)
        self.assertTrue({t for t, *_ in self.events} >= {s * 10**9 for s in range(2, 21, 2)})

    def test_short_epochs(self):
        """A day of a thousand a second."""
        teller = stall.Teller(self.native)
        self.play(teller, 60, .001, 1)
        self.assertTrue(50 <= len(self.events) <= 60, len(self.events))
        self.play(teller, 24 * 3600, 1, 1)
        self.assertTrue(len(self.events) < 1000, len(self.events))

    def test_one_long_epoch(self):
        self.play(stall.Teller(self.native), 24 * 3600, 1, 10**9)
        self.assertTrue(20 < len(self.events) < 100, len(self.events))
        self.assertTrue(self.events[0][0] <= 3 * 10**9)
        self.assertTrue(self.events[-1][0] > .7 * self.now)

    def test_close(self):
        teller = stall.Teller(self.native)
        self.now = 1_500_000_000
        teller.close()
        self.assertEqual(len(self.events), 1)
        self.native.is_closed = True
        self.now *= 100
        teller.close()
        teller.over()
        self.assertEqual(len(self.events), 1)

    def test_nobody_listens(self):
        with unittest.mock.patch.object(stall.talk, "speaks", lambda: False):
            self.play(stall.Teller(self.native), 100, .1, 3)
        self.assertEqual(self.events, [])


class Run:
    """Of the program under `antifreeze run`, and what is told of it."""

    def __init__(self, data, options, step_s, seconds, held=1, slow=False):
        self.world = World(ANTIFREEZE_LOADER=LIBRARY)
        command = [PYTHON, "-c", TRAINER, data, repr(options), str(step_s), str(seconds), str(held)]
        if slow:  # the job alone, and beside what is preloaded anyway
            command = ["sh", "-c", f'LD_PRELOAD="{SLOW}:$LD_PRELOAD" SLOW_READ={RATE} exec "$@"', "sh", *command]
        self.ran = subprocess.run([ANTIFREEZE, "run", "--", *command], env=self.world.env, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
        self.why = json.loads(self.world.call(ANTIFREEZE, "why", "--json").stdout)
        marks = self.world.call(ANTIFREEZE, "export", "--format", "jsonl").stdout
        self.told = [line for line in marks.splitlines() if "epoch_ms=" in line]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.world.__exit__()


class Stall(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="afz-feed-")
        folder = cls.folder.name
        write_rows(folder + "/x.npy", ROWS)
        write_rows(folder + "/few.npy", ROWS >> 5)
        draw = random.Random(1)
        os.mkdir(folder + "/pictures")
        os.mkdir(folder + "/pictures/one")
        for i in range(PICTURES):
            with open(f"{folder}/pictures/one/{i}.png", "wb") as file:
                file.write(png(SIDE, draw))
        rows = {"batch": 64, "budget": "8M"}
        pictures = {"batch": 8, "budget": "16M", "threads": 1, "image": IMAGE}
        with ThreadPoolExecutor() as pool:
            runs = {"disk": pool.submit(Run, folder + "/x.npy", rows, .001, SECONDS, slow=True),
                    "decode": pool.submit(Run, folder + "/pictures", pictures, .001, SECONDS, HELD),
                    "transform": pool.submit(Run, folder + "/few.npy", {**rows, "workers": 0, "transform": SLOWLY}, .001, SECONDS),
                    "fed": pool.submit(Run, folder + "/few.npy", rows, .05, SECONDS)}
            cls.runs = {name: run.result() for name, run in runs.items()}

    @classmethod
    def tearDownClass(cls):
        for run in cls.runs.values():
            run.__exit__()
        cls.folder.cleanup()

    def stall_of(self, run):
        self.assertIn("done", run.ran.stdout, run.ran.stderr)
        self.assertNotIn("waited_ms", run.ran.stderr)
        self.assertEqual([v["id"] for v in run.why["verdicts"] if v["id"] != "clean"], ["data-stall"], run.why["verdicts"])
        return run.why["verdicts"][0]

    def test_a_slow_disk(self):
        run = self.runs["disk"]
        verdict = self.stall_of(run)
        self.assertRegex(verdict["summary"], r"its steps wait for their data \d+ % of the time; what holds the loader up is the disk: ")
        rate = float(re.search(r"the disk: ([0-9.]+)M/s", verdict["summary"])[1])
        self.assertTrue(.6 * RATE < rate * (1 << 20) <= 1.1 * RATE, rate)
        self.assertIn("faster", verdict["fix"])
        self.assertIn("limit=disk", run.told[-1])

    def test_pictures(self):
        run = self.runs["decode"]
        verdict = self.stall_of(run)
        self.assertRegex(verdict["summary"], r"what holds the loader up is decoding: [0-9,.]+ pictures/s on 1 thread$")
        self.assertIn("antifreeze convert", verdict["fix"])
        held = [line for line in verdict["evidence"] if "batches at once" in line]
        self.assertEqual(len(held), 1, verdict["evidence"])
        self.assertRegex(held[0], rf"it holds {HELD + 1} batches at once, so that \d+ had to be copied")

    def test_a_transform(self):
        verdict = self.stall_of(self.runs["transform"])
        self.assertRegex(verdict["summary"], r"what holds the loader up is the transform: [0-9,]+ samples/s in the program itself$")
        self.assertIn("workers=", verdict["fix"])

    def test_a_program_that_is_fed(self):
        run = self.runs["fed"]
        self.assertIn("done", run.ran.stdout, run.ran.stderr)
        self.assertEqual([v["id"] for v in run.why["verdicts"]], ["clean"], run.why["verdicts"])
        self.assertIn("your training step: batches waited for it", run.ran.stdout)
        self.assertIn("limit=consumer", run.told[-1])
        self.assertNotIn("your training step", run.ran.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    PYTHON = skip_without("numpy")
    FOLDER, ANTIFREEZE, LIBRARY, SLOW = map(os.path.abspath, sys.argv[1:5])
    sys.path.insert(0, FOLDER)
    from antifreeze.feed import stall
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
