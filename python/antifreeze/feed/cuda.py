"""Batches on a GPU: copied there from the loader's own memory, which is pinned for that, on a stream of their own, while the program
works on the one before.

A lease is given back when its copy is done, not when it was asked for: until then the GPU reads from that memory. What the program
gets are tensors of torch's allocator, which its stream waits for; it never sees the loader's memory.

CUDA is the program's to bring up. Nothing here asks for it before the first batch is wanted, so that a process can still be forked
after a loader was made; and a child that was forked touches nothing of it.
"""
import os
from collections import deque

from . import handover, native

COPIES_MOST = 2  # leases that copies read from at the same time: the fewest that a loader has
PORTABLE = 1  # cudaHostRegisterPortable: for all devices


def ahead(feed, memory, device):
    import torch
    return Ahead(feed, Sender(memory, torch.device(device), torch.cuda, handover.converter("torch")))


class Ahead:
    """A feed whose batches are on the GPU, or on their way to it while the one before is worked on."""

    def __init__(self, feed, sender):
        self._feed, self._sender, self._pid = feed, sender, os.getpid()
        self._taken = None  # what comes next, if it was there to be taken
        self._state = None  # behind what was given; None: where the feed is

    def next(self):
        if os.getpid() != self._pid:
            return self._feed.next()  # which says why not
        taken, self._taken = self._taken or self._take(), None
        given, event, self._state = taken
        if isinstance(given, native.LoaderError):
            raise given
        if given is not None:
            if self._feed.is_ready():
                self._taken = self._take()
            self._sender.receive(given.arrays, event)
        return given

    def _take(self):
        event = None
        try:
            self._sender.let_go(COPIES_MOST - 1)
            given = self._feed.next()
            if given is not None:
                tensors, event = self._sender.send(given.arrays)
                given = given._replace(arrays=tensors)
        except native.LoaderError as error:  # of a batch whose turn may not have come
            given = error
        return given, event, self._feed.state()

    def is_ready(self):
        return self._taken is not None or self._feed.is_ready()

    def state(self):
        return self._feed.renew(self._state) if self._state else self._feed.state()

    def seek(self, packed):
        self._feed.seek(packed)
        self._taken = self._state = None

    def begin(self, epoch):
        self._feed.begin(epoch)
        self._taken = self._state = None


class Sender:
    """Copies to a device. memory: native.Native, in whose arena batches lie; cuda: torch.cuda, or what stands in for it in a test."""

    def __init__(self, memory, device, cuda, convert):
        self._memory, self._device, self._cuda, self._convert = memory, device, cuda, convert
        self._stream = None
        self._reads = deque()  # (event, arrays) of copies that may still be under way

    def send(self, arrays):
        """Starts to copy: tensors, and the event that tells when they are there."""
        if self._stream is None:
            if not self._cuda.is_available():
                raise RuntimeError(f'device="{self._device}": torch finds no GPU here; without device= batches stay in memory')
            self._stream = self._cuda.Stream(self._device)
            pin(self._cuda, self._memory, self._reads)
        with self._cuda.stream(self._stream):
            tensors = [self._convert(array).to(self._device, non_blocking=True) for array in arrays]
            event = self._stream.record_event()
        self._reads.append((event, arrays))
        return tensors, event

    def receive(self, tensors, event):
        """The program's stream may use them from now on: its own work waits for them, nobody else does."""
        stream = self._cuda.current_stream(self._device)
        stream.wait_event(event)
        for tensor in tensors:
            tensor.record_stream(stream)

    def let_go(self, most):
        """Of leases whose copy is done; and waits until no more than so many are left."""
        while self._reads and (len(self._reads) > most or self._reads[0][0].query()):
            self._reads[0][0].synchronize()
            self._reads.popleft()


def pin(cuda, memory, reads):
    """The GPU reads from there by itself, until the loader is closed. Where that is refused, torch copies in a way of its own."""
    at, size = memory.pin() or (None, 0)
    cudart = cuda.cudart()
    is_pinned = at and int(cudart.cudaHostRegister(at, size, PORTABLE)) == 0
    memory.before_close(unpin, cudart, at if is_pinned else None, reads, os.getpid())


def unpin(cudart, at, reads, pid):
    if os.getpid() != pid:
        return
    while reads:
        reads.popleft()[0].synchronize()
    if at:
        cudart.cudaHostUnregister(at)
