"""What a program says to a loader, as people write it, as the C library takes it; what is none of that is an error that says so."""
import os
import re
from operator import index

UNITS = {unit: 1 << 10 * power for power, unit in enumerate(["", "K", "M", "G", "T"])}
FORM = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?\s*", re.I | re.A)

TELL_ALL = "npy", "idx", "zarr", "folder", "tar"  # formats of which nothing has to be said


def parse_bytes(value):
    """A number of bytes; ValueError if it is none, or none that is above 0."""
    if isinstance(value, str):
        found = FORM.fullmatch(value)
        size = int(float(found.group(1)) * UNITS[found.group(2).upper()]) if found else 0
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value
    else:
        size = 0
    if size <= 0:
        raise ValueError(f"{value!r} is no size: write \"512MiB\", \"2G\" or a number of bytes")
    return size


def say_bytes(size):
    """Short, for people: 1.5G."""
    for unit in reversed(UNITS):
        if size >= UNITS[unit]:
            number = f"{size / UNITS[unit]:.1f}"
            return (number[:-2] if number.endswith(".0") else number) + (unit or "B")
    return "0B"


def whole(name, value, least=None, most=None):
    """A whole number within these."""
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None or not (least is None or least <= number <= most):
        bounds = "" if least is None else f" of {least} or more" if number is None or number < least else f" of {most} at most"
        raise ValueError(f"{name}={value!r}: it is a whole number{bounds}")
    return number


def one_of(name, word, words):
    if word not in words:
        raise ValueError(f"{name}={word!r}: it is one of {', '.join(words)}")
    return words[word]


def refuse_idle(files, format, details, transform, workers, weights, draws):
    """What would do nothing was meant to do something."""
    if workers and transform is None:
        raise ValueError(f"workers={workers}: these run a transform=; what reads and decodes are threads, and as many as it takes")
    if draws and weights is None:
        raise ValueError(f"draws={draws}: it goes with weights=; subset= takes fewer samples")
    if details is not None and (format in TELL_ALL or format is None and all(map(tells_all, files))):
        raise ValueError(f"details={details!r}: {os.fsdecode(files[0])} says itself what it is; they are for CSV, npz, Parquet, raw "
                         "records and tokens")


def tells_all(path):
    name = os.fsdecode(path).rstrip("/")
    return os.path.isdir(name) or name.endswith(tuple("." + format for format in TELL_ALL))


# ---- which samples, and how often: subset=, weights= ----

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
