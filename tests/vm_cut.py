#!/usr/bin/python3
"""In the machine whose power is cut (tests/vm/cut): looks at what the last cut left on /disk, then starts a run and waits for the
next one. Speaks in lines: JSON objects, "beat NS" (CLOCK_BOOTTIME), "ack MS THINNED" (flight_thinner).

    vm_cut.py ORDER      a JSON object: check (what the last boot told of its run, or null), job (null: none), folder, thinner
"""
import json
import os
import subprocess
import sys
import time

ANTIFREEZE, DUMP, THINNER = "/share/antifreeze", "/share/flight_dump", "/share/flight_thinner"
BEAT = .02          # seconds; the host learns from it what the time is here
DEADLINE = 120      # seconds; emulated, beside other work
STATE = "/disk/state"
ENV = {**os.environ, "XDG_STATE_HOME": STATE, "ANTIFREEZE_TIER": "scope"}
JOBS = {
    "sleep": ["sleep", "600"],
    "grow": ["python3", "-c", "import time\nx = []\nwhile len(x) < 9000: x.append(bytearray(1 << 14)); time.sleep(.01)"],
    "forks": ["sh", "-c", "while :; do sleep .2; done"],
    "ends": ["sleep", "1.2"],  # the cut comes about when it ends: the recording is closed and made smaller
}


def say(**words):
    os.write(1, json.dumps(words).encode() + b"\n")


def ask(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE, env=ENV, check=False, errors="replace")
    return {"status": done.returncode, "out": done.stdout[:9000], "err": done.stderr[:1000], "lines": done.stdout.count("\n")}


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def listed(folder):
    try:
        return {name: os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)}
    except OSError:
        return None


def check(last):
    folder = last["folder"]
    say(checked={
        "files": listed(folder),
        "read": ask(DUMP, "read", folder),
        "why": ask(ANTIFREEZE, "why", last["run"]),
        "json": ask(ANTIFREEZE, "why", "--json", last["run"]),
        "runs": ask(ANTIFREEZE, "runs", "--json", "-n", "2"),
        "export": ask(ANTIFREEZE, "export", "-o", "/dev/null", folder),
        "thinner": ask(THINNER, "check", last["thinner"]) if last["thinner"] else None,
        "thinner_files": listed(last["thinner"]) if last["thinner"] else None,
    })


def until(probe):
    end = time.monotonic() + DEADLINE
    while not (got := probe()):
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(.01)
    return got


def runs():
    try:
        return set(os.listdir(STATE + "/antifreeze/runs"))
    except FileNotFoundError:
        return set()


def start(order):
    before, thinner = runs(), None
    if order["thinner"]:
        thinner = order["thinner"]
        os.makedirs(thinner)
        # It goes on until the power does.
        subprocess.Popen([THINNER, "write", thinner], stdin=subprocess.DEVNULL)  # pylint: disable=consider-using-with
        time.sleep(1)
    where = ["--run-dir", order["folder"]] if order["folder"] else []
    argv = [ANTIFREEZE, "run", "-q", "--budget", "200M", *where, "--", *JOBS[order["job"]]]
    subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=ENV)  # pylint: disable=consider-using-with
    run = until(lambda: runs() - before).pop()
    folder = os.path.realpath(f"{STATE}/antifreeze/runs/{run}")
    until(lambda: os.path.exists(folder + "/flight.afz"))
    made_ns = boot_ns()
    begun = until(lambda: ask(DUMP, "start", run)["out"].strip())
    say(started={"run": run, "folder": folder, "start_ns": int(begun), "made_ns": made_ns, "thinner": thinner})


def main():
    order = json.loads(sys.argv[1])
    with open("/sys/block/vdb/queue/write_cache", encoding="ascii") as f:
        say(cache=f.read().strip())
    if order["check"]:
        check(order["check"])
    if not order["job"]:
        return
    start(order)
    while True:
        os.write(1, b"beat %d\n" % boot_ns())
        time.sleep(BEAT)


main()
