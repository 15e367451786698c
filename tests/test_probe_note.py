#!/usr/bin/python3
"""After a death inside the probe, that command's next run leaves it out and says so; and there is a way back.

    test_probe_note.py ANTIFREEZE DIES_INSIDE
"""
import os
import shutil
import signal
import sys

from scenario import Checks, World

ANTIFREEZE, DIES = map(os.path.abspath, sys.argv[1:3])
ALL = Checks(deadline=60)
check = ALL.check


def run(world, *args, options=()):
    return world.call(ANTIFREEZE, "run", *options, "--", *args)


def words(text):
    """Without the breaks of lines."""
    return " ".join(text.split())


def test_death_inside():
    with World() as w:
        notes = w.at("state/antifreeze/probe-left-out")
        r = run(w, DIES, "train")
        if "bare" in r.stdout:
            print("# no probe in this build")
            return
        check("it dies of the fault, as it would alone", r.returncode == -signal.SIGSEGV and r.stdout == "probed\n", r)
        check("it is said that it may be us", "may be our fault" in r.stderr and "goes without" in r.stderr, r.stderr)
        check("it is noted", os.path.exists(notes), os.listdir(w.at("state/antifreeze")))
        why = w.call(ANTIFREEZE, "why", "--verbose").stdout
        check("why has it, too", "may be our fault" in words(why), why)

        r = run(w, DIES, "train")
        check("the next run goes without it, and ends well", (r.returncode, r.stdout) == (0, "bare\n"), r)
        check("and says why", "left out: a process of this command died inside it" in r.stderr, r.stderr)
        check("and how to get it back", "to try again, remove its line from ~/state/antifreeze/probe-left-out" in r.stderr, r.stderr)
        why = words(w.call(ANTIFREEZE, "why", "--verbose").stdout)
        check("why says so, too", "probe the probe was left out: a process of this command died" in why, why)
        r = run(w, DIES, "live")
        check("another command has it", r.stdout == "probed\n" and "left out" not in r.stderr, r)

        with open(notes) as file:
            lines = file.readlines()
        check("one line", len(lines) == 1 and lines[0].endswith("dies_inside " + w.at("train") + "\n"), lines)
        os.remove(notes)
        r = run(w, DIES, "train")
        check("the way back", r.returncode == -signal.SIGSEGV and r.stdout == "probed\n", r)


def test_shell():
    """A shell that runs it tells of its end by 139."""
    with World() as w:
        r = run(w, "sh", "-c", f"{DIES} train; exit $?")
        if "bare" in r.stdout:
            return
        check("through a shell: noted", r.returncode == 139 and "goes without" in r.stderr, r)
        r = run(w, "sh", "-c", f"{DIES} train; exit $?")
        check("through a shell: left out", r.stdout == "bare\n" and r.returncode == 0, r)


def test_other_deaths():
    """Who dies elsewhere, or is killed, is not the probe's business."""
    with World() as w:
        for what, line in {"a fault": "kill -SEGV $$", "a kill": "kill -KILL $$", "an end": "exit 1"}.items():
            r = run(w, "sh", "-c", line)
            check(f"{what} outside of it is no reason", "goes without" not in r.stderr, r)
        check("nothing is noted", not os.path.exists(w.at("state/antifreeze/probe-left-out")))


def test_notes_that_cannot_be():
    """Notes that cannot be written, or are garbage: the run is as it is."""
    with World() as w:
        os.makedirs(w.at("state/antifreeze/probe-left-out"))
        r = run(w, DIES, "train")
        check("no file can be made: it dies as before", r.returncode in (-signal.SIGSEGV, 0), r)
        shutil.rmtree(w.at("state/antifreeze/probe-left-out"))
        with open(w.at("state/antifreeze/probe-left-out"), "wb") as file:
            file.write(b"\0\xff\n" * 5000)
        r = run(w, DIES, "live")
        check("garbage says nothing", r.returncode == 0 and "left out" not in r.stderr, r)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_") and os.environ.get("ONLY", "") in name:
            test()
    ALL.finish()
