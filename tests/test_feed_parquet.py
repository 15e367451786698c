#!/usr/bin/env python3
"""antifreeze.Loader over Parquet: bit by bit what pyarrow itself reads, within the budget, and whatever the files have become.

usage: test_feed_parquet.py PYTHON_FOLDER LIBRARY [TEST...]

LIBRARY: libantifreeze-loader.so. Needs NumPy and pyarrow.
"""
import gc
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import feed_case

ROWS, GROUP = 50_003, 5000
SMALL = "2M"  # too little for all of it
DTYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "bool")
BEYOND_BYTES = 16 << 20  # a budget: what the issue allows

# Each is a program of its own: sys.argv[1:] is the folder of antifreeze, and a file.
START = """
import os, sys
sys.path.insert(0, sys.argv[1])
import antifreeze
path = sys.argv[2]
"""
ENDS = {  # a program that ends while threads of its loader call it
    "by itself": "loader = antifreeze.Loader(path, batch=64, budget='32M', as_='numpy')\nnext(iter(loader))\n",
    "by an error": "loader = antifreeze.Loader(path, batch=64, budget='32M', as_='numpy')\nnext(iter(loader))\nraise SystemExit(0)\n",
    "in a thread": """
import threading, warnings
warnings.simplefilter("ignore")  # leases are not given back any more when the interpreter ends
loader = antifreeze.Loader(path, batch=64, budget='32M', as_='numpy')
def loop():
    while True:
        try:
            for x in loader: pass
        except antifreeze.LoaderError as error:
            assert "ends" in str(error), error
            return
threading.Thread(target=loop, daemon=True).start()
""",
    "let go of in a cycle": """
import gc
gc.set_threshold(5)
for _ in range(20):
    loader = antifreeze.Loader(path, batch=64, budget='32M', as_='numpy', threads=3)
    loader.itself = loader
    next(iter(loader))
    del loader
""",
    "after a fork": """
loader = antifreeze.Loader(path, batch=64, budget='32M', as_='numpy')
loop = iter(loader)
next(loop)
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
for x in loop: pass
""",
}
HOLDS = """
import pyarrow
from _antifreeze.feed import parquet
data = parquet.Data([path], None, None, {"sizes": {"sized": 16}})
data.source()
pool = pyarrow.default_memory_pool()
before = pool.bytes_allocated()
for part in range(len(data._groups)):
    for batch in data.reader(part)[1]:
        pass
print(data._heap_bytes, pool.max_memory() - before)
"""
PEAK = """
def kib(word):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(word))
budget = int(sys.argv[3])
for x in antifreeze.Loader(path, batch=64, budget=budget, as_="numpy", subset=(0, 64)):  # what pyarrow and all else load once
    pass
del x
open("/proc/self/clear_refs", "w").write("5")
before = kib("VmRSS")
for _ in range(3):
    for x in antifreeze.Loader(path, batch=64, budget=budget, as_="numpy"):
        pass
print(before << 10, kib("VmHWM") << 10)
"""


