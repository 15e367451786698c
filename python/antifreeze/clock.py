"""The step clock: who trains tells it of steps, and it tells the probe in this process.

There is one clock a process, and any number of sources that tick: optimizers, Keras' callbacks, functions of TensorFlow. A step
is over when a source ticks that has already ticked in it. So a GAN with two optimizers makes one step a round, an optimizer
that is wrapped in another counts once, and so does Keras' fit, which calls an optimizer. When a source is gone (a new
optimizer for each trial), the next tick is a new step.

A program that counts by itself (antifreeze.step, antifreeze.steps) is believed: then nothing else ticks.

Between two steps, and at most every 50 ms, it also lets those come to their turn that have something to do there: what the
guard has asked for (talk.py), a checkpoint that is due (save/saving.py).

Without the probe (not under `antifreeze run`, --no-probe, a static Python) nobody is told.
"""
from _thread import _local
from _weakref import ref
from time import monotonic_ns, perf_counter_ns

from . import talk

MOST = 4096  # sources of one step. Some have an optimizer a parameter; more than that are new ones that nobody has freed

_tell_step = _tell_wait = None  # the probe's functions, once looked for
_looked = False
_own = False  # the program counts by itself
count = 0  # steps that have begun
done = 0  # those whose work is in the model: what a checkpoint that is made now has
turns = []  # functions that are called between two steps
loop = None  # who keeps the place in the data that antifreeze.steps() is at (save/saving.py)
_present = {}  # the sources that have ticked in this step: id to weak reference
_waits = _local()  # .inside: this thread is in a wait that is measured


def connect():
    """Whether the probe is in this process. Looked for once, and when a framework is there, which has brought ctypes itself."""
    global _tell_step, _tell_wait, _looked
    if not _looked:
        _looked = True
        try:
            import ctypes
            # PyDLL keeps the interpreter's lock: to give it away for some nanoseconds would let other threads in between.
            # PyPy has none.
            probe = getattr(ctypes, "PyDLL", ctypes.CDLL)(None)
            step = probe.antifreeze_step
            step.argtypes, step.restype = (), None
            _tell_step = step
            wait = probe.antifreeze_wait
            wait.argtypes, wait.restype = (ctypes.c_uint64,), None
            _tell_wait = wait
        except Exception:  # no ctypes, no probe, or an older one
            pass
    return _tell_step is not None


def _begin():
    global count
    count += 1
    if _tell_step:
        _tell_step()


def turn(finished):
    """Between two steps, or where it is as good as that; finished: steps whose work is done."""
    global done
    done = finished
    if monotonic_ns() >= talk.due_ns:
        talk.poll()
        for function in turns:
            function()


def _gone(_):
    _present.clear()


def tick(source):
    """One of those that train has begun or done its part of a step."""
    if _own:
        return
    key = id(source)
    is_new = not _present or key in _present or len(_present) >= MOST
    if is_new:
        _present.clear()
    try:
        _present[key] = ref(source, _gone)
    except TypeError:  # one that cannot be referred to weakly
        _present[key] = None
    if is_new:
        _begin()
        turn(count - 1)  # an optimizer is about to change the model: it is as the last step has left it


def more(steps_count):
    """Steps that were made at once with the last one."""
    if not _own:
        for _ in range(steps_count):
            _begin()


def wait_begin():
    """Call wait_end() with what this returns. A wait inside another is part of that one."""
    if not _tell_wait or getattr(_waits, "inside", False):
        return 0
    _waits.inside = True
    return perf_counter_ns()


def wait_end(began):
    if began:
        _waits.inside = False
        _tell_wait(perf_counter_ns() - began)


def time_next(iterator):
    """What a class of iterators takes for its next is waiting."""
    import functools  # who has such a class has it already
    following = iterator.__next__

    @functools.wraps(following)
    def __next__(self):
        began = wait_begin()
        try:
            return following(self)
        finally:
            wait_end(began)

    iterator.__next__ = __next__


def step():
    """A training step begins here."""
    global _own
    _own = True
    connect()
    turn(count)
    _begin()


class steps:
    """for batch in antifreeze.steps(loader): each turn is a training step, and the time that the loader takes is waiting.
    After a restart from what antifreeze.autosave() has saved, it goes on at the place in the data where that was."""

    def __init__(self, iterable):
        self.iterable = iterable

    def __len__(self):
        return len(self.iterable)

    def __iter__(self):
        global _own
        _own = True
        connect()
        place = loop  # of this loop, whatever is set later
        items = place.begin(self.iterable) if place else iter(self.iterable)
        try:
            while True:
                turn(count)
                began = wait_begin()
                try:
                    item = next(items)
                except StopIteration:
                    return
                finally:
                    wait_end(began)
                _begin()
                yield item
                if place:
                    place.next()
        finally:
            if place:
                place.end()
