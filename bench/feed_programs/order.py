"""How well mixed batches are, measured from the numbers that samples carry, whichever loader they came from.

reach    how far apart in the file two samples of a batch lie, on average, as a part of what a global shuffle gives (1). Someone who
         reads in order through a buffer has little of it, however large the buffer seems.
places   how many places of 512 samples a batch is as good as drawn from: one in so many pairs of a batch come from the same place.
         Of a global shuffle it is the number of places there are."""
import numpy

PLACE = 512


def numbers_of(x):
    """The first four bytes of each sample."""
    return numpy.ascontiguousarray(x.reshape(len(x), -1)[:, :4]).view("<u4").ravel().astype(numpy.int64)


def pairs_together(batch):
    """Pairs of one place, and pairs."""
    _, count = numpy.unique(batch // PLACE, return_counts=True)
    return int((count * (count - 1)).sum()), len(batch) * (len(batch) - 1)


def distance(batch):
    """Mean of all pairs."""
    ranked = numpy.sort(batch)
    n = len(ranked)
    return 2 * float((ranked * (2 * numpy.arange(n) - n + 1)).sum()) / (n * (n - 1))


def mixed(batches, samples):
    batches = [batch for batch in batches if len(batch) > 1]
    if not batches:
        return {"reach": None, "places": None}
    together, pairs = map(sum, zip(*map(pairs_together, batches)))
    return {"reach": sum(map(distance, batches)) / len(batches) / (samples / 3),
            "places": min(pairs / max(together, 1), samples / PLACE)}