def run(program, *arguments):
    command = [sys.executable, "-B", "-c", START + program, PYTHON, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def write(name, columns, group=GROUP, **options):
    path = os.path.join(FOLDER, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    table = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
    parquet.write_table(table, path, row_group_size=group, **options)
    return path


def all_of(loader):
    """Each of its arrays, of a whole epoch."""
    batches = [batch if isinstance(batch, tuple) else (batch,) for batch in copied(loader)]
    return [numpy.concatenate(parts) for parts in zip(*batches)]


def copied(loader):
    for batch in loader:
        yield tuple(part.copy() for part in batch) if isinstance(batch, tuple) else batch.copy()


class Parquet(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("error")

    def loader(self, paths=None, labels=None, **options):
        options = {"batch": 32, "budget": "8M", "seed": 5, "as_": "numpy", **options}
        return antifreeze.Loader(paths or PLAIN, labels, **options)

    def same(self, got, want):
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
        self.assertEqual(got.tobytes(), want.tobytes())

    def refuses(self, words, *arguments, error=None, **options):
        with self.assertRaisesRegex(error or antifreeze.LoaderError, words):
            self.loader(*arguments, **options)

    # ---- what comes ----

    def test_all_kinds(self):
        chance = numpy.random.default_rng(1)
        bits = {name: chance.integers(0, 2, ROWS).astype(name) if name == "bool" else
                chance.integers(0, 256, ROWS * numpy.dtype(name).itemsize, dtype=numpy.uint8).view(name) for name in DTYPES}
        for options in ({}, {"compression": "zstd"}, {"compression": "gzip"}, {"compression": "brotli"}, {"compression": "none"},
                        {"use_dictionary": False, "data_page_version": "2.0", "write_page_checksum": True}):
            path = write("kinds.parquet", bits, **options)
            for name, column in bits.items():
                self.same(all_of(self.loader(path, columns=name, shuffle="none"))[0], column)
            read = parquet.read_table(path)
            for names in (["uint8", "int16"], ["float32", "int16"], ["bool", "int8"], ["int64", "uint64"], ["float32", "float64"]):
                with numpy.errstate(invalid="ignore"):  # NaNs of all kinds
                    want = numpy.column_stack([read[name].to_numpy() for name in names])
                self.same(all_of(self.loader(path, columns=names, shuffle="none"))[0], want)

    def test_lists_and_tensors(self):
        flat = numpy.arange(ROWS * 6, dtype=numpy.float32)
        pairs = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(flat), 2)
        tensor = pyarrow.FixedShapeTensorArray.from_numpy_ndarray(flat.reshape(ROWS, 3, 2))
        path = write("lists.parquet", {"a": numpy.arange(ROWS), "three": pyarrow.FixedSizeListArray.from_arrays(pairs, 3), "tensor": tensor,
                                       "b": numpy.arange(ROWS) * 2})
        x, three, tensor = all_of(self.loader(path, shuffle="none"))
        self.same(x, numpy.column_stack([numpy.arange(ROWS), numpy.arange(ROWS) * 2]))
        self.same(three, flat.reshape(ROWS, 3, 2))
        self.same(tensor, flat.reshape(ROWS, 3, 2))
        loader = self.loader(path, columns={"of": "a", "both": ["b", "a"], "l": ["three", "tensor"]}, details={"dtype": {"both": "f4"}})
        self.assertEqual([(name, dtype.name, shape) for name, dtype, shape, _ in loader.fields],
                         [("of", "int64", ()), ("both", "float32", (2,)), ("l", "float32", (2, 3, 2))])
        of, both, lists = all_of(loader)
        self.assertTrue((both[:, 0] == 2 * of).all() and (lists[:, 0] == lists[:, 1]).all() and (lists[:, 0, 0, 0] == 6 * of).all())

    def test_lists_of_one_size(self):
        rows = numpy.arange(ROWS * 4, dtype=numpy.float32).reshape(ROWS, 4)
        path = write("sized.parquet", {"e": rows.tolist()[:-1] + [[1.0]], "id": numpy.arange(ROWS)})
        loader = self.loader(path, "id", columns="e", details={"sizes": {"e": 4}}, on_error="skip")
        warnings.simplefilter("ignore")
        e, y = all_of(loader)
        self.assertEqual(sorted(y), list(range(ROWS - ROWS % GROUP)))  # the last row group has one that is shorter
        self.same(e, rows.astype(numpy.float64)[y])
        with self.assertRaisesRegex(antifreeze.LoaderError, f"sized.parquet, row group {ROWS // GROUP}: .*expected size"):
            all_of(self.loader(path, columns="e", details={"sizes": {"e": 4}}))

    def test_shuffled(self):
        for shuffle in "window", "global":
            loader = self.loader(labels="id", shuffle=shuffle, budget="8M" if shuffle == "global" else SMALL)
            self.assertEqual([name for name, *_ in loader.fields], ["x", "id"])
            epochs = []
            for _ in range(2):
                x, y = all_of(loader)
                self.same(x, X[y])
                self.assertEqual(sorted(y), list(range(ROWS)))
                epochs.append(y.tolist())
            self.assertNotEqual(*epochs)
            for threads in 1, 3:
                again = self.loader(labels="id", shuffle=shuffle, threads=threads, budget=loader.budget_bytes)
                self.assertEqual(all_of(again)[1].tolist(), epochs[0])
        self.assertTrue(0 < self.loader(budget=SMALL).shuffle_quality < 1)

    def test_many_files(self):
        bounds = [0, 12_000, 17_000, 39_500, ROWS]
        files = [write(f"many/part-{i}.parquet", TABLE.slice(start, stop - start))
                 for i, (start, stop) in enumerate(zip(bounds, bounds[1:]))]
        write("many/_hidden.parquet", {"other": [1]})
        write("deep/year=1/month=2/a.parquet", TABLE)
        self.same(all_of(self.loader(FOLDER + "/deep", "id", shuffle="none"))[0], X)
        folder = os.path.dirname(files[0])
        for paths in folder, folder + "/part-*.parquet", files, [*map(os.fsencode, files)]:
            x, y = all_of(self.loader(paths, "id", shuffle="none"))
            self.same(x, X)
            self.assertEqual(y.tolist(), list(range(ROWS)))
        x, y = all_of(self.loader(list(reversed(files)), "id", shuffle="none"))
        self.assertEqual(y[:3].tolist(), [39_500, 39_501, 39_502])
        opened = []
        from _antifreeze.feed.parquet import Data
        reader, Data.reader = Data.reader, lambda self, part: opened.append(part) or reader(self, part)
        try:
            x, y = all_of(self.loader(folder, "id", budget=SMALL, threads=1))
        finally:
            Data.reader = reader
        self.assertEqual(sorted(y), list(range(ROWS)))
        self.same(x, X[y])
        groups = sum(-(-(stop - start) // GROUP) for start, stop in zip(bounds, bounds[1:]))
        self.assertEqual(len(set(opened)), groups)
        self.assertLessEqual(len(opened), 2 * groups + 4)  # this epoch, the next that has begun, and odd ones that are cut

    def test_state_and_ranks(self):
        whole = all_of(self.loader(labels="id", budget=SMALL))[1].tolist()
        for batches in 0, 1, 20, 1562, 1563:
            first = self.loader(labels="id", budget=SMALL)
            loop = iter(first)
            start = [i for _ in range(batches) for i in next(loop)[1].tolist()]
            then = self.loader(labels="id", budget=SMALL, threads=2)
            then.load_state_dict(first.state_dict())
            self.assertEqual(start + (all_of(then)[1].tolist() if len(start) < ROWS else []), whole)
        ranks = [[y.tolist() for _, y in copied(self.loader(labels="id", budget=SMALL, batch=16, rank=r, ranks=2))] for r in (0, 1)]
        together = [i for both in zip(*ranks) for part in both for i in part]
        self.assertEqual(together[:ROWS // 32 * 32], whole[:ROWS // 32 * 32])

    def test_subsets(self):
        y = all_of(self.loader(labels="id", subset=(7000, 19_000)))[1]
        self.assertEqual(sorted(y), list(range(7000, 19_000)))
        x, y = all_of(self.loader(labels="id", subset=numpy.array([3, 50_002, 77])))
        self.assertEqual(sorted(y), [3, 77, 50_002])
        self.same(x, X[y])

    def test_labels_of_a_file(self):
        numpy.save(FOLDER + "/labels.npy", numpy.arange(ROWS) * 3)
        write("beside/a.parquet", TABLE.slice(0, 11_000)), write("beside/b.parquet", TABLE.slice(11_000))
        *_, ids, y = all_of(self.loader(FOLDER + "/beside", FOLDER + "/labels.npy", columns={"x": ["a", "b"], "id": "id"}))
        self.assertEqual((ids * 3).tolist(), y.tolist())
        self.assertEqual(sorted(ids), list(range(ROWS)))

    def test_dtype(self):
        x, y = all_of(self.loader(labels="id", details='{"dtype": "f4"}', shuffle="none"))
        self.same(x, X.astype(numpy.float32))
        self.assertEqual(y.dtype, numpy.int64)
        self.refuses("does not hold", details={"dtype": "i4"}, error=ValueError)
        self.refuses("details", details={"dtypes": "i4"}, error=ValueError)

    # ---- what is not there ----

    def test_nulls(self):
        floats = [None if i % 100 == 7 else float(i) for i in range(ROWS)]
        whole = [None if i % 1000 == 3 else i for i in range(ROWS)]
        path = write("nulls.parquet", {"f": floats, "n": whole, "id": numpy.arange(ROWS)})
        with self.assertRaisesRegex(antifreeze.LoaderError, r"nulls.parquet, row group 0: row 7 has nothing \(null\) in column f"):
            all_of(self.loader(path, "id", columns=["f"], shuffle="none"))
        for threads in 1, 3:
            loader = self.loader(path, "id", columns="f", on_error="skip", threads=threads)
            warnings.simplefilter("ignore")
            f, y = all_of(loader)
            self.assertEqual(sorted(y), [i for i in range(ROWS) if i % 100 != 7])
            self.assertEqual(f.tolist(), y.tolist())
            self.assertEqual(loader.times().skipped, ROWS - len(y))
        f, y = all_of(self.loader(path, "id", columns="f", details={"nulls": "nan"}))
        self.assertEqual(numpy.isnan(f).tolist(), (y % 100 == 7).tolist())
        with self.assertRaisesRegex(antifreeze.LoaderError, "column n"):
            all_of(self.loader(path, columns="n", details={"nulls": "nan"}))
        n, y = all_of(self.loader(path, "id", columns="n", details={"nulls": "nan", "dtype": "f8"}))
        self.assertEqual(numpy.isnan(n).tolist(), (y % 1000 == 3).tolist())
        lists = pyarrow.array([None if i == 600 else [i, None if i == 9 else 1] for i in range(ROWS)], pyarrow.list_(pyarrow.float32(), 2))
        path = write("null-lists.parquet", {"l": lists})
        self.same(all_of(self.loader(path, columns="l", details={"nulls": "nan"}, shuffle="none"))[0],
                  numpy.array([[numpy.nan] * 2 if i == 600 else [i, numpy.nan if i == 9 else 1] for i in range(ROWS)], numpy.float32))

    def test_what_cannot_be_read(self):
        words = pyarrow.array(["a", "b"] * 5)
        path = write("others.parquet", {"text": words, "dictionary": words.dictionary_encode(), "lists": [[1.0]] * 10,
                                        "day": pyarrow.array([0] * 10, pyarrow.date32()), "n": [1] * 10})
        for column, says in (("text", "text.*indices"), ("dictionary", "words.*indices"), ("lists", "no fixed size.*sizes.*lists.: 768"),
                             ("day", "times.*int64"), ("m", "no column m; it has text, dictionary")):
            self.refuses(f"others.parquet.*column {column}.*" if column != "m" else says, path, columns=[column])
            self.refuses(says, path, columns=[column])
        self.refuses("column text .*columns=", path)
        hollow = write("hollow.parquet", {"l": pyarrow.array([[]] * 10, pyarrow.list_(pyarrow.int8(), 0))})
        self.refuses("column l .*nothing in them", hollow)
        self.assertEqual(len(all_of(self.loader(path, columns=["n"]))[0]), 10)
        self.refuses("no columns", PLAIN, columns={"x": []}, error=ValueError)
        self.refuses("there can be 1 to 8", PLAIN, columns={str(i): "a" for i in range(9)}, error=ValueError)
        self.refuses("for Parquet", FOLDER + "/labels.npy", columns=["a"], error=ValueError)
        other = write("other-type.parquet", {"a": pyarrow.array([1], pyarrow.int8()), "b": [1.0], "id": [1]})
        self.refuses("other-type.parquet: column a is int8, and in .*plain.parquet it is", [PLAIN, other])
        self.refuses("no .parquet files", FOLDER + "/no*.parquet")
        os.makedirs(FOLDER + "/nothing/inside", exist_ok=True)
        self.refuses("no .parquet files", FOLDER + "/nothing", format="parquet")
        self.refuses("give it to antifreeze.Loader.*alone", [FOLDER + "/labels.npy", PLAIN])
        self.refuses("none.parquet", FOLDER + "/none.parquet")
        self.refuses("empty.parquet has no samples", write("empty.parquet", {"a": pyarrow.array([], pyarrow.int8())}))

    def test_without_pyarrow(self):
        ended = run("sys.modules['pyarrow'] = None\nantifreeze.Loader(path, batch=8)\n", PLAIN)
        last = ended.stderr.strip().rpartition("\n")[2]
        self.assertIn("pip install pyarrow", last)
        ended = run("antifreeze.Loader(path, batch=8, as_='numpy')\nassert 'pyarrow' not in sys.modules\n", NPY)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    # ---- what has become of it ----

    def damaged(self, change):
        path = write("damaged.parquet", TABLE, write_page_checksum=True)
        with open(path, "rb") as file:
            data = bytearray(file.read())
        at = parquet.read_metadata(path).row_group(3).column(1).data_page_offset + 200
        change(data, at)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_damage(self):
        def flip(data, at):
            data[at] ^= 0x10

        path = self.damaged(flip)
        with self.assertRaisesRegex(antifreeze.LoaderError, r"damaged.parquet, row group 3: .*CRC"):
            all_of(self.loader(path))
        warnings.simplefilter("ignore")
        y = all_of(self.loader(path, "id", on_error="skip"))[1]
        self.assertEqual(sorted(y), [i for i in range(ROWS) if not 3 * GROUP <= i < 4 * GROUP])
        for cut in (lambda data, at: data.__delitem__(slice(at, None)), lambda data, at: data.clear(),
                    lambda data, at: data.__setitem__(slice(-30, -8), b"\xff" * 22)):
            self.refuses("damaged.parquet: ", self.damaged(cut))

    def test_changed(self):
        for shrinks in True, False:
            path = write("changed.parquet", TABLE)
            loader = self.loader(path, "id", budget=SMALL, threads=1)
            loop = iter(loader)
            next(loop)
            if shrinks:
                os.truncate(path, 3000)
            else:
                write("new.parquet", TABLE)
                os.replace(FOLDER + "/new.parquet", path)
            with self.assertRaisesRegex(antifreeze.LoaderError, "changed.parquet, row group .*has changed since"):
                for _ in loop:
                    pass
        path = write("gone.parquet", TABLE)
        loader = self.loader(path, budget=SMALL)
        loop = iter(loader)
        os.remove(path)
        with self.assertRaisesRegex(antifreeze.LoaderError, "gone.parquet.* there no more"):
            for _ in loop:
                pass

    # ---- what it takes ----

    def test_budget(self):
        path = write("large.parquet", TABLE, group=ROWS)
        with self.assertRaisesRegex(MemoryError, "large.parquet needs at least .* row_group_size=[0-9]+ it would fit") as raised:
            self.loader(path, budget="2M")
        fit = int(str(raised.exception).partition("row_group_size=")[2].split()[0])
        self.assertEqual(len(all_of(self.loader(write("large.parquet", TABLE, group=fit), budget="2M"))[0]), ROWS)
        self.refuses("needs at least [0-9]+K", path, budget="64K", error=MemoryError)

    def test_pyarrow_holds_what_is_counted(self):
        chance = numpy.random.default_rng(2)
        rows = 60_000
        tables = {"floats": {f"f{i}": chance.random(rows) for i in range(8)},
                  "few": {f"f{i}": chance.integers(0, 5, rows) for i in range(8)},
                  "lists": {"l": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(chance.random(rows * 16)), 16)},
                  "sized": {"sized": pyarrow.ListArray.from_arrays(range(0, rows * 16 + 1, 16), pyarrow.array(chance.random(rows * 16)))},
                  "nulls": {"f": pyarrow.array(chance.random(rows), mask=chance.random(rows) < .5)}}
        for name, columns in tables.items():
            for options in ({"compression": "none"}, {"compression": "zstd"}, {"compression": "zstd", "data_page_size": 1 << 30}):
                told, held = map(int, run(HOLDS, write("holds.parquet", columns, group=rows // 2, **options)).stdout.split())
                self.assertLessEqual(held, told, (name, options))

    def test_peak(self):
        rows = 200_000
        chance = numpy.random.default_rng(3)
        path = write("peak.parquet", {f"f{i}": chance.random(rows, dtype=numpy.float32) for i in range(32)}, group=10_000)
        for budget in 32 << 20, 64 << 20:
            ended = run(PEAK, path, budget)
            before, peak = map(int, ended.stdout.split())
            self.assertLessEqual(peak - before, budget + BEYOND_BYTES)

    # ---- how it ends ----

    def test_ends(self):
        path = write("ends.parquet", {str(i): numpy.random.default_rng(i).random(300_000) for i in range(8)}, group=50_000)
        for name, program in ENDS.items():
            for _ in range(3):
                with self.subTest(name):
                    ended = run(program, path)
                    self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_is_let_go_of(self):
        import weakref
        from _antifreeze.feed import arrow
        gc.collect()
        before = len(arrow._handles)
        loader = self.loader()
        x = next(iter(loader))
        kept, told = x.copy(), weakref.ref(loader)
        del loader
        gc.collect()
        self.assertIsNone(told())
        self.assertEqual(len(arrow._handles), before)
        self.same(x, kept)


if __name__ == "__main__":
    PYTHON = feed_case.enter(__doc__, "numpy", "pyarrow")
    import numpy
    import pyarrow
    from pyarrow import parquet

    import antifreeze
    with tempfile.TemporaryDirectory() as FOLDER:
        X = numpy.random.default_rng(0).random((ROWS, 2))
        TABLE = pyarrow.table({"a": X[:, 0], "id": numpy.arange(ROWS), "b": X[:, 1]})
        PLAIN = write("plain.parquet", TABLE)
        NPY = FOLDER + "/labels.npy"
        numpy.save(NPY, numpy.arange(ROWS))
        unittest.main()
