"""Several processes (ranks) that train one model together by DistributedDataParallel. They meet once a step: on the way back, where
their gradients are averaged. So each of them may make its part of a batch in parts by itself, if it meets the others in the last
part alone (torch's own no_sync()). A pass in which it has met them cannot be made again; then all are started anew, with smaller
parts, by the guard's decision (ANTIFREEZE_LEAN).

What meets more often (FSDP, a BatchNorm over all ranks) is not split at all.
"""
import contextlib
import functools
import sys
import threading
import weakref

here = threading.local()  # .alone: the part that this thread is at is not the last of its step; .model: the DDP that it is in
_wrapped = weakref.WeakSet()  # models that are in a DDP


def models(module):
    """torch.nn.parallel.distributed: the wrapper is passed through, and the model in it is cared for as if it were alone."""
    from .. import policy
    if not policy.is_adapting():
        return
    torch, kind = sys.modules["torch"], module.DistributedDataParallel
    inner = getattr(kind.__call__, "__wrapped__", kind.__call__)  # split/torch_loop.py is for what is inside

    @functools.wraps(inner)
    def __call__(self, *args, **kwargs):
        if torch.compiler.is_compiling():
            return inner(self, *args, **kwargs)
        _wrapped.add(self.module)
        before, here.model = getattr(here, "model", None), self
        try:
            with self.no_sync() if getattr(here, "alone", False) else contextlib.nullcontext():
                return inner(self, *args, **kwargs)
        finally:
            here.model = before

    kind.__call__ = __call__


@contextlib.contextmanager
def apart(is_apart):
    """What is called in it does not meet other ranks."""
    before, here.alone = getattr(here, "alone", False), is_apart
    try:
        yield
    finally:
        here.alone = before


def meets_once(model):
    """Whether this is a model of several ranks, wrapped or not, that meet on the way back alone."""
    sync = sys.modules["torch"].nn.SyncBatchNorm
    is_known = type(model).__name__ == "DistributedDataParallel" or model is not None and model in _wrapped
    return is_known and not any(isinstance(layer, sync) for layer in model.modules())


def own(model):
    """What is inside of a DDP, which has figures of its own that move with each pass; else the model itself."""
    return model.module if type(model).__name__ == "DistributedDataParallel" else model


def is_inside():
    """Whether the call that this thread is in is of the model inside, which is this rank's own."""
    return meets_once(getattr(here, "model", None))


def has_met(model):
    """At the beginning of this step: a forward pass that is made again must not ask for the others' buffers again."""
    if hasattr(model, "require_forward_param_sync"):
        model.require_forward_param_sync = False
