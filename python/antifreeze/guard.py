"""antifreeze.guard(): holds this very process, where no command can be put in front of it: the first cell of a notebook, the
first line of a program that is started by a button.

It starts `antifreeze attach` on its own process, which is no child of it then: a guard must not be part of what it guards. What
`antifreeze run` does by being there first (the lines that hold memory, the count of steps in the recording) is not to be had.
"""
import json
import os
import sys
import time

PATIENCE_S = 10.0  # for the guard to be there: it has a cgroup to make
RUNTIME = ("/run/user/{uid}/antifreeze", "/dev/shm/antifreeze-{uid}", "/tmp/antifreeze-{uid}")

OURS = ("ANTIFREEZE_RUN", "ANTIFREEZE_SOCKET", "ANTIFREEZE_POLICY")  # of the environment

_held = None


class Guard:
    """What came of it. True when the process is held."""

    def __init__(self, run="", why="", pid=0):
        self.run, self.why, self._pid = run, why, pid

    def __bool__(self):
        return bool(self.run)

    def __repr__(self):
        return f"<held by Antifreeze: run {self.run}>" if self.run else f"<not held by Antifreeze: {self.why}>"

    def release(self):
        """Lets this process go again."""
        global _held
        pid, self._pid, self.run, self.why = self._pid, 0, "", "it was released"
        _held = None
        if pid:
            for name in OURS:
                os.environ.pop(name, None)
            import signal
            try:
                os.kill(pid, signal.SIGINT)
            except ProcessLookupError:
                pass


def guard(budget=None, policy="protect", quiet=False):
    """Holds this process to `budget` ("8G", "75%", or bytes; None: what the machine can give), as `antifreeze run` would. Call it
    before large things are loaded. Where it cannot be, a warning says why, and the program runs on."""
    global _held
    if _held:
        return _held
    if os.environ.get("ANTIFREEZE_SOCKET"):
        _held = Guard(os.environ.get("ANTIFREEZE_RUN", "this one"))
        return _held
    try:
        made = start(options(budget, policy, quiet))
    except Exception as error:
        made = Guard(why=f"{type(error).__name__}: {error}")
    if made:
        _held = made
        come_in(policy)
    else:
        import warnings
        warnings.warn(f"antifreeze.guard(): this process is not held: {made.why}", RuntimeWarning, 2)
    return made


def options(budget, policy, quiet):
    words = ["--policy", policy]
    if budget is not None:
        words += ["--budget", str(budget)]
    return words + (["--quiet"] if quiet else [])


def program():
    """Where `antifreeze` lies; None: nowhere."""
    import shutil
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("ANTIFREEZE_PROGRAM"), shutil.which("antifreeze"), os.path.join(sys.prefix, "bin", "antifreeze"),
              os.path.join(here, "../../antifreeze"),  # a build folder
              os.path.join(here, "../../../../bin/antifreeze")]  # share/antifreeze/python/antifreeze
    return next((place for place in places if place and os.path.isfile(place) and os.access(place, os.X_OK)), None)


def start(words):
    import subprocess
    antifreeze = program()
    if not antifreeze:
        return Guard(why="the program `antifreeze` was not found on PATH; install it, or name it in ANTIFREEZE_PROGRAM")
    if not sys.platform.startswith("linux"):
        return Guard(why="Antifreeze works on Linux only")
    # A shell that ends at once leaves it to init. It stays in no session of ours: Ctrl-C is for the program.
    command = [antifreeze, "attach", *words, str(os.getpid())]
    shell = subprocess.run(["/bin/sh", "-c", '"$@" >/dev/null & echo $!', "sh", *command], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, start_new_session=True, check=True)
    pid = int(shell.stdout)
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        run = which_run(antifreeze)
        if run:
            tell_environment(run)
            return Guard(run, pid=pid)
        if not os.path.exists(f"/proc/{pid}"):
            return Guard(why="`antifreeze attach` ended at once; what it says stands on stderr")
        time.sleep(.02)
    return Guard(why=f"the guard did not come within {PATIENCE_S:.0f} seconds")


def which_run(antifreeze):
    """The run that holds this process, or ""."""
    import subprocess
    r = subprocess.run([antifreeze, "why", "--json", str(os.getpid())], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL, check=False)
    try:
        told = json.loads(r.stdout)
        return told["run"] if told["end"] is None else ""
    except (ValueError, KeyError, TypeError):
        return ""


def tell_environment(run):
    """As `antifreeze run` would have: for the agent here, and for children."""
    folders = [os.environ["XDG_RUNTIME_DIR"] + "/antifreeze"] if os.environ.get("XDG_RUNTIME_DIR") else []
    folders += [folder.format(uid=os.getuid()) for folder in RUNTIME]
    os.environ["ANTIFREEZE_RUN"] = run
    for folder in folders:
        path = f"{folder}/{run}.sock"
        if os.path.exists(path):
            os.environ["ANTIFREEZE_SOCKET"] = path
            return


def come_in(policy):
    """The agent, for frameworks that are here already and for those to come."""
    os.environ["ANTIFREEZE_POLICY"] = policy
    try:
        from . import talk, watch
        talk.try_again()
        watch.start()
    except Exception:  # then it is held all the same
        pass
