"""Parquet, read by the program's own pyarrow: a row group at a time, as an Arrow stream that C code takes the numbers out of.

    antifreeze.Loader("train.parquet", columns=["a", "b"], labels="y", batch=256)

paths      a .parquet file, a folder or a pattern of them ("data/*.parquet"), or a list: one behind the other
columns    a name: an array (batch,). A list of names: the single numbers together as one array (batch, n), each fixed-size list an
           array of its own. {"x": ["a", "b"], "time": "t"}: an array for each. None: all, as a list
labels     one more array: a column, a list of columns, or, as with all data, a file
details    {"dtype": "f4"}: what the numbers become, of all arrays but the labels, or {"dtype": {"x": "f4"}}; else they stay as they
           are, and those that share an array become what NumPy makes of them. {"nulls": "nan"}: what is absent, of numbers with a
           point; else that is an error of its row. {"sizes": {"embedding": 768}}: that all lists of a column have, where the file
           does not say it
"""
import errno
import glob
import json
import os
from collections import Counter
from itertools import islice

from .native import FIELDS_MAX, LoaderError
from .arguments import say_bytes

ENDINGS = (".parquet", ".parq", ".pq")
DTYPES = {"uint8": "u1", "int8": "i1", "uint16": "u2", "int16": "i2", "uint32": "u4", "int32": "i4", "uint64": "u8", "int64": "i8",
          "halffloat": "f2", "float": "f4", "double": "f8", "bool": "?"}
OTHERS = (  # by pyarrow.types: what such a column is of, and the way out
    ("is_dictionary", "words in a dictionary", "write their numbers instead (dictionary_encode().indices)"),
    ("is_string", "text", "write numbers instead (dictionary_encode().indices)"),
    ("is_large_string", "text", "write numbers instead (dictionary_encode().indices)"),
    ("is_list", "lists of no fixed size", 'where they all have one, say it, details={"sizes": {"%s": 768}}'),
    ("is_large_list", "lists of no fixed size", 'where they all have one, say it, details={"sizes": {"%s": 768}}'),
    ("is_temporal", "times", "cast it to int64 when it is written"),
    ("is_decimal", "decimal numbers", "cast it to float64 when it is written"),
)
NAMES_SHOWN = 20
LOOK_MOST = 1000  # names of a folder that is given without a format
DEPTH_MOST = 4  # of folders in it: year=2026/month=11/...

# What pyarrow holds while it reads.
BUFFER_BYTES = 64 << 10  # for each column: from a disk that reads ahead, larger ones bring nothing
BATCH_BYTES = 2 << 20  # decoded at a time. Not much less: each time the interpreter's lock is asked for
LEVEL_BYTES = 4  # of each number: whether it is there, and where its list begins
GROWTH = 2  # buffers are made twice as large when they are full
READER_BYTES = 256 << 10  # the reader itself
METADATA_TIMES = 8  # as large as in the file is what is made of the index (7.1 with 200 columns)
GROUP_BYTES = 160  # of each row group in the lists below


def import_pyarrow():
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise LoaderError(f"Parquet is read by pyarrow, which cannot be imported ({error}): pip install pyarrow") from None
    return pyarrow


def open_source(paths, labels, columns, format, details):
    """The paths and the arrow.Source that a loader is opened with; the paths as they are and None: it is something else."""
    files = files_of(paths, format)
    if files is not None:
        data = Data(files, columns, labels, json.loads(details) if isinstance(details, str) else details or {})
        return [files[0], *data.other_files], data.source()
    if columns is not None:
        raise ValueError("columns= is for Parquet; what other formats take is said by details= (docs/loader.md)")
    alone = isinstance(paths, (str, bytes, os.PathLike))
    return ([paths] if alone else list(paths)) + ([] if labels is None else [labels]), None


# ---- which files ----

