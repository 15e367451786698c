#!/usr/bin/env python3
"""`antifreeze convert` of Parquet, which the user's own Python reads: the copy has what antifreeze.Loader reads of the files themselves,
whoever kills it in between.

usage: test_convert_parquet.py PYTHON_FOLDER LIBRARY ANTIFREEZE [TEST...]

LIBRARY: libantifreeze-loader.so. Needs pyarrow and NumPy.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import feed_case
from scenario import tree

ROWS, GROUP, WIDTH = 40_000, 1000, 16
STATE = ".antifreeze-convert"
SHARDS = ["--chunk", "32K", "--shard", "128K"]
PATIENCE_S = 300


class Parquet(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="afz-convert-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.target = self.folder + "/copy.zarr"

    def write(self, name="t.parquet", first=0, rows=ROWS):
        path = os.path.join(self.folder, name)
        numbers = numpy.arange(first, first + rows)
        lists = pyarrow.array((numpy.arange(rows * WIDTH) * 7919 % 10007).astype("f4"))
        pyarrow.parquet.write_table(pyarrow.table({
            "a": numbers, "b": numbers * .5, "y": numbers % 10, "e": pyarrow.FixedSizeListArray.from_arrays(lists, WIDTH)}),
            path, row_group_size=GROUP)
        return path

    def command(self, *arguments, python=sys.executable):
        return [ANTIFREEZE, "convert", "--python", python, *arguments]

    def good(self, *arguments):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def bad(self, words, *arguments, status=2, **more):
        done = subprocess.run(self.command(*arguments, **more), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertRegex(done.stderr, f"^antifreeze: {words}.*\n$")

    def check_same(self, source, **options):
        """All of both, bit by bit."""
        both = [antifreeze.Loader(path, batch=500, budget="64M", shuffle="none", as_="numpy", **more)
                for path, more in ((source, options), (self.target, {}))]
        self.assertEqual(*([field[1:] for field in loader.fields] for loader in both))
        self.assertEqual(*map(len, both))
        for ours, theirs in zip(*both):
            for one, other in zip(ours, theirs):
                self.assertEqual(one.tobytes(), other.tobytes())

    def test_a_file(self):
        source = self.write()
        said = json.loads(self.good("--json", "--labels", "y", source, self.target))
        self.assertEqual((said["samples"], [array["name"] for array in said["arrays"]]), (ROWS, ["x", "e", "y"]))
        self.check_same(source, labels="y")
        self.assertIn("is whole already", self.good("--labels", "y", source, self.target))

    def test_a_folder_and_labels_in_a_file(self):
        os.mkdir(self.folder + "/many")
        for i, rows in enumerate((3000, 700, 5000)):
            self.write(f"many/{i}.parquet", 10_000 * i, rows)
        labels = self.folder + "/y.npy"
        numpy.save(labels, numpy.arange(8700))
        details = {"columns": {"time": "a", "e": "e"}, "dtype": {"time": "f4"}}
        self.good("--labels", labels, "--details", json.dumps(details), self.folder + "/many", self.target)
        columns = details.pop("columns")
        self.check_same(self.folder + "/many", labels=labels, columns=columns, details=details)

    def test_what_it_would_take(self):
        source = self.write()
        self.assertIn("would take about", self.good("--dry-run", source, self.target))
        self.assertFalse(os.path.exists(self.target))

    def test_killed(self):
        """At a moment in each of several shards; what comes out is the same."""
        source = self.write()
        other = self.folder + "/whole.zarr"
        self.good(*SHARDS, source, other)
        for shard in 1, 2, 7, 20:
            child = subprocess.Popen(self.command("--quiet", *SHARDS, source, self.target))
            self.wait_for(shard, child)
            child.kill()
            child.wait()
        said = json.loads(self.good("--json", *SHARDS, source, self.target))
        self.assertGreaterEqual(said["resumed_samples"], 20 * (128 << 10) // (16 + 4 * WIDTH + 8) // 2)
        self.assertEqual(tree(self.target), tree(other))

    def test_stopped(self):
        source, slow = self.write(), [*SHARDS, "--level", "19"]
        child = subprocess.Popen(self.command(*slow, source, self.target), stderr=subprocess.PIPE, text=True)
        self.wait_for(1, child)
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=PATIENCE_S)[1]
        self.assertEqual(child.returncode, -signal.SIGINT)
        self.assertRegex(said, "stopped; [0-9]+ % of the copy is done, and the same command goes on")
        self.good("--quiet", *slow, source, self.target)
        self.check_same(source)

    def test_written_anew(self):
        """A file of a folder, in its place: the folder itself does not show it."""
        os.mkdir(self.folder + "/many")
        for name in "ab":
            self.write(f"many/{name}.parquet", rows=100)
        self.good(self.folder + "/many", self.target)
        time.sleep(.02)
        self.write("many/a.parquet", first=7, rows=100)
        self.bad(".*from another source, or it has changed since", self.folder + "/many", self.target)

    def wait_for(self, shards, child):
        until = time.monotonic() + PATIENCE_S
        while child.poll() is None and time.monotonic() < until:
            try:
                with open(os.path.join(self.target, STATE), encoding="ascii") as file:
                    if json.load(file)["shards"] >= shards:
                        return
            except FileNotFoundError:
                pass
            time.sleep(.001)

    def test_other_columns(self):
        """Also where the arrays look alike, a copy is gone on with only if it is of the same columns."""
        source = self.write()
        self.good("--details", '{"columns": "a"}', source, self.target)
        self.bad(".*copy.zarr is there already, made with other --details", "--details", '{"columns": "y"}', source, self.target)

    def test_budget(self):
        """What it takes beyond the least that it takes at all, Python and pyarrow themselves, is within the budget and some MiB."""
        few, many = self.write("few.parquet", rows=10), self.write("many.parquet", rows=1_000_000)
        least = self.peak_bytes(few, self.folder + "/few.zarr")
        self.assertLess(self.peak_bytes("--budget", "24M", many, self.target) - least, (24 << 20) + (16 << 20))

    def peak_bytes(self, *arguments):
        child, peak = subprocess.Popen(self.command("--quiet", *arguments)), 0
        while child.poll() is None:
            try:
                with open(f"/proc/{child.pid}/status", encoding="utf-8") as file:
                    peak = max([peak, *(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))])
            except (FileNotFoundError, ProcessLookupError):
                pass
            time.sleep(.005)
        self.assertEqual(child.returncode, 0)
        return peak

    def test_refused(self):
        source = self.write(rows=10)
        self.bad("convert: Parquet is read by Python with pyarrow, and /nowhere/python cannot be started: .*--python names another",
                 source, self.target, python="/nowhere/python")
        self.bad("/.*nothing.parquet: there is no such file or folder", self.folder + "/nothing.parquet", self.target)
        self.bad(".* has no column z; it has a, b, y, e", "--details", '{"columns": ["z"]}', source, self.target)
        self.bad('--details .*these are "columns", "dtype"', "--details", '{"rows": 3}', source, self.target)
        self.bad("--details 3: an object, in JSON", "--details", "3", source, self.target)
        self.bad("--details {: that is no JSON", "--details", "{", source, self.target)
        for wrong in '{"columns": 5}', '{"dtype": "foo"}', '{"sizes": 5}':
            self.bad(f"--details {wrong}: ", "--details", wrong, source, self.target)
        self.bad(".* needs at least", "--budget", "1M", self.write("large.parquet"), self.target)
        bare = self.folder + "/python"
        with open(bare, "w", encoding="utf-8") as file:  # as one that has no pyarrow
            file.write(f'#!/bin/sh\nshift\nboot="import sys; sys.modules[\'pyarrow\'] = None; $1"\nshift\nexec {sys.executable} -c "$boot" "$@"\n')
        os.chmod(bare, 0o755)
        self.bad(f"Parquet is read by pyarrow and NumPy, which {sys.executable} has not .*--python PATH", source, self.target, python=bare)
        self.assertFalse(os.path.exists(self.target))


if __name__ == "__main__":
    feed_case.enter(__doc__, "numpy", "pyarrow")
    ANTIFREEZE = os.path.abspath(sys.argv.pop(1))
    import numpy
    import pyarrow
    import pyarrow.parquet

    import antifreeze
    unittest.main()
