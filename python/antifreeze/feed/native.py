"""The loader's C library through ctypes: structures as in include/antifreeze/loader.h, and arrays over leased memory."""
import ctypes
import errno
import os
import sys
import weakref
from collections import namedtuple

NAME = "libantifreeze-loader.so"
FIELDS_MAX, DIMENSIONS_MAX, WHY_MAX, STATE_BYTES = 8, 8, 512, 192
EPOCH_AT, BATCHES_AT = 48, 80  # of a state
UINT32_MAX, UINT64_MAX = (1 << 32) - 1, (1 << 64) - 1
PATIENCE_MS, LATE = 100, -errno.ETIME
DTYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "bool")

_library = None


class LoaderError(OSError):
    """With the sentence that says what, why, and the way out."""

    def __init__(self, why, number=None):
        super().__init__(number, why) if number else super().__init__(why)
        self.why = why

    def __str__(self):
        return self.why

    def __reduce__(self):  # OSError's own would hand the number over as the sentence
        return type(self), (self.why, self.errno)


class LoaderMemoryError(LoaderError, MemoryError):
    """The budget is too small for that, or there is no memory."""


class Field(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 32), ("dtype", ctypes.c_int), ("dimensions", ctypes.c_uint32),
                ("shape", ctypes.c_uint64 * DIMENSIONS_MAX), ("bytes", ctypes.c_uint64)]


class Image(ctypes.Structure):
    _fields_ = [("height", ctypes.c_uint32), ("width", ctypes.c_uint32), ("is_random_crop", ctypes.c_uint8),
                ("is_flipped", ctypes.c_uint8), ("is_float", ctypes.c_uint8), ("jitter", ctypes.c_float),
                ("mean", ctypes.c_float * 3), ("deviation", ctypes.c_float * 3)]


class Options(ctypes.Structure):
    _fields_ = [("paths", ctypes.POINTER(ctypes.c_char_p)), ("path_count", ctypes.c_uint32), ("format", ctypes.c_char_p),
                ("details", ctypes.c_char_p), ("image", Image), ("budget_bytes", ctypes.c_uint64), ("batch", ctypes.c_uint32),
                ("seed", ctypes.c_uint64), ("shuffle", ctypes.c_int), ("on_error", ctypes.c_int), ("is_last_dropped", ctypes.c_uint8),
                ("is_shared", ctypes.c_uint8), ("threads", ctypes.c_uint32), ("rank", ctypes.c_uint32), ("ranks", ctypes.c_uint32),
                ("start", ctypes.c_uint64), ("stop", ctypes.c_uint64), ("subset", ctypes.POINTER(ctypes.c_uint64)),
                ("subset_count", ctypes.c_uint64), ("weights", ctypes.POINTER(ctypes.c_double)), ("weight_count", ctypes.c_uint64),
                ("draws", ctypes.c_uint64), ("source", ctypes.c_void_p)]


class Facts(ctypes.Structure):
    _fields_ = [("samples", ctypes.c_uint64), ("batches", ctypes.c_uint64), ("budget_bytes", ctypes.c_uint64),
                ("floor_bytes", ctypes.c_uint64), ("group_samples", ctypes.c_uint64), ("shuffle_quality", ctypes.c_double),
                ("fields", ctypes.c_uint32), ("threads", ctypes.c_uint32), ("field", Field * FIELDS_MAX)]


class Batch(ctypes.Structure):
    _fields_ = [("lease", ctypes.c_uint64), ("count", ctypes.c_uint32), ("is_copy", ctypes.c_uint32),
                ("data", ctypes.c_void_p * FIELDS_MAX), ("epoch", ctypes.c_uint64), ("index", ctypes.c_uint64)]


State = ctypes.c_char * STATE_BYTES


class Shared(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("leases", ctypes.c_uint32), ("at", ctypes.c_void_p), ("bytes", ctypes.c_uint64)]


class ToldTimes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("read_ns", "read_bytes", "decode_ns", "decode_bytes", "gather_ns", "waited_ns",
                                                     "idle_ns", "skipped", "copies", "held", "held_most", "epoch", "epoch_ns",
                                                     "loading_ns", "loaded", "loads", "load_waits", "starved_ns", "gather_bytes")]


