"""What this process and the guard have to say to each other, over the control socket (docs/control-socket.md).

Nothing is connected before the first step or the first event, and then by rank 0 alone: one voice a job. Other ranks only come
to say that their memory ran out or which error ends them, and leave again. No thread is made for it: the clock calls poll() at
its steps, which asks the kernel at most every 50 ms and never waits. After a fork the child is silent, and so are we when the
guard goes away: whoever talks here need not care.
"""
import atexit
import os
import sys
from _thread import allocate_lock
from time import monotonic_ns

EVERY_NS = 50_000_000  # between two looks: a request that the guard waits for by the second may wait that long
LINE = 1023  # bytes of a packet
KEPT = 32  # lines that wait when the guard does not read: it is frozen, or the machine is
TRIES = 20  # to connect: the guard may have no time for us at once
QUIETLY = 0x4000  # MSG_NOSIGNAL: a guard that is gone must not end a program that has SIGPIPE as the system has it
LAST_WORDS = ("oom", "error")  # what each rank says for itself
HEARD = 2  # seconds that it has for it
LATER = object()  # what an offered function returns when it will save at a better moment, and call saved() or cannot() then

due_ns = 0  # poll() has nothing to do before
_socket = None
_lock = allocate_lock()  # never waited for: an event may come from the midst of another
_tries = TRIES
_offers = {}  # ability to function
_waiting = []  # lines that were not sent yet
_asked = 0  # the number of the request to save that is open
_ran_out = False  # of memory, in a rank that does not speak: what comes of it is told, too


def event(kind, sentence="", **keys):
    """Tells the guard; it goes into the recording, and the sentence, if any, onto the terminal."""
    global _ran_out
    try:
        line = _event_line(kind, sentence, keys)
        if not is_held() or rank()[0] == 0:
            _say(line)
        elif kind in LAST_WORDS or _ran_out:
            _ran_out = _ran_out or kind == "oom"
            # Memory may run out before the first step: then rank 0 has not said yet what all of them can.
            _call(HEARD, "hello rank 1 shrink" if "shrink" in _offers else "hello rank 1", line).close()
    except Exception:
        pass


def offer(**functions):
    """checkpoint=fn, shrink=fn, less=fn: what the guard may ask for from now on; None takes it back. fn is called at a step, with
    the milliseconds that are left (checkpoint) or nothing. checkpoint returns the path of what it saved, or LATER. shrink is for
    who makes steps smaller, and gets over memory that is refused; less for all else that can use less. Both are asked at once."""
    for ability, function in functions.items():
        if function is None:
            _offers.pop(ability, None)
        else:
            _offers[ability] = function
    try:
        if _socket:
            _say(_hello())
    except Exception:
        pass


def poll():
    """Hears what the guard has sent and does it. What an offered function raises is told to the guard, not to the program."""
    global due_ns
    due_ns = monotonic_ns() + EVERY_NS
    try:
        if _reach():
            for line in _heard():
                _obey(line.split())
    except Exception:
        pass


def saved(path=""):
    """A checkpoint is on disk, asked for or not. The guard keeps the path for a restart."""
    _answer("saved", path and os.path.abspath(path))


def cannot(reason):
    """The checkpoint that was asked for could not be made."""
    if _asked:
        _answer("cannot", str(reason) or "no reason given")


def is_asked():
    """Whether the guard waits for a checkpoint."""
    return _asked > 0


def try_again():
    """There is a guard now, where there was none before."""
    global _tries
    _tries = TRIES


def is_held():
    """Whether there is a guard at all."""
    return bool(os.environ.get("ANTIFREEZE_SOCKET"))


def speaks():
    """Whether this process is the one of its job that may speak: of several ranks, the first."""
    return is_held() and rank()[0] == 0


def rank():
    """Which of the processes that train together this is, and how many they are. By torch, if they have met already: who starts
    them need not have said it in the environment."""
    try:
        together = sys.modules.get("torch.distributed")
        if together and together.is_available() and together.is_initialized():
            return together.get_rank(), together.get_world_size()
        which = int(os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or 0)
        return which, max(int(os.environ.get("WORLD_SIZE") or 1), which + 1)
    except Exception:  # a word that is no number, or a torch in the middle of its import
        return 0, 1


