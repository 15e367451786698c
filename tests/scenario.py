"""What scenario tests share: checks that are counted (Checks), folders of their own (World), and both for `antifreeze run` in
the tiers to be had here (Scenario).

    world = Scenario(deadline=60)
    check, wait_for = world.check, world.wait_for
    ...
    world.play(globals())   # every test_* function, in every tier; then says what failed, and exits

The command line is ANTIFREEZE [TIER...]. ONLY=word in the environment plays the tests with that word in their names.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PYTHON = sys.executable
MB = 1 << 20


class Checks:
    """Counts what was checked, and tells what was not right."""

    def __init__(self, deadline):
        self.deadline = deadline  # seconds that anything may take: a sanitizer build on a busy machine is slow
        self.tier = ""
        self.checks, self.problems = 0, []

    def check(self, what, ok, detail=""):
        self.checks += 1
        if not ok:
            self.problems.append(what)
            print(f"NOT OK  {f'[{self.tier}] ' if self.tier else ''}{what}: {detail}", flush=True)

    def until(self, probe, seconds=None):
        """What the probe says, as soon as it is anything, or at last."""
        end = time.monotonic() + (seconds or self.deadline)
        while time.monotonic() < end:
            got = probe()
            if got:
                return got
            time.sleep(.02)
        return probe()

    def wait_for(self, what, probe, show=lambda: ""):
        got = self.until(probe)
        self.check(what, got, f"not within {self.deadline} s {show()}")
        return got

    def finish(self):
        print(f"{self.checks} checks, {len(self.problems)} failed")
        sys.exit(1 if self.problems else 0)


class World:
    """Runtime and state folders of its own, for commands that tell of runs; `more` goes into the environment."""

    def __init__(self, **more):
        self.dir = tempfile.mkdtemp(prefix="afz-")
        os.mkdir(self.at("run"), 0o700)
        self.env = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": self.at("run"), "XDG_STATE_HOME": self.at("state"),
                    "HOME": self.dir, "TZ": "UTC", **{name: os.environ[name] for name in os.environ if name.endswith("SAN_OPTIONS")}, **more}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)

    def at(self, *path):
        return os.path.join(self.dir, *path)

    def call(self, *args, **kw):
        return subprocess.run(list(map(str, args)), capture_output=True, text=True, timeout=90, env=self.env,
                              stdin=subprocess.DEVNULL, cwd=self.dir, check=False, **kw)


class Scenario(Checks):
    """`antifreeze run` in folders of its own, in every tier that is to be had."""

    def __init__(self, deadline, runtime=True):
        super().__init__(deadline)
        self.antifreeze = os.path.abspath(sys.argv[1])
        self.named = sys.argv[2:]
        self.tier = "none"
        # The writer of a run may still tidy its recording up when the run has ended: then a folder is not empty at once.
        self.folders = [tempfile.TemporaryDirectory(ignore_cleanup_errors=True), tempfile.TemporaryDirectory(dir="/dev/shm", ignore_cleanup_errors=True)]
        self.state, self.runtime = (folder.name for folder in self.folders)
        # A scope is asked for over the session's own bus, which stays where it is when the runtime folder is ours.
        if runtime and "DBUS_SESSION_BUS_ADDRESS" not in os.environ and "XDG_RUNTIME_DIR" in os.environ:
            os.environ["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={os.environ['XDG_RUNTIME_DIR']}/bus"
        self.places = {"XDG_STATE_HOME": self.state, **({"XDG_RUNTIME_DIR": self.runtime} if runtime else {})}
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also under nohup

    def environment(self, **more):
        return {**os.environ, "ANTIFREEZE_TIER": self.tier, **self.places, **more}

    def command(self, *args, options=()):
        return [self.antifreeze, "run", *options, "--", *args]

    def run(self, *args, options=(), **kw):
        return self.plain(*self.command(*args, options=options), **kw)

    def plain(self, *argv, **kw):
        kw = {"stdin": subprocess.DEVNULL, "text": True, "env": self.environment(), **kw}
        return subprocess.run(argv, capture_output=True, timeout=self.deadline, **kw)

    def start(self, *args, options=(), **kw):
        return subprocess.Popen(self.command(*args, options=options), text=True, env=self.environment(), **kw)

    def tiers(self):
        if self.named:
            return self.named
        found = []
        for self.tier in ("scope", "cgroup2", "cgroup1", "none"):
            r = self.run("true", options=["--json"])
            if r.returncode == 0 and json.loads(r.stderr.splitlines()[0])["tier"] == self.tier:
                found.append(self.tier)
        return found

    def leftovers(self):
        """What remains of our own runs besides their record: nothing may."""
        places = [os.path.join(self.runtime, "antifreeze"), os.path.join(self.state, "antifreeze/runs")]
        found, runs = [os.listdir(place) if os.path.isdir(place) else [] for place in places]
        found = [f for f in found if f.endswith((".run", ".sock"))]
        ours = {f"antifreeze-{run}" for run in runs}
        for root, dirs, _ in os.walk("/sys/fs/cgroup"):
            found += [os.path.join(root, d) for d in dirs if d.removesuffix(".scope") in ours]
        return found

    def nothing_left(self):
        """Guards that see survivors off take a moment; then nothing may be there."""
        self.until(lambda: not self.leftovers(), 10)
        self.check("nothing is left behind", self.leftovers() == [], self.leftovers())

    def scene(self, test):
        name, play = test
        before = time.monotonic()
        play()
        took = time.monotonic() - before
        if took > 20 or "TIMES" in os.environ:
            print(f"slow    [{self.tier}] {name}: {took:.1f} s", flush=True)

    def play(self, tests, play_all=None):
        """play_all: how the tests of one tier are played; one after the other if not given."""
        only = os.environ.get("ONLY", "")
        scenes = [(name, test) for name, test in tests.items() if name.startswith("test_") and only in name]
        for self.tier in self.tiers():
            if play_all:
                play_all(scenes)
            else:
                for test in scenes:
                    self.scene(test)
            print(f"tier {self.tier}: done", flush=True)
        self.finish()

    def finish(self):
        for folder in self.folders:
            folder.cleanup()
        super().finish()


def python(code):
    return PYTHON, "-c", code


def child_called(name, parent):
    """The pid of the process of that name below this one, or None."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                stat = file.read()
        except OSError:
            continue
        if f"({name})" in stat and int(stat.rsplit(")", 1)[1].split()[1]) == parent:
            return int(pid)
    return None


def guard_of(front):
    """The pid of the guard below this `antifreeze run`."""
    return child_called("afz-guard", front)


def tree(path):
    """Every file below a folder, and its bytes."""
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found[os.path.relpath(os.path.join(folder, name), path)] = file.read()
    return found
