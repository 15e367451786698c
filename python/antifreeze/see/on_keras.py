"""Keras 3 on each of its backends: a batch of fit() is a step, and so is an optimizer that is applied in a loop of one's own.

fit() tells its callbacks of each batch, or of several at once (steps_per_execution). An optimizer that is applied ticks where
code is run as it is written (torch, TensorFlow's eager mode); inside a tf.function see on_tensorflow. Under JAX it is
compiled away: there, fit() alone is seen.

Beside the clock: which phase it is in, what the model takes (with TensorFlow behind it; of torch see torch_memory), under
--policy adapt the batches that do not fit (split_keras), and mixed precision on request (--amp).
"""
import functools
import sys

from .. import clock
from ..tell import PHASES, phase as set_phase, tell
from . import oom


def callbacks(module):
    """keras.src.callbacks; batches are counted when they are done: one that finds no more data was none."""
    kind = module.CallbackList
    begin, end = kind.on_train_batch_begin, kind.on_train_batch_end

    @functools.wraps(begin)
    def on_train_batch_begin(self, batch, logs=None):
        self._antifreeze_batch = batch
        return begin(self, batch, logs)

    @functools.wraps(end)
    def on_train_batch_end(self, batch, logs=None):
        if oom.pending is not None:  # nobody has caught it who tells: the program has, and goes on
            oom.told()
        clock.tick(self)
        first = getattr(self, "_antifreeze_batch", batch)
        if isinstance(batch, int) and isinstance(first, int):
            clock.more(batch - first)
        if not getattr(self, "_antifreeze_weighed", False):
            self._antifreeze_weighed = True
            quietly(weigh, self)
            quietly(tell_saved, self)
        return end(self, batch, logs)

    kind.on_train_batch_begin, kind.on_train_batch_end = on_train_batch_begin, on_train_batch_end
    phases(kind)


def phases(kind):
    """What fit() is in, and evaluate() inside of it: after that it is in what it was before."""
    for begins, ends, phase in (("on_train_begin", "on_train_end", "train"), ("on_test_begin", "on_test_end", "evaluate"),
                                ("on_predict_begin", "on_predict_end", "evaluate")):
        setattr(kind, begins, entered(getattr(kind, begins), phase))
        setattr(kind, ends, left(getattr(kind, ends)))


def entered(inner, phase):
    @functools.wraps(inner)
    def begin(self, *args, **kwargs):
        self.__dict__.setdefault("_antifreeze_phases", []).append(set_phase(PHASES[phase]))
        return inner(self, *args, **kwargs)

    return begin


def left(inner):
    @functools.wraps(inner)
    def end(self, *args, **kwargs):
        result = inner(self, *args, **kwargs)
        stack = self.__dict__.get("_antifreeze_phases")
        before = stack.pop() if stack else 0
        set_phase(0 if before == PHASES["load"] else before)  # what was loaded before it is loaded now
        return result

    return end


def saving(module):
    """keras.src.saving.saving_lib"""
    from .. import policy
    if policy.is_adapting():
        from ..save import on_keras
        module.save_model, module.save_weights_only = map(on_keras.whole, (module.save_model, module.save_weights_only))
    for name, phase in (("save_model", "save"), ("save_weights_only", "save"), ("load_model", "load"), ("load_weights_only", "load")):
        inner = getattr(module, name, None)
        if inner:
            setattr(module, name, during(inner, PHASES[phase]))


def during(inner, phase):
    @functools.wraps(inner)
    def call(*args, **kwargs):
        before = set_phase(phase)
        try:
            return inner(*args, **kwargs)
        finally:
            set_phase(before)

    return call


def weigh(callbacks):
    """What the model takes, once it has made a step: by then everything is there that stays."""
    model = callbacks.model
    if sys.modules["keras.src.backend"].backend() != "tensorflow":
        return
    where = tell_trained(model.trainable_variables)
    tell(where + "buffers_bytes", size_of(model.non_trainable_variables))
    if model.optimizer is not None:
        tell(where + "optimizer_bytes", size_of(model.optimizer.variables))
    if where:
        from . import on_tensorflow
        clock.turns.append(on_tensorflow.gpu_figures())


