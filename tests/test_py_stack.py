#!/usr/bin/python3
"""Python stacks read from outside, against what the program itself says (sys._current_frames()): equal frame by frame in
file, function and line, for threads that stand in every kind of place.

    test_py_stack.py PY_STACK_DUMP [PYTHON...]      default: this Python, and every python3.9 to 3.14 on PATH that runs
    test_py_stack.py --target                       the program that is looked at; answers each line on stdin with its
                                                    own stacks as JSON
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

# ---------------------------------------------------------------- the program that is looked at (any Python from 3.9 on)

NEVER = threading.Event()
HELD = threading.Lock()
PARKED = []  # names, as they arrive


def park(name):
    PARKED.append(name)
    HELD.acquire()


def deep(n):
    if n == 0:
        return park("deep")
    return deep(n - 1)


def generators():
    def inner():
        yield 1
        park("generators")
        yield 2

    def outer():
        yield from inner()

    return [
        x
        for x in outer()
    ]


class Thing:
    class Inner:
        @staticmethod
        def still():
            try:
                raise ValueError("while handling this")
            except ValueError:
                with HELD if False else threading.Lock():
                    park("method")

    def method(self):
        return (
            self.Inner
            .still()
        )

    def __lt__(self, other):
        park("compare")
        return True

    def __del__(self):
        if getattr(self, "hold", False):
            park("del")


def through_c():
    return sorted([3, 1, 2],
                  key=lambda x: park("through_c"))


def comparing():
    things = [Thing(), Thing()]
    return max(
        things[0],
        things[1])


def mapped():
    return list(map(lambda x: [y for y in [x] if (lambda: park("mapped"))()], [1]))


def dying():
    thing = Thing()
    thing.hold = True
    del thing


def in_socket():
    a, b = socket.socketpair()
    PARKED.append("in_socket")
    a.recv(1)
    b.close()


def in_ctypes():
    try:
        import ctypes
        pause = ctypes.CDLL(None).pause
    except (ImportError, OSError, AttributeError):
        return park("in_ctypes")
    PARKED.append("in_ctypes")
    while True:
        pause()


def called_back():
    try:
        import ctypes
        compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: park("called_back") or 0)
        qsort = ctypes.CDLL(None).qsort
    except (ImportError, OSError, AttributeError):
        return park("called_back")
    return qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)


def idle_loop():
    import asyncio

    async def idle():
        PARKED.append("idle_loop")
        await asyncio.sleep(100000)

    asyncio.run(idle())


def busy_loop():
    import asyncio

    async def leaf():
        park("busy_loop")

    async def middle():
        async with asyncio.Lock():
            await leaf()

    asyncio.run(middle())


def größe():
    def 名前():
        def 𠀀𠀁():
            park("unicode")
        𠀀𠀁()
    名前()


def traced():
    sys.settrace(lambda *_: None)
    park("traced")


def cells(a, b=2, *c, **d):
    def closure():
        nonlocal a
        a = (b, c, d)
        park("cells")
    return closure()


def made(name, file, source):
    """Source that isn't in a file, under a name of its choice."""
    space = {"park": park, "__name__": name}

    def run():
        exec(compile(source, file, "exec"), space)
    return run


