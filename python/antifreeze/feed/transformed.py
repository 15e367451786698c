"""Sources of transformed batches. To the Loader they are what native.Native is: the same batches in the same order, and the same
states."""
import ctypes
import os
from collections import deque
from math import prod
from time import monotonic_ns

from . import apply, native, stall
from .workers import Ended

EACH_AHEAD = 2  # batches that a worker has: the one it works on, and one to go on with while the program does not look
POLL_S = .002  # between two looks whether the loader has a batch, while workers are waited for
PLACE_AT, PLACE_END = 56, 88  # of a state: chunk, group, offset and batches, which are 0 where an epoch begins
SKIP = 1  # AFZ_ERROR_SKIP
WAITED = .1  # share of an epoch in which the program waits for batches: with less, nothing is gained by a transform that is faster
CONSUMER, TRANSFORM = map(stall.SIDES.index, ("consumer", "transform"))


class Call:
    """How the transform is called, here or in a worker. What comes of it: ("done", (keys, arrays)), ("unfit", a sentence) or ("raised",
    an exception or its traceback)."""

    def __init__(self, transform, as_, options, pool):
        self._transform, self._as, self._pool = transform, as_, pool
        self._batch, self._seed, self._rank, self._ranks = options["batch"], options["seed"], options["rank"], options["ranks"]
        self.is_skipping, self.is_shared = options["on_error"] == SKIP, pool is not None

    def seed_of(self, epoch, index):
        return apply.seed_of(self._seed & (1 << 64) - 1, epoch, index, self._rank)

    def here(self, arrays, epoch, index, layout=None):
        try:
            with apply.Seeded(self.seed_of(epoch, index)):
                what = apply.take_apart(self._transform(*apply.input_of(arrays, self._as)))
            if layout:
                layout.check(*what)
            return "done", what
        except apply.Unfit as error:
            return "unfit", str(error)
        except Exception as error:
            return "raised", error

    def once(self, source, arrays):
        """To see what comes of it: types and shapes in place of arrays."""
        if self._pool is None:
            said, what = self.here(arrays, 0, 0)
            return said, (what[0], apply.kinds_of(what[1])) if said == "done" else what
        shared = source.shared()
        self._pool.map(source.fields, (shared.fd, shared.bytes), None, None)
        self._pool.ask(0, places(arrays, shared), len(arrays[0]), self.seed_of(0, 0), 0)
        try:
            return next(self._pool.answers())[1:3]
        except Ended as error:
            raise native.LoaderError(f"a worker of the transform has ended on the first samples of the data, at the open: {error.how}") \
                from None

    def name(self, epoch, index, count):
        first = (index * self._ranks + self._rank) * self._batch
        return f"batch {index} of epoch {epoch} (samples {first} to {first + count - 1} of its order)"

    def refuse(self, said, what, where):
        if said == "unfit":
            raise native.LoaderError(f"{what} (on {where})")
        is_here = isinstance(what, BaseException)
        raise native.LoaderError(f"the transform failed on {where}:{' ' if is_here else chr(10)}{say_error(what) if is_here else what}") \
            from (what if is_here else None)


def say_error(what):
    """In one line."""
    return f"{type(what).__name__}: {what}" if isinstance(what, BaseException) else what.rstrip().rpartition("\n")[2]


def place_of(state):
    """Epoch and number of the batch that it is behind."""
    return native.epoch_of(state), native.batches_of(state) - 1


def places(arrays, shared):
    return [array.ctypes.data - shared.at for array in arrays]


class ToldTimes(ctypes.Structure):
    _fields_ = native.ToldTimes._fields_ + [("transform_ns", ctypes.c_uint64)]


class Figures:
    """Of an epoch, as the program sees it: it waits for data (starved), or for the transform (stuck)."""

    def __init__(self, epoch, held):
        self.epoch, self.held_most, self.is_over = epoch, held, False
        self.waited_ns = self.starved_ns = self.stuck_ns = self.transform_ns = self.skipped = self.copies = self.samples = 0
        self.began_ns = self.returned_ns = monotonic_ns()

    def share(self, part_ns):
        return part_ns / max(1, self.returned_ns - self.began_ns)


