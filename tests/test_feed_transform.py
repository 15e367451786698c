#!/usr/bin/env python3
"""antifreeze.Loader(transform=...): a function of the program's, and what comes of it, in order, from a state on, within the budget. The
processes that it runs in: test_feed_workers.py.

usage: test_feed_transform.py PYTHON_FOLDER LIBRARY [TEST...]

LIBRARY: libantifreeze-loader.so. Needs NumPy and torch.
"""
import functools
import gc
import importlib.util
import os
import time
import unittest

import feed_case
from feed_case import TransformCase

SAMPLES, WIDTH, BATCH = 1003, 64, 32
BATCHES = -(-SAMPLES // BATCH)

feed_case.begin(__doc__, SAMPLES)
import numpy

import antifreeze
import feed_transforms as transforms


class Transform(TransformCase):
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


if __name__ == "__main__":
    unittest.main()
