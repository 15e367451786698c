"""Keras 3 on each of its backends: a batch of fit() is a step, and so is an optimizer that is applied in a loop of one's own.

fit() tells its callbacks of each batch, or of several at once (steps_per_execution). An optimizer that is applied ticks where
code is run as it is written (torch, TensorFlow's eager mode); inside a tf.function see on_tensorflow. Under JAX it is
compiled away: there, fit() alone is seen.
"""
import functools
import sys

from . import clock


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
        clock.tick(self)
        first = getattr(self, "_antifreeze_batch", batch)
        if isinstance(batch, int) and isinstance(first, int):
            clock.more(batch - first)
        return end(self, batch, logs)

    kind.on_train_batch_begin, kind.on_train_batch_end = on_train_batch_begin, on_train_batch_end


def optimizers(module):
    """keras.src.optimizers.base_optimizer"""
    applied = how_applied(sys.modules["keras.src.backend"].backend())
    if not applied:
        return
    kind = module.BaseOptimizer
    inner = kind.apply

    @functools.wraps(inner)
    def apply(self, *args, **kwargs):
        result = inner(self, *args, **kwargs)
        applied(self)
        return result

    kind.apply = apply


def how_applied(backend):
    """What is called with an optimizer that was applied; None: it cannot be told when that is."""
    if backend == "tensorflow":
        from . import on_tensorflow
        return on_tensorflow.how_applied()
    if backend == "torch":
        from . import on_torch
        return on_torch.how_applied()
    return None
