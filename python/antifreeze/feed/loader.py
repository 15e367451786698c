"""antifreeze.Loader: a training loop's data, read ahead in C within a budget in bytes (include/antifreeze/loader.h).

    loader = antifreeze.Loader("train.npy", labels="y.npy", batch=256, budget="512MiB", seed=1)
    for x, y in loader:
        ...

Each loop over it is an epoch, in an order of its own. What it yields are arrays over the loader's own memory: nothing is copied, and
nothing is written over as long as somebody has them. Who keeps more than a few gets copies, and is told.

state_dict() is the place behind the last batch; after load_state_dict() the next loop goes on there, bit by bit as it would have
been, with any number of threads and ranks.
"""
import gc
import sys
import weakref
from _thread import allocate_lock, get_ident
from collections import namedtuple
from time import monotonic_ns

from .. import clock
from . import handover, less, native, parquet, ranks as sharing, stall
from .arguments import chosen, one_of, parse_bytes, refuse_idle, whole

SHUFFLES = {"window": 0, "none": 1, "global": 2}
ON_ERROR = {"raise": 0, "skip": 1}
STATE = "antifreeze.loader"  # the key of a state
WARNINGS_MOST = 10  # of samples that are left out; the rest is counted
FRAMES = 7  # from warn() up to the program's own line: what tells, Loader._next(), the loop, and the clock in it

LoaderError = native.LoaderError
Progress = namedtuple("Progress", "epoch done batches")  # the epoch that the next batch is of, and how many of its batches are done


