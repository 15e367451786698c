"""What an epoch's time went into, and who limited it: for the program (Loader.times()), and for the guard, so that `antifreeze why`
can name it where steps wait for their data (docs/verdicts.md, data-stall).

Who it is and how that is said is the C library's (loader/slowest.c): programs in C say the same.
"""
from time import monotonic_ns

from .. import talk

SIDES = (None, "consumer", "disk", "cache", "decode", "gather", "transform")  # enum afz_side, and what is Python's own
NEVER = 1 << 63
# Between two words. An epoch may take a second or a week, and the recording is to have few of them: so also a part of the loader's age.
OVER_NS, OVER_PART = 1_000_000_000, 100  # at the end of an epoch
MIDST_NS, MIDST_PART = 2_000_000_000, 5  # in the midst of one: the run may be ended there


class Times:
    """Seconds, bytes and counts of an epoch as in include/antifreeze/loader.h. limited_by: one of SIDES;
    str(): the same with its rate."""

    def __init__(self, native):
        told, (side, self.words), self.threads = native.times(), native.slowest(), native.facts().threads
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

    def __init__(self, native):
        self._native = native
        self._began_ns = self._told_ns = monotonic_ns()
        self.due_ns = self._told_ns + MIDST_NS if talk.speaks() else NEVER  # a batch from here on is worth a word

    def tell(self):
        now = monotonic_ns()
        self._told_ns, self.due_ns = now, now + max(MIDST_NS, (now - self._began_ns) // MIDST_PART)
        times = Times(self._native)
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