def foretell(optimizer, variables):
    """Before it makes its state: what it is about to take, since a model that is too large gets no further. One that is made of
    others has told of theirs."""
    if hasattr(optimizer, "inner_optimizer") or hasattr(optimizer, "_inner_optimizers"):
        return
    known = (AVERAGES[kind.__name__] for kind in type(optimizer).__mro__ if kind.__name__ in AVERAGES)
    where = tell_trained(variables)
    tell(where + "optimizer_bytes", size_of(variables) * next(known, bool(getattr(optimizer, "momentum", 0))))


# Numbers that are kept for each weight.
AVERAGES = {"Adam": 2, "Nadam": 2, "Adamax": 2, "Ftrl": 2, "Adadelta": 2, "Lamb": 2, "ScheduleFreeAdamW": 2, "RMSprop": 1, "Adagrad": 1, "Lion": 1}


def tell_trained(variables):
    """Weights, and gradients of the same size. Returns where they are, as figures are called there."""
    where = "gpu_" if any("GPU" in variable.value.device for variable in variables[:1]) else ""
    for kind in ("parameters", "gradients"):
        tell(f"{where}{kind}_bytes", size_of(variables))
    return where


def tell_saved(callbacks):
    from ..split import amp
    if amp.is_wanted():
        amp.tell_saved(callbacks.model)


def size_of(variables):
    total = 0
    for variable in variables:
        count = 1
        for side in variable.shape:
            count *= side
        total += count * WIDTHS.get(str(variable.dtype), 4)
    return total


WIDTHS = {"float64": 8, "int64": 8, "uint64": 8, "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "int8": 1, "uint8": 1, "bool": 1}


def quietly(function, *args):
    try:
        function(*args)
    except Exception:
        pass


def optimizers(module):
    """keras.src.optimizers.base_optimizer"""
    applied = how_applied(sys.modules["keras.src.backend"].backend())
    if not applied:
        return
    kind = module.BaseOptimizer
    inner, inner_build = kind.apply, kind.build

    @functools.wraps(inner)
    def apply(self, *args, **kwargs):
        result = inner(self, *args, **kwargs)
        applied(self)
        return result

    @functools.wraps(inner_build)
    def build(self, variables):
        if sys.modules["keras.src.backend"].backend() == "tensorflow":
            quietly(foretell, self, variables)
        return inner_build(self, variables)

    kind.apply, kind.build = apply, build


def how_applied(backend):
    """What is called with an optimizer that was applied; None: it cannot be told when that is."""
    if backend == "tensorflow":
        from . import on_tensorflow
        return on_tensorflow.how_applied()
    if backend == "torch":
        from . import on_torch
        return on_torch.how_applied()
    return None


def trainer(module):
    """keras.src.backend.tensorflow.trainer, .torch.trainer or .jax.trainer: what fit() and train_on_batch() call is made there."""
    from .. import policy
    if not policy.is_adapting():
        return
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == module.__name__ and "make_train_function" in vars(kind):
            kind.make_train_function = splitting(kind.make_train_function, "train")
            kind.make_test_function = splitting(kind.make_test_function, "test")
            if module.__name__.endswith(".torch.trainer"):
                from ..split import keras_torch
                kind._symbolic_build = keras_torch.building(kind._symbolic_build)
    quietly(leave_alone)


def leave_alone():
    """Keras' layers are torch's modules, too, where torch is behind it: split/torch_loop.py is not to split what we do."""
    kind = getattr(sys.modules.get("keras.src.backend.torch.layer"), "TorchLayer", None)
    if kind is not None:
        call = kind.__call__
        while hasattr(call, "__wrapped__"):
            call = call.__wrapped__
        kind.__call__ = call


def splitting(inner, which):
    @functools.wraps(inner)
    def make_function(self, *args, **kwargs):
        result = inner(self, *args, **kwargs)
        quietly(install, self, which)
        return result

    return make_function


def install(model, which):
    from ..split import keras_step
    keras_step.install(model, which)


def policies(module):
    """keras.src.dtype_policies.dtype_policy: before any layer is made. A policy of the program's own comes later, and counts."""
    from ..split import amp
    if not amp.is_wanted():
        return
    if amp.is_worth_keras():
        module.set_dtype_policy("mixed_bfloat16")
