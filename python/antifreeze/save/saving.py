"""Checkpoints: made when the guard asks for one, or by themselves (autosave), and gone on from after a restart.

A checkpoint that is there is whole: it is written beside its place, brought to the disk (fsync), and then renamed. Whoever is
killed in the middle of it leaves the one before. Who can save is asked in the order of MEANS: what the program says itself
comes before what its framework can do.
"""
import json
import os
import sys
from time import monotonic

from .. import clock, talk, tell

MEANS = ("own", "autosave", "framework")
COST = 20  # times what a checkpoint took pass before the next one: saving takes a twentieth of the time at most
PLACE = "antifreeze-checkpoints"  # the folder, for what has no place of its own

_means = {}  # name to function


def on_checkpoint(function):
    """function() is called between two steps when the guard asks for a checkpoint. It saves, and returns the path; what it
    raises is told as the reason why there is none. After a restart the path is in the environment's ANTIFREEZE_RESUME.
    Also as a decorator."""
    if not callable(function):
        raise TypeError(f"on_checkpoint: it wants a function that saves and returns the path, not {type(function).__name__}")

    def asked(_):
        made(function())
        return talk.LATER  # it is told already

    means("own", asked)
    return function


def means(name, function):
    """A way to save, as of talk.offer(checkpoint=); None: no longer."""
    _means[name] = function
    best = next((_means[name] for name in MEANS if _means.get(name)), None)
    talk.offer(checkpoint=best and _measured(best))


def _measured(save):
    def saves(milliseconds):
        tell.phase("save")
        try:
            return save(milliseconds)
        finally:
            tell.phase("train")
    return saves


def made(path="", done=None):
    """A whole checkpoint is on disk, with so many of this process's steps in it (those that are done)."""
    tell.tell("saved_step", clock.done if done is None else done)
    talk.saved(os.fspath(path) if path else "")


# ---- restarts

def is_restart():
    """Whether this is a further attempt of the guard's, which shall go on where the one before was."""
    return os.environ.get("ANTIFREEZE_ATTEMPT", "1") not in ("", "1") or bool(os.environ.get("ANTIFREEZE_RESUME"))


def resume_path():
    """What an earlier attempt of this run has saved, or ""."""
    path = os.environ.get("ANTIFREEZE_RESUME", "")
    return path if path and os.path.exists(path) else ""


def resumed(step, path):
    talk.event("resume", f"goes on after step {step}, from {path}", step=step)


# ---- files

def write(path, dump):
    """dump(part) writes the file `part`; then it takes the place of `path`, whole, or not at all."""
    import fcntl
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    part = path + ".part"  # of one name, so that a hundred kills leave one file
    fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(f"another process writes {part}") from None
        except OSError:  # a file system without locks
            pass
        if not os.path.samestat(os.stat(part), os.fstat(fd)):
            raise OSError(f"another process has written {path}")  # and ours is in its place now: not to be touched
        try:
            dump(part)
            sync(part)
            os.replace(part, path)
        except BaseException:
            remove(part)
            raise
        sync(os.path.dirname(path) or ".")
    finally:
        os.close(fd)


def sync(path):
    """Brings a file to the disk, or a folder's list of names, or with all in it where the path ends with a slash."""
    if path.endswith("/"):
        for folder, _, names in os.walk(path):
            for name in names:
                sync(os.path.join(folder, name))
            sync(folder.rstrip("/"))
        return
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:  # what cannot be synced at all is no failure; what the disk refuses is one
        import errno
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(fd)


def remove(path):
    try:
        os.remove(path)
    except OSError:
        pass


def place(name):
    """A path for what the program has given no place: in the folder that it runs in."""
    run = os.environ.get("ANTIFREEZE_RUN", "run")
    return os.path.join(os.getcwd(), PLACE, run, name)


# ---- who saves

def is_first():
    """Rank 0, or the only one."""
    return talk.rank()[0] == 0


