#!/usr/bin/python3
"""Which kind of trouble with memory it is: a data set as a whole, a batch that is too large, buffers of layers; or none.

    test_memory_kinds.py ANTIFREEZE TRAINER

Jobs in plain Python take their time by the clock, so that a busy machine changes nothing; the trainer shows the same in C.
"""
import json
import os
import sys

from scenario import PYTHON, Checks, World

ANTIFREEZE, TRAINER = map(os.path.abspath, sys.argv[1:3])
ALL = Checks(deadline=90)
check = ALL.check
CLOCK = """
import ctypes, time
try:
    step = ctypes.CDLL(None).antifreeze_step
except AttributeError:
    raise SystemExit("there is no probe")
"""
LOADS = CLOCK + """
def load(n):
    return b"x" * n  # here
kept = load(160 << 20)
copy = b"w" * (80 << 20)
for i in range(20):
    step()
    time.sleep(.2)
"""
BATCHES = CLOCK + """
def forward(n):
    return [b"y" * (n << 20) for _ in range(8)]  # here
for i in range(20):
    step()
    held = forward(20)
    time.sleep(.1)
    del held
    time.sleep(.1)
"""
FIRST = CLOCK + """
small = b"z" * (20 << 20)
step()
held = []
while True:
    held.append(b"y" * (2 << 20))  # here
    time.sleep(.01)
"""
ONE_PIECE = """
import time
time.sleep(1.5)
data = b"x" * (600 << 20)  # here
time.sleep(60)
"""
LAYERS = CLOCK + """
class Layer:
    def __init__(self):
        self.buffer = b"m" * (8 << 20)  # here
class Model:
    def __init__(self):
        self.layers = [Layer() for _ in range(25)]
model = Model()
for i in range(20):
    step()
    time.sleep(.2)
"""
SMALL = LOADS.replace("160", "40").replace("80", "20")


class Runs(World):
    def judge(self, budget, *args):
        self.call(ANTIFREEZE, "run", "--budget", budget, "--swap", "0", "--", *args)
        return json.loads(self.call(ANTIFREEZE, "why", "--json").stdout)["verdicts"]

    def program(self, text):
        with open(self.at("job.py"), "w") as file:
            file.write(text)
        self.line = next(i + 1 for i, line in enumerate(text.splitlines()) if "# here" in line)
        return self.at("job.py")


def said(what, verdicts, verdict, level):
    first = verdicts[0]
    check(f"{what}: {verdict}", (first["id"], first["level"]) == (verdict, level), verdicts)
    return first


def test_python():
    for what, text, budget, verdict, level in (
            ("a data set in memory", LOADS, "300M", "dataset-in-memory", "warn"),
            ("a batch near the line", BATCHES, "195M", "batch-too-large", "warn"),
            ("a first step that does not end", FIRST, "150M", "batch-too-large", "act"),
            ("one array that does not fit", ONE_PIECE, "200M", "dataset-in-memory", "act"),
            ("buffers of layers", LAYERS, "260M", "layer-buffer", "warn")):
        with Runs() as w:
            job = w.program(text)
            first = said(what, w.judge(budget, PYTHON, job), verdict, level)
            where = first["where"] or {}
            check(f"{what}: its line", (where.get("file"), where.get("line")) == (job, w.line), first)
            check(f"{what}: what to do", first["fix"], first)
            if text == LOADS:
                check("two copies are called that", any("two copies" in line for line in first["evidence"]), first)


def test_clean():
    with Runs() as w:
        verdicts = w.judge("300M", PYTHON, w.program(SMALL))
        check("a small data set is fine", [v["id"] for v in verdicts] == ["clean"], verdicts)


def test_trainer():
    with Runs() as w:
        first = said("the trainer's batch", w.judge("200M", TRAINER, "--large-batch", "--steps", "9", "--quiet"),
                     "batch-too-large", "act")
        check("the trainer's batch: its line", (first["where"] or {}).get("file", "").endswith(".c"), first)
        first = said("the trainer's data", w.judge("200M", TRAINER, "--whole-dataset=400M", "--steps", "9", "--quiet"),
                     "dataset-in-memory", "act")
        check("the trainer's data: its line", (first["where"] or {}).get("function") == "load_as_double", first)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_") and os.environ.get("ONLY", "") in name:
            test()
    ALL.finish()