class Source:
    """What both have in common. slots_bytes: of the budget, that are not the native loader's."""

    def __init__(self, source, call, layout, slots_bytes, workers):
        self._native, self._call, self._layout, self._slots_bytes, self._workers = source, call, layout, slots_bytes, workers
        self.keys = layout.keys
        self.fields = [(str(name), dtype, shape[1:], dtype.itemsize * prod(shape[1:]))
                       for name, (dtype, shape, _) in zip(layout.keys or range(len(layout.parts)), layout.parts)]
        self._figures = None

    def __getattr__(self, name):  # all that stays as it is
        return getattr(self._native, name)

    held = 0

    def next(self):
        began = monotonic_ns()
        if self._figures is None or self._figures.is_over:
            self._figures = Figures(native.epoch_of(self.state()), self.held)
        figures = self._figures
        given = self._next()
        figures.returned_ns = monotonic_ns()
        figures.waited_ns += figures.returned_ns - began
        figures.is_over = given is None
        if given:
            figures.samples += len(given.arrays[0]) if given.arrays[0].shape else 0
            figures.copies += given.is_copy
            figures.held_most = max(figures.held_most, self.held)
        return given

    def facts(self):
        facts = self._native.facts()
        facts.budget_bytes += self._slots_bytes
        facts.floor_bytes += self._slots_bytes
        return facts

    def times(self):
        told, mine = self._native.times(), self._figures
        times = ToldTimes(*(getattr(told, name) for name, _ in told._fields_))
        if mine is None:
            return times
        times.skipped += mine.skipped
        times.transform_ns, times.waited_ns, times.epoch = mine.transform_ns, mine.waited_ns, mine.epoch
        times.epoch_ns = mine.returned_ns - mine.began_ns
        times.idle_ns = times.epoch_ns - times.waited_ns
        return times

    def slowest(self):
        """The native loader knows of what lies before it; here are the transform, and who asks for what it makes."""
        mine = self._figures
        if mine is None or not mine.samples:
            return 0, ""
        if mine.share(mine.waited_ns) < WAITED:
            idle = mine.share(mine.returned_ns - mine.began_ns - mine.waited_ns)
            return CONSUMER, f"your training step: batches waited for it {100 * idle:.0f} % of the time"
        side, words = self._native.slowest()
        if side > CONSUMER and mine.starved_ns > mine.stuck_ns:
            return side, words
        rate = mine.samples / max(1, mine.transform_ns) * 1e9 * max(1, self._workers)
        where = f"{self._workers} worker{'s' * (self._workers != 1)}" if self._workers else "the program itself"
        waited = 100 * mine.share(mine.waited_ns)
        return TRANSFORM, f"the transform: {rate:,.0f} samples/s in {where}; the program waited for data {waited:.0f} % of the time"

    def ask(self, budget):
        return self._native.ask(max(1, budget - self._slots_bytes))

    def _skip(self, said, what, epoch, index, count):
        """A sentence; or the error, if nothing is to be left out."""
        where = self._call.name(epoch, index, count)
        if said == "unfit" or not self._call.is_skipping:
            self._call.refuse(said, what, where)
        self._figures.skipped += count
        return f"the transform failed on {where}: {say_error(what)}"


class InProgram(Source):
    """Its results lie on the program's own heap, as if the loop had called it."""

    def __init__(self, source, call, layout, slots):
        super().__init__(source, call, layout, slots * layout.bytes, 0)

    def _next(self):
        left_out = []
        while True:
            began = monotonic_ns()
            given = self._native.next()
            begun = monotonic_ns()
            self._figures.starved_ns += begun - began
            if given is None:
                return None
            epoch, index = place_of(self._native.state())
            said, what = self._call.here(given.arrays, epoch, index, self._layout)
            self._figures.transform_ns += monotonic_ns() - begun
            self._figures.stuck_ns = self._figures.transform_ns
            left_out += [given.why] * bool(given.why)
            if said == "done":
                return native.Given(what[1], "; ".join(left_out), given.is_copy)
            left_out.append(self._skip(said, what, epoch, index, len(given.arrays[0])))


class Entry:
    """Of the line of what next() gives: a batch, the end of an epoch, or an error."""

    def __init__(self, state):
        self.state, self.epoch, self.index = state, *place_of(state)
        self.arrays = self.why = self.slot = None
        self.count, self.said, self.what = 0, None, None


