#!/usr/bin/python3
"""why and set, as a person and a script meet them: runs that ended, go on, were lost; no run at all.

    test_why.py ANTIFREEZE FAKE_RUN
"""
import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

ANTIFREEZE, FAKE_RUN = map(os.path.abspath, sys.argv[1:3])
DEADLINE = 60  # seconds; a sanitizer build on a busy machine is slow
KEYS = ["schema", "run", "end", "peak", "tier", "cost", "verdicts"]
problems = []
checks = 0


def check(what, ok, detail=""):
    global checks
    checks += 1
    if not ok:
        problems.append(what)
        print(f"NOT OK  {what}: {detail}")


class World:
    """Runtime and state folders of its own."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="afz-")
        os.mkdir(self.at("run"), 0o700)
        self.env = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": self.at("run"), "XDG_STATE_HOME": self.at("state"),
                    "HOME": self.dir, "TZ": "UTC"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)

    def at(self, *path):
        return os.path.join(self.dir, *path)

    def call(self, *args, **kw):
        return subprocess.run(list(map(str, args)), capture_output=True, text=True, timeout=DEADLINE, env=self.env,
                              stdin=subprocess.DEVNULL, cwd=self.dir, check=False, **kw)

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
    with World() as w:
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
    with World() as w:
        run = w.fake("end", 3)
        text = w.why()
        check("text", text.returncode == 0 and text.stdout.startswith(f"run {run}: it ended by itself\n"), text)
        for word in ("exception (warn, confidence 60 %)", "because    as it said", "fix        look", "exit status 3",
                     "cgroup2", "peak 3.0G of a budget of 4.0G", "nothing: it was not needed", "hunter2"):
            check(f"text has {word!r}", word in text.stdout, text.stdout)
        doc = w.why_json(run)
        check("the keys and their order", list(doc)[:len(KEYS)] == KEYS, list(doc))
        check("the end", doc["end"] == {"how": "exit", "code": 3}, doc["end"])
        check("the peak", doc["peak"] == {"ram_bytes": 3 << 30, "gpu_bytes": None}, doc["peak"])
        verdict = doc["verdicts"][0]
        check("a verdict's keys", list(verdict) == ["id", "level", "confidence", "summary", "evidence", "where", "fix"],
              list(verdict))
        folder = w.at("state/antifreeze/runs", run)
        check("verdict.json is why --json", open(os.path.join(folder, "verdict.json")).read() == w.why("--json").stdout)
        check("what stays", sorted(os.listdir(folder)) == ["verdict.json", "verdict.txt"], os.listdir(folder))
        modes = {name: stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) for name in os.listdir(folder)}
        check("0600", set(modes.values()) == {0o600}, modes)
        check("0700", stat.S_IMODE(os.stat(folder).st_mode) == 0o700)
        check("nothing stays in the runtime folder", os.listdir(w.at("run/antifreeze")) == ["ledger.lock"])
        one_line("set of a run that is over", w.call(ANTIFREEZE, "set", run, "--budget", "1G"), "is over")
        check("by a prefix", w.why_json(run[:12])["run"] == run)
        check("by its folder", w.why_json(folder)["run"] == run)
        second = w.fake("end", 0)
        check("the newest", w.why_json()["run"] == second)
        one_line("a prefix of several", w.why(run[:9]), "several runs begin")
        with open("/dev/full", "w") as full:
            r = subprocess.run([ANTIFREEZE, "why"], stdout=full, stderr=subprocess.PIPE, env=w.env, check=False)
            check("a full disk behind stdout is told", r.returncode == 2 and b"writing" in r.stderr, r)


def test_paste():
    with World() as w:
        run = w.fake("end", 1)
        lines = w.why("--paste").stdout.splitlines()
        check("a fenced block", lines[0] == "```text" and lines[-1] == "```", lines)
        check("the machine", lines[1].startswith("antifreeze ") and "Linux" in lines[1] and "RAM" in lines[1], lines[1])
        check("the verdict", lines[2] == f"run {run}: it ended by itself", lines[2])
        check("the tier", any("cgroup2" in line for line in lines))
        check("the command's name only", lines[-2].split() == ["command", "python"], lines[-2])
        check("no secrets", not any(word in line for line in lines for word in ("hunter2", "/home/me", "train.py")), lines)
        one_line("--paste and --json", w.why("--paste", "--json"), "exclude")


def test_explain():
    with World() as w:
        for verdict in ("clean", "host-exhaustion", "oom-killed", "killed-externally", "crash", "exception", "lost",
                        "machine-lost", "disk-full", "shm-full"):
            r = w.why("--explain", verdict)
            check(f"--explain {verdict}", r.returncode == 0 and r.stdout.startswith(f"{verdict}: "), r)
        one_line("--explain of nothing", w.why("--explain", "gremlins"), "host-exhaustion")


def test_live():
    with World() as w:
        with w.live() as (process, run):
            doc = w.why_json()
            check("a run that goes on has no end", doc["run"] == run and doc["end"] is None, doc)
            check("told as it stands", "still running" in w.why(run).stdout)
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
    with World() as w:
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
    with World() as w:
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


def test_run_dir():
    with World() as w:
        mine = w.at("mine")
        run = w.fake("end", 4, mine)
        check("--run-dir is the folder", sorted(os.listdir(mine)) == ["verdict.json", "verdict.txt"], os.listdir(mine))
        check("found as the newest", w.why_json()["run"] == run)
        check("found by its ID", w.why_json(run)["end"]["code"] == 4)
        check("found by a path", w.why_json("./mine")["run"] == run)
        check("found by a folder's name", w.why_json("mine")["run"] == run)
        shutil.rmtree(mine)
        one_line("a folder that was removed", w.why(run), "no run")
        older = w.fake("end", 0)
        w.fake("end", 0, mine)
        shutil.rmtree(mine)
        check("a run that was removed does not hide the one before", w.why_json()["run"] == older)


def test_no_state_folder():
    with World() as w:
        with open(w.at("state"), "w"):
            pass
        with w.live() as (_, run):
            check("a run without a folder is told while it lives", w.why_json(run)["end"] is None)
        one_line("and is gone then", w.why(run), "no run")


for test in (test_no_runs, test_ended, test_paste, test_explain, test_live, test_lost, test_killed_anywhere, test_run_dir, test_no_state_folder):
    test()
print(f"{checks} checks, {len(problems)} problems")
sys.exit(1 if problems else 0)