def _answer(word, text):
    global _asked
    number, _asked = _asked, 0  # 0: nobody asked
    try:
        if word == "saved" and not text.isprintable():
            text = ""  # another path than the one there is would be worse than none
        _say(f"{word} {number} {_plain(text)}".rstrip())
    except Exception:
        pass


def _obey(words):
    global _asked
    word = words[0] if words else ""
    offered = _offers.get(word)
    if word == "shrink":
        for ability in word, "less":
            _try(_offers.get(ability))
    elif word == "checkpoint" and offered:
        _asked = int(words[1])
        _say(f"saving {_asked}")
        try:
            path = offered(int(words[2]))
        except Exception as error:
            cannot(f"{type(error).__name__}: {error}")
        else:
            if path is not LATER:
                saved(path or "")


def _try(function):
    try:
        if function:
            function()
    except Exception:  # the other is asked, too
        pass


def _heard():
    """The lines that are there. A guard that has gone leaves the others' abilities, and us silent."""
    while _socket:
        try:
            line = _socket.recv(LINE + 1)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            line = b""
        if not line:
            _hang_up()
            return
        yield line.decode("utf-8", "replace")


def _say(line):
    """Sends it, after those that wait."""
    _waiting.append(line)
    if not _reach():
        del _waiting[:-KEPT]


def _reach():
    """Whether the guard is at the other end, and has all that waited."""
    if not _lock.acquire(False):
        return False
    try:
        if not _socket and not _connect():
            return False
        while _waiting:
            _socket.send(_cut(_waiting[0].encode("utf-8", "replace")), QUIETLY)
            del _waiting[0]
        return True
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        _hang_up()
        return False
    finally:
        _lock.release()


def _connect():
    global _socket, _tries
    if _tries <= 0 or not speaks():
        _tries = 0
        _waiting.clear()
        return False
    _tries -= 1
    try:
        made = _call(0, _hello())
    except (BlockingIOError, InterruptedError):  # the guard has not come to the last callers yet
        return False
    except OSError:
        _hang_up()
        return False
    os.register_at_fork(after_in_child=_hang_up)
    _socket = made
    return True


def _call(patience, *lines):
    """A connection on which these were said."""
    import _socket as sockets  # a third of what `socket` would bring along
    made = sockets.socket(sockets.AF_UNIX, sockets.SOCK_SEQPACKET, 0)  # not inheritable, by PEP 446
    try:
        made.settimeout(patience)
        made.connect(os.environ["ANTIFREEZE_SOCKET"])
        for line in lines:
            made.send(_cut(line.encode("utf-8", "replace")), QUIETLY)
    except OSError:
        made.close()
        raise
    return made


def _hang_up():
    """For good: a guard that went away does not come back, and a child leaves the talking to its parent."""
    global _socket, _tries, _asked
    gone, _socket, _tries, _asked = _socket, None, 0, 0
    _waiting.clear()
    if gone:
        try:
            gone.close()
        except OSError:
            pass


def _hello():
    path = (getattr(sys, "argv", None) or [""])[0]
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in path.rpartition("/")[2])
    return " ".join(["hello", name[:32] or "python", "1", *sorted(_offers)])


def _event_line(kind, sentence, keys):
    # A value may have blanks in it (a path), but a colon before a blank ends the values.
    words = ["event", kind] + [f"{key}={_plain(value).strip().replace(': ', ':_').rstrip(':')}" for key, value in keys.items()]
    return " ".join(words) + (f": {_plain(sentence)}" if sentence else "")


def _plain(text):
    """One line of text: a control character would be nonsense to the guard, and it would close."""
    text = str(int(text)) if isinstance(text, bool) else str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _cut(packet):
    return packet if len(packet) <= LINE else packet[:LINE].decode("utf-8", "ignore").encode()


farewell = _hang_up  # else Python would warn of a socket that nobody closed
atexit.register(farewell)  # who is registered first is called last: whoever has a last word (see/oom.py) is heard
