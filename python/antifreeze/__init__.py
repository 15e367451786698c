"""Antifreeze in a Python program. Under `antifreeze run` nothing has to be imported: steps of PyTorch, Keras and TensorFlow
are counted by themselves. For any other loop:

    import antifreeze
    for batch in antifreeze.steps(loader):
        ...

or antifreeze.step() at the start of each step. The rest, each in a line or two (docs/agent.md):

    micro(batch)                  a batch in parts that fit, with the same gradients
    autosave(model, optimizer)    checkpoints from which a killed run goes on
    on_checkpoint(fn)             fn saves when the guard asks for it
    guard()                       holds this process where no command can be put in front of it: notebooks, IDEs
    Loader(path, batch=256)       data from files, read ahead within a budget in bytes
    History(n)                    for what would else be kept in an endless list

All of it runs without Antifreeze, too. Nothing is loaded before it is asked for.
"""
import sys as _sys

# All parts are of a package named _antifreeze, which the agent that `antifreeze run` lets into this process has made already:
# so there is one clock, whichever copy of this file is imported, and no part of it hides a function of the same name here.
if "_antifreeze" not in _sys.modules:
    _sys.modules["_antifreeze"] = type(_sys)("_antifreeze")
    _sys.modules["_antifreeze"].__path__ = list(__path__)
from _antifreeze import clock as _clock

step = _clock.step
steps = _clock.steps

__version__ = "0.1.0"
_PLACES = {
    "History": "history",
    "Loader": "feed.loader",
    "LoaderError": "feed.loader",
    "autosave": "save.saving",
    "bound": "feed.bound",
    "guard": "guard",
    "micro": "split.micro",
    "on_checkpoint": "save.saving",
}
__all__ = ["step", "steps", *_PLACES]


def __getattr__(name):
    if name not in _PLACES:
        raise AttributeError(f"module 'antifreeze' has no attribute {name!r}")
    __import__("_antifreeze." + _PLACES[name])
    value = globals()[name] = getattr(_sys.modules["_antifreeze." + _PLACES[name]], name)
    return value


def __dir__():
    return sorted([*globals(), *_PLACES])
