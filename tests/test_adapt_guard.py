#!/usr/bin/python3
"""What the guard does for an agent in the job, whoever that is: small clients of the control socket stand for it here.

    test_adapt_guard.py ANTIFREEZE [TIER...]

What they are given in the environment, what becomes of what they tell, when they are asked for smaller steps, when the job is
started again, and what is said of what is lost.
"""
import concurrent.futures
import functools
import json
import os
import signal
import subprocess
import tempfile

from scenario import PYTHON, Scenario

world = Scenario(deadline=90)
check, environment, DEADLINE = world.check, world.environment, world.deadline

# What a client needs; the same words as docs/control-socket.md.
CLIENT = """
import ctypes, mmap, os, socket, sys, time
attempt = int(os.environ["ANTIFREEZE_ATTEMPT"])
guard = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
guard.connect(os.environ["ANTIFREEZE_SOCKET"])
def tell(line): guard.send(line.encode())
def hello(*abilities):
    tell(" ".join(["hello", "client", "1", *abilities]))
    assert guard.recv(1024).startswith(b"welcome")
def heard():
    guard.setblocking(False)
    try:
        return guard.recv(1024).decode().split()
    except BlockingIOError:
        return []
    finally:
        guard.setblocking(True)
kept = []
def grow(mb, mb_per_s=0):
    begin = time.monotonic()
    for i in range(mb):
        m = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for at in range(0, 1 << 20, 4096): m[at] = 1
        kept.append(m)
        ahead = (i + 1) / mb_per_s - (time.monotonic() - begin) if mb_per_s else 0
        if ahead > 0: time.sleep(ahead)
def probe(name, *arguments):
    f = getattr(ctypes.CDLL(None), name)
    f.argtypes = {"antifreeze_told": [ctypes.c_char_p], "antifreeze_tell": [ctypes.c_int, ctypes.c_uint64]}.get(name, [])
    return f(*arguments)
def steps(n, saved=None):
    for i in range(n): probe("antifreeze_step")
    if saved is not None: probe("antifreeze_tell", probe("antifreeze_told", b"saved_step"), saved)
def lean(): return os.environ.get("ANTIFREEZE_LEAN")
"""


class Run:
    """One run to its end: status, words, and what was recorded."""

    def __init__(self, code, *options, argv=(), budget="200M", policy="adapt"):
        self.dir = tempfile.mkdtemp(dir=world.state)
        r = subprocess.run([world.antifreeze, "run", "--policy", policy, "--budget", budget, "--swap", "0", "--json", "--run-dir", self.dir,
                            *options, "--", PYTHON, "-c", CLIENT + code, *argv],
                           capture_output=True, text=True, timeout=DEADLINE, env=environment(), stdin=subprocess.DEVNULL, check=False)
        self.status, self.stdout, self.stderr = r.returncode, r.stdout, r.stderr
        self.words = [json.loads(line) for line in r.stderr.splitlines() if line.startswith("{")]
        self.events = [w["antifreeze"] for w in self.words]
        path = os.path.join(self.dir, "verdict.json")
        self.did = json.load(open(path, encoding="utf-8")).get("did", {}) if os.path.exists(path) else {}

    def said(self, event):
        return [w["text"] for w in self.words if w["antifreeze"] == event]

    def marks(self):
        """(kind, text) of all that was told."""
        lines = world.plain(world.antifreeze, "export", self.dir, "--format", "jsonl").stdout.splitlines()
        marks = [json.loads(line) for line in lines if '"mark":"agent"' in line]
        return [(mark["code"], mark["text"]) for mark in marks]

    def __repr__(self):
        return f"status {self.status}, did {self.did}\n{self.stdout[-400:]}\n{self.stderr[-1500:]}"


