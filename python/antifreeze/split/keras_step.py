"""Keras: a batch that does not fit goes through in parts, inside one step of fit(). Callbacks, the number of steps, the schedule and
the optimizer's own count stay as they are: the gradients of the parts are added up, each with its share, and applied once.

Only under `--policy adapt`, and only where the model's training step is Keras' own. fit() calls model.train_function; ours takes
the batch, computes gradients (which writes nothing), and applies them when all are there. So what runs out of memory before that
has applied nothing, and the same samples can go through again in smaller parts; those that are through stay. Keras' own function has
both in one graph, where the last layers may be updated while the first ones run out of memory: it is called only when there is
ample room.

Before a model is split for the first time, some samples go through at once and in two halves: the gradients must be the same
(proof before trust). What moves by itself in a training pass (statistics of a BatchNorm, draws of a Dropout) is seen then, too: such a
model is split only where the user allows it.

What is a framework's is in split/keras_tf.py and split/keras_torch.py.
"""
import sys
from time import perf_counter

from .. import policy, room, talk
from ..see import oom
from ..tell import tell
from ..see.on_keras import size_of
from . import keras_shares as shares, sizing

PROVED_BY = 16  # samples at most: enough to see whether they have to do with one another, and cheap
EQUAL = {"float32": 1e-3, "float64": 1e-6}  # how far apart gradients may be, of their length. Rounding makes 1e-6 of it in float32
EQUAL_HALF = 5e-2  # the same where a model computes in 16 bits
AMPLE = 2  # times what a step needs, and
AMPLE_BYTES = 256 << 20  # this much: then it is not held up by looking after it
SHORT_S = 0.2  # a step for which our three calls instead of one (up to 1 ms) are more than half a percent
COMING = 2  # batches that room is left for, beside the one that is there
ORDINARY = 3  # steps are made by us first, to see what they need


