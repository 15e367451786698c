"""Where transformed batches lie: one file without a name, cut into slots, which workers write and the program reads. Its size is part
of the loader's budget and never changes. A slot that was handed out is free again when the last array over it is gone."""
import ctypes
import fcntl
import mmap
import os
import weakref
from math import prod

LEASES_MOST = 8  # as of the loader's own batches, AFZ_LEASES_MAX
F_ADD_SEALS, SEALS = 1033, 1 | 2 | 4  # its size is final: memory that somebody could cut off would be the end of who reads it
LINE, PAGE = 64, 4096  # what frameworks want arrays to begin on; slots begin on pages


class Unfit(ValueError):
    """What the transform gave cannot be handed over."""


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


class Slots:
    def __init__(self, count, layout):
        self._layout, self._count, self.bytes = layout, count, count * layout.bytes
        self.fd = os.memfd_create("antifreeze-slots", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        weakref.finalize(self, os.close, self.fd).atexit = False
        os.ftruncate(self.fd, self.bytes)
        fcntl.fcntl(self.fd, F_ADD_SEALS, SEALS)
        self.memory = mmap.mmap(self.fd, self.bytes)
        for at in range(0, self.bytes, PAGE):  # all of it is taken now, so that no later moment has to be feared
            self.memory[at] = 0
        self.leases_most = min(count - 1, LEASES_MOST)  # one is left for the next batch
        self._leased, self._copied = {}, set()  # number of a lease to its slot; those that are copies
        self._leases = 0
        self.take_back()

    def take_back(self):
        """All that nobody has."""
        self.free = [slot for slot in range(self._count) if slot not in self._leased.values()]

    @property
    def held(self):
        return len(self._leased) + len(self._copied)

    def at(self, slot):
        return slot * self._layout.bytes

    def lease(self, slot, lengths):
        """Arrays over a slot, and whether they are a copy instead: who has so many batches does not get the last slot, too."""
        is_copy = len(self._leased) >= self.leases_most
        kind = ctypes.c_char * self._layout.bytes
        memory = kind.from_buffer_copy(self.memory, self.at(slot)) if is_copy else kind.from_buffer(self.memory, self.at(slot))
        self._leases += 1
        lease = self._leases
        try:
            if is_copy:
                self._copied.add(lease)
                self.free.append(slot)
            else:
                self._leased[lease] = slot
            weakref.finalize(memory, self._release, lease).atexit = False
            return self._layout.views(memory, 0, lengths), is_copy
        except BaseException:  # Ctrl-C, before anybody has it
            self._release(lease)
            raise

    def _release(self, lease):
        """Once: a traceback may have the memory still when the slot is another's."""
        self._copied.discard(lease)
        slot = self._leased.pop(lease, None)
        if slot is not None:
            self.free.append(slot)
