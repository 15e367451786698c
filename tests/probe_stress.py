#!/usr/bin/env python3
"""8 processes with 16 threads each, all allocating, and forking meanwhile, for as long as one likes.

usage: probe_stress.py [--seconds N] BUILD_FOLDER [TSAN_BUILD_FOLDER]

Twice: whole programs with the library before them, and, where a build with the thread sanitizer is given, the probe's
own parts in it. Nobody may wait for ever, no process may die, and every book must add up when its process has ended.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

GRACE = 150  # seconds above what was asked for: by then a deadlock has shown itself


def whole_programs(build, seconds):
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([build + "/tests/probe_keeper", "-r", "-m", "65536", build + "/probe/libantifreeze-probe.so",
                                 folder + "/socket", build + "/tests/probe_programs/probe_program", "crowd"],
                                env=os.environ | {"SECONDS": str(seconds)}, capture_output=True, text=True,
                                timeout=seconds + GRACE, check=True)
    answer = json.loads(result.stdout)
    print(f"whole programs: status {answer['status']}, {answer['opened']} books of processes that ended, "
          f"{answer['faults']} do not add up", flush=True)
    sys.stderr.write(result.stderr)
    return answer["status"] == 0 and answer["faults"] == 0 and answer["opened"] > 8


def under_tsan(build, seconds):
    result = subprocess.run([build + "/tests/test_probe_stress", str(seconds)], capture_output=True, text=True,
                            timeout=seconds + GRACE, check=False)
    print("thread sanitizer: " + " ".join((result.stdout + result.stderr).split()), flush=True)
    return result.returncode == 0 and "WARNING: ThreadSanitizer" not in result.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("build")
    parser.add_argument("tsan_build", nargs="?")
    args = parser.parse_args()
    good = whole_programs(os.path.abspath(args.build), args.seconds)
    if args.tsan_build:
        good = under_tsan(os.path.abspath(args.tsan_build), args.seconds) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
