"""Programs whose trouble is known, run under Antifreeze: what tests/lines and the zoo have in common.

A program (programs.Program, zoo's Row) has a `name`, a `want` (the verdicts that are right; ("clean",): none) and its `sources()`, in
which the right lines are marked by a comment with "the line" in it; "the function" marks one of which only the name can be told.
"""
import argparse
import concurrent.futures
import glob
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
from dataclasses import dataclass

try:
    from frameworks import python_with
except ImportError:
    python_with = None

# How a run ended, not why: these may come before what is looked for.
ENDS = ("host-exhaustion", "oom-killed")
CLEAN = ("clean",)
LOOK_S = .5  # how often the job's memory is looked at, by ourselves
LEVELS = ("warn", "act")
# One thread each: those that wait for one another by spinning take for ever on a busy machine.
QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
         "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


class Missing(Exception):
    """What a program needs is not here."""


class Late(Exception):
    """On a machine this busy it tells nothing."""


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


def digest(program, antifreeze, *more):
    """Changes with the program, what it is run with, and Antifreeze."""
    sums = hashlib.sha256(repr((program.name, program.want, *more)).encode())
    build = os.path.dirname(antifreeze)
    libraries = [os.path.join(build, *names) for names in (("probe", "libantifreeze-probe.so"), ("loader", "libantifreeze-loader.so"))]
    agent = sorted(glob.glob(os.path.join(build, "python", "**", "*.py"), recursive=True))
    for path in [*program.sources(), antifreeze, *libraries, *agent]:
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


def told(want, verdicts):
    """The verdict that counts: the first that is no mere end, or an end where there is no other or it is wanted."""
    spoken = [v for v in verdicts if v["level"] in LEVELS]
    if spoken and spoken[0]["id"] in want:
        return spoken[0]
    return next((v for v in spoken if v["id"] not in ENDS), spoken[0] if spoken else None)


def judge(program, verdicts):
    """Whether verdict and line are right; the line of a clean run is None."""
    verdict = told(program.want, verdicts)
    where = verdict and verdict.get("where")
    if program.want == CLEAN:
        return {"said": verdict["id"] if verdict else "clean", "where": where, "verdict_right": verdict is None, "line_right": None}
    return {"said": verdict["id"] if verdict else "nothing", "where": where,
            "verdict_right": bool(verdict) and verdict["id"] in program.want, "line_right": line_right(program, where)}


# Running ------------------------------------------------------------------------------------------------------------

def compiler_of(source):
    compiler = "g++" if source.endswith(".cc") else "gcc"
    if not shutil.which(compiler):
        raise Missing(compiler)
    return compiler


def interpreter(modules, python=None):
    """One that has these modules, or the one that was named."""
    if not modules:
        return sys.executable
    found = python or (python_with and python_with(*modules))
    if not found:
        raise Missing(f"a Python with {', '.join(modules)}")
    return found


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
    seen, start = [0], time.monotonic()
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


@dataclass(frozen=True)
class Played:
    """One run, from its start to its verdicts."""
    record: dict  # why --json
    code: int  # the exit status
    seconds: float
    seen: list  # bytes of the job, by our own looking
    output: str

    def told(self):
        """What the results say of every run."""
        shape = [round(self.seen[int(i * (len(self.seen) - 1) / 8)] / 1e6) for i in range(9)]
        return {"seconds": round(self.seconds, 1), "end": self.record["end"], "exit": self.code,
                "peak_mb": round(max(self.seen) / 1e6), "shape_mb": shape, "verdicts": self.record["verdicts"],
                "tail": self.output[-2000:] if self.code not in (0, 75) else ""}


class Place:
    """Folders for one run: `work`, in which it runs, and those of Antifreeze."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="afz-played-", ignore_cleanup_errors=True)
        os.mkdir(self.at("run"), 0o700)
        os.mkdir(self.at("work"))
        self.within = []  # words before each command
        self.env = {**os.environ, "XDG_RUNTIME_DIR": self.at("run"), "XDG_STATE_HOME": self.at("state"), **QUIET}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def start(self, argv):
        with open(self.at("output"), "w", encoding="utf-8") as output:
            return subprocess.Popen([*self.within, *argv], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self.env, cwd=self.at("work"))

    def output(self):
        with open(self.at("output"), encoding="utf-8", errors="replace") as output:
            return output.read()

    def play(self, antifreeze, words, argv, limit_s):
        """The command under `antifreeze run` with these options; raises Late, or RuntimeError where there is no verdict."""
        start = time.monotonic()
        process = self.start([antifreeze, "run", *words, "--run-dir", self.at("record"), "--", *argv])
        seen = follow(process, antifreeze, limit_s)
        took = time.monotonic() - start
        why = subprocess.run([antifreeze, "why", "--json", self.at("record")], capture_output=True, text=True, env=self.env, check=False)
        if why.returncode != 0:
            raise RuntimeError(f"why: {why.stderr.strip()}\n{self.output()[-2000:]}")
        return Played(json.loads(why.stdout), process.returncode, took, seen, self.output())

    def keep(self, folder, name):
        """Puts the recording there, under that name, where a folder is given."""
        if folder:
            kept = os.path.join(folder, re.sub(r"[/ ]", "-", name))
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(self.at("record"), kept)


def or_say(run, *args):
    """What run() gives, or why there is nothing."""
    try:
        return run(*args)
    except Missing as missing:
        return {"error": f"left out: no {missing} here"}
    except Late as late:
        return {"error": str(late)}
    except (RuntimeError, subprocess.CalledProcessError, OSError, ValueError) as error:
        return {"error": f"failed: {error}"}


def play_all(due, run, jobs, done):
    """run(one) of each, so many at a time; done(number, one, result) as each comes to its end."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(or_say, run, one): one for one in due}
        for number, future in enumerate(concurrent.futures.as_completed(running), 1):
            done(number, running[future], future.result())


# Telling ------------------------------------------------------------------------------------------------------------

def place(where):
    if not where:
        return "no line"
    return f"{os.path.basename(where.get('file') or '?')}:{where.get('line') or '?'} {where.get('function') or ''}".strip()


def mark(right):
    return {True: "right", False: "WRONG", None: "-"}[right]


def earlier(path):
    """The results of a file that keep() has written, by name."""
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)["results"]
    except (OSError, ValueError, KeyError):
        return {}


def keep(path, document):
    partly = path + ".part"
    with open(partly, "w", encoding="utf-8") as f:
        json.dump(document, f, indent=1)
    os.replace(partly, path)


def is_due(results, name, sums):
    """Whether there is no result yet of that program as it is now."""
    return results.get(name, {}).get("digest") != sums or "error" in results[name]


def arguments(doc, out):
    """The options that both have."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--python", help="an interpreter with NumPy, torch and TensorFlow")
    parser.add_argument("--out", default=out)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time, where there are as many cores and the memory")
    parser.add_argument("--keep", help="a folder that the recordings are put into")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended with us
    return parser
