#!/usr/bin/env python3
"""A book that comes when the program has given up waiting for it: on a machine that is all busy the keeper may not get to
answering in time. The program goes on, and is seen from then on.

usage: test_probe_late.py KEEPER PROBE PROGRAM
"""
import os
import sys
import tempfile
import unittest

import test_probe
from test_probe import HEAP, MIB, NEW, live, named_stacks, pythons

PYTHON_PROGRAM = """
import os, time
kept = []
def has_book():
    with open('/proc/self/maps') as maps:
        return 'memfd:book' in maps.read()
def load():
    kept.append(bytearray(24 << 20))  # line 8
    kept.append([float(i) for i in range(400000)])  # line 9
assert not has_book()
while not has_book():
    bytearray(1 << 20)
    time.sleep(.002)
load()
os._exit(0)
"""


def run(*command, **how):
    answer = test_probe.run(*command, bad="late", **how)
    assert answer["status"] == 0, answer["stderr"]
    return answer["books"]


class Late(unittest.TestCase):
    def check_whole(self, book):
        self.assertNotEqual(book["state"], NEW)
        self.assertEqual(book["inside"], 0)
        self.assertEqual(book["blocks"], sum(site["live_blocks"] for site in book["sites"]))
        self.assertEqual(book["samples"] - book["frees"], book["blocks"])

    def held(self, book):
        """What stands in the book by its function."""
        return sum(site["live"] for site, names in named_stacks(book, test_probe.PROGRAM) if names[:1] == ["hold_late"])

    def test_what_comes_later_is_seen(self):
        book, = run(test_probe.PROGRAM, "late")
        self.check_whole(book)
        self.assertEqual(self.held(book), 16 * MIB)
        self.assertEqual((book["steps"], book["wait_ns"], book["told"]), (3, 5000, {"batch_count": 64}))

    def test_one_who_steps_and_does_not_allocate(self):
        book, = run(test_probe.PROGRAM, "late_steps")
        self.assertGreater(book["steps"], 1)

    def test_descriptors_that_are_closed(self):
        """The question's is not taken for the program's own, nor the other way round; then it is asked anew."""
        books = run(test_probe.PROGRAM, "late_closed")
        self.assertEqual(sum(book["state"] != NEW for book in books), 1)

    def test_children_have_their_own(self):
        books = run(test_probe.PROGRAM, "late_children")
        self.assertEqual(sorted(map(self.held, books)), [4 * MIB, 8 * MIB, 8 * MIB])
        self.assertEqual(len({book["pid"] for book in books}), 3)
        for book in books:
            self.check_whole(book)

    def test_threads(self):
        """Every allocation is a sample."""
        book, = run(test_probe.PROGRAM, "late_threads", mean=1)
        self.check_whole(book)
        self.assertGreater(book["samples"], 100)

    def test_a_thread_that_is_cancelled(self):
        run(test_probe.PROGRAM, "late_cancelled")

    def test_python(self):
        self.assertTrue(pythons())
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(PYTHON_PROGRAM)
            file.flush()
            for version, path in pythons().items():
                with self.subTest(version):
                    book, = run(path, file.name, mean=65536)
                    self.assertEqual((book["why"], book["python"]), ("", "CPython " + version))
                    held = {8: 0, 9: 0}
                    for site in book["sites"]:
                        lines = [f[1] for f in site["frames"] if isinstance(f, list) and f[0] == file.name]
                        if lines and lines[0] in held:
                            held[lines[0]] += site["live"]
                    self.assertAlmostEqual(held[8] / MIB, 24, delta=1)
                    # Floats and their list; five deviations of some 190 samples are a third.
                    self.assertAlmostEqual(held[9] / (400000 * 32), 1, delta=.35)

    def test_nobody_is_held_up_by_one_that_never_answers(self):
        """Beyond what is waited for at the start, once."""
        answer = test_probe.run(test_probe.PROGRAM, "truth", bad="hang")
        self.assertEqual(answer["status"], 0)
        self.assertLess(answer["ms"], 4000)  # 1100, on a machine that is not busy


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    test_probe.KEEPER, test_probe.PROBE, test_probe.PROGRAM = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main()
