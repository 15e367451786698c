"""What an epoch's time went into, and who limited it: for the program (Loader.times()), and for the guard, so that `antifreeze why`
can name it where steps wait for their data (docs/verdicts.md, data-stall).

Who it is and how that is said is the C library's (loader/slowest.c): programs in C say the same.
"""
import ctypes
from time import monotonic_ns

from .. import talk
from . import native

SIDES = (None, "consumer", "disk", "cache", "decode", "gather", "transform")  # enum afz_side, and what is Python's own
CONSUMER, TRANSFORM = map(SIDES.index, ("consumer", "transform"))
NEVER = 1 << 63
# Between two words. An epoch may take a second or a week, and the recording is to have few of them: so also a part of the loader's age.
OVER_NS, OVER_PART = 1_000_000_000, 100  # at the end of an epoch
MIDST_NS, MIDST_PART = 2_000_000_000, 5  # in the midst of one: the run may be ended there
WAITED = .1  # share of an epoch in which the program waits for batches: with less, nothing is gained by a transform that is faster


class Times:
    """Seconds, bytes and counts of an epoch as in include/antifreeze/loader.h. limited_by: one of SIDES;
    str(): the same with its rate."""

    def __init__(self, source):
        told, (side, self.words), self.threads = source.times(), source.slowest(), source.facts().threads
        for name, _ in told._fields_:
            value = getattr(told, name)
            setattr(self, name[:-2] + "s" if name.endswith("_ns") else name, value / 1e9 if name.endswith("_ns") else value)
        self.limited_by = SIDES[side]

    def __str__(self):
        return self.words

    def __repr__(self):
        return (f"<limited by: {self.words or 'nothing yet'}; waited for data {self.waited_s:.2f} s, data waited {self.idle_s:.2f} s; "
                f"read {self.read_s:.2f} s, decode {self.decode_s:.2f} s on {self.threads} threads, gather {self.gather_s:.2f} s>")


class Teller:
    """Tells the guard, where there is one."""

    def __init__(self, source):
        self._source = source
        self._began_ns = self._told_ns = monotonic_ns()
        self.due_ns = self._told_ns + MIDST_NS if talk.speaks() else NEVER  # a batch from here on is worth a word

    def tell(self):
        now = monotonic_ns()
        self._told_ns, self.due_ns = now, now + max(MIDST_NS, (now - self._began_ns) // MIDST_PART)
        times = Times(self._source)
        if times.limited_by:
            talk.event("feed", times.words, limit=times.limited_by, epoch=times.epoch, epoch_ms=int(times.epoch_s * 1e3),
                       waited_ms=int(times.waited_s * 1e3), threads=times.threads, held=times.held_most, copies=times.copies)

    def over(self):
        """An epoch is."""
        now = monotonic_ns()
        if self.due_ns != NEVER and now - self._told_ns >= max(OVER_NS, (now - self._began_ns) // OVER_PART):
            self.tell()

    def close(self):
        self.over()
        self.due_ns = NEVER


class ToldTimes(ctypes.Structure):
    _fields_ = native.ToldTimes._fields_ + [("transform_ns", ctypes.c_uint64)]


class Figures:
    """Of an epoch with a transform, as the program sees it: it waits for data (starved), or for the transform (stuck)."""

    def __init__(self, epoch, held):
        self.epoch, self.held_most, self.is_over = epoch, held, False
        self.waited_ns = self.starved_ns = self.stuck_ns = self.transform_ns = self.skipped = self.copies = self.samples = 0
        self.began_ns = self.returned_ns = monotonic_ns()

    def share(self, part_ns):
        return part_ns / max(1, self.returned_ns - self.began_ns)

    def times(self, told):
        """With what the native loader has told."""
        times = ToldTimes(*(getattr(told, name) for name, _ in told._fields_))
        times.skipped += self.skipped
        times.transform_ns, times.waited_ns, times.epoch = self.transform_ns, self.waited_ns, self.epoch
        times.epoch_ns = self.returned_ns - self.began_ns
        times.idle_ns = times.epoch_ns - times.waited_ns
        return times

    def slowest(self, side, words, workers):
        """side, words: what the native loader says."""
        if not self.samples:
            return 0, ""
        waited = self.share(self.waited_ns)
        if waited < WAITED:
            return CONSUMER, f"your training step: batches waited for it {100 * (1 - waited):.0f} % of the time"
        if side > CONSUMER and self.starved_ns > self.stuck_ns:
            return side, words
        rate = self.samples / max(1, self.transform_ns) * 1e9 * max(1, workers)
        where = f"{workers} worker{'s' * (workers != 1)}" if workers else "the program itself"
        return TRANSFORM, f"the transform: {rate:,.0f} samples/s in {where}; the program waited for data {100 * waited:.0f} % of the time"