def _opener(path, flags):
    """For a file that nobody else may read, or have put there as a link or a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


class Together:
    """Ranks that must save at the same step, as it is a common act: rank 0 hears the guard, and names a step to come in a
    file that all of them look at. They meet in each step, when gradients are summed, so all of them see it before that
    step ends."""

    def __init__(self, world, nodes=None):
        """world: how many they are, by their framework's word. On several machines they have no such file."""
        self.world = world
        self.is_possible = nodes == 1 if nodes else world <= int(os.environ.get("LOCAL_WORLD_SIZE") or world)
        # Beside the guard's socket: the folder is this user's alone.
        which = "-".join(os.environ.get(name) or "" for name in ("MASTER_PORT", "ANTIFREEZE_ATTEMPT"))
        self.path = f"{os.environ.get('ANTIFREEZE_SOCKET', '')}.{which}.save"
        self.is_possible = self.is_possible and (world == 1 or self.path.startswith("/"))
        self.due = self.was = 0
        self.done()

    def ask(self, step):
        """By rank 0, when this step is over."""
        if self.world == 1:
            self.due = step
        else:
            part = self.path + ".part"
            remove(part)
            with open(part, "x", encoding="ascii", opener=_opener) as file:
                file.write(str(step + 1))
            os.replace(part, self.path)

    def is_due(self, step):
        """By all of them, at the end of each step."""
        if self.world > 1:
            try:
                with open(self.path, encoding="ascii", opener=_opener) as file:
                    self.due = int(file.read(32) or 0) if os.fstat(file.fileno()).st_uid == os.geteuid() else 0
            except (OSError, ValueError):
                return False
        is_due = self.due == step > self.was  # a step may end several times, once for each part of its batch
        if is_due:
            self.was = step
        return is_due

    def done(self):
        if self.world > 1 and is_first():
            remove(self.path)


# ---- autosave

def autosave(*objects, path="autosave.pt", every=300.0, resume=True, **named):
    """Saves all of these (a model, its optimizer, a schedule, a scaler, a dict of one's own) to `path` every so many seconds,
    and when the guard asks for it; if the file is there already, loads it, and training goes on from it:

        saved = antifreeze.autosave(model, optimizer)
        for epoch in saved.epochs(10):  # those of range(10) that are left
            for batch in antifreeze.steps(loader):  # goes on at the batch where it was
                ...

    or, for loops that count steps, saved.steps(10000). In a program that asks for neither, loops over antifreeze.steps() that
    were done are passed over. To begin anew, remove the file or say resume=False."""
    keeper = Autosave({**{str(n): thing for n, thing in enumerate(objects)}, **named}, path, every)
    keeper.begin(resume)
    return keeper


class Autosave:
    def __init__(self, things, path, every):
        if not things:
            raise TypeError("autosave: it wants what is to be saved, such as autosave(model, optimizer)")
        for name, thing in things.items():
            if not any(hasattr(thing, how[0]) and hasattr(thing, how[1]) for how in HOW) and not isinstance(thing, dict):
                raise TypeError(f"autosave: {name} ({type(thing).__name__}) has no state_dict() and load_state_dict(); a dict of your own will do")
        self.things, self.path, self.every = things, os.path.abspath(path), every
        self._step = self._epoch = 0  # what was loaded
        self._saved = 0
        self._due = monotonic() + every
        self._place = Place()
        self._process = os.getpid()

    def __repr__(self):
        return f"<antifreeze.autosave to {self.path}: loaded {self._step} steps, {self._epoch} epochs>"

    def steps(self, most):
        """The numbers of the steps that are left. From here on it is this that has the place."""
        self._place.leave()
        return range(self._step, most)

    def epochs(self, most):
        """The numbers of the epochs that are left, loops over antifreeze.steps(): none of them is passed over."""
        self._place.pass_over = 0
        return range(self._epoch, most)

    def begin(self, resume):
        source = self.path if os.path.exists(self.path) else resume_path()
        if resume and os.path.isfile(source):
            self._load(source)
        clock.loop = self._place
        clock.turns[:] = [turn for turn in clock.turns if not isinstance(getattr(turn, "__self__", None), Autosave)]
        reason = refusal(self.things.values())
        if reason:
            talk.event("refuse", reason)
        elif is_first():
            self._tick_alone()
            clock.turns.append(self._turn)
            means("autosave", self._asked)

    def _save(self):
        """Between two steps: elsewhere model and place would be of different steps."""
        began = monotonic()
        state = {"antifreeze": 1, "step": self._step + clock.done, "states": {n: get(t) for n, t in self.things.items()},
                 **self._place.state()}
        write(self.path, lambda part: dump(state, part))
        now = monotonic()
        self._saved = clock.done
        self._due = now + max(self.every, COST * (now - began))
        return self.path

    def _asked(self, _):
        self._save()
        made(self.path)
        return talk.LATER

    def _turn(self):
        if monotonic() < self._due or clock.done == self._saved or os.getpid() != self._process:
            return  # a child that was forked has no business with it
        tell.phase("save")
        try:
            made(self._save())
        except Exception as error:  # a full disk ends no training; the checkpoint before is still there
            self._due = monotonic() + self.every
            talk.event("note", f"no checkpoint could be saved: {type(error).__name__}: {error}")
        finally:
            tell.phase("train")

    def _load(self, source):
        try:
            state = load(source)
            states = state["states"]
        except Exception as error:
            aside = source + ".unreadable"
            os.replace(source, aside)
            import warnings
            warnings.warn(f"{source} is no checkpoint that can be read ({error}); it is {aside} now", RuntimeWarning, 4)
            return
        for name, thing in self.things.items():  # what does not fit is the program's business: torch says what
            put(thing, states[name])
        self._step, self._epoch = state["step"], state["epoch"]
        self._place.load(state)
        resumed(self._step, source)

    def _tick_alone(self):
        """Without the agent no optimizer ticks."""
        def tick(optimizer, *_):
            if "_antifreeze.watch" not in sys.modules:  # it may come later: antifreeze.guard()
                clock.tick(optimizer)

        for thing in self.things.values():
            if hasattr(thing, "register_step_pre_hook") and not hasattr(thing, "_antifreeze_ticks"):
                thing._antifreeze_ticks = thing.register_step_pre_hook(tick)