def side_by_side(*runs):
    """What each of them returns: they mostly wait."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda run: run(), runs))


# ---- what it is given ----

def test_environment():
    show = "for name in sorted(os.environ):\n    if name.startswith('ANTIFREEZE_'): print(name[11:], os.environ[name])\n"
    given = dict(line.split(" ", 1) for line in
                 Run(show, "--gpu-budget", "2G", "--amp", "--allow-inexact").stdout.splitlines())
    wanted = {"POLICY": "adapt", "ATTEMPT": "1", "GPU_BUDGET": str(2 << 30), "AMP": "1", "INEXACT": "1"}
    check("what the options say is in the environment", {name: given.get(name) for name in wanted} == wanted, given)
    check("and nothing that is not known yet", "LEAN" not in given and "RESUME" not in given, given)
    plain = Run(show, policy="protect").stdout.split()
    check("without them there is little", "protect" in plain and not {"AMP", "INEXACT", "GPU_BUDGET"} & set(plain), plain)
    check("watch sets no limit", "GPU_BUDGET" not in Run(show, "--gpu-budget", "2G", policy="watch").stdout.split())


def test_environment_of_a_run_inside():
    """What an outer run says to its own job is not for the jobs of another inside it."""
    names = ("ANTIFREEZE_AMP", "ANTIFREEZE_RESUME", "ANTIFREEZE_LEAN", "ANTIFREEZE_GPU_BUDGET")
    r = world.plain(world.antifreeze, "run", "--", "env", env=environment(**{name: "7" for name in names}))
    check("nothing of it is left", r.returncode == 0 and not any(name in r.stdout for name in names), r.stdout)


def test_options():
    for options, words in ((["--amp"], "--amp changes how the job computes: it needs --policy adapt"),
                           (["--allow-inexact", "--policy", "protect"], "--allow-inexact changes"),
                           (["--gpu-budget", "1K"], "--gpu-budget"), (["--restarts", "2"], "--restarts needs {batch}")):
        r = world.plain(world.antifreeze, "run", *options, "--", "true")
        check(f"{options} is a usage error", r.returncode == 125 and words in r.stderr and r.stderr.count("\n") == 1, r)


# ---- what it tells ----

def test_events():
    r = Run("""
hello()
tell("event oom device=host step=3 batch=64 at=/a b/train.py:33:loss swallowed=0: step 3 did not fit")
for i in range(40): tell(f"event split step={i} batch=64 micro=32: in two parts, {i}")
tell("event note: nothing else")
tell("event later x=1: from a newer agent")
tell("status"); guard.recv(1024)
""")
    marks = r.marks()
    check("all are recorded", len(marks) == 43 and r.status == 0, (len(marks), r))
    check("as they were told", marks[0] == (0, "device=host step=3 batch=64 at=/a b/train.py:33:loss swallowed=0: step 3 did not fit"), marks[:1])
    check("an unknown kind is a note", marks[-1] == (5, "x=1: from a newer agent"), marks[-1:])
    check("the sentence is said", r.said("oom") == ["step 3 did not fit"], r)
    check("one of a kind a second", 1 <= len(r.said("split")) <= 3 and r.said("split")[0] == "in two parts, 0", r)


def test_a_flood_of_events():
    """An agent that goes wrong fills neither terminal nor disk; nobody waits for it, and it is not sent away."""
    r = Run("""
hello()
for i in range(2000): tell("event note n=%d: %s" % (i, "\\u00e4" * 450))
for i in range(300): tell("event error at=/a/train.py:3:fit: ValueError: %d" % i)
tell("status"); print(guard.recv(1024).split()[0])
""")
    errors = [text for _, text in r.marks() if text.startswith("at=")]
    notes = [text for _, text in r.marks() if text.startswith("n=")]
    check("only so many are recorded", 64 <= len(notes) <= 64 + 30 and "status" in r.stdout, (len(notes), r))
    check("an error has room all the same", errors and errors[0].endswith("ValueError: 0"), r.marks()[-1:])
    check("and only so many of them", 64 <= len(errors) <= 64 + 30, len(errors))
    check("and fewer said, each cut at a character", 1 <= len(r.said("note")) <= 30 and set(r.said("note")[0]) == {"\u00e4"}, r)


def test_events_need_a_hello():
    r = Run("""
tell("event note: who am I")
print(guard.recv(1024).decode()); print(guard.recv(1024))
""")
    check("who did not say hello is not heard", "error say hello first" in r.stdout and "b''" in r.stdout and not r.said("note"), r)


# ---- smaller steps ----

# A step is a batch that grows to its size and is let go of; what is asked is heard between two.
STEPS = """
hello("shrink")
batch = int(sys.argv[1])
for step in range(int(sys.argv[2])):
    grow(batch, 50)
    kept.clear()
    if heard() == ["shrink"]:
        batch //= 2
        tell(f"event split step={step} batch={batch * 2} micro={batch}: step {step} is made in two parts")