class Loader:
    """paths: a file or folder, or several whose samples belong together one by one; labels: one more of them.

    budget    bytes that all of it may take: "512MiB"
    shuffle   "window": as many chunks as fit, at random, shuffled together (shuffle_quality says how good that is);
              "global": all samples; "none": in the order of the data
    as_       "numpy", "torch", "tensorflow", "jax"; None: torch if the program has imported it, else NumPy
    device    "cuda": torch's tensors there, copied from pinned memory while the program works on the batch before
    rank, ranks   which part of each batch × ranks samples is this process's; None: as torch.distributed, JAX or the
              environment (torchrun, accelerate, srun) says
    subset    only these samples: a slice, a range, (start, stop), a mask, or an array of their numbers
    weights   how often each sample is drawn beside the others, with putting back; draws: in an epoch, else as many as samples
    on_error  "skip": samples that cannot be read are left out, counted, and told of
    transform a function that gets each batch's fields, as the loop would get them, and gives what the loop gets in their place. It
              runs in so many workers: processes that take memory of their own. 0: in the program itself (feed/transform.py)
    columns   of Parquet: which, and as which arrays (feed/parquet.py)
    format, details, image    where the data do not say it themselves (docs/loader.md)
    """

    def __init__(self, paths, labels=None, *, batch, budget="512MiB", seed=0, shuffle="window", as_=None, device=None, drop_last=False,
                 on_error="raise", threads=0, rank=None, ranks=None, columns=None, subset=None, weights=None, draws=0, format=None,
                 details=None, image=None, transform=None, workers=None):
        stop_reading()
        if hasattr(paths, "read"):
            raise TypeError("paths: the name of a file, and not an open one")
        self.batch, self.drop_last = whole("batch", batch, 1, native.UINT32_MAX), bool(drop_last)
        self._as, self._device = handover.asked(as_, device)
        self._files, source = parquet.open_source(paths, labels, columns, format, details)
        refuse_idle(self._files, format, details, transform, workers, weights, draws)
        self._said = sharing.given(rank, ranks)  # else it is found out, also later
        self._options = {
            "budget_bytes": parse_bytes(budget), "batch": self.batch, "seed": whole("seed", seed), "shuffle": one_of("shuffle", shuffle, SHUFFLES),
            "on_error": one_of("on_error", on_error, ON_ERROR), "is_last_dropped": self.drop_last, "format": format, "details": details,
            "image": image, "threads": whole("threads", threads, 0, native.UINT32_MAX)}
        if source:
            self._options.update(source=source, format="arrow", details=None, threads=threads or source.threads)
        self._choice = subset, weights, whole("draws", draws, 0, native.UINT64_MAX)  # as it was given: lists made of it are not kept
        self._transform, self._workers = transform, 1 if workers is None else workers
        self._open(self._said or sharing.found())
        self._loop = None  # the one that goes on: weak
        self._back = None  # the place to go back to: behind it nothing was handed over
        self._end = None  # figures of one that is closed
        self._is_at_start = True  # the next loop goes on from here; else it begins an epoch
        self._is_resumed = False  # from a state, in the midst of an epoch
        self._warned = self._copies = 0
        self._is_hoarder = False
        handover.be_a_dataset(type(self))
        less.offer(self)

    def _count_samples(self):
        """Without a subset."""
        opened = native.Native(self._files, rank=0, ranks=1, **self._options)
        samples = opened.facts().samples
        opened.close()
        return samples

    def _open(self, share):
        self.rank, self.ranks = share
        options = {**self._options, **chosen(*self._choice, self._count_samples), "rank": self.rank, "ranks": self.ranks}
        if self._transform is None:
            self._native = native.Native(self._files, **options)
        else:
            from .transform import open_transformed
            self._native = open_transformed(self._files, options, self._transform, self._workers, handover.framework(self._as))
        facts = self._native.facts()
        self.samples, self.budget_bytes, self.floor_bytes = facts.samples, facts.budget_bytes, facts.floor_bytes
        self.shuffle_quality, self.group_samples = facts.shuffle_quality, facts.group_samples
        self.allowed_bytes = self.budget_bytes  # as long as nobody asks for less
        self.fields = self._native.fields
        self._keys = getattr(self._native, "keys", None if len(self.fields) == 1 else ())  # how a batch is put together
        self._batches = facts.batches
        self._teller = stall.Teller(self._native)
        self._feed = self._native  # what batches come from
        if self._device:
            from . import cuda
            self._feed = cuda.ahead(self._feed, self._native, self._device)

    def _place(self):
        return self._native.renew(self._back) if self._back else self._feed.state()

    def _take_share(self, frame):
        """Of the data, as they are asked for from there. Ranks may come to be known only now, and so may somebody who shares them
        out: then what was open is opened anew, at the same place."""
        share = sharing.taken(self._said, frame)
        if share != (self.rank, self.ranks):
            state = self._place()
            self.close()
            self._open(share)
            self._feed.seek(state)
            self._back = self._end = None
            less.offer(self)

    def __len__(self):
        """Batches of an epoch."""
        if self._loop is None or self._loop() is None:  # else who goes through it has said how it is shared
            self._take_share(sys._getframe(1))
        return self._batches

    def __repr__(self):
        return (f"<antifreeze.Loader: {self.samples} samples, {self._batches} batches of {self.batch}, "
                f"{self.budget_bytes >> 20} MiB, shuffle quality {self.shuffle_quality:.2f}"
                f"{f', rank {self.rank} of {self.ranks}' * (self.ranks > 1)}>")

    def __iter__(self):
        self._take_share(sys._getframe(1))
        return self._begin(None if self._device else handover.converter(handover.framework(self._as)))

    def _begin(self, convert):
        """A loop whose arrays become what convert() makes of them."""
        if not self._is_at_start:
            self._teller.over()
            self._begin_next()
        loop = Loop(self, convert, self._batches - self.progress.done)
        self._loop = weakref.ref(loop)
        return loop

    def _begin_next(self):
        """Ctrl-C may come when the epoch has begun already: then it is not another one that the next loop begins."""
        place = self._place()
        try:
            self._go(self._feed.begin, native.epoch_of(place) + 1)
            self._is_at_start = True
        except BaseException:
            self._back, self._is_at_start = place, False
            raise

    def tf(self):
        """A tf.data.Dataset of whole batches, for TensorFlow and for Keras' fit(). Each way through it is an epoch."""
        return handover.tf_dataset(self)

    def __reduce__(self):
        raise TypeError("an antifreeze.Loader cannot be sent to another process: it reads with threads of its own, so a DataLoader "
                        "around it has num_workers=0")

    def _next(self, loop, convert):
        if self._loop is None or self._loop() is not loop:
            raise RuntimeError("another loop has begun over this loader: one at a time goes through its data")
        loop.begin_turn((self._place(), self._is_at_start, self._is_resumed))
        if self._back:
            self._go(self._feed.seek, self._back)
        try:
            batch = self._feed.next()
        except LoaderError:
            self._is_at_start = self._is_resumed = False  # the place is behind what could not be read
            raise
        if batch is None:
            self._teller.over()
            self._loop, self._is_at_start, self._is_resumed = None, True, False
            raise StopIteration
        self._is_at_start = self._is_resumed = False
        arrays, why, is_copy = batch
        if why:
            self._tell_skipped(why)
        if monotonic_ns() >= self._teller.due_ns:
            self._teller.tell()
        if is_copy and not self._is_hoarder:
            self._look_who_holds()
        if convert:
            arrays = [convert(array) for array in arrays]
        return handover.put_together(self._keys, arrays)

    def _return_to(self, before, loop):
        """What was taken since was not handed over."""
        self._back, self._is_at_start, self._is_resumed = before
        self._loop = weakref.ref(loop)

    def _look_who_holds(self):
        """Batches that are garbage already, but of the kind that waits for Python's collector, are nobody's fault (Keras on torch
        leaves such). It is looked at with the first copy, the second, the fourth, ..."""
        self._copies += 1
        if self._copies & (self._copies - 1):
            return
        before = self._native.times().held
        gc.collect()
        held = self._native.times().held
        if 2 * held > before:
            self._is_hoarder = True
            warn(f"you hold {held} batches: those beyond the budget are copies on the heap. Let go of batches that are done with, or copy "
                 "what is to be kept")

    def _tell_skipped(self, why):
        self._warned += 1
        if self._warned <= WARNINGS_MOST:
            warn(f"samples were left out: {why}" + (" (and no more is said of others)" if self._warned == WARNINGS_MOST else ""))

    @property
    def epoch(self):
        """That the next batch is of."""
        return native.epoch_of(self._place())

    @property
    def progress(self):
        state = self._place()
        return Progress(native.epoch_of(state), native.batches_of(state), self._batches)

    def set_epoch(self, epoch):
        """The next loop is this epoch, counted from 0, as DistributedSampler's. If a state that was loaded is in its midst, that
        loop goes on there."""
        if not self._is_resumed or epoch != self.epoch:
            self._go(self._feed.begin, whole("epoch", epoch, 0, native.UINT64_MAX))
            self._is_resumed = False
        self._loop, self._is_at_start = None, True

    def state_dict(self):
        return {STATE: self._place().hex()}

    def load_state_dict(self, state):
        try:
            packed = bytes.fromhex(state[STATE])
        except (KeyError, TypeError, ValueError):
            raise LoaderError("this is no state of an antifreeze.Loader") from None
        self._go(self._feed.seek, packed)
        self._loop, self._is_at_start, self._is_resumed = None, True, True

    def _go(self, way, there):
        if self._end:
            raise LoaderError("this loader is closed")
        way(there)
        self._back = None

    def times(self):
        """What the time of this epoch, or of the last, went into, and what limited it."""
        return self._end or stall.Times(self._native)

    def shrink(self, budget):
        """To make do with so many bytes, up to the budget that it was opened with: what was loaded ahead goes back at once, the rest
        when the samples of the group of chunks that batches are made of are used up. False: it takes more than that, but as
        little as it can: floor_bytes; among ranks, what the order needs that all of them have."""
        size = parse_bytes(budget)
        self.allowed_bytes = min(max(size, self.floor_bytes), self.budget_bytes)
        return self._native.ask(size)

    def close(self):
        """Arrays that somebody has stay good, and so do times(), progress and state_dict()."""
        if self._end is None:
            less.withdraw(self)
            self._back, self._end = self._place(), self.times()
            self._teller.close()
            self._native.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Turns:
    """The batches of a loop, one by one."""

    def __init__(self, loader, convert, batches):
        self._loader, self._convert, self._left = loader, convert, batches
        self._is_over = False
        self._lock = allocate_lock()  # threads may go through it together: each batch is one's, and the end is the end for all
        self._before = self._taker = None  # where the loader was before the last turn, and whose that was

    def __next__(self):
        with self._lock:
            if self._is_over:  # and stays so
                raise StopIteration
            try:
                batch = self._loader._next(self, self._convert)
            except StopIteration:
                self._is_over, self._left = True, 0
                raise
            self._left -= 1
            return batch

    def begin_turn(self, before):
        self._before, self._taker = before, get_ident()


