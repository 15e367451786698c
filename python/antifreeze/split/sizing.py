"""How many samples go through at once: the arithmetic of splitting a batch, with no framework in it.

A batch stays what it is: one step, one update of the weights. When it does not fit, its samples go through in parts, and their
gradients are added up. There is one Splitter for Keras (`splitter`), and one for each model or loop of torch (`another()`): what
does not fit through one says nothing of another. It halves when a part did not fit, and grows back with care: after many steps with
ample room, by one doubling, and never to a size that failed twice. What was tried in vain makes it wait longer. The guard, who
knows of no models, asks all of them for less (`shrink()`).

Told to the guard: how large the parts are (micro_count), how many steps were made in parts (splits_count), each change (an event).
"""
import weakref

from .. import policy

GROW_AFTER = 200  # steps in parts, all with ample room, before a larger part is tried: an attempt that fails repeats a step
GROW_LATER = 4  # times as many, each time that it was in vain
GROW_ROOM = 1.5  # of what twice as large a part would take, judged by this one: memory is not linear in the samples
FAILED_OFTEN = 2  # a size that failed so often is not tried again


class Splitter:
    def __init__(self, lean=0, tell=None, event=None, counts=None):
        """lean: how often to halve from the start, as an earlier attempt has learned. tell(name, value) and event(kind, sentence,
        **keys) are those of tell.py and talk.py. counts: the one that counts the steps of all; itself, if there is none."""
        self.lean = lean
        self._counts = counts or self
        self.most = None  # samples at once; None: all of them
        self.splits = 0  # steps that were made in parts, of all that count here
        self._tell, self._event = tell or _tell, event or _event
        self._failures = {}  # size to how often it failed
        self._last = None  # (samples of the last batch, samples at once)
        self._calm = 0  # steps in parts since the last change, all of them with ample room; -1: just grown
        self._grow_after = GROW_AFTER

    def parts(self, n):
        """The sizes of the parts for a batch of n samples: as few as fit, as even as can be, the larger ones first."""
        if n < 1:
            return []
        if self.lean > 0:  # of the largest batch: the first one may be a trial with a sample or two
            self.most = max(self.most or 1, -(-n // (1 << min(self.lean, 62))))
        most = n if self.most is None else min(n, self.most)
        if self._last != (n, most):
            self._last = (n, most)
            self._tell("batch_count", n)
            self._tell("micro_count", most)
        return even(n, most)

    def failed(self, n):
        """A part of n samples did not fit. False: it was one sample, and nothing can be halved."""
        self._failures[n] = self._failures.get(n, 0) + 1
        if self._calm < 0:  # the first try after growing
            self._grow_after *= GROW_LATER
        self._calm = 0
        if n <= 1:
            self.most, self.lean = 1, 0
            return False
        self._halve(n, "did not fit into memory")
        return True

    def shrink(self):
        """The guard asks for less. False: it is one sample already."""
        if self._last is None:
            self.lean += 1
            return True
        if self._last[1] <= 1:
            return False
        if self.most is not None and self.most < self._last[1]:  # the next ones are smaller already than what the guard has seen
            return True
        self._calm = 0
        self._halve(self._last[1], "came close to the limit")
        return True

    def fits(self, n, room_before=None, room_after=None):
        """A step was made with parts of at most n samples. Room: bytes that were free before it, and when most was in use. May let
        the next ones be twice as large; not where the room is not known."""
        if self._last is None or n >= self._last[0]:
            return
        self._counts.splits += 1
        self._tell("splits_count", self._counts.splits)
        if self.most is None or n < self.most or room_before is None or room_after is None:
            return
        taken = max(0, room_before - room_after)
        if room_before < 2 * taken * GROW_ROOM:
            self._calm = 0
            return
        self._calm = max(0, self._calm) + 1
        if self._calm >= self._grow_after:
            self._grow()

    def _halve(self, n, why):
        self.most, self.lean = min(self.most or n, (n + 1) // 2), 0
        batch = self._last[0] if self._last else n
        self._tell("micro_count", min(batch, self.most))
        self._event("split", f"{_samples(n)} at once {why}: from here on {_samples(self.most)} at once, {batch} a step as before",
                    batch=batch, micro=self.most)

    def _grow(self):
        size, batch = self.most * 2, self._last[0]
        self._calm = 0
        if any(times >= FAILED_OFTEN and failed <= size for failed, times in self._failures.items()):
            return
        self.most, self.lean = size if size < batch else None, 0
        self._calm = -1
        self._tell("micro_count", min(size, batch))
        self._event("grow", f"there is room again: {_samples(min(size, batch))} at once", batch=batch, micro=min(size, batch))


def even(n, most):
    """n samples in as few parts as can be if none is to have more than `most`."""
    count = -(-n // most)
    small, larger = divmod(n, count)
    return [small + 1] * larger + [small] * (count - larger)


def _samples(n):
    return "1 sample" if n == 1 else f"{n} samples"


def _tell(name, value):
    from .. import tell
    tell.tell(name, value)


def _event(kind, sentence, **keys):
    from .. import clock, talk
    step = getattr(clock, "count", None)
    talk.event(kind, sentence, **({"step": step} if step else {}), **keys)


splitter = Splitter(policy.lean())
_others = weakref.WeakSet()


def another():
    """A Splitter for one model, or one loop. It lives as long as whoever has it."""
    made = Splitter(splitter.lean, counts=splitter)
    _others.add(made)
    return made


def shrink():
    """The guard asks for less. False: all are at one sample already."""
    used = [*_others, *([splitter] if splitter._last is not None else [])]
    if not used:  # before the first batch: for all that come
        splitter.lean += 1
        return True
    return any([one.shrink() for one in used])
