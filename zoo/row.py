"""A row of the zoo: a program, and what has to be said and done when it is run under Antifreeze.

    Row("torch/000-e1/shown", ("leak:retained-history",), "800M", protect=STOPPED, adapt=STOPPED, why="...")

The name is the program's path in zoo/ without its ending: example 1 of seed 000, in the form that shows its trouble. The forms are
`written` (the seed's code and the least that makes it a training), `shown` (scaled or repaired, so that the trouble is real),
`correct`, and `loader` (the same with antifreeze.Loader); a name may go on behind that ("correct-seed").

The line that has to be named is marked in the source by a comment with "the line" in it: the innermost line of the program itself
that made what is to blame, or the line that stands still. Several may be marked where each is a good answer. Where none is marked, none is looked for.
"""
import os
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))

FINISHED, STOPPED, FAILED = "finished", "stopped", "failed"  # exit 0; 75, by us or a limit of ours; by itself, otherwise
CLEAN = ("clean",)


@dataclass(frozen=True)
class Row:
    name: str
    want: tuple  # verdicts of which one has to come first, apart from how the run ended; CLEAN: none at all
    budget: str
    protect: str  # how it ends: FINISHED, STOPPED, FAILED, or a tuple of them
    adapt: str  # the same under --policy adapt; None: there is nothing to adapt, and it is not run
    why: str  # a sentence: what the seed's label says, and what is true
    want_adapt: tuple = ()  # where it is another one than `want`: a batch that went through in parts is no trouble any more
    source: str = ""  # its file in zoo/, where that is not its name: a form that differs by an argument alone
    needs: tuple = ()  # beside the interpreter: "gpu", "fuse", or modules of Python, as "dask"
    options: tuple = ()  # of antifreeze run
    arguments: tuple = ()  # of the program
    environment: tuple = ()  # ("NAME=value", ...)
    libraries: tuple = ()  # C files beside the program, each built into the folder it runs in (crash.c -> ./crash.so)
    beside: str = ""  # a Python program beside it that is started before, says a line when it is ready, and is ended after
    within: str = ""  # a shell script beside it that makes a place (a small /dev/shm, say) and ends in exec "$@": Antifreeze itself runs in there
    functions: tuple = ()  # where no line is marked in a source of ours: the functions that may be named
    cell: str = ""  # its job in the freeze lab (lab/cells.py), where it is also run without us
    given_up_s: int = 0  # a program that hangs is killed after so long, as its user would do it
    limit_s: int = 120  # of what it may take on a machine of its own
    fast: bool = False  # part of make test

    @property
    def group(self):
        return self.name.split("/")[0]

    @property
    def language(self):
        """What runs it: a module that the interpreter has to have, "python", "cc" or "trainer"."""
        if self.group == "trainer":
            return "trainer"
        if self.path.endswith((".c", ".cc")):
            return "cc"
        return self.group if self.group in ("torch", "tensorflow") else "python"

    @property
    def is_here(self):
        """Whether it is run on this machine, and not in the lab alone."""
        return self.language == "trainer" or os.path.exists(self.path)

    @property
    def is_clean(self):
        return self.want == CLEAN

    @property
    def path(self):
        if self.source:
            return os.path.join(HERE, self.source)
        whole = os.path.join(HERE, self.name)
        return next((whole + end for end in (".py", ".c", ".cc") if os.path.exists(whole + end)), whole)

    def sources(self):
        """All that is marked, and changes what comes out."""
        folder = os.path.dirname(self.path)
        beside = [os.path.join(folder, name) for name in (*self.libraries, self.beside, self.within) if name]
        return [path for path in (self.path, *beside) if os.path.exists(path)]


def allowed(ends):
    return (ends,) if isinstance(ends, str) else tuple(ends)
