"""One part of a row, run: under `protect`, under `adapt`, or `bare`, without Antifreeze, where that is safe."""
import os
import subprocess
import sys
import time

import beats
import played
from row import CLEAN, FAILED, FINISHED, HERE, STOPPED, allowed

POLICIES = ("protect", "adapt")
IDLE_S = 2  # of beats before the program starts
READY_S = 60  # for what is started beside it
QUIET_DEEDS = {"tell", "brake", "squeeze", "shrink", "interrupt", "terminate", "kill", "restart"}  # what a clean run sees nothing of


def parts_of(row):
    """What is run of a row on this machine: its policies, and bare where it is clean and so harmless."""
    if not row.is_here:
        return []
    return ["protect", *(["adapt"] if row.adapt else []), *(["bare"] if row.is_clean and row.protect == FINISHED else [])]


def wanted(row, part):
    return row.want_adapt if part == "adapt" and row.want_adapt else row.want


# What it needs ------------------------------------------------------------------------------------------------------

def has_gpu():
    return os.path.exists("/dev/nvidiactl")


def may_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


THINGS = {"gpu": (has_gpu, "NVIDIA GPU"), "fuse": (lambda: os.path.exists("/dev/fuse"), "/dev/fuse"), "mount": (may_mount, "right to mount")}


def filled(words, options):
    return [word.replace("{build}", options.build).replace("{zoo}", HERE) for word in words]


def compiled(sources, out, *flags):
    subprocess.run([played.compiler_of(sources[0]), "-O2", "-g", *flags, *sources, "-o", out, "-pthread"], check=True)
    return out


def command(row, folder, options):
    """The command; raises Missing where something that it needs is not here."""
    patience = ["timeout", "-s", "KILL", str(row.given_up_s)] if row.given_up_s else []
    return [*patience, *program(row, folder, options)]


def program(row, folder, options):
    for need in row.needs:
        if need in THINGS and not THINGS[need][0]():
            raise played.Missing(THINGS[need][1])
    for name in row.libraries:
        compiled([os.path.join(os.path.dirname(row.path), name)], os.path.join(folder, name.rsplit(".", 1)[0] + ".so"), "-shared", "-fPIC")
    arguments = filled(row.arguments, options)
    if row.language == "trainer":
        return [os.path.join(options.build, "demo", "afz-trainer"), *arguments]
    if row.language == "cc":
        return [compiled([row.path], os.path.join(folder, os.path.basename(row.name))), *arguments]
    modules = [need for need in row.needs if need not in THINGS]
    if row.language != "python":
        modules.insert(0, row.language)
    return [played.interpreter(tuple(modules), options.python), "-B", row.path, *arguments]


# What is beside it --------------------------------------------------------------------------------------------------

class Beside:
    """The program that a row wants beside it, if any."""

    def __init__(self, row, folder):
        self.process = None
        if row.beside:
            argv = [sys.executable, "-B", os.path.join(os.path.dirname(row.path), row.beside), folder]
            self.process = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            if not self.process.stdout.readline():
                raise RuntimeError(f"{row.beside} ended with {self.process.wait()} before it was ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            played.end(self.process)


class Desktop:
    """The lab's stand-in for a desktop: how late its beats come tells what the machine feels."""

    def __init__(self, folder, build):
        program = os.path.join(build, "lab", "lab-desktop")
        if not os.path.exists(program):
            raise played.Missing(f"{program}: `make zoo` builds it; it is not")
        self.board = os.path.join(folder, "beats")
        self.process = subprocess.Popen([program, self.board, os.path.join(folder, "desktop")], stdin=subprocess.DEVNULL)

    def __enter__(self):
        give_up = time.monotonic() + READY_S
        while not (so_far := beats.read(self.board)) or so_far[-1][0] - so_far[0][0] < IDLE_S * 10**9:
            if time.monotonic() > give_up or self.process.poll() is not None:
                raise RuntimeError("lab-desktop does not beat")
            time.sleep(.2)
        self.start_ns = time.monotonic_ns()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def figures(self, tier):
        """From when it was ready until now, held against the idle time before."""
        noted = beats.read(self.board)
        idle = beats.figures(noted, noted[0][0], self.start_ns)["worst_ms"]
        busy = beats.figures(noted, self.start_ns, time.monotonic_ns())
        late, stalled = beats.promised(tier)
        later = max(0., round(busy["worst_ms"] - idle, 1))
        return {"idle_ms": idle, "later_ms": later, "stalled_s": busy["stalled_s"], "kept": later <= late and busy["stalled_s"] <= stalled}


# Running ------------------------------------------------------------------------------------------------------------

def how(code):
    return {0: FINISHED, 75: STOPPED}.get(code, FAILED)


def examined(row, part, verdicts):
    """Verdict and line; where no line is marked, none is looked for."""
    class Asked:
        name, want, sources = row.name, wanted(row, part), row.sources
    found = played.judge(Asked, verdicts)
    if row.functions:
        found["line_right"] = bool(found["where"]) and found["where"].get("function") in row.functions
    elif not any(played.marks(row)) or (part == "adapt" and row.adapt == FINISHED and not found["where"]):
        found["line_right"] = None  # what went through in parts failed at no line
    return found


def guarded(row, part, at, options):
    argv = command(row, at.at("work"), options)
    words = ["--policy", part, "--budget", row.budget, *filled(row.options, options)]
    with Beside(row, at.at("work")), Desktop(at.folder.name, options.build) as desktop:
        run = at.play(options.antifreeze, words, argv, row.limit_s * options.patience)
        felt = desktop.figures(run.record["tier"])
    at.keep(options.keep, f"{row.name} {part}")
    deeds = {deed: times for deed, times in run.record["did"].items() if times and deed in QUIET_DEEDS}
    ended = how(run.code)
    result = {**examined(row, part, run.record["verdicts"]), "ended": ended, "end_right": ended in allowed(getattr(row, part)),
              "deeds": deeds, **felt, "cost": run.record["cost"]["cpu_fraction"], "attempts": run.record["attempts"], **run.told()}
    if wanted(row, part) == CLEAN and row.is_clean and deeds:
        result["verdict_right"] = False  # it was left alone, or it was not clean
    return result


def bare(row, at, options):
    """The clean form without us: how long it takes."""
    argv = command(row, at.at("work"), options)
    with Beside(row, at.at("work")):
        start = time.monotonic()
        process = at.start(argv)
        played.follow(process, options.antifreeze, row.limit_s * options.patience)
        took = time.monotonic() - start
    return {"seconds": round(took, 1), "ended": how(process.returncode), "end_right": process.returncode == 0,
            "tail": at.output()[-2000:] if process.returncode else ""}


def play(row, part, options):
    with played.Place() as at:
        for setting in filled(row.environment, options):
            name, _, value = setting.partition("=")
            at.env[name] = value
        if row.within:
            at.within = ["sh", os.path.normpath(os.path.join(os.path.dirname(row.path), row.within))]
        if "gpu" in row.needs:
            at.env.pop("CUDA_VISIBLE_DEVICES", None)
        at.env["PYTHONPATH"] = os.path.join(options.build, "python")
        at.env["ANTIFREEZE_LOADER"] = os.path.join(options.build, "loader", "libantifreeze-loader.so")
        return bare(row, at, options) if part == "bare" else guarded(row, part, at, options)
