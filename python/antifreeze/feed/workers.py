"""The workers of a Loader's transform, seen from the program: how they come up, what they are asked, and how they end.

They are spawned, not forked: nothing of the program's memory is theirs, and its threads and GPU are none of their business.
"""
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import weakref
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import send_handle
from time import monotonic

from .native import LoaderError

BOOT = ("import sys; sys.path[:] = [p for p in sys.path if p]; m = type(sys)('_antifreeze'); m.__path__ = [sys.argv[1]]; "
        "sys.modules.setdefault('_antifreeze', m); from _antifreeze.feed.worker import main; main(*map(int, sys.argv[2:]))")
MAIN = b"__main__", b"__mp_main__"  # the program's own file; the second where multiprocessing has spawned this process
GRACE_S = 1  # for workers that have a batch in hand when they are to end
NOT_THEIRS = ("MASTER_ADDR", "MASTER_PORT")  # a worker that reads `init_process_group()` would meet other ranks in the program's place
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # each; the other cores are other workers'


class Ended(LoaderError):
    """A worker has. It cannot be gone on with the others: what it did may be what ends them, too.

    how: that is; number: the batch that it had."""

    def __init__(self, how, number=None):
        super().__init__(f"a worker of the transform has ended: {how}")
        self.how, self.number = how, number


class Workers:
    is_torn = False  # Ctrl-C came while one was spoken to, and nobody knows what was said
    _is_closed = False

    def __init__(self, count, transform, as_):
        self._own = count, transform, as_
        begin = {"transform": pickled(transform), "as_": as_, "path": sys.path, "argv": sys.argv}
        is_of_main = any(name in begin["transform"] for name in MAIN)
        begin["main"] = main_of(transform) if is_of_main else None
        self.count = count
        self._asked = [[] for _ in range(count)]  # numbers of the batches that each has, the oldest first
        keeper = Keeper(count)
        self.processes, self.connections = keeper.processes, keeper.connections
        self._end, self._begin = weakref.finalize(self, end, os.getpid(), keeper), begin

    def come_up(self):
        for worker in range(self.count):
            self._say(worker, self._begin)
        for worker in range(self.count):
            said = self._hear(worker)
            if said[0] != "ready":
                raise LoaderError("a worker could not get at the transform; it has to be found by who imports its file, above any Loader, "
                                  'and what is the program\'s alone belongs under `if __name__ == "__main__":`\n' + said[1])

    def again(self):
        """As many others, in their place."""
        self.close()
        made = Workers(*self._own)
        made.is_torn = True  # until they are up
        made.come_up()
        return made

    def map(self, fields, batches, slots, layout):
        """batches, slots: descriptor and size of each; slots None: there are none yet."""
        slots_fd, slots_bytes = slots or (batches[0], 0)
        for worker, process in enumerate(self.processes):
            self._say(worker, ("map", fields, batches[1], slots_bytes, layout))
            send_handle(self.connections[worker], batches[0], process.pid)
            send_handle(self.connections[worker], slots_fd, process.pid)

    def ask(self, number, places, count, seed, slot):
        """The worker that has least to do works on a batch."""
        worker = min(range(self.count), key=lambda n: len(self._asked[n]))
        self._asked[worker].append(number)
        self._say(worker, ("do", number, places, count, seed, slot), self._asked[worker][0])

    def once(self, source, arrays, seed):
        """To see what comes of it: types and shapes in place of arrays."""
        shared = source.shared()
        self.map(source.fields, (shared.fd, shared.bytes), None, None)
        self.ask(0, places(arrays, shared), len(arrays[0]), seed, 0)
        try:
            return next(self.answers())[1:3]
        except Ended as error:
            raise LoaderError(f"a worker of the transform has ended on the first samples of the data, at the open: {error.how}") from None

    def answers(self, timeout_s=None):
        """Those that are there, at least one if there is no timeout: (number of the batch, what came of it, ...)."""
        busy = [connection for connection, asked in zip(self.connections, self._asked) if asked]
        if not busy:  # else it would be waited for for ever
            self.is_torn = True
            raise Ended("what it had done was lost when the program was interrupted")
        for connection in wait(busy, timeout_s):
            worker = self.connections.index(connection)
            yield self._hear(worker, self._asked[worker].pop(0))

    def _say(self, worker, what, number=None):
        try:
            self.connections[worker].send(what)
        except OSError:
            self._mourn(worker, number)
        except BaseException:
            self.is_torn = True
            raise

    def _hear(self, worker, number=None):
        try:
            return self.connections[worker].recv()
        except (EOFError, OSError):
            self._mourn(worker, number)
        except BaseException:
            self.is_torn = True
            raise

    def _mourn(self, worker, number):
        raise Ended(how_it_ended(self.processes[worker]), number) from None

    def close(self):
        self._is_closed = True
        self._end()

    def stay_if_left(self):
        """Where a thread that nobody waits for still asks while the program ends, and its workers have ended with it: that is no error,
        and nobody is there to be told."""
        if not self._end.alive and not self._is_closed and threading.current_thread() is not threading.main_thread():
            threading.Event().wait()