clock.time_next(Turns, less.hear)


class Loop(Turns):
    """One way through the data, or through what is left of them after a state was loaded.

    A turn is whole or has not been: Ctrl-C may come at any moment, and what was not handed over then is given the next time. Python
    looks for it within a function and at calls, but not between a function's return and the loop that gets the batch."""

    _turn = Turns.__next__  # with the time that it took

    def __iter__(self):
        return self

    def __next__(self):
        if self._taker == get_ident():
            self._taker = None
        try:
            return self._turn()
        except (StopIteration, LoaderError):
            raise
        except BaseException:
            if self._taker == get_ident():  # else it has not begun, or other threads have gone on
                self._put_back()
            raise

    def _put_back(self):
        self._loader._return_to(self._before, self)
        self._is_over, self._taker = False, None
        self._left = self._loader._batches - self._loader.progress.done

    def __length_hint__(self):
        """Batches that are still to come."""
        return max(0, self._left)


def stop_reading():
    """A worker of a transform that reads the program's own file, and has come to its Loader, need not read on."""
    worker = sys.modules.get("_antifreeze.feed.worker")
    if worker is not None and worker.is_reading:
        raise worker.Enough
    if worker is not None and worker.is_coming_up:  # its own workers would come here, too, and so on without an end
        raise LoaderError("a file that has the transform makes a Loader when it is imported, and workers import it: make the Loader in a "
                          "function, or put the transform into a file of its own")


def warn(text):
    import warnings
    warnings.warn("antifreeze.Loader: " + text, RuntimeWarning, FRAMES)
