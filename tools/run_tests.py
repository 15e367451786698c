#!/usr/bin/env python3
"""Builds and runs the tests of some build folders and closes with one line: N passed, N failed[, N skipped].

usage: tools/run_tests.py FOLDER[:SUITE|:-SUITE]...

SUITE: only those tests; -SUITE: all but those. Two lanes work at once. In front, at the usual priority, tests are played, folder
by folder. Behind, at the lowest, the next folders are built, and once all are, played from the last one on. Most tests in front
wait for real processes and real time; what only computes has the processors meanwhile. So folders that only compute come last.

The figures are those of Meson's own logs. What was skipped is named with its reason; a folder that does not build
counts as one failure. A test that failed beside others is played once more, alone: many work with real processes and real time
on a machine that others may slow down. What passes then is told as unsteady, with what it had complained of; `make stress`
plays without a second try. Exits 1 if anything failed.

MESON_TESTTHREADS in the environment says how many tests are played at once.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading

MESON = shlex.split(os.environ.get("MESON") or "meson")
NINJA = os.environ.get("NINJA") or next(filter(shutil.which, ("ninja", "ninja-build", "samu")), "ninja")
BEHIND = ["nice", "-n", "19"]
# In front, most tests wait more than they compute.
AT_ONCE = os.environ.get("MESON_TESTTHREADS") or str(2 * (os.cpu_count() or 1))
PASSED = {"OK", "EXPECTEDFAIL"}
# Meson multiplies the tests' time limits with what a sanitizer costs at most, and what it costs to let others go first.
SANITIZED, WAITING = 4, 4
# How our own scenario tests and cmocka begin a line that says what went wrong
COMPLAINT = re.compile(r"^(NOT OK|\[  ERROR|\[  FAILED|FAIL|.*Error:|.*Sanitizer)")
# What cmocka prints of a single skipped case when the others of its program ran; what the case itself printed is why
SKIPPED_CASE = re.compile(r"^\[ RUN      \] (\w+)\n((?:(?!\[).*\n)*)\[  SKIPPED \] \1$", re.M)


def without_aslr(command):
    """Sanitizers older than the kernel trip over its address randomisation; a container may not let us turn it off."""
    prefix = ["setarch", "-R"]
    try:
        allowed = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    return [*prefix, *command] if allowed else command


def call(title, command, behind=False, is_dull=False):
    """Runs it; its exit status. What is said behind comes in one piece, or, where it is dull and all went well, in one line."""
    if not behind:
        print(f"\n== {title}", flush=True)
        return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    r = subprocess.run([*BEHIND, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, errors="replace", check=False)
    said = r.stdout if r.returncode != 0 or not is_dull else last_line(r.stdout) + "\n"
    print(f"\n== {title}, meanwhile\n{said}", end="", flush=True)
    return r.returncode


class Folder:
    """A build folder, which of its tests are wanted, and what became of them."""

    def __init__(self, word):
        self.path, _, suite = word.partition(":")
        self.which = ["--no-suite", suite[1:]] if suite.startswith("-") else ["--suite", suite] if suite else []
        self.is_built = None  # not yet
        self.records = None  # it did not build, or has no tests
        self.mended = {}  # name of a test that passed alone: what it had complained of

    def is_sanitized(self):
        with open(f"{self.path}/meson-info/intro-buildoptions.json", encoding="utf-8") as file:
            return any(row["name"] == "b_sanitize" and row["value"] not in ("none", []) for row in json.load(file))

    def build(self, behind):
        return call(f"{self.path}: build", [NINJA, "-C", self.path, "meson-test-prereq"], behind, is_dull=True) == 0

    def test(self, which, at_once, behind=False):
        """Meson's records of these tests; none where it could not play them."""
        log = f"{self.path}/meson-logs/antifreeze.json"
        if os.path.exists(log):
            os.remove(log)
        slower = (SANITIZED if self.is_sanitized() else 1) * (WAITING if behind else 1)
        command = [*MESON, "test", "-C", self.path, "--logbase", "antifreeze", "--print-errorlogs", "--no-rebuild",
                   "--timeout-multiplier", str(slower), "--num-processes", at_once, *which]
        if self.is_sanitized():
            command = without_aslr(command)
        status = call(f"{self.path}: test {' '.join(which)}", command, behind)
        if not os.path.exists(log):
            return []
        with open(log, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        # Meson's status is how many failed; else it has not come to its end, and nobody knows of the others.
        return records if status == sum(map(has_failed, records)) % 256 else []

    def play(self, behind):
        at_once = str(os.cpu_count() or 1) if behind else AT_ONCE
        self.records = self.test(self.which, at_once, behind) if self.is_built else None

    def play_again(self):
        """What failed, by itself."""
        failed = {name_of(r): complaints(r) for r in self.records or [] if has_failed(r)}
        if failed:
            again = self.test(list(failed), "1")
            self.mended = {name_of(r): failed[name_of(r)] for r in again if r["result"] in PASSED}


class Lanes:
    """Front and back, which take from one list."""

    def __init__(self, folders):
        self.folders, self.waiting = folders, list(folders)
        self.news = threading.Condition()

    def take(self, behind):
        with self.news:
            return self.waiting.pop(-1 if behind else 0) if self.waiting else None

    def built(self, folder, is_built):
        with self.news:
            folder.is_built = is_built
            self.news.notify_all()

    def go_behind(self):
        try:
            for folder in self.folders[1:]:
                self.built(folder, folder.build(behind=True))
            while folder := self.take(behind=True):
                folder.play(behind=True)
        finally:  # who waits in front would wait for ever
            for folder in self.folders[1:]:
                self.built(folder, bool(folder.is_built))

    def go(self):
        """Both lanes, to their ends."""
        folder = self.take(behind=False)
        self.built(folder, folder.build(behind=False))
        back = threading.Thread(target=self.go_behind, daemon=True)
        back.start()
        while folder:
            self.await_build(folder)
            folder.play(behind=False)
            folder = self.take(behind=False)
        back.join()

    def await_build(self, folder):
        with self.news:
            self.news.wait_for(lambda: folder.is_built is not None)


def has_failed(record):
    return record["result"] not in PASSED | {"SKIP"}


def name_of(record):
    return record["name"].rpartition(" / ")[2]


def last_line(text):
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no reason given")


def complaints(record):
    """What a failed test said of it, in a few lines: the log above may be cut off where it is read."""
    lines = [line for key in ("stdout", "stderr") for line in record.get(key, "").splitlines() if line.strip()]
    return [line[:300] for line in [line for line in lines if COMPLAINT.match(line)] or lines[-5:]][:8]


def count(folders):
    """Names with what is to be said of them, by result."""
    told = {"passed": [], "skipped": [], "unsteady": [], "failed": []}
    for folder in folders:
        if not folder.records:
            told["failed"].append(f"{folder.path}: did not build, or has no tests")
        for record in folder.records or []:
            name = f"{folder.path}: {name_of(record)}"
            if record["result"] == "SKIP":
                told["skipped"].append(f"{name}: {last_line(record.get('stderr', '') + record.get('stdout', ''))}")
            elif not has_failed(record):
                told["passed"].append(name)
            elif name_of(record) in folder.mended:
                told["passed"].append(name)
                told["unsteady"].append("\n         ".join([f"{name}: passed alone", *folder.mended[name_of(record)]]))
            else:
                told["failed"].append("\n         ".join([f"{name}: {record['result'].lower()}", *complaints(record)]))
            told["skipped"] += [f"{name}: {case}: {last_line(said)}"
                                for case, said in SKIPPED_CASE.findall(record.get("stdout", ""))]
    return told


def main(wanted):
    folders = [Folder(word) for word in wanted]
    Lanes(folders).go()
    for folder in folders:
        folder.play_again()
    told = count(folders)
    print()
    for word, kind in ("skipped ", "skipped"), ("unsteady", "unsteady"), ("FAILED  ", "failed"):
        for line in told[kind]:
            print(f"{word} {line}")
    print(f"{len(told['passed'])} passed, {len(told['failed'])} failed" + (f", {len(told['skipped'])} skipped" if told["skipped"] else ""))
    return 1 if told["failed"] else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
