"""Where transformed batches lie: one file without a name, cut into slots, which workers write and the program reads. Its size is part
of the loader's budget and never changes. A slot that was handed out is free again when the last array over it is gone."""
import ctypes
import fcntl
import mmap
import os
import weakref

LEASES_MOST = 8  # as of the loader's own batches, AFZ_LEASES_MAX
F_ADD_SEALS, SEALS = 1033, 1 | 2 | 4  # its size is final: memory that somebody could cut off would be the end of who reads it
PAGE = mmap.PAGESIZE


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
        self._leased, self._copied = set(), set()
        self.take_back()

    def take_back(self):
        """All that nobody has."""
        self.free = [slot for slot in range(self._count) if slot not in self._leased]

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
        weakref.finalize(memory, self._release, id(memory) if is_copy else slot, is_copy).atexit = False
        (self._copied if is_copy else self._leased).add(id(memory) if is_copy else slot)
        if is_copy:
            self.free.append(slot)
        return self._layout.views(memory, 0, lengths), is_copy

    def _release(self, one, is_copy):
        if is_copy:
            self._copied.discard(one)
        else:
            self._leased.discard(one)
            self.free.append(one)
