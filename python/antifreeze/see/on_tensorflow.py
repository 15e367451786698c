"""TensorFlow: loops of one's own, and what they wait for tf.data.

Code inside a tf.function is run once, when it is traced, and never again. So an optimizer that is applied there is noted to
be part of the outermost function that is being traced, and from then on each call of that function lets it tick: the optimizer,
not the function, which may be made anew for each step. A loop over the data that is inside a tf.function is one call: one step.

Beside the clock: how often functions are traced anew, how many variables there are, errors that mean out of memory, and what
tf.data holds (see/tf_data.py).
"""
import functools
import sys
import threading
import weakref

from .. import clock
from ..tell import tell
from . import oom

FILES = 4096  # functions by their code; a program has hundreds

_stepping = weakref.WeakKeyDictionary()  # functions to the optimizers that are in them
_here = threading.local()  # .outermost: the function that this thread is in
_anywhere = []  # the same of any thread: a distribution strategy traces in threads of its own
_traced = set()  # code of functions that were traced once
_retraces = 0
_variables = {}  # id to weak reference


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
        optimizers = _stepping.get(self)
        if optimizers is not None:
            if oom.pending is not None:  # the program has swallowed it
                oom.told()
            for optimizer in list(optimizers) or (self,):
                clock.tick(optimizer)
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
            _stepping.setdefault(outermost, weakref.WeakSet()).add(optimizer)

    return applied


def iterators(module):
    """tensorflow.python.data.ops.iterator_ops: `for batch in dataset`. What fit() waits for is inside its tf.function: unseen."""
    clock.time_next(module.OwnedIterator)
    from . import tf_data
    tf_data.iterators(module)


def tracing(module):
    """tensorflow.python.eager.polymorphic_function.tracing_compilation. A function that is made anew for each step is another one
    each time, but its code is the same: that counts as traced anew, too."""
    inner = module._create_concrete_function

    @functools.wraps(inner)
    def _create_concrete_function(*args, **kwargs):
        result = inner(*args, **kwargs)
        try:
            traced(options_of(args, kwargs))
        except Exception:
            pass
        return result

    module._create_concrete_function = _create_concrete_function


def options_of(args, kwargs):
    return next(one for one in (*args, *kwargs.values()) if hasattr(one, "python_function"))


def traced(options):
    """Keras and ours make the same function for each model: only who is traced by the program's own hand counts by its code."""
    global _retraces
    function = options.python_function
    while hasattr(function, "__wrapped__") and not hasattr(function, "__code__"):
        function = function.__wrapped__
    code = getattr(innermost(function), "__code__", None)
    path = getattr(code, "co_filename", "")
    if code is None or "/site-packages/" in path or "/dist-packages/" in path:
        is_again = len(options.function_cache) > 0  # what was traced just now is not in it yet
    else:
        is_again = code in _traced
        if len(_traced) < FILES:
            _traced.add(code)
    if is_again:
        _retraces += 1
    if is_again or not _retraces:
        tell("retraces_count", _retraces)


def innermost(function):
    """TensorFlow wraps what is decorated; a method is bound, too."""
    for _ in range(16):
        further = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None) or \
            getattr(function, "_python_function", None)
        if further is None:
            return function
        function = further
    return function


def variables(module):
    """tensorflow.python.ops.resource_variable_ops"""
    kind = module.BaseResourceVariable
    inner = kind.__init__

    @functools.wraps(inner)
    def __init__(self, *args, **kwargs):
        inner(self, *args, **kwargs)
        try:
            key = id(self)
            _variables[key] = weakref.ref(self, lambda _: gone(key))
            tell("variables_count", len(_variables))
        except Exception:
            pass

    kind.__init__ = __init__


def gone(key, is_ending=sys.is_finalizing):
    """At the end of the program all go; what was there before is what counts."""
    if not is_ending():
        _variables.pop(key, None)
        tell("variables_count", len(_variables))


def errors(module):
    """tensorflow.python.framework.errors_impl: errors that mean out of memory are noticed when they are made, swallowed or not."""
    kind = module.OpError
    inner = kind.__init__

    @functools.wraps(inner)
    def __init__(self, node_def, op, message, error_code, *args):
        inner(self, node_def, op, message, error_code, *args)
        try:
            if error_code == RESOURCE_EXHAUSTED or "Dst tensor is not initialized" in str(message):
                device = oom.is_oom(self)
                if device:
                    oom.noticed(device=device, asked_bytes=asked_bytes(str(message)))
        except Exception:
            pass

    kind.__init__ = __init__


RESOURCE_EXHAUSTED = 8  # of TensorFlow's codes


def asked_bytes(text):
    """'OOM when allocating tensor with shape[64,64,64,64] and type float on ...'"""
    try:
        shape, _, rest = text.partition("with shape[")[2].partition("]")
        count = 1
        for side in shape.split(",") if shape else ():
            count *= int(side)
        width = {"double": 8, "int64": 8, "half": 2, "bfloat16": 2, "bool": 1, "int8": 1, "uint8": 1}
        return count * width.get(rest.partition("and type ")[2].split(None, 1)[0], 4) if shape else None
    except (ValueError, IndexError):
        return None


def gpu_figures():
    """What the allocator of the first GPU has: called between steps, some times a second."""
    info = sys.modules["tensorflow"].config.experimental.get_memory_info

    def look():
        try:
            figures = info("GPU:0")
            tell("gpu_allocated_bytes", figures["current"])
            tell("gpu_allocated_peak_bytes", figures["peak"])
        except Exception:
            pass

    return look
