"""Checks on a machine with a GPU, each in a process of its own: a name, and the text of a program. In it check(what, is_true, *more) says
what holds; BEFORE comes before each of them, and end() behind."""
import os
import subprocess
import sys

PATIENCE_S = 300
BEFORE = """
import sys
def check(what, is_true, *more):
    print("  ", "ok  " if is_true else "FAIL", what, *more, flush=True)
    if not is_true: failed.append(what)
failed = []
def end(): sys.exit(bool(failed))
"""


def run_all(checks, before, *argv, env=None):
    """env(name): what a check finds in its environment besides. Returns an exit status."""
    failed = 0
    for name, text in checks.items():
        print(name, flush=True)
        plain = {key: value for key, value in os.environ.items() if not key.startswith("ANTIFREEZE")}
        status = subprocess.run([sys.executable, "-B", "-c", BEFORE + before + text + "\nend()", *argv],
                                env={**plain, **(env(name) if env else {})}, timeout=PATIENCE_S, check=False).returncode
        if status:
            failed += 1
            print(f"   FAIL: ended with {status}", flush=True)
    print(f"{len(checks) - failed} of {len(checks)} hold")
    return failed > 0
