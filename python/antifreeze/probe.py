"""The probe in this process: its functions, through ctypes. Not under `antifreeze run`, with --no-probe or in a static Python it
is not there. Asked for when a framework is, which has brought ctypes itself."""
_found = {}  # by name; None: it is not there


def function(name, result=None, *arguments):
    """The function of that name, or None. The types are those of ctypes, by name."""
    if name not in _found:
        try:
            import ctypes
            # PyDLL keeps the interpreter's lock: to give it away for some nanoseconds would let other threads in between.
            # PyPy has none.
            made = getattr(getattr(ctypes, "PyDLL", ctypes.CDLL)(None), name)
            made.argtypes = tuple(getattr(ctypes, one) for one in arguments)
            made.restype = result and getattr(ctypes, result)
        except Exception:  # no ctypes, no probe, or an older one
            made = None
        _found[name] = made
    return _found[name]
