#!/usr/bin/env python3
"""Is the newcomer who has just cloned Antifreeze: in a bare Debian with git and make alone, from the clone to a verdict by one
command and within five minutes; then through the README's commands, and, unless there is no time for it, `make test`.

usage: newcomer.py FOLDER [--no-test] [--suite NAME]

FOLDER takes the bare Debian (made there once), logs and what is cloned; it is the committed state that is cloned. --suite: another
Debian than this machine's own. An ordinary user with sudo, one without, and root are tried, each on a machine of their own.
"""
import argparse
import os
import re
import subprocess
import sys
import time

from bare_root import USER, Root, can_have_one, make_base
from scenario import Checks

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = "git,make,ca-certificates,sudo"  # sudo does nothing for who is not named in its settings
VERDICT_S = 300
TEST_S = 3 * 3600
CHECKS = Checks(deadline=1200)
check = CHECKS.check

CLONE = "git clone -q -c advice.detachedHead=false /tmp/antifreeze.bundle antifreeze"
LEAK = """
import time
kept = []
while True:
    kept.append(bytearray(4 << 20))
    time.sleep(0.05)
"""


class Newcomer:
    """Somebody at a machine; all that they see is written to a log as well."""

    def __init__(self, root, user, log):
        self.root, self.user, self.log = root, user, log
        open(log, "w", encoding="utf-8").close()

    def types(self, line, user=None, seconds=CHECKS.deadline):
        """What that shell line printed, and its exit status."""
        print(f"{self.user}$ {line}", flush=True)
        with open(self.log, "a+", encoding="utf-8") as log:
            log.write(f"$ {line}\n")
            log.flush()
            before = log.tell()
            inside = self.root.command("timeout", str(seconds), "bash", "-c", line, user=user or self.user)
            status = subprocess.run(inside, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
            log.seek(before)
            return log.read(), status

    def checks(self, what, line, status, pattern, **kw):
        """Its output too."""
        said, got = self.types(line, **kw)
        found = re.search(pattern, said, re.M)
        check(f"{self.user}: {what}", got == status and found, f"{line}: status {got}; ...{said[-3000:]}")
        return said


def processor_seconds():
    times = os.times()
    return times.children_user + times.children_system


def clone_and_demo(newcomer):
    began, worked = time.monotonic(), processor_seconds()
    newcomer.checks("clones", CLONE, 0, "")
    newcomer.checks("has a verdict by one command", "cd antifreeze && make demo", 0, "^antifreeze: clean: ")
    took = time.monotonic() - began
    worked = processor_seconds() - worked
    print(f"{newcomer.user}: from git clone to a verdict in {took:.0f} s, with {worked:.0f} s of processor time", flush=True)
    check(f"{newcomer.user}: within {VERDICT_S} s", took < VERDICT_S, f"{took:.0f} s")


def follow_readme(newcomer):
    """What README.md tells to type, in its order, with a program where it says train.py."""
    with open(f"{newcomer.root.path}/home/{USER}/antifreeze/leak.py", "w", encoding="utf-8") as file:
        file.write(LEAK)
    for what, line, status, pattern in (
            ("a leak is stopped and its line told", "build/antifreeze run --budget 1G -- python3 leak.py", 75,
             r"^antifreeze: leak:retained-history: .* allocated at leak\.py:5$"),
            ("why", "build/antifreeze why", 0, r"leak\.py:5"),
            ("report", "build/antifreeze report -o /tmp/report.html && head -c 300 /tmp/report.html", 0, "<html"),
            ("an explanation", "build/antifreeze why --explain leak:retained-history", 0, "^leak:retained-history"),
            ("doctor", "build/antifreeze doctor", 0, r"^ *ok +probe +tried"),
            ("a pitfall", "build/antifreeze demo whole-dataset", 75, "^antifreeze: dataset-in-memory: "),
            ("adapt", "build/antifreeze run --policy adapt -- python3 -c 'print(6 * 7)'", 0, "^42$"),
            ("make install", "sudo make install PREFIX=/opt/afz && /opt/afz/bin/antifreeze --version", 0, "^antifreeze 0"),
            ("make uninstall", "sudo make uninstall PREFIX=/opt/afz && ! ls /opt/afz/bin/antifreeze", 0, ""),
            ("the wheel", "make wheel && ls build-packages/antifreeze-*.whl", 0, r"^build-packages/antifreeze-\S+\.whl$"),
            ("the package", "make deb && sudo apt-get -qq install -y ./build-packages/antifreeze_*.deb && antifreeze run -- true", 0, "may use")):
        newcomer.checks(what, f"cd antifreeze && {line}", status, pattern)


def test_with_sudo(root, log, with_tests):
    with open(f"{root.path}/etc/sudoers.d/{USER}", "w", encoding="utf-8") as file:
        file.write(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
    newcomer = Newcomer(root, USER, log)
    clone_and_demo(newcomer)
    follow_readme(newcomer)
    if with_tests:
        said = newcomer.checks("make test", "cd antifreeze && make test", 0, r"^\d+ passed, 0 failed", seconds=TEST_S)
        print("\n".join(re.findall(r"^(?:skipped|unsteady|FAILED) .*|^\d+ passed, \d+ failed.*", said, re.M)), flush=True)


def test_without_sudo(root, log, _):
    """Is told what to type, once, and may go on when somebody who may has typed it."""
    newcomer = Newcomer(root, USER, log)
    newcomer.checks("clones", CLONE, 0, "")
    said = newcomer.checks("is told what to install", "cd antifreeze && make demo", 2, "^tools/deps: make demo needs these first: sudo .*")
    line = re.search("^tools/deps: make demo needs these first: (.*)", said, re.M)
    newcomer.checks("root types it", line[1] if line else "false", 0, "", user="root")
    newcomer.checks("then has a verdict", "cd antifreeze && make demo", 0, "^antifreeze: clean: ")


def test_root(root, log, _):
    clone_and_demo(Newcomer(root, "root", log))


def arguments():
    parser = argparse.ArgumentParser(usage="newcomer.py FOLDER [--no-test] [--suite NAME]")
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--no-test", action="store_true")
    parser.add_argument("--suite")
    return parser.parse_args()


def main():
    wish = arguments()
    if not can_have_one():
        sys.exit("newcomer.py: a bare Debian takes root and mounts of one's own")
    os.makedirs(wish.folder, exist_ok=True)
    bundle = wish.folder + "/antifreeze.bundle"
    subprocess.run(["git", "-C", TOP, "bundle", "create", "--quiet", bundle, "HEAD"], check=True)
    base = make_base(f"{wish.folder}/base-{wish.suite or 'own'}", PACKAGES, wish.suite)
    for play in test_without_sudo, test_root, test_with_sudo:
        with Root(base, wish.folder + "/root") as root:
            root.bring(bundle)
            play(root, f"{wish.folder}/{play.__name__}.log", not wish.no_test)
    CHECKS.finish()


main()
