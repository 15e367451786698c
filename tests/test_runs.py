#!/usr/bin/python3
"""runs and export, as a person and a script meet them: real runs, made-up folders, hostile ones, a thousand.

    test_runs.py ANTIFREEZE FAKE_RUN FAKE_FLIGHT
"""
import contextlib
import csv
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time

from scenario import Checks, World

ANTIFREEZE, FAKE_RUN, FAKE_FLIGHT = map(os.path.abspath, sys.argv[1:4])
ALL = Checks(deadline=60)
check, DEADLINE = ALL.check, ALL.deadline
HOSTILE = "=cmd,\"q\"\n\x1b[31m\\é"


class Runs(World):
    def __init__(self):
        super().__init__(ANTIFREEZE_TIER="none")

    def runs_at(self, *path):
        return self.at("state/antifreeze/runs", *path)

    def call(self, *args, **kw):
        return super().call(ANTIFREEZE, *args, **kw)

    def runs(self, *args):
        return self.call("runs", *args)

    def runs_json(self, *args):
        r = self.runs("--json", *args)
        assert r.returncode == 0, r.stderr
        return json.loads(r.stdout)["runs"]

    def put(self, run, how="exit", code=0, peak=1 << 30, cmd="python train.py", **more):
        """A run's folder by hand."""
        os.makedirs(self.runs_at(run), 0o700)
        day, clock, _ = run.split("-")
        doc = {"schema": 1, "run": run, "end": {"how": how, "code": code}, "peak": {"ram_bytes": peak, "gpu_bytes": None},
               "tier": "none", "cost": {"cpu_fraction": .001},
               "verdicts": [{"id": "clean", "level": "ok", "confidence": .9, "summary": "nothing is wrong",
                             "evidence": ["it fits"], "where": None, "fix": None}],
               "attempts": 1, "did": {"tell": 0}, "budget_bytes": 4 << 30, "swap_bytes": 0, "cmd": cmd,
               "started": f"{day[:4]}-{day[4:6]}-{day[6:]}T{clock[:2]}:{clock[2:4]}:{clock[4:]}Z", "duration_s": 90.5, **more}
        with open(self.runs_at(run, "verdict.json"), "w") as f:
            json.dump(doc, f)
        with open(self.runs_at(run, "verdict.txt"), "w") as f:
            f.write(f"run {run}: nothing is wrong\n")
        return run

    def record(self, folder, run, cmd="python train.py", git="d9f680b0", name="python3"):
        subprocess.run([FAKE_FLIGHT, folder, run, cmd, git, name], env=self.env, check=True, timeout=DEADLINE)

    @contextlib.contextmanager
    def live(self):
        p = subprocess.Popen([FAKE_RUN, "live"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env)
        try:
            yield p.stdout.readline().strip()
        finally:
            p.stdin.close()
            p.wait(DEADLINE)
            p.stdout.close()


def one_line(what, r, word, status=2):
    check(what, r.returncode == status and r.stdout == "" and r.stderr.count("\n") == 1 and word in r.stderr,
          f"{r.returncode} {r.stdout!r} {r.stderr!r}")


def test_none():
    with Runs() as w:
        r = w.runs()
        check("no runs: one line, and no failure", r.returncode == 0 and r.stdout == "" and "no run yet" in r.stderr, r)
        check("no runs, for scripts", w.runs("--json").stdout == '{"schema":1,"runs":[]}\n')
        one_line("export without a run", w.call("export"), "no run yet")
        one_line("export of no such run", w.call("export", "nonsense"), "no run 'nonsense'")
        check("looking leaves nothing behind", os.listdir(w.at("run")) == [] and not os.path.exists(w.at("state")))
        r = w.runs("--prune", "0")
        check("nothing to prune", r.returncode == 0 and r.stdout == "0 runs removed, 0B freed\n", r)
        one_line("--prune of nonsense", w.runs("--prune", "yesterday"), "neither an age")
        one_line("--prune and -n", w.runs("--prune", "3", "-n", "3"), "--prune")


def test_real():
    with Runs() as w:
        script = w.at("train.py")
        with open(script, "w") as f:
            f.write("import sys\nhold = bytearray(int(sys.argv[2]) << 20)\nsys.exit(int(sys.argv[3]))\n")
        for batch, code in ((32, 0), (200, 3)):
            r = w.call("run", "--", sys.executable, script, "--batch", batch, code)
            check("the run ends as its program", r.returncode == code, r)
        runs = w.runs_json()
        check("both are listed, the newest first", [r["end"] for r in runs] ==
              [{"how": "exit", "code": 3}, {"how": "exit", "code": 0}], runs)
        check("a run's keys", list(runs[0]) == ["run", "state", "started", "duration_s", "end", "peak", "budget_bytes", "verdict",
                                                "cmd", "git", "changed"], list(runs[0]))
        changed = runs[0]["changed"]
        check("what changed", changed and changed["since"] == runs[1]["run"] and "batch 32 -> 200" in changed["text"] and
              "0 -> 3" in changed["text"], changed)
        check("only of the newest", runs[1]["changed"] is None)
        lines = w.runs().stdout.splitlines()
        check("the table", lines[0].startswith("RUN ") and lines[1].startswith(runs[0]["run"]) and "exit 3" in lines[1] and
              lines[2].startswith(f"  since {runs[1]['run']}, which went well: ") and "batch 32 -> 200" in lines[2] and
              lines[3].startswith(runs[1]["run"]), lines)
        if os.path.exists(w.runs_at(runs[0]["run"], "flight.afz")):
            r = w.call("export")
            check("a real recording is exported", r.returncode == 0 and ",hold,,,need_bytes," in r.stdout or
                  ",need_bytes," in r.stdout, r.stdout[:300] + r.stderr)
        else:
            one_line("a run that was not recorded", w.call("export"), "no recording")


def test_lives():
    with Runs() as w:
        w.put("20261101-000000-aaaa", how="stopped", code=None, cmd="python train.py --token hunter2 u=http://me:hunter2@h/")
        w.put("20261102-000000-aaaa", how="lost", code=None)
        with w.live() as run:
            states = {r["run"]: r["state"] for r in w.runs_json()}
            check("the states", states == {run: "live", "20261102-000000-aaaa": "lost", "20261101-000000-aaaa": "ended"}, states)
            text = w.runs().stdout
            check("shown so", re.search(rf"^{run} .* live ", text, re.M) and " lost " in text and " stopped " in text, text)
            check("no secrets", "hunter2" not in text + w.runs("--json").stdout and "--token ***" in text, text)
            r = w.runs("--prune", "0")
            check("a live run stays", r.returncode == 0 and r.stdout.startswith("2 runs removed") and
                  [x["run"] for x in w.runs_json()] == [run], r)


def test_same():
    with Runs() as w:
        w.put("20261101-000000-aaaa", cmd="python train.py --batch 32", peak=2 << 30)
        w.put("20261102-000000-aaaa", cmd="python eval.py")
        w.put("20261103-000000-aaaa", cmd="python train.py --batch 48", how="stopped", code=None)
        w.put("20261104-000000-aaaa", cmd="python train.py --batch 64", peak=5 << 30, how="stopped", code=None)
        for what in ("train.py", "python train.py", "20261101"):
            got = [r["run"][:8] for r in w.runs_json("--same", what)]
            check(f"--same {what}", got == ["20261104", "20261103", "20261101"], got)
        changed = w.runs_json("-n", "1")[0]["changed"]
        check("against the last good one", changed == {"since": "20261101-000000-aaaa",
                                                       "text": "batch 32 -> 64, peak 2.0G -> 5.0G (+3.0G)"}, changed)
        check("of an older one", w.runs_json("--same", "eval.py")[0]["changed"] is None)
        check("-n", [r["run"][:8] for r in w.runs_json("-n", "2")] == ["20261104", "20261103"])
        r = w.runs("--same", "2026")
        check("--same of several", r.returncode == 2 and "several runs" in r.stderr, r)
        r = w.runs("--same", "other.py")
        check("--same of none", r.returncode == 0 and "no run of that command" in r.stderr, r)
        one_line("last letters of several name them", w.call("why", "aaaa"), "several runs end with 'aaaa': 20261104-000000-aaaa, 20261103-")
        r = w.runs("--same", "aaaa")
        check("--same likewise", r.returncode == 2 and "several runs end" in r.stderr, r)
        names = [w.put(f"20261105-00000{i}-aaaa") for i in range(2)]
        one_line("a prefix of several names them", w.call("why", "20261105-0"), f"'20261105-0': {names[1]}, {names[0]}\n")
        names += [w.put(f"20261105-00000{i}-aaaa") for i in range(2, 6)]
        one_line("four of them, and counts the rest", w.call("why", "20261105-0"),
                 f"'20261105-0': {', '.join(names[:1:-1])} and 2 more ('antifreeze runs' lists them)\n")


def test_code():
    """What a shell or an interpreter is told on the command line is the command."""
    with Runs() as w:
        w.put("20261101-000000-aaaa", cmd="sh -c sleep 1; exit 0", peak=2 << 30)
        w.put("20261102-000000-aaab", cmd="sh -c make all")
        check("unrelated", w.runs_json()[0]["changed"] is None, w.runs_json())
        w.put("20261103-000000-aaac", cmd="sh -c sleep 1; exit 0", peak=4 << 30)
        changed = w.runs_json()[0]["changed"]
        check("the same", changed and changed["since"].startswith("20261101") and changed["text"].startswith("peak 2.0G -> 4.0G"), changed)
        check("--same RUN, by its letters", [r["run"][:8] for r in w.runs_json("--same", "aaac")] == ["20261103", "20261101"])


def test_hostile():
    with Runs() as w:
        w.put("20261101-000000-aaaa", cmd=f"python {HOSTILE} --x")
        for i, text in enumerate(("", "{", "[1]", "\0" * 100, '{"schema":1}', "x" * 300000, "[" * 100000)):
            run = f"20261102-00000{i}-aaaa"
            os.makedirs(w.runs_at(run))
            with open(w.runs_at(run, "verdict.json"), "w") as f:
                f.write(text)
        os.mkdir(w.runs_at("20261103-000000-aaaa"))
        os.symlink("/dev/zero", w.runs_at("20261103-000000-aaaa/verdict.json"))
        os.mkdir(w.runs_at("20261104-000000-aaaa"))
        os.mkfifo(w.runs_at("20261104-000000-aaaa/verdict.json"))
        os.symlink("20261105-000000-aaaa", w.runs_at("20261105-000000-aaaa"))  # to itself
        os.mkdir(w.runs_at("20261106-000000-aaaa"))
        for name in ("not a run", "20261107-000000-aaaa.bak", "\x1b[31m"):
            os.mkdir(w.runs_at(name))
        runs = w.runs_json()
        check("what is damaged is told, and hides nothing", [r["state"] for r in runs] == ["damaged"] * 9 + ["ended"], runs)
        r = w.runs()
        check("in words", r.returncode == 0 and "cannot be read" in r.stdout and "\x1b" not in r.stdout, r)
        os.makedirs(w.runs_at("20261108-000000-aaaa/sub"))
        w.put("20261109-000000-aaaa")
        with open(w.runs_at("20261109-000000-aaaa/model.pt"), "w") as f:
            f.write("precious")
        r = w.runs("--prune", "0")
        check("what is not ours is left alone, and said", r.returncode == 2 and "3 left alone" in r.stderr and
              "'model.pt' in it is not ours" in r.stderr, r)
        left = sorted(os.listdir(w.runs_at()))
        check("all else is gone", left == ["\x1b[31m", "20261104-000000-aaaa", "20261107-000000-aaaa.bak", "20261108-000000-aaaa",
                                           "20261109-000000-aaaa", "not a run"], left)
        check("with all its files", sorted(os.listdir(w.runs_at("20261109-000000-aaaa"))) == ["model.pt", "verdict.json", "verdict.txt"])


def test_prune():
    with Runs() as w:
        now = time.time()
        names = []
        for days in (1, 10, 40, 50):
            names.append(w.put(time.strftime("%Y%m%d-%H%M%S-aaaa", time.gmtime(now - days * 86400))))
            with open(w.runs_at(names[-1], "flight.afz"), "wb") as f:
                f.write(b"x" * 100000)
        mine = w.at("mine")
        subprocess.run([FAKE_RUN, "end", "0", mine], env=w.env, check=True, capture_output=True, timeout=DEADLINE)
        r = w.runs("--prune", "30d", "--json")
        done = json.loads(r.stdout)
        check("by age", done["removed"] == 2 and done["left_alone"] == 0 and done["freed_bytes"] >= 200000, done)
        check("the young ones stay", len(w.runs_json()) == 3)
        r = w.runs("--prune", "1")
        check("by number", r.returncode == 0 and r.stdout.startswith("2 runs removed"), r)
        check("the newest stays", [x["cmd"][-3:] for x in w.runs_json()] == ["***"], w.runs_json())
        r = w.runs("--prune", "0")
        check("a --run-dir stays, the link goes", r.returncode == 0 and "which stays" in r.stdout and
              os.listdir(w.runs_at()) == [] and os.path.exists(os.path.join(mine, "verdict.json")), r)


def test_thousand():
    with Runs() as w:
        for i in range(1000):
            w.put(f"20261101-{i // 60:04}{i % 60:02}-aaaa", cmd=f"python train.py --batch {i}", code=i % 3)
        check("all", len(w.runs_json()) == 1000)
        r = w.runs()
        check("the newest twenty, and a word", r.stdout.count("\n") == 22 and "-n N shows more" in r.stderr, r)
        check("-n all of them", w.runs("-n", "5000").stdout.count("\n") == 1002)
        # Far above what it takes (a few ms); a machine under load must not fail here.
        before = time.monotonic()
        w.runs("--json")
        check("a thousand in no time", time.monotonic() - before < 5)
        r = w.runs("--prune", "10")
        check("and away", r.stdout.startswith("990 runs removed") and len(w.runs_json()) == 10, r)


def test_export():
    with Runs() as w:
        run = w.put("20261101-000000-aaaa")
        w.record(w.runs_at(run), run, cmd="python train.py --token hunter2", name=HOSTILE)
        r = w.call("export")
        rows = list(csv.DictReader(io.StringIO(r.stdout)))
        check("csv", r.returncode == 0 and not r.stderr and len(rows) > 500, r.stderr)
        need = [int(x["value"]) for x in rows if x["kind"] == "hold" and x["metric"] == "need_bytes"]
        check("every reading", need == [i << 20 for i in range(200)], need[:9])
        check("marks", [x["metric"] for x in rows if x["kind"] == "mark"] == ["brake", "release", "oom-kill"])
        check("no formulas", all(not x["name"].startswith(("=", "+", "-", "@")) for x in rows))
        lines = [json.loads(x) for x in w.call("export", run, "--format", "jsonl").stdout.splitlines()]
        check("jsonl", [x["type"] for x in lines[:1]] == ["run"] and {x["type"] for x in lines} ==
              {"run", "subject", "sample", "mark"}, lines[:3])
        check("a run's head", lines[0]["run"] == run and lines[0]["cmd"] == "python train.py --token ***" and lines[0]["ended"],
              lines[0])
        trace = json.loads(w.call("export", "--format", "chrome-trace").stdout, parse_constant=float)
        check_trace(trace)
        phases = {x["ph"] for x in trace["traceEvents"]}
        check("chrome-trace", phases == {"M", "C", "X", "i"}, phases)
        check("its events are whole", all({"ph", "pid", "tid", "ts", "name"} <= set(x) for x in trace["traceEvents"]))
        text = w.call("export", "--format", "openmetrics").stdout
        check("openmetrics", text.endswith("# EOF\n") and "antifreeze_hold_stall_seconds_total{" in text, text[:300])
        check_openmetrics(text)
        check("no secrets", "hunter2" not in text)
        r = w.call("export", "-o", w.at("out.csv"))
        check("-o", r.returncode == 0 and r.stdout == "" and os.stat(w.at("out.csv")).st_mode & 0o777 == 0o600 and
              len(open(w.at("out.csv")).read().splitlines()) == len(rows) + 1, r)
        one_line("-o into nowhere", w.call("export", "-o", "/nonexistent/x"), "/nonexistent/x: No such file")
        shutil.copy(w.runs_at(run, "flight.afz"), w.at("copy"))
        check("a recording by its path", w.call("export", w.at("copy")).stdout == w.call("export").stdout)
        os.mkdir(w.at("folder"))
        shutil.copy(w.at("copy"), w.at("folder/flight.afz"))
        check("a folder with nothing else", w.call("export", w.at("folder")).stdout == w.call("export").stdout)
        check("the revision is in the history", w.runs_json()[0]["git"] == "d9f680b0", w.runs_json())
        check("and in the table", " REVISION  COMMAND\n" in w.runs().stdout and " d9f680b0  python train.py --token ***\n" in
              w.runs().stdout, w.runs().stdout)


def check_trace(trace):
    """By the Trace Event Format: what Perfetto and chrome://tracing take for granted."""
    names, bars, last, wrong = {}, {}, {}, []
    number = lambda x: type(x) in (int, float) and math.isfinite(x)
    for e in trace["traceEvents"]:
        ph, args, thread = e["ph"], e.get("args", {}), (e["pid"], e["tid"])
        ok = all(type(e[key]) is int and 0 <= e[key] < 1 << 31 for key in ("pid", "tid")) and number(e["ts"]) and e["ts"] >= 0 and \
            isinstance(e["name"], str) and e["name"] != ""
        if ph == "M":
            key, kind = {"process_name": ("name", str), "thread_name": ("name", str), "process_sort_index": ("sort_index", int)}[e["name"]]
            ok &= list(args) == [key] and type(args[key]) is kind
            if e["name"] == "process_name":
                names[e["pid"]] = args["name"]
        elif ph == "C":
            ok &= bool(args) and all(number(x) for x in args.values()) and e["ts"] >= last.get((e["pid"], e["name"]), 0)
            last[e["pid"], e["name"]] = e["ts"]
        elif ph == "X":
            ok &= number(e["dur"]) and e["dur"] >= 0
            bars.setdefault(thread, []).append((e["ts"], e["ts"] + e["dur"]))
        else:
            ok &= ph == "i" and e["s"] in ("g", "p", "t")
        if not ok:
            wrong.append(e)
    check("every event of the trace is one", not wrong, wrong[:3])
    check("every process of it has a name", {e["pid"] for e in trace["traceEvents"]} <= set(names), names)
    for thread, spans in bars.items():
        spans.sort()
        check("bars of a thread do not overlap", all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), (thread, spans))


