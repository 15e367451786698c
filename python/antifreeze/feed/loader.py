"""antifreeze.Loader: a training loop's data, read ahead in C within a budget in bytes (include/antifreeze/loader.h).

    loader = antifreeze.Loader("train.npy", labels="y.npy", batch=256, budget="512MiB", seed=1)
    for x, y in loader:
        ...

Each loop over it is an epoch, in an order of its own. What it yields are arrays over the loader's own memory: nothing is copied, and
nothing is written over as long as somebody has them. Who keeps more than a few gets copies, and is told.

state_dict() is the place behind the last batch; after load_state_dict() the next loop goes on there, bit by bit as it would have
been, with any number of threads and ranks.
"""
import os
import sys
import weakref

from .. import clock
from . import native
from .quantity import parse_bytes

SHUFFLES = {"window": 0, "none": 1, "global": 2}
ON_ERROR = {"raise": 0, "skip": 1}
STATE = "antifreeze.loader"  # the key of a state
FRAMEWORKS = ("numpy", "torch", "tensorflow", "jax")
WARNINGS_MOST = 10  # of samples that are left out; the rest is counted
CONSUMER_PART = .1  # of an epoch's time that is spent waiting for batches: with less, the program was the slower side

LoaderError = native.LoaderError


class Loader:
    """paths: a file or folder, or several whose samples belong together one by one; labels: one more of them.

    budget    bytes that all of it may take: "512MiB"
    shuffle   "window": as many chunks as fit, at random, shuffled together (shuffle_quality says how good that is);
              "global": all samples; "none": in the order of the data
    as_       "numpy", "torch", "tensorflow", "jax"; None: torch if the program has imported it, else NumPy
    rank, ranks   which part of each batch × ranks samples is this process's; None: as torch.distributed or the environment says
    subset    (start, stop): only these samples
    on_error  "skip": samples that cannot be read are left out, counted, and told of
    format, details, image    where the data do not say it themselves (docs/add-a-format.md)
    """

    def __init__(self, paths, labels=None, *, batch, budget="512MiB", seed=0, shuffle="window", as_=None, drop_last=False,
                 on_error="raise", threads=0, rank=None, ranks=None, subset=None, format=None, details=None, image=None):
        self.batch, self.drop_last = int(batch), bool(drop_last)
        self.rank, self.ranks = which_rank(rank, ranks)
        self._as = as_
        if as_ is not None and as_ not in FRAMEWORKS:
            raise ValueError(f"as_={as_!r}: it is one of {', '.join(FRAMEWORKS)}")
        files = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
        files += [] if labels is None else [labels]
        start, stop = (0, 0) if subset is None else subset
        if subset is not None and not 0 <= start < stop:
            raise ValueError(f"subset={subset!r}: from which sample on, and before which one it ends")
        self._native = native.Native(
            files, budget=parse_bytes(budget), batch=self.batch, seed=seed, shuffle=one_of("shuffle", shuffle, SHUFFLES),
            on_error=one_of("on_error", on_error, ON_ERROR), drop_last=self.drop_last, threads=threads, rank=self.rank, ranks=self.ranks,
            start=start, stop=stop, format=format, details=details, image=image)
        facts = self._native.facts()
        self.samples, self.budget_bytes, self.floor_bytes = facts.samples, facts.budget_bytes, facts.floor_bytes
        self.shuffle_quality, self.group_samples = facts.shuffle_quality, facts.group_samples
        self.fields = self._native.fields
        self._batches = facts.batches
        self._loop = None  # the one that goes on: weak
        self._is_at_start = True  # the next loop goes on from here; else it begins an epoch
        self._warned = 0
        self._is_hoarder = False
        be_a_dataset(type(self))

    def __len__(self):
        return self._batches

    def __repr__(self):
        return (f"<antifreeze.Loader: {self.samples} samples, {len(self)} batches of {self.batch}, "
                f"{self.budget_bytes >> 20} MiB, shuffle quality {self.shuffle_quality:.2f}>")

    def __iter__(self):
        if not self._is_at_start:
            self._native.begin(self._native.epoch() + 1)
        self._is_at_start = False
        loop = Loop(self, self._convert())
        self._loop = weakref.ref(loop)
        return loop

    def __reduce__(self):
        raise TypeError("an antifreeze.Loader cannot be sent to another process: it reads with threads of its own, so a DataLoader "
                        "around it has num_workers=0")

    def _convert(self):
        """How a batch's arrays become what the program wants."""
        name = self._as or ("torch" if "torch" in sys.modules else "numpy")
        if name == "torch":
            import torch
            return lambda array: torch.from_numpy(torch_can(torch, array))
        if name == "tensorflow":
            import tensorflow
            return tensorflow.convert_to_tensor
        if name == "jax":
            import jax.numpy
            return jax.numpy.asarray
        return None

    def _next(self, loop, convert):
        if self._loop is None or self._loop() is not loop:
            raise RuntimeError("another loop has begun over this loader: one at a time goes through its data")
        batch = self._native.next()
        if batch is None:
            self._loop, self._is_at_start = None, True
            raise StopIteration
        arrays, why, is_copy = batch
        if why:
            self._tell_skipped(why)
        if is_copy and not self._is_hoarder:
            self._is_hoarder = True
            warn(f"you hold {self._native.times().held} batches: those beyond the budget are copies on the heap. Let go of batches that "
                 "are done with, or copy what is to be kept")
        if convert:
            arrays = [convert(array) for array in arrays]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def _tell_skipped(self, why):
        self._warned += 1
        if self._warned <= WARNINGS_MOST:
            warn(f"samples were left out: {why}" + (" (and no more is said of others)" if self._warned == WARNINGS_MOST else ""))

    @property
    def epoch(self):
        """That the next batch is of."""
        return self._native.epoch()

    def set_epoch(self, epoch):
        """The next loop is this epoch, counted from 0, as DistributedSampler's."""
        self._native.begin(int(epoch))
        self._loop, self._is_at_start = None, True

    def state_dict(self):
        return {STATE: self._native.state().hex()}

    def load_state_dict(self, state):
        try:
            packed = bytes.fromhex(state[STATE])
        except (KeyError, TypeError, ValueError):
            raise LoaderError("this is no state of an antifreeze.Loader") from None
        self._native.seek(packed)
        self._loop, self._is_at_start = None, True

    def times(self):
        """What the time of this epoch, or of the last, went into."""
        told = self._native.times()
        facts = self._native.facts()
        return Times(told, facts.threads)

    def shrink(self, budget):
        """To make do with so many bytes from the next group of chunks on; up to the budget that it was opened with. False: it
        needs floor_bytes, and takes these."""
        return self._native.ask(parse_bytes(budget))

    def close(self):
        """Arrays that somebody has stay good."""
        self._native.close()