print("done", batch)
"""


def test_asked_for_smaller_steps():
    r = Run(STEPS, argv=("174", "3"))  # with the interpreter beyond what is refused (180 of 200 MB), and not at stop (192)
    check("it is asked", r.said("shrink") == ["asked the job for smaller steps"] and r.did.get("shrink") == 1, r)
    check("and goes on, smaller, untouched", r.status == 0 and r.stdout == "done 87\n" and "interrupt" not in r.events, r)
    check("nobody asks it to save before it could", "checkpoint" not in r.events, r)
    less = STEPS.replace('"shrink"', '"less"', 1).replace("split step", "note step")
    r = Run(less, argv=("164", "3"))  # below where one that can be split would be refused, which is not counted on here
    check("who only uses less is asked, too", r.status == 0 and r.stdout == "done 82\n" and
          r.said("shrink") == ["asked the job to use less memory"], r)


def test_not_asked():
    r = Run(STEPS, argv=("164", "2"), policy="protect")
    check("protect asks for nothing smaller", r.status == 0 and r.stdout == "done 164\n" and not r.did.get("shrink"), r)
    r = Run(STEPS.replace('hello("shrink")', "hello()"), argv=("164", "2"))
    check("nor is one asked that cannot", r.status == 0 and not r.did.get("shrink"), r)
    r = Run(STEPS, argv=("164", "2"))
    check("nor one that would be refused in time", r.status == 0 and r.stdout == "done 164\n" and not r.did.get("shrink"), r)


def test_asked_to_save_early():
    """It climbs so fast that it would be refused, which may be its end: it is asked before, once, and not touched."""
    saves = STEPS.replace('"shrink"', '"shrink", "checkpoint"', 1).replace('if heard() ==', 'got = heard()\n    if got[:1] == ["checkpoint"]: '
                          'print("asked"); tell("saving " + got[1]); tell("saved " + got[1] + " /x/y.pt")\n    if got ==')
    r = Run(saves, argv=("164", "3"))
    check("it is asked to save", r.status == 0 and r.stdout == "asked\ndone 164\n" and r.did.get("checkpoint") == 1, r)
    check("and nothing else", not r.did.get("shrink") and not r.did.get("brake") and not r.did.get("interrupt"), r)
    check("when it is told of", r.events.index("warn") < r.events.index("checkpoint"), r)


# ---- started again ----

OOM = "tell('event oom device=gpu step=5 batch=64: step 5 did not fit'); print('attempt', attempt, lean(), flush=True); sys.exit(attempt < 3)\n"


def attempts(r):
    return [line.split(" ", 1)[1] for line in r.stdout.splitlines() if line.startswith("attempt")]


def test_again_after_oom():
    r = Run("hello('shrink')\n" + OOM)
    check("it is started again, leaner each time", attempts(r) == ["1 None", "2 1", "3 2"] and r.status == 0, r)
    check("which is said", r.said("restart")[:1] == ["it ran out of memory; starting again with each batch in 2 parts (attempt 2 of 4)"], r)
    check("and counted", r.did.get("restart") == 2, r)


def test_again_in_spite_of_other_refusals():
    r = Run("hello('shrink')\ntell('event refuse: no mixed precision on this CPU')\n" + OOM)
    check("what else is refused does not matter", len(attempts(r)) == 3 and r.status == 0, r)


def test_again_with_what_was_learned():
    r = Run("hello('shrink')\ntell('event split step=1 batch=64 micro=8')\n" + OOM.replace("attempt < 3", "attempt < 2"))
    check("from where it was at last", attempts(r) == ["1 None", "2 4"] and r.status == 0, r)


def test_not_again():
    """It would end in the same way, or it was not memory."""
    for what, code, options in (
            ("who cannot be made smaller", "hello()\n" + OOM, ()),
            ("who only uses less", "hello('less')\n" + OOM, ()),
            ("who refuses then", "hello('shrink')\n" + OOM.replace("print", "tell('event refuse: batch normalization'); print"), ()),
            ("who has refused", "hello('shrink')\ntell('event refuse what=split: batch normalization')\n" + OOM, ()),
            ("who has refused, and says hello anew", "hello('shrink')\ntell('event refuse what=split: no')\nhello('shrink')\n" + OOM, ()),
            ("who is at one sample", "hello('shrink')\ntell('event split step=4 batch=64 micro=1')\n" + OOM, ()),
            ("who got over it", "hello('shrink')\n" + OOM.replace("print", "tell('event split step=5 batch=64 micro=32'); print"), ()),
            ("who ended of something else", "hello('shrink')\n" + OOM.split("; ", 1)[1], ()),
            ("who caught it, and fails of a bug of its own", "hello('shrink')\n" + OOM.replace("batch=64", "batch=64 swallowed=1"), ()),
            ("who caught the last one", "hello('shrink')\ntell('event oom device=gpu step=4 batch=64 swallowed=0')\n" +
             OOM.replace("batch=64", "batch=64 swallowed=1"), ()),
            ("who ended well", "hello('shrink')\n" + OOM.replace("attempt < 3", "0"), ()),
            ("--restarts 0", "hello('shrink')\n" + OOM, ("--restarts", "0"))):
        r = Run(code, *options)
        check(f"not again: {what}", len(attempts(r)) == 1 and r.status == (what != "who ended well") and not r.did.get("restart"), r)
    r = Run("hello('shrink')\n" + OOM, policy="protect")
    check("not again: under protect", len(attempts(r)) == 1 and r.status == 1, r)


# A megabyte of every step is kept. With arguments: every so many steps it saves there, and goes on from it.
LEAK = """
hello("shrink")
print("attempt", attempt, lean(), flush=True)
every, path = int((sys.argv[1:] or ["0"])[0]), sys.argv[2:]
begin = int(open(path[0]).read()) if path and os.path.exists(path[0]) else 0
for step in range(begin + 1, 401):
    steps(1); grow(1); time.sleep(.03)
    if every and step % every == 0:
        open(path[0], "w").write(str(step)); tell("saved 0 " + path[0])
