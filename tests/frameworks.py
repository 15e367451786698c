"""Interpreters that have the frameworks (torch, tensorflow, keras, ...), for the tests that need them.

    python = python_with("torch")          # a path, or None
    skip_without("torch", "lightning")     # the same, or the test ends as skipped and says why
    for name in in_turn(PROGRAMS): ...     # all; with AFZ_TURN=K/N in the environment every Nth, from the Kth on

Looked at, in this order: AFZ_FRAMEWORKS_PYTHON in the environment; what `make test-frameworks` has made (build-frameworks); the
python3 of the machine. A framework counts as there when it is found; it is not imported for that.
"""
import functools
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOOK = "import sys, importlib.util as u; sys.exit(not all(u.find_spec(name) for name in sys.argv[1:]))"
SKIPPED = 77


def candidates():
    yield os.environ.get("AFZ_FRAMEWORKS_PYTHON")
    made = os.path.join(ROOT, "build-frameworks")
    if os.path.exists(made + "/frameworks.txt"):  # else tools/frameworks is not done with it yet
        yield made + "/bin/python"
    yield sys.executable
    yield "python3"


@functools.lru_cache(maxsize=None)
def has(python, modules):
    try:
        return subprocess.run([python, "-c", LOOK, *modules], capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def python_with(*modules):
    """The first interpreter that has all of these, or None."""
    return next((python for python in candidates() if python and has(python, modules)), None)


def in_turn(rows):
    """Those whose turn it is: the programs take minutes, and all at every change are too many (.ci/run). Where there are few, one."""
    rows = list(rows)
    turn, turns = map(int, os.environ.get("AFZ_TURN", "0/1").split("/"))
    return rows[turn % max(1, min(turns, len(rows)))::turns]


class InTurn(unittest.TestLoader):
    """The tests of a module whose turn it is; those that are named are always played."""

    def loadTestsFromModule(self, module, *args, **kwargs):
        return unittest.TestSuite(in_turn(self.each(super().loadTestsFromModule(module, *args, **kwargs))))

    def each(self, suite):
        for test in suite:
            yield from self.each(test) if isinstance(test, unittest.TestSuite) else [test]


def skip_without(*modules):
    python = python_with(*modules)
    if not python:
        print(f"no Python with {', '.join(modules)} here: make test-frameworks gets one, or name it in AFZ_FRAMEWORKS_PYTHON")
        sys.exit(SKIPPED)
    return python