def files_of(paths, format=None):
    """The .parquet files that are meant, or None."""
    is_alone = isinstance(paths, (str, bytes, os.PathLike))
    names = [os.fsdecode(path) for path in ([paths] if is_alone else paths)]
    if format not in (None, "parquet") or not names:
        return None
    is_meant = bool(format) or all(name.endswith(ENDINGS) for name in names)
    if is_alone and os.path.isdir(names[0]):
        is_meant = is_meant or has_any(names[0])
        names = in_folder(names[0]) if is_meant else []
    elif is_alone and is_meant and glob.has_magic(names[0]) and not os.path.exists(names[0]):
        names = sorted(glob.glob(names[0], recursive=True))
    if is_meant and not names:
        raise LoaderError(f"{os.fsdecode(paths)}: there are no .parquet files", errno.ENOENT)
    return names if is_meant else None


def has_any(folder, depth=DEPTH_MOST):
    """Told by few names: it may as well be a million pictures."""
    inner = None
    with os.scandir(folder) as entries:
        for entry in islice(entries, LOOK_MOST):
            if entry.name.endswith(ENDINGS) and entry.name[0] not in "._":
                return True
            if inner is None and entry.name[0] not in "._" and entry.is_dir():
                inner = entry.path
    return inner is not None and depth > 0 and has_any(inner, depth - 1)


def in_folder(folder):
    """Sorted; without what writers keep there for themselves (_metadata, .part)."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._"]
        found += [os.path.join(place, name) for name in files if name.endswith(ENDINGS) and name[0] not in "._"]
    return sorted(found)


class File:
    def __init__(self, path, parquet):
        self.path = path
        try:
            self.seen = look(path)
            with parquet.ParquetFile(path) as opened:
                self.metadata, self.schema = opened.metadata, opened.schema_arrow
            self.names = Counter(self.schema.names)  # in their order, and how often there is each
            self.paths = [self.metadata.schema.column(c).path for c in range(self.metadata.num_columns)]
        except Exception as error:  # pyarrow has several kinds of them
            raise LoaderError(f"{path}: {first_line(error)}", getattr(error, "errno", None) or errno.EBADMSG) from None

    def changed(self):
        """What has become of it since, as a sentence's end, or ""."""
        try:
            return "" if look(self.path) == self.seen else "the file has changed since it was opened"
        except OSError as error:
            return f"the file is there no more ({error.strerror})"


def look(path):
    about = os.stat(path)
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


def first_line(error):
    """Of what it says, without the path, which is said already."""
    return getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__


# ---- which columns ----

class Kinds:
    """What the columns of a file are of: dtype, and the shape of what a row has of one."""

    def __init__(self, file, sizes, arrow, numpy):
        self._file, self._sizes, self._arrow, self._numpy = file, sizes, arrow, numpy
        self.names = list(file.names)
        self._known = {}

    def __getitem__(self, name):
        if name not in self._known:
            if self._file.names[name] != 1:
                few = ", ".join(self.names[:NAMES_SHOWN]) + (", ..." if len(self.names) > NAMES_SHOWN else "")
                how_many = "more than one" if self._file.names[name] else "no"
                raise LoaderError(f"{self._file.path} has {how_many} column {name}; it has {few}", errno.EINVAL)
            type = sized(self._file.schema.field(name).type, self._sizes.get(name), self._arrow)
            self._known[name] = self._numbers_of(name, type)
        return self._known[name]

    def _numbers_of(self, name, type):
        shape = ()
        if isinstance(type, self._arrow.BaseExtensionType):
            tensor, type = getattr(type, "shape", None), type.storage_type
            if tensor:  # stored as one list of all its numbers
                return self._numbers_of(name, type.value_type)[0], tuple(tensor)
        while self._arrow.types.is_fixed_size_list(type):
            shape += (type.list_size,)
            type = type.value_type
        if str(type) in DTYPES and 0 not in shape:
            return self._numpy.dtype(DTYPES[str(type)]), shape
        if 0 in shape:
            raise LoaderError(f"{self._file.path}: column {name} is of lists that have nothing in them: leave it out", errno.EINVAL)
        kind, way = next(((kind, way) for test, kind, way in OTHERS if getattr(self._arrow.types, test)(type)), (str(type), "convert it"))
        way = way.replace("%s", name)
        raise LoaderError(f"{self._file.path}: column {name} is of {kind}, and only numbers are read: {way}, or name the others: "
                          "columns=[...]", errno.EINVAL)


