"""When memory is short, the guard asks for less: then each loader of this process makes do with half of what it has, down to what
a batch needs. So does a smaller step, where there is one (split/sizing.py): all who can are asked.
"""
import weakref

from .. import clock, talk
from .arguments import say_bytes

_open = weakref.WeakSet()


def offer(loader):
    """This one can be asked from now on."""
    _open.add(loader)
    talk.offer(less=shrink)


def withdraw(loader):
    _open.discard(loader)


def shrink():
    """Whether any could."""
    return any([halve(loader) for loader in list(_open)])


def halve(loader):
    before = loader.allowed_bytes
    after = max(loader.floor_bytes, before // 2)
    if after >= before:
        return False
    if loader.shrink(after):
        talk.event("note", f"the loader makes do with {say_bytes(after)}, before it had {say_bytes(before)}")
    else:
        talk.event("note", "the loader keeps fewer batches ready; with less it would have another order than the other ranks")
    return True


def hear(_loop, _batch):
    """Of a program that has no steps nobody else hears what the guard says."""
    if not clock.count:
        talk.poll()
