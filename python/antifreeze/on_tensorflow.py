"""TensorFlow: loops of one's own, and what they wait for tf.data.

Code inside a tf.function is run once, when it is traced, and never again. So an optimizer that is applied there is noted to
be part of the outermost function that is being traced, and from then on each call of that function is a step. A loop over
the data that is inside a tf.function itself is one call: one step.
"""
import functools
import sys
import threading
import weakref

from . import clock

_stepping = weakref.WeakSet()  # functions that have an optimizer in them
_here = threading.local()  # .outermost: the function that this thread is in
_anywhere = []  # the same of any thread: a distribution strategy traces in threads of its own


def functions(module):
    """tensorflow.python.eager.polymorphic_function.polymorphic_function"""
    kind = module.Function
    call = kind.__call__

    @functools.wraps(call)
    def __call__(self, *args, **kwargs):
        if getattr(_here, "outermost", None) is not None:
            return call(self, *args, **kwargs)
        _here.outermost = self
        _anywhere.append(self)
        try:
            result = call(self, *args, **kwargs)
        finally:
            _here.outermost = None
            _anywhere.remove(self)
        if self in _stepping:
            clock.tick(self)
        return result

    kind.__call__ = __call__


def how_applied():
    """For Keras: what is called with an optimizer that was applied."""
    executing_eagerly = sys.modules["tensorflow.python.eager.context"].executing_eagerly

    def applied(optimizer):
        if executing_eagerly():
            clock.tick(optimizer)
            return
        outermost = getattr(_here, "outermost", None)
        if outermost is None and _anywhere:
            outermost = _anywhere[-1]
        if outermost is not None:
            _stepping.add(outermost)

    return applied


def iterators(module):
    """tensorflow.python.data.ops.iterator_ops: `for batch in dataset`. What fit() waits for is inside its tf.function: unseen."""
    clock.time_next(module.OwnedIterator)
