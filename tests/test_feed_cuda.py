#!/usr/bin/env python3
"""antifreeze.Loader(device="cuda") with a GPU that is played here: what it copies arrives whole however late that is, leases end when
copies do, memory is pinned as long as it may be read, and nothing is asked of CUDA before its time. A real one: tests/gpu/loader.py.

usage: test_feed_cuda.py PYTHON_FOLDER LIBRARY [TEST...]

LIBRARY: libantifreeze-loader.so. Needs NumPy and torch.
"""
import contextlib
import ctypes
import gc
import os
import unittest

import feed_case
from feed_case import BATCH, BATCHES, SAMPLES, WIDTH, Case

feed_case.begin(__doc__)
import numpy
import torch

import antifreeze

FOLDER, X = feed_case.FOLDER, feed_case.X


class Gpu:
    """Does its copies when somebody waits for them, or when it is told to: they read what is in memory then."""

    def __init__(self, is_pinning=True):
        self.copies, self.log, self.is_pinning, self.is_up = [], [], is_pinning, False

    def run(self):
        while self.copies:
            self.copies.pop(0)()

    # torch.cuda
    def is_available(self):
        return True

    def Stream(self, _device):
        self.is_up = True
        return Stream(self)

    def current_stream(self, _device):
        return Stream(self)

    @contextlib.contextmanager
    def stream(self, stream):
        yield stream

    def cudart(self):
        return self

    def cudaHostRegister(self, at, size, _flags):
        self.log.append(("pin", at, size))
        return 0 if self.is_pinning else 1

    def cudaHostUnregister(self, at):
        self.log.append(("unpin", at))
        return 0


class Stream:
    def __init__(self, gpu):
        self.gpu = gpu

    def record_event(self):
        event = Event(self.gpu)
        self.gpu.copies.append(event.be_done)
        return event

    def wait_event(self, event):
        event.is_waited = True


class Event:
    def __init__(self, gpu):
        self.gpu, self.is_done = gpu, False

    def be_done(self):
        self.is_done = True

    def query(self):
        return self.is_done

    def synchronize(self):
        self.gpu.run()


class Tensor:
    """Knows where its numbers are, and does not keep them there."""

    def __init__(self, gpu, array):
        array = numpy.asarray(array)
        self.gpu, self.at, self.like = gpu, array.ctypes.data, numpy.empty_like(array)

    def to(self, _device, non_blocking=False):
        assert non_blocking
        there = self.like
        self.gpu.copies.append(lambda: ctypes.memmove(there.ctypes.data, self.at, there.nbytes))
        self.stream = None
        return self

    def record_stream(self, stream):
        self.stream = stream