print("done")
"""


def test_not_again_for_a_leak():
    r = with_steps(LEAK)
    check("a leak is not started again", attempts(r) == ["1 None"] and r.status == 75 and not r.did.get("restart"), r)
    check("which is said", [w.split(" (")[0] for w in r.said("no-restart")] == ["not started again: it leaks"] and
          "--restarts 3 starts it again all the same" in r.said("no-restart")[0], r)
    with open(os.path.join(r.dir, "verdict.json"), encoding="utf-8") as f:
        told = json.load(f)
    check("and stands in the verdict", told["verdicts"][0]["id"].startswith("leak") and told["attempts"] == 1 and
          any(line.startswith("not started again: it leaks") for v in told["verdicts"] for line in v["evidence"]), told["verdicts"])


def test_again_with_a_leak():
    """What it saved is kept, so that each attempt comes further; or somebody says how often."""
    path = os.path.join(tempfile.mkdtemp(dir=world.state), "at")
    saves, told, asks = side_by_side(lambda: with_steps(LEAK, argv=("40", path)), lambda: with_steps(LEAK, "--restarts", "1"),
                                     lambda: with_steps(LEAK, "--checkpoint-cmd", "true"))
    check("who saves comes to its end", len(attempts(saves)) in (3, 4) and saves.status == 0 and saves.stdout.endswith("done\n"), saves)
    check("who is told how often is started so often", attempts(told) == ["1 None", "2 1"] and told.status == 75 and not told.said("no-restart"), told)
    check("and who has a way of its own to save is started again", len(attempts(asks)) == 4 and not asks.said("no-restart"), asks)


def test_not_again_for_what_never_fits():
    """A data set that is asked for at once: steps of no size change it."""
    asked = "hello('shrink')\n" + OOM.replace("gpu step=5 batch=64:", "host asked_bytes=4294967296 at=/x/load.py:7:main {}:").replace("attempt < 3", "1")
    r = Run(asked.format("trains=0"))
    check("before there is anything to train, it is not started again", attempts(r) == ["1 None"] and r.status == 1, r)
    check("which is said", "asked for 4.0G at once (load.py:7)" in "".join(r.said("no-restart")), r)
    r = Run(asked.format("trains=1"))
    check("with an optimizer, it is tried once in smaller steps", attempts(r) == ["1 None", "2 1"] and r.status == 1, r)
    check("which is said, too", "the same 4.0G (load.py:7)" in "".join(r.said("no-restart")), r)
    less = asked.format("trains=1").replace("asked_bytes=4294967296", "asked_bytes=' + str((4 << 30) >> attempt) + '")
    check("what gets smaller is tried on", len(attempts(Run(less))) == 4)
    r = Run(asked.format("trains=0"), "--batch", "8", argv=("{batch}",))
    check("{batch} may change what is asked for: once", len(attempts(r)) == 2 and "the same" in "".join(r.said("no-restart")), r)


def test_again_if_it_takes_a_start():
    r = Run("hello('shrink')\ntell('event refuse what=split restart=1: the ranks cannot be split while they run')\n" + OOM)
    check("who can be made smaller from the start only", len(attempts(r)) == 3 and r.status == 0, r)


def test_not_for_ever():
    forever = "hello('shrink')\n" + OOM.replace("attempt < 3", "7")
    r = Run(forever, "--restarts", "1")
    check("at most N times, and the last status counts", attempts(r) == ["1 None", "2 1"] and r.status == 7, r)


def test_again_by_batch():
    r = Run("hello()\nprint('batch', sys.argv[1], lean())\n" + OOM, "--batch", "8", "--restarts", "3", argv=("{batch}",), policy="protect")
    check("{batch} is halved after an error, too", r.status == 0 and [l for l in r.stdout.splitlines() if l.startswith("batch")] ==
          ["batch 8 None", "batch 4 None", "batch 2 None"], r)


def test_somebody_ends_it():
    """Ctrl-C in the midst of an error is meant for all attempts."""
    p = subprocess.Popen([world.antifreeze, "run", "--policy", "adapt", "--budget", "200M", "--", PYTHON, "-c", CLIENT + """
