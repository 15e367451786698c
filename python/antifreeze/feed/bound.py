"""antifreeze.bound(loader, budget="1GiB"): a torch DataLoader that one has, under a budget in bytes.

A DataLoader counts batches, not bytes: it holds workers × prefetch_factor of them ready in /dev/shm, once more if they are pinned,
and each worker has what it copied of its parent's pages. Here all of that together stays within the budget:

- no more batches are on their way than the budget and /dev/shm have room for: each with the memory in which a worker makes it (its
  samples, and the batch once more), and where it lies when it is ready. How large one is shows when the first has come; until then
  one is asked for. Which worker makes which, their order, and all that is random in them stay as they are;
- what workers have for themselves is looked at four times a second, and comes off the budget. Where there is no room for that many, one
  after the other is ended when it has nothing to do. The order stays; what is random in samples that another worker makes now, is
  drawn by that one. Of an IterableDataset each worker has a part, so there the next epoch has fewer;
- a batch that is larger than the budget is an error that says how many samples would fit.

The loader is changed in its place and returned, so that all who want a DataLoader (accelerate, Lightning) have one. What was found is
in loader.bound.
"""
import sys
from time import monotonic_ns

from ..see.inputs import SHM_PART, bytes_of, samples_of, shm_bytes
from .arguments import parse_bytes, say_bytes

LOOK_NS = 250_000_000  # between two looks at what workers hold: each takes a millisecond or so
MAKING = 2  # batches that a worker holds while it makes one: its samples, and what they are put together to
IN_HAND = 1  # the one that the program works on


class OverBudget(MemoryError):
    """Not even one batch fits."""


