#!/usr/bin/env python3
"""Runs the tests of some build folders and closes with one line: N passed, N failed[, N skipped].

usage: tools/run_tests.py FOLDER[:SUITE]...

The figures are those of Meson's own logs. What was skipped is named with its reason; a folder that does not build
counts as one failure. A test that failed beside others is played once more, alone: many work with real processes and real time
on a machine that others may slow down. What passes then is told as unsteady, with what it had complained of; `make stress`
plays without a second try. Exits 1 if anything failed.
"""
import json
import os
import re
import shlex
import subprocess
import sys

MESON = shlex.split(os.environ.get("MESON") or "meson")
PASSED = {"OK", "EXPECTEDFAIL"}
SLOWER = "4"  # what a sanitizer costs at most; Meson multiplies the tests' time limits with it
# How our own scenario tests and cmocka begin a line that says what went wrong
COMPLAINT = re.compile(r"^(NOT OK|\[  ERROR|\[  FAILED|FAIL|.*Error:|.*Sanitizer)")
# What cmocka prints of a single skipped case when the others of its program ran; what the case itself printed is why
SKIPPED_CASE = re.compile(r"^\[ RUN      \] (\w+)\n((?:(?!\[).*\n)*)\[  SKIPPED \] \1$", re.M)


def is_sanitized(folder):
    with open(f"{folder}/meson-info/intro-buildoptions.json", encoding="utf-8") as file:
        return any(row["name"] == "b_sanitize" and row["value"] != "none" for row in json.load(file))


def without_aslr(command):
    """Sanitizers older than the kernel trip over its address randomisation; a container may not let us turn it off."""
    prefix = ["setarch", "-R"]
    try:
        allowed = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    return [*prefix, *command] if allowed else command


def meson_test(folder, *which):
    """Runs some tests of one folder; the log's records, or None when it did not build."""
    log = f"{folder}/meson-logs/antifreeze.json"
    if os.path.exists(log):
        os.remove(log)
    command = [*MESON, "test", "-C", folder, "--logbase", "antifreeze", "--print-errorlogs", *which]
    if is_sanitized(folder):
        command = without_aslr([*command, "--timeout-multiplier", SLOWER])
    status = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    records = []
    if os.path.exists(log):
        with open(log, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
    failed = any(record["result"] not in PASSED | {"SKIP"} for record in records)
    return records if records and (status == 0 or failed) else None


def name_of(record):
    return record["name"].rpartition(" / ")[2]


def play_again(folder, records):
    """{name: what they had complained of} of the tests that failed, and pass by themselves."""
    failed = {name_of(r): complaints(r) for r in records if r["result"] not in PASSED | {"SKIP"}}
    if not failed:
        return {}
    print(f"\n== {folder}, once more: {' '.join(failed)}", flush=True)
    again = meson_test(folder, "--no-rebuild", "--num-processes", "1", *failed) or []
    return {name_of(r): failed[name_of(r)] for r in again if r["result"] in PASSED}


def last_line(text):
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no reason given")


def complaints(record):
    """What a failed test said of it, in a few lines: the log above may be cut off where it is read."""
    lines = [line for key in ("stdout", "stderr") for line in record.get(key, "").splitlines() if line.strip()]
    return [line[:300] for line in [line for line in lines if COMPLAINT.match(line)] or lines[-5:]][:8]


def main(wanted):
    passed, failed, skipped, unsteady = [], [], [], []
    for word in wanted:
        folder, _, suite = word.partition(":")
        print(f"\n== {folder}{' (' + suite + ' tests)' if suite else ''}", flush=True)
        records = meson_test(folder, *(["--suite", suite] if suite else []))
        if records is None:
            failed.append(f"{folder}: did not build, or has no tests")
            continue
        mended = play_again(folder, records)
        for record in records:
            name = f"{folder}: {name_of(record)}"
            if record["result"] == "SKIP":
                skipped.append(f"{name}: {last_line(record.get('stderr', '') + record.get('stdout', ''))}")
            elif record["result"] in PASSED:
                passed.append(name)
            elif name_of(record) in mended:
                passed.append(name)
                unsteady.append("\n         ".join([f"{name}: passed alone", *mended[name_of(record)]]))
            else:
                failed.append("\n         ".join([f"{name}: {record['result'].lower()}", *complaints(record)]))
            skipped += [f"{name}: {case}: {last_line(said)}"
                        for case, said in SKIPPED_CASE.findall(record.get("stdout", ""))]

    print()
    for line in skipped:
        print(f"skipped  {line}")
    for line in unsteady:
        print(f"unsteady {line}")
    for line in failed:
        print(f"FAILED   {line}")
    print(f"{len(passed)} passed, {len(failed)} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
