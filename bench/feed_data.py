#!/usr/bin/env python3
"""The datasets that bench/feed.py reads, each made once, in pieces: one that was begun is gone on with.

    bench/feed_data.py FOLDER [--bytes 8e9] [--only npy,zarr,tar,cached,sorted]

x.npy, y.npy    samples of 3 x 32 x 32 bytes in the order of their classes, which is how data often lie, and their classes. A sample's
                first four bytes are its number: so an order can be read off what a loader gives.
x.zarr          the same as Zarr v3, zstd, chunks of 512 samples (1.5 MB)
pictures.tar    JPEGs of 500 x 375, some 110 kB each, with .cls files beside them, as webdataset names them. 2048 distinct ones, again and again
cached.npy      a sixteenth of x.npy, which fits into memory
sorted.npy      32,768 samples, for what an order is worth to a model
"""
import argparse
import io
import os
import sys
import tarfile

import numpy

SAMPLE = (3, 32, 32)
SAMPLE_BYTES = 3072
CLASSES = 10
BLOCK = 8192  # samples that are made at once: 24 MiB
CHUNK = 512  # samples of a Zarr chunk
SORTED = 32768
CACHED_PART = 16
DISTINCT, WIDTH, HEIGHT, QUALITY = 2048, 500, 375, 95
SIGNAL = 1.6  # of a class's pattern beside noise of 0 to 31: a linear model finds nine of ten


def samples_of(size):
    return max(2 * BLOCK, int(size) // SAMPLE_BYTES // BLOCK * BLOCK)


def classes(first, count, samples):
    return (numpy.arange(first, first + count) * CLASSES // samples).astype(numpy.int64)


def block(first, count, samples):
    """Samples from the first on; of BLOCK at a time, so that any of them can be made by itself."""
    patterns = numpy.random.default_rng(7).normal(110, SIGNAL, (CLASSES, SAMPLE_BYTES))
    noise = numpy.frombuffer(numpy.random.default_rng([11, first]).bytes(count * SAMPLE_BYTES), numpy.uint8).reshape(count, SAMPLE_BYTES)
    made = (noise & 31) + patterns.round().astype(numpy.uint8)[classes(first, count, samples)]
    made[:, :4] = numpy.arange(first, first + count, dtype="<u4")[:, None].view(numpy.uint8)
    return made


class Progress:
    """A line for each tenth; on a terminal, one that changes."""

    def __init__(self, name, of):
        self.name, self.of, self.told = name, of, -1

    def at(self, done):
        is_terminal = sys.stderr.isatty()
        part = int(100 * done // self.of) if is_terminal else int(10 * done // self.of) * 10
        if part != self.told:
            self.told = part
            print(f"{self.name}: {part} %", file=sys.stderr, flush=True, end="\r" if is_terminal and part < 100 else "\n")


def flush(file):
    """What is dirty slows down whoever reads beside it; and it is not to be cached when the benchmark begins."""
    file.flush()
    os.fdatasync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def make_npy(path, samples):
    if os.path.exists(path):
        return
    head = io.BytesIO()
    numpy.lib.format.write_array_header_1_0(head, {"descr": "|u1", "fortran_order": False, "shape": (samples, *SAMPLE)})
    with open(path + ".part", "ab") as file:
        at = max(0, file.tell() - len(head.getvalue())) // SAMPLE_BYTES // BLOCK * BLOCK
        file.truncate(at * SAMPLE_BYTES + len(head.getvalue()) if at else 0)
        if at == 0:
            file.write(head.getvalue())
        progress = Progress(path, samples)
        for first in range(at, samples, BLOCK):
            file.write(block(first, BLOCK, samples))
            if first // BLOCK % 16 == 0:
                flush(file)
            progress.at(first + BLOCK)
        flush(file)
    with open(path[:-len("x.npy")] + "y.npy" if path.endswith("/x.npy") else path[:-len(".npy")] + "-y.npy", "wb") as file:
        numpy.save(file, classes(0, samples, samples))
    os.rename(path + ".part", path)


def make_zarr(path, samples):
    if os.path.exists(path):
        return
    import zarr
    part = path + ".part"
    array = zarr.create_array(part, shape=(samples, *SAMPLE), chunks=(CHUNK, *SAMPLE), dtype="uint8", overwrite=False,
                              compressors=zarr.codecs.ZstdCodec(level=3)) if not os.path.exists(part) else zarr.open_array(part, mode="r+")
    have = len(os.listdir(part + "/c")) if os.path.isdir(part + "/c") else 0
    progress = Progress(path, samples)
    for first in range(max(0, have * CHUNK // BLOCK - 1) * BLOCK, samples, BLOCK):  # chunks are written in any order within a block
        array[first:first + BLOCK] = block(first, BLOCK, samples).reshape(BLOCK, *SAMPLE)
        progress.at(first + BLOCK)
    os.sync()
    os.rename(part, path)


def picture(number):
    """Something that packs as photographs do: soft fields, edges, and a grain."""
    import PIL.Image
    draw = numpy.random.default_rng([13, number])
    soft = sum(numpy.asarray(PIL.Image.fromarray(draw.integers(0, 256, (side * 3 // 4, side, 3), numpy.uint8)).resize((WIDTH, HEIGHT), 2),
                             numpy.float32) * part for side, part in ((4, .45), (16, .3), (64, .17), (160, .08)))
    grain = draw.normal(0, 9, (HEIGHT, WIDTH, 1))
    file = io.BytesIO()
    PIL.Image.fromarray((soft + grain).clip(0, 255).astype(numpy.uint8)).save(file, "JPEG", quality=QUALITY)
    return file.getvalue()


def entry(name, data):
    head = tarfile.TarInfo(name)
    head.size = len(data)
    return head.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512)


def make_tar(path, size):
    if os.path.exists(path):
        return
    distinct, count = [], min(DISTINCT, max(16, int(size) // 400_000))
    progress = Progress(path + ", its pictures", count)
    for number in range(count):
        distinct.append(picture(number))
        progress.at(number + 1)
    progress = Progress(path, size)
    with open(path + ".part", "ab") as file:
        have, at, number = file.tell(), 0, 0
        while at < size:
            data = entry(f"{number:08}.jpg", distinct[number % len(distinct)]) + entry(f"{number:08}.cls", b"%d" % (number % 1000))
            if at + len(data) > have:
                file.truncate(at) if at < have else None
                have = 0
                file.write(data)
            at, number = at + len(data), number + 1
            if number % 2048 == 0:
                flush(file)
                progress.at(min(at, size))
        file.write(bytes(1024))
        flush(file)
    os.rename(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--bytes", type=lambda text: int(float(text)), default=int(8e9))
    parser.add_argument("--only", default="npy,zarr,tar,cached,sorted")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    samples = samples_of(args.bytes)
    make = {"npy": lambda: make_npy(args.folder + "/x.npy", samples), "zarr": lambda: make_zarr(args.folder + "/x.zarr", samples),
            "tar": lambda: make_tar(args.folder + "/pictures.tar", args.bytes),
            "cached": lambda: make_npy(args.folder + "/cached.npy", samples_of(args.bytes // CACHED_PART)),
            "sorted": lambda: make_npy(args.folder + "/sorted.npy", SORTED)}
    for name in args.only.split(","):
        make[name]()


if __name__ == "__main__":
    main()