class Bound:
    def __init__(self, budget_bytes):
        self.budget_bytes = budget_bytes
        self.batch_bytes = 0  # of the largest batch so far
        self.idle_bytes = 0  # of a worker that makes nothing
        self.making_bytes = 0  # that come to it when it makes a batch
        self.most = 1  # batches that may be on their way
        self.peak_bytes = 0  # of all that is counted
        self.ended = 0  # workers
        self._look_ns = 0

    def __repr__(self):
        return (f"<{say_bytes(self.budget_bytes)}: batches of {say_bytes(self.batch_bytes)}, {self.most} ahead, "
                f"workers of {say_bytes(self.idle_bytes)}, {say_bytes(self.peak_bytes)} at the peak>")

    def begin(self, loader):
        """An epoch begins. What was learned in the one before may ask for fewer workers."""
        if self.batch_bytes and loader.num_workers:
            fewer = self.workers_for(loader.num_workers - self.ended, copies_of(loader))
            self.ended = 0
            if fewer < loader.num_workers:
                loader.num_workers, loader._iterator = fewer, None  # those that would stay for the next epoch go

    def ahead_bytes(self, copies):
        """Of a batch on its way: the worker's memory, and where it lies when it is ready."""
        return self.making_bytes + copies * self.batch_bytes

    def workers_for(self, workers, copies):
        """As many as can have a batch on its way each; 0: the program makes its batches itself."""
        left = self.budget_bytes - IN_HAND * self.batch_bytes
        return max(0, min(workers, left // (self.idle_bytes + self.ahead_bytes(copies))))

    def batches_for(self, workers, copies, shm):
        """That may be on their way; at least one, or the iterator believes to be at its end."""
        left = self.budget_bytes - IN_HAND * self.batch_bytes - workers * self.idle_bytes
        most = left // self.ahead_bytes(copies)
        if most > workers:  # no more are made at once than there are workers
            most = (left - workers * self.making_bytes) // (copies * self.batch_bytes)
        if shm is not None:
            most = min(most, shm // SHM_PART // self.batch_bytes)
        return max(1, most)

    def on_batch(self, iterator, batch):
        size = bytes_of(batch)
        if size > self.batch_bytes:
            self.batch_bytes, self._look_ns = size, 0
        if size > self.budget_bytes:
            samples = samples_of(batch)
            fit = samples * self.budget_bytes // size
            raise OverBudget(f"a batch of {samples} samples takes {say_bytes(size)}, the budget is {say_bytes(self.budget_bytes)}: " +
                             (f"batch_size={fit} would fit" if fit else "not one sample fits"))
        if self.batch_bytes and hasattr(iterator, "_workers") and monotonic_ns() >= self._look_ns:
            self.look(iterator)

    def look(self, iterator):
        alive = [n for n, is_there in enumerate(iterator._workers_status) if is_there]
        private = [private_bytes(iterator._workers[n].pid) for n in alive]
        if not private:  # at the end of the epoch
            return
        busy = len({info[0] for info in iterator._task_info.values() if len(info) == 1})
        self.idle_bytes = max(min(private), (sum(private) - busy * MAKING * self.batch_bytes) // len(private))
        self.making_bytes = max(self.making_bytes, MAKING * self.batch_bytes, max(private) - min(private))
        copies = copies_of(iterator)
        used = sum(private) + (len(iterator._task_info) * copies + IN_HAND) * self.batch_bytes
        self.peak_bytes = max(self.peak_bytes, used)
        self.most = self.batches_for(len(private), copies, shm_bytes())
        if used > self.budget_bytes and len(alive) > 1:
            self.end_one(iterator, alive)
        refill(iterator, self.most)
        self._look_ns = monotonic_ns() + (0 if used > self.budget_bytes else LOOK_NS)

    def end_one(self, iterator, alive):
        """A worker that has nothing to do. Not the one that has just handed over a batch: it may still hold the queue's lock."""
        busy = {info[0] for info in iterator._task_info.values()} | {getattr(iterator, "_last_yielded_worker_id", alive[0])}
        idle = [n for n in alive if n not in busy]
        if not idle or iterator._dataset_kind != 0:  # _DatasetKind.Map
            return
        n, workers = idle[0], iterator._workers
        iterator._workers_status[n] = False  # as of one that has no more data
        signals = sys.modules["torch.utils.data._utils.signal_handling"]
        signals._remove_worker_pids(id(iterator))  # else its end would be taken for a crash
        signals._set_worker_pids(id(iterator), tuple(workers[m].pid for m in alive if m != n))
        workers[n].terminate()
        self.ended += 1


def copies_of(loader):
    """Of each batch that is ready: in /dev/shm, and once more where it is pinned."""
    pinned = getattr(loader, "_pin_memory", None)
    return 2 if (loader.pin_memory if pinned is None else pinned) else 1


def private_bytes(pid):
    """What a process has for itself; 0: it is gone, or cannot be looked at."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith(("Private_Dirty:", "Swap:")))
    except (OSError, ValueError):
        return 0


def refill(iterator, most):
    """Asks for what may be on its way and is not: torch itself asks for one batch when one has come."""
    most = min(most, iterator._num_workers * iterator._prefetch_factor)
    while len(iterator._task_info) < most:
        before = iterator._send_idx
        iterator._try_put_index()
        if iterator._send_idx == before:  # there are no more, or each worker has its share
            return


def bound_of(iterator):
    return getattr(iterator, "_antifreeze_bound", None)


def install(module):
    """Into torch's iterators, once, and only where a loader is bound."""
    many, one, loader = module._MultiProcessingDataLoaderIter, module._SingleProcessDataLoaderIter, module.DataLoader
    if hasattr(many, "_antifreeze_is_bounding"):
        return
    many._antifreeze_is_bounding = True
    reset, put, begins = many._reset, many._try_put_index, loader.__iter__

    def _reset(self, loader, *args, **kwargs):
        self._antifreeze_bound = getattr(loader, "bound", None)
        return reset(self, loader, *args, **kwargs)

    def _try_put_index(self):
        # Those that have come and wait for their turn are memory as well as those that are made.
        bound = bound_of(self)
        return put(self) if bound is None or len(self._task_info) < bound.most else None

    def __iter__(self):
        bound = getattr(self, "bound", None)
        if bound is not None:
            bound.begin(self)
        iterator = begins(self)
        iterator._antifreeze_bound = bound
        return iterator

    many._reset, many._try_put_index, loader.__iter__ = _reset, _try_put_index, __iter__
    for kind in many, one:
        kind._next_data = checked(kind._next_data)


def checked(next_data):
    def _next_data(self):
        batch = next_data(self)
        bound = bound_of(self)
        if bound is not None:
            bound.on_batch(self, batch)
        return batch

    return _next_data


def bound(loader, budget):
    """Puts a torch DataLoader under a budget ("1GiB", or a number of bytes) and returns it."""
    module = sys.modules.get("torch.utils.data.dataloader")
    if module is None or not isinstance(loader, module.DataLoader):
        raise TypeError(f"bound() is for a torch DataLoader, not for {type(loader).__name__}; antifreeze.Loader reads files itself")
    size = parse_bytes(budget)
    install(module)
    loader.bound = Bound(size)
    return loader
