"""Figures that the program's frameworks know and nobody outside can see: told to the probe, which keeps the last of each.

tell("batch_count", 64). The names are those of afz_told in antifreeze/wire.h, each with its unit. One that the probe does not
know is passed over, so that agent and probe may be of different ages; without the probe nothing happens at all. A figure that
was never told stays unknown: absent is not zero.
"""
from . import clock, probe

PHASES = {"load": 1, "train": 2, "evaluate": 3, "save": 4}  # of the figure `phase`; 0: not known
MOST = (1 << 64) - 2  # the highest figure that can be told: the next one means "not told"

last = {}  # figures as they were last told

_put = None  # the probe's function
_indices = {}  # by name; None: not known to this probe


def index(name):
    """What the probe calls it; None: it does not know it."""
    global _put
    find = probe.function("antifreeze_told", "c_int", "c_char_p")
    _put = probe.function("antifreeze_tell", None, "c_int", "c_uint64")
    found = find(name.encode()) if find and _put else -1
    _indices[name] = found if found >= 0 else None
    return _indices[name]


def tell(name, value):
    """The figure is this much now."""
    last[name] = value
    try:
        which = _indices[name]
    except KeyError:
        which = index(name)
    if which is not None:
        clock.tell()  # a figure is of the step in which it is told
        _put(which, value if 0 <= value <= MOST else 0 if value < 0 else MOST)


def phase(now):
    """The program is in another part of its work: a name of PHASES, or what this has returned, which is where it was before."""
    before = last.get("phase", 0)
    tell("phase", PHASES.get(now, now))
    clock.due_ns = 0  # who trains says so again
    return before
