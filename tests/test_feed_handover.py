#!/usr/bin/env python3
"""How antifreeze.Loader's batches get to the program: leases, loops over a part of the data or from a state on, frameworks, and what the
guard's wish for less does. GPUs: test_feed_cuda.py; ranks: test_feed_ranks.py.

usage: test_feed_handover.py PYTHON_FOLDER LIBRARY [TEST...]

LIBRARY: libantifreeze-loader.so. Needs NumPy and torch; what needs TensorFlow, Keras, JAX, torchdata or tqdm is
skipped where that is not there.
"""
import ctypes
import gc
import os
import subprocess
import tempfile
import threading
import unittest
import warnings

import feed_case
from fake_guard import FakeGuard
from feed_case import BATCHES, HERE, SAMPLES, WIDTH, Case, needs

feed_case.begin(__doc__)
import numpy
import torch

import antifreeze

FOLDER = feed_case.FOLDER


class Leases(Case):
    def test_who_holds_the_memory(self):
        """All that a buffer or a DLPack capsule was made of keeps the lease."""
        ways = {"memoryview": memoryview, "numpy": numpy.from_dlpack, "torch": torch.from_dlpack, "as torch": torch.from_numpy}
        for name, way in ways.items():
            with self.subTest(name):
                loader = self.loader()
                loop = iter(loader)
                x, y = next(loop)
                held, before = way(x), x.copy()
                at = x.ctypes.data
                del x, y
                for _ in range(40):
                    next(loop)
                self.assertEqual(loader.times().held, 1)
                self.assertTrue((numpy.asarray(held) == before).all())
                self.assertEqual(numpy.asarray(held).ctypes.data, at)
                del held
                self.assertEqual(loader.times().held, 0)

    def test_hoarder(self):
        """Twelve batches: those beyond the leases are copies, which are counted, and all are right; then it goes on as before."""
        loader = self.loader(budget="2M")
        loop, kept = iter(loader), []
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            while len(kept) < 12:
                kept.append(next(loop))
        self.assertEqual([os.path.basename(one.filename) for one in said], [os.path.basename(__file__)])
        self.assertRegex(str(said[0].message), "you hold [0-9]+ batches: those beyond the budget are copies")
        times = loader.times()
        self.assertEqual(times.held, 12)
        self.assertTrue(0 < times.copies < 12, times.copies)
        for x, y in kept:
            self.assertTrue((x[:, 0] == y).all() and (x[:, WIDTH - 1] == y + WIDTH - 1).all())
        seen = [int(i) for _, y in kept for i in y]
        del x, y
        kept.clear()
        self.assertEqual(loader.times().held, 0)
        for x, y in loop:
            seen += y.tolist()
        self.assertEqual(sorted(seen), list(range(SAMPLES)))
        self.assertEqual(loader.times().copies, times.copies)

    def test_garbage_is_not_hoarded(self):
        """What refers to itself waits for Python's collector, with all the batches that it has."""
        loader = self.loader(budget="2M")
        for x, y in loader:
            self.assertTrue((x[:, 0] == y).all())
            cycle = [x]
            cycle.append(cycle)
        self.assertGreater(loader.times().copies, 0)

    def test_all_are_held(self):
        """Even who never lets go of anything gets all of it, at the smallest budget."""
        loader = self.loader(budget=self.loader().floor_bytes, threads=1)
        with self.assertWarnsRegex(RuntimeWarning, "you hold 3 batches"):
            kept = list(loader)
        self.assertEqual(sorted(int(i) for _, y in kept for i in y), list(range(SAMPLES)))


