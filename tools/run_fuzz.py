#!/usr/bin/env python3
"""Fuzzes all targets of a build folder with a given number of inputs in all, and says how many were really tried.

usage: tools/run_fuzz.py FOLDER INPUTS

What a target learns stays in FOLDER/corpus, an input that breaks it in FOLDER/found. Exits 1 if any was found.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import time

from run_tests import MESON, without_aslr

TRIED = re.compile(r"^stat::number_of_executed_units: *(\d+)", re.M)


def targets(folder):
    """Name and program of each fuzz target, from the rows of tests/fuzz/meson.build."""
    rows = json.loads(subprocess.check_output([*MESON, "introspect", folder, "--tests"]))
    return sorted((row["name"], row["cmd"][0]) for row in rows)


def fuzz(folder, name, program, inputs):
    corpus = os.path.join(folder, "corpus", name)
    found = os.path.join(folder, "found", name)
    os.makedirs(corpus, exist_ok=True)
    os.makedirs(found, exist_ok=True)
    command = [program, f"-runs={inputs}", "-print_final_stats=1", "-timeout=20", "-rss_limit_mb=1024",
               f"-artifact_prefix={found}/", corpus]
    start = time.monotonic()
    result = subprocess.run(without_aslr(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    tried = sum(map(int, TRIED.findall(result.stdout)))
    is_clean = result.returncode == 0 and tried >= inputs
    print(f"{name:24} {tried:>10} inputs {time.monotonic() - start:6.0f} s  {'clean' if is_clean else 'BROKEN'}",
          flush=True)
    if not is_clean:
        print(f"  {shlex.join(command)}\n" + "\n".join(result.stdout.splitlines()[-40:]), flush=True)
    return tried, is_clean


def main(folder, inputs):
    folder = os.path.abspath(folder)
    if subprocess.run(without_aslr([*MESON, "compile", "-C", folder]), check=False).returncode != 0:
        return 1
    rows = targets(folder)
    if not rows:
        sys.exit("no fuzz targets in " + folder)
    share = -(-inputs // len(rows))
    print(f"{len(rows)} targets, {share} inputs each")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda row: fuzz(folder, *row, share), rows))
    broken = sum(not is_clean for _, is_clean in results)
    print(f"{sum(tried for tried, _ in results)} inputs over {len(rows)} targets, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
