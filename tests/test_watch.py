#!/usr/bin/python3
"""watch and demo, end to end: plain lines, JSON, and the live view in a real terminal (tmux).

    test_watch.py ANTIFREEZE TRAINER
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from scenario import PYTHON, Checks, World, guard_of

ANTIFREEZE, TRAINER = map(os.path.abspath, sys.argv[1:3])
ALL = Checks(deadline=60)
check, wait_for, DEADLINE = ALL.check, ALL.wait_for, ALL.deadline


def run(*args, **kw):
    return subprocess.run([ANTIFREEZE, *map(str, args)], capture_output=True, text=True, timeout=DEADLINE,
                          stdin=subprocess.DEVNULL, **kw)


class Job:
    """A parent with two forked children that share its memory, idle."""
    CODE = ("import os, signal\nkeep = bytearray(48 << 20)\nkids = [os.fork()]\n"
            "if kids[0]:\n    kids.append(os.fork())\nif all(kids):\n    print('ready', flush=True)\nsignal.pause()\n")

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", self.CODE], stdout=subprocess.PIPE, text=True,
                                        start_new_session=True)
        self.process.stdout.readline()
        self.pid = self.process.pid
        return self

    def end(self):
        os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()


def test_lines():
    with Job() as job:
        r = run("watch", "--interval", "50ms", "--count", 3, job.pid)
        lines = r.stdout.splitlines()
        check("without a terminal: a plain line a tick", r.returncode == 0 and len(lines) == 3, r)
        check("a plain line has its fields", all(f" {w} " in lines[-1] for w in ("ram", "job", "swap", "psi", "cpu")), lines)
        check("a plain line fits", all(len(line) <= 120 for line in lines), lines)


def test_json():
    with Job() as job:
        r = run("watch", "--json", "-i", "50ms", "-n", 2, job.pid)
        ticks = [json.loads(line) for line in r.stdout.splitlines()]
        check("--json: an object a tick", r.returncode == 0 and len(ticks) == 2, r.stderr)
        tick = ticks[-1]
        check("the whole tree is there", tick["job"]["processes_count"] == 3 and len(tick["processes"]) == 3, tick["job"])
        roles = sorted(p["role"] for p in tick["processes"])
        check("roles are guessed", roles == ["loader worker", "loader worker", "main"], roles)
        need, rss = tick["job"]["need_bytes"], tick["job"]["rss_sum_bytes"]
        check("shared pages count once", 48 << 20 <= need < 100 << 20 < rss, f"need {need}, sum of RSS {rss}")
        check("rates are there", tick["job"]["rates"]["cpu_ns_per_s"] is not None, tick["job"]["rates"])
        listed = {(m["key"], m["name"]) for m in json.loads(run("watch", "--metrics", "--json").stdout)}
        shown = {("host", name) for name in tick["host"] if name != "rates"}
        check("every metric shown is listed", shown <= listed | {("host", "name")}, shown - listed)


def test_end_of_job():
    with Job() as job:
        watch = subprocess.Popen([ANTIFREEZE, "watch", "-i", "50ms", str(job.pid)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        watch.stdout.readline()
        job.end()
        _, err = watch.communicate(timeout=DEADLINE)
        check("ends when the job does", watch.returncode == 0 and "has ended" in err, err)


def test_bad_input():
    for args, word in ((["watch", "999999999"], "no process"), (["watch", "abc"], "no run 'abc'"),
                       (["watch", "0"], "no process number"), (["watch", "-i", "1x"], "--interval"),
                       (["watch", "--count", "0"], "--count"), (["watch", "--jsno"], "did you mean"),
                       (["wathc"], "did you mean"), (["watch", "1", "2"], ""), (["demo", "nonsense"], "--list"),
                       (["watch", "--root", "/nonexistent"], "/nonexistent")):
        r = run(*args)
        check(f"{' '.join(args)}: one clear line and exit 2",
              r.returncode == 2 and r.stderr.count("\n") == 1 and word in r.stderr, f"{r.returncode} {r.stderr!r}")
    check("no arguments: help and exit 2", run().returncode == 2 and "watch" in run().stderr)


def test_closed_pipe():
    p = subprocess.Popen([ANTIFREEZE, "watch", "-i", "20ms"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         stdin=subprocess.DEVNULL)
    p.stdout.readline()
    p.stdout.close()
    err = p.stderr.read()
    check("a reader that goes is a quiet end", p.wait(timeout=DEADLINE) == 0 and not err, f"{p.returncode} {err}")


class Terminal:
    """A tmux server of our own."""

    count = 0

    def __init__(self, command, width, height, env=()):
        Terminal.count += 1  # a name is not used again: the server before may not be quite gone
        self.name = f"afz-test-{os.getpid()}-{Terminal.count}"
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), *(f"-e{e}" for e in env), "sh", "-c",
                  f"{command}; echo left with $?; stty -a | grep -o -- '[-]*echo ' ; read x")

    def tmux(self, *args):
        return subprocess.run(["tmux", "-L", self.name, "-f", "/dev/null", *args], capture_output=True, text=True,
                              timeout=DEADLINE).stdout

    def screen(self, *args):
        return self.tmux("capture-pane", "-p", *args)

    def close(self):
        self.tmux("kill-server")


def test_live(width, height, env=()):
    with Job() as job:
        t = Terminal(f"{ANTIFREEZE} watch -i 100ms {job.pid}", width, height, env)
        name = f"live {width}x{height} {' '.join(env)}"
        try:
            wait_for(f"{name}: the tree is shown", lambda: "main" in t.screen() and t.screen().count("loader") >= 2)
            lines = t.screen().splitlines()
            check(f"{name}: as high as the terminal", len(lines) <= height)
            for word in ("RAM", "swap", "pressure", str(job.pid), "q quit"):
                check(f"{name}: shows {word}", word in "\n".join(lines), "\n".join(lines))
            if "NO_COLOR=1" in env:
                check(f"{name}: no colours", not re.search(r"\x1b\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])[;m]", t.screen("-e")),
                      repr(t.screen("-e")[:200]))
            t.tmux("send-keys", "h")
            wait_for(f"{name}: help opens", lambda: "sort" in t.screen() and "pause" in t.screen())
            t.tmux("send-keys", "h")
            t.tmux("resize-window", "-x", "60", "-y", "20")
            wait_for(f"{name}: follows a resize",
                     lambda: "RAM" in t.screen() and max(map(len, t.screen().splitlines())) <= 60)
            t.tmux("send-keys", "q")
            wait_for(f"{name}: q leaves", lambda: "left with 0" in t.screen())
            wait_for(f"{name}: the terminal is as it was", lambda: "\necho" in t.screen())
        finally:
            t.close()


class Run(World):
    """A run with a line that holds 64 MB and one that grows, until it is told to end."""
    CODE = """
