#!/usr/bin/python3
"""`antifreeze run` is as good as not there: input, output, terminal, signals, job control, exit status.

    test_run.py ANTIFREEZE [TIER...]

Each scenario is run in every tier that is to be had here (or those named).
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from scenario import PYTHON, Scenario, python

world = Scenario(deadline=60)
check, wait_for, run, start, command = world.check, world.wait_for, world.run, world.start, world.command
environment, DEADLINE = world.environment, world.deadline


class Terminal:
    """A shell on a terminal of its own, as a person has it."""

    def __init__(self, *argv):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, environment(PS1="ready> ", TERM="xterm", HISTFILE="/dev/null"))

    def more(self, seconds=.05):
        while select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return False
            if not data:
                return False
            self.seen += data.decode(errors="replace")
        return True

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, what, pattern):
        """Waits for the pattern behind what was expected before."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            alive = self.more()
            m = re.search(pattern, self.seen)
            if m:
                check(what, True)
                self.seen = self.seen[m.end():]
                return m
            if not alive:
                break
        check(what, False, repr(self.seen[-400:]))
        return None

    def close(self):
        os.close(self.fd)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


def test_status():
    for code in (0, 1, 2, 75, 124, 255):
        r = run("sh", "-c", f"exit {code}")
        check(f"exit status {code} is CMD's own", r.returncode == code, r)
    for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP):
        r = run("sh", "-c", f"kill -{int(sig)} $$")
        check(f"{sig.name} of CMD ends us too", r.returncode == -sig, r)
    r = run("/no/such/program")
    check("not found is 127", r.returncode == 127 and r.stderr.count("\n") == 1, r)
    r = run("/etc/passwd")
    check("not runnable is 126", r.returncode == 126 and r.stderr.count("\n") == 1, r)
    r = subprocess.run([world.antifreeze, "run"], capture_output=True, text=True)
    check("no command is a usage error", r.returncode == 125 and r.stderr.count("\n") == 1, r)
    for bad in (["--budget", "12X"], ["--budget", "1K"], ["--policy", "maybe"], ["--grace", "-1"], ["--restarts", "2"],
                ["--batch", "4"], ["--checkpoint-signal", "KILL"], ["--nonsense"]):
        r = run("true", options=bad)
        check(f"{' '.join(bad)}: one line and 125", r.returncode == 125 and r.stderr.count("\n") == 1, r)


def test_streams():
    data = "".join(f"{i}\n" for i in range(100000))
    r = run("cat", input=data, stdin=None)
    check("stdin and stdout pass untouched", r.stdout == data and r.returncode == 0, r.stdout[:80])
    r = run("sh", "-c", "printf a; printf b >&2; printf '\\rc' >&2", options=["--quiet"], text=False)
    check("stderr passes untouched under --quiet", r.stderr == b"b\rc" and r.stdout == b"a", r)
    r = run("true")
    check("a short start line", r.stderr.splitlines()[0].startswith("antifreeze: ") and "may use" in r.stderr, r)
    check("few words", len(r.stderr.splitlines()) <= 2, r)
    r = run("true", options=["--json"])
    lines = [json.loads(line) for line in r.stderr.splitlines()]
    check("--json: objects only", [l["antifreeze"] for l in lines][:1] == ["start"] and lines[-1]["exit"] == 0, r)
    check("--json names the tier", lines[0]["tier"] == world.tier, lines)
    r = subprocess.run(["bash", "-c", f"{world.antifreeze} run -q -- seq 100000 | head -1"], capture_output=True, text=True,
                       env=environment(), timeout=DEADLINE)
    check("a pipe that closes early ends it", r.stdout == "1\n" and r.returncode == 0, r)
    r = run("sh", "-c", "seq 3 | sort -r | head -1")
    check("CMD may be a pipeline", r.stdout == "3\n", r)
    r = run(*python("import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1])"), close_fds=True)
    check("no descriptor of ours is inherited", r.stdout.strip() == "[0, 1, 2]", r)


def test_inherited():
    code = ("import signal, os, resource;"
            "print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, sorted(signal.pthread_sigmask(0, [])),"
            "signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL, resource.getrlimit(resource.RLIMIT_NOFILE), os.getpgrp())")
    plain = subprocess.run(python(code), capture_output=True, text=True).stdout
    check("mask, dispositions, limits and group are the caller's", run(*python(code)).stdout == plain, (plain, run(*python(code))))
    r = subprocess.run(["nohup", *command(*python(code))], capture_output=True, text=True, env=environment(),
                       stdin=subprocess.DEVNULL)
    check("nohup reaches CMD", r.stdout.startswith("True"), r)


