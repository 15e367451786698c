"""What a DataLoader brings, and what it holds ready: workers × prefetch_factor batches, in shared memory.

Under `--policy adapt` no more of them are on their way than the budget and /dev/shm have room for. The order of the batches,
which worker makes which, and all that is random in them stay as they are: a worker is just asked later. How large a batch is
shows when the first has come; until then few are asked for.
"""
import os
from time import monotonic_ns
from weakref import WeakSet

from .. import clock, policy, room, tell
from . import oom

LEAST_NS = 1_000_000_000  # between two looks at what a batch holds
DEEPEST = 4  # lists in lists of a batch
WIDEST = 4096  # parts of one that are looked at
FIRST = 2  # batches that are asked for before the size of one is known
ROOM_PART = 4  # of the room that is left, one part in so many may be filled by batches that are not in use yet
SHM_PART = 2  # the same of /dev/shm, which holds little else
SHM = "/dev/shm"

_look_ns = 0  # look() need not be called before
_count = 0  # samples that were last told
_held = WeakSet()  # iterators that ask for few, as it is not known yet how large a batch of theirs is


def on_batch(iterator, batch, is_for_training=True):
    """A loader has given a batch."""
    global _look_ns
    try:
        if iterator in _held:
            _held.discard(iterator)
            let_go(iterator, bytes_of(batch))
            _look_ns = 0
        if _held:
            clock.look_ns = 0  # theirs is not to be missed
        if is_for_training:
            figures(iterator, batch)
    except Exception:
        pass


def figures(iterator, batch):
    global _look_ns, _count
    count = samples_of(batch)
    if count != _count:
        _count = oom.batch = count
        tell.tell("batch_count", count)
    now = monotonic_ns()
    if now >= _look_ns:
        _look_ns = now + LEAST_NS
        look(iterator, batch)


def samples_of(batch):
    """How many samples it has: the length of the first thing in it that has a shape."""
    for _ in range(DEEPEST):
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return shape[0] if len(shape) else 1
        if isinstance(batch, (list, tuple)):
            batch = batch[0] if batch else None
        elif hasattr(batch, "values"):  # a dictionary, a BatchEncoding
            batch = next(iter(batch.values()), None)
        else:
            break
    return 0


def bytes_of(value, depth=0):
    """Of all tensors and arrays in it."""
    size = getattr(value, "nbytes", None)
    if isinstance(size, int):
        return size
    if depth >= DEEPEST:
        return 0
    if hasattr(value, "values") and callable(value.values):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return sum(bytes_of(one, depth + 1) for one in value[:WIDEST])
    return 0


def look(iterator, batch):
    from . import torch_memory
    size = bytes_of(batch)
    tell.tell("batch_bytes", size)
    if torch_memory.is_gpu:
        tell.tell("gpu_batch_bytes", size)
    tell.tell("loader_bytes", size * asked_ahead(iterator, getattr(iterator, "_num_workers", 0)))


def asked_ahead(iterator, workers):
    """Batches that it holds ready at most."""
    if not workers:
        return 0
    return min(workers * (iterator._prefetch_factor or 0), getattr(iterator, "_antifreeze_most", None) or 1 << 30)


def most_batches(workers, prefetch, size, left, shm):
    """How many may be on their way; left, shm: bytes of room, or None where there is no limit."""
    most = workers * prefetch
    for free, part in (left, ROOM_PART), (shm, SHM_PART):
        if free is not None and size > 0:
            most = min(most, free // part // size)
    return max(most, 1)


def room_bytes():
    left = room.room()
    return left if left != room.ALL else None


def shm_bytes():
    try:
        state = os.statvfs(SHM)
        return state.f_bavail * state.f_frsize
    except OSError:
        return None


def clamped(kind):
    """torch's iterator with workers. It asks for a batch whenever one has come, and for all that it may at its start. One that
    has none on their way believes to be at the end: so one is always asked for."""
    if not policy.is_adapting():
        return
    reset, put = kind._reset, kind._try_put_index

    def _reset(self, *args, **kwargs):
        hold(self)
        return reset(self, *args, **kwargs)

    def _try_put_index(self):
        most = getattr(self, "_antifreeze_most", None)
        if most is None or self._tasks_outstanding < most:
            return put(self)
        return None

    kind._reset, kind._try_put_index = _reset, _try_put_index


def hold(iterator):
    """An iterator begins, or begins anew."""
    try:
        size = getattr(iterator, "_antifreeze_bytes", None)
        if size is None:
            _held.add(iterator)
            iterator._antifreeze_most = min(FIRST, iterator._num_workers * iterator._prefetch_factor)
        else:
            iterator._antifreeze_most = most_of(iterator, size)
    except Exception:
        pass


def most_of(iterator, size):
    return most_batches(iterator._num_workers, iterator._prefetch_factor, size, room_bytes(), shm_bytes())


def let_go(iterator, size):
    """It is known now: as many may be asked for as there is room for."""
    iterator._antifreeze_bytes = size
    iterator._antifreeze_most = most = most_of(iterator, size)
    for _ in range(most - iterator._tasks_outstanding):
        before = iterator._tasks_outstanding
        iterator._try_put_index()
        if iterator._tasks_outstanding == before:  # there are no more
            return
