#!/usr/bin/env python3
"""Checks what a compiler does not: format, scripts, lengths, words, layers, generated files.

usage: tools/lint.py BUILD_FOLDER
       tools/lint.py --list-c          print the C files, for `make format`

Each check yields one line a problem. To add one, write it and name it in CHECKS.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FUNCTION_LINES = 80  # longer, and a reader no longer has it on one screen
FILE_LINES = 600  # a file has one job
LEFT_OVER = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")  # split, or this file would find itself
RECORDED = ("tests/fixtures/", "tests/fuzz/corpus/", "tests/corpus/recordings/", "LICENSE")  # not ours to tidy
GENERATED = {"docs/metrics.md": ["watch", "--metrics"]}  # file in the tree: arguments of antifreeze that print it


def all_files():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if f not in (".git", "__pycache__") and not f.startswith("build"))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), ROOT)
            if not path.endswith((".pyc", ".png")) and not path.startswith(RECORDED):
                yield path


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def c_files():
    return [path for path in all_files() if path.endswith((".c", ".h"))]


def is_shell(path):
    """A script that is run; what it sources is checked with it."""
    return re.match(r"#!\S*(?:/| )(?:ba|da|)sh\b", text_of(path)) is not None


def output_lines(command):
    """What a checker that fails has to say."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return [] if result.returncode == 0 else result.stdout.splitlines() or [f"{command[0]} failed"]


def check_format(_build):
    lines = output_lines(["clang-format-14", "--dry-run", "-Werror", *c_files()])
    for path in dict.fromkeys(line.split(":")[0] for line in lines if ": error:" in line):
        yield f"{path}: not as .clang-format has it (make format)"
    if lines and not any(": error:" in line for line in lines):
        yield from lines


def check_shell(_build):
    yield from output_lines(["shellcheck", "--format=gcc", "--external-sources", "--source-path=SCRIPTDIR",
                             *filter(is_shell, all_files())])


def check_python(_build):
    for path in all_files():
        if path.endswith(".py"):
            try:
                compile(text_of(path), path, "exec")
            except SyntaxError as error:
                yield f"{path}:{error.lineno}: {error.msg}"


def check_lengths(_build):
    for path in c_files():
        start, lines = None, text_of(path).splitlines()
        if len(lines) > FILE_LINES:
            yield f"{path}: {len(lines)} lines; {FILE_LINES} are allowed"
        for number, line in enumerate(lines, 1):
            if line == "{":  # only functions open in the first column
                start = number
            elif line.startswith("}") and start:
                if number - start + 1 > FUNCTION_LINES:
                    yield f"{path}:{start}: a function of {number - start + 1} lines; {FUNCTION_LINES} are allowed"
                start = None


def check_text(_build):
    for path in all_files():
        text = text_of(path)
        if text and not text.endswith("\n"):
            yield f"{path}: no newline at the end"
        for number, line in enumerate(text.split("\n"), 1):
            if LEFT_OVER.search(line):
                yield f"{path}:{number}: unfinished: {line.strip()}"
            if line != line.rstrip():
                yield f"{path}:{number}: trailing space"


def check_threads(_build):
    """Threads are made only where the thread sanitizer looks: the rows with 'threads' in tests/meson.build."""
    for path in c_files():
        if path.startswith("src/") and re.search(r"\b(?:pthread|thrd)_create\b", text_of(path)):
            yield f"{path}: makes a thread; name the tests of this folder in tests/meson.build as such, and then this folder here"


def check_layers(build):
    yield from output_lines([sys.executable, "tests/test_layers.py", build])


def check_wired(_build):
    """Every test is run by somebody."""
    for path in all_files():
        match = re.fullmatch(r"(tests|tests/fuzz)/((?:test|fuzz)_(\w+))\.(c|sh|py)", path)
        if match and path != "tests/test_layers.py":
            word = f"'{match[3]}'" if match[4] == "c" else f"'{match[2]}.{match[4]}'"
            if word not in text_of(match[1] + "/meson.build"):
                yield f"{path}: no row in {match[1]}/meson.build"


def check_generated(build):
    for path, arguments in GENERATED.items():
        command = [os.path.join(build, "antifreeze"), *arguments]
        made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if made.returncode != 0 or not os.path.exists(path) or made.stdout != text_of(path):
            yield f"{path}: out of date: {' '.join(command)} > {path}"


CHECKS = [check_format, check_shell, check_python, check_lengths, check_text, check_wired, check_threads, check_layers,
          check_generated]


def main(build):
    problems = 0
    for check in CHECKS:
        for problem in check(build):
            print(problem)
            problems += 1
    print(f"lint: {len(CHECKS)} checks, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    BUILD = os.path.abspath(sys.argv[1])
    os.chdir(ROOT)
    if sys.argv[1] == "--list-c":
        print("\n".join(c_files()))
    else:
        sys.exit(main(BUILD))
