"""Interpreters that have the frameworks (torch, tensorflow, keras, ...), for the tests that need them.

    python = python_with("torch")          # a path, or None
    skip_without("torch", "lightning")     # the same, or the test ends as skipped and says why

Looked at, in this order: AFZ_FRAMEWORKS_PYTHON in the environment; what `make test-frameworks` has made (build-frameworks); the
python3 of the machine. A framework counts as there when it is found; it is not imported for that.
"""
import functools
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOOK = "import sys, importlib.util as u; sys.exit(not all(u.find_spec(name) for name in sys.argv[1:]))"
SKIPPED = 77


def candidates():
    yield os.environ.get("AFZ_FRAMEWORKS_PYTHON")
    yield os.path.join(ROOT, "build-frameworks", "bin", "python")
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


def skip_without(*modules):
    python = python_with(*modules)
    if not python:
        print(f"no Python with {', '.join(modules)} here: make test-frameworks gets one, or name it in AFZ_FRAMEWORKS_PYTHON")
        sys.exit(SKIPPED)
    return python
