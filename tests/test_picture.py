#!/usr/bin/python3
"""The picture before a stop: what its lines hold and where all of its threads stand, taken while the job is held still.

    test_picture.py ANTIFREEZE [TIER...]
"""
import json
import re

from scenario import PYTHON, Scenario

world = Scenario(deadline=90)
check = world.check

# A main thread that grows, three that wait for a lock, and a child that waits for its parent.
JOB = """
import os, sys, threading, time
kept = []
rate = float(sys.argv[1])
lock = threading.Lock()
lock.acquire()
def waits():
    lock.acquire()  # waits
def child():
    os.read(0, 1)  # child
def grow():
    while True:
        kept.append(bytearray(b"x") * 1_000_000)  # grow
        time.sleep(1e6 / rate)  # or here
r, w = os.pipe()
if os.fork() == 0:
    os.dup2(r, 0)
    os.close(w)
    child()
    os._exit(0)
for i in range(3):
    threading.Thread(target=waits, daemon=True).start()
grow()
"""


def line_of(word):
    return next(i + 1 for i, line in enumerate(JOB.splitlines()) if f"# {word}" in line)


def stop_it(rate, *options):
    """A job that grows so fast and is stopped; all that was recorded of it."""
    with open(f"{world.state}/job.py", "w") as file:
        file.write(JOB)
    r = world.run(PYTHON, f"{world.state}/job.py", str(rate), options=["--budget", "150M", "--swap", "0", *options])
    text = world.plain(world.antifreeze, "export", "--format", "jsonl").stdout
    return r, [json.loads(line) for line in text.splitlines()]


def pictures(rows):
    """The texts of each, by time."""
    found = {}
    for row in rows:
        if row["type"] == "mark" and row["mark"] == "stack":
            found.setdefault(row["t_s"], []).append(row["text"])
    return found


def said(rows, word):
    return [row["text"] for row in rows if row.get("mark") == "said" and row["text"].startswith(word)]


def stopped_at(rows):
    return [row["t_s"] for row in rows if row.get("mark") == "action" and row["name"] in ("interrupt", "terminate", "kill")]


def threads(texts):
    return sum(1 + int(m[1]) if (m := re.search(r"\nand (\d+) more thread", text)) else 1 for text in texts)


def stop_and_see(rate, *options):
    """On a machine that is busy enough, a picture comes too late; that is said, and another try is fair."""
    for _ in range(4):
        r, rows = stop_it(rate, *options)
        if not [text for text in said(rows, "picture") if "in time" in text or "no time" in text]:
            break
    return r, rows


def test_fast_and_slow():
    for rate in (20e6, 200e6):
        what = f"{rate / 1e6:.0f} MB/s"
        r, rows = stop_and_see(rate)
        check(f"{what}: it is stopped", r.returncode == 75, r)
        taken, stops = pictures(rows), stopped_at(rows)
        check(f"{what}: there is a picture, and not many", 1 <= len(taken) <= 5, (taken.keys(), said(rows, "picture")))
        check(f"{what}: it is said", len(said(rows, "picture: taken in")) >= 1, said(rows, "picture"))
        if not taken or not stops:
            continue
        last = taken[max(taken)]
        check(f"{what}: before the stop, and not long", 0 <= stops[0] - max(taken) < 5, (taken.keys(), stops))
        check(f"{what}: all of it was held", all(text.startswith("frozen: ") for text in last), last)
        grow = [text for text in last if "job.py" in text and " in grow" in text]
        line = re.search(r"job\.py:(\d+) in grow\n", grow[0]) if grow else None
        check(f"{what}: the line that it was at", line and int(line[1]) in (line_of("grow"), line_of("or here")), last)
        check(f"{what}: those that wait", [text for text in last if f"job.py:{line_of('waits')} in waits" in text], last)
        check(f"{what}: another process", [text for text in last if f"job.py:{line_of('child')} in child" in text], last)
        check(f"{what}: every thread", threads(last) == 5, last)
        verdicts = json.loads(world.plain(world.antifreeze, "why", "--json").stdout)["verdicts"]
        check(f"{what}: that is no hang", not [v for v in verdicts if "hang" in v["id"]], verdicts)


def test_sites_of_the_moment():
    r, rows = stop_and_see(60e6)
    stops = stopped_at(rows)
    name = f"job.py:{line_of('grow')} in grow()"
    sites = [(row["t_s"], row["values"]["live_bytes"]) for row in rows
             if row["type"] == "sample" and row["kind"] == "site" and row["name"] == name]
    check("it is stopped", r.returncode == 75 and stops, r)
    check("what its line held is known up to the stop", stops and sites and sites[-1][0] > stops[0] - 3 and
          sites[-1][1] > 100e6, (stops, sites[-3:]))
    plain = world.plain(world.antifreeze, "why").stdout
    check("why says where it stood", re.search(r"stood at +job\.py:\d+ in grow\(\) \(", plain), plain)
    full = world.plain(world.antifreeze, "why", "--verbose").stdout
    check("and with all threads", "where it stood " in full and "and 2 more threads" in full.replace("\n             ", " "), full)
    check("and what was done", "picture: taken in" in full, full)


def test_without_a_probe():
    r, rows = stop_and_see(60e6, "--no-probe")
    check("without the probe: it is stopped", r.returncode == 75, r)
    check("stacks are there", [t for texts in pictures(rows).values() for t in texts if " in grow" in t], rows[-5:])


def test_not_when_watched():
    r = world.run(PYTHON, "-c", "kept = [bytearray(b'x') * 1_000_000 for i in range(180)]",
                  options=["--budget", "150M", "--policy", "watch"])
    text = world.plain(world.antifreeze, "export", "--format", "jsonl").stdout
    rows = [json.loads(line) for line in text.splitlines()]
    check("who is only watched runs through", r.returncode == 0, r)
    check("and is not frozen for a picture", not pictures(rows) and not said(rows, "picture"), rows[-5:])


if __name__ == "__main__":
    world.play(globals())
