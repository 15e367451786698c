#!/usr/bin/python3
"""The quick part of the set of programs (tests/lines): C and plain Python, all at once, some 30 s.

    test_lines.py ANTIFREEZE [PROBE]

Here a run that was ended before a leak could be told from it may be called by its end alone, since machines that test are busy;
the line has to be right. `make lines` runs all of them, one at a time, and wants the verdict, too.
"""
import argparse
import concurrent.futures
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "lines")]

import lines  # noqa: E402
import played  # noqa: E402
from programs import CLEAN, LEAK, PROGRAMS, Program  # noqa: E402
from scenario import Checks  # noqa: E402

ALL = Checks(deadline=120)
check = ALL.check
OPTIONS = argparse.Namespace(antifreeze=os.path.abspath(sys.argv[1]), python=None, limit=150, keep=None)


def verdict(id, level="act", where=None):
    return {"id": id, "level": level, "where": where}


def test_set():
    names = [p.name for p in PROGRAMS]
    check("no program is there twice", len(set(names)) == len(names), names)
    check("there are 60 and more", len(names) >= 60, len(names))
    second = [p for p in PROGRAMS if p.second]
    aside = sum(p.aside for p in second)
    check("a third of the second set is set aside", .3 < aside / len(second) < .4, aside)
    check("and nothing of it is run here", not any(p.aside for p in PROGRAMS if p.fast))
    for p in PROGRAMS:
        marked = any(played.marks(p))
        check(f"{p.name}: a line is marked, unless it is clean", marked == (p.want != CLEAN), played.marks(p))


def test_examiner():
    """What is right and what is wrong, said of hand-made verdicts."""
    early = next(p for p in PROGRAMS if p.name == "c/early_return")
    (file, line), = played.marks(early)[0]
    here = {"file": "/somewhere/" + file, "line": line, "function": "image_read"}
    there = {**here, "line": line + 1}
    stripped = next(p for p in PROGRAMS if p.name == "c/stripped")
    clean = Program("c/clean_ring", CLEAN, "1G")
    for what, program, verdicts, right in [
            ("right", early, [verdict("leak", where=here)], (True, True)),
            ("an end may come first", early, [verdict("host-exhaustion"), verdict("leak", where=here)], (True, True)),
            ("an end alone", early, [verdict("host-exhaustion", where=here)], (False, True)),
            ("another line", early, [verdict("leak", where=there)], (True, False)),
            ("no line", early, [verdict("leak")], (True, False)),
            ("another verdict", early, [verdict("data-stall", where=here), verdict("leak", where=here)], (False, True)),
            ("a remark is no verdict", early, [verdict("leak", level="ok", where=here)], (False, False)),
            ("nothing", early, [], (False, False)),
            ("a function", stripped, [verdict("leak", where={"file": None, "line": None, "function": "keep_reading"})], (True, True)),
            ("another function", stripped, [verdict("leak", where={"function": "main"})], (True, False)),
            ("clean", clean, [verdict("clean", level="ok")], (True, None)),
            ("a false alarm", clean, [verdict("leak", level="warn")], (False, None))]:
        got = played.judge(program, verdicts)
        check(f"the examiner: {what}", (got["verdict_right"], got["line_right"]) == right, got)


def test_programs():
    """All at once: they wait more than they work."""
    fast = [p for p in PROGRAMS if p.fast]
    with concurrent.futures.ThreadPoolExecutor(len(fast)) as pool:
        for program, future in [(p, pool.submit(lines.run, p, OPTIONS)) for p in fast]:
            try:
                result = future.result()
            except played.Missing as missing:
                print(f"{program.name} is left out: no {missing} here")
                continue
            detail = {key: result[key] for key in ("said", "where", "end", "seconds", "shape_mb", "tail")}
            may = program.want + played.ENDS if program.want == LEAK else program.want
            check(f"{program.name}: the verdict", result["said"] in may, detail)
            check(f"{program.name}: the line", result["line_right"] in (True, None), detail)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_") and os.environ.get("ONLY", "") in name:
            test()
    ALL.finish()
