#!/usr/bin/python3
"""Runs rows of machines.py inside the virtual machine, one after the other: guest.py NAME...

Everything it needs lies beside it; what it records goes to /out/NAME. With `end NAME...` it only has those runs looked at
that the machine's last power cut left behind.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
from machines import every  # noqa: E402

BIN = "/var/tmp/corpus"  # on the machine's own disk: /share is the host's
CLEAN = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LANG": "C.UTF-8"}
CAP_S = 200


def install():
    os.makedirs(BIN, exist_ok=True)
    for name in ("antifreeze", "afz-trainer"):
        shutil.copy(os.path.join(HERE, name), BIN)


def spared(score):
    """This program outlives what it does to the machine, but for that what it starts must not."""
    if os.getuid() == 0:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(str(score))


def boxed(command, size):
    """Run inside of a cgroup that is not ours, as a container's would be."""
    return ["sh", "-c", "mkdir -p /sys/fs/cgroup/box && echo \"$1\" > /sys/fs/cgroup/box/memory.max && echo 0 > /sys/fs/cgroup/box/memory.swap.max; "
            "echo $$ > /sys/fs/cgroup/box/cgroup.procs && shift && exec \"$@\"", "sh", str(size), *command]


def record(name, options, command, more):
    folder = tempfile.mkdtemp(dir="/var/tmp")
    run = f"/out/{name}" if "cut" in more else os.path.join(folder, "run")
    env = {**CLEAN, "XDG_STATE_HOME": folder, **({"XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}"} if os.getuid() else {})}
    shutil.copy(os.path.join(BIN, "afz-trainer"), folder)
    if "before" in more:
        subprocess.run(["sh", "-c", more["before"]], check=True)
    whole = [os.path.join(BIN, "antifreeze"), "run", "--quiet", *options, "--run-dir", run, "--", *command]
    beside = subprocess.Popen(more["beside"], stderr=subprocess.DEVNULL, preexec_fn=lambda: spared(0)) if "beside" in more else None
    if "box" in more:
        whole = boxed(whole, more["box"])
    status = subprocess.run(whole, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=CAP_S, check=False,
                            preexec_fn=lambda: spared(0)).returncode  # noqa: PLW1509 - there are no threads
    if beside:
        beside.kill()
        beside.wait()
    os.makedirs(f"/out/{name}", exist_ok=True)
    for file in ("flight.afz", "verdict.json"):
        shutil.copyfile(os.path.join(run, file), f"/out/{name}/{file}")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["find", "/dev/shm", "-maxdepth", "1", "-type", "f", "-delete"], check=False)
    print(f"{name}: exit {status}", flush=True)


def main(names):
    install()
    spared(-900)
    if names[:1] == ["end"]:
        for name in names[1:]:
            said = subprocess.run([os.path.join(BIN, "antifreeze"), "why", "--json", f"/out/{name}"], env=CLEAN, stdout=subprocess.PIPE, check=True).stdout
            with open(f"/out/{name}/verdict.json", "wb") as file:
                file.write(said)
        return
    for name, _, options, command, more in every():
        if name in names:
            try:
                record(name, options, command, more)
            except (OSError, subprocess.SubprocessError) as error:
                print(f"{name}: {error}", flush=True)
            time.sleep(2)


if __name__ == "__main__":
    main(sys.argv[1:])