class Keeper(threading.Thread):
    """Starts workers and lives as long as they may: Linux ends them with the thread that started them, which need not be the program's
    first."""

    def __init__(self, count):
        super().__init__(name="antifreeze-workers", daemon=True)
        self.processes, self.connections = [], []
        self._count, self._error = count, None
        self._is_started, self.is_over = threading.Event(), threading.Event()
        self.start()
        self._is_started.wait()
        if self._error:
            end(os.getpid(), self)
            raise LoaderError(f"no worker could be started: {self._error}")

    def run(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # of workers, too, until they pass over it
        try:
            for _ in range(self._count):
                self.start_one()
        except Exception as error:
            self._error = error
        self._is_started.set()
        self.is_over.wait()

    def start_one(self):
        ours, theirs = socket.socketpair()
        with theirs:
            self.connections.append(Connection(ours.detach()))
            package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
            surroundings = {name: value for name, value in os.environ.items() if name not in NOT_THEIRS}
            self.processes.append(subprocess.Popen(
                [sys.executable, *subprocess._args_from_interpreter_flags(), "-c", BOOT, package, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env={**dict.fromkeys(ONE_THREAD, "1"), **surroundings}))


def end(pid, keeper):
    if os.getpid() != pid:  # a child that was forked has not started them
        return
    for connection in keeper.connections:
        hang_up(connection)
    until = monotonic() + GRACE_S
    for process in keeper.processes:
        try:
            process.wait(max(0, until - monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    keeper.is_over.set()


def hang_up(connection):
    """For all who have it: a child that was forked meanwhile has it, too, and a worker would wait for that one's word."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
    connection.close()


def places(arrays, shared):
    return [array.ctypes.data - shared.at for array in arrays]


def pickled(transform):
    try:
        return pickle.dumps(transform)
    except Exception as error:
        name = getattr(transform, "__qualname__", type(transform).__name__)
        raise LoaderError(f"transform={name} cannot be sent to a worker ({error}): write it as a function of its own at the top of a "
                          "file, not as a lambda and not inside of another function; or say workers=0, and it runs in the program "
                          "itself") from None


def main_of(transform):
    """(name, path) of the program's own file: the name if it was started by `python -m`."""
    main = sys.modules["__main__"]
    name = getattr(getattr(main, "__spec__", None), "name", None)
    path = getattr(main, "__file__", None)
    if name is None and (path is None or not os.path.isfile(path)):
        raise LoaderError(f"transform={getattr(transform, '__qualname__', transform)} was written in a session (a notebook, python -c), "
                          "where a worker cannot find it: put it into a file and import it from there; or say workers=0, and it runs in "
                          "the program itself")
    return name, path and os.path.abspath(path)


def how_it_ended(process):
    try:
        code = process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        return "it has closed its socket"
    if code == -signal.SIGKILL:
        return "by SIGKILL, most likely the system's for want of memory: fewer workers or smaller batches take less"
    return f"by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"with exit code {code}"
