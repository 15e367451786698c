#!/usr/bin/python3
"""The zoo: whether its rows are whole, its examiner's eye, and its quick rows, under protect (some 60 s).

    test_zoo.py BUILD [TARGET...]

What needs torch is left out where there is none. `make zoo` runs all rows, under both policies.
"""
import argparse
import concurrent.futures
import contextlib
import dataclasses
import io
import json
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", folder) for folder in ("zoo", "tests", "lab")]

import lab_part  # noqa: E402
import play  # noqa: E402
import played  # noqa: E402
import tell  # noqa: E402
from manifest import ROWS  # noqa: E402
from row import CLEAN, FAILED, FINISHED, STOPPED, Row, allowed  # noqa: E402
from scenario import Checks  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
OPTIONS = argparse.Namespace(build=BUILD, antifreeze=os.path.join(BUILD, "antifreeze"), python=None, keep=None, patience=1.5)
ALL = Checks(deadline=120)
check = ALL.check
# The seeds' examples that load data have a form with antifreeze.Loader.
EXAMPLES = {f"{seed:03}-e{example}" for seed in range(5) for example in (1, 2, 3)}
LOADS = {"000-e3", "001-e3", "003-e1", "003-e3", "004-e1"}
HARMLESS = {"001-e1"}  # a monitor: there is nothing to show
AT_ONCE = 3


def forms():
    """{example of a seed: its forms}"""
    found = {}
    for row in ROWS:
        match = re.fullmatch(r"\w+/(\d{3}-e\d)/(\w+)[\w-]*", row.name)
        if match:
            found.setdefault(match[1], set()).add(match[2])
    return found


def test_rows():
    names = [row.name for row in ROWS]
    check("no row is there twice", len(set(names)) == len(names), names)
    ill = {row.path for row in ROWS if not row.is_clean}
    for row in ROWS:
        marked = bool(row.functions) or any(played.marks(row))
        check(f"{row.name}: there is a program, or a cell of the lab", row.is_here or row.cell, row.path)
        check(f"{row.name}: what is clean has no line to name", not (row.is_clean and marked) or row.path in ill, row)
        check(f"{row.name}: ends that there are", set(allowed(row.protect)) | set(allowed(row.adapt or ())) <= {FINISHED, STOPPED, FAILED}, row)
        check(f"{row.name}: says why", row.why.endswith("."), row.why)
        check(f"{row.name}: what is clean finishes", not row.is_clean or {row.protect, row.adapt} <= {FINISHED, None}, row)


def test_forms():
    there = forms()
    check("every example of the seeds is there", set(there) == EXAMPLES, EXAMPLES - set(there))
    for example, has in there.items():
        wanted = {"written"} | (set() if example in HARMLESS else {"shown", "correct"}) | ({"loader"} if example in LOADS else set())
        check(f"{example}: its forms", wanted <= has, wanted - has)


def test_examiner():
    """Hand-made verdicts and results."""
    row = next(row for row in ROWS if row.name == "torch/000-e1/shown")
    (file, line), = played.marks(row)[0]
    leak = {"id": row.want[0], "level": "act", "where": {"file": f"/x/{file}", "line": line}}
    for what, part, verdicts, right in [
            ("right", "protect", [leak], (True, True)),
            ("another line", "adapt", [{**leak, "where": {"file": file, "line": 1}}], (True, False)),
            ("nothing said", "protect", [], (False, False))]:
        got = play.examined(row, part, verdicts)
        check(f"the examiner: {what}", (got["verdict_right"], got["line_right"]) == right, got)
    other = Row("x/y", ("batch-too-large",), "1G", STOPPED, FINISHED, "", want_adapt=CLEAN)
    check("adapt may want another verdict", play.examined(other, "adapt", [])["verdict_right"])
    check("no line is looked for where none is marked", play.examined(other, "protect", [leak])["line_right"] is None)
    named = Row("trainer/x", ("leak",), "1G", STOPPED, STOPPED, "", functions=("keep",))
    for function, right in (("keep", True), ("main", False)):
        got = play.examined(named, "protect", [{"id": "leak", "level": "act", "where": {"function": function}}])
        check(f"a function: {function}", got["line_right"] == right, got)
    check("ends", [play.how(code) for code in (0, 75, 1, -9)] == [FINISHED, STOPPED, FAILED, FAILED])


def with_lab(program, run):
    """run() with a stand-in for the lab: what it gives, and what it printed on stderr."""
    with tempfile.TemporaryDirectory() as folder:
        stand_in, kept = os.path.join(folder, "lab"), lab_part.LAB
        with open(stand_in, "w", encoding="utf-8") as file:
            file.write(f"import sys\n{program}")
        lab_part.LAB, said = stand_in, io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                return run(), said.getvalue()
        finally:
            lab_part.LAB = kept


