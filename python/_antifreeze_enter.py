"""The agent's way in where the wheel is installed: antifreeze.pth imports this when Python starts, in a job of `antifreeze run`
alone. It is for what PYTHONPATH does not reach: python -I and -E, a program that sets PYTHONPATH anew for its children, tools
that start Python with an environment of their own. Whichever way comes first lets the agent in, and the other does nothing.

The agent is that of the `antifreeze` which runs the job; the wheel's own only where that one cannot be read (a container).
The .pth takes this module out of the program's sight again.
"""
import os
import sys


def let_in():
    enter = os.environ["ANTIFREEZE_AGENT"]
    package = os.path.dirname(enter) if os.path.isfile(enter + "/sitecustomize.py") else os.path.dirname(__file__) + "/antifreeze"
    if sys.version_info < (3, 8) or "_antifreeze" in sys.modules:
        return
    door = sys.modules["_antifreeze"] = type(sys)("_antifreeze")
    door.__path__ = [package]
    from _antifreeze import watch
    watch.start()


try:
    let_in()
except Exception:  # the program runs as if alone
    pass
