#!/usr/bin/env python3
"""How a batch is split: the sizes of the parts, when they shrink and grow (split/sizing.py), and the cutting itself (split/cut.py).

usage: test_split.py AGENT_FOLDER
"""
import collections
import itertools
import os
import sys
import types
import unittest
import weakref
from unittest import mock


class Array:
    """As much of a tensor as the cutting asks for."""
    dtype = "float"

    def __init__(self, rows, width=2):
        self.rows, self.width = list(rows), width

    ndim = 2
    shape = property(lambda self: (len(self.rows), self.width))

    def __getitem__(self, key):
        return Array(self.rows[key], self.width)


class Heard:
    def __init__(self, **more):
        self.told, self.events = {}, []
        self.splitter = sizing.Splitter(tell=self.told.__setitem__, event=lambda kind, sentence, **keys: self.events.append((kind, keys)), **more)


class Parts(unittest.TestCase):
    def test_whole_until_something_fails(self):
        h = Heard()
        for n in (1, 7, 64):
            self.assertEqual(h.splitter.parts(n), [n])
            h.splitter.fits(n)
        self.assertEqual(h.told, {"batch_count": 64, "micro_count": 64})
        self.assertEqual(h.events, [])

    def test_every_sample_once_and_none_too_many(self):
        for n in range(1, 70):
            for most in range(1, n + 2):
                h = Heard()
                h.splitter.most = most
                sizes = h.splitter.parts(n)
                self.assertEqual(sum(sizes), n)
                self.assertLessEqual(max(sizes), most)
                self.assertLessEqual(max(sizes) - min(sizes), 1)
                self.assertEqual(len(sizes), -(-n // most))
        self.assertEqual(Heard().splitter.parts(0), [])

    def test_halves_down_to_one(self):
        h, seen = Heard(), []
        h.splitter.parts(10)
        size = 10
        while h.splitter.failed(size):
            size = max(h.splitter.parts(10))
            seen.append(size)
        self.assertEqual(seen, [5, 3, 2, 1])
        self.assertEqual([keys["micro"] for _, keys in h.events], [5, 3, 2, 1])
        self.assertEqual(h.splitter.parts(10), [1] * 10)

    def test_an_earlier_attempt_has_learned(self):
        self.assertEqual(Heard(lean=2).splitter.parts(32), [8] * 4)
        self.assertEqual(Heard(lean=9).splitter.parts(3), [1] * 3)
        h = Heard(lean=1)
        self.assertEqual(h.splitter.parts(1), [1])
        self.assertEqual(h.splitter.parts(32), [16] * 2, "a trial with one sample says nothing")
        self.assertEqual(h.splitter.parts(8), [8])
        h.splitter.failed(16)
        self.assertEqual(h.splitter.parts(32), [8] * 4)

    def test_the_guard_asks(self):
        h = Heard()
        self.assertTrue(h.splitter.shrink(), "before the first batch")
        self.assertEqual(h.splitter.parts(16), [8, 8])
        self.assertTrue(h.splitter.shrink())
        self.assertEqual(h.splitter.parts(16), [4] * 4)
        h.splitter.most = 1
        h.splitter.parts(8)
        self.assertFalse(h.splitter.shrink())

    def test_the_guard_asks_for_what_was(self):
        """Between two steps it may ask twice, or after a failure: what it saw was larger than what comes next."""
        h = Heard()
        h.splitter.parts(64)
        h.splitter.failed(64)
        h.splitter.failed(32)
        self.assertTrue(h.splitter.shrink())
        self.assertEqual(h.splitter.parts(64), [16] * 4)
        self.assertTrue(h.splitter.shrink() and h.splitter.shrink())
        self.assertEqual(h.splitter.parts(64), [8] * 8)
        self.assertEqual([keys["micro"] for _, keys in h.events], [32, 16, 8])

    def test_counts_steps_in_parts(self):
        h = Heard()
        h.splitter.parts(8)
        h.splitter.fits(8)
        h.splitter.failed(8)
        for _ in range(3):
            h.splitter.parts(8)
            h.splitter.fits(4)
        self.assertEqual(h.told["splits_count"], 3)


class Several(unittest.TestCase):
    """Models of one process."""

    def setUp(self):
        sizing._tell, sizing._event = (lambda *_: None), (lambda *_, **__: None)
        sizing.splitter, sizing._others = sizing.Splitter(), weakref.WeakSet()

    def test_what_does_not_fit_through_one_says_nothing_of_another(self):
        one, other = sizing.another(), sizing.another()
        one.parts(16)
        one.failed(16)
        self.assertEqual((one.parts(16), other.parts(16)), ([8, 8], [16]))
        one.fits(8)
        self.assertEqual(sizing.splitter.splits, 1, "steps are counted together")

    def test_the_guard_asks_all(self):
        self.assertTrue(sizing.shrink(), "before the first model")
        one, other = sizing.another(), sizing.another()
        self.assertEqual(one.parts(16), [8, 8])
        self.assertTrue(sizing.shrink())
        self.assertEqual((one.parts(16), other.parts(32)), ([4] * 4, [8] * 4))
        one.most = other.most = 1
        one.parts(4), other.parts(4)
        self.assertFalse(sizing.shrink())

    def test_it_goes_with_its_model(self):
        one = sizing.another()
        one.parts(4)
        del one
        self.assertEqual(len(sizing._others), 0)


class Cuts(unittest.TestCase):
    def test_what_is_compared_is_a_part_or_as_much_of_two(self):
        for most in range(1, 40):
            for n in range(most + 1, 3 * most + 4):
                sizes = sizing.even(n, most)
                ends = [0, *itertools.accumulate(sizes)]
                parts, seams = proof.cuts(sizes)
                self.assertEqual([(start, stop) for start, _, stop in parts], [pair for pair in zip(ends, ends[1:]) if pair[1] > pair[0] + 1])
                self.assertEqual([middle for _, middle, _ in seams], ends[1:-1])
                for start, middle, stop in parts + seams:
                    self.assertTrue(0 <= start < middle < stop <= n and stop - start <= max(most, 2), (n, most, start, middle, stop))

    def test_a_proof_is_due_again_and_again(self):
        course = torch_step.Course()
        course.proofs = 1
        for parts, expected in (4, [1, 10, 100, 1000]), (8, [1, 2, 3, 10, 100, 1000]):
            due = []
            for course.steps in range(2000):
                if course.is_due(parts):
                    due.append(course.steps + 1)
            self.assertEqual(due, expected)
        course.proofs = 0
        self.assertTrue(course.is_due(2), "until one went well")

    def test_those_samples_are_compared_that_tell(self):
        def chosen(classes, proofs, sizes):
            proof.labels = lambda *_: [classes] if classes else []
            job = types.SimpleNamespace(items=list, ways=lambda: ("samples", "sum"), batch=None)
            return proof.chosen(types.SimpleNamespace(job=job, course=types.SimpleNamespace(proofs=proofs), n=sum(sizes)), sizes)

        found, sizes = proof.labels, [6, 6, 6]
        self.addCleanup(setattr, proof, "labels", found)
        self.assertEqual([chosen(None, proofs, sizes)[0][0] for proofs in range(4)], [0, 12, 6, 0], "another one each time")
        self.assertEqual(chosen([0] * 11 + [1] * 7, 0, sizes), ((6, 8, 12), True), "the only one with two classes")
        self.assertEqual(chosen([0] * 6 + [1] * 12, 0, sizes), ((4, 6, 7), False), "of two parts, where each has one class")
        self.assertEqual(chosen(None, 1, [1] * 4), ((1, 2, 3), False))


class Packing(unittest.TestCase):
    def test_a_gpus_allocator_is_asked_once_and_keeps_what_it_was_told(self):
        for own, expected in ("", ["expandable_segments:True"]), ("max_split_size_mb:64,expandable_segments:False",
                                                                  ["max_split_size_mb:64,expandable_segments:True"]), ("expandable_segments:True", []):
            given, torch_step._packed = [], False
            allocator = types.SimpleNamespace(_accelerator_setAllocatorSettings=given.append)
            torch = types.SimpleNamespace(_C=allocator, cuda=types.SimpleNamespace(is_initialized=lambda: True))
            with mock.patch.dict(sys.modules, torch=torch), mock.patch.dict(os.environ, PYTORCH_ALLOC_CONF=own):
                self.assertEqual(torch_step.pack(), bool(expected))
                self.assertFalse(torch_step.pack())
            self.assertEqual(given, expected)


class Growing(unittest.TestCase):
    def setUp(self):
        self.h = Heard()
        self.h.splitter.parts(32)
        self.h.splitter.failed(32)
        self.h.splitter.failed(16)

    def calm(self, steps, before=100, after=90):
        for _ in range(steps):
            self.h.splitter.fits(max(self.h.splitter.parts(32)), before, after)
        return max(self.h.splitter.parts(32))

    def test_after_many_steps_with_ample_room_by_one_doubling(self):
        self.assertEqual(self.calm(sizing.GROW_AFTER - 1), 8)
        self.assertEqual(self.calm(1), 16)
        self.assertEqual(self.calm(sizing.GROW_AFTER), 32)
        self.assertEqual([kind for kind, _ in self.h.events], ["split", "split", "grow", "grow"])

    def test_not_without_room(self):
        self.assertEqual(self.calm(sizing.GROW_AFTER * 3, 100, 60), 8)
        self.assertEqual(self.calm(sizing.GROW_AFTER * 3, None, None), 8, "what is not known is not ample")

    def test_one_tight_step_starts_the_count_anew(self):
        self.calm(sizing.GROW_AFTER - 1)
        self.calm(1, 100, 40)
        self.assertEqual(self.calm(sizing.GROW_AFTER - 1), 8)

    def test_what_failed_twice_is_left_alone(self):
        self.assertEqual(self.calm(sizing.GROW_AFTER), 16)
        self.h.splitter.failed(16)
        self.assertEqual(self.calm(sizing.GROW_AFTER * sizing.GROW_LATER * 3), 8)

    def test_what_was_in_vain_takes_longer_next_time(self):
        self.h.splitter.most = 4
        self.assertEqual(self.calm(sizing.GROW_AFTER), 8)
        self.h.splitter.failed(8)
        self.assertEqual(self.calm(sizing.GROW_AFTER), 4)
        self.assertEqual(self.calm(sizing.GROW_AFTER * sizing.GROW_LATER), 8)

    def test_smaller_batches_tell_nothing(self):
        for _ in range(sizing.GROW_AFTER * 2):
            self.h.splitter.parts(4)
            self.h.splitter.fits(4, 100, 99)
        self.assertEqual(max(self.h.splitter.parts(32)), 8)


class Cutting(unittest.TestCase):
    def test_whatever_it_is_made_of(self):
        pair = collections.namedtuple("pair", "x y")
        batch = {"x": Array(range(6)), "more": [Array(range(6)), (Array("m"), None)], "pair": pair(Array("abcdef"), 3),
                 "names": ["a", "b", "c", "d", "e", "f"], "kind": "text", "rate": .5}
        self.assertEqual(cut.count(batch), 6)
        part = cut.part(batch, 6, 2, 4)
        self.assertEqual(part["x"].rows, [2, 3])
        self.assertEqual(part["more"][0].rows, [2, 3])
        self.assertEqual(part["more"][1][0].rows, ["m"], "one row is for all")
        self.assertEqual((type(part["pair"]), part["pair"].x.rows, part["pair"].y), (pair, ["c", "d"], 3))
        self.assertEqual((part["names"], part["kind"], part["rate"]), (["c", "d"], "text", .5))

    def test_what_cannot_be_cut_with_certainty(self):
        class Graph:
            pass
        sparse, packed = Array(range(4)), collections.namedtuple("PackedSequence", "data")
        sparse.is_sparse = True
        for batch in ([Array(range(4)), Array(range(5))], Graph(), {"a": Array(range(4)), "g": Graph()}, "text", [], {}, None,
                      (sparse,), packed(Array(range(4)))):
            with self.assertRaises(cut.Uncut, msg=str(batch)):
                cut.count(batch)

    def test_joined_again(self):
        def concatenate(parts):
            return Array([row for part in parts for row in part.rows])
        parts = [{"a": Array([0, 1]), "b": (Array([2, 3]), None)}, {"a": Array([4]), "b": (Array([5]), None)}]
        joined = cut.join(parts, [2, 1], concatenate)
        self.assertEqual((joined["a"].rows, joined["b"][0].rows, joined["b"][1]), ([0, 1, 4], [2, 3, 5], None))
        for bad in ([Array([0]), Array([1])], [1., 2.], ["a", "b"]):
            with self.assertRaises(cut.Uncut):
                cut.join(bad, [2, 1], concatenate)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    door = sys.modules["_antifreeze"] = type(sys)("_antifreeze")
    door.__path__ = [os.path.dirname(os.path.abspath(sys.argv.pop()))]
    from _antifreeze.split import cut, proof, sizing, torch_step
    unittest.main(verbosity=2)
