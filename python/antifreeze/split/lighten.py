"""Keeps less of a model for the way back, when one sample alone does not fit: its blocks are computed again in backward instead
(activation checkpointing). It is exact, random draws included, and takes about a third more time. Models of Hugging Face know
how; else blocks in a row are found: several of one kind in a ModuleList, or a long Sequential.

A block's class is wrapped, not the block: a model that is saved whole or copied stays as it was.
"""
import functools
import weakref

BLOCKS = 2  # of one kind in a row
LAYERS = 4  # of a Sequential; it is cut into about as many stretches as each is long

_light = weakref.WeakSet()  # blocks that are computed again
_wrapped = set()  # classes whose forward is ours
_done = weakref.WeakSet()


def lighten(model):
    """Whether something could be done that was not done before."""
    if model is None or model in _done:
        return False
    _done.add(model)
    names = of_its_own(model) or blocks(model)
    if names:
        from .. import talk
        talk.event("note", f"one sample alone does not fit: {names} computed again on the way back instead of kept, which takes a third longer")
    return bool(names)


def of_its_own(model):
    for layer in model.modules():
        if getattr(layer, "supports_gradient_checkpointing", False) and not getattr(layer, "is_gradient_checkpointing", True):
            layer.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            if not layer.is_gradient_checkpointing:
                continue
            return f"the blocks of {type(layer).__name__} are"
    return None


def blocks(model):
    import torch
    found = None
    for layer in model.modules():
        children = list(layer.children())
        if isinstance(layer, torch.nn.ModuleList) and len(children) >= BLOCKS and len({type(c) for c in children}) == 1:
            for child in children:
                wrap(child)
            found = found or f"{len(children)} blocks ({type(children[0]).__name__}) are"
        elif isinstance(layer, torch.nn.Sequential) and len(children) >= LAYERS and layer not in _light:
            wrap(layer)
            found = found or f"the {len(children)} layers of a Sequential are"
    return found


def wrap(block):
    _light.add(block)
    kind = type(block)
    if kind in _wrapped:
        return
    _wrapped.add(kind)
    inner = kind.forward

    @functools.wraps(inner)
    def forward(self, *args, **kwargs):
        if self not in _light or not self.training:
            return inner(self, *args, **kwargs)
        return again(inner, self, args, kwargs)

    kind.forward = forward


def again(inner, block, args, kwargs):
    import torch
    from torch.utils import checkpoint
    if not torch.is_grad_enabled():
        return inner(block, *args, **kwargs)
    if isinstance(block, torch.nn.Sequential) and len(args) == 1 and not kwargs:
        return checkpoint.checkpoint_sequential(list(block), max(2, round(len(block) ** .5)), args[0], use_reentrant=False)
    return checkpoint.checkpoint(functools.partial(inner, block), *args, use_reentrant=False, **kwargs)
