#!/usr/bin/python3
"""why, set and watch RUN, as a person and a script meet them: runs that ended, go on, were lost; no run at all; and what
`run` says at the end.

    test_why.py ANTIFREEZE FAKE_RUN
"""
import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys

from scenario import PYTHON, Checks, World

ANTIFREEZE, FAKE_RUN = map(os.path.abspath, sys.argv[1:3])
ALL = Checks(deadline=60)
check, DEADLINE = ALL.check, ALL.deadline
KEYS = ["schema", "run", "end", "peak", "tier", "cost", "verdicts"]


class Runs(World):
    def fake(self, *args):
        r = self.call(FAKE_RUN, *args)
        assert r.returncode == 0, r.stderr
        return r.stdout.strip()

    def why(self, *args):
        return self.call(ANTIFREEZE, "why", *args)

    def why_json(self, *args):
        r = self.why("--json", *args)
        assert r.returncode == 0, r.stderr
        return json.loads(r.stdout)

    @contextlib.contextmanager
    def live(self, *args):
        p = subprocess.Popen([FAKE_RUN, "live", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env=self.env)
        try:
            yield p, p.stdout.readline().strip()
        finally:
            p.stdin.close()
            p.wait(DEADLINE)
            p.stdout.close()


def one_line(what, r, word, status=2):
    check(what, r.returncode == status and r.stdout == "" and r.stderr.count("\n") == 1 and word in r.stderr,
          f"{r.returncode} {r.stdout!r} {r.stderr!r}")


def test_no_runs():
    with Runs() as w:
        one_line("no runs: one line and exit 2", w.why(), "no run yet")
        one_line("no such run", w.why("nonsense"), "no run 'nonsense'")
        one_line("no such folder", w.why("/nonexistent/x"), "no run '/nonexistent/x'")
        one_line("no such process", w.why("4242"), "process 4242")
        one_line("an empty operand", w.why(""), "no run ''")
        one_line("set wants a run", w.call(ANTIFREEZE, "set", "--budget", "1G"), "RUN")
        one_line("set of no run", w.call(ANTIFREEZE, "set", "x", "--budget", "1G"), "no run 'x'")
        check("looking leaves nothing behind", os.listdir(w.at("run")) == [] and not os.path.exists(w.at("state")))
        w.env = {"PATH": w.env["PATH"]}
        check("with nothing in the environment", w.why("--json").returncode in (0, 2))


def test_ended():
    with Runs() as w:
        run = w.fake("end", 3)
        text = w.why()
        check("text", text.returncode == 0 and text.stdout.startswith(f"run {run}: it ended by itself\n"), text)
        for word in ("verdict    exception, perhaps", "because    as it said", "try        look", "exit status 3",
                     "peak 3.0G of a budget of 4.0G", "--token ***"):
            check(f"text has {word!r}", word in text.stdout, text.stdout)
        check("no passwords", "hunter2" not in text.stdout, text.stdout)
        check("verdict.txt is why", open(w.at("state/antifreeze/runs", run, "verdict.txt")).read() == text.stdout)
        full = w.why("--verbose").stdout
        for word in ("exception, perhaps (confidence 0.60, level warn)", "because    as it said", "try        look", "cgroup2",
                     "nothing: it was not needed", "of processor", "recording  none"):
            check(f"--verbose has {word!r}", word in full, full)
        doc = w.why_json(run)
        check("the keys and their order", list(doc)[:len(KEYS)] == KEYS, list(doc))
        check("the end", doc["end"] == {"how": "exit", "code": 3}, doc["end"])
        check("the peak", doc["peak"] == {"ram_bytes": 3 << 30, "gpu_bytes": None}, doc["peak"])
        verdict = doc["verdicts"][0]
        check("a verdict's keys", list(verdict)[:7] == ["id", "level", "confidence", "summary", "evidence", "where", "fix"],
              list(verdict))
        check("and later ones", list(verdict)[7:10] == ["caused_by", "from_s", "to_s"], list(verdict))
        folder = w.at("state/antifreeze/runs", run)
        check("verdict.json is why --json", open(os.path.join(folder, "verdict.json")).read() == w.why("--json").stdout)
        check("what stays", sorted(os.listdir(folder)) == ["verdict.json", "verdict.txt"], os.listdir(folder))
        modes = {name: stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) for name in os.listdir(folder)}
        check("0600", set(modes.values()) == {0o600}, modes)
        check("0700", stat.S_IMODE(os.stat(folder).st_mode) == 0o700)
        check("nothing stays in the runtime folder", os.listdir(w.at("run/antifreeze")) == ["ledger.lock"])
        one_line("set of a run that is over", w.call(ANTIFREEZE, "set", run, "--budget", "1G"), "is over")
        check("by a prefix", w.why_json(run[:12])["run"] == run)
        check("by its last letters", w.why_json(run[-4:])["run"] == run)
        one_line("not by others", w.why("".join("b" if c == "a" else "a" for c in run[-4:])), "no run")
        check("by its folder", w.why_json(folder)["run"] == run)
        second = w.fake("end", 0)
        check("the newest", w.why_json()["run"] == second)
        one_line("a prefix of several", w.why(run[:9]), "several runs begin")
        with open("/dev/full", "w") as full:
            r = subprocess.run([ANTIFREEZE, "why"], stdout=full, stderr=subprocess.PIPE, env=w.env, check=False)
            check("a full disk behind stdout is told", r.returncode == 2 and b"writing" in r.stderr, r)