class InWorkers(Source):
    def __init__(self, source, call, layout, slots, pool):
        super().__init__(source, call, layout, slots.bytes, pool.count)
        self._slots, self._pool, self._pid = slots, pool, os.getpid()
        self._map()
        self._line, self._numbers = deque(), 0  # entries that were asked for, in order; and how many ever
        self._asked = {}  # those that workers have, by their number
        self._state = source.state()
        self._broken = None  # the error that was the end of it

    def _map(self):
        shared = self._native.shared()
        self._pool.map(self._native.fields, (shared.fd, shared.bytes), (self._slots.fd, self._slots.bytes), self._layout)

    @property
    def held(self):
        return self._slots.held

    def times(self):
        times, mine = super().times(), self._figures
        if mine:
            times.copies, times.held, times.held_most = mine.copies, self.held, mine.held_most
        return times

    # ---- ahead ----

    def _fill(self):
        """Asks for what there is room for; waits only if else there would be nothing to wait for."""
        while self._has_room() and not (self._line and not self._native.is_ready()):
            self._ask()

    def _has_room(self):
        is_stopped = self._line and self._line[-1].said in ("error", "end")  # what is behind it may not be wanted
        most = min(EACH_AHEAD * self._pool.count, self._native.shared().leases)
        return bool(self._slots.free) and len(self._asked) < most and not is_stopped

    def _ask(self):
        began = monotonic_ns()
        try:
            given, error = self._native.next(), None
        except native.LoaderError as raised:
            given, error = None, raised
        if not self._line and self._figures:
            self._figures.starved_ns += monotonic_ns() - began
        entry = Entry(self._native.state())
        self._line.append(entry)
        if given is None:
            entry.said, entry.what = ("error", error) if error else ("end", None)
            return
        entry.arrays, entry.why, entry.count = given.arrays, given.why, len(given.arrays[0])
        entry.slot = self._slots.free.pop()
        if given.is_copy:  # less was asked for just now; this one lies where no worker reaches
            self._do_here(entry)
            return
        self._numbers += 1
        self._asked[self._numbers] = entry
        self._pool.ask(self._numbers, places(given.arrays, self._native.shared()), entry.count,
                       self._call.seed_of(entry.epoch, entry.index), self._slots.at(entry.slot))

    def _do_here(self, entry):
        said, what = self._call.here(entry.arrays, entry.epoch, entry.index, self._layout)
        if said == "done":
            what = self._layout.fill(self._slots.memory, self._slots.at(entry.slot), what[1])
        entry.said, entry.what, entry.arrays = said, what, None

    def _hear(self, timeout_s=None):
        for number, said, what, took_ns in self._pool.answers(timeout_s):
            entry = self._asked.pop(number)
            entry.said, entry.what, entry.arrays = said, what, None  # its lease ends
            if self._figures:
                self._figures.transform_ns += took_ns

    def _mend(self):
        """After Ctrl-C: other workers go on behind what was given."""
        self._pool = self._pool.again()
        self._map()
        self._line.clear()
        self._asked.clear()
        self._slots.take_back()
        self._native.seek(self._state)
        self._pool.is_torn = False

    def _mourn(self, error):
        """All ends with a worker: this, and whatever is asked for later."""
        entry = self._asked.get(error.number)
        where = f" on {self._call.name(entry.epoch, entry.index, entry.count)}" if entry else ""
        self._broken = native.LoaderError(f"a worker of the transform has ended{where}: {error.how}")
        self._line.clear()
        self._asked.clear()
        self._pool.close()
        return self._broken

    def _is_forked(self):
        """Then workers and what they say are the parent's, and the native loader says so."""
        return os.getpid() != self._pid

    def is_ready(self):
        if self._is_forked() or self._broken:
            return True
        try:
            if self._line or self._native.is_ready():
                self._fill()
            if self._asked:
                self._hear(0)
        except Ended as error:
            self._mourn(error)
            return True
        return bool(self._line) and self._line[0].said is not None

    # ---- what is given ----

    def _next(self):
        if self._is_forked():
            return self._native.next()  # which refuses
        if self._broken:
            raise self._broken
        left_out = []
        while True:
            try:
                if self._pool.is_torn:
                    self._mend()
                given = self._take(left_out)
                if given is not self:
                    return given
            except Ended as error:
                if not self._pool.is_torn:
                    raise self._mourn(error) from None

    def _take(self, left_out):
        """The next of the line; self: it was left out."""
        self._fill()
        began = monotonic_ns()
        while self._line[0].said is None:
            self._hear(POLL_S if self._has_room() else None)
            self._fill()
        self._figures.stuck_ns += monotonic_ns() - began
        entry = self._line.popleft()
        self._state = entry.state
        left_out += [entry.why] * bool(entry.why)
        if entry.said == "done":
            arrays, is_copy = self._slots.lease(entry.slot, entry.what)
            return native.Given(arrays, "; ".join(left_out), is_copy)
        if entry.slot is not None:
            self._slots.free.append(entry.slot)
        if entry.said == "end":
            return None
        if entry.said == "error":
            raise entry.what
        left_out.append(self._skip(entry.said, entry.what, entry.epoch, entry.index, entry.count))
        return self

    # ---- places ----

    def state(self):
        return self._state

    def seek(self, packed):
        self._go(self._native.seek, packed)

    def begin(self, epoch):
        if native.epoch_of(self._state) != epoch or any(self._state[PLACE_AT:PLACE_END]):  # else what is on its way is right
            self._go(self._native.begin, epoch)

    def _go(self, way, there):
        if self._is_forked():
            return way(there)
        self._drop()
        try:
            way(there)
        except native.LoaderError:
            self._native.seek(self._state)  # where it is itself is ahead of what was given
            raise
        self._state = self._native.state()

    def _drop(self):
        """What is on its way is not wanted any more."""
        try:
            while self._asked and not self._pool.is_torn:
                self._hear()
        except Ended as error:
            if not self._pool.is_torn:
                raise self._mourn(error) from None
        if self._pool.is_torn:
            self._mend()
        for entry in self._line:
            if entry.slot is not None:
                self._slots.free.append(entry.slot)
        self._line.clear()
        self._figures = None

    def pin(self):
        """What is handed out lies in the slots. They stay as long as the loader, who is asked to end what was made of this."""
        self._native.before_close(len, self._slots.memory)
        return ctypes.addressof(ctypes.c_char.from_buffer(self._slots.memory)), self._slots.bytes

    def close(self):
        self._pool.close()
        self._native.close()