class Loops(Case):
    def test_a_loop_that_nobody_goes_through(self):
        """As those who only look whether something can be gone through leave it (Lightning)."""
        whole = self.loader()
        whole = [self.labels(whole) for _ in range(3)]
        loader = self.loader()
        iter(loader), iter(loader)
        self.assertEqual(self.labels(loader), whole[0])
        iter(loader), iter(loader)
        next(iter(loader))
        iter(loader), iter(loader)  # that of the second epoch was left in its midst
        self.assertEqual(self.labels(loader), whole[2])

    def test_progress(self):
        loader = self.loader()
        self.assertEqual(loader.progress, (0, 0, BATCHES))
        loop = iter(loader)
        for done in range(1, BATCHES + 1):
            next(loop)
            self.assertEqual(loader.progress, (0, done, BATCHES))
            self.assertEqual(loop.__length_hint__(), BATCHES - done)
        self.assertIsNone(next(loop, None))
        self.assertEqual(loader.progress, (1, 0, BATCHES))
        self.assertEqual(len(loader), BATCHES)

    def test_threads_share_a_loop(self):
        loader = self.loader()
        for _ in range(3):
            loop, seen = iter(loader), []
            threads = [threading.Thread(target=lambda: seen.extend(int(i) for _, y in loop for i in y)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(seen), list(range(SAMPLES)))

    def test_state_of_larger_batches(self):
        """What is done is counted in the batches of who goes on."""
        half = self.loader(batch=64)
        for _, _ in zip(range(20), half):
            pass
        state = half.state_dict()
        loader = self.loader(batch=32)
        loader.load_state_dict(state)
        self.assertEqual((loader.progress.done, loader.progress.batches), (40, BATCHES))
        self.assertEqual(len(self.labels(loader)), SAMPLES - 20 * 64)

    @needs("tqdm")
    def test_tqdm(self):
        import io

        from tqdm import tqdm
        said = io.StringIO()
        self.assertEqual(sum(len(y) for _, y in tqdm(self.loader(), file=said, mininterval=0)), SAMPLES)
        self.assertIn(f"{BATCHES}/{BATCHES}", said.getvalue())

    def test_resume_with_set_epoch(self):
        """Who sets the epoch before each loop, as with a DistributedSampler, goes on in the midst of one as well."""
        first = self.loader()
        whole = [self.labels(first) for _ in range(3)]
        first.set_epoch(1)
        loop = iter(first)
        done = [int(i) for _ in range(20) for i in next(loop)[1]]
        then = self.loader()
        then.load_state_dict(first.state_dict())
        for epoch in 1, 2:
            then.set_epoch(epoch)
            self.assertEqual(done + self.labels(then), whole[epoch])
            done = []
        then.set_epoch(1)  # and once more from its start
        self.assertEqual(self.labels(then), whole[1])
        then.load_state_dict(first.state_dict())
        then.set_epoch(0)
        self.assertEqual(self.labels(then), whole[0])

    @needs("torchdata")
    def test_stateful_data_loader(self):
        from torchdata.stateful_dataloader import StatefulDataLoader
        whole = self.labels(self.loader())
        first = StatefulDataLoader(self.loader(as_="torch"), batch_size=None)
        loop = iter(first)
        done = [int(i) for _ in range(20) for i in next(loop)[1]]
        then = StatefulDataLoader(self.loader(as_="torch"), batch_size=None)
        then.load_state_dict(first.state_dict())
        self.assertEqual(done + self.labels(then), whole)

    def test_subset(self):
        mask = numpy.zeros(SAMPLES, bool)
        mask[[3, 700, 701]] = True
        several = numpy.random.default_rng(1).permutation(SAMPLES)[:1234]
        for subset, want in (((100, 300), range(100, 300)), (slice(100, 300), range(100, 300)), (slice(4000, None), range(4000, SAMPLES)),
                             (slice(-500, None), range(SAMPLES - 500, SAMPLES)), (slice(None, -500), range(SAMPLES - 500)),
                             (slice(None, None, 7), range(0, SAMPLES, 7)), (range(10, 4000, 3), range(10, 4000, 3)),
                             (range(5, 50), range(5, 50)), (mask, [3, 700, 701]), ([4, 4, 2], [2, 4, 4]), (several, several.tolist()),
                             (several.astype("int32"), several.tolist())):
            with self.subTest(str(subset)):
                loader = self.loader(subset=subset)
                self.assertEqual(loader.samples, len(want))
                self.assertEqual(sorted(self.labels(loader)), sorted(want))
        for subset, kind, words in (((1, 2, 3), ValueError, "tuple"), ([-1], ValueError, "count from 0"), ([], ValueError, "numbers"),
                                    ([.5], ValueError, "numbers"), (range(5, 5), ValueError, "subset"),
                                    (slice(0, SAMPLES + 1), antifreeze.LoaderError, "there are"),
                                    ([SAMPLES], antifreeze.LoaderError, str(SAMPLES))):
            with self.subTest(str(subset)), self.assertRaisesRegex(kind, words):
                self.loader(subset=subset)

    def test_subset_goes_on(self):
        several = numpy.arange(0, SAMPLES, 3)
        first = self.loader(subset=several)
        loop = iter(first)
        done = [int(i) for _ in range(9) for i in next(loop)[1]]
        then = self.loader(subset=several)
        then.load_state_dict(first.state_dict())
        self.assertEqual(sorted(done + self.labels(then)), several.tolist())
        with self.assertRaises(antifreeze.LoaderError):
            self.loader(subset=several + 1).load_state_dict(first.state_dict())

    def test_mask_of_something_else(self):
        with self.assertRaisesRegex(ValueError, f"a mask of 100, and there are {SAMPLES} samples"):
            self.loader(subset=numpy.ones(100, bool))

    def test_weights(self):
        weights = numpy.zeros(SAMPLES)
        weights[:100], weights[100:200] = 1, 3
        loader = self.loader(weights=weights, draws=40000)
        self.assertEqual(loader.samples, 40000)
        drawn = numpy.bincount(self.labels(loader), minlength=SAMPLES)
        self.assertEqual((drawn.sum(), drawn[200:].sum()), (40000, 0))
        self.assertAlmostEqual(drawn[100:200].sum() / 40000, .75, delta=.02)
        again = self.loader(weights=weights.tolist(), draws=40000)
        self.assertEqual(numpy.bincount(self.labels(again), minlength=SAMPLES).tolist(), drawn.tolist())
        self.assertEqual(self.loader(weights=numpy.ones(SAMPLES)).samples, SAMPLES)
        for bad in ([-1.] * SAMPLES, [float("nan")] * SAMPLES, [0] * SAMPLES, [[1.]] * SAMPLES):
            with self.assertRaisesRegex(ValueError, "weights"):
                self.loader(weights=bad)
        with self.assertRaises(antifreeze.LoaderError):
            self.loader(weights=[1, 2, 3])


class Frameworks(Case):
    def test_structures(self):
        """What ctypes has is what the header has."""
        from _antifreeze.feed import native
        names = {"Field": "afz_field", "Image": "afz_image_options", "Options": "afz_loader_options", "Facts": "afz_loader_facts",
                 "Batch": "afz_batch", "ToldTimes": "afz_loader_times"}
        lines = [f'printf("{python} %zu\\n", sizeof(struct {c}));' for python, c in names.items()]
        lines += [f'printf("{python}.{field} %zu\\n", offsetof(struct {c}, {field}));'
                  for python, c in names.items() for field, *_ in getattr(native, python)._fields_]
        source = f'#include <stdio.h>\n#include <stddef.h>\n#include "antifreeze/loader.h"\nint main(void) {{ {"".join(lines)} return 0; }}\n'
        made = os.path.join(FOLDER, "structures")
        try:
            command = [os.environ.get("CC", "cc"), "-x", "c", "-", "-I", os.path.join(HERE, "../include"), "-o", made]
            r = subprocess.run(command, input=source, text=True, check=False, stderr=subprocess.PIPE)
        except FileNotFoundError:
            self.skipTest("no C compiler")
        self.assertEqual(r.returncode, 0, r.stderr)
        for line in subprocess.run([made], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
            name, value = line.split()
            kind, _, field = name.partition(".")
            ours = getattr(getattr(native, kind), field).offset if field else ctypes.sizeof(getattr(native, kind))
            self.assertEqual(ours, int(value), name)

    @needs("tensorflow")
    def test_tensorflow(self):
        print(self.program("""
            import numpy, tensorflow as tf
            loader = antifreeze.Loader(X, labels=Y, batch=32, budget="1M", seed=5, as_="tensorflow")
            loop = iter(loader)
            x, y = next(loop)
            assert isinstance(x, tf.Tensor) and loader.times().held == 1
            before = x.numpy().copy()
            del y
            for _ in range(40): next(loop)
            assert (x.numpy() == before).all() and loader.times().held == 1, "over it lies what came later"
            del x
            assert loader.times().held == 0, loader.times().held
            # A dataset: whole batches, each epoch another order, all that it gave stays what it was.
            data = loader.tf()
            assert len(data) == len(loader) and data.element_spec[0].shape == (None, 64)
            epochs = []
            for _ in range(2):
                seen = []
                for x, y in data:
                    assert (x.numpy()[:, 0] == y.numpy()).all()
                    seen += y.numpy().tolist()
                assert sorted(seen) == list(range(5003)), len(seen)
                epochs.append(seen)
            assert epochs[0] != epochs[1]
            few = [x for x, _ in data.take(6)]
            for _ in data.take(40): pass
            assert len({x.numpy()[0, 0] for x in few}) == 6
            # Its place is the program's, not that of somebody who read ahead.
            begun = iter(data)
            for _ in range(5): next(begun)
            assert loader.progress.done == 5, loader.progress
            """), end="")

    @needs("keras", "tensorflow")
    def test_keras(self):
        print(self.program("""
            import warnings; warnings.simplefilter("error"); warnings.filterwarnings("ignore", ".*shuffle=True")
            import keras, numpy
            seen, epochs = [], []
            class Look(keras.callbacks.Callback):
                def on_epoch_end(self, epoch, logs=None): epochs.append((self.params["steps"], logs["loss"]))
            loader = antifreeze.Loader(X, labels=Y, batch=32, budget="1M", seed=5)
            held = antifreeze.Loader(X, labels=Y, batch=32, budget="1M", shuffle="none", subset=slice(0, 500))
            model = keras.Sequential([keras.layers.Rescaling(1e-3), keras.layers.Dense(1)])
            model.compile("adam", "mse")
            model.fit(loader.tf(), epochs=3, validation_data=held.tf(), callbacks=[Look()], verbose=0)
            assert [steps for steps, _ in epochs] == [len(loader)] * 3, epochs
            assert loader.progress == (2, len(loader), len(loader)) and held.progress.epoch == 2, (loader.progress, held.progress)
            # At the end of an epoch one goes on with the next, in its midst with what is left of it.
            ends = [loader.state_dict()]
            loop = iter(loader)
            for _ in range(150): next(loop)
            for state in loader.state_dict(), *ends:
                again = antifreeze.Loader(X, labels=Y, batch=32, budget="1M", seed=5)
                again.load_state_dict(state)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(again.tf(), epochs=2, verbose=0)
                assert again.progress == (4, len(loader), len(loader)), again.progress
            """, env={"KERAS_BACKEND": "tensorflow"}.items()), end="")

    @needs("jax")
    def test_jax(self):
        print(self.program("""
            import numpy, jax
            loader = antifreeze.Loader(X, labels=Y, batch=32, budget="1M", seed=5, as_="jax")
            loop = iter(loader)
            x, y = next(loop)
            assert isinstance(x, jax.Array) and x.dtype == "float32"
            before = numpy.array(x)
            assert before[:, 0].tolist() == y.tolist()
            del y
            for _ in range(40): next(loop)
            assert (numpy.asarray(x) == before).all() and loader.times().held == 1
            total = jax.jit(lambda x: x.sum())(x)
            assert abs(float(total) / before.sum() - 1) < 1e-5
            del x
            assert loader.times().held == 0
            assert sorted(int(i) for _, y in loader for i in y) == list(range(5003))
            """), end="")

    def test_data_loader(self):
        """As torch wants its iterables: whole batches, no workers, no sampler of its own."""
        from torch.utils.data import DataLoader, DistributedSampler
        data = DataLoader(self.loader(as_="torch"), batch_size=None)
        epochs = [self.labels(data) for _ in range(2)]
        self.assertEqual(sorted(epochs[0]), list(range(SAMPLES)))
        self.assertNotEqual(*epochs)
        self.assertEqual(len(data), BATCHES)
        with self.assertRaisesRegex(TypeError, "batch_size=None"):
            list(DataLoader(self.loader(), batch_size=8))
        with self.assertRaisesRegex(Exception, "num_workers=0"):
            list(DataLoader(self.loader(), batch_size=None, num_workers=2))
        warnings.simplefilter("ignore")  # of torch, which guesses why
        with self.assertRaisesRegex(Exception, "num_workers=0"):
            list(DataLoader(self.loader(), batch_size=None, num_workers=1, multiprocessing_context="spawn"))
        with self.assertRaisesRegex(ValueError, "sampler"):
            loader = self.loader()
            DataLoader(loader, batch_size=None, sampler=DistributedSampler(loader, 2, 0))


class Less(Case):
    def test_the_guard_asks(self):
        """Between two steps, or batches where there are none, and all who can use less are asked; never below what a batch needs."""
        for way in "steps", "bare":
            with self.subTest(way):
                self.ask(way)

    def ask(self, way):
        with tempfile.TemporaryDirectory() as folder, FakeGuard(folder) as guard:
            guard.ask("shrink")
            said = self.program("""
                from _antifreeze import talk
                others = []
                def fails(): others.append(1); raise ValueError("not now")
                loader = antifreeze.Loader(X, labels=Y, batch=32, budget="1M", seed=5, as_="numpy")
                closed = antifreeze.Loader(X, labels=Y, batch=32, budget="1M", seed=5, as_="numpy")
                closed.close()
                talk.offer(shrink=fails); talk.offer(shrink=fails)
                from time import sleep
                seen = []
                for batch in antifreeze.steps(loader) if sys.argv[1] == "steps" else loader:
                    seen += batch[1].tolist()
                    if not others: sleep(.06)
                assert sorted(seen) == list(range(5003))
                print(len(others), loader.allowed_bytes, loader.budget_bytes // 2, closed.allowed_bytes, loader.floor_bytes)
                for _ in range(20): talk._obey(["shrink"])
                assert loader.allowed_bytes == loader.floor_bytes
                from _antifreeze.feed import less
                assert not less.shrink(), "there is nothing left to give"
                assert sorted(int(i) for _, y in loader for i in y) == list(range(5003))
                """, way, env={**guard.env, "ANTIFREEZE_POLICY": "adapt"}.items()).split()
            self.assertEqual((said[0], said[1], said[3]), ("1", said[2], str(1 << 20)))
            self.assertTrue(any(line.startswith("hello ") and line.endswith(" less shrink") for line in guard.lines), guard.lines)
            self.assertTrue(guard.wait_for("event note: the loader makes do with 512K"), guard.lines)

    def test_ranks_keep_their_order(self):
        """The guard speaks to one of them alone."""
        parts = []
        for rank in range(2):
            loader = self.loader(rank=rank, ranks=2, budget="2M")
            parts.append([])
            for n, (_, y) in enumerate(loader):
                if rank == 0 and n == 9:
                    loader.shrink(loader.floor_bytes)
                parts[-1] += y.tolist()
        self.assertEqual(sorted(parts[0] + parts[1]), list(range(SAMPLES)))
        self.assertEqual(parts[0], self.labels(self.loader(rank=0, ranks=2, budget="2M")))

    def test_memory_goes_back(self):
        loader = self.loader(budget="8M", subset=(0, 5000))
        self.labels(loader)
        before = anonymous_bytes()
        loader.shrink(loader.floor_bytes)
        self.labels(loader)
        gc.collect()
        self.assertLess(anonymous_bytes(), before - (1 << 20))


def anonymous_bytes():
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("Anonymous:"))


if __name__ == "__main__":
    unittest.main()
