"""Out of memory, in the words of each framework: which errors mean it, and what is told of one.

An error is told once, however many hands it goes through: who recovers from it (a splitter) calls caught(); what nobody
recovers from is found when the program ends. An allocator that tells of its failure before it raises (torch's on CUDA) calls
noticed(): the moment is kept until somebody calls caught(), and if the next step comes first, the program has swallowed it.

Nothing of a framework is imported here: errors are known by their names and words.
"""
import atexit
import os
import sys

from .. import talk

# Where an error is sought that another one was raised from: `raise TrainerError from error`.
DEEPEST_CAUSE = 8
KEYS = ("device", "step", "batch", "micro", "asked_bytes", "allocated_bytes", "reserved_bytes", "at", "swallowed", "trains")
UNITS = {"bytes": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}

# Types by name, whichever module of the framework has them today: torch.OutOfMemoryError was torch.cuda.OutOfMemoryError.
TYPES = ("OutOfMemoryError", "ResourceExhaustedError", "MemoryError")
# What the text of other errors says. A library that got no memory from CUDA says so in its own way. cuDNN tries its ways to do
# a convolution, and when each of them got no memory it has found none.
GPU_WORDS = ("CUDA out of memory", "CUDA error: out of memory", "HIP out of memory", "HIP error: out of memory", "MPS backend out of memory",
             "XPU out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "CUFFT_ALLOC_FAILED",
             "CUSOLVER_STATUS_ALLOC_FAILED", "CUSPARSE_STATUS_ALLOC_FAILED", "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES",
             "CURAND_STATUS_ALLOCATION_FAILED", "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY",
             "nable to find a valid cuDNN algorithm to run convolution", "Dst tensor is not initialized")
HOST_WORDS = ("can't allocate memory", "DefaultCPUAllocator: not enough memory", "Cannot allocate memory", "std::bad_alloc")
EITHER_WORDS = ("RESOURCE_EXHAUSTED", "OOM when allocating tensor")
# After these the device does nothing more for this process, whatever is freed: only a new process helps.
STICKY_WORDS = ("device-side assert", "illegal memory access", "misaligned address", "unspecified launch failure", "illegal instruction",
                "invalid program counter", "hardware stack error", "invalid address space", "uncorrectable ECC error",
                "the launch timed out", "CUDA error: unknown error", "CUDA driver error: unknown error", "exception was raised by the device")
STICKY_CODES = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 999}  # the same, of torch.AcceleratorError

count = 0  # of all that were seen
batch = 0  # samples of the last batch, kept by who sees batches
pending = None  # the keys of one that was noticed and not yet told
sources = []  # functions that give keys of the moment: what a framework's allocator has
lines = None  # a function that gives keys of the lines which hold a GPU's memory (see/cuda_sites.py)


def is_oom(error):
    """None, or where memory ran out: "gpu" or "host"."""
    for one in causes(error):
        where = where_of(one)
        if where:
            return where
    return None


def is_sticky(error):
    """Whether the device is lost for this process."""
    return any(getattr(one, "error_code", None) in STICKY_CODES or
               isinstance(one, Exception) and has_any(text_of(one), STICKY_WORDS)
               for one in causes(error))


def causes(error):
    for _ in range(DEEPEST_CAUSE):
        if error is None:
            return
        yield error
        error = error.__cause__


def where_of(error):
    kind = type(error)
    if issubclass(kind, MemoryError):
        return "host"
    if not issubclass(kind, Exception):
        return None
    is_named = any(base.__name__ in TYPES for base in kind.__mro__)
    if not is_named and not is_talkative(kind):
        return None
    text = text_of(error)
    if has_any(text, GPU_WORDS):
        return "gpu"
    if has_any(text, HOST_WORDS):
        return "host"
    if not is_named and not has_any(text, EITHER_WORDS):
        return None
    if kind.__module__.partition(".")[0] == "torch":
        return "gpu"
    return "gpu" if "GPU" in text or "gpu" in text or "cuda" in text else "host"


def is_talkative(kind):
    """Whether only its text can say what it is: RuntimeError, an OSError of fork() or mmap(), those of TensorFlow and JAX."""
    return issubclass(kind, (RuntimeError, OSError)) or kind.__module__.partition(".")[0] in ("tensorflow", "jaxlib", "jax", "torch")


def text_of(error):
    try:
        return str(error)[:20000]
    except Exception:
        return ""


def first_line(text):
    """The first that says something: launchers frame what they say (torchrun)."""
    return next((line.strip() for line in text.splitlines() if any(map(str.isalnum, line))), "")


def has_any(text, words):
    return any(word in text for word in words)


def asked_bytes(text):
    """What was asked for, if the error says it: "Tried to allocate 2.50 GiB", "you tried to allocate 4096 bytes"."""
    _, found, rest = text.partition("ried to allocate ")
    words = rest.split(None, 2)
    if not found or len(words) < 2:
        _, found, rest = text.partition("Unable to allocate ")  # NumPy
        words = rest.split(None, 2)
    try:
        return int(float(words[0]) * UNITS[words[1].rstrip(".,;").lower()])
    except (IndexError, KeyError, ValueError, OverflowError):
        return None