POINTER = ctypes.c_void_p
CALLS = {  # result, arguments
    "afz_loader_open": (ctypes.c_int, [ctypes.POINTER(Options), ctypes.POINTER(POINTER), ctypes.c_char_p]),
    "afz_loader_close": (None, [POINTER]),
    "afz_loader_detach": (None, [POINTER]),
    "afz_loader_facts": (None, [POINTER, ctypes.POINTER(Facts)]),
    "afz_loader_next": (ctypes.c_int, [POINTER, ctypes.POINTER(Batch), ctypes.c_char_p]),
    "afz_loader_next_within": (ctypes.c_int, [POINTER, ctypes.c_uint32, ctypes.POINTER(Batch), ctypes.c_char_p]),
    "afz_loader_wait": (ctypes.c_int, [POINTER, ctypes.c_uint32]),
    "afz_loader_pin": (ctypes.c_int, [POINTER, ctypes.POINTER(POINTER), ctypes.POINTER(ctypes.c_uint64)]),
    "afz_loader_release": (None, [POINTER, ctypes.c_uint64]),
    "afz_loader_shared": (ctypes.c_int, [POINTER, ctypes.POINTER(Shared)]),
    "afz_loader_state": (None, [POINTER, ctypes.c_char_p]),
    "afz_loader_renew": (None, [POINTER, ctypes.c_char_p]),
    "afz_loader_seek": (ctypes.c_int, [POINTER, ctypes.c_char_p, ctypes.c_char_p]),
    "afz_loader_begin": (ctypes.c_int, [POINTER, ctypes.c_uint64, ctypes.c_char_p]),
    "afz_loader_ask": (ctypes.c_int, [POINTER, ctypes.c_uint64]),
    "afz_loader_times": (None, [POINTER, ctypes.POINTER(ToldTimes)]),
    "afz_loader_slowest": (ctypes.c_int, [POINTER, ctypes.c_char_p]),
}


def places():
    """Where the library may lie: named, in a build folder, installed, in a checkout with a build."""
    here = os.path.dirname(os.path.abspath(__file__))
    named = os.environ.get("ANTIFREEZE_LOADER")
    if named:
        yield named
        return
    yield os.path.join(here, "../../../loader", NAME)
    libraries = ["lib", "lib64", os.path.join("lib", getattr(sys.implementation, "_multiarch", "") or ".")]
    for library in libraries:
        yield os.path.join(here, "../../../../..", library, "antifreeze", NAME)  # share/antifreeze/python/antifreeze/feed
    yield os.path.join(here, "../../../build/loader", NAME)


def library():
    global _library
    if _library is None:
        found = next((place for place in places() if os.path.isfile(place)), None)
        if found is None:
            raise LoaderError(f"the loader's library {NAME} was not found; install Antifreeze, or name it in ANTIFREEZE_LOADER")
        loaded = ctypes.CDLL(found)
        for name, (result, arguments) in CALLS.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
        _library = loaded
    return _library


def check(result, why, advice=""):
    if result >= 0:
        return result
    text = (why.value.decode("utf-8", "replace") or os.strerror(-result)) + advice
    kind = LoaderMemoryError if -result in (errno.ENOSPC, errno.ENOMEM) else LoaderError
    raise kind(text, -result)


def image_of(image):
    made = Image()
    for name, value in (image or {}).items():
        if not any(name == field[0] for field in Image._fields_):
            raise ValueError(f"image={{{name!r}: ...}}: it has {', '.join(field[0] for field in Image._fields_)}")
        if name in ("mean", "deviation") and (len(value) != 3 or not image.get("is_float")):
            raise ValueError(f"image={{{name!r}: ...}}: three numbers, of red, green and blue, and only with \"is_float\": True")
        setattr(made, name, (ctypes.c_float * 3)(*value) if name in ("mean", "deviation") else value)
    return made


# Arrays over leased memory; a sentence, if samples were left out; whether it is a copy, because too many are held.
Given = namedtuple("Given", "arrays why is_copy")


class Handle:
    """The C side's loader, closed when nobody has this any more: a call that another thread is still in has it, too."""

    def __init__(self, loader, close):
        self._as_parameter_ = loader
        self.before = []  # functions that are called then, each with its arguments
        # Not at exit: a thread that nobody waits for may still be in next() then.
        weakref.finalize(self, end, self.before, close, loader).atexit = False


def end(before, close, loader):
    for function, *arguments in before:
        function(*arguments)
    close(loader)


def release(call, loader, batch):
    """Once: a traceback may have the memory still when all else is closed, and the loader gone."""
    lease, batch.lease = batch.lease, 0
    if lease:
        call(loader, lease)


def epoch_of(state):
    return int.from_bytes(state[EPOCH_AT:EPOCH_AT + 8], "little")


def batches_of(state):
    """That are done of the epoch."""
    return int.from_bytes(state[BATCHES_AT:BATCHES_AT + 8], "little")