def sized(type, size, arrow):
    """Lists that all have one size, as such."""
    is_list = size and (arrow.types.is_list(type) or arrow.types.is_large_list(type))
    return arrow.list_(type.value_type, int(size)) if is_list else type


def wanted(columns, labels, kinds):
    """Of each array its name and columns; a name in place of a list: it is one alone. labels: of columns of the file."""
    if columns is None:
        columns = [name for name in kinds.names if name not in ([labels] if isinstance(labels, str) else labels or [])]
    if isinstance(columns, str):
        arrays = [(columns, columns)]
    elif isinstance(columns, dict):
        arrays = list(columns.items())
    else:
        single = [name for name in columns if kinds[name][1] == ()]
        arrays = ([("x", single)] if single else []) + [(name, name) for name in columns if name not in single]
    return arrays + ([] if labels is None else [(labels if isinstance(labels, str) else "y", labels)])


def array_of(name, columns, dtype, kinds, numpy):
    from .arrow import Array
    is_alone = isinstance(columns, str)
    columns = [columns] if is_alone else list(columns)
    shapes = {kinds[column][1] for column in columns}
    if len(shapes) != 1:
        raise ValueError(f"columns {', '.join(columns)} make no array together: what a row has of them differs in shape"
                         if columns else f"{name}: no columns")
    shape = shapes.pop()
    dtype = numpy.dtype(dtype) if dtype else numpy.result_type(*(kinds[column][0] for column in columns))
    for column in columns:
        if not holds(dtype, kinds[column][0], numpy):
            raise ValueError(f"column {column} is of {kinds[column][0]}, which {dtype} does not hold; give it an array of its own: "
                             f'columns={{..., "{column}": "{column}"}}')
    return Array(name, columns, dtype, shape if is_alone else (len(columns), *shape), int(numpy.prod(shape, dtype=object)))


def holds(to, kind, numpy):
    """As afz_arrow_holds()."""
    if to == kind:
        return True
    if numpy.float16 in (to, kind):
        return False
    return to.kind == "f" or bool(numpy.can_cast(kind, to, "safe"))


# ---- the data ----