def test_lab():
    """What comes back from the lab, by a stand-in for it."""
    run = {"status": 75, "ended": True, "after_s": 9.1, "late_ms": 12., "stalled_s": 0, "else_died": [], "noisy": False,
           "verdict": {"verdicts": [{"id": "leak", "level": "act", "where": None}]}}
    froze = {**run, "status": None, "ended": False, "late_ms": 5300., "else_died": ["sshd"], "verdict": None}
    names = "scope/train-history/disk/user", "none/train-history/disk/user"
    row = Row("causes/only-there", ("leak",), "1G", STOPPED, None, "It leaks.", cell=names[0])

    def played_with(guarded, unguarded):
        document = {"cells": [{"cell": name, "missed": [], "runs": runs} for name, runs in zip(names, (guarded, unguarded))]}
        program = (f"assert {names[0]!r} in sys.argv and {names[1]!r} in sys.argv\n"
                   f"open(sys.argv[sys.argv.index('--json') + 1], 'w').write({json.dumps(document)!r})\nprint('lab: at work', file=sys.stderr)\n")
        return with_lab(program, lambda: dict(lab_part.play_all([row], OPTIONS))[row])

    got, said = played_with([run], [froze])
    check("the lab's words", tell.lab_words(got) == "+0.01 s, stopped; +5.30 s, never, sshd died", tell.lab_words(got))
    check("the lab's run is right", tell.is_right(got), got)
    check("the lab's progress is passed on", "lab: at work" in said, said)
    got, _ = played_with([{**run, "status": 0}], [froze])
    check("a wrong end in the lab is wrong", not tell.is_right(got), got)
    got, _ = played_with([{**run, "ended": False}], [froze])
    check("one that never ends is wrong", not tell.is_right(got), got)
    for guarded, words in (([{**run, "ended": False, "noisy": True}], "busy host"), ([], "its machine ended before"),
                           ([{"error": "no gate"}], "no gate"), ([{**run, "verdict": None}], "no verdict")):
        got, _ = played_with(guarded, [froze])
        check(f"the lab's failure: {words}", words in got.get("error", ""), got)


def test_no_lab():
    row = Row("causes/only-there", ("leak",), "1G", STOPPED, None, "It leaks.", cell="scope/train-history/disk/user")
    for code, wanted in ((2, "left out: no freeze lab (lab: please install: QEMU) here"),
                         (1, "failed: the lab ended with 1; the last it said: lab: please install: QEMU")):
        got, _ = with_lab(f"print('vm: at work\\nlab: please install: QEMU', file=sys.stderr)\nsys.exit({code})",
                          lambda: dict(lab_part.play_all([row], OPTIONS))[row])
        check("no machine, or none that lived: one line", got == {"error": wanted}, got)


def test_vm_is_due():
    """What was run in the lab is run again when its job there changes."""
    row = next(row for row in ROWS if row.name == "trainer/clean")
    kept, before = lab_part.JOBS["train-clean"], lab_part.digest(row, OPTIONS)
    check("the same job, the same sum", lab_part.digest(row, OPTIONS) == before)
    lab_part.JOBS["train-clean"] = dataclasses.replace(kept, command=(*kept.command, "--seed", "7"))
    check("another job, another sum", lab_part.digest(row, OPTIONS) != before)
    lab_part.JOBS["train-clean"] = kept


def test_page():
    row = next(row for row in ROWS if row.name == "trainer/clean")
    run = {"said": "clean", "where": None, "verdict_right": True, "line_right": None, "ended": FINISHED, "end_right": True, "deeds": {},
           "later_ms": 3, "kept": True, "cost": .004, "attempts": 1, "seconds": 9, "peak_mb": 20}
    wrong = {**run, "said": "leak", "verdict_right": False}
    results = {"trainer/clean protect": run, "trainer/clean adapt": run, "trainer/clean bare": {"ended": FINISHED, "end_right": True, "seconds": 8}}
    text = tell.page([row], results)
    check("a right row", "| `trainer/clean` | clean | right | - | finished, 9 s | finished, 9 s | kept, +3 ms | 0.4% | 9, 8 |" in text, text)
    text = tell.page([row], {**results, "trainer/clean adapt": wrong})
    check("a false alarm is told", "**wrong**: leak under adapt" in text and "1 false alarms" in text, text)
    check("what did not run is told", "not run" in tell.page([row], {}))


def test_fast():
    fast = [row for row in ROWS if row.fast]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for row, future in [(row, pool.submit(play.play, row, "protect", OPTIONS)) for row in fast]:
            try:
                result = future.result()
            except played.Missing as missing:
                print(f"{row.name} is left out: no {missing} here")
                continue
            detail = {key: result[key] for key in ("said", "where", "ended", "deeds", "seconds", "shape_mb", "tail")}
            check(f"{row.name}: the verdict", result["verdict_right"], detail)
            check(f"{row.name}: the line", result["line_right"] is not False, detail)
            check(f"{row.name}: its end", result["end_right"], detail)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_") and os.environ.get("ONLY", "") in name:
            test()
    ALL.finish()
