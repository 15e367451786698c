"""Loader(..., transform=fn, workers=2): batches on which a function of the program's has worked.

The function gets the fields of a batch, as the loop would have got them, and gives what the loop gets in their place: an array, a tuple
or a dictionary of them. How large that is shows at the open, on the first batch in the order of the data; types and shapes are to be the
same from then on, but for a smaller number of samples.

It runs in workers, which read batches in the loader's arena and write into slots (feed/slots.py); arena and slots are within the
budget together. With workers=0 it runs in the program itself. What comes out is the same: the slots take the same part of the budget for
any number of workers, and so the order is the same; and what the function draws is seeded by seed, epoch, batch and rank.
"""
import ctypes
import errno
import os
from collections import deque
from math import prod
from time import monotonic_ns

from . import native
from .apply import Call, say_error
from .arguments import say_bytes, whole
from .slots import Layout, Slots
from .stall import Figures
from .workers import Ended, Workers, places

WORKERS_MOST = 1024  # who asks for more has mistaken it for something else
SLOTS_LEAST = 3  # a loop holds the last one while it asks for the next, and one is being made
SLOTS_MOST = 16  # half of them may be held
SLOT_PART = 4  # of the budget, one part in so many, if that is enough for the fewest
LEARN_MOST = 8  # batches that may be left out (on_error="skip") before one shows what the transform gives
IN_ORDER = 1  # AFZ_SHUFFLE_NONE
EACH_AHEAD = 2  # batches that a worker has: the one it works on, and one to go on with while the program does not look
POLL_S = .002  # between two looks whether the loader has a batch, while workers are waited for
PLACE_AT, PLACE_END = 56, 88  # of a state: chunk, group, offset and batches, which are 0 where an epoch begins


def open_transformed(files, options, transform, workers, as_):
    """What the Loader reads from in place of a native.Native with these options. as_: whose arrays the transform gets."""
    if not callable(transform):
        raise TypeError(f"transform={transform!r}: a function that gets the fields of a batch, and gives what the loop is to get")
    pool = Workers(workers, transform, as_) if whole("workers", workers, 0, WORKERS_MOST) else None
    try:
        if pool:
            pool.come_up()
        call = Call(transform, as_, options, pool)
        layout = learn(files, options, call)
        source, slots = fit(files, options, layout, bool(pool))
        return InWorkers(source, call, layout, slots, pool) if pool else InProgram(source, call, layout, slots)
    except BaseException:
        if pool:
            pool.close()
        raise


def learn(files, options, call):
    """The layout of what the transform makes."""
    batch, what = options["batch"], "no sample of them could be read"
    for first in range(0, LEARN_MOST * batch, batch):
        source = open_part(files, options, first, call.is_shared)
        if source is None:
            break
        given = source.next()
        if given is None:  # all of it was left out
            continue
        count = len(given.arrays[0])
        said, what = call.once(source, given.arrays)
        del given
        source.close()
        if said == "done":
            return Layout(*what, count, batch)
        if said == "unfit" or not call.is_skipping:
            call.refuse(said, what, f"the samples from {first} to {first + count - 1} of the data, at the open")
    raise native.LoaderError(f"the transform failed on all batches that it was tried on: {say_error(what)}")


def open_part(files, options, first, is_shared):
    """A batch from there on, in the order of the data; None: there is none."""
    end, subset = first + options["batch"], options["subset"]
    part = {**options, "shuffle": IN_ORDER, "threads": 1, "rank": 0, "ranks": 1, "is_last_dropped": False, "weights": None, "draws": 0,
            "is_shared": is_shared}
    if subset is not None:
        part["subset"] = subset[first:end]
        return native.Native(files, **part) if len(part["subset"]) else None
    part["start"], stop = options["start"] + first, options["start"] + end
    for part["stop"] in (min(stop, options["stop"] or stop), options["stop"]):  # to the end, if there are fewer than a batch
        try:
            return native.Native(files, **part)
        except native.LoaderError as error:
            if error.errno != errno.EINVAL:
                raise
            refused = error
    if first == 0:
        raise refused
    return None


def fit(files, options, layout, is_shared):
    """The loader and its slots within the budget."""
    budget = options["budget_bytes"]
    most = min(SLOTS_MOST, budget // SLOT_PART // layout.bytes)
    for count in sorted({max(SLOTS_LEAST, most), SLOTS_LEAST}, reverse=True):
        rest = max(1, budget - count * layout.bytes)
        try:
            source = native.Native(files, **{**options, "budget_bytes": rest, "is_shared": is_shared})
            break
        except native.LoaderMemoryError:
            if count == SLOTS_LEAST:
                no_room(files, options, layout)
    return source, Slots(count, layout) if is_shared else count


def no_room(files, options, layout):
    """With the floor: what the loader needs without a transform is known when it is open."""
    slots = SLOTS_LEAST * layout.bytes
    words = f"the transform makes batches of {say_bytes(layout.bytes)}, of which {SLOTS_LEAST} have to fit into the budget"
    try:
        source = native.Native(files, **options)
    except native.LoaderMemoryError as error:
        raise native.LoaderMemoryError(f"{error.why}; and {words}, too", error.errno) from None
    floor = source.facts().floor_bytes
    source.close()
    raise native.LoaderMemoryError(f"needs at least {-(-(floor + slots) // 1024)}K, the budget is {say_bytes(options['budget_bytes'])}: "
                                   f"{words}", errno.ENOSPC)


def place_of(state):
    """Epoch and number of the batch that it is behind."""
    return native.epoch_of(state), native.batches_of(state) - 1


class Source:
    """To the Loader it is what native.Native is: the same batches in the same order, and the same states. slots_bytes: of the budget, that are not the native loader's."""

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
        told = self._native.times()
        return self._figures.times(told) if self._figures else told

    def slowest(self):
        """The native loader knows of what lies before it; here are the transform, and who asks for what it makes."""
        return self._figures.slowest(*self._native.slowest(), self._workers) if self._figures else (0, "")

    def ask(self, budget):
        return self._native.ask(max(1, budget - self._slots_bytes))

    def renew(self, packed):
        return self._native.renew(packed)

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
                       self._call.seed(entry.epoch, entry.index), self._slots.at(entry.slot))

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
        try:
            self._pool = self._pool.again()
            self._map()
        except Ended as error:  # those, too: others would not live longer
            raise self._mourn(error) from None
        self._line.clear()
        self._asked.clear()
        self._slots.take_back()
        self._native.seek(self.state())
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
        except BaseException:
            self._pool.is_torn = True
            raise
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
                self._pool.stay_if_left()
                if not self._pool.is_torn:
                    raise self._mourn(error) from None
            except native.LoaderError:
                raise
            except BaseException:  # Ctrl-C: who has which batch may be half written down
                self._pool.stay_if_left()
                self._pool.is_torn = True
                raise

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
        return self.renew(self._state)

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
            self._native.seek(self.state())  # where it is itself is ahead of what was given
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
        except BaseException:  # Ctrl-C: an answer may be lost
            self._pool.is_torn = True
            raise
        if self._pool.is_torn:
            self._mend()
        self._line.clear()
        self._slots.take_back()
        self._figures = None

    def pin(self):
        """What is handed out lies in the slots. They stay as long as the loader, who is asked to end what was made of this."""
        self._native.before_close(len, self._slots.memory)
        return ctypes.addressof(ctypes.c_char.from_buffer(self._slots.memory)), self._slots.bytes

    def close(self):
        self._pool.close()
        self._native.close()
