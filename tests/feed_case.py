"""What the tests of antifreeze.Loader's hand-over have in common: an interpreter that has the frameworks, a folder with samples, and
programs of their own.

    import feed_case
    feed_case.begin(__doc__)     # or enter(), where the samples are others
    import antifreeze
"""
import atexit
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings

from frameworks import skip_without

SAMPLES, WIDTH, BATCH = 5003, 64, 32
BATCHES = -(-SAMPLES // BATCH)
PATIENCE_S = 300
HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = FOLDER = X = Y = None


def enter(doc, *modules):
    """Takes PYTHON_FOLDER LIBRARY from the command line and comes back in an interpreter that has the modules. Returns the folder."""
    if len(sys.argv) < 3:
        sys.exit(doc)
    python = skip_without(*modules)
    if os.environ.get("AFZ_FEED_INSIDE") != python:
        os.environ["AFZ_FEED_INSIDE"] = python
        os.execv(python, [python, "-B", *sys.argv])
    os.environ["ANTIFREEZE_LOADER"] = os.path.abspath(sys.argv.pop(2))
    folder = os.path.abspath(sys.argv.pop(1))
    sys.path.insert(0, folder)
    return folder


def begin(doc, samples=SAMPLES):
    """X: each sample a row that counts from its number on; Y: the numbers."""
    global PYTHON, FOLDER, X, Y
    PYTHON = enter(doc, "numpy", "torch")
    import numpy
    FOLDER = tempfile.mkdtemp()
    pid = os.getpid()
    atexit.register(lambda: os.getpid() == pid and shutil.rmtree(FOLDER))
    X, Y = FOLDER + "/x.npy", FOLDER + "/y.npy"
    numpy.save(X, numpy.arange(samples, dtype=numpy.float32)[:, None] + numpy.arange(WIDTH, dtype=numpy.float32))
    numpy.save(Y, numpy.arange(samples))


def needs(*modules):
    missing = [name for name in modules if not importlib.util.find_spec(name)]
    return unittest.skipIf(missing, "no " + ", ".join(missing))


class Case(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("error")

    def loader(self, **options):
        import antifreeze
        return antifreeze.Loader(X, labels=Y, **{"batch": BATCH, "budget": "1M", "seed": 5, "as_": "numpy", **options})

    def labels(self, loader):
        return [int(i) for _, y in loader for i in y]

    def program(self, text, *argv, env=(), launcher=()):
        """What a program says that has X, Y, antifreeze, and argv."""
        path = os.path.join(FOLDER, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"import sys; sys.path[:0] = [{PYTHON!r}, {HERE!r}]\nimport os, antifreeze\nX, Y = {X!r}, {Y!r}\n")
            file.write(textwrap.dedent(text))
        r = subprocess.run([sys.executable, "-B", *launcher, path, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           timeout=PATIENCE_S, check=False, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **dict(env)})
        self.assertEqual(r.returncode, 0, r.stderr[-3000:])
        return r.stdout


class TransformCase(Case):
    def loader(self, transform, workers, **options):
        return super().loader(transform=transform, workers=workers, **options)

    def epoch(self, loader):
        return [[part.tobytes() for part in batch] for batch in loader]

    def labels(self, loader):
        return [int(i) for batch in loader for i in batch[1]]