def noticed(**keys):
    """Memory ran out just now, and an error will be raised for it. Called from inside an allocator."""
    global pending, count
    told()
    count += 1
    tell("ooms_count", count)
    pending = {**moment(), "at": place(sys._getframe(1)) or place(main_frame()), **keys}
    look_at_lines(keys.get("device"))


def caught(error, **keys):
    """One of ours has caught the error, or seen it end the program. Says whether it was out of memory."""
    global pending, count
    try:
        device = is_oom(error)
        if not device or getattr(error, "_antifreeze_told", False):
            return device
        try:
            error._antifreeze_told = True
        except Exception:
            pass
        if pending is None or pending.get("device") != device:
            told()
            count += 1
            tell("ooms_count", count)
            pending = {**moment(), "at": place_of(error)}
            look_at_lines(device)
        pending["device"] = device
        if pending.get("asked_bytes") is None:
            pending["asked_bytes"] = asked_bytes(text_of(error))
        if pending.get("at") is None:
            pending["at"] = place_of(error)
        told(swallowed=0, **keys)
        return device
    except Exception:
        return None


def told(**keys):
    """Sends what is pending. With nothing said, the program went on: it has swallowed the error."""
    global pending
    keys, pending = {"swallowed": 1, **(pending or {}), **keys} if pending is not None else None, None
    if keys:
        talk.event("oom", **{key: keys[key] for key in KEYS if keys.get(key) is not None})
        if keys.get("lines"):
            talk.event("sites", device=keys.get("device"), **keys["lines"])


def look_at_lines(device):
    """While what fills the memory is still there."""
    if lines and device == "gpu":
        try:
            pending["lines"] = lines()
        except Exception:
            pass


def tell(name, value):
    from .. import tell as figures
    figures.tell(name, value)


def moment():
    keys = {"batch": batch or None, "step": step()}
    for source in sources:
        try:
            keys.update(source())
        except Exception:
            pass
    return keys


def step():
    from .. import clock
    return getattr(clock, "count", 0) or None


def place_of(error):
    """The innermost line of the program's own that the error came through; else the one that called the library."""
    best = None
    trace = first = error.__traceback__
    while trace:
        if is_own(trace.tb_frame):
            best = trace
        trace = trace.tb_next
    if best:
        return written(best.tb_frame, best.tb_lineno)
    return place(first.tb_frame) if first else None


def place(frame):
    while frame:
        if is_own(frame):
            return written(frame, frame.f_lineno)
        frame = frame.f_back
    return None


def main_frame():
    """Where the main thread is: a framework's own threads have no line of the program."""
    threading = sys.modules.get("threading")
    return sys._current_frames().get(threading.main_thread().ident) if threading else None


def is_own(frame):
    return is_own_path(frame.f_code.co_filename)


def is_own_path(path):
    """Whether the code is the program's: neither a library's, nor Python's, nor ours, nor made by a compiler."""
    return not (path.startswith(NOT_OWN) or path.endswith(COMPILED) or "/site-packages/" in path or "/dist-packages/" in path
                or "/torchinductor_" in path)


def written(frame, line):
    return f"{frame.f_code.co_filename}:{line}:{frame.f_code.co_name}"


def watch():
    """Errors of the host, which no allocator announces, are seen as they are raised; where Python can tell of that (from 3.12
    on) at no cost to code that raises nothing. Before, a program that swallows one is seen by what the probe has refused."""
    monitoring = getattr(sys, "monitoring", None)
    for tool in (4, 3) if monitoring else ():  # those that are nobody's by name
        try:
            monitoring.use_tool_id(tool, "antifreeze")
        except ValueError:
            continue
        monitoring.register_callback(tool, monitoring.events.RAISE, raised)
        monitoring.set_events(tool, monitoring.events.RAISE)
        return


def raised(_code, _offset, error):
    """An error is raised in one frame, or goes through it."""
    try:
        if isinstance(error, (RuntimeError, MemoryError)) and not hasattr(error, "_antifreeze_seen"):
            error._antifreeze_seen = True
            device = where_of(error)
            if device == "host" or device and pending is None:  # a GPU's was announced by its allocator
                noticed(device=device, asked_bytes=asked_bytes(text_of(error)))
    except Exception:
        pass


def ended():
    """At the end of the program: Python leaves the error that ended it here, before anything is taken down."""
    try:
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if error is not None and caught(error):
            if talk.rank()[1] > 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
                # Those that it trains with may wait for it. torchrun ends them itself, or begins all of them anew.
                talk.event("note", lost=1)
            return
        if pending is not None:
            told()
        if isinstance(error, Exception) and not getattr(error, "_antifreeze_told", False) and type(error).__name__ != LAUNCHERS:
            talk.event("error", f"{type(error).__name__}: {first_line(text_of(error))}"[:200].rstrip(": "), at=place_of(error) or "?")
            error._antifreeze_told = True  # at last: some are frozen
    except Exception:
        pass


LAUNCHERS = "ChildFailedError"  # torchrun's and accelerate's: a rank has ended, which has a word of its own to say, or was killed
LIBRARY = getattr(sys.modules.get("os"), "__file__", "/usr/lib/python3/os.py").rpartition("/")[0] + "/"
COMPILED = (".pyx", ".pxd")  # Cython's, with the path that they were built from: mostly a library's
NOT_OWN = ("<frozen", __file__.rpartition("/see/")[0] + "/", LIBRARY)
atexit.register(ended)  # after talk, which hangs up when that is through