class Place:
    """Where antifreeze.steps() is in the data: how many loops are done, and how many turns of this one. With the state of
    the random numbers when the loop began, a loader that shuffles does so again in the same way."""

    def __init__(self):
        self.epoch = self.batch = self.depth = 0
        self.random = None  # when this loop began
        self.loaded = None  # a place that is still to be gone to
        self.pass_over = 0  # loops before it

    def state(self):
        return self.loaded or {"epoch": self.epoch, "batch": self.batch, "random_then": self.random,
                               "random_now": random_state()}

    def load(self, state):
        self.loaded = {key: state[key] for key in ("epoch", "batch", "random_then", "random_now")}
        self.epoch = self.pass_over = state["epoch"]

    def leave(self):
        """It is the program that goes there."""
        self.pass_over = 0
        if self.loaded:
            self.loaded.update(batch=0, random_then=None)

    def begin(self, iterable):
        self.depth += 1
        if self.depth > 1:
            return iter(iterable)
        if self.pass_over > 0:
            return iter(())
        there = self.loaded or {"batch": 0, "random_then": None, "random_now": None}
        set_random_state(there["random_then"])
        self.random = random_state()
        items = iter(iterable)
        self.batch = 0
        while self.batch < there["batch"] and next(items, self) is not self:
            self.batch += 1
        set_random_state(there["random_now"])
        self.loaded = None
        return items

    def next(self):
        if self.depth == 1:
            self.batch += 1

    def end(self):
        self.depth -= 1
        if self.depth == 0 and self.pass_over > 0:
            self.pass_over -= 1
        elif self.depth == 0:
            self.epoch += 1
            self.batch = 0


# ---- states

HOW = (("state_dict", "load_state_dict"), ("get_weights", "set_weights"))


def get(thing):
    for getter, _ in HOW:
        if hasattr(thing, getter):
            return getattr(thing, getter)()
    return dict(thing)


def put(thing, state):
    for getter, setter in HOW:
        if hasattr(thing, getter):
            getattr(thing, setter)(state)
            return
    thing.clear()
    thing.update(state)


def refusal(things):
    """Why these cannot be saved by one process alone; "": they can."""
    for thing in things:
        parts = thing.parameters() if hasattr(thing, "parameters") else ()
        if type(thing).__name__ == "FullyShardedDataParallel" or any(type(part).__name__ == "DTensor" for part in parts):
            return "autosave cannot save a model that is in parts on several ranks; antifreeze.on_checkpoint() can"
    return ""


def dump(state, part):
    if "torch" in sys.modules:
        sys.modules["torch"].save(state, part)
    else:
        import pickle
        with open(part, "wb") as file:
            pickle.dump(state, file, protocol=4)


def load(path):
    with open(path, "rb") as file:
        if file.read(2) == b"PK":
            import torch  # it was torch that wrote it
            return torch.load(path, map_location="cpu", weights_only=False)  # the program's own file, with its own classes
        import pickle
        file.seek(0)
        return pickle.load(file)


def random_state():
    """Of all that the program has."""
    state = {}
    modules = sys.modules
    if "random" in modules:
        state["python"] = modules["random"].getstate()
    if "numpy" in modules and "numpy.random" in modules:
        state["numpy"] = modules["numpy.random"].get_state()
    torch = modules.get("torch")
    if torch is not None:
        state["torch"] = torch.get_rng_state()
        if torch.cuda.is_initialized():  # is_available() would ask the driver, and no child that is forked could use CUDA then
            state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_random_state(state):
    for name, value in (state or {}).items():
        if name == "python":
            import random
            random.setstate(value)
        elif name == "numpy":
            import numpy
            numpy.random.set_state(value)
        elif name == "torch":
            sys.modules["torch"].set_rng_state(value)
        elif name == "cuda" and sys.modules["torch"].cuda.device_count() == len(value):
            sys.modules["torch"].cuda.set_rng_state_all(value)


def read_json(path):
    """What is in it, or {}: a file that is cut is no answer."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}
