#!/usr/bin/env python3
"""Runs the set of programs under Antifreeze and holds what it says against what is true.

    lines.py ANTIFREEZE [--python PYTHON] [--out FILE] [--resume] [--jobs N] [--limit S] [--show aside] [WORD...]

A WORD chooses the programs with it in their name; `fast` those of make test, `aside` and `tuned` the two parts, `second` those that
were written after the first were known. Each is run alone (or N at a time), with a budget, in folders of its own; at most S seconds (180). The results go into FILE as JSON (lines.json), after each
program; with --resume, those there are not run again whose source, and the Antifreeze that ran them, is still the same. Of the programs that are set aside only the
sums are printed, unless --show aside is given. The exit status is 1 where less than 95 % are right.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from programs import INCLUDE, PROGRAMS  # noqa: E402

try:
    from frameworks import python_with
except ImportError:
    python_with = None

TARGET = .95  # of the programs that are ill: the right line
# How a run ended, not why: these may come before what is looked for.
ENDS = ("host-exhaustion", "oom-killed")
LOOK_S = .5  # how often the job's memory is looked at, by ourselves
LEVELS = ("warn", "act")
# One thread each: those that wait for one another by spinning take for ever on a busy machine.
QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
         "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


# The truth ----------------------------------------------------------------------------------------------------------

def marks(program):
    """The lines that are right, as (file, line), and the functions."""
    lines, functions = set(), set()
    for path in program.sources():
        with open(path, encoding="utf-8") as f:
            for number, text in enumerate(f, 1):
                comment = re.search(r"(#|//|/\*) *the (line|function)\b", text)
                if comment and comment[2] == "line":
                    lines.add((os.path.basename(path), number))
                elif comment:
                    functions.add(re.search(r"(\w+)\(\w* \w+\)", text)[1])
    return lines, functions


def digest(program, antifreeze):
    """Changes with the program, and with Antifreeze."""
    sums = hashlib.sha256(repr((program.name, program.want, program.budget, program.build)).encode())
    probe = os.path.join(os.path.dirname(antifreeze), "probe", "libantifreeze-probe.so")
    for path in [*program.sources(), antifreeze, probe]:
        if os.path.exists(path):
            with open(path, "rb") as f:
                sums.update(f.read())
    return sums.hexdigest()[:16]


def line_right(program, where):
    lines, functions = marks(program)
    if not where:
        return False
    if functions:
        return (where.get("function") or "").split("(")[0] in functions
    return (os.path.basename(where.get("file") or ""), where.get("line")) in lines


def told(program, verdicts):
    """The verdict that counts: the first that is no mere end, or an end where there is no other or it is wanted."""
    spoken = [v for v in verdicts if v["level"] in LEVELS]
    if spoken and spoken[0]["id"] in program.want:
        return spoken[0]
    return next((v for v in spoken if v["id"] not in ENDS), spoken[0] if spoken else None)


def judge(program, verdicts):
    """Whether verdict and line are right; the line of a clean run is None."""
    verdict = told(program, verdicts)
    if program.want == ("clean",):
        return {"said": verdict["id"] if verdict else "clean", "where": verdict and verdict.get("where"),
                "verdict_right": verdict is None, "line_right": None}
    where = verdict and verdict.get("where")
    return {"said": verdict["id"] if verdict else "nothing", "where": where,
            "verdict_right": bool(verdict) and verdict["id"] in program.want, "line_right": line_right(program, where)}


# Running ------------------------------------------------------------------------------------------------------------

class Missing(Exception):
    """What a program needs is not here."""


class Late(Exception):
    """On a machine this busy it tells nothing."""


def build(program, folder):
    """Compiles into that folder, and returns the command."""
    sources = [s for s in program.sources() if s.endswith((".c", ".cc"))]
    compiler = "g++" if sources[0].endswith(".cc") else "gcc"
    if not shutil.which(compiler):
        raise Missing(compiler)
    out = os.path.join(folder, os.path.basename(program.name))
    common = [compiler, *program.build, "-I", INCLUDE]
    if program.name == "c/plugin":
        library, sources = sources[0], sources[1:]
        subprocess.run([*common, "-shared", "-fPIC", library, "-o", os.path.join(folder, "filter.so")], check=True)
    subprocess.run([*common, *sources, "-o", out, "-pthread", "-ldl"], check=True)
    return [out]


def command(program, folder, python):
    if program.needs == "cc":
        return build(program, folder)
    if program.needs == "python":
        interpreter = sys.executable
    else:
        interpreter = python or (python_with and python_with(program.needs))
        if not interpreter:
            raise Missing(f"a Python with {program.needs}")
    main = program.path if os.path.isfile(program.path) else os.path.join(program.path, "main.py")
    return [interpreter, "-B", main]


def parents():
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                found[int(pid)] = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    return found


def own_bytes(pid, ours):
    """What a process of the job holds itself; nothing of Antifreeze's own."""
    try:
        if os.path.samefile(f"/proc/{pid}/exe", ours):
            return 0
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return sum(int(line.split()[1]) * 1024 for line in f if line.startswith(("RssAnon", "RssShmem")))
    except OSError:
        return 0


