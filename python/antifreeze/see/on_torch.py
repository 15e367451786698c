"""PyTorch: optimizers tick, and time in a DataLoader is waiting. Lightning, the Hugging Face Trainer and accelerate come
through here.

A step begins when an optimizer is called. That is once for several backward passes (gradient accumulation), not at all when
a GradScaler skips the step, and once however often a closure is called (LBFGS; Lightning has the whole step in one).

Beside the clock it tells what the memory is for (see/torch_memory.py), which phase the program is in, and when memory ran out.
"""
import functools
import sys

from .. import clock, tell
from . import oom

OLDEST = (2, 3)  # has torch.compiler.is_compiling(), without which we might get in the way of torch.compile
TRAIN = tell.PHASES["train"]

_trained = None  # weak reference to the model that is trained
_trains_in_eval = False  # it is trained though it is set to eval(): then that says nothing


def known_torch():
    torch = sys.modules["torch"]
    return torch if tuple(map(int, torch.__version__.split(".")[:2])) >= OLDEST else None


def is_training():
    return tell.last.get("phase") == TRAIN


def memory():
    from . import torch_memory
    return torch_memory


def optimizers(module):
    """torch.optim.optimizer, in the middle of the import of torch"""
    torch = known_torch()
    if not torch:
        return
    start(torch)
    ledger = memory()

    def tick(optimizer, args, kwargs):
        if not is_training():
            trains(optimizer)
        clock.tick(optimizer)
        if ledger.is_due:
            ledger.on_step(optimizer, len(args) + len(kwargs) > 1)

    def compiled(optimizer, args, kwargs):
        # torch.compile reads the hook along with step(). Torch's own optimizers break the graph at their start anyway, so another
        # break costs nothing; one of the program's may be compiled whole, and must stay so: it is not counted.
        if optimizer.__class__.__module__.startswith("torch.optim."):
            tick(optimizer, args, kwargs)

    tick._torchdynamo_disable = True  # as torch.compiler.disable() does it, which would import half of torch
    module.register_optimizer_step_pre_hook(clock.ticking(torch, compiled, tick))
    zeroed(module.Optimizer, torch)


def start(torch):
    """With the first of torch's modules that is there."""
    memory().start(torch)
    oom.watch()
    if not tell.last.get("phase"):
        tell.phase("load")


def trains(optimizer):
    """Training begins, or goes on after something else."""
    global _trained, _trains_in_eval
    tell.phase("train")
    try:
        if _trained is None or _trained() is None:
            root = memory().root_of(optimizer)
            _trained = root and memory().ref(root)
            notebook()
        model = _trained and _trained()
        if model is not None and not model.training:
            _trains_in_eval = True
    except Exception:
        pass


def is_evaluating(torch):
    """A batch is asked for: for an evaluation?"""
    if not torch.is_grad_enabled():
        return True
    if _trains_in_eval or _trained is None:
        return False
    model = _trained()
    return model is not None and not model.training


def zeroed(kind, torch):
    """zero_grad() of optimizers and models. It is listened to now and then; in between nothing of ours is there."""
    inner = kind.zero_grad
    on_zero = memory().accumulation.on_zero

    @functools.wraps(inner)
    def zero_grad(self, *args, **kwargs):
        if not torch.compiler.is_compiling():
            try:
                on_zero(self, clock.waited)
            except Exception:
                pass
        return inner(self, *args, **kwargs)

    def listen(begins):
        if kind.zero_grad is (inner if begins else zero_grad):
            kind.zero_grad = zero_grad if begins else inner

    memory().await_zero.append(listen)


def modules(module):
    """torch.nn.modules.module"""
    torch = known_torch()
    if torch:
        models = memory().models

        def antifreeze_part(whole, name, part):
            try:
                models.on_part(whole, name, part)
            except Exception:
                pass

        module.register_module_module_registration_hook(antifreeze_part)
        zeroed(module.Module, torch)


def autograd(module):
    """torch.autograd: whether a backward pass begins is asked for now and then, and in between nothing of ours is there."""
    torch = known_torch()
    if not torch:
        return
    ledger = memory()
    inner = None

    def backward(*args, **kwargs):
        if inner is None:  # somebody has kept it
            return ordinary(*args, **kwargs)
        if not torch.compiler.is_compiling():
            leave()
            ledger.look_at_activations()
        return ordinary(*args, **kwargs)

    def come():
        nonlocal inner
        if inner is None:
            inner, module.backward = module.backward, backward

    def leave():
        nonlocal inner
        if module.backward is backward:
            module.backward = inner
        inner = None

    ordinary = functools.update_wrapper(backward, module.backward).__wrapped__
    ledger.await_backward = come


def cuda(module):
    """torch.cuda. What is queued there is done when the program first uses CUDA, and never if it does not: to bring CUDA up
    for it would take the memory of a context, and break a fork()."""
    torch = known_torch()
    if torch:
        memory().start(torch)
        if module.is_initialized():
            memory().on_cuda()
        else:
            module._queued_calls.append((memory().on_cuda, []))


def serialization(module):
    """torch.serialization: a checkpoint is being written."""
    torch = known_torch()
    if not torch:
        return
    inner = module.save

    @functools.wraps(inner)
    def save(*args, **kwargs):
        before = tell.phase("save")
        try:
            return inner(*args, **kwargs)
        finally:
            tell.phase(before)

    module.save = save
    if getattr(torch, "save", None) is inner:
        torch.save = save


def how_applied():
    """For an optimizer that is not torch's, but works with it (Keras)."""
    torch = known_torch()
    ledger = memory()

    def applied(optimizer):
        if not torch.compiler.is_compiling():
            clock.tick(optimizer)
            if ledger.is_due:
                ledger.on_step()

    return torch and applied


def loaders(module):
    """torch.utils.data.dataloader"""
    torch = known_torch()
    if not torch:
        clock.time_next(module._BaseDataLoaderIter)
        return
    from . import inputs
    loader = module.DataLoader
    begins = loader.__iter__

    def on_batch(iterator, batch):
        is_for_training = not is_evaluating(torch)
        if not is_for_training and is_training():
            tell.phase("evaluate")
            memory().on_left()
        inputs.on_batch(iterator, batch, is_for_training)

    @functools.wraps(begins)
    def __iter__(self):
        clock.look_ns = 0
        return begins(self)

    clock.time_next(module._BaseDataLoaderIter, on_batch)
    loader.__iter__ = __iter__
    inputs.clamped(module._MultiProcessingDataLoaderIter)


def notebook():
    """In IPython a cell ends without the program ending: then it is to be seen what it left, and what it died of."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if not shell:
        return
    seen = 0

    def antifreeze_cell(result=None):
        nonlocal seen
        try:
            error = getattr(result, "error_in_exec", None)
            if error is not None:
                oom.caught(error)
            if clock.count > seen:
                seen = clock.count
                memory().forget_time()
                memory().on_left()
        except Exception:
            pass

    shell.events.register("post_run_cell", antifreeze_cell)