hello('shrink'); tell('event oom step=5'); print('ready', flush=True)
try: time.sleep(60)
except KeyboardInterrupt: sys.exit(3)
"""], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    p.stdout.readline()
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=DEADLINE)
    check("who is told to end is not started again", p.returncode == 3 and "starting again" not in err, (p.returncode, out, err))


def test_somebody_ends_it_between_two_attempts():
    p = subprocess.Popen([world.antifreeze, "run", "--policy", "adapt", "--budget", "200M", "--", PYTHON, "-c",
                          CLIENT + "hello('shrink')\n" + OOM.replace("attempt < 3", "7")],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    said = ""
    while "starting again" not in said and p.poll() is None:
        said += p.stderr.readline()
    p.send_signal(signal.SIGTERM)
    out, err = p.communicate(timeout=DEADLINE)
    check("nor is the next attempt made", p.returncode == 7 and out.count("attempt") == 1, (p.returncode, out, said + err))


# ---- from a checkpoint ----

def test_resume():
    """One that saves by itself, outgrows its budget, and goes on in the next attempt from what it saved last."""
    folder = tempfile.mkdtemp(dir=world.state)
    code = """
hello()
path = os.environ.get("ANTIFREEZE_RESUME")
begin = int(open(path).read()) if path and os.path.exists(path) else 0
print("attempt", begin, flush=True)
for step in range(begin, 60):
    grow(8); time.sleep(.02)
    if step % 10 == 9:
        name = f"{sys.argv[1]}/at {step + 1}"
        open(name, "w").write(str(step + 1)); tell("saved 0 " + name)
print("done")
"""
    r = Run(code, "--restarts", "5", argv=(folder,))
    began = [int(a) for a in attempts(r)]
    check("it goes on from its checkpoints", r.status == 0 and r.stdout.endswith("done\n") and began == sorted(set(began)) and len(began) > 1, r)
    check("which is said", f"starting again from {folder}/at {began[1]} (attempt 2 of 6)" in r.said("restart")[0], r)
    r = Run(code.replace('tell("saved 0 " + name)', 'tell("saved 0 " + name); os.unlink(name)'), "--restarts", "1", argv=(folder,))
    check("whether it is still there is looked at by who reads it", r.status == 75 and attempts(r) == ["0", "0"], r)


def test_same_plan_is_not_tried_twice():
    """It resumes, and saves nothing more: a third attempt would be the second."""
    code = "hello()\nprint('attempt', os.environ.get('ANTIFREEZE_RESUME'), flush=True)\nif attempt == 1: tell('saved 0 /dev/null')\ngrow(400, 100)"
    r = Run(code)
    check("only what is another plan is tried", attempts(r) == ["None", "/dev/null"] and r.status == 75, r)


def test_no_further():
    """It goes on from step 10, and saves that again, or one more."""
    code = """
