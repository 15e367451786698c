#!/usr/bin/python3
"""What a user can get wrong, and what is said then: one line that names the thing, the reason and the way out, and the right status.

    test_errors.py ANTIFREEZE
"""
import os
import sys

from scenario import Checks, World

ANTIFREEZE = os.path.abspath(sys.argv[1])
ALL = Checks(deadline=60)
check = ALL.check

# Words after antifreeze: the status, and what must be in the line.
USAGE = {
    "rnu -- true": (2, "'rnu'", "did you mean 'run'?"),
    "zzz": (2, "'zzz'", "--help"),
    "--foo": (2, "'--foo'", "--help"),
    "run": (125, "CMD is missing", "antifreeze run --help"),
    "run --budget 5 -- true": (125, "--budget", "4M is the least"),
    "run --budget 150% -- true": (125, "'150%'", "at most 100%"),
    "run --budget lots -- true": (125, "'lots'", "such as 12G"),
    "run --bugdet 1G -- true": (125, "'--bugdet'", "did you mean '--budget'?"),
    "run --policy watch --policy adapt -- true": (125, "--policy is given twice", "keep one"),
    "run --policy prot -- true": (125, "'prot'", "watch, protect or adapt"),
    "run --batch 8 -- true": (125, "--batch", "such as python train.py --batch-size {batch}"),
    "run --restarts 3 -- true": (125, "--restarts", "or --policy adapt"),
    "run --amp -- true": (125, "--amp", "needs --policy adapt"),
    "run --checkpoint-signal KILL -- true": (125, "'KILL'", "USR1 is the usual one"),
    "run --run-dir /nonexistent/a/b -- true": (125, "/nonexistent/a/b", "make the folder above it first"),
    "attach x": (125, "'x' is no process number", "antifreeze watch"),
    "attach 4194304": (125, "4194304", "No such process"),
    "why": (2, "no run yet", "antifreeze run -- CMD"),
    "why nonsense": (2, "'nonsense'", "'antifreeze runs' lists them"),
    "why 2026": (2, "process 2026", "'antifreeze runs' lists them"),
    "why / ": (2, "neither a run's folder nor a recording"),
    "why --json --paste": (2, "exclude one another", "keep one of them"),
    "export --format xml": (2, "'xml'", "csv, jsonl"),
    "set x": (2, "--budget or --swap"),
    "set x --budget 1G": (2, "'x'", "'antifreeze runs' lists them"),
    "watch 4194304": (2, "4194304"),
    "capture": (2, "DIR is missing", "antifreeze capture --help"),
    "completion tcsh": (2, "'tcsh'", "bash, zsh and fish"),
    "kernel instal": (2, "'instal'", "install nor remove"),
    "kernel remove": (2, "none to remove", "--name or --prefix"),
    "kernel install --python nope": (2, "'nope'", "such as /usr/bin/python3"),
    "help nonsense": (2, "'nonsense'", "--help"),
}


def say(what, r, status, *words):
    lines = (r.stdout + r.stderr).splitlines()
    check(what, r.returncode == status and len(lines) == 1 and lines[0].startswith("antifreeze: ") and all(word in lines[0] for word in words), r)


def test_usage(w):
    for line, (status, *words) in USAGE.items():
        say(f"antifreeze {line}", w.call(ANTIFREEZE, *line.split()), status, *words)


def test_places(w):
    r = w.call("env", "ANTIFREEZE_TIER=best", ANTIFREEZE, "run", "--", "true")
    say("a tier that is none", r, 125, "'best'", "scope, cgroup2, cgroup1 and none")
    with open(w.at("state"), "w", encoding="ascii"):
        pass
    r = w.call(ANTIFREEZE, "run", "--quiet", "--", "true")
    check("nowhere to record", r.returncode == 0 and w.at("state") in r.stderr and "--run-dir names another place" in r.stderr, r)
    r = w.call(ANTIFREEZE, "run", "--run-dir", "mine", "--", "true")
    check("and that is the way out", r.returncode == 0 and "not recorded" not in r.stderr and os.path.exists(w.at("mine/verdict.json")), r)


def test_full(w):
    for words in ("why --explain", "why --explain leak", "man"):
        r = w.call("sh", "-c", f"exec '{ANTIFREEZE}' {words} > /dev/full")
        check(f"{words}, onto a full disk", r.returncode == 2 and r.stderr.startswith("antifreeze: ") and "stdout" in r.stderr, r)


for test in (test_usage, test_places, test_full):
    with World() as world:
        test(world)
ALL.finish()