def test_signals():
    code = ("import os, signal, time\n"
            "got = []\n"
            "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):\n"  # print() is not to be called in itself
            "    signal.signal(s, lambda n, f: (got.append(n), os.write(1, b'got %d\\n' % n)))\n"
            "print('ready', flush=True)\n"
            "end = time.monotonic() + 30\n"
            "while signal.SIGUSR1 not in got and time.monotonic() < end: time.sleep(.01)\n"
            "time.sleep(.3)\n"
            "print(got, flush=True)\n")
    for send, name in ((lambda p, s: p.send_signal(s), "to us alone"), (lambda p, s: os.killpg(p.pid, s), "to the group")):
        p = start(*python(code), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        p.stdout.readline()
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            send(p, s)
            p.stdout.readline()  # else Python may run their handlers in another order
        send(p, signal.SIGUSR1)
        got = p.stdout.read().strip().splitlines()[-1]
        want = str([int(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)])
        check(f"signals sent {name} arrive once each", got == want and p.wait() == 0, got)
    p = start("sleep", "60", stderr=subprocess.DEVNULL)
    time.sleep(.3)
    p.terminate()
    check("SIGTERM ends CMD and us", p.wait(DEADLINE) == -signal.SIGTERM)
    p = start("sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep .05; done", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdout.readline()
    p.terminate()
    check("CMD's own answer to SIGTERM counts", p.wait(DEADLINE) == 7)
    for _ in range(24):  # the front's word of the signal meets the guard's last ones
        p = start("sh", "-c", "echo ready; exec sleep 60", stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        p.stdout.readline()
        os.killpg(p.pid, signal.SIGTERM)
        said = p.communicate(timeout=DEADLINE)[1]
        check("a signal to the group at the very start", p.returncode == -signal.SIGTERM and "guard was killed" not in said, said)


def test_terminal():
    t = Terminal("/bin/bash", "--norc", "--noprofile", "-i")
    try:
        t.expect("a prompt", "ready> ")
        af = " ".join([world.antifreeze, "run", "-q", "--"])
        t.type(f"{af} sh -c 'echo he''re; exec cat'\n")
        t.expect("started", "here\r\n")  # what is typed while the shell still has the terminal is not for CMD
        t.type("hello\n")
        t.expect("reads the terminal", "hello\r\nhello\r\n")
        t.type("\x1a")
        t.expect("Ctrl-Z stops it", "Stopped")
        t.expect("the shell has the terminal", "ready> ")
        t.type("echo still $((6*7))\n")
        t.expect("the shell works meanwhile", "still 42\r\n")
        t.type("fg\n")
        t.expect("fg", "exec cat'\r\n")
        t.type("again\n")
        t.expect("fg goes on", "again\r\nagain\r\n")
        t.type("\x04")
        t.expect("Ctrl-D ends it", "ready> ")
        t.type("echo status=$?\n")
        t.expect("with 0", "status=0\r\n")
        t.type(f"{af} {PYTHON} -c 'import time\n")
        t.type("try: print(\"sle\" + \"eps\", flush=True); time.sleep(60)\n"
               "except KeyboardInterrupt: print(\"int\" + \"errupted once\")'\n")
        t.expect("it sleeps", "sleeps\r\n")
        t.type("\x03")
        t.expect("Ctrl-C is one KeyboardInterrupt", "interrupted once")
        t.expect("and the prompt is back", "ready> ")
        t.type(f"{af} {PYTHON} -c $'breakpoint()\\nprint(\"past\" + \" it\")'\n")
        t.expect("pdb stands at its prompt", r"\(Pdb\) ")
        t.type("p 6*7\n")
        t.expect("pdb answers", r"42\r\n\(Pdb\) ")
        t.type("c\n")
        t.expect("pdb goes on", "past it")
        t.type(f"{af} bash --norc --noprofile -i\n")
        t.expect("an inner interactive shell", "ready> ")
        t.type("bash -c 'echo sle\"\"eps; sleep 60; true'\n")
        t.expect("its job", "sleeps\r\n")
        t.type("\x1a")
        t.expect("job control in the inner shell", "Stopped")
        t.type("kill -9 %1; disown -a; exit 3\n")
        t.type("echo inner=$?\n")
        t.expect("inner shell's status", "inner=3\r\n")
        t.type(f"{af} {PYTHON} -c 'import shutil; print(\"size\", *shutil.get_terminal_size())'\n")
        t.expect("the window's size", r"size \d+ \d+")
        t.type(f"{af} {PYTHON} -c 'import signal, shutil, time\n")
        t.type("signal.signal(signal.SIGWINCH, lambda *a: print(\"resi\" + \"zed\", *shutil.get_terminal_size(), flush=True))\n")
        t.type("print(\"wa\" + \"iting\", flush=True); signal.pause()'\n")
        t.expect("waits", "waiting")
        fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
        t.expect("a change of the window reaches CMD", "resized 101 33")
        t.expect("prompt", "ready> ")
        t.type(f"{af} sleep 60 &\n")
        t.expect("in the background", "ready> ")
        t.type("kill %1; wait %1; echo bg=$?\n")
        t.expect("kill %1 ends a background job", "bg=143\r\n")
    finally:
        t.close()


def test_hangup():
    """The terminal goes away: CMD gets its SIGHUP, and nothing of ours stays."""
    mark = os.path.join(world.state, "hup")
    code = (f"import signal, sys\nsignal.signal(signal.SIGHUP, lambda *a: (open({mark!r}, 'w').write('hup'), sys.exit(0)))\n"
            "print('ready', flush=True)\nwhile True: signal.pause()\n")
    t = Terminal(*command(*python(code)))
    t.expect("started", "ready")
    os.close(t.fd)
    wait_for("a hang-up reaches CMD", lambda: os.path.exists(mark))
    os.waitpid(t.pid, 0)
    os.unlink(mark)


def test_record():
    d = os.path.join(world.state, "rundir")
    r = run("sh", "-c", "exit 3", options=["--run-dir", d])
    why = json.load(open(os.path.join(d, "verdict.json")))
    check("verdict.json says how it ended", why["schema"] == 1 and why["end"] == {"how": "exit", "code": 3}, why)
    check("and what held it", why["tier"] == world.tier and why["peak"]["ram_bytes"] >= 0, why)
    check("modes", os.stat(os.path.join(d, "verdict.json")).st_mode & 0o777 == 0o600)
    w = subprocess.run([world.antifreeze, "why", "--json", d], capture_output=True, text=True, env=environment())
    check("why --json is verdict.json", w.returncode == 0 and json.loads(w.stdout) == why, w)
    check("the status is CMD's", r.returncode == 3, r)
    listing = subprocess.run([world.antifreeze, "why"], capture_output=True, text=True, env=environment())
    check("why tells the last run", listing.returncode == 0 and "exit" in listing.stdout, listing)


def test_dry_run():
    mark = os.path.join(world.state, "mark")
    r = run("touch", mark, options=["--dry-run"])
    check("--dry-run starts nothing", r.returncode == 0 and not os.path.exists(mark), r)
    check("--dry-run tells tier, budget and limits", "may use" in r.stderr and "swap" in r.stderr, r)


def test_batch_systems():
    """What was granted is the budget, unless another is given; who only hands work on is told so, however soon it ends."""
    granted = environment(SLURM_MEM_PER_NODE="256", SLURMD_NODENAME="node1")
    r = run("true", env=granted)
    check("what Slurm granted is kept to", "Slurm has granted 256M: the job gets" in r.stderr and "--budget changes" not in r.stderr, r)
    r = run("true", options=["--budget", "300M"], env=granted)
    check("--budget goes before it", "Slurm" not in r.stderr and "may use 0.29 of" in r.stderr, r)
    submit = os.path.join(world.state, "sbatch")
    with open(submit, "w", encoding="ascii") as file:
        os.chmod(submit, 0o700)
        file.write("#!/bin/sh\n")
    r = run(submit, "job.sh")
    check("what is started elsewhere is not held", r.stderr.count("what `sbatch` starts is not in our tree") == 1, r)


def test_survivors():
    r = run("sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!", options=["--grace", "1s"])
    pid = int(r.stdout)
    check("run ends when CMD ends", r.returncode == 0, r)
    check("who outlives it is named", "sleep" in r.stderr and "outlives" in r.stderr, r)
    wait_for("and ended after the grace", lambda: not os.path.exists(f"/proc/{pid}"))
    r = run("sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!", options=["--policy", "watch"])
    pid = int(r.stdout)
    time.sleep(.5)
    check("--policy watch ends nobody", os.path.exists(f"/proc/{pid}"), r)
    os.kill(pid, signal.SIGKILL)


def test_time_to_save():
    """A job that hears no request to end, and grows on: what it is promised is what it gets."""
    grow = ("import signal, time\nfor s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n"
            "kept = []\nwhile True: kept.append(bytes(range(256)) * 4096); time.sleep(.05)")
    r = run(*python(grow), options=["--json", "--budget", "128M", "--grace", "3s"])
    said = {line["antifreeze"]: line["text"] for line in map(json.loads, r.stderr.splitlines())}
    check("it was stopped", r.returncode == 75 and (world.tier == "none" or "interrupt" in said), said)
    if "interrupt" in said:
        words = re.search(r"SIGINT\)(, and may still save|, and has [0-9.]+ s to save|; if it grows on, it has [0-9.]+ s to save|; if it grows on, there is no time to save)$",
                          said["interrupt"])
        check("how long it has is said", words, said)
        check("and that its time was over", "SIGKILL" in said.get("kill", "") or "terminate" in said, said)
        if "too fast" in said.get("kill", ""):
            check("no more was promised", "may still save" not in said["interrupt"], said)


def test_nothing_left():
    world.nothing_left()


world.play(globals())
