"""Which samples, and how often: subset= and weights= as people write them, as the C library takes them."""


def chosen(subset, weights, draws, count_samples):
    """Options of the C library's."""
    import numpy
    start, stop, indices = part_of(subset, numpy, count_samples)
    return {"start": start, "stop": stop, "subset": indices, "weights": weights_of(weights, numpy), "draws": draws}


def part_of(subset, numpy, count_samples):
    """(start, stop, indices): a run of samples (stop 0: to the end), or the numbers of those that are wanted (None: a run). Only
    what counts from the end has to know how many there are."""
    if subset is None:
        return 0, 0, None
    if isinstance(subset, tuple):
        if len(subset) != 2:
            raise ValueError(f"subset={subset!r}: a tuple is (start, stop); for single samples a list or an array of their numbers")
        subset = range(*map(int, subset))
    if isinstance(subset, slice):
        is_from_start = all(bound is None or bound >= 0 for bound in (subset.start, subset.stop))
        if is_from_start and subset.step in (None, 1) and subset.stop is None:
            return int(subset.start or 0), 0, None
        most = subset.stop if is_from_start and subset.stop is not None else count_samples()
        subset = range(*subset.indices(most))
    if isinstance(subset, range) and subset.step == 1:
        if not 0 <= subset.start < subset.stop:
            raise ValueError(f"subset={subset!r}: from which sample on, and before which one it ends")
        return subset.start, subset.stop, None
    array = numpy.asarray(subset)
    if array.dtype.kind == "b":
        if array.shape != (count_samples(),):
            raise ValueError(f"subset: a mask of {len(array)}, and there are {count_samples()} samples")
        array = numpy.flatnonzero(array)
    return 0, 0, indices_of(array, numpy)


def indices_of(array, numpy):
    """Of samples. The array itself where it can be: a copy would be memory that nobody counts."""
    if array.ndim != 1 or array.dtype.kind not in "iu" or not len(array) or array.min() < 0:
        raise ValueError("subset: a slice, a range, (start, stop), a mask, or the numbers of samples, which count from 0")
    return numpy.ascontiguousarray(array, array.dtype if array.dtype.itemsize == 8 else numpy.uint64).view(numpy.uint64)


def weights_of(weights, numpy):
    if weights is None:
        return None
    array = numpy.ascontiguousarray(weights, numpy.float64)
    if array.ndim != 1 or not numpy.isfinite(array).all() or (array < 0).any() or not array.any():
        raise ValueError("weights: a number for each sample, 0 or more, and not all of them 0")
    return array
