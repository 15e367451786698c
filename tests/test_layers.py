#!/usr/bin/env python3
"""The folders under src/ use each other as ARCHITECTURE.md says, and the build refuses anything else.

usage: test_layers.py BUILD_FOLDER

The table of ARCHITECTURE.md and the meson.build of each folder must agree. Then, for each folder and each folder
that it may not use, a file that includes a header from there is compiled with the first folder's own flags: it must
not compile, while the same file with a header that is allowed must.
"""
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SRC = os.path.join(ROOT, "src")
BUILD = None
# C17 and POSIX; not taken from the machine, so that the answer is the same on all of them
LIBC_HEADERS = {name + ".h" for name in """
    aio assert complex cpio ctype dirent dlfcn errno fcntl fenv float fmtmsg fnmatch ftw glob grp iconv inttypes iso646
    langinfo libgen limits locale malloc math monetary mqueue ndbm netdb nl_types poll pthread pwd regex sched search
    semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string
    strings stropts syslog tar termios tgmath threads time trace uchar ulimit unistd utime utmpx wchar wctype wordexp
    """.split()}


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def layers():
    """The folders, in the order in which they are built."""
    listed = re.search(r"foreach layer : \[(.*?)\]", read(SRC, "meson.build"), re.S)[1]
    return re.findall(r"'(\w+)'", listed)


def closure(uses):
    """What each folder may use at one remove or more."""
    def reach(folder):
        return uses[folder].union(*map(reach, uses[folder]))
    return {folder: reach(folder) for folder in uses}


def uses_in_table():
    """Rows `| `src/x` | its one job | may use |` of ARCHITECTURE.md."""
    rows = re.findall(r"^\| *`src/(\w+)`? *\|[^|\n]*\|([^|\n]*)\|", read(ROOT, "ARCHITECTURE.md"), re.M)
    names = [name for name, _ in rows]
    uses = {}
    for name, cell in rows:
        words = set(re.findall(r"\w+", cell))
        uses[name] = set(names) - {name} if "all" in words else words & set(names)
    return uses


def uses_in_build():
    uses = {}
    for folder in layers():
        exported = read(SRC, folder, "meson.build").partition("declare_dependency(")[2]
        uses[folder] = set(re.findall(r"\b(\w+)_dep\b", exported)) & set(layers())
    return uses


def headers(folder):
    return sorted(map(os.path.basename, glob.glob(os.path.join(SRC, folder, "*.h"))))


def tell_tale(folder):
    """A header that only this folder can have given: none that the system might offer in its place."""
    return next(name for name in headers(folder) if not os.path.exists(f"/usr/include/{name}")
                and name not in LIBC_HEADERS)


def flags_of(folder):
    """Directory and command line of one compiled file of a folder's library, without the file and the output."""
    for entry in json.loads(read(BUILD, "compile_commands.json")):
        if f"libafz-{folder}.a.p" in entry.get("output", entry["command"]):
            words = shlex.split(entry["command"])
            kept, skip = [], False
            for word in words:
                if skip:
                    skip = False
                elif word in ("-o", "-MF", "-MQ"):
                    skip = True
                elif word not in ("-c", "-MD", entry["file"]):
                    kept.append(word)
            return entry["directory"], kept
    raise AssertionError(f"nothing of src/{folder} is in compile_commands.json")


class Layers(unittest.TestCase):
    def test_every_folder_is_a_layer(self):
        folders = {name for name in os.listdir(SRC) if os.path.isdir(os.path.join(SRC, name))}
        self.assertEqual(folders, set(layers()))

    def test_table_and_build_agree(self):
        self.assertEqual(closure(uses_in_table()), closure(uses_in_build()))

    def test_includes_are_bare_names(self):
        for path in glob.glob(os.path.join(SRC, "*", "*.[ch]")):
            with self.subTest(path):
                self.assertEqual(re.findall(r'^\s*#\s*include\s*"[^"\n]*/[^"\n]*"', read(path), re.M), [])

    def test_header_names_are_unique(self):
        """Else which one is meant would depend on the order of the include paths."""
        names = [name for folder in layers() for name in headers(folder)]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_no_header_is_called_like_one_of_libc(self):
        """src/x/limits.h would be taken for <limits.h> in every folder that may use x."""
        for folder in layers():
            self.assertEqual(set(headers(folder)) & LIBC_HEADERS, set(), f"src/{folder}")

    def compiles(self, folder, header):
        directory, command = flags_of(folder)
        with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
            file.write(f'#include "{header}"\n')
            file.flush()
            result = subprocess.run([*command, "-w", "-fsyntax-only", file.name], cwd=directory, text=True,
                                    capture_output=True, check=False)
        if result.returncode != 0:
            self.assertRegex(result.stderr, rf"{re.escape(header)}\W+(?:No such file|file not found)")
        return result.returncode == 0

    def test_the_build_refuses_what_is_not_allowed(self):
        reach = closure(uses_in_build())
        for folder in layers():
            for other in layers():
                header = tell_tale(other)
                with self.subTest(folder=folder, includes=header):
                    self.assertEqual(self.compiles(folder, header), other == folder or other in reach[folder])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