class Steps:
    """model.train_function, and what is known of that model."""

    def __init__(self, model, inner, backend):
        """inner: Keras' own function. backend: of this model, by keras_tf or keras_torch."""
        self.model, self.inner, self.backend = model, inner, backend
        self.trusted = None  # None: not proved yet
        self.is_out = False  # we have given up: Keras' own function does it all
        self.forecast = room.Forecast(backend.meter())
        self.made = 0  # steps
        self.told = None
        self.short = False
        self.ample_bytes = None  # with so much room the inner function is called

    def __call__(self, iterator):
        """One execution: a batch, or several of them (steps_per_execution)."""
        if self.is_out or self.is_easy():
            return self.inner(iterator)
        logs = None
        for batch in self.backend.take(iterator):
            logs = self.step(batch)
        return logs

    def is_easy(self):
        """There is far more room than a step needs: Keras' own function is quicker by what a second call takes."""
        return (self.short and self.ample_bytes is not None and sizing.splitter.most is None and not sizing.splitter.lean and
                room.room() >= self.ample_bytes)

    def step(self, batch):
        n = self.backend.count(batch)
        if n < 1 or not self.backend.can_slice(batch):
            return self.leave(batch, "the batch is of a kind that cannot be divided into samples")
        try:
            if n != oom.batch:
                oom.batch = n
                self.backend.tell_size(batch)
            self.foresee(batch, n)
            parts = sizing.splitter.parts(n)
            if len(parts) > 1 and not self.may_split(batch, parts[0]):
                return self.leave(batch)
        except Exception as error:  # what we asked the model for was our own idea
            return self.leave(batch, f"it could not be tried out ({type(error).__name__})")
        return self.make(batch, n)

    def make(self, batch, n):
        began, before = perf_counter(), room.room()
        sums, at, count = shares.Sums(), 0, 0
        while at < n:
            size = min(sizing.splitter.parts(n)[0], n - at)
            done = self.attempt(batch, at, size, n)
            if done is None:
                if not self.halve(batch, size):
                    return self.leave(batch)
                continue
            self.backend.add(sums, batch, at, size, done)
            del done
            at += size
            count += 1
        logs = self.backend.finish(sums, batch, n, count)
        try:
            self.ended(n, count, before, perf_counter() - began)
        except Exception:
            pass
        return logs

    def attempt(self, batch, at, size, n):
        """What one part gives, or None: it did not fit, and is to be tried again by halves. An error that is not ours to mend goes on."""
        kept = self.backend.keep()
        used = self.forecast.begin(size)
        try:
            done = self.backend.gradients(batch, at, size, n)
        except Exception as error:
            if not self.is_mendable(error, size):
                raise
            error.__traceback__ = None  # its frames have tensors
        else:
            self.forecast.end(used, size)
            return done
        self.backend.put_back(kept)
        room.trim()
        return None

    def is_mendable(self, error, size):
        if not oom.caught(error, micro=size) or oom.is_sticky(error) or self.trusted is False:
            return False
        if size < 2:
            talk.event("refuse", "not even one sample at once fits into memory: the model itself is too large for this limit")
        return size > 1

    def halve(self, batch, size):
        """After a part that did not fit. False: it may not be split; then nothing was through before it."""
        try:
            return self.may_split(batch, (size + 1) // 2) and sizing.splitter.failed(size)
        except Exception as error:
            self.give_up(f"it could not be tried out ({type(error).__name__})")
            return False

    def ended(self, n, count, before, took_s):
        self.made += 1
        size = -(-n // count)
        need = self.forecast.growth(size)
        sizing.splitter.fits(size, *((before, max(0, before - need)) if before != room.ALL else ()))
        self.tell(size)
        if self.made < ORDINARY or before == room.ALL and not self.backend.is_host():
            return
        self.short = took_s < SHORT_S
        # Where no line is known nothing is ever refused on the host: Keras' own function is as good.
        self.ample_bytes = AMPLE * (self.forecast.need(n) or 0) + AMPLE_BYTES if before != room.ALL else 0

    def tell(self, size):
        """What of the memory that goes and comes with each step are activations: what is no gradient."""
        taken = self.forecast.known.get(size)
        if taken and taken != self.told and self.backend.is_host():
            self.told = taken
            tell("activations_bytes", max(0, taken - size_of(self.model.trainable_variables)))

    # ---- what will fit ----

    def foresee(self, batch, n):
        """Makes the parts small enough for the room that there is, before anything is refused: not all that a framework allocates
        can be refused without harm. What a sample needs is tried out with a few."""
        if room.room() == room.ALL or not self.backend.is_host():
            return
        if not self.forecast.is_known():
            self.try_out(batch, n, self.left(batch))
        free = self.left(batch)
        size = sizing.splitter.parts(n)[0]
        fitting = self.forecast.fitting(size, free)
        if fitting >= size or self.trusted is False:
            return
        room.trim()
        free = self.left(batch)
        fitting = self.forecast.fitting(size, free)
        if fitting >= size:
            return
        if not self.may_split(batch, fitting):
            return
        sizing.splitter.most = fitting
        talk.event("split", f"{size} samples at once would take {megabytes(self.forecast.need(size))}, and {megabytes(free)} are "
                   f"left: from here on {fitting} at once, {n} a step as before", batch=n, micro=fitting)

    def left(self, batch):
        """The room for a step: the next batches come while it is made, and are copied on the way."""
        free = room.room()
        return free - min(free // 4, COMING * self.backend.size(batch))

    def try_out(self, batch, n, free):
        """Some samples go through and nothing is kept of it. The first time is left out: it makes the function itself."""
        few = max(1, n // 64)
        try:
            for size in (few, few):
                need = self.measured(batch, size, n)
            self.forecast.learn(few, need)
            more = min(n // 8, int(few * free / 2 / max(need, 1)))
            if more >= 2 * few:
                self.forecast.learn(more, self.measured(batch, more, n))
        except Exception as error:
            if not oom.caught(error, micro=few):
                raise

    def measured(self, batch, size, n):
        kept = self.backend.keep()
        room.trim()
        used = self.forecast.start()
        try:
            self.backend.gradients(batch, 0, size, n)
            return self.forecast.taken(used)
        finally:
            self.backend.put_back(kept)

    # ---- whether it may be split ----

    def may_split(self, batch, size):
        """Proves it, once, with as many samples as fit for sure."""
        if self.trusted is None:
            why = self.tried_disproof(batch, min(size, PROVED_BY))
            self.trusted = why is None or policy.is_inexact_allowed() and not self.backend.why_never()
            if why is not None and self.trusted:
                talk.event("note", f"the batch is split as --allow-inexact says, although {why}")
            elif why is not None:
                way_out = "" if self.backend.why_never() else "; --allow-inexact splits it all the same"
                talk.event("refuse", f"the batch is not split, because {why}{way_out}")
        return self.trusted

    def tried_disproof(self, batch, size):
        while True:
            try:
                return self.disproof(batch, size)
            except Exception as error:
                if size < 4 or not oom.caught(error, micro=size):
                    raise
            size //= 2

    def disproof(self, batch, size):
        """None: whole and in halves is the same. Else why it is not."""
        if self.backend.why_never():
            return self.backend.why_never()
        size = min(size, self.backend.count(batch))
        if size < 2:
            return "it cannot be seen whether samples have to do with one another: only one fits at once"
        kept = self.backend.keep()
        whole, moved = shares.Sums(), []
        try:
            self.backend.add(whole, batch, 0, size, self.backend.gradients(batch, 0, size, size), is_trial=True)
            moved = self.backend.moved(kept)
            self.backend.put_back(kept)
            halves, middle = shares.Sums(), size // 2
            for at, to in ((0, middle), (middle, size)):
                self.backend.add(halves, batch, at, to - at, self.backend.gradients(batch, at, to - at, size), is_trial=True)
        finally:
            self.backend.put_back(kept)
        if self.backend.why_never():
            return self.backend.why_never()
        if moved:
            return f"its result depends on which samples go through together, or on chance ({', '.join(moved)})"
        apart = self.backend.distance(whole, halves)
        if not apart <= EQUAL.get(self.backend.dtype(), EQUAL_HALF):
            return "its gradients are others when the samples go through in parts (the samples have to do with one another)"
        return None

    def leave(self, batch, why=None):
        """From here on as without us, this batch included."""
        if why:
            self.give_up(why)
        self.is_out = True
        return self.inner(self.backend.given(batch))

    def give_up(self, why):
        if self.trusted is not False:
            self.trusted = False
            talk.event("refuse", f"the batch is not split, because {why}")


class Looks:
    """model.test_function. What is trained on in parts is evaluated in parts, too, each as a batch of its own: it writes nothing but
    metrics, and means by the number of samples are the same."""

    def __init__(self, model, inner, backend):
        self.model, self.inner, self.backend = model, inner, backend

    def __call__(self, iterator):
        most, logs = sizing.splitter.most, None
        if most is None or not self.may_split():
            return self.inner(iterator)
        for batch in self.backend.take(iterator):
            n, at = self.backend.count(batch), 0
            for size in sizing.even(n, most) if n > most and self.backend.can_slice(batch) else [n]:
                logs = self.inner([batch[0] if size == n else self.backend.piece(batch, at, size)[0]])
                at += size
        return logs

    def may_split(self):
        steps = self.model.train_function
        return isinstance(steps, Steps) and steps.trusted and (
            policy.is_inexact_allowed() or steps.backend.is_by_count and not steps.backend.must_gather())


def megabytes(count):
    return "?" if count is None else f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"


def install(model, kind):
    """After model.make_train_function() or make_test_function(): ours in its place, where the step is Keras' own."""
    inner = getattr(model, kind + "_function")
    if inner is None or isinstance(inner, (Steps, Looks)) or not policy.is_adapting():
        return
    backend = backend_of(model)
    if kind == "test":
        if not isinstance(backend, str) and type(model).test_step is backend.own.test_step:
            model.test_function = Looks(model, inner, backend)
        return
    why = backend if isinstance(backend, str) else backend.why_not()
    if why:
        if not getattr(model, "_antifreeze_refused", False):
            object.__setattr__(model, "_antifreeze_refused", True)
            talk.event("refuse", f"the batch can not be split inside a step, because {why}")
        return
    model.train_function = Steps(model, inner, backend)
    talk.offer(shrink=sizing.shrink)
    talk.poll()  # should the guard have to end it in its first step, it should know of that


def backend_of(model):
    """One of ours for the backend that Keras has, or why there is none."""
    name = sys.modules["keras.src.backend"].backend()
    if name == "tensorflow":
        from . import keras_tf
        return keras_tf.Backend(model)
    if name == "torch":
        from . import keras_torch
        return keras_torch.Backend(model)
    return f"Keras runs on {name} here, whose steps cannot be repeated"
