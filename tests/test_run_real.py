#!/usr/bin/python3
"""`antifreeze run` and `attach` with what people really run and from where they run it.

    test_run_real.py ANTIFREEZE [TIER...]

Each scenario is run in every tier that is to be had here (or those named). What is not installed is left out, with a word.
"""
import os
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import textwrap
import threading
import time

from scenario import PYTHON, Scenario

NOBODY = 65534
MEMORY1 = "/sys/fs/cgroup/memory"
world = Scenario(deadline=60)
check, wait_for, run, plain, command = world.check, world.wait_for, world.run, world.plain, world.command
environment, DEADLINE = world.environment, world.deadline
left_out = set()


def has(program):
    if shutil.which(program):
        return True
    left_out.add(program)
    return False


def python(code):
    return PYTHON, "-c", textwrap.dedent(code)


def test_wrappers():
    check("timeout ends us", plain("timeout", "1", *command("sleep", "30")).returncode == 124)
    check("timeout inside", run("timeout", ".2", "sleep", "30").returncode == 124)
    r = run("xargs", "-P4", "-n1", "echo", stdin=None, input="1\n2\n3\n4\n5\n")
    check("xargs -P", sorted(r.stdout.split()) == list("12345"), r)
    check("setsid around", plain("setsid", "-w", *command("sh", "-c", "exit 4")).returncode == 4)
    check("setsid inside", run("setsid", "-w", "sh", "-c", "exit 4").returncode == 4)
    if has("make"):
        makefile = os.path.join(world.state, "Makefile")
        with open(makefile, "w") as f:
            f.write("all: a b c\na b c:\n\t@echo $@\n")
        r = run("make", "-s", "-j2", "-f", makefile)
        check("make -j2", sorted(r.stdout.split()) == ["a", "b", "c"] and r.returncode == 0, r)


