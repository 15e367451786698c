# The agent's way into a Python program: `antifreeze run` puts this folder ahead on PYTHONPATH, and Python imports a
# module of this name when it starts. It takes itself out of the program's sight (sys.path, sys.modules), lets the agent in
# where there is a guard or a probe to talk to, and hands on to the sitecustomize that would have been imported without it. If there is
# none, it ends as Python expects it of a module that is not there.
#
# Any Python may come by here, also 2.7: only words that all of them know.
import sys


def leave(folder):
    # Whether it was on the path under this name: else looking for the next one would find this one again.
    found = folder in sys.path
    sys.path[:] = [place for place in sys.path if place != folder]
    sys.path_importer_cache.pop(folder, None)
    return found


def let_in(package):
    import os
    is_held = os.environ.get("ANTIFREEZE_PROBE") or os.environ.get("ANTIFREEZE_SOCKET")
    if not is_held or sys.version_info < (3, 8) or "_antifreeze" in sys.modules:
        return
    # Under a name of its own, without running its __init__: `antifreeze` may be a module of the program's.
    door = sys.modules["_antifreeze"] = type(sys)("_antifreeze")
    door.__path__ = [package]
    from _antifreeze import watch
    watch.start()


def drop_bytecode(folder):
    # Python 2 has put it beside this file; Python 3 is kept from it by the file __pycache__.
    import os
    os.remove(folder + "/sitecustomize.pyc")


def not_there():
    error = ImportError("No module named 'sitecustomize'")
    error.name = "sitecustomize"
    return error


folder = __file__.rpartition("/")[0]
me = sys.modules.pop("sitecustomize", None)  # held on to: Python 2 empties a module that nobody has
was_there = leave(folder)
try:
    let_in(folder.rpartition("/")[0])
    if sys.version_info < (3, 0):
        drop_bytecode(folder)
except Exception:  # the program runs as if alone
    pass
if not was_there:
    raise not_there()
import sitecustomize
