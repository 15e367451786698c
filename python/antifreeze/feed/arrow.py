"""What the program itself reads, as Arrow streams for the loader's threads (struct afz_source of include/antifreeze/loader.h).

These threads call Python. So nothing may be called any more once the interpreter ends (detach_all), and a loader that is let go of
within such a call is closed by another thread: it would wait for itself.
"""
import atexit
import ctypes
import errno
import os
import threading
import weakref

from . import native

OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)

_callers = set()  # threads of loaders that have called
_handles = weakref.WeakSet()  # of loaders that may call


class Column(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("field", ctypes.c_uint32), ("at", ctypes.c_uint64), ("numbers", ctypes.c_uint64)]


class Told(ctypes.Structure):  # struct afz_source
    _fields_ = [("own", ctypes.c_void_p), ("open", OPEN), ("parts", ctypes.c_uint64), ("part_rows", ctypes.POINTER(ctypes.c_uint64)),
                ("fields", ctypes.c_uint32), ("columns", ctypes.c_uint32), ("field", ctypes.POINTER(native.Field)),
                ("column", ctypes.POINTER(Column)), ("heap_bytes", ctypes.c_uint64), ("index_bytes", ctypes.c_uint64),
                ("is_null_nan", ctypes.c_uint8)]


class Array:
    """A field of the samples: columns of one shape, side by side. shape: of a sample."""

    def __init__(self, name, columns, dtype, shape, numbers):
        self.name, self.columns, self.dtype, self.shape = name, columns, dtype, shape
        self.numbers = numbers  # of each column


class Source:
    """What a loader reads from. reader(part): its name in a sentence, and a pyarrow.RecordBatchReader; called by any thread.

    advice(budget_bytes): what is said of a budget that is too small.
    """

    def __init__(self, arrays, part_rows, reader, advice, *, heap_bytes, index_bytes, is_null_nan):
        columns, fields = [], []
        for i, array in enumerate(arrays):
            columns += [Column(name.encode(), i, place * array.numbers, array.numbers) for place, name in enumerate(array.columns)]
            fields.append(native.Field(array.name.encode()[:31], native.DTYPES.index(array.dtype.name), len(array.shape),
                                       (ctypes.c_uint64 * native.DIMENSIONS_MAX)(*array.shape)))
        self.advice = advice
        self.threads = len(os.sched_getaffinity(0))  # those that wait for the interpreter's lock would look like such for a disk
        self._told = Told(None, OPEN(exporter(reader)), len(part_rows), (ctypes.c_uint64 * len(part_rows))(*part_rows), len(fields),
                          len(columns), (native.Field * len(fields))(*fields), (Column * len(columns))(*columns), heap_bytes, index_bytes,
                          is_null_nan)

    def address(self):
        return ctypes.addressof(self._told)

    def handle(self, loader, library):
        """The handle of a loader that has this source, which stays as long as that has threads."""
        handle = native.Handle(loader, lambda loader: end_elsewhere(library.afz_loader_close, loader, self))
        _handles.add(handle)
        return handle


def exporter(reader):
    def export(own, part, stream, words):
        _callers.add(threading.get_ident())
        try:
            name, batches = reader(part)
            batches._export_to_c(stream)
            put(words, name)
            return 0
        except BaseException as error:  # there is nobody to raise it to
            put(words, str(error) or type(error).__name__)
            return -(getattr(error, "errno", None) or errno.EIO)

    return export


def put(words, text):
    """Into C's buffer for a sentence."""
    packed = text.encode("utf-8", "replace")[:native.WHY_MAX - 1] + b"\0"
    ctypes.memmove(words, packed, len(packed))


def end_elsewhere(close, loader, source):
    if threading.get_ident() in _callers:
        threading.Thread(target=lambda source=source: close(loader), name="antifreeze-close").start()
    else:
        close(loader)


@atexit.register
def detach_all():
    for handle in list(_handles):
        native.library().afz_loader_detach(handle)