import sys, time
def load():
    return bytearray(64 << 20)
def keep(kept):
    kept.append(bytes([1]) * 300_000)
data, kept = load(), []
while True:
    keep(kept)
    time.sleep(.05)
"""

    def __enter__(self):
        with open(self.at("job.py"), "w", encoding="utf-8") as file:
            file.write(self.CODE)
        self.front = subprocess.Popen([ANTIFREEZE, "run", "--run-dir", self.at("mine"), "--", PYTHON, "job.py"], env=self.env,
                                      cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return self

    def __exit__(self, *args):
        if self.front.poll() is None:
            self.front.send_signal(signal.SIGINT)
        self.front.communicate(timeout=DEADLINE)
        super().__exit__(*args)

    def watch(self, *args):
        return self.call(ANTIFREEZE, "watch", *args, self.at("mine"))

    def lines(self):
        """What --json tells of the program's lines; None: nothing yet."""
        r = self.watch("--json", "-i", "50ms", "-n", 1)
        return json.loads(r.stdout)["lines"] if r.returncode == 0 and r.stdout else None

    def keeper(self):
        guard = guard_of(self.front.pid)
        found = subprocess.run(["pgrep", "-P", str(guard), "-x", "afz-keeper"], capture_output=True, text=True, check=False)
        return int(found.stdout.split()[0])


