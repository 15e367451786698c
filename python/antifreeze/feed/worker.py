"""A worker of a Loader's transform: a Python of its own, started by feed/workers.py, that works on batches where they lie.

It maps two files that have no name: the loader's batches, which it reads, and the slots, which it writes. Through a socket come only
places and numbers. It ends when that is closed, and with the process that has started it, whatever way that one ends.
"""
import ctypes
import importlib.util
import mmap
import os
import pickle
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from time import monotonic_ns

PR_SET_PDEATHSIG = 1

is_coming_up = True  # this worker: it is not ready yet
is_reading = False  # the program's own file: a Loader that is made there now is the one this worker is for


class Enough(BaseException):
    """The program's own file has been read up to its Loader: what the transform needs is above it."""


def main(fd, parent):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which then ends this
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it had gone before
        os._exit(1)
    connection = Connection(fd)
    try:
        serve(connection)
    except (EOFError, ConnectionError):
        pass
    for stream in sys.stdout, sys.stderr:
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    os._exit(0)  # frameworks take their time to go, and somebody waits


def serve(connection):
    global is_coming_up
    begin = connection.recv()
    try:
        worker = Worker(begin, load(begin))
    except BaseException:
        connection.send(("failed", traceback.format_exc()))
        return
    is_coming_up = False
    connection.send(("ready",))
    while True:
        verb, *rest = connection.recv()
        if verb == "map":
            worker.map(*rest, recv_handle(connection), recv_handle(connection))
        else:
            connection.send(worker.do(*rest))


def load(begin):
    """The transform, in surroundings as they are in the program."""
    sys.path[:], sys.argv[:] = begin["path"], begin["argv"]
    if begin["main"]:
        read_program(*begin["main"])
    if begin["as_"] == "torch":
        import torch
        torch.set_num_threads(1)  # the other cores are other workers'
    return pickle.loads(begin["transform"])


def read_program(name, path):
    """The program's own file, under multiprocessing's name for it: what is under `if __name__ == "__main__":` is not done. Who does
    without that line is read up to the Loader."""
    global is_reading
    module = type(sys)("__mp_main__")
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    if name:  # python -m
        spec = importlib.util.find_spec(name)
        module.__spec__, module.__package__, path = spec, spec.parent, spec.origin
        code = spec.loader.get_code(name)
    else:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    module.__file__ = path
    is_reading = True
    try:
        exec(code, module.__dict__)
    except Enough:
        pass
    finally:
        is_reading = False


class Worker:
    def __init__(self, begin, transform):
        from . import apply, slots
        import numpy
        self.apply, self.kinds_of, self.numpy = apply, slots.kinds_of, numpy
        self.transform, self.as_ = transform, begin["as_"]
        self.fields = self.batches = self.slots = self.layout = None

    def map(self, fields, batches_bytes, slots_bytes, layout, batches_fd, slots_fd):
        """fields: as native.Native's; layout: None as long as it is not known."""
        self.fields, self.layout = fields, layout
        self.batches = mmap.mmap(batches_fd, batches_bytes)
        self.slots = mmap.mmap(slots_fd, slots_bytes) if slots_bytes else None
        os.close(batches_fd)
        os.close(slots_fd)

    def do(self, number, places, count, seed, slot):
        """What it answers: the batch's number, what came of it, and the time that took."""
        began = monotonic_ns()
        arrays = [self.numpy.ndarray((count, *shape), dtype, self.batches, at) for (_, dtype, shape, _), at in zip(self.fields, places)]
        try:
            with self.apply.Seeded(seed):
                result = self.transform(*self.apply.input_of(arrays, self.as_))
            said = self.take(*self.apply.take_apart(result), slot)
        except self.apply.Unfit as error:
            said = "unfit", str(error)
        except BaseException:
            said = "raised", traceback.format_exc()
        return number, *said, monotonic_ns() - began

    def take(self, keys, arrays, slot):
        if self.layout is None:
            self.batches = None  # it is not to be there still when the loader takes its memory
            return "done", (keys, self.kinds_of(arrays))
        self.layout.check(keys, arrays)
        return "done", self.layout.fill(self.slots, slot, arrays)