def test_paste():
    with Runs() as w:
        run = w.fake("end", 1)
        lines = w.why("--paste").stdout.splitlines()
        check("a fenced block", lines[0] == "```text" and lines[-1] == "```", lines)
        check("the machine", lines[1].startswith("antifreeze ") and "Linux" in lines[1] and "RAM" in lines[1], lines[1])
        check("the verdict", lines[2] == f"run {run}: it ended by itself", lines[2])
        check("the tier", any("cgroup2" in line for line in lines))
        check("the command's name only", lines[-2].split() == ["command", "python"], lines[-2])
        check("no secrets", not any(word in line for line in lines for word in ("hunter2", "/home/me", "train.py")), lines)
        one_line("--paste and --json", w.why("--paste", "--json"), "exclude")
        one_line("--verbose and --json", w.why("--verbose", "--json"), "exclude")


SECRETS = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", "hunter2", "/home/me/secret", "patient 4711"


def test_paste_of_an_error():
    """What an error says is nobody's business: a key, a row of the data, a folder. Its kind and its line are told."""
    said = {"one line": "bad token {0} for {1}, see {2}/keys.json", "an \", at\" of its own": "{3}, at {2}/x.py:9, at {1}",
            "colons": "KEY={1}: {0}: {3}", "lines": "{3}\\n{2}\\n{1}", "a path alone": "{2}"}
    for what, words in said.items():
        with Runs() as w:
            with open(w.at("train.py"), "w") as file:
                file.write(f'class Bad(ValueError): pass\ndef load():\n    raise Bad("{words.format(*SECRETS)}")\nload()\n')
            w.call(ANTIFREEZE, "run", "--", PYTHON, w.at("train.py"))
            full, paste = w.why("--verbose").stdout, w.why("--paste").stdout
            if "that nobody caught" not in full:
                print("# no agent: what errors say is not heard")
                return
            check(f"{what}: why tells it", any(secret in full for secret in SECRETS), full)
            check(f"{what}: --paste does not", not any(secret in paste for secret in (*SECRETS, "secret", "keys.json", w.dir)), paste)
            check(f"{what}: but its kind and its line", "that nobody caught: Bad, at train.py:3 in load()" in paste, paste)


def test_explain():
    with Runs() as w:
        listed = w.why("--explain")
        ids = [line.split()[0] for line in listed.stdout.splitlines()]
        check("--explain alone lists them", listed.returncode == 0 and len(ids) > 40 and "leak:shm" in ids, listed)
        check("in 80 columns", max(map(len, listed.stdout.splitlines())) <= 80, listed.stdout)
        for verdict in ids:
            r = w.why("--explain", verdict)
            check(f"--explain {verdict}", r.returncode == 0 and r.stdout.startswith(f"{verdict}: "), r)
            check(f"{verdict} says what to do", "\nHOW TO FIX IT\n" in r.stdout, r.stdout)
        check("a kind that is new", w.why("--explain", "hang:novel").stdout == w.why("--explain", "hang").stdout)
        r = w.why("--explain", "leek")
        check("--explain of nothing", r.returncode == 2 and r.stdout == "" and "did you mean 'leak'?" in r.stderr, r)
        check("and it lists all there are", r.stderr.endswith(listed.stdout), r.stderr)
        check("no verdict is near", "did you mean" not in w.why("--explain", "gremlins").stderr)
        one_line("no run is looked at", w.why("--explain", "leak", "--json"), "exclude one another")


def own_lines(r):
    return [line for line in r.stderr.splitlines() if line.startswith("antifreeze: ")]


