#!/usr/bin/python3
"""`antifreeze capture` on this machine: nothing private is left in the tree, and a look at the tree says what a look at
the machine says.

    test_capture.py ANTIFREEZE
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

ANTIFREEZE = sys.argv[1]
failures = []

# Each stands where the kernel shows it to us: see start_job().
SECRETS = {
    "option": "hunter2-option", "word": "hunter3-word", "letter": "hunter4-letter", "environment": "hunter5-environ",
    "folder": "hunter6 f\u00f6lder", "script": "hunter7-script", "file": "hunter8 file", "comm": "hunter9comm",
    "memfd": "hunter10-memfd", "code": "hunter11-code", "message": "hunter12-message",
}

JOB = """
import os, subprocess, sys
keep = open(os.environ["SECRET_FILE"], "w")
memory = os.memfd_create(os.environ["SECRET_MEMFD"])
held = bytearray(b"x" * (16 << 20))
if os.fork() == 0:
    held[:4 << 20] = b"y" * (4 << 20)
    with open("/proc/self/comm", "w") as comm:
        comm.write(os.environ["SECRET_COMM"])
    os.write(1, b"ready\\n")
    os.read(0, 1)
    os._exit(0)
quoted = "import os; os.write(1, b'ready\\\\n'); os.read(0, 1); '%s'" % os.environ["SECRET_CODE"]
subprocess.Popen([sys.executable, "-c", quoted])
subprocess.Popen(["sh", "-c", "echo ready; read x; : " + os.environ["SECRET_MESSAGE"]])
os.write(1, b"ready\\n")
os.read(0, 1)
"""
READY = 4  # processes that say so


def check(name, ok, detail=""):
    if not ok:
        failures.append(name)
        print(f"NOT OK  {name}: {detail}")


def run(*args):
    return subprocess.run([ANTIFREEZE, *map(str, args)], capture_output=True, text=True, timeout=120)


def start_job(scratch):
    """A tree that waits on a pipe: nothing of it moves while we look twice."""
    folder = os.path.join(scratch, SECRETS["folder"])
    os.mkdir(folder)
    script = os.path.join(folder, SECRETS["script"] + ".py")
    with open(script, "w") as f:
        f.write(JOB)
    env = dict(os.environ, API_KEY=SECRETS["environment"], RANK="3", WORLD_SIZE="8", OMP_NUM_THREADS="2",
               SECRET_COMM=SECRETS["comm"], SECRET_FILE=SECRETS["file"], SECRET_MEMFD=SECRETS["memfd"],
               SECRET_CODE=SECRETS["code"], SECRET_MESSAGE=SECRETS["message"])
    job = subprocess.Popen([sys.executable, script, "--api-key=" + SECRETS["option"], "--token", SECRETS["word"],
                            "-p" + SECRETS["letter"]], cwd=folder, env=env, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE)
    for _ in range(READY):
        line = job.stdout.readline()
        assert line == b"ready\n", line
    return job


def everything(folder):
    """Names, texts and link targets below a folder, and where each stands."""
    for path, folders, files in os.walk(os.fsencode(folder)):
        for name in folders + files:
            full = os.path.join(path, name)
            yield full, name
            if os.path.islink(full):
                yield full, os.readlink(full)
            elif os.path.isfile(full):
                with open(full, "rb") as f:
                    yield full, f.read()


def test_nothing_private(folder):
    seen = 0
    for where, text in everything(folder):
        seen += 1
        for kind, secret in SECRETS.items():
            for form in (secret.encode(), secret.replace(" ", "\\040").encode()):
                check("secret " + kind, form not in text, where)
        check("part of a secret", b"hunter" not in text, where)
    check("something was captured", seen > 100, seen)


# Moves by itself while nobody does anything (pages of libraries are shared with strangers), or is masked.
MOVES = {"command", "name", "note", "rates", "pss_bytes", "pss_file_bytes", "private_dirty_bytes", "pss_age_ns",
         "switches_count", "preemptions_count"}


def same(name, live, recorded):
    for key, value in live.items():
        if key not in MOVES:
            check(f"{name} {key}", recorded.get(key, "absent") == value, f"live {value}, recorded {recorded.get(key)}")


def test_same_values(folder, pid):
    live = json.loads(run("watch", "--json", "--count", "1", pid).stdout)
    look = run("watch", "--root", folder, "--json", "--count", "1", pid)
    check("watch on the capture", look.returncode == 0, look.stderr)
    recorded = json.loads(look.stdout)
    same("job", live["job"], recorded["job"])
    check("number of processes", len(live["processes"]) == READY, len(live["processes"]))
    theirs = {p["pid"]: p for p in recorded["processes"]}
    check("processes", set(theirs) == {p["pid"] for p in live["processes"]})
    for p in live["processes"]:
        same(f"process {p['pid']}", p, theirs.get(p["pid"], {}))
    check("roles", {p["role"] for p in live["processes"]} >= {"rank", "loader worker", "shell"},
          [p["role"] for p in live["processes"]])
    same("memory", {k: live["host"][k] for k in ("mem_total_bytes", "swap_total_bytes", "limit_bytes",
                                                 "shm_total_bytes", "huge_page_bytes")}, recorded["host"])
    check("cores", len(live["cpus"]) == len(recorded["cpus"]))
    for kind, key in (("disks", "device"), ("filesystems", "mount"), ("interfaces", "up_flag"), ("cgroups", "max_bytes")):
        check(kind, [x[key] for x in live[kind]] == [x[key] for x in recorded[kind]],
              f"{live[kind]}\n{recorded[kind]}")
    check("what is not there", live["unavailable"] == recorded["unavailable"], recorded["unavailable"])


def test_refusals(scratch, taken, pid):
    before = sorted(os.listdir(scratch))
    busy = sorted(os.listdir(taken))
    new = os.path.join(scratch, "new")
    file = os.path.join(taken, "about")
    for args, word in (((taken, pid), "not empty"), ((file, pid), "no folder"), ((new, 0), "'0'"), ((new, "x"), "'x'"),
                       ((new, 2**22 + 1), "no process"), ((os.path.join(new, "b"), pid), "cannot write")):
        r = run("capture", *args)
        check(f"refuses {args}", r.returncode == 2, r.returncode)
        check(f"one line for {args}", r.stderr.count("\n") == 1 and word in r.stderr and not r.stdout, r.stderr)
    check("nothing was left", sorted(os.listdir(scratch)) == before, os.listdir(scratch))
    check("nothing was changed", sorted(os.listdir(taken)) == busy)


def main():
    scratch = tempfile.mkdtemp(prefix="afz-capture-")
    job = None
    try:
        job = start_job(scratch)
        folder = os.path.join(scratch, "capture")
        r = run("capture", folder, job.pid)
        check("captures", r.returncode == 0 and r.stderr.startswith("captured "), r.stderr)
        check("says where to look", "about" in r.stderr and r.stderr.count("\n") == 1, r.stderr)
        test_nothing_private(folder)
        test_same_values(folder, job.pid)
        test_refusals(scratch, folder, job.pid)
        whole = os.path.join(scratch, "whole machine")
        os.mkdir(whole)  # an empty folder is filled
        r = run("capture", whole)
        check("captures the whole machine", r.returncode == 0, r.stderr)
        check("fills a folder", os.path.exists(os.path.join(whole, "about")), os.listdir(whole))
        check("only that", not [x for x in os.listdir(whole) if "tmp" in x], os.listdir(whole))
        test_nothing_private(whole)
    finally:
        if job:
            job.stdin.close()
            job.wait()
        shutil.rmtree(scratch)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
