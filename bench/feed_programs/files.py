"""The files that the loaders here read: x.npy, x.zarr, and copies of them in the formats that some have of their own."""
import os

import numpy

CHUNK = 512  # samples that are read in a row, if nothing else is said: 1.5 MB


class Array:
    def __init__(self, options):
        self.options, name = options, options["file"] or "x"
        self.is_zarr = options["kind"] == "zarr"
        self.path = f"{options['data']}/{name}" + (".zarr" if self.is_zarr else ".npy")
        self.labels_path = f"{options['data']}/" + ("y.npy" if name == "x" else name + "-y.npy")
        with open(f"{options['data']}/{name}.npy", "rb") as file:
            numpy.lib.format.read_magic(file)
            self.shape, _, _ = numpy.lib.format.read_array_header_1_0(file)
            self.data_at = file.tell()
        self.samples, self.sample_bytes = self.shape[0], int(numpy.prod(self.shape[1:]))
        self.per = options.get("chunk") or CHUNK
        self.chunks = -(-self.samples // self.per)
        self._file = self._y = self._zarr = None

    def mapped(self):
        return numpy.load(self.path, mmap_mode="r").reshape(self.samples, -1)

    def loaded(self):
        return numpy.load(self.path).reshape(self.samples, -1)

    def labels(self):
        if self._y is None:
            self._y = numpy.load(self.labels_path)
        return self._y

    def chunk(self, number):
        rows = min(self.per, self.samples - number * self.per)
        if self.is_zarr:
            if self._zarr is None:
                import zarr
                self._zarr = zarr.open_array(self.path, mode="r")
            return self._zarr[number * self.per:number * self.per + rows].reshape(rows, -1)
        if self._file is None:
            self._file = os.open(self.path, os.O_RDONLY)
        made = numpy.empty((rows, self.sample_bytes), numpy.uint8)
        at, end = self.data_at + number * self.per * self.sample_bytes, 0
        while end < made.nbytes:
            end += os.preadv(self._file, [made.reshape(-1)[end:]], at + end)
        return made

    def chunk_labels(self, number):
        return self.labels()[number * self.per:(number + 1) * self.per]

    def groups(self, window, epoch):
        """Chunks from all over, as many together as are about `window` samples."""
        chunks = numpy.random.default_rng(epoch).permutation(self.chunks)
        return numpy.array_split(chunks, max(1, round(self.samples / window)))


# ---- copies ----

COPY_BYTES_MOST = 3_000_000_000  # more than the limit of memory, so that no cache has it


def copy_of(name, options):
    return f"{options['data']}/{options['file'] or 'x'}.{name}"


def copied_samples(array):
    return min(array.samples, COPY_BYTES_MOST // array.sample_bytes)


def make_arrow(array, path):
    import datasets
    import pyarrow
    features = datasets.Features({"x": datasets.Sequence(datasets.Value("uint8"), length=array.sample_bytes), "y": datasets.Value("int64")})
    with pyarrow.OSFile(path, "wb") as file, pyarrow.ipc.new_stream(file, features.arrow_schema) as stream:
        for chunk in range(copied_samples(array) // CHUNK):
            x = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(array.chunk(chunk).ravel()), array.sample_bytes)
            stream.write(pyarrow.record_batch([x, pyarrow.array(array.chunk_labels(chunk))], schema=features.arrow_schema))


def make_mds(array, path):
    import streaming
    with streaming.MDSWriter(out=path, columns={"x": "bytes", "y": "int"}) as out:
        for chunk in range(copied_samples(array) // CHUNK):
            for x, y in zip(array.chunk(chunk), array.chunk_labels(chunk)):
                out.write({"x": x.tobytes(), "y": int(y)})


def make_litdata(array, path):
    import litdata
    os.environ["DATA_OPTIMIZER_CACHE_FOLDER"] = path + ".work"  # not the temporary folder
    litdata.optimize(fn=Rows(array.options), inputs=list(range(copied_samples(array) // CHUNK)), output_dir=path, chunk_bytes="64MB", num_workers=1,
                     verbose=False)


class Rows:
    """A chunk's samples, each by itself."""

    def __init__(self, options):
        self.options, self.array = options, None

    def __call__(self, chunk):
        self.array = self.array or Array(self.options)  # opened by the process that reads
        for x, y in zip(self.array.chunk(chunk), self.array.chunk_labels(chunk)):
            yield {"x": x, "y": int(y)}


MAKE = {"arrow": make_arrow, "mds": make_mds, "litdata": make_litdata}
MODULES = {"arrow": "datasets", "mds": "streaming", "litdata": "litdata"}


def main():
    """files.py FOLDER: what is not there yet, and can be made."""
    import importlib.util
    import shutil
    import sys
    array = Array({"data": os.path.abspath(sys.argv[1]), "file": None, "kind": "npy"})
    for name, make in MAKE.items():
        path = copy_of(name, {"data": os.path.abspath(sys.argv[1]), "file": None})
        if os.path.exists(path) or not importlib.util.find_spec(MODULES[name]):
            continue
        print(f"{path}: {copied_samples(array)} samples", file=sys.stderr, flush=True)
        part = path + ".part"
        shutil.rmtree(part, ignore_errors=True) if os.path.isdir(part) else None
        make(array, part)
        shutil.rmtree(part + ".work", ignore_errors=True)
        os.rename(part, path)
    os.sync()


if __name__ == "__main__":
    main()