def odd_lines(seed):
    """A function with long jumps between its lines, some back, and one call to park() somewhere in it."""
    lines = ["def jumps(x):"]
    for i in range(12):
        gap = (seed * 37 + i * 61) % 300
        lines += [""] * (gap if i % 2 else gap // 50)
        if i == seed % 12:
            lines.append(f"    x = [x,\n\n\n   park('lines{seed}'),\n" + "\n" * (seed * 17 % 200) + "   x]")
        else:
            lines.append("    y = (" + ", ".join(["x"] * (i * 30)) + ")" if i % 3 else "    y = [x] * 100")
    lines.append("jumps(0)")
    return made("lines", f"lines{seed}.py", "\n".join(lines))


PLACES = {
    "deep": lambda: deep(300),
    "generators": generators,
    "method": lambda: Thing().method(),
    "compare": comparing,
    "through_c": through_c,
    "mapped": mapped,
    "del": dying,
    "in_socket": in_socket,
    "in_ctypes": in_ctypes,
    "called_back": called_back,
    "idle_loop": idle_loop,
    "busy_loop": busy_loop,
    "unicode": größe,
    "traced": traced,
    "cells": lambda: cells(1),
    "long": made("long", "/" + "very/long/" * 40 + "ü.py", "\n\n\ndef " + "f" * 200 + "():\n  park('long')\n" + "f" * 200 + "()"),
    "wide": made("wide", "/" + "道" * 120 + ".py", "class " + "名" * 60 + ":\n  park('wide')"),
    "hostile": made("hostile", "/a\x1b[31m\u202eb\ud800\x85.py", "park('hostile')"),
    **{f"lines{i}": odd_lines(i) for i in range(12)},
}


def own_stacks(but, main):
    """By the kernel's thread id: [file, function, line], innermost first. What `main` is called after fork() is by some
    versions of Python only known to the kernel: it has the number of the process."""
    frames, ret = sys._current_frames(), {}
    for t in threading.enumerate():
        f, stack = frames.get(t.ident), []
        if t.ident == but:
            continue
        while f:
            stack.append([f.f_code.co_filename, getattr(f.f_code, "co_qualname", f.f_code.co_name), f.f_lineno or 0])
            f = f.f_back
        ret[str(os.getpid() if t.ident == main else t.native_id)] = stack
    return ret


def answer(places, main, file_in, file_out):
    me = threading.get_ident()
    for _ in file_in:
        stacks = own_stacks(me, main)
        print(json.dumps({"pid": os.getpid(), "parked": sorted(PARKED), "wanted": sorted(places), "stacks": stacks}),
              file=file_out, flush=True)
    os._exit(0)


def stand_still(places, fd_in, fd_out):
    """All the places, each in a thread, and this thread in one of its own; another answers."""
    HELD.acquire()
    for place in places:
        threading.Thread(target=PLACES[place], daemon=True).start()
    threading.Thread(target=answer, args=([*places, "main"], threading.get_ident(), os.fdopen(fd_in), os.fdopen(fd_out, "w")),
                     daemon=True).start()
    park("main")


def lively():
    """Never stands still: threads come and go, stacks grow and shrink."""
    def fib(n):
        return n if n < 2 else fib(n - 1) + sum(x for x in [fib(n - 2)])

    def start_and_end():
        while True:
            t = threading.Thread(target=fib, args=(6,))
            t.start()
            t.join()

    for place in (lambda: [fib(12) for _ in range(10 ** 9)], start_and_end, start_and_end):
        threading.Thread(target=place, daemon=True).start()
    print("lively", flush=True)
    while True:
        fib(10)


def target():
    """argv: --target WHERE; what is looked at is this process, a child of fork(), or one forked by a thread."""
    where = sys.argv[2]
    few = ["deep", "through_c", "generators"]
    if where == "lively":
        lively()
    if where == "main":
        stand_still(list(PLACES), 0, 1)
    elif where == "fork":
        if os.fork() == 0:
            stand_still(few, 0, 1)
        os.wait()
    else:
        def fork():
            if os.fork() == 0:
                stand_still(few, 0, 1)
            os.wait()
        t = threading.Thread(target=fork)
        t.start()
        t.join()


if __name__ == "__main__" and sys.argv[1:2] == ["--target"]:
    target()

# ------------------------------------------------------------------------------------------------------- the one who looks

from scenario import Checks  # noqa: E402  (the program above must run where this file isn't)

ALL = Checks(deadline=60)
check = ALL.check


def shown(text, cap, keep_end):
    """What py_text.h promises of a text."""
    out = "".join("?" if c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" or c in "\u200e\u200f\u2028\u2029\ufeff"
                  or "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069" else c for c in text)
    raw = out.encode()
    if len(raw) < cap:
        return out
    room = cap - 4
    return "..." + raw[-room:].decode(errors="ignore") if keep_end else raw[:room].decode(errors="ignore") + "..."


def expected(stack):
    return [[shown(file, 256, True), shown(function, 96, False), line] for file, function, line in stack]


class Target:
    def __init__(self, python, where="main", before=()):
        self.dir = tempfile.mkdtemp(prefix="afz-py-")
        os.chmod(self.dir, 0o755)
        program = os.path.join(self.dir, "standing.py")
        with open(__file__, encoding="utf-8") as f:
            text = f.read()
        with open(program, "w", encoding="utf-8") as f:
            f.write(text[:text.index("# -----", text.index("target()\n"))])
        # A group of its own, so that children of fork() end with it; Python 3.12 warns of fork() with threads.
        self.process = subprocess.Popen([*before, python, "-W", "ignore", program, "--target", where], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True,
                                        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.communicate()
        shutil.rmtree(self.dir, ignore_errors=True)

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def settled(self):
        """What it says once all are where they should be, and said the same twice."""
        last, end = None, time.monotonic() + ALL.deadline
        while time.monotonic() < end:
            now = self.ask()
            if now is None:
                return None
            if now == last and set(now["wanted"]) <= set(now["parked"]):
                return now
            last = now
            time.sleep(.05)
        print(f"never settled: {last['parked']} of {last['wanted']}")
        return None


def look(pid, *tids, dump=None, **kw):
    """{tid: frames or the name of an error}, or the name of the error that keeps it from looking at all."""
    r = subprocess.run([dump or DUMP, str(pid), *map(str, tids)], capture_output=True, timeout=ALL.deadline, **kw)
    ret, text = {}, r.stdout.decode()
    if r.returncode == 1:
        return text.strip()
    assert r.returncode == 0, (r.returncode, text, r.stderr)
    for line in text.splitlines():
        if line.startswith("thread "):
            word = line.split()
            ret[word[1]] = frames = [] if len(word) == 2 else word[3]
        else:
            file, function, number = line.split("\t")
            frames.append([file, function, int(number)])
    return ret


def compare(what, target, pid=None, tid_of=lambda tid: tid):
    """Between two equal answers of the program, the look must be equal too; a thread that moved is looked at again."""
    wrong, n = ["it never stood still"], 0
    for _ in range(20):
        before = target.settled()
        if before is None:
            break
        seen = look(pid or before["pid"])
        if target.ask() != before:
            continue
        if isinstance(seen, str):
            wrong = [seen]
            break
        wrong, n = [], len(before["stacks"])
        for tid, stack in before["stacks"].items():
            got = seen.get(str(tid_of(int(tid))), "not there")
            if got != expected(stack):
                wrong.append(f"thread {tid}:\n  it says {expected(stack)[:6]}\n  we see  {got[:6]}")
        break
    check(f"{what}: {n} threads", not wrong and n >= 4, "\n".join(wrong))
    return before


def version(python):
    r = subprocess.run([python, "-c", "import sys, platform; print(platform.python_version(), sys.version_info[1])"],
                       capture_output=True, text=True, check=False)
    return r.stdout.split() if r.returncode == 0 and r.stdout else None


def test_frames(python, name):
    with Target(python) as t:
        said = compare(name, t)
        if not said:
            return
        pid = said["pid"]
        deepest = max(said["stacks"].values(), key=len)
        check(f"{name}: a stack of 300 is among them", len(deepest) > 300)
        again = look(pid, pid)
        check(f"{name}: one thread alone", list(again) == [str(pid)] and again[str(pid)][0][1] == "park", again)
        check(f"{name}: no such thread", look(pid, 1) == {"1": "ESRCH"})
        check(f"{name}: nothing was stopped", b"State:\tT" not in open(f"/proc/{pid}/status", "rb").read())
        if os.geteuid() == 0:
            theirs = os.path.join(t.dir, "dump")
            shutil.copy(DUMP, theirs)
            said = look(pid, dump=theirs, user=65534, group=65534, extra_groups=[])
            check(f"{name}: another user may not look", said in ("EACCES", "EPERM"), said)
    check(f"{name}: gone", look(pid) == "ESRCH")


def test_forked(python, name):
    for where in ("fork", "thread"):
        with Target(python, where) as t:
            compare(f"{name}: forked by {where}", t)


def test_lively(python, name):
    """A stack that changes while it is read may be short or stale, but is made of what the program is made of."""
    with Target(python, "lively") as t:
        t.process.stdout.readline()
        pid, odd, frames = t.process.pid, [], 0
        for _ in range(40):
            seen = look(pid)
            if isinstance(seen, str):
                odd.append(seen)
                continue
            for stack in seen.values():
                if isinstance(stack, str):
                    odd += [stack] if stack not in ("ESRCH", "EAGAIN") else []
                    continue
                frames += len(stack)
                odd += [f for f in stack if not os.path.basename(f[0]) in ("standing.py", "threading.py", "_weakrefset.py")]
        check(f"{name}: lively, {frames} frames", not odd and frames > 200, odd[:10])
        check(f"{name}: and it lives on", t.process.poll() is None)


def host_tids(pid):
    """{thread id inside: thread id here} of a process in a pid namespace."""
    ret = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as f:
            ids = next(line for line in f if line.startswith("NSpid:")).split()[1:]
        ret[int(ids[-1])] = int(tid)
    return ret


def test_namespace(python, name):
    enter = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode != 0:
        return
    with Target(python, before=enter) as t:
        said = t.settled()
        children = f"/proc/{t.process.pid}/task/{t.process.pid}/children"
        if said and os.path.exists(children):
            pid = int(open(children, encoding="ascii").read().split()[0])
            check(f"{name}: it believes to be process 1", said["pid"] == 1)
            compare(f"{name}: in a pid namespace", t, pid, lambda tid: host_tids(pid).get(tid))


def test_others():
    check("no such process", look(2 ** 22 + 1) == "ESRCH")
    with subprocess.Popen(["sleep", "1000"]) as p:
        ALL.until(lambda: os.readlink(f"/proc/{p.pid}/exe").endswith(("sleep", "coreutils", "busybox")))
        check("no Python in it", look(p.pid) == "ENOENT", look(p.pid))
        p.kill()
    old = shutil.which("python3.8")
    if old and version(old):
        with subprocess.Popen([old, "-c", "print(1, flush=True); input()"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as p:
            p.stdout.readline()
            check("a version too old", look(p.pid) in ("ENOTSUP",), look(p.pid))


def main():
    pythons = sys.argv[2:] or [sys.executable] + [p for p in map(shutil.which, (f"python3.{n}" for n in range(9, 15))) if p]
    tried = set()
    test_others()
    for python in pythons:
        v = version(python)
        if not v or not 9 <= int(v[1]) <= 14 or v[0] in tried:
            continue
        tried.add(v[0])
        for test in (test_frames, test_forked, test_lively, test_namespace):
            test(python, v[0])
    print("looked into " + ", ".join(sorted(tried)))
    ALL.finish()


if __name__ == "__main__":
    DUMP = os.path.abspath(sys.argv[1])
    main()