def test_end_of_run():
    """What `run` says when it ends: a line when all was well, else at most five, and nothing that why does not say."""
    with Runs() as w:
        r = w.call(ANTIFREEZE, "run", "--", "true")
        said = own_lines(r)
        check("a good run ends with one line", r.returncode == 0 and len(said) == 2 and said[1].startswith("antifreeze: clean: "), r)
        r = w.call(ANTIFREEZE, "run", "--", "sh", "-c", "exit 3")
        said, run = own_lines(r)[1:], w.why_json()["run"]
        check("a bad one with at most five", 2 <= len(said) <= 5 and said[0].startswith("antifreeze: exception: "), said)
        check("what to try", any(line.startswith("antifreeze:   try: ") for line in said), said)
        check("and where there is more", f"antifreeze why {run}" in said[-1] and f"antifreeze report {run}" in said[-1], said)
        doc = w.why_json(run)
        check("why says the same", doc["verdicts"][0]["summary"] in said[0] and doc["end"] == {"how": "exit", "code": 3}, doc)
        check("the guard's facts are kept", doc["facts"]["stop_cause"] == "none", doc)
        check("--verbose tells of the recording", "recording" in w.why("--verbose", run).stdout, w.why("--verbose", run))
        r = w.call(ANTIFREEZE, "run", "--quiet", "--", "sh", "-c", "exit 3")
        check("--quiet is quiet", r.returncode == 3 and r.stderr == "", r)
        r = w.call(ANTIFREEZE, "run", "--json", "--", "sh", "-c", "kill -SEGV $$")
        said = [json.loads(line) for line in r.stderr.splitlines()]
        verdict = [line for line in said if line["antifreeze"] == "verdict"]
        check("--json: one object says the verdict", len(verdict) == 1 and verdict[0]["verdicts"][0]["id"] == "crash", said)
        check("in the form of why --json", verdict[0]["verdicts"] == w.why_json()["verdicts"], verdict)
        check("the end comes last", said[-1]["antifreeze"] == "end" and said[-1]["signal"] == signal.SIGSEGV, said[-1])
        with open(w.at("file"), "w"):
            pass
        r = w.call(ANTIFREEZE, "run", "--json", "--run-dir", "file", "--", "true")
        check("--json: also what fails is an object", r.returncode == 125 and json.loads(r.stderr)["antifreeze"] == "failed", r)
        w.env["XDG_STATE_HOME"] = w.at("file")
        r = w.call(ANTIFREEZE, "run", "--json", "--", "sh", "-c", "exit 3")
        said = [json.loads(line) for line in r.stderr.splitlines()]
        check("a run without a folder", r.returncode == 3 and [line["antifreeze"] for line in said] ==
              ["unrecorded", "start", "verdict", "end"] and "exit status 3" in said[2]["text"], said)


def test_demo_time():
    with Runs() as w:
        if w.call(ANTIFREEZE, "demo", "--list").returncode != 0:
            return
        r = w.call(ANTIFREEZE, "demo", "--time", "1s")
        check("a demo that was ended by its time says so", r.returncode == 0 and "when its time was over" in r.stderr and "exception" not in r.stderr, r)
        check("and why does", "when its time was over" in w.why().stdout, w.why().stdout)


def test_watch_run():
    with Runs() as w:
        with w.live() as (process, run):
            for name in (run, run[:-2], w.at("state/antifreeze/runs", run), str(process.pid)):
                r = w.call(ANTIFREEZE, "watch", "--json", "-n", "1", name)
                check(f"watch {name}", r.returncode == 0 and r.stdout.count("\n") == 1 and json.loads(r.stdout), r)
        r = w.call(ANTIFREEZE, "watch", run)
        one_line("watch of a run that is over", r, f"antifreeze why {run}")
        check("and the report is named", f"antifreeze report {run}" in r.stderr, r)
        one_line("watch of no run", w.call(ANTIFREEZE, "watch", "nonsense"), "no run 'nonsense'")


def test_live():
    with Runs() as w:
        with w.live() as (process, run):
            doc = w.why_json()
            check("a run that goes on has no end", doc["run"] == run and doc["end"] is None, doc)
            first = w.why(run).stdout.splitlines()[0]
            check("told as it stands, first of all", re.fullmatch(rf"run {run}: still running after [0-9.]+ m?s: it needs 0B of the 4.0G it may use", first), first)
            check("by a process of it", w.why_json(process.pid)["run"] == run)
            r = w.call(ANTIFREEZE, "set", run, "--budget", "2G")
            check("set", r.returncode == 0 and r.stdout == f"run {run}: budget 2.0G\n" and not r.stderr, r)
            check("the new budget is shown", w.why_json()["budget_bytes"] == 2 << 30)
            one_line("a guard that refuses", w.call(ANTIFREEZE, "set", run, "--swap", "1G"), "not now")
            one_line("nothing to set", w.call(ANTIFREEZE, "set", run), "--budget or --swap")
            r = w.call(ANTIFREEZE, "set", process.pid, "--budget", "50%")
            check("a share of the RAM", r.returncode == 0 and r.stdout.startswith(f"run {run}: budget "), r)
        check("then it is over", w.why_json(run)["end"] == {"how": "exit", "code": 0})