class Data:
    """Row groups of files, one behind the other, and what is wanted of them."""

    def __init__(self, files, columns, labels, details):
        import numpy
        unknown = set(details) - {"dtype", "nulls", "sizes"}
        if unknown or details.get("nulls", "nan") != "nan":
            raise ValueError(f'details={details!r}: of Parquet these are "dtype", "sizes", and "nulls": "nan"')
        self._arrow = import_pyarrow()
        self._files = [File(path, self._arrow.parquet) for path in files]
        self._sizes = details.get("sizes", {})
        kinds = Kinds(self._files[0], self._sizes, self._arrow, numpy)
        has_labels = are_columns(labels, kinds.names)
        self.other_files = [] if labels is None or has_labels else [labels]
        self._is_null_nan, told = "nulls" in details, details.get("dtype")
        arrays = wanted(columns, labels if has_labels else None, kinds)
        if not 0 < len(arrays) <= FIELDS_MAX:
            raise ValueError(f"that makes {len(arrays)} arrays, and there can be 1 to {FIELDS_MAX}: single numbers may share one, "
                             'columns={"x": ["a", "b"]}')
        last = len(arrays) - 1 if has_labels else None
        self._arrays = [array_of(name, of, told.get(name) if isinstance(told, dict) else None if i == last else told, kinds, numpy)
                        for i, (name, of) in enumerate(arrays)]
        self._names = {name for array in self._arrays for name in array.columns}
        self._numbers = sum(array.numbers * len(array.columns) for array in self._arrays)
        self._row_bytes = sum(kinds[name][0].itemsize * array.numbers for array in self._arrays for name in array.columns)
        for file in self._files[1:]:
            self._check_alike(file)
        self._groups = [(file, i) for file in self._files for i in range(file.metadata.num_row_groups)
                        if file.metadata.row_group(i).num_rows]
        if not self._groups:
            raise LoaderError(f"{files[0]} has no samples", errno.ENODATA)

    def _check_alike(self, file):
        first = self._files[0]
        for name in sorted(self._names):
            there, here = (of.schema.field(name).type if of.names[name] == 1 else "not there" for of in (file, first))
            if there != here:
                raise LoaderError(f"{file.path}: column {name} is {there}, and in {first.path} it is {here}", errno.EINVAL)

    def source(self):
        from .arrow import Source
        self._rows = [file.metadata.row_group(i).num_rows for file, i in self._groups]
        self._heap_bytes = max(map(self._held_bytes, self._files))
        index_bytes = GROUP_BYTES * len(self._rows) + METADATA_TIMES * sum(file.metadata.serialized_size for file in self._files)
        return Source(self._arrays, self._rows, self.reader, self.advice, heap_bytes=self._heap_bytes, index_bytes=index_bytes,
                      is_null_nan=self._is_null_nan)

    def _held_bytes(self, file):
        """By pyarrow, at most, while it reads a row group of the file. How large its pages are is not told: a column may be one, which
        is there as it was read and as it was before it was compressed."""
        most, columns = 0, [c for c, path in enumerate(file.paths) if self._is_of(path)]
        for i in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(i)
            rows = self._batch_rows(group.num_rows)
            held = READER_BYTES + GROWTH * rows * (self._row_bytes + LEVEL_BYTES * self._numbers)
            held += rows * self._row_bytes if self._sizes else 0  # once more, with lists of that size
            for column in map(group.column, columns):
                packed, plain = max(0, column.total_compressed_size), max(0, column.total_uncompressed_size)  # a stranger's figures
                held += min(BUFFER_BYTES, packed) + packed + plain
            most = max(most, held)
        return most

    def _is_of(self, path):
        """"emb.list.element" is of emb."""
        words = path.split(".")
        return any(".".join(words[:n]) in self._names for n in range(1, len(words) + 1))

    def _batch_rows(self, rows):
        return max(1, min(rows, BATCH_BYTES // self._row_bytes))

    def advice(self, budget_bytes):
        """For who has a budget that is too small."""
        rows, sample = max(self._rows), sum(array.dtype.itemsize * array.numbers * len(array.columns) for array in self._arrays)
        each = 2 * sample + (self._heap_bytes - READER_BYTES) / rows  # two chunks, and what pyarrow holds
        fit = int((budget_bytes / 2 - READER_BYTES) / each)  # the other half is for batches
        fit -= fit % 10 ** max(0, len(str(fit)) - 1)
        return (f"; of a row group of {rows} rows pyarrow holds {say_bytes(self._heap_bytes)} while it reads" +
                (f": with row_group_size={fit} it would fit" if 0 < fit < rows else ""))

    def reader(self, part):
        file, i = self._groups[part]
        name = f"{file.path}, row group {i}"
        schema = self._arrow.schema([field.with_type(sized(field.type, self._sizes.get(field.name), self._arrow))
                                     for field in file.schema if field.name in self._names])
        return name, self._arrow.RecordBatchReader.from_batches(schema, self._batches(file, i, name, schema))

    def _batches(self, file, i, name, schema):
        try:
            with self._arrow.parquet.ParquetFile(file.path, metadata=file.metadata, buffer_size=BUFFER_BYTES, pre_buffer=False,
                                                 page_checksum_verification=True) as opened:
                for batch in opened.iter_batches(self._batch_rows(file.metadata.row_group(i).num_rows), row_groups=[i],
                                                 columns=schema.names, use_threads=False):
                    if self._sizes:
                        batch = batch.cast(schema)
                    if batch.schema != schema:  # the stream would not look
                        raise ValueError("it has not the columns that the file says")
                    yield batch
        except Exception as error:
            raise OSError(f"{name}: {file.changed() or first_line(error)}") from None
        if file.changed():
            raise OSError(f"{name}: {file.changed()}")


def are_columns(labels, names):
    return labels in names if isinstance(labels, str) else isinstance(labels, (list, tuple)) and all(name in names for name in labels)