class Loop:
    """One way through the data."""

    def __init__(self, loader, convert):
        self._loader, self._convert = loader, convert
        self._is_over = False

    def __iter__(self):
        return self

    def __next__(self):
        if self._is_over:  # and stays so
            raise StopIteration
        try:
            return self._loader._next(self, self._convert)
        except StopIteration:
            self._is_over = True
            raise

    def __len__(self):
        return len(self._loader)


clock.time_next(Loop)


class Times:
    """Seconds and bytes of an epoch. limited_by: "disk", "decode", "gather" or "consumer", the slowest of them."""

    def __init__(self, told, threads):
        for name in "read", "decode", "gather", "waited", "idle":
            setattr(self, name + "_s", getattr(told, name + "_ns") / 1e9)
        self.read_bytes, self.decode_bytes = told.read_bytes, told.decode_bytes
        self.skipped, self.copies, self.held, self.threads = told.skipped, told.copies, told.held, threads
        sides = {"disk": self.read_s / threads, "decode": self.decode_s / threads, "gather": self.gather_s}
        slowest = max(sides, key=sides.get)
        is_waiting = self.waited_s > CONSUMER_PART * (self.waited_s + self.idle_s)
        self.limited_by = slowest if is_waiting else "consumer"

    def __repr__(self):
        rate = self.read_bytes / self.read_s * self.threads / 1e6 if self.read_s else 0
        return (f"<limited by: {self.limited_by}; waited for data {self.waited_s:.2f} s, data waited {self.idle_s:.2f} s; {self.threads} "
                f"threads: read {self.read_s:.2f} s ({rate:.0f} MB/s), decode {self.decode_s:.2f} s, gather {self.gather_s:.2f} s>")


def one_of(name, word, words):
    if word not in words:
        raise ValueError(f"{name}={word!r}: it is one of {', '.join(words)}")
    return words[word]


def warn(text):
    import warnings
    warnings.warn("antifreeze.Loader: " + text, RuntimeWarning, 5)


def which_rank(rank, ranks):
    """As it was said, or as the program's way of running on several GPUs says."""
    if rank is not None or ranks is not None:
        if rank is None or ranks is None:
            raise ValueError("rank and ranks belong together")
        return int(rank), int(ranks)
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return 0, 1


def be_a_dataset(kind):
    """A torch DataLoader asks only an IterableDataset for what comes next."""
    data = sys.modules.get("torch.utils.data")
    if data is not None and not issubclass(kind, data.IterableDataset):
        data.IterableDataset.register(kind)


def torch_can(torch, array):
    """Older versions have no unsigned numbers but bytes."""
    if array.dtype.kind == "u" and array.dtype.itemsize > 1 and not hasattr(torch, array.dtype.name):
        return array.astype("int64" if array.dtype.itemsize > 2 else "int32")
    return array
