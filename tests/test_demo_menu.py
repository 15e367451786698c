#!/usr/bin/env python3
"""`antifreeze demo` as a newcomer has it: one file and a terminal. It asks, and what is chosen is caught, by line, within 30 s.

usage: test_demo_menu.py PATH/TO/antifreeze
"""
import os
import pty
import re
import select
import shutil
import sys
import time

from scenario import Checks, World

WITHIN_S = 30  # from the answer to the verdict
CHECKS = Checks(deadline=60)
check = CHECKS.check


class Terminal:
    """A program at a terminal of its own."""

    def __init__(self, world, *argv):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(world.dir)
            os.execve(argv[0], argv, world.env)

    def read_until(self, pattern, seconds):
        """Whether it came to say so; until its end where there is no pattern."""
        end = time.monotonic() + seconds
        while not (pattern and re.search(pattern, self.text)):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                return False
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace").replace("\r", "")
            except OSError:  # nobody has the terminal any more
                return not pattern
        return True

    def answer(self, text):
        os.write(self.fd, text.encode())

    def close(self):
        """The exit status."""
        ended = self.read_until(None, CHECKS.deadline)
        if not ended:
            os.kill(self.pid, 9)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]) if ended else None


def at_the_menu(world):
    terminal = Terminal(world, world.at("antifreeze"), "demo")
    check("it asks", terminal.read_until("q to leave: ", CHECKS.deadline), terminal.text)
    return terminal


def test_leave(world):
    for key in "q\n", "\x04":
        terminal = at_the_menu(world)
        terminal.answer(key)
        check(f"{key!r} leaves, and nothing was run", terminal.close() == 0 and "training" not in terminal.text, terminal.text)
    listed = [line.split("\t")[0] for line in world.call(world.at("antifreeze"), "demo", "--list").stdout.splitlines()]
    offered = re.findall(r"^  [1-9]  (\S+) ", terminal.text, re.M)
    told = re.sub(r"\s+", " ", terminal.text.split("Others take longer")[1])
    check("the menu names every pitfall", sorted(offered + [name for name in listed if name in told]) == sorted(listed), (offered, listed, told))


def test_wrong(world):
    terminal = at_the_menu(world)
    for wrong in "9", "00", "7 ", "nonsense":
        terminal.answer(wrong + "\n")
        check(f"{wrong!r} is refused, and asked again",
              terminal.read_until(rf"There is no '{wrong.strip()}' in the list\.\n.*q to leave: $", CHECKS.deadline), terminal.text)
    terminal.answer("q\n")
    terminal.close()


def test_caught(world):
    """By number, by name, and by Enter alone; the line is known although there is nothing but the one file."""
    for key, verdict in ("\n", r"leak: .*pitfalls\.c:\d+ in keep\(\)"), ("2\n", r"dataset-in-memory: .*source\.c:\d+"), \
            ("large-batch\n", r"batch-too-large: .*net\.c:\d+"):
        terminal = at_the_menu(world)
        before = time.monotonic()
        terminal.answer(key)
        caught = terminal.read_until(rf"antifreeze: {verdict}", CHECKS.deadline)
        took = time.monotonic() - before
        check(f"{key!r} is caught", caught, terminal.text[-1500:])
        check(f"{key!r} within {WITHIN_S} s", took < WITHIN_S, f"{took:.1f} s")
        check(f"{key!r} was stopped", terminal.close() in (0, 75), terminal.text[-500:])


def test_good(world):
    r = world.call(world.at("antifreeze"), "demo", "none")
    check("a good run comes to its end, and is clean", r.returncode == 0 and "\nantifreeze: clean: " in r.stderr, r.stderr[-1500:])
    accuracy = re.search(r"^done: 1250 steps, .*held-out accuracy ([\d.]+) %", r.stdout, re.M)
    check("and has learnt, in two rounds", accuracy and float(accuracy[1]) > 95, r.stdout[-500:])


def test_no_terminal(world):
    r = world.call(world.at("antifreeze"), "demo", "--time", "2s")
    check("without a terminal nothing is asked", r.returncode == 0 and "may use 0.25 of" in r.stderr and "leave" not in r.stderr, r)
    left = os.listdir(world.dir)
    check("it was one file", sorted(left) == ["antifreeze", "run", "state"], left)


def main():
    for test in test_leave, test_wrong, test_caught, test_good, test_no_terminal:
        with World() as world:
            shutil.copy(sys.argv[1], world.at("antifreeze"))
            test(world)
    CHECKS.finish()


main()