def test_terminals():
    """On a terminal that another program made, and around one that makes terminals."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(world.antifreeze, command("sh", "-c", "tty; stty size", options=["-q"]), environment())
    seen = b""
    while select.select([fd], [], [], DEADLINE)[0]:
        try:
            seen += os.read(fd, 4096)
        except OSError:
            break
    os.waitpid(pid, 0)
    os.close(fd)
    check("CMD has the terminal", b"/dev/pts/" in seen, seen)
    if has("script"):
        r = run("script", "-qec", "tty; exit 5", "/dev/null")
        check("script inside", "/dev/pts/" in r.stdout and r.returncode == 5, r)
    if has("tmux"):
        mark, socket = os.path.join(world.state, "tmux"), os.path.join(world.state, "tmux.sock")
        r = run("tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", f"echo in > {mark}; sleep 60", options=["--grace", "1s"])
        check("tmux inside", r.returncode == 0 and "outlives" in r.stderr, r)
        wait_for("tmux runs its command", lambda: os.path.exists(mark))
        wait_for("and is seen off", lambda: plain("tmux", "-S", socket, "has-session").returncode != 0)


def test_odd_places():
    mark = os.path.join(world.state, "closed")
    code = ("import os\n"
            "open_ = [i for i in range(3) if os.path.exists(f'/proc/self/fd/{i}')]\n"
            f"open({mark!r}, 'w').write(str(open_))")
    for shut in ("0<&- 1>&- 2>&-", "0<&-", "2>&-"):
        line = "exec " + " ".join(f"'{a}'" for a in command(PYTHON, os.path.join(world.state, "open.py"), options=["-q"])) + " " + shut
        with open(os.path.join(world.state, "open.py"), "w") as f:
            f.write(code)
        r = plain("sh", "-c", line)
        want = plain("sh", "-c", f"exec {PYTHON} {os.path.join(world.state, 'open.py')} {shut}; ").returncode
        bare = open(mark).read()
        os.unlink(mark)
        r = plain("sh", "-c", line)
        got = open(mark).read() if os.path.exists(mark) else None
        check(f"with {shut} CMD finds what it finds without us", r.returncode == want and got == bare, (r, got, bare))
    r = plain("env", "-i", *command("/usr/bin/env"))
    check("an empty environment", r.returncode == 0 and "ANTIFREEZE_RUN=" in r.stdout, r)
    env = environment()
    del env["XDG_STATE_HOME"], env["XDG_RUNTIME_DIR"]
    env.pop("HOME", None)
    r = run("true", env=env)
    check("no HOME: held all the same, and said", r.returncode == 0 and "not recorded" in r.stderr, r)
    r = run("true", env={**env, "HOME": "/proc"})
    check("a HOME that cannot be written to", r.returncode == 0 and "not recorded" in r.stderr, r)
    r = run("true", env=environment(TMPDIR="/nonexistent", LC_ALL="de_DE.UTF-8", LANG="xx"))
    check("an odd TMPDIR and locale", r.returncode == 0 and len(r.stderr.splitlines()) == 2, r)
    for mask in ("077", "000"):
        check(f"umask {mask}", plain("sh", "-c", 'umask $0; exec "$@"', mask, *command("sh", "-c", "umask")).stdout.strip() == "0" + mask)
    found = plain("find", world.runtime, world.state, "-path", "*antifreeze*", "-perm", "/077", "!", "-type", "l").stdout
    check("what we make is ours alone under umask 000, too", found == "", found)
    gone = os.path.join(world.state, "gone")
    r = plain("sh", "-c", 'mkdir "$0"; cd "$0"; rmdir "$0"; exec "$@"', gone, *command("sh", "-c", "exit 3"))
    check("a folder that was removed", r.returncode == 3, r)
    check("many arguments", run("sh", "-c", "echo $#", "sh", *map(str, range(20000))).stdout == "20000\n")
    bad = os.path.join(world.state, "bad")
    with open(bad, "w") as f:
        f.write("#!/no/such/program\n")
    os.chmod(bad, 0o755)
    r = run(bad)
    check("a missing interpreter", r.returncode == 127 and "No such file" in r.stderr and "interpreter" in r.stderr, r)
    os.chmod(bad, 0o644)
    for what, word, status, way in (("no program", bad, 126, "chmod +x"), ("a folder", world.state, 126, "it is a folder"),
                                    ("nowhere", "no-such-program", 127, "in no folder of PATH"), ("no such path", bad + "-not", 127, "No such file")):
        r = run(word)
        check(f"{what}: why, and the way out", r.returncode == status and way in r.stderr and len(r.stderr.splitlines()) == 1, r)


def test_names_from_path():
    """What PATH leads to is told by its place: an environment that was moved has programs whose interpreter is gone."""
    folders = [os.path.join(world.state, name) for name in ("first", "second")]
    for folder in folders:
        os.makedirs(os.path.join(folder, "a-folder"), exist_ok=True)  # of the tier before
    for name, mode, text in ("moved", 0o755, "#!/no/such/python\n"), ("no-program", 0o644, "print(1)\n"), ("good", 0o755, "#!/bin/sh\nexit 4\n"):
        with open(os.path.join(folders[1], name), "w") as file:
            file.write(text)
        os.chmod(file.name, mode)
    there = environment(PATH=":".join([*folders, os.environ["PATH"]]))
    for name, status, place, way in (("moved", 127, folders[1], "No such file or directory: the interpreter that its first line names"),
                                     ("no-program", 126, folders[1], "chmod +x"), ("a-folder", 126, folders[0], "it is a folder")):
        r = run(name, env=there)
        check(f"{name}: why, and where", r.returncode == status and way in r.stderr and f"{place}/{name}: " in r.stderr and
              len(r.stderr.splitlines()) == 1, r)
    check("one that can be run is", run("good", env=there).returncode == 4)
    r = run("moved", env=environment(PATH=folders[0]))
    check("no folder of PATH has it", r.returncode == 127 and "moved: command not found; it is in no folder of PATH" in r.stderr, r)
    r = run("./moved", env=there, cwd=folders[1])
    check("one that is named with its folder is not searched for", r.returncode == 127 and ": ./moved: No such file" in r.stderr, r)


def test_words():
    """Ours and the job's go to the same place, often at the same time: whole lines, each."""
    r = plain("sh", "-c", 'for i in 1 2 3 4 5 6 7 8; do "$@" & done; wait', "sh", *command("sh", "-c", "echo x >&2"))
    lines = r.stderr.splitlines()
    check("lines stay whole", all(l == "x" or (l.startswith("antifreeze: ") and l.count("antifreeze: ") == 1) for l in lines), r)


