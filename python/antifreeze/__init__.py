"""Antifreeze in a Python program. Under `antifreeze run` nothing has to be imported: steps of PyTorch, Keras and TensorFlow
are counted by themselves. For any other loop:

    import antifreeze
    for batch in antifreeze.steps(loader):
        ...

or antifreeze.step() at the start of each step. Both do nothing when the program is not run by Antifreeze.
"""
# The agent that `antifreeze run` has let into this process has the one clock, whichever copy of this package is imported.
try:
    from _antifreeze import clock
except ImportError:
    from . import clock

step = clock.step
steps = clock.steps

__version__ = "0.1.0"
__all__ = ["step", "steps"]
