"""Figures that the program's frameworks know and nobody outside can see: told to the probe, which keeps the last of each.

tell("batch_count", 64). The names are those of afz_told in antifreeze/wire.h, each with its unit. One that the probe does not
know is passed over, so that agent and probe may be of different ages; without the probe nothing happens at all. A figure that
was never told stays unknown: absent is not zero.
"""
PHASES = {"load": 1, "train": 2, "evaluate": 3, "save": 4}  # of the figure `phase`; 0: not known
MOST = (1 << 64) - 2  # the highest figure that can be told: the next one means "not told"

last = {}  # figures as they were last told

_put = None  # the probe's function, once looked for
_find = None
_indices = {}  # by name; None: not known to this probe
_looked = False


def connect():
    """Whether there is somebody to tell. As of clock.connect(): looked for once, when a framework has brought ctypes."""
    global _put, _find, _looked
    if not _looked:
        _looked = True
        try:
            import ctypes
            probe = getattr(ctypes, "PyDLL", ctypes.CDLL)(None)
            find, put = probe.antifreeze_told, probe.antifreeze_tell
            find.argtypes, find.restype = (ctypes.c_char_p,), ctypes.c_int
            put.argtypes, put.restype = (ctypes.c_int, ctypes.c_uint64), None
            _find, _put = find, put
        except Exception:  # no ctypes, no probe, or an older one
            pass
    return _put is not None


def index(name):
    """What the probe calls it; None: it does not know it."""
    found = _find(name.encode()) if connect() else -1
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
        _put(which, value if 0 <= value <= MOST else 0 if value < 0 else MOST)


def phase(name):
    tell("phase", PHASES.get(name, 0))