def test_nested():
    r = run(*command("sh", "-c", "exit 7"))
    check("a run inside a run", r.returncode == 7 and "hardly" not in r.stderr and "only" not in r.stderr, r)
    budgets = [float(l.split("may use ")[1].split(" ")[0]) for l in r.stderr.splitlines() if "may use" in l and "held" in l]
    check("gets a part of its budget", len(budgets) == 2 and .5 * budgets[0] < budgets[1] <= budgets[0], r)
    r = run(*command("true", options=["--budget", "4G"]), options=["--budget", "1G"])
    check("and never more than it", "only" in r.stderr and "4.0 of" not in r.stderr, r)


def test_processes():
    script = os.path.join(world.state, "pools.py")
    with open(script, "w") as f:
        f.write("import multiprocessing as m\n"
                "def double(x): return 2 * x\n"
                "if __name__ == '__main__':\n"
                "    for how in ('fork', 'spawn', 'forkserver'):\n"
                "        with m.get_context(how).Pool(2) as p: print(how, sum(p.map(double, range(10))))\n")
    r = run(PYTHON, script)
    check("pools of every kind", r.stdout == "fork 90\nspawn 90\nforkserver 90\n", r)
    r = run(*python("""
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                null = os.open("/dev/null", os.O_RDWR)
                for i in range(3): os.dup2(null, i)
                time.sleep(300)
            os._exit(0)
        os.wait()
        """), options=["--grace", "1s"])
    check("a daemon is named", r.returncode == 0 and "outlives" in r.stderr, r)
    pid = int(r.stderr.split("(pid ")[1].split(")")[0])
    wait_for("and ended", lambda: not os.path.exists(f"/proc/{pid}"))