class OnGpu(Case):
    def setUp(self):
        super().setUp()
        from _antifreeze.feed import cuda
        self.gpu, self.cuda = Gpu(), cuda
        self.addCleanup(setattr, cuda, "ahead", cuda.ahead)
        cuda.ahead = self.ahead

    def ahead(self, feed, memory, device):
        return self.cuda.Ahead(feed, self.cuda.Sender(memory, device, self.gpu, lambda array: Tensor(self.gpu, array)))

    def loader(self, **options):
        return super().loader(**{"as_": None if "device" in options else "numpy", **options})

    def test_all_arrive(self):
        """However late the GPU copies, what it reads is what was to be copied."""
        for every in (1, 5, 1000):  # steps until it does by itself
            for budget in ("1M", self.loader().floor_bytes):
                with self.subTest(every=every, budget=budget):
                    loader = self.loader(device="cuda", as_="torch", budget=budget)
                    given = []
                    for n, (x, y) in enumerate(loader):
                        self.assertIsNotNone(x.stream)
                        given.append((x.like, y.like))
                        if n % every == 0:
                            self.gpu.run()
                        self.assertLessEqual(loader.times().held, self.cuda.COPIES_MOST)
                    self.gpu.run()
                    self.assertEqual(sorted(int(i) for _, y in given for i in y), list(range(SAMPLES)))
                    self.assertTrue(all((x[:, 0] == y).all() for x, y in given))
                    self.assertEqual([int(i) for _, y in given for i in y], self.labels(self.loader(budget=budget)))

    def test_lease_until_the_copy_is_done(self):
        loader = self.loader(device="cuda")
        loop = iter(loader)
        next(loop)
        self.assertGreaterEqual(loader.times().held, 1)
        before = loader.times().held
        gc.collect()
        self.assertEqual(loader.times().held, before)
        self.gpu.run()
        next(loop)
        self.assertLessEqual(loader.times().held, self.cuda.COPIES_MOST)

    def test_not_before_it_is_wanted(self):
        """Nothing is asked of CUDA before the first batch."""
        loader = self.loader(device="cuda")
        len(loader), loader.state_dict(), iter(loader), loader.set_epoch(0), repr(loader), loader.progress
        self.assertFalse(self.gpu.is_up or self.gpu.log)
        next(iter(loader))
        self.assertTrue(self.gpu.is_up)

    def test_pinned_until_closed(self):
        """In this order: copies end, leases go, the memory is unpinned, and only then does the arena go."""
        loader = self.loader(device="cuda")
        loop = iter(loader)
        next(loop), next(loop)
        (what, at, size), = self.gpu.log
        self.assertEqual((what, at % 4096, size % 4096), ("pin", 0, 0))
        held = []
        self.gpu.cudaHostUnregister = lambda where: held.append((where, is_mapped(at), len(self.gpu.copies)))
        loader.close()
        self.assertEqual(held, [(at, True, 0)])
        with self.assertRaisesRegex(antifreeze.LoaderError, "closed"):
            next(loop)
        del loader, loop
        loader = self.loader(device="cuda")
        next(iter(loader))
        held.clear()
        del loader
        gc.collect()
        self.assertEqual([(is_there, copies) for _, is_there, copies in held], [(True, 0)])

    def test_pinning_refused(self):
        self.gpu.is_pinning = False
        loader = self.loader(device="cuda")
        self.assertEqual(sum(len(y.like) for _, y in loader), SAMPLES)
        loader.close()
        self.assertEqual([what for what, *_ in self.gpu.log], ["pin"])

    def test_shrinks_in_place(self):
        """Pages that the GPU knows stay, when less is asked for."""
        loader = self.loader(device="cuda", budget="4M")
        loop = iter(loader)
        next(loop)
        (_, at, size), = self.gpu.log
        loader.shrink(loader.floor_bytes)
        pages = resident_pages(at, size)
        for _ in loop:
            pass
        self.assertEqual(resident_pages(at, size), pages)
        self.assertEqual(pages, size // 4096)

    def test_place(self):
        """The one that is on its way ahead does not count."""
        whole = self.loader()
        whole = [self.labels(whole), self.labels(whole)]
        for batches in (0, 1, 20, BATCHES - 1, BATCHES):
            first = self.loader(device="cuda")
            loop = iter(first)
            given = [next(loop)[1] for _ in range(batches)]
            self.gpu.run()
            self.assertEqual(first.progress, (0, batches, BATCHES))
            then = self.loader()
            then.load_state_dict(first.state_dict())
            self.assertEqual([int(i) for y in given for i in y.like] + self.labels(then), whole[0])
            del loop
            given = [y for _, y in first]  # the next epoch; who had none of the first has that now
            self.gpu.run()
            self.assertEqual([int(i) for y in given for i in y.like], whole[batches > 0])
            first.load_state_dict(self.loader().state_dict())
            given = [y for _, y in first]
            self.gpu.run()
            self.assertEqual([int(i) for y in given for i in y.like], whole[0])

    def test_error_in_its_turn(self):
        path = FOLDER + "/nan.npy"
        with open(X, "rb") as file:
            whole = file.read()
        loader = None
        with open(path, "wb") as file:
            file.write(whole)
        loader = antifreeze.Loader(path, batch=BATCH, budget="1M", shuffle="none", device="cuda")
        os.truncate(path, 128 + 4 * WIDTH * 3000)
        given = []
        with self.assertRaises(antifreeze.LoaderError):
            for x in loader:
                given.append(x)
        self.gpu.run()
        seen = [int(i) for x in given for i in x.like[:, 0]]
        self.assertEqual(seen, list(range(len(seen))))
        self.assertGreaterEqual(len(seen), 3000 - 3000 % BATCH - BATCH)

    def test_transformed(self):
        """What a function of the program's makes of batches goes there, too, wherever it lies."""
        loader = self.loader(device="cuda", transform=lambda x, y: {"x": x[:, :2], "y": y}, workers=0)
        given = list(loader)
        self.gpu.run()
        host = self.loader(transform=lambda x, y: (x[:, :2], y), workers=0)
        self.assertEqual([int(i) for batch in given for i in batch["y"].like], self.labels(host))
        self.assertTrue(all((batch["x"].like[:, 0] == batch["y"].like).all() for batch in given))

    def test_fork(self):
        """A child leaves the GPU alone, and is told why it gets nothing."""
        loader = self.loader(device="cuda")
        loop = iter(loader)
        next(loop)
        before = list(self.gpu.log)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                next(loop)
            except antifreeze.LoaderError as error:
                status = 0 if "fork" in str(error) else 2
            loader.close()
            del loop, loader
            gc.collect()
            os._exit(status or (3 if self.gpu.log != before else 0))
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(sum(1 for _ in loop), BATCHES - 1)

    def test_words(self):
        for options in ({"device": "mps"}, {"device": "cuda", "as_": "jax"}):
            with self.assertRaisesRegex(ValueError, "device"):
                self.loader(**{"as_": None, **options})
        self.assertEqual(len(self.labels(self.loader(device="cpu"))), SAMPLES)
        self.assertEqual(len(self.labels(self.loader(device=torch.device("cpu")))), SAMPLES)


def is_mapped(at):
    with open("/proc/self/maps", encoding="ascii") as file:
        spans = [line.split()[0].split("-") for line in file]
    return any(int(start, 16) <= at < int(end, 16) for start, end in spans)


def resident_pages(at, size):
    """That are in memory, of those from there on."""
    with open("/proc/self/pagemap", "rb") as file:
        file.seek(at // 4096 * 8)
        entries = numpy.frombuffer(file.read(size // 4096 * 8), numpy.uint64)
    return int((entries >> numpy.uint64(63)).sum())


if __name__ == "__main__":
    unittest.main()
