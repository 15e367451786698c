#!/usr/bin/env python3
"""`make install` into an empty DESTDIR: all of it is there and found, and `make uninstall` takes all of it away again.

usage: test_install.py PATH/TO/antifreeze ...   (the other programs are named only so that they are built)
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from scenario import Checks, World

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.dirname(os.path.abspath(sys.argv[1]))
CHECKS = Checks(deadline=60)
check = CHECKS.check

PARTS = ("probe", "agent", "loader", "convert", "manual")
FILES = ("bin/antifreeze", "include/antifreeze/loader.h", "include/antifreeze/step.h", "libexec/antifreeze/antifreeze-convert",
         "libexec/antifreeze/libantifreeze-convert.so",
         "share/bash-completion/completions/antifreeze", "share/fish/vendor_completions.d/antifreeze.fish",
         "share/zsh/site-functions/_antifreeze", "share/man/man1/antifreeze.1")


def files_in(folder):
    return sorted(os.path.relpath(path, folder) for path in glob.glob(folder + "/**", recursive=True) if not os.path.isdir(path))


def modules_in(folder):
    return [name for name in files_in(folder) if name.endswith(".py")]


def told_version(world, antifreeze):
    """The version, and what is told of each part."""
    first, *rest = world.call(antifreeze, "--version").stdout.splitlines()
    return first, dict(re.split(" +", line, maxsplit=1) for line in rest)


def test_installed(world, prefix, version):
    first, parts = told_version(world, prefix + "/bin/antifreeze")
    check("the version is that of meson.build", first == f"antifreeze {version}", first)
    for name in PARTS:
        path = parts.get(name, "")
        check(f"{name} is found where it was installed", os.path.realpath(path).startswith(prefix + "/"), path)
    check("each codec and libdw is told of", all(re.search(r"\d|left out", parts.get(name, "")) for name in ("codecs", "libdw")), parts)
    there = files_in(prefix)
    check("nothing is missing", set(FILES) <= set(there), sorted(set(FILES) - set(there)))
    ours = modules_in(ROOT + "/python/antifreeze")
    check("of the agent neither", modules_in(prefix + "/share/antifreeze/python/antifreeze") == ours, ours)
    r = world.call(prefix + "/bin/antifreeze", "run", "--", "true")
    check("it runs", r.returncode == 0 and "may use" in r.stderr, r)


def test_alone(world, version):
    """One file, without its parts: says so."""
    alone = world.at("antifreeze")
    shutil.copy(sys.argv[1], alone)
    first, parts = told_version(world, alone)
    # What a whole installation in the same prefix has would be found, and that is right.
    check("alone it knows its version", first == f"antifreeze {version}", first)
    check("and says of each part whether it is there", all(parts.get(name) == "not found" or os.path.isfile(parts.get(name, ""))
                                                           for name in PARTS), parts)
    with open("/dev/full", "w", encoding="utf-8") as full:
        r = subprocess.run([alone, "--version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    check("a version that cannot be written is a failure", r.returncode == 2 and "stdout" in r.stderr, r)


def main():
    with open(ROOT + "/meson.build", encoding="utf-8") as file:
        version = re.search(r"version: '(.+)'", file.read())[1]
    with World() as world, tempfile.TemporaryDirectory() as stage:
        # Meson keeps its list in the build folder; another test that installs would write it anew.
        r = subprocess.run([*os.environ.get("MESON", "meson").split(), "install", "-C", BUILD, "--no-rebuild", "--destdir", stage],
                           capture_output=True, text=True, check=False)
        check("meson install", r.returncode == 0, r.stdout + r.stderr)
        listed = world.at("installed.txt")
        shutil.copy(BUILD + "/meson-logs/install-log.txt", listed)
        found = glob.glob(stage + "/**/bin/antifreeze", recursive=True)
        check("there is a program", len(found) == 1, found)
        for program in found:
            test_installed(world, os.path.dirname(os.path.dirname(program)), version)
        r = world.call(ROOT + "/tools/uninstall", listed)
        check("uninstall leaves nothing", r.returncode == 0 and files_in(stage) == [], (r.stderr, files_in(stage)))
        left = glob.glob(stage + "/**/antifreeze", recursive=True)
        check("nor a folder of ours", left == [], left)
        test_alone(world, version)
    CHECKS.finish()


main()
