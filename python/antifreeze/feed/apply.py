"""One call of a transform: its draws seeded, what it gives taken apart, and where that lies in a slot. Workers and the program itself
do it the same way, so what comes out is the same, too."""
import random
import struct
import sys
from collections.abc import Mapping
from hashlib import blake2b
from math import prod

from .handover import torch_can

LINE, PAGE = 64, 4096  # what frameworks want arrays to begin on; slots begin on pages
PARTS_MOST = 32  # more arrays than that are rather the samples of a list


class Unfit(ValueError):
    """What the transform gave cannot be handed over."""


def seed_of(*numbers):
    return int.from_bytes(blake2b(struct.pack(f"<{len(numbers)}Q", *numbers), digest_size=8).digest(), "little")


class Seeded:
    """Within it Python's, NumPy's and torch's draws follow from a number; those of the program go on behind it as if it had not been."""

    def __init__(self, number):
        self.number = number

    def __enter__(self):
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        self.before = [(random.setstate, random.getstate())]
        random.seed(self.number)
        if numpy is not None:
            self.before.append((numpy.random.set_state, numpy.random.get_state()))
            numpy.random.seed(self.number & 0xffffffff)
        if torch is not None:
            generator = torch.default_generator  # manual_seed() would seed those of GPUs as well
            self.before.append((generator.set_state, generator.get_state()))
            generator.manual_seed(self.number)

    def __exit__(self, *_):
        for put_back, state in self.before:
            put_back(state)


def input_of(arrays, as_):
    """As the loop would have got them: tensors for who has torch, else NumPy's arrays."""
    if as_ != "torch":
        return arrays
    import torch
    return [torch.from_numpy(torch_can(torch, array)) for array in arrays]


def take_apart(result):
    """(keys, arrays). Keys: those of a dictionary; () of a tuple; None of one array."""
    if isinstance(result, Mapping):
        keys, values = tuple(result), list(result.values())
    elif isinstance(result, (tuple, list)):
        keys, values = (), list(result)
    else:
        keys, values = None, [result]
    if not 0 < len(values) <= PARTS_MOST:
        raise Unfit(f"the transform gave {len(values)} things: it is to give arrays of all samples, one for each field (numpy.stack() or "
                    "torch.stack() makes one of many)")
    return keys, [array_of(value) for value in values]


def array_of(value):
    import numpy
    if hasattr(value, "detach"):  # a tensor of torch
        value = value.detach().cpu().numpy()
    array = numpy.asarray(value)
    if array.dtype.hasobject:
        raise Unfit(f"the transform gave {type(value).__name__}, which is no array of numbers")
    # As all frameworks can take it: in one piece, and to be written to. What is so already is not copied.
    return numpy.require(array, array.dtype.newbyteorder("="), ["C", "W"])


def put_together(keys, arrays):
    """What the loop gets."""
    if keys:
        return dict(zip(keys, arrays))
    return arrays[0] if keys is None else tuple(arrays)


class Layout:
    """Of a slot: which arrays there are, how large at the most, and where. Learned from one batch and the same for all others."""

    def __init__(self, keys, kinds, count, batch):
        """kinds: types and shapes that came of count samples; a whole batch may have more."""
        self.keys, self.parts, at = keys, [], 0
        for dtype, shape in kinds:
            shape = (batch, *shape[1:]) if shape[:1] == (count,) else shape
            self.parts.append((dtype, shape, at))
            at += -(-dtype.itemsize * prod(shape) // LINE) * LINE
        self.bytes = max(PAGE, -(-at // PAGE) * PAGE)

    def check(self, keys, arrays):
        """All of it is as it was, but for the number of samples, which may be less."""
        now = kinds_of(arrays)
        first = [(dtype, shape) for dtype, shape, _ in self.parts]
        if keys != self.keys or len(now) != len(first) or not all(map(fits, now, first)):
            raise Unfit(f"the transform gave {say(keys, now)}, and for the first batch {say(self.keys, first)}: types and shapes are to be "
                        "the same for all batches, but for a smaller number of samples")

    def views(self, memory, at, lengths):
        """Arrays over a slot. lengths: how many samples are in each; None: it is but a number."""
        import numpy
        return [numpy.ndarray(shape if length is None else (length, *shape[1:]), dtype, memory, at + offset)
                for (dtype, shape, offset), length in zip(self.parts, lengths)]

    def fill(self, memory, at, arrays):
        """Returns the lengths for views()."""
        lengths = [array.shape[0] if array.shape else None for array in arrays]
        for view, array in zip(self.views(memory, at, lengths), arrays):
            view[...] = array
        return lengths


def kinds_of(arrays):
    return [(array.dtype, array.shape) for array in arrays]


def fits(now, first):
    (dtype, shape), (first_dtype, most) = now, first
    return dtype == first_dtype and len(shape) == len(most) and shape[1:] == most[1:] and shape[:1] <= most[:1]


def say(keys, parts):
    words = [f"{dtype} {shape}" for dtype, shape in parts]
    return "{" + ", ".join(f"{key!r}: {word}" for key, word in zip(keys, words)) + "}" if keys else " and ".join(words)