def test_lines_of_the_program():
    with Run() as run_:
        def named():
            lines = run_.lines() or {}
            return lines if any("job.py:4 in load()" == row["name"] and row["live_bytes"] > 60 << 20  # it is all there
                                for row in lines.get("top", ())) else None

        lines = wait_for("a run: --json names the line", named) or {"top": [{}], "live_bytes": 0}
        top = next((row for row in lines["top"] if row.get("name") == "job.py:4 in load()"), {})
        check("with its bytes", abs(top.get("live_bytes", 0) - (64 << 20)) < 4 << 20 and top.get("processes_count") == 1, top)
        check("and what all of them hold", lines["live_bytes"] >= top.get("live_bytes", 0) > 0 and "probe" in lines, lines)
        r = run_.watch("-i", "50ms", "-n", 3)
        plain = [line for line in r.stdout.splitlines() if " lines " in line]
        check("plain lines tell them, too, and fit", len(plain) == 1 and "job.py:4 in load() 64" in plain[0] and
              len(plain[0]) <= 120 and len(r.stdout.splitlines()) == 4, r)
        root = json.loads(run_.watch("--json", "-n", 1, "-i", "50ms").stdout)["job_pid"]
        by_pid = run_.call(ANTIFREEZE, "watch", "--json", "-n", 1, "-i", "50ms", root)
        check("the run's process, by its number, has them", json.loads(by_pid.stdout)["lines"], by_pid.stderr)
        if shutil.which("tmux"):
            check_lines_live(run_)
        check_silent_keeper(run_)
    with Job() as job:
        tick = json.loads(run("watch", "--json", "-n", 1, "-i", "50ms", job.pid).stdout)
        check("another process has none", tick["lines"] is None, tick["lines"])


def check_lines_live(run_):
    env = [f"{name}={run_.env[name]}" for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME")]
    t = Terminal(f"{ANTIFREEZE} watch -i 100ms {run_.at('mine')}", 100, 30, env)
    try:
        wait_for("live: a panel of lines", lambda: "lines that hold the memory" in t.screen() and "job.py:4 in load()" in t.screen())
        t.tmux("send-keys", "l")
        wait_for("live: a page of them", lambda: "the probe is in 1 process" in t.screen(), t.screen)
        t.tmux("send-keys", "l")
        wait_for("live: and back", lambda: "pressure" in t.screen())
        t.tmux("send-keys", "q")
        wait_for("live: q leaves the lines", lambda: "left with 0" in t.screen())
    finally:
        t.close()


def check_silent_keeper(run_):
    """One that does not answer holds nobody up."""
    keeper = run_.keeper()
    os.kill(keeper, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        r = run_.watch("--json", "-i", "20ms", "-n", 100)
        took = time.monotonic() - begin
        ticks = [json.loads(line) for line in r.stdout.splitlines()]
        check("a keeper that stands still: every tick comes", len(ticks) == 100 and all(t["lines"] is None for t in ticks), len(ticks))
        check("and in time", took < 20, took)
    finally:
        os.kill(keeper, signal.SIGCONT)


def test_killed_in_terminal():
    t = Terminal(f"sh -c 'echo $$ > /dev/null; exec {ANTIFREEZE} watch -i 100ms'", 80, 24)
    try:
        wait_for("live without a job: the machine's processes", lambda: "the whole machine" in t.screen())
        pid = t.tmux("list-panes", "-F", "#{pane_pid}").strip()
        watch = subprocess.run(["pgrep", "-P", pid, "-f", "watch"], capture_output=True, text=True).stdout.split()
        os.kill(int(watch[0]), signal.SIGTERM)
        wait_for("SIGTERM: the terminal is given back", lambda: "left with 143" in t.screen() and "\necho" in t.screen())
    finally:
        t.close()


def test_demo():
    listed = [line.split("\t")[0] for line in subprocess.run([TRAINER, "--list-pitfalls"], capture_output=True,
                                                             text=True).stdout.splitlines()]
    ours = [line.split("\t")[0] for line in run("demo", "--list").stdout.splitlines()]
    check("demo lists what the trainer knows", listed == ours and len(listed) >= 9, f"{listed} {ours}")
    for pitfall in listed:
        r = run("demo", "--time", "1s", "--every", "500ms", pitfall)
        verdict = re.search(r"^antifreeze: [a-z]+(-[a-z]+)*(:[a-z-]+)?: ", r.stderr, re.M)
        check(f"demo {pitfall} runs to a verdict", verdict and "may use" in r.stderr, r.stderr)
    r = run("demo", "--budget", "64M", "--time", "60s", "retain-history")
    check("demo is guarded: a leak is stopped at its budget", r.returncode == 75 and re.search("^antifreeze: (leak(:[a-z-]+)?|host-exhaustion|oom-killed): ", r.stderr, re.M), r)


def main():
    test_lines()
    test_json()
    test_end_of_job()
    test_bad_input()
    test_closed_pipe()
    test_lines_of_the_program()
    test_demo()
    if shutil.which("tmux"):
        test_live(80, 24)
        test_live(200, 50)
        test_live(80, 24, ["NO_COLOR=1"])
        test_killed_in_terminal()
    else:
        print("tmux is not installed: the live view was not looked at")
    ALL.finish()


main()
