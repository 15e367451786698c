#!/usr/bin/env python3
"""Ctrl-C in a loop over an antifreeze.Loader: whatever moment it comes at, a batch was handed over and the place is behind it, or it was
not, and it comes the next time.

usage: test_feed_interrupted.py PYTHON_FOLDER LIBRARY [TEST...]

LIBRARY: libantifreeze-loader.so. Needs NumPy and torch.
"""
import dis
import faulthandler
import signal
import sys
import unittest
import weakref
from itertools import count
from unittest import mock

import feed_case
from feed_case import Case

feed_case.begin(__doc__)
import antifreeze

clock = antifreeze._clock

SAMPLES, BATCH = 130, 32  # four whole batches, and one of two samples
TRANSFORM = "def transform(x, y): return x, y\n"
LOOKED_AT = {code for name, code in dis.opmap.items() if name.startswith("CALL") or name in ("RESUME", "JUMP_BACKWARD")}
RETURNS = {code for name, code in dis.opmap.items() if name.startswith("RETURN")}


class Interrupt:
    """Within it KeyboardInterrupt comes at the n-th place in the loader's own code where Python looks for signals: behind calls, and at
    the start of functions. Where a call is followed by the function's return it is left out: there an exception that is raised by hand
    is outside of what the function guards, and that of a signal is not."""

    def __init__(self, n):
        self.n, self.has_come, self.last = n, False, {}

    def __enter__(self):
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)
        self.last.clear()  # frames have batches

    def trace(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(feed_case.PYTHON):
            return None
        frame.f_trace_opcodes = True
        if event == "exception":  # a call that raises one is not looked behind
            self.last[frame] = None
        elif event == "opcode":
            now, before = frame.f_code.co_code[frame.f_lasti], self.last.get(frame)
            self.last[frame] = now
            self.n -= before in LOOKED_AT and now not in RETURNS
            if self.n == 0:
                sys.settrace(None)
                self.has_come = True
                raise KeyboardInterrupt
        return self.trace


def one_of(loop):
    """By a for loop, as programs do it."""
    for _, y in loop:
        return y.tolist()
    return None


class Interrupted(Case):
    def sweep(self, step=1, **options):
        """Each turn is interrupted at its first place, its second, and so on, until it comes through."""
        options = {"subset": (0, SAMPLES), **options}
        whole = [y.tolist() for _, y in self.loader(**options)]
        loader, again, got, times = self.loader(**options), self.loader(**options), [], 0
        loop = iter(loader)
        for turn in range(len(whole) + 1):
            for n in count(1, step):
                clock.look_ns = 0  # the guard is listened to in each turn
                found = KeyboardInterrupt
                try:
                    with Interrupt(n) as interrupt:
                        found = one_of(loop)
                except KeyboardInterrupt:
                    pass
                if found is not KeyboardInterrupt:
                    break
                self.assertTrue(interrupt.has_come)
                times += 1
                self.assertEqual((loader.progress.epoch, loader.progress.done, loop.__length_hint__()), (0, turn, len(whole) - turn))
            self.assertFalse(interrupt.has_come)
            got += [found] * (found is not None)
        self.assertEqual(got, whole)
        self.assertEqual(loader.progress, (1, 0, len(whole)))
        self.assertEqual(loader.times().held, 0)
        again.load_state_dict(loader.state_dict())
        self.assertEqual([y.tolist() for _, y in again], [y.tolist() for _, y in loader])
        return times

    def test_plain(self):
        self.assertGreater(self.sweep(), 100)

    def test_torch(self):
        self.sweep(as_="torch")

    def test_transform_in_the_program(self):
        self.sweep(transform=lambda x, y: (x, y), workers=0)

    def test_transform_in_a_worker(self):
        """Each time another worker has to come up."""
        with open(feed_case.FOLDER + "/interrupted_transform.py", "w", encoding="ascii") as file:
            file.write(TRANSFORM)
        sys.path.insert(0, feed_case.FOLDER)
        from interrupted_transform import transform
        self.sweep(step=11, subset=(0, 40), transform=transform, workers=1)

    def test_workers_that_do_not_come_up_again(self):
        """One try, and the reason; not one after the other without an end."""
        with open(feed_case.FOLDER + "/ending_transform.py", "w", encoding="ascii") as file:
            file.write('import os\nif os.path.exists(__file__ + ".end"): os._exit(3)\n' + TRANSFORM)
        sys.path.insert(0, feed_case.FOLDER)
        import ending_transform
        loader = self.loader(transform=ending_transform.transform, workers=1)
        loop = iter(loader)
        next(loop)
        loader._native._pool.is_torn = True  # as Ctrl-C leaves it
        with open(ending_transform.__file__ + ".end", "w", encoding="ascii"), self.assertRaisesRegex(antifreeze.LoaderError, "exit code 3"):
            next(loop)
        loader.close()

    def test_slot_that_was_not_handed_over(self):
        """What a traceback holds of it, and for how long, is of no account."""
        import numpy
        self.loader(transform=lambda x, y: (x, y), workers=0)
        slots = sys.modules["_antifreeze.feed.slots"]
        made, kept = slots.Slots(3, slots.Layout(None, [(numpy.dtype("u1"), (4,))], 4, 4)), None
        slot = made.free[-1]

        class Finalize(weakref.finalize):
            def __init__(self, *arguments):
                super().__init__(*arguments)
                raise KeyboardInterrupt

        with mock.patch.object(slots.weakref, "finalize", Finalize):
            try:
                made.lease(made.free.pop(), [4])
            except KeyboardInterrupt as error:
                kept = error
        made.take_back()
        made.free.remove(slot)
        held = made.lease(slot, [4])
        del kept
        self.assertNotIn(slot, made.free)
        del held
        self.assertEqual(sorted(made.free), [0, 1, 2])

    def test_state_in_except(self):
        """As a program saves where it is. The signal is a real one, sent by a function that the turn calls."""
        whole = [y.tolist() for _, y in self.loader()]
        loader, got = self.loader(), []
        following = loader._feed.next

        def interrupted():
            given = following()
            if len(got) == 7:
                loader._feed.next = following
                signal.raise_signal(signal.SIGINT)
            return given

        loader._feed.next = interrupted
        try:
            for _, y in loader:
                got.append(y.tolist())
        except KeyboardInterrupt:
            state = loader.state_dict()
        self.assertEqual(len(got), 7)
        then = self.loader()
        then.load_state_dict(state)
        self.assertEqual(got + [y.tolist() for _, y in then], whole)

    def test_first_batch(self):
        """Who was interrupted before it, and loops anew, is still in the first epoch."""
        first = self.labels(self.loader())
        for n in count(1):
            loader = self.loader()
            try:
                with Interrupt(n):
                    one_of(iter(loader))
                break
            except KeyboardInterrupt:
                self.assertEqual(self.labels(loader), first)
        self.assertGreater(n, 20)

    def test_second_epoch(self):
        """Who left the first early and was interrupted in front of the second is not brought to the third."""
        for n in count(1):
            loader = self.loader()
            one_of(iter(loader))
            try:
                with Interrupt(n):
                    iter(loader)
                break
            except KeyboardInterrupt:
                one_of(iter(loader))
                self.assertEqual(loader.epoch, 1)
        self.assertGreater(n, 10)

    def test_closed_behind_it(self):
        """By `with`, while the exception's traceback has the batch still: it is given back once, and not to a loader that is gone."""
        native = sys.modules[type(self.loader()._native).__module__]
        given_back, release = [], native.library().afz_loader_release
        for n in count(1):
            loader, kept = self.loader(), None
            loader._native._library = mock.Mock(wraps=native.library())
            loader._native._library.afz_loader_release = lambda of, lease: given_back.append((n, lease)) or release(of, lease)
            try:
                with loader, Interrupt(n) as interrupt:
                    one_of(iter(loader))
            except KeyboardInterrupt as error:
                kept = error
            if not interrupt.has_come:
                break
            del kept
        self.assertEqual(len(given_back), len(set(given_back)))
        self.assertGreater(len(given_back), 3)

    def test_other_loops_are_left_alone(self):
        loader = self.loader()
        left = iter(loader)
        next(left)
        loop = iter(loader)
        first = next(loop)[1].tolist()
        with self.assertRaisesRegex(RuntimeError, "another loop"):
            next(left)
        second = self.loader()
        next(iter(second))
        whole = [y.tolist() for _, y in second]
        self.assertEqual([first] + [y.tolist() for _, y in loop], whole)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(feed_case.PATIENCE_S, exit=True)  # a lock that is lost would be waited for for ever
    unittest.main()
