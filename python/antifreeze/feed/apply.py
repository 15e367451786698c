"""How a transform is called: its draws seeded, what it gives taken apart, what goes wrong told. Workers and the program itself do it
the same way, so what comes out is the same, too."""
import random
import struct
import sys
from collections.abc import Mapping
from hashlib import blake2b

from . import native
from .handover import torch_can
from .slots import Unfit, kinds_of

SKIP = 1  # AFZ_ERROR_SKIP
PARTS_MOST = 32  # more arrays than that are rather the samples of a list


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


class Call:
    """How the transform is called, here or in a worker. What comes of it: ("done", (keys, arrays)), ("unfit", a sentence) or ("raised",
    an exception or its traceback)."""

    def __init__(self, transform, as_, options, pool):
        self._transform, self._as, self._pool = transform, as_, pool
        self._batch, self._seed, self._rank, self._ranks = options["batch"], options["seed"], options["rank"], options["ranks"]
        self.is_skipping, self.is_shared = options["on_error"] == SKIP, pool is not None

    def seed(self, epoch, index):
        return seed_of(self._seed & native.UINT64_MAX, epoch, index, self._rank)

    def here(self, arrays, epoch, index, layout=None):
        try:
            with Seeded(self.seed(epoch, index)):
                what = take_apart(self._transform(*input_of(arrays, self._as)))
            if layout:
                layout.check(*what)
            return "done", what
        except Unfit as error:
            return "unfit", str(error)
        except Exception as error:
            return "raised", error

    def once(self, source, arrays):
        """To see what comes of it: types and shapes in place of arrays."""
        if self._pool is None:
            said, what = self.here(arrays, 0, 0)
            return said, (what[0], kinds_of(what[1])) if said == "done" else what
        return self._pool.once(source, arrays, self.seed(0, 0))

    def name(self, epoch, index, count):
        first = (index * self._ranks + self._rank) * self._batch
        return f"batch {index} of epoch {epoch} (samples {first} to {first + count - 1} of its order)"

    def refuse(self, said, what, where):
        if said == "unfit":
            raise native.LoaderError(f"{what} (on {where})")
        is_here = isinstance(what, BaseException)
        raise native.LoaderError(f"the transform failed on {where}:{' ' if is_here else chr(10)}{say_error(what) if is_here else what}") \
            from (what if is_here else None)


def say_error(what):
    """In one line."""
    return f"{type(what).__name__}: {what}" if isinstance(what, BaseException) else what.rstrip().rpartition("\n")[2]
