#!/usr/bin/env python3
"""antifreeze.bound(): a torch DataLoader within a budget in bytes.

usage: test_feed_bound.py PYTHON_FOLDER [TEST...]

What a loader takes is looked at from outside: /dev/shm, and what its workers have for themselves. Needs torch.
"""
import os
import sys
import unittest

from frameworks import SKIPPED, skip_without

MIB = 1 << 20
BATCH, SAMPLE = 8, MIB  # a batch takes 8 MiB, and three times that while it is made


def loader_of(dataset, **options):
    generator = torch.Generator().manual_seed(1)
    shuffled = {} if isinstance(dataset, torch.utils.data.IterableDataset) else {"shuffle": True}
    return torch.utils.data.DataLoader(dataset, batch_size=BATCH, generator=generator, **shuffled, **options)


def make_data():
    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 12 * BATCH

        def __getitem__(self, i):
            return torch.full((SAMPLE // 4,), float(i)), torch.rand(1)

    class Growing(Rows):
        """Each sample leaves something in the worker that made it, as a cache does."""

        def __init__(self):
            self.kept = []

        def __getitem__(self, i):
            self.kept.append(bytearray(os.urandom(4 * SAMPLE)))
            return super().__getitem__(i)

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            n, of = (info.id, info.num_workers) if info else (0, 1)
            for i in range(n, 12 * BATCH, of):
                yield torch.full((SAMPLE // 4,), float(i))

    return Rows, Growing, Stream


def shm_used():
    state = os.statvfs("/dev/shm")
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def play(loader, epochs=1):
    """What came, and the most that was ever in use."""
    seen, most, before = [], 0, shm_used()
    for _ in range(epochs):
        batches = iter(loader)
        for batch in batches:
            batch = batch if isinstance(batch, list) else [batch]
            seen.append([tuple(part[:, 0].tolist()) for part in batch])
            workers = getattr(batches, "_workers", [])
            most = max(most, shm_used() - before + sum(private_bytes(worker.pid) for worker in workers))
    return seen, most


class Bound(unittest.TestCase):
    def test_ample(self):
        """The same batches in the same order with the same draws, and as many ahead as ever."""
        alone, _ = play(loader_of(Rows(), num_workers=2, prefetch_factor=2), 2)
        held = antifreeze.bound(loader_of(Rows(), num_workers=2, prefetch_factor=2), "2GiB")
        self.assertEqual(play(held, 2)[0], alone)
        self.assertEqual((held.num_workers, held.bound.batch_bytes // MIB), (2, BATCH))
        self.assertGreaterEqual(held.bound.most, 4)

    def test_small(self):
        """Four workers with eight batches each would hold 256 MiB and what they are made in."""
        alone, before = play(loader_of(Rows(), num_workers=4, prefetch_factor=8))
        held = antifreeze.bound(loader_of(Rows(), num_workers=4, prefetch_factor=8), 128 * MIB)
        seen, most = play(held)
        self.assertEqual([one[0] for one in seen], [one[0] for one in alone])
        self.assertLess(most, 160 * MIB)  # pages of Python itself that come and go with each sample are looked at now and then
        self.assertGreater(before, most)

    def test_workers_that_grow(self):
        """They are ended one after the other, the order stays, and each sample comes once."""
        wanted = [one[0] for one in play(loader_of(Rows()))[0]]
        held = antifreeze.bound(loader_of(Growing(), num_workers=3, prefetch_factor=2), 96 * MIB)
        self.assertEqual([one[0] for one in play(held)[0]], wanted)
        self.assertGreater(held.bound.ended, 0)
        again = [one[0] for one in play(held)[0]]
        self.assertLess(held.num_workers, 3)
        self.assertEqual(sorted(sum(again, ())), [float(i) for i in range(12 * BATCH)])

    def test_workers_that_stay(self):
        held = antifreeze.bound(loader_of(Growing(), num_workers=3, prefetch_factor=2, persistent_workers=True), 96 * MIB)
        for _ in range(3):
            seen = [one[0] for one in play(held)[0]]
            self.assertEqual(sorted(sum(seen, ())), [float(i) for i in range(12 * BATCH)])
        self.assertLess(held.num_workers, 3)

    def test_stream(self):
        """Of a stream no worker is ended: each has a part of it."""
        held = antifreeze.bound(loader_of(Stream(), num_workers=3, prefetch_factor=4), 40 * MIB)
        seen = [one[0] for one in play(held)[0]]
        self.assertEqual(sorted(sum(seen, ())), [float(i) for i in range(12 * BATCH)])
        self.assertEqual(held.bound.ended, 0)

    def test_without_workers(self):
        held = antifreeze.bound(loader_of(Rows()), "64M")
        self.assertEqual(len(play(held)[0]), 12)
        self.assertEqual(held.bound.batch_bytes, BATCH * SAMPLE + BATCH * 4)

    def test_batch_too_large(self):
        for workers in 0, 2:
            with self.assertRaises(MemoryError) as raised:
                play(antifreeze.bound(loader_of(Rows(), num_workers=workers), 5 * MIB))
            self.assertIn("a batch of 8 samples takes 8M, the budget is 5M: batch_size=4 would fit", str(raised.exception))

    def test_left_in_the_middle(self):
        held = antifreeze.bound(loader_of(Rows(), num_workers=2, prefetch_factor=4), 96 * MIB)
        for _ in held:
            break
        self.assertEqual(len(play(held)[0]), 12)

    def test_words(self):
        for value in "", "0", "-1M", "many", "1 X", None, True, 0, 1.5:
            with self.assertRaises(ValueError):
                antifreeze.bound(loader_of(Rows()), value)
        for text, size in ("1GiB", 1 << 30), ("1.5g", 3 << 29), ("512 MB", 512 * MIB), ("4096", 4096):
            self.assertEqual(antifreeze.bound(loader_of(Rows()), text).bound.budget_bytes, size)
        with self.assertRaisesRegex(TypeError, "not for list"):
            antifreeze.bound([], "1G")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    python = skip_without("torch")
    if "AFZ_INSIDE" not in os.environ:
        os.environ.update(AFZ_INSIDE="1", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
        os.execv(python, [python, "-B", "-W", "ignore", *sys.argv])
    if shm_used() + 512 * MIB > os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize:
        print("/dev/shm has less than 512 MiB of room")
        sys.exit(SKIPPED)
    sys.path.insert(0, sys.argv.pop(1))
    import torch

    import antifreeze
    from antifreeze.feed.bound import private_bytes

    torch.set_num_threads(1)
    Rows, Growing, Stream = make_data()
    unittest.main(verbosity=2)
