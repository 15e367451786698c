#!/usr/bin/env python3
"""What explain.c does not read of a recording must be asked for by nobody who is handed one.

    tests/test_unasked.py SOURCE

A judge that asks for a figure which was left out would be silent for ever, and no other test would tell.
"""
import glob
import os
import re
import sys

JUDGES = ("src/judge/*.c", "src/model/flight*.c")
SHOWS = ("src/view/report*.c", "src/cli/why*.c", "src/cli/cmd_why.c", "src/cli/cmd_report.c", "src/judge/memory_ledger.c")


def names_after(text, word):
    """The figures in the list of that name."""
    found = re.search(rf"\b{word} =\s*((?:BIT\(AFZ_PROC_\w+\)[\s|]*)+);", text)
    return set(re.findall(r"AFZ_PROC_\w+", found.group(1))) if found else set()


def ask(root, patterns, but, left_out):
    """How many of those files ask for what is left out."""
    files = [f for p in patterns for f in glob.glob(f"{root}/{p}") if os.path.basename(f) not in but]
    bad = 0
    for name in files:
        with open(name, encoding="utf-8") as f:
            for metric in sorted(left_out & set(re.findall(r"\bAFZ_PROC_\w+", f.read()))):
                print(f"{name[len(root) + 1:]} asks for {metric}, which explain.c leaves out: take it off that list")
                bad += 1
    return bad, len(files)


def main():
    root = sys.argv[1]
    with open(f"{root}/src/engine/explain.c", encoding="utf-8") as f:
        text = f.read()
    unasked, only_shown = names_after(text, "unasked"), names_after(text, "only_shown")
    # The ledger is not a judge's.
    judges, judge_files = ask(root, JUDGES, ("memory_ledger.c",), unasked | only_shown)
    shows, show_files = ask(root, SHOWS, (), unasked)
    print(f"{len(unasked)} figures left out always, {len(only_shown)} for judges; "
          f"{judge_files + show_files} files looked at")
    if len(unasked) < 5 or len(only_shown) < 5 or judge_files < 20 or show_files < 5:
        sys.exit("test_unasked: what it looks for is elsewhere now")
    if re.findall(r"afz_ledger_\w+\(", "".join(open(f, encoding="utf-8").read()
                                               for f in glob.glob(f"{root}/src/judge/judge_*.c"))):
        sys.exit("test_unasked: a judge asks the ledger; then it needs what is only shown now")
    sys.exit(judges + shows > 0)


main()