class Native:
    """options: as of struct afz_loader_options."""

    def __init__(self, files, *, batch, rank, ranks, seed, format=None, details=None, image=None, subset=None, weights=None,
                 source=None, **options):
        import numpy  # whose arrays these are, whatever they become
        self._array, self._library = numpy.ndarray, library()
        self._layouts = {}  # samples of a batch to how its arrays lie: of the last that came
        if details is not None and not isinstance(details, str):
            import json
            details = json.dumps(details)
        names = (ctypes.c_char_p * len(files))(*map(os.fsencode, files))
        options = Options(paths=names, path_count=len(files), format=format and format.encode(), details=details and details.encode(),
                          image=image_of(image), batch=batch, rank=rank, ranks=ranks, seed=seed & UINT64_MAX, **options)
        if subset is not None:
            options.subset, options.subset_count = subset.ctypes.data_as(ctypes.POINTER(ctypes.c_uint64)), len(subset)
        if weights is not None:
            options.weights, options.weight_count = weights.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), len(weights)
        if source is not None:
            options.source = source.address()
        handle, why = POINTER(), ctypes.create_string_buffer(WHY_MAX)
        opened = self._library.afz_loader_open(ctypes.byref(options), ctypes.byref(handle), why)
        check(opened, why, source.advice(options.budget_bytes) if source and opened == -errno.ENOSPC else "")
        self._loader, self._why = handle, why
        self._handle = source.handle(handle, self._library) if source else Handle(handle, self._library.afz_loader_close)
        facts = self.facts()
        self.fields = [(f.name.decode("utf-8", "replace"), numpy.dtype(DTYPES[f.dtype]), tuple(f.shape[:f.dimensions]), f.bytes)
                       for f in facts.field[:facts.fields]]

    def _open(self):
        handle = self._handle
        if handle is None:
            raise LoaderError("this loader is closed")
        return handle

    def facts(self):
        facts = Facts()
        self._library.afz_loader_facts(self._open(), ctypes.byref(facts))
        return facts

    def times(self):
        times = ToldTimes()
        self._library.afz_loader_times(self._open(), ctypes.byref(times))
        return times

    def slowest(self):
        """Which side limited the epoch (enum afz_side), and in words."""
        words = ctypes.create_string_buffer(WHY_MAX)
        return self._library.afz_loader_slowest(self._open(), words), words.value.decode("utf-8", "replace")

    def next(self):
        """None: the epoch is over."""
        batch, why = Batch(), self._why
        try:
            result = LATE
            while result == LATE:  # between two of them Python sees to Ctrl-C
                result = self._library.afz_loader_next_within(self._open(), PATIENCE_MS, batch, why)
            if result <= 0:
                return check(result, why) or None
            said = why.value
            return Given(self._arrays(batch), said.decode("utf-8", "replace") if said else "", batch.is_copy)
        except BaseException:  # Ctrl-C, before anybody has it
            release(self._library.afz_loader_release, self._loader, batch)
            raise

    def shared(self):
        """Where other processes find batches, and how many may be held before some are copies; of a loader that was opened so."""
        shared = Shared()
        check(self._library.afz_loader_shared(self._open(), ctypes.byref(shared)), self._why)
        return shared

    def is_ready(self):
        """next() would not wait."""
        return self._library.afz_loader_wait(self._open(), 0) == 1

    def _arrays(self, batch):
        """All fields lie in one piece, which all arrays refer to: when the last of them is gone, the lease ends."""
        count = batch.count
        if count not in self._layouts:
            self._layouts = {count: self._lay_out(batch)}
        piece, layout = self._layouts[count]
        memory = piece.from_address(batch.data[0])
        weakref.finalize(memory, release, self._library.afz_loader_release, self._loader, batch).atexit = False
        return [self._array(shape, dtype, memory, at) for shape, dtype, at in layout]

    def _lay_out(self, batch):
        """The same for all batches of so many samples."""
        first, (_, _, _, last) = batch.data[0], self.fields[-1]
        size = batch.data[len(self.fields) - 1] - first + batch.count * last
        return ctypes.c_char * size, [((batch.count, *shape), dtype, batch.data[i] - first) for i, (_, dtype, shape, _) in enumerate(self.fields)]

    def state(self):
        packed = State()
        self._library.afz_loader_state(self._open(), packed)
        return packed.raw

    def renew(self, packed):
        """A state of before, with what was asked for since."""
        if self._handle is None:
            return packed
        state = ctypes.create_string_buffer(packed, STATE_BYTES)
        self._library.afz_loader_renew(self._handle, state)
        return state.raw

    def seek(self, packed):
        if len(packed) != STATE_BYTES:
            raise LoaderError("this is no state of a loader, or it is damaged", errno.EBADMSG)
        check(self._library.afz_loader_seek(self._open(), packed, self._why), self._why)

    def begin(self, epoch):
        check(self._library.afz_loader_begin(self._open(), epoch, self._why), self._why)

    def pin(self):
        """Where all batches lie, and how many bytes: that memory stays where it is from now on."""
        at, size = POINTER(), ctypes.c_uint64()
        check(self._library.afz_loader_pin(self._open(), ctypes.byref(at), ctypes.byref(size)), self._why)
        return at.value, size.value

    def before_close(self, function, *arguments):
        """Is called once nobody uses this loader any more, before its memory goes."""
        self._open().before.append((function, *arguments))

    def ask(self, budget):
        return self._library.afz_loader_ask(self._open(), budget) == 0

    def close(self):
        self._handle = None
