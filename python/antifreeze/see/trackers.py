"""What Antifreeze has found goes into the program's own log of the run, if it keeps one: Weights & Biases, MLflow, TensorBoard.

Only a run or a writer that the program has opened is written to, once, when it is closed or the program ends: peaks of memory,
how often it ran out, and the verdicts so far. Nothing is opened, and nothing is sent by us: it goes the tracker's own way.
"""
import atexit
import functools
import json
import os
import sys
from weakref import ref

PREFIX = "antifreeze/"
PATIENCE_S = 1  # for the guard's answer, at the end of a program that may have trained for days
THINKING_S = 3  # for the verdicts, which read the recording: some 20 ms

_done = []  # weak references to what was written to


def once(one):
    if any(weak() is one for weak in _done):
        return False
    _done.append(ref(one))
    return True


def found():
    """(numbers, verdict): what is to be written."""
    numbers = {}
    try:
        import resource
        numbers["ram_peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    except Exception:
        pass
    from .. import tell
    from . import oom
    status = ask() or {}
    numbers.update({name: status[name] for name in ("need_bytes", "peak_bytes", "gpu_peak_bytes", "budget_bytes")
                    if isinstance(status.get(name), (int, float))})
    if "peak_bytes" in numbers:  # of the whole job: better than ours, of this process alone
        numbers["ram_peak_bytes"] = numbers.pop("peak_bytes")
    numbers.update({name: value for name, value in tell.last.items() if name in KEPT})
    numbers["ooms_count"] = oom.count
    return numbers, verdict() if status else ""


KEPT = ("gpu_allocated_peak_bytes", "splits_count", "micro_count", "zeroed_count")


def ask():
    """How the run stands, in the guard's words; None: it does not answer."""
    try:
        from .. import talk
        if not talk.speaks():
            return None
        import _socket as sockets
        asked = sockets.socket(sockets.AF_UNIX, sockets.SOCK_SEQPACKET, 0)
        try:
            asked.settimeout(PATIENCE_S)
            asked.connect(os.environ["ANTIFREEZE_SOCKET"])
            asked.send(b"status")
            word, _, text = asked.recv(4096).decode("utf-8", "replace").partition(" ")
            return json.loads(text) if word == "status" else None
        finally:
            asked.close()
    except Exception:
        return None


def verdict():
    """The first verdict so far, in `antifreeze why`'s words. It takes a program that still runs for one that goes on: the error
    that ends this one is known here."""
    from . import oom
    error = getattr(sys, "last_value", None)
    where = oom.is_oom(error) if error is not None else None
    if where:
        place = oom.place_of(error)
        return f"{ENDED[where]}: it ended with an error for want of memory{place and ' at ' + place.rpartition('/')[2] or ''}"
    try:
        import subprocess
        from .. import guard
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("ANTIFREEZE")}
        told = subprocess.run([guard.program(), "why", "--json", os.environ["ANTIFREEZE_RUN"]], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=THINKING_S, check=False).stdout
        first = (json.loads(told)["verdicts"] or [{"id": "clean", "summary": "nothing was wrong so far"}])[0]
        return f"{first['id']}: {first['summary']}"
    except Exception:
        return ""


ENDED = {"gpu": "gpu-oom", "host": "host-exhaustion"}


def wandb(module):
    """wandb.sdk.wandb_run: a run's summary, before it is finished."""
    def write(run):
        numbers, verdict = found()
        run.summary.update({PREFIX + name: value for name, value in numbers.items()})
        if verdict:
            run.summary.update({PREFIX + "verdict": verdict})

    before(module.Run, "finish", write)
    at_end(lambda: getattr(sys.modules.get("wandb"), "run", None), write)


def mlflow(module):
    """mlflow.tracking.fluent: metrics and a tag of the active run, before it ends."""
    def write(_=None):
        numbers, verdict = found()
        module.log_metrics({PREFIX + name: float(value) for name, value in numbers.items()})
        if verdict:
            module.set_tag(PREFIX + "verdict", verdict)

    ends = module.end_run

    @functools.wraps(ends)
    def end_run(*args, **kwargs):
        quietly(module.active_run, write)
        return ends(*args, **kwargs)

    module.end_run = end_run
    whole = sys.modules.get("mlflow")
    if getattr(whole, "end_run", None) is ends:
        whole.end_run = end_run
    at_end(module.active_run, write)


def tensorboard(module):
    """torch.utils.tensorboard.writer, tensorboardX.writer: scalars and a text of each open writer, before it is closed."""
    kind = module.SummaryWriter

    def write(writer):
        if getattr(writer, "all_writers", 1) is None:  # closed already
            return
        numbers, verdict = found()
        for name, value in numbers.items():
            writer.add_scalar(PREFIX + name, value)
        if verdict:
            writer.add_text(PREFIX + "verdict", verdict)
        writer.flush()

    def end():
        """Those that are never closed, which is most of them."""
        import gc
        for one in gc.get_objects():
            if issubclass(type(one), kind):
                quietly(lambda: one, write)

    before(kind, "close", write)
    atexit.register(end)


def before(kind, name, write):
    """Writes before that method closes it."""
    inner = getattr(kind, name)

    @functools.wraps(inner)
    def closing(self, *args, **kwargs):
        quietly(lambda: self, write)
        return inner(self, *args, **kwargs)

    setattr(kind, name, closing)


def at_end(current, write):
    atexit.register(lambda: quietly(current, write))


def quietly(current, write):
    """Once, and whatever a tracker makes of it is not the program's trouble. A child that was forked has its parent's runs."""
    try:
        one = current()
        if one is not None and os.getpid() == _pid and once(one):
            write(one)
    except Exception:
        pass


_pid = os.getpid()