def check_openmetrics(text):
    """By the parser of Prometheus' own client where it is installed."""
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
    except ImportError:
        return
    try:
        families = list(text_string_to_metric_families(text))
        check("prometheus_client reads it", sum(len(f.samples) for f in families) > 500, len(families))
    except ValueError as e:
        check("prometheus_client reads it", False, e)


def test_export_damaged():
    with Runs() as w:
        run = w.put("20261101-000000-aaaa")
        one_line("not recorded", w.call("export"), "there is no recording in")
        flight = w.runs_at(run, "flight.afz")
        for what, data in (("an empty file", b""), ("text", b"hello world\n" * 1000), ("zeros", bytes(4096)),
                           ("another format", b"\x89PNG\r\n\x1a\n" + bytes(100))):
            with open(flight, "wb") as f:
                f.write(data)
            one_line(what, w.call("export"), "flight.afz")
            one_line(f"{what}, by its path", w.call("export", flight), "flight.afz")
        os.remove(flight)
        os.mkfifo(flight)
        one_line("a pipe", w.call("export"), "flight.afz")
        os.remove(flight)
        w.record(w.runs_at(run), run)
        whole = open(flight, "rb").read()
        for part in range(1, 20):
            with open(flight, "wb") as f:
                f.write(whole[:len(whole) * part // 20])
            r = w.call("export")
            check("cut anywhere: an export or one line", r.returncode in (0, 2) and r.stderr.count("\n") <= 1, r.stderr)
            broken = bytearray(whole)
            broken[len(whole) * part // 20] ^= 0x5a
            with open(flight, "wb") as f:
                f.write(broken)
            r = w.call("export", "--format", "jsonl")
            check("damaged anywhere: an export or one line", r.returncode in (0, 2) and r.stderr.count("\n") <= 1, r.stderr)
            for line in r.stdout.splitlines():
                json.loads(line)
            check("and the history stands", w.runs_json()[0]["run"] == run)


for test in (test_none, test_real, test_lives, test_same, test_code, test_hostile, test_prune, test_thousand, test_export,
             test_export_damaged):
    test()
ALL.finish()
