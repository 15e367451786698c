"""PyTorch: optimizers tick, and time in a DataLoader is waiting. Lightning, the Hugging Face Trainer and accelerate come
through here.

A step begins when an optimizer is called. That is once for several backward passes (gradient accumulation), not at all when
a GradScaler skips the step, and once however often a closure is called (LBFGS; Lightning has the whole step in one).
"""
import sys

from . import clock


OLDEST = (2, 3)  # has torch.compiler.is_compiling(), without which we might get in the way of torch.compile


def known_torch():
    torch = sys.modules["torch"]
    return torch if tuple(map(int, torch.__version__.split(".")[:2])) >= OLDEST else None


def optimizers(module):
    """torch.optim.optimizer, in the middle of the import of torch"""
    torch = known_torch()
    if not torch:
        return

    def tick(optimizer):
        clock.tick(optimizer)

    def antifreeze_step(optimizer, _args, _kwargs):
        # torch.compile reads this along with step(). Torch's own optimizers break the graph at their start anyway, so another
        # break costs nothing; one of the program's may be compiled whole, and must stay so: it is not counted.
        if torch.compiler.is_compiling() and not optimizer.__class__.__module__.startswith("torch.optim."):
            return
        tick(optimizer)

    tick._torchdynamo_disable = True  # as torch.compiler.disable() does it, which would import half of torch
    module.register_optimizer_step_pre_hook(antifreeze_step)


def how_applied():
    """For an optimizer that is not torch's, but works with it (Keras)."""
    torch = known_torch()

    def applied(optimizer):
        if not torch.compiler.is_compiling():
            clock.tick(optimizer)

    return torch and applied


def loaders(module):
    """torch.utils.data.dataloader"""
    clock.time_next(module._BaseDataLoaderIter)
