"""Data on a disk for the programs that stream: x.npy, rows of a thousand numbers, and y.npy, which of the first ten is the largest."""
import numpy


def write(rows, width=1000, chunk=5000):
    """Writes both into this folder, a chunk at a time, so that no more than a chunk is ever in memory."""
    draw = numpy.random.default_rng(0)
    x = numpy.lib.format.open_memmap("x.npy", mode="w+", dtype="f4", shape=(rows, width))
    y = numpy.lib.format.open_memmap("y.npy", mode="w+", dtype="i8", shape=(rows,))
    for start in range(0, rows, chunk):
        part = draw.standard_normal((min(chunk, rows - start), width), dtype="f4")
        x[start:start + chunk], y[start:start + chunk] = part, part[:, :10].argmax(1)