def test_lost():
    with Runs() as w:
        run = w.fake("lose")
        check("lost", w.why_json()["end"] == {"how": "lost", "code": None})
        check("lost, in words", w.why(run).stdout.startswith(f"run {run}: the guard was killed"), w.why(run).stdout)
        folder = w.at("state/antifreeze/runs", run)
        check("and recorded", json.load(open(os.path.join(folder, "verdict.json")))["end"]["how"] == "lost")
        check("its page is there for the collector", f"{run}.run" in os.listdir(w.at("run/antifreeze")))
        with w.live() as (process, _):
            process.send_signal(signal.SIGKILL)
        check("killed at any point", w.why_json()["end"] == {"how": "lost", "code": None})


def test_killed_anywhere():
    """SIGKILL at every moment of a short run: why answers, and the next run leaves nothing behind."""
    with Runs() as w:
        w.fake("end", 0)
        ends = set()
        for i in range(150):
            p = subprocess.Popen([FAKE_RUN, "end", "7"], env=w.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                p.wait(i * .0002)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
            doc = w.why_json()
            ends.add((doc["end"] or {}).get("how"))
            text = w.why(doc["run"]).stdout
            check("text and JSON agree", text.startswith(f"run {doc['run']}: ") and
                  (doc["end"]["how"] == "lost") == ("the guard was killed" in text), f"{doc} {text}")
        check("every run has an end", None not in ends and "exit" in ends, ends)
        w.fake("end", 0)
        check("the runtime folder is clean", os.listdir(w.at("run/antifreeze")) == ["ledger.lock"],
              os.listdir(w.at("run/antifreeze")))
        runs = w.at("state/antifreeze/runs")
        left = {name for run in os.listdir(runs) for name in os.listdir(os.path.join(runs, run))}
        check("no half-written file is taken for a verdict", {"verdict.json", "verdict.txt"} <= left, left)


def test_a_folder_of_somebody():
    """What --json prints is one line of JSON and harmless at a terminal, whoever wrote it."""
    with Runs() as w:
        w.call(ANTIFREEZE, "run", "--run-dir", "mine", "--", "true")
        own = open(w.at("mine/verdict.json")).read()
        check("our own is told as it is", w.why("--json", "mine").stdout == own, w.why("--json", "mine"))

        def told(what, text, status=0):
            with open(w.at("mine/verdict.json"), "w", encoding="utf-8") as file:
                file.write(text)
            r = w.why("--json", "mine")
            controls = [c for c in r.stdout.removesuffix("\n") if ord(c) < 32 or 127 <= ord(c) < 160]
            check(f"{what}: no control characters", not controls and r.returncode == status, r)
            check(f"{what}: all of it or nothing", json.loads(r.stdout) == json.loads(text) if status == 0 else r.stdout == "", r)

        for name, schema in ("another version", 2), ("this version", 1):
            told(f"{name}, indented", json.dumps({**json.loads(own), "schema": schema}, indent="\t"))
            more = {**json.loads(own), "schema": schema, "cmd": "a\x1b[31m\x7f\x9b31m\u00e9\u20ac\U0001f600"}
            told(f"{name}, with controls", json.dumps(more, ensure_ascii=False))
            told(f"{name}, raw ones", own.replace('"schema":1', f'"schema":{schema},"x":"\x1b[31m"'), 2)
            told(f"{name}, more after it", own.replace('"schema":1', f'"schema":{schema}') + "\x1b[31m", 2)


def test_run_dir():
    with Runs() as w:
        mine = w.at("mine")
        run = w.fake("end", 4, mine)
        check("--run-dir is the folder", sorted(os.listdir(mine)) == ["verdict.json", "verdict.txt"], os.listdir(mine))
        check("found as the newest", w.why_json()["run"] == run)
        check("found by its ID", w.why_json(run)["end"]["code"] == 4)
        check("found by a path", w.why_json("./mine")["run"] == run)
        check("found by a folder's name", w.why_json("mine")["run"] == run)
        r = w.call(ANTIFREEZE, "run", "--run-dir", "mine", "--", "true")
        check("the record that it replaces is named", r.returncode == 0 and f"the record of run {run} in {mine} is replaced" in r.stderr, r)
        second = w.why_json("mine")["run"]
        check("and replaced", second != run and w.why(run).returncode == 2, second)
        r = w.call(ANTIFREEZE, "run", "--run-dir", "mine", "--", "/nonexistent/x")
        check("not by what does not start", r.returncode == 127 and "is replaced" not in r.stderr and w.why_json("mine")["run"] == second, r)
        shutil.rmtree(mine)  # at once: nobody may put anything new there
        one_line("a folder that was removed", w.why(second), "no run")
        older = w.fake("end", 0)
        w.fake("end", 0, mine)
        shutil.rmtree(mine)
        check("a run that was removed does not hide the one before", w.why_json()["run"] == older)


def test_no_state_folder():
    with Runs() as w:
        with open(w.at("state"), "w"):
            pass
        with w.live() as (_, run):
            check("a run without a folder is told while it lives", w.why_json(run)["end"] is None)
        one_line("and is gone then", w.why(run), "no run")
        one_line("the last was not recorded, and there is no other", w.why(), f"({run}) was not recorded")
        state, w.env["XDG_STATE_HOME"] = w.env["XDG_STATE_HOME"], w.at("elsewhere")
        older = w.fake("end", 0)
        check("one that is recorded says nothing of it", w.why().stderr == "", w.why())
        w.env["XDG_STATE_HOME"] = state
        r = w.call(ANTIFREEZE, "run", "--", "true")
        check("not recorded, and said", r.returncode == 0 and "this run is not recorded" in r.stderr, r)
        w.env["XDG_STATE_HOME"] = w.at("elsewhere")
        r = w.why()
        check("an older run is not taken for the last", r.returncode == 0 and older in r.stdout and
              "was not recorded: this is an older one, of " in r.stderr and r.stderr.count("\n") == 1, r)
        check("who asks for it knows", w.why(older).stderr == "", w.why(older))
        w.call(ANTIFREEZE, "run", "--", "true")
        check("the next one that is recorded is the last", w.why().stderr == "", w.why())
        check("and nothing is left of the other", os.listdir(w.at("run/antifreeze")) == ["ledger.lock"], os.listdir(w.at("run/antifreeze")))


def test_only_recording():
    """A folder in which nothing but flight.afz is left."""
    with Runs() as w:
        w.call(ANTIFREEZE, "run", "--run-dir", "mine", "--", "sh", "-c", "exit 3")
        run = w.why_json("mine")["run"]
        os.remove(w.at("mine/verdict.txt"))
        check("without verdict.txt alone, it is told anew", w.why("mine").stdout.startswith(f"run {run}: it ended by itself with exit status 3\n"), w.why("mine"))
        os.mkdir(w.at("only"))
        shutil.copy(w.at("mine/flight.afz"), w.at("only"))
        for name in ("only", "./only", "only/flight.afz", w.at("only")):
            r = w.why(name)
            check(f"why {name}", r.returncode == 0 and not r.stderr and
                  r.stdout.startswith(f"run {run}: only its recording is left: how it ended is not known\n"), r)
        doc = w.why_json("only")
        check("in JSON", doc["end"] == {"how": "unknown", "code": None} and doc["verdicts"][0]["id"] == "not-known" and
              doc["cmd"] == "sh -c exit 3", doc)
        check("--verbose", "recording " in w.why("--verbose", "only").stdout, w.why("--verbose", "only"))
        check("nothing is written", os.listdir(w.at("only")) == ["flight.afz"], os.listdir(w.at("only")))
        r = w.call(ANTIFREEZE, "report", "only", "-o", w.at("only.html"))
        check("its report", r.returncode == 0 and os.path.getsize(w.at("only.html")) > 1000, r)
        with open(w.at("only/flight.afz"), "r+b") as f:
            f.truncate(os.path.getsize(w.at("only/flight.afz")) - 8)
        check("cut off", "that is cut off" in w.why("only").stdout, w.why("only"))
        with open(w.at("only/flight.afz"), "wb") as f:
            f.write(b"hello")
        one_line("no recording at all", w.why("only"), "only is neither a run's folder nor a recording")


for test in (test_no_runs, test_ended, test_paste, test_paste_of_an_error, test_explain, test_end_of_run, test_demo_time, test_watch_run, test_live, test_lost, test_killed_anywhere, test_a_folder_of_somebody, test_run_dir, test_no_state_folder,
             test_only_recording):
    test()
ALL.finish()