hello()
print("attempt", flush=True)
if attempt > 1: tell("event resume step=10")
steps(12, 10 if attempt == 1 else %d); tell("saved 0 /dev/null")
time.sleep(1.5); grow(400, 100)
"""
    same, more, none = side_by_side(lambda: with_steps(code % 0), lambda: with_steps(code % 1, "--restarts", "2"),
                                    lambda: with_steps(code.replace("attempt > 1", "True").replace("10 if attempt == 1 else", "") % 0, policy="protect"))
    check("who saves nothing further is not started again", same.stdout.count("attempt") == 2 and same.said("no-restart") ==
          ["not started again: it went on after step 10, and nothing further is saved. It would end in the same way"], same)
    check("who does is", more.stdout.count("attempt") == 3 and not more.said("no-restart"), more)
    check("nothing is said where nobody would", none.status == 75 and not none.said("no-restart"), none)


# ---- several that train together ----

def test_one_of_several_is_lost():
    """The others are ended when they wait for it: not those that have something to say, nor where nobody knows of their steps."""
    lost = "hello()\ntell('event oom device=host swallowed=0')\ntell('event note lost=1')\n"
    runs = {"they wait": (lost + "time.sleep(60)",), "nobody knows": (lost + "time.sleep(18)", "--no-probe"),
            "they are begun anew": (lost + "time.sleep(8)\nhello('shrink')\ntime.sleep(11)",),
            "they save": (lost + "time.sleep(8)\ntell('saved 0 /dev/null')\ntime.sleep(11)",)}
    runs = dict(zip(runs, side_by_side(*(functools.partial(Run, *one) for one in runs.values()))))
    for name, r in runs.items():
        if name == "they wait":
            check("who waits is ended", r.status != 0 and len(r.said("kill")) >= 1, r)
        else:
            check(f"{name}: it goes on", r.status == 0 and not r.said("kill"), r)


# ---- what is lost ----

def with_steps(*args, **kw):
    """A machine so busy that the keeper did not come to give the process a book tells of no steps: then once more."""
    for _ in range(3):
        r = Run(*args, **kw)
        if '"step_count"' in world.plain(world.antifreeze, "export", r.dir, "--format", "jsonl").stdout:
            return r
    return r


def test_steps_lost():
    for saved, words in ((10, "2 steps lost: it was at step 12, and step 10 is saved"), (12, "0 steps lost: it was at step 12, and step 12 is saved"),
                         (0, "12 steps lost: nothing was saved"), (None, "12 steps lost: nothing was saved as far as can be seen")):
        r = with_steps(f"steps(12, {saved})\ngrow(400, 100)", "--grace", "2s", policy="protect")
        check(f"saved at {saved}: it is said what is lost", r.status == 75 and r.said("lost-steps") == [words], r)
    r = with_steps("hello()\nsteps(7)\ntell('saved 0 /x/y.pt')\ngrow(400, 100)", policy="protect")
    check("by the path where the step is not known", "it was at step 7; what it did since it saved /x/y.pt is lost" in r.said("lost-steps"), r)
    r = with_steps("hello()\ntell('event resume step=100: goes on after step 100')\nsteps(7)\ngrow(400, 100)", policy="protect")
    check("counted on from where it began", r.said("lost-steps") == ["7 steps lost: it was at step 107, and step 100 is saved"], r)
    r = Run("grow(400, 100)", policy="protect")
    check("no steps, no words", r.status == 75 and not r.said("lost-steps") and not r.said("unsaved"), r)


def test_unsaved_is_told_early():
    slow = "steps(30); time.sleep(2.5); grow(150, 200); grow(400, 12)"
    r = with_steps(slow, "--grace", "2s", policy="protect")
    told = r.said("unsaved")
    check("where nobody can save, that is told early", len(told) == 1 and "nothing of its 30 steps is saved" in told[0], r)
    ends = [at for at, event in enumerate(r.events) if event in ("interrupt", "kill")]
    check("before it is stopped", told and ends and r.events.index("unsaved") < ends[0], r)
    r = Run("hello('checkpoint')\n" + slow, "--grace", "2s", policy="protect")
    check("and not where somebody can", r.status == 75 and not r.said("unsaved"), r)


def test_zz_nothing_left():
    world.nothing_left()


def play_all(scenes):
    """They mostly wait, so four at a time."""
    alone = [scene for scene in scenes if "zz" in scene[0]]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(world.scene, [scene for scene in scenes if scene not in alone]))
    for scene in alone:
        world.scene(scene)


world.play(globals(), play_all)
