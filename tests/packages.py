#!/usr/bin/env python3
"""Installs the Debian package and the wheel into a bare Debian, and uses them there as an ordinary user does.

usage: packages.py FOLDER   (that `make deb wheel` put them into; the bare Debian is made there once, from the distribution's mirror)
"""
import glob
import os
import re
import subprocess
import sys

from bare_root import USER, Root, can_have_one, make_base
from scenario import Checks

PACKAGES = "python3-venv,python3-numpy,man-db,bash-completion"
CHECKS = Checks(deadline=600)
check = CHECKS.check

LEARN = """
import antifreeze, numpy
numpy.save("/tmp/x.npy", numpy.arange(4096, dtype="float32").reshape(1024, 4))
batches = [batch.copy() for batch in antifreeze.Loader(PATH, batch=64)]
print(len(batches), sum(float(b.sum()) for b in batches))
"""


def used(root, where, python, lines):
    """What both must do; `where` is the folder that they were installed under."""
    antifreeze = where + "/bin/antifreeze"
    r = root.call(antifreeze, "--version")
    check(f"{where}: --version finds every part", r.returncode == 0 and "not found" not in r.stdout and r.stdout.count(where + "/") == 5, r)
    r = root.call(antifreeze, "doctor")
    check(f"{where}: doctor tries the probe", re.search(r"ok +probe +tried", r.stdout), r)
    r = root.call(antifreeze, "run", "--", "true")
    check(f"{where}: run", r.returncode == 0 and "may use" in r.stderr, r)
    r = root.call(antifreeze, "run", "-q", "--", python, "-c", "import sys; print('_antifreeze' in sys.modules)")
    check(f"{where}: the agent comes into Python", r.stdout == "True\n", r)
    r = root.call(antifreeze, "demo", "retain-history")
    check(f"{where}: demo", re.search(r"^antifreeze: leak: .* allocated at .*" + lines, r.stderr, re.M), r.stderr[-2000:])
    r = root.call(python, "-c", LEARN.replace("PATH", "'/tmp/x.npy'"))
    check(f"{where}: the loader reads .npy", r.stdout == "16 8386560.0\n", r)
    r = root.call(antifreeze, "convert", "--quiet", "/tmp/x.npy", "/tmp/x.zarr")
    check(f"{where}: convert", r.returncode == 0, r)
    r = root.call(python, "-c", LEARN.replace("PATH", "'/tmp/x.zarr'"))
    check(f"{where}: the loader reads Zarr", r.stdout == "16 8386560.0\n", r)
    r = root.call("man", "-P", "cat", where + "/share/man/man1/antifreeze.1")
    r = r if r.returncode == 0 else root.call("man", "-P", "cat", "antifreeze")
    check(f"{where}: the manual page", "keep a training job from freezing" in r.stdout, r)
    complete = f"source {where}/share/bash-completion/completions/antifreeze && complete -p antifreeze"
    r = root.call("bash", "-c", complete)
    check(f"{where}: completion", r.returncode == 0 and "antifreeze" in r.stdout, r)


def left_in(root, folder):
    """Files; pip leaves empty folders behind."""
    return [path for path in glob.glob(f"{root.path}{folder}/**", recursive=True)
            if "antifreeze" in path.removeprefix(root.path) and not os.path.isdir(path)]


def test_deb(base, folder):
    deb = glob.glob(folder + "/antifreeze_*.deb")[0]
    r = subprocess.run(["lintian", "--fail-on", "error,warning", deb], capture_output=True, text=True, check=False)
    check("lintian has nothing to say", r.returncode == 0, r.stdout + r.stderr)
    with Root(base, folder + "/deb-root") as root:
        package = root.bring(deb)
        install = f"apt-get -qq -o APT::Install-Recommends=true install -y {package}"
        r = root.call("sh", "-c", f"{install} || {{ apt-get -qq update && {install}; }}", user="root")
        check("apt installs it", r.returncode == 0, r)
        used(root, "/usr", "/usr/bin/python3", r"pitfalls\.c:\d+ in keep\(\)")
        r = root.call("apt-get", "-qq", "purge", "-y", "antifreeze", user="root")
        check("and removes it", r.returncode == 0 and left_in(root, "/usr") == [], (r, left_in(root, "/usr")))


def test_wheel(base, folder):
    with Root(base, folder + "/wheel-root") as root:
        wheel = root.bring(glob.glob(folder + "/antifreeze-*.whl")[0])
        venv = f"/home/{USER}/venv"
        r = root.call("python3", "-m", "venv", "--system-site-packages", venv)
        check("a virtual environment", r.returncode == 0, r)
        before = left_in(root, venv)
        r = root.call(venv + "/bin/pip", "install", "--no-index", wheel)
        check("pip installs it", r.returncode == 0, r)
        # Without libdw, functions are named, and neither lines nor what was inlined.
        used(root, venv, venv + "/bin/python", r"retain_history\(\) in antifreeze")
        r = root.call(venv + "/bin/pip", "uninstall", "-y", "antifreeze")
        check("and removes it", r.returncode == 0 and left_in(root, venv) == before, (r, left_in(root, venv)))


def main():
    folder = os.path.abspath(sys.argv[1])
    if not can_have_one():
        print("skipped: to install packages into a bare Debian takes root and mounts of one's own")
        return
    base = make_base(folder + "/base", PACKAGES, options=["--skip=cleanup/apt/lists"])
    test_deb(base, folder)
    test_wheel(base, folder)
    CHECKS.finish()


main()
