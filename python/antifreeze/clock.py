"""The step clock: who trains tells it of steps, and it writes them where the guard reads them.

There is one clock a process, and any number of sources that tick: optimizers, Keras' callbacks, functions of TensorFlow. A step
is over when a source ticks that has already ticked in it. So a GAN with two optimizers makes one step a round, an optimizer
that is wrapped in another counts once, and so does Keras' fit, which calls an optimizer. When a source is gone (a new
optimizer for each trial), the next tick is a new step.

A program that counts by itself (antifreeze.step, antifreeze.steps) is believed: then nothing else ticks.

Between two steps, and at most every 50 ms, it also lets those come to their turn that have something to do there: what the
guard has asked for (talk.py), a checkpoint that is due (save/saving.py).

What is done at every step comes when the caches are full of the program's own, so that each line of memory that it touches costs
more than what is done with it. Hence one function, its variables side by side in this module, and nothing of the probe's: after
the first thousand steps, those that take less than 50 ms are told together.
"""
from _weakref import ref
from time import monotonic_ns

from . import probe, talk

MOST = 4096  # sources of one step. Some have an optimizer a parameter; more than that are new ones that nobody has freed
EAGER = 1000  # steps of a process that are told one by one, however short: its book may come late, and it may not live long
LOOK_NS = 50_000_000  # between two looks at what was waited for

count = 0  # steps that have begun
done = 0  # those whose work is in the model: what a checkpoint that is made now has
waited = 0  # nanoseconds, by all waits
words = [0, 0]  # steps and nanoseconds in the book; until there is one, a list that stands in for it
due_ns = 0  # the next step from here on is more than a step: something is to be looked at. 0: at once
look_ns = 0  # the same of the next wait
turns = []  # functions that are called between two steps
loop = None  # who keeps the place in the data that antifreeze.steps() is at (save/saving.py)

_own = False  # the program counts by itself
_only = None  # id of the source that alone makes steps: when it ticks, a new one begins
_seen = set()  # ids of the sources that have ticked in this step
_known = {}  # id to weak reference, of those that ever did
_clock = None  # the probe's function that knows where the book is
_at = None  # there
_base = 0  # steps that are not in this book: those of the process that this one was forked from


def connect():
    """Whether the probe is in this process."""
    global _clock
    if not _clock:
        _clock = probe.function("antifreeze_clock", "c_void_p")
        if _clock:
            import atexit
            import os
            atexit.register(tell)
            os.register_at_fork(after_in_child=_forked)
    return _clock is not None


def _forked():
    """The book is the parent's."""
    global words, waited, due_ns, look_ns, _at, _base
    words, waited, due_ns, look_ns, _at, _base = [0, 0], 0, 0, 0, None, count


def _find_book():
    """It may come later than the first step, and goes with a fork. The probe also looks at malloc, when it is asked."""
    global words, _at, _base
    at = _clock() if _clock else None
    if at != _at:
        import ctypes
        made = (ctypes.c_uint64 * 2).from_address(at) if at else [0, 0]
        made[0] += count - _base  # what was done before it was there
        words, _at, _base = made, at, count - made[0]


def tell():
    """What is in the book is what is here, from now on until the next step."""
    words[0], words[1] = count - _base, waited


def turn(finished):
    """Between two steps, or where it is as good as that; finished: steps whose work is done."""
    global done, due_ns
    done = finished
    if monotonic_ns() >= talk.due_ns:
        _find_book()
        talk.poll()
        for function in turns:
            function()
    elif not _at:
        _find_book()
    tell()
    due_ns = talk.due_ns if count - _base >= EAGER else 0


def _gone(_, seen=_seen, known=_known):
    global _only
    _only = None
    seen.clear()
    known.clear()


def tick(source):
    """One of those that train has begun or done its part of a step."""
    global count, done, _only
    if _own:
        return
    key = id(source)
    is_new = not _seen or key in _seen or len(_seen) >= MOST
    if is_new:
        _seen.clear()
    _seen.add(key)
    if key not in _known:
        try:
            _known[key] = ref(source, _gone)
        except TypeError:  # one that cannot be referred to weakly
            pass
    _only = key if is_new else None
    if is_new:
        count += 1
        # An optimizer is about to change the model: it is as the last step has left it.
        if monotonic_ns() >= due_ns:
            turn(count - 1)
        else:
            done = count - 1


def ticking(torch, compiled, other):
    """A hook of torch's optimizers: all of a step, where there is one source and nothing to be looked at, is in it. Called with
    what it is called with are other(), where it is not so, and compiled(), while torch.compile reads it."""
    is_compiling = None

    def antifreeze_step(optimizer, args, kwargs):
        global count, done
        nonlocal is_compiling
        if is_compiling is None:  # it was not there yet when torch was imported
            is_compiling = torch.compiler.is_compiling
        if is_compiling():
            compiled(optimizer, args, kwargs)
        elif id(optimizer) != _only or monotonic_ns() >= due_ns:
            other(optimizer, args, kwargs)
        else:
            done = count
            count += 1

    return antifreeze_step


def more(steps_count):
    """Steps that were made at once with the last one."""
    global count
    if not _own and steps_count > 0:
        count += steps_count
        tell()


def time_next(iterator, on_item=None):
    """What a class of iterators takes for its next is waiting. on_item(iterator, item) is called now and then."""
    iterator.__next__ = timed(iterator.__next__, on_item)


def timed(call, on_item=None):
    """The same call, whose time is waiting for data. A wait inside another is part of that one."""
    import functools  # who has such a call has it already

    def look(args, item, now):
        global look_ns
        look_ns = now + LOOK_NS
        tell()
        if on_item and item is not None:
            on_item(*args, item)

    @functools.wraps(call)
    def waiting(*args, **named):
        global waited
        before, began = waited, monotonic_ns()
        try:
            item = call(*args, **named)
        except BaseException:  # the end of the data may be waited for, too
            waited = max(waited, before + monotonic_ns() - began)
            raise
        now = monotonic_ns()
        if before + now - began > waited:  # else others have waited at the same time, and longer
            waited = before + now - began
        if now >= look_ns:
            look(args, item, now)
        return item

    return waiting


def step():
    """A training step begins here."""
    global count, done
    _count_own()
    done, count = count, count + 1
    if monotonic_ns() >= due_ns:
        turn(done)


def _count_own():
    global _own, _only
    if not _own:
        _own, _only = True, None
        connect()


class steps:
    """for batch in antifreeze.steps(loader): each turn is a training step, and the time that the loader takes is waiting.
    After a restart from what antifreeze.autosave() has saved, it goes on at the place in the data where that was."""

    def __init__(self, iterable):
        self.iterable = iterable

    def __len__(self):
        return len(self.iterable)

    def __iter__(self):
        global count, done, waited
        _count_own()
        place = loop  # of this loop, whatever is set later
        items = place.begin(self.iterable) if place else iter(self.iterable)
        try:
            while True:
                done, before, began = count, waited, monotonic_ns()
                if began >= due_ns:
                    turn(count)
                    began = monotonic_ns()
                try:
                    item = next(items)
                except StopIteration:
                    return
                finally:
                    waited = max(waited, before + monotonic_ns() - began)
                count += 1
                if not due_ns:
                    tell()
                yield item
                if place:
                    place.next()
        finally:
            tell()
            if place:
                place.end()