def job_bytes(root, ours):
    """Of all processes below this one. What forked processes share is counted for each of them."""
    known, total = parents(), 0
    for pid in known:
        at = pid
        while at in known and at != root:
            at = known[at]
        if at == root:
            total += own_bytes(pid, ours)
    return total


def end(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(40)
    except subprocess.TimeoutExpired:
        process.kill()


def follow(process, ours, limit_s):
    """Waits for the run, and returns what its job held all the while, by our own looking."""
    seen, start = [], time.monotonic()
    try:
        while process.poll() is None:
            if time.monotonic() - start > limit_s:
                raise Late(f"not at its end after {limit_s:.0f} s, with {seen[-1] / 1e6:.0f} MB")
            seen.append(job_bytes(process.pid, ours))
            time.sleep(LOOK_S)
    finally:
        if process.poll() is None:
            end(process)
    return seen


def run(program, options):
    """One program, start to verdict."""
    with tempfile.TemporaryDirectory(prefix="afz-lines-", ignore_cleanup_errors=True) as folder:
        at = lambda name: os.path.join(folder, name)
        os.mkdir(at("run"), 0o700)
        os.mkdir(at("work"))
        argv = command(program, at("work"), options.python)
        env = {**os.environ, "XDG_RUNTIME_DIR": at("run"), "XDG_STATE_HOME": at("state"), **QUIET}
        start = time.monotonic()
        with open(at("output"), "w", encoding="utf-8") as output:
            process = subprocess.Popen([options.antifreeze, "run", "--budget", program.budget, "--run-dir", at("record"), "--", *argv],
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, cwd=at("work"))
            seen = follow(process, options.antifreeze, options.limit)
        took = time.monotonic() - start
        why = subprocess.run([options.antifreeze, "why", "--json", at("record")], capture_output=True, text=True, env=env, check=False)
        with open(at("output"), encoding="utf-8", errors="replace") as output:
            tail = output.read()[-2000:]
        if options.keep:
            kept = os.path.join(options.keep, program.name.replace("/", "-"))
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(at("record"), kept)
        if why.returncode != 0:
            raise RuntimeError(f"why: {why.stderr.strip()}\n{tail}")
        record = json.loads(why.stdout)
        return {**judge(program, record["verdicts"]), "seconds": round(took, 1), "end": record["end"],
                "exit": process.returncode, "peak_mb": round(max(seen, default=0) / 1e6),
                "shape_mb": [round(seen[int(i * (len(seen) - 1) / 8)] / 1e6) for i in range(9)] if seen else [],
                "verdicts": record["verdicts"], "tail": tail if process.returncode not in (0, 75) else ""}


# Telling ------------------------------------------------------------------------------------------------------------

def place(where):
    if not where:
        return "no line"
    return f"{os.path.basename(where.get('file') or '?')}:{where.get('line') or '?'} {where.get('function') or ''}".strip()


def mark(right):
    return {True: "right", False: "WRONG", None: "-"}[right]


def show(program, result):
    if "error" in result:
        print(f"{program.name:32} {result['error']}", flush=True)
        return
    print(f"{program.name:32} {mark(result['verdict_right']):7}{mark(result['line_right']):7}{result['seconds']:5.0f} s {result['peak_mb']:6} MB  "
          f"{result['said']:24} {place(result['where'])}", flush=True)


def summary(programs, results):
    """Of some programs: how many ran, and how many of what were right."""
    ran = [(p, results[p.name]) for p in programs if "verdict_right" in results.get(p.name, {})]
    ill = [r for p, r in ran if p.want != ("clean",)]
    return {"programs": len(programs), "ran": len(ran), "ill": len(ill), "verdict_right": sum(r["verdict_right"] for r in ill),
            "line_right": sum(r["line_right"] for r in ill), "both_right": sum(r["verdict_right"] and r["line_right"] for r in ill),
            "clean": len(ran) - len(ill), "alarms": sum(not r["verdict_right"] for p, r in ran if p.want == ("clean",))}


def table(programs, results):
    """As markdown. Returns the sums of all."""
    parts = {group: [p for p in programs if p.group == group] for group in dict.fromkeys(p.group for p in programs)}
    parts["tuned on"] = [p for p in programs if not p.aside]
    parts["set aside"] = [p for p in programs if p.aside]
    parts["all"] = programs
    print("\n| | ran | ill | right verdict | right line | both | clean | false alarms |\n" + "| --- " * 8 + "|")
    for name, part in parts.items():
        s = summary(part, results)
        print(f"| {name} | {s['ran']} of {s['programs']} | {s['ill']} | {s['verdict_right']} | {s['line_right']} | {s['both_right']} "
              f"| {s['clean']} | {s['alarms']} |")
    return s


def chosen(words):
    kinds = {"fast": lambda p: p.fast, "aside": lambda p: p.aside, "tuned": lambda p: not p.aside, "second": lambda p: p.second}
    return [p for p in PROGRAMS if not words or any(kinds[w](p) if w in kinds else w in p.name for w in words)]


def earlier(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)["results"]
    except (OSError, ValueError, KeyError):
        return {}


def keep(path, results, programs):
    partly = path + ".part"
    with open(partly, "w", encoding="utf-8") as f:
        json.dump({"target": TARGET, "all": summary(programs, results), "set_aside": summary([p for p in programs if p.aside], results),
                   "results": results}, f, indent=1)
    os.replace(partly, path)


def run_or_say(program, options):
    try:
        return run(program, options)
    except Missing as missing:
        return {"error": f"left out: no {missing} here"}
    except Late as late:
        return {"error": str(late)}
    except (RuntimeError, subprocess.CalledProcessError, OSError, ValueError) as error:
        return {"error": f"failed: {error}"}


def play(programs, options):
    results = earlier(options.out) if options.resume else {}
    sums = {program.name: digest(program, options.antifreeze) for program in programs}
    due = [p for p in programs if results.get(p.name, {}).get("digest") != sums[p.name] or "error" in results[p.name]]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(run_or_say, program, options): program for program in due}
        for number, done in enumerate(concurrent.futures.as_completed(running), 1):
            program = running[done]
            results[program.name] = {"digest": sums[program.name], "aside": program.aside, **done.result()}
            keep(options.out, results, PROGRAMS)
            if sys.stderr.isatty():
                print(f"\r[{number} of {len(due)}] {program.name}\033[K\r", end="", file=sys.stderr, flush=True)
    for program in programs:
        if program.aside and options.show != "aside":
            print(f"{program.name:32} {results[program.name].get('error', 'set aside')}", flush=True)
        else:
            show(program, results[program.name])
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("antifreeze")
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--python", help="an interpreter with NumPy, torch and TensorFlow")
    parser.add_argument("--out", default="lines.json")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time, where there are as many cores and the memory")
    parser.add_argument("--limit", type=float, default=180)
    parser.add_argument("--show", choices=["tuned", "aside"], default="tuned")
    parser.add_argument("--keep", help="a folder that the recordings are put into")
    options = parser.parse_intermixed_args()
    options.antifreeze = os.path.abspath(options.antifreeze)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended with us
    programs = chosen(options.words)
    sums = table(programs, play(programs, options))
    if sums["ill"] and sums["both_right"] < TARGET * sums["ill"] or sums["alarms"]:
        sys.exit(f"{sums['both_right']} of {sums['ill']} right, {sums['alarms']} false alarms; the target is {TARGET:.0%}, and none")


if __name__ == "__main__":
    main()