def test_forking_server():
    """As gunicorn and its like do it: the master has workers, HUP replaces them, TERM ends all; each once."""
    p = subprocess.Popen(command(*python("""
        import os, signal, time
        got = []
        def worker():
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                time.sleep(300)
            return pid
        for s in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(s, lambda n, f: got.append(n))
        workers = [worker(), worker()]
        print("ready", flush=True)
        while signal.SIGTERM not in got:
            time.sleep(.01)
            if signal.SIGHUP in got and len(workers) == 2:
                workers += [worker(), worker()]
                print("again", flush=True)
        time.sleep(.2)
        for pid in workers: os.kill(pid, signal.SIGTERM)
        for pid in workers: os.waitpid(pid, 0)
        print(got, flush=True)
        """)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    p.stdout.readline()
    p.send_signal(signal.SIGHUP)
    p.stdout.readline()
    p.terminate()
    out, err = p.communicate(timeout=DEADLINE)
    check("a forking server", out.strip() == str([int(signal.SIGHUP), int(signal.SIGTERM)]) and p.returncode == 0, (out, err))


def test_debuggers():
    for tool, argv in (("gdb", ["gdb", "-q", "-batch", "-ex", "info threads", "-p"]), ("strace", ["timeout", "1", "strace", "-p"])):
        if not has(tool):
            continue
        p = subprocess.Popen(command(*python("import os, sys; print(os.getpid(), flush=True); sys.stdin.read()")),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        pid = p.stdout.readline().strip()
        r = plain(*argv, pid)
        check(f"{tool} -p", "etached" in r.stdout + r.stderr or "ptrace" in r.stderr, r)
        p.communicate(timeout=DEADLINE)
        check(f"CMD goes on after {tool}", p.returncode == 0, p.returncode)
    if has("strace"):
        check("strace inside", run("strace", "-o", "/dev/null", "-f", "sh", "-c", "exit 3").returncode == 3)
    if has("gdb"):
        r = run("gdb", "-q", "-batch", "-ex", "run", "--args", "/bin/sh", "-c", "echo in gdb")
        check("gdb inside", "in gdb" in r.stdout and "exited normally" in r.stdout, r)
    r = run(PYTHON, "-m", "pdb", os.path.join(world.state, "pools.py"), stdin=None, input="p 6*7\nq\n")
    check("python -m pdb", "42" in r.stdout and r.returncode == 0, r)


SERVER = """\
import os, subprocess, sys, threading
def follow(name, p):
    for line in p.stdout:
        say(f"{name} {line.strip()}")
    say(f"{name} ended {p.wait()}")
def say(line):  # one write: the lines of two threads must not mix
    os.write(1, (line + chr(10)).encode())
kernels = {}
for name in "ab":
    kernels[name] = subprocess.Popen([sys.executable, "-m", "ipykernel_launcher", "-f", f"kernel-{name}.json"], text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1,
                                     env={**os.environ, "JPY_SESSION_NAME": f"/home/me/{name}.ipynb"})
    threading.Thread(target=follow, args=(name, kernels[name])).start()
for line in sys.stdin:
    name, _, code = line.partition(" ")
    kernels[name].stdin.write(code)
for p in kernels.values():
    p.stdin.close()
"""
# Like the real one it reads its own stderr and shows what comes there, some time later.
KERNEL = """\
import os, sys, threading, time
r, w = os.pipe()
os.dup2(w, 2)
def watch():
    while True:
        text = os.read(r, 65536).decode()
        time.sleep(.2)
        print("shows", text.replace("\\n", " "), flush=True)
threading.Thread(target=watch, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    try:
        exec(line)
    except MemoryError:
        print("MemoryError", flush=True)
"""


class Notebooks:
    """A notebook server with two kernels, as far as we can tell them from real ones."""

    def __init__(self, *options, attach=False):
        folder = os.path.join(world.state, "notebooks")
        os.makedirs(folder, exist_ok=True)
        for name, text in (("jupyter-lab", "#!" + PYTHON + "\n" + SERVER), ("ipykernel_launcher.py", KERNEL)):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        os.chmod(os.path.join(folder, "jupyter-lab"), 0o755)
        self.lines = []
        server = [os.path.join(folder, "jupyter-lab")]
        self.p = subprocess.Popen(server if attach else command(*server, options=options), cwd=folder, text=True, bufsize=1,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        self.reader = threading.Thread(target=lambda: self.lines.extend(l.strip() for l in self.p.stdout), daemon=True)
        self.reader.start()
        self.expect("a ready")
        self.expect("b ready")

    def expect(self, begin):
        wait_for(f"the notebook server says {begin!r}", lambda: any(l.startswith(begin) for l in self.lines))

    def tell(self, name, code):
        self.p.stdin.write(f"{name} {code}\n")

    def close(self):
        self.p.stdin.close()
        err = self.p.stderr.read()
        self.p.wait(DEADLINE)
        self.reader.join(DEADLINE)
        return err


GROW = "x = []; [(x.append(b'1' * (4 << 20)), time.sleep(.012)) for i in range(300)]"


def test_notebooks():
    """The kernel that grows is stopped alone, also when most of its memory was there before we knew it."""
    n = Notebooks("--budget", "400M")
    n.tell("a", "y = b'1' * (180 << 20); print('has', flush=True)")
    n.expect("a has")
    time.sleep(1.2)  # by now it is known as a kernel
    n.tell("b", "y = b'1' * (90 << 20); print('has', flush=True)")
    n.expect("b has")
    n.tell("a", GROW)
    n.expect("a ended -9")
    n.tell("b", "print('lives', flush=True)")
    n.expect("b lives")
    err = n.close()
    check("its user sees why", any(l.startswith("a shows") and "this kernel is stopped" in l for l in n.lines), n.lines)
    check("and the caller", "stopped the kernel of a.ipynb (pid " in err and "1 of the server's kernels" in err, err)
    check("the server ends as it likes", n.p.returncode == 0, n.p.returncode)


def test_notebook_burst():
    n = Notebooks("--budget", "400M")
    time.sleep(1.2)
    n.tell("b", "y = b'1' * (60 << 20); print('has', flush=True)")
    n.expect("b has")
    n.tell("a", "x = b'1' * (2 << 30)")
    n.expect("a ended -9")
    n.tell("b", "print('lives', flush=True)")
    n.expect("b lives")
    err = n.close()
    check("one at a burst, too", "1 of the server's kernels" in err and n.p.returncode == 0, err)


def test_notebooks_attached():
    """A server that already runs: its memory was charged elsewhere."""
    n = Notebooks(attach=True)
    n.tell("a", "y = b'1' * (180 << 20); print('has', flush=True)")
    n.tell("b", "y = b'1' * (120 << 20); print('has', flush=True)")
    n.expect("a has")
    n.expect("b has")
    p = subprocess.Popen([world.antifreeze, "attach", "--budget", "500M", str(n.p.pid)], stderr=subprocess.PIPE, text=True, env=environment())
    time.sleep(1.5)
    n.tell("a", GROW)
    n.expect("a ended -9")
    n.tell("b", "print('lives', flush=True)")
    n.expect("b lives")
    n.close()
    err = p.communicate(timeout=DEADLINE)[1]
    check("attached to, the largest is stopped alone", "a.ipynb" in err and "b.ipynb" not in err and n.p.returncode == 0, err)


def test_attach():
    p = subprocess.Popen(["sleep", "1"])
    r = plain(world.antifreeze, "attach", str(p.pid))
    p.wait()
    check("attach to a process of ours", r.returncode == 0 and "may use" in r.stderr, r)
    r = plain(world.antifreeze, "attach", str(os.getpid()))
    check("not to what started us", r.returncode == 125 and len(r.stderr.splitlines()) == 1, r)
    r = plain(world.antifreeze, "attach", str(p.pid))
    check("not to one that is gone", r.returncode == 125 and "No such process" in r.stderr, r)


def test_other_user():
    if os.geteuid() != 0:
        left_out.add("another user (we are not root)")
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        os.chmod(home, 0o755)
        own = os.path.join(home, "own")
        os.mkdir(own)
        os.chown(own, NOBODY, NOBODY)
        binary = shutil.copy(world.antifreeze, home)

        def as_nobody(*argv):
            return plain(*argv, env={"PATH": os.environ["PATH"], "HOME": own, "XDG_RUNTIME_DIR": own}, cwd="/",
                         user=NOBODY, group=NOBODY, extra_groups=[])
        r = as_nobody(binary, "run", "--", "/usr/bin/id", "-u")
        check("an ordinary user's run", r.stdout.strip() == str(NOBODY) and r.returncode == 0, r)
        last = as_nobody(binary, "run", "--dry-run", "--", "true").stderr.splitlines()[-1]
        check("a dry run tells why not better, in whole sentences", "may not be divided" not in last or last.endswith("Permission denied"), last)
        hidden = os.path.join(home, "hidden")
        os.mkdir(hidden, 0o700)
        r = as_nobody(binary, "why", hidden)
        check("others' runs are not taken for none", r.returncode == 2 and r.stderr == f"antifreeze: {hidden}: Permission denied: a run is its owner's alone (0700)\n", r)
        other = subprocess.Popen(["sleep", "60"])
        r = as_nobody(binary, "attach", str(other.pid))
        check("others' processes are refused", r.returncode == 125 and r.stderr == f"antifreeze: attach: process {other.pid} belongs to another user: only that one, or root, can hold it\n", r)
        other.kill()
        other.wait()
        r = as_nobody("/bin/sh", "-c", f"sleep 1 & exec {binary} attach $!")
        check("their own are not", r.returncode == 0 and "may use" in r.stderr, r)
        for folder in ("/dev/shm", "/tmp"):
            shutil.rmtree(f"{folder}/antifreeze-{NOBODY}", ignore_errors=True)
    if has("su"):
        r = run("su", "nobody", "-s", "/bin/sh", "-c", "id -u")
        check("su inside", r.stdout.strip() == str(NOBODY), r)


def test_container():
    """A cgroup v1 with a limit, as containers have it."""
    box = os.path.join(MEMORY1, f"test-run-real-{os.getpid()}")
    try:
        os.mkdir(box)
    except OSError:
        left_out.add("a container (no writable cgroup v1)")
        return
    try:
        with open(os.path.join(box, "memory.limit_in_bytes"), "w") as f:
            f.write(str(512 << 20))

        def inside(*argv):
            return plain("sh", "-c", f'echo $$ > {box}/cgroup.procs; exec "$@"', "sh", *argv)
        r = inside(*command(*python(GROW.replace('.012', '.006').replace("x = []", "import time; x = []"))))
        kills = open(os.path.join(box, "memory.oom_control")).read()
        check("the container's limit is met by us, not by the system", r.returncode == 75 and "oom_kill 0" in kills, (r, kills))
        r = inside(*command("true", options=["--budget", "4G"]))
        check("--budget does not go beyond it", "the container has only" in r.stderr and "4.0 of" not in r.stderr, r)
    finally:
        wait_for("the container is empty again", lambda: try_rmdir(box))


def try_rmdir(folder):
    try:
        os.rmdir(folder)
        return True
    except OSError:
        return False


try:
    world.play(globals())
finally:
    for program in sorted(left_out):
        print(f"left out: {program}")
