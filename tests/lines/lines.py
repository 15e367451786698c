#!/usr/bin/env python3
"""Runs the set of programs under Antifreeze and holds what it says against what is true.

    lines.py ANTIFREEZE [--python PYTHON] [--out FILE] [--resume] [--jobs N] [--limit S] [--show aside] [WORD...]

A WORD chooses the programs with it in their name; `fast` those of make test, `aside` and `tuned` the two parts, `second` those that
were written after the first were known. Each is run alone (or N at a time), with a budget, in folders of its own; at most S seconds (180). The results go into FILE as JSON (lines.json), after each
program; with --resume, those there are not run again whose source, and the Antifreeze that ran them, is still the same. Of the programs that are set aside only the
sums are printed, unless --show aside is given. The exit status is 1 where less than 95 % are right.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from played import (Place, arguments, compiler_of, digest, earlier, interpreter, is_due, judge, keep, mark, place,  # noqa: E402
                    play_all)
from programs import INCLUDE, PROGRAMS  # noqa: E402

TARGET = .95  # of the programs that are ill: the right line


# Running ------------------------------------------------------------------------------------------------------------

def build(program, folder):
    """Compiles into that folder, and returns the command."""
    sources = [s for s in program.sources() if s.endswith((".c", ".cc"))]
    out = os.path.join(folder, os.path.basename(program.name))
    common = [compiler_of(sources[0]), *program.build, "-I", INCLUDE]
    if program.name == "c/plugin":
        library, sources = sources[0], sources[1:]
        subprocess.run([*common, "-shared", "-fPIC", library, "-o", os.path.join(folder, "filter.so")], check=True)
    subprocess.run([*common, *sources, "-o", out, "-pthread", "-ldl"], check=True)
    return [out]


def command(program, folder, python):
    if program.needs == "cc":
        return build(program, folder)
    modules = () if program.needs == "python" else (program.needs,)
    main = program.path if os.path.isfile(program.path) else os.path.join(program.path, "main.py")
    return [interpreter(modules, python), "-B", main]


def run(program, options):
    """One program, start to verdict."""
    with Place() as at:
        argv = command(program, at.at("work"), options.python)
        played = at.play(options.antifreeze, ["--budget", program.budget], argv, options.limit)
        at.keep(options.keep, program.name)
        return {**judge(program, played.record["verdicts"]), **played.told()}


# Telling ------------------------------------------------------------------------------------------------------------

def show(program, result):
    if "error" in result:
        print(f"{program.name:32} {result['error']}", flush=True)
        return
    print(f"{program.name:32} {mark(result['verdict_right']):7}{mark(result['line_right']):7}{result['seconds']:5.0f} s {result['peak_mb']:6} MB  "
          f"{result['said']:24} {place(result['where'])}", flush=True)


def summary(programs, results):
    """Of some programs: how many ran, and how many of what were right."""
    ran = [(p, results[p.name]) for p in programs if "verdict_right" in results.get(p.name, {})]
    ill = [r for p, r in ran if p.want != ("clean",)]
    return {"programs": len(programs), "ran": len(ran), "ill": len(ill), "verdict_right": sum(r["verdict_right"] for r in ill),
            "line_right": sum(r["line_right"] for r in ill), "both_right": sum(r["verdict_right"] and r["line_right"] for r in ill),
            "clean": len(ran) - len(ill), "alarms": sum(not r["verdict_right"] for p, r in ran if p.want == ("clean",))}


def table(programs, results):
    """As markdown. Returns the sums of all."""
    parts = {group: [p for p in programs if p.group == group] for group in dict.fromkeys(p.group for p in programs)}
    parts["tuned on"] = [p for p in programs if not p.aside]
    parts["set aside"] = [p for p in programs if p.aside]
    parts["all"] = programs
    print("\n| | ran | ill | right verdict | right line | both | clean | false alarms |\n" + "| --- " * 8 + "|")
    for name, part in parts.items():
        s = summary(part, results)
        print(f"| {name} | {s['ran']} of {s['programs']} | {s['ill']} | {s['verdict_right']} | {s['line_right']} | {s['both_right']} "
              f"| {s['clean']} | {s['alarms']} |")
    return s


def chosen(words):
    kinds = {"fast": lambda p: p.fast, "aside": lambda p: p.aside, "tuned": lambda p: not p.aside, "second": lambda p: p.second}
    return [p for p in PROGRAMS if not words or any(kinds[w](p) if w in kinds else w in p.name for w in words)]


def play(programs, options):
    results = earlier(options.out) if options.resume else {}
    sums = {p.name: digest(p, options.antifreeze, p.budget, p.build) for p in programs}
    due = [p for p in programs if is_due(results, p.name, sums[p.name])]

    def done(number, program, result):
        results[program.name] = {"digest": sums[program.name], "aside": program.aside, **result}
        keep(options.out, {"target": TARGET, "all": summary(PROGRAMS, results),
                           "set_aside": summary([p for p in PROGRAMS if p.aside], results), "results": results})
        if sys.stderr.isatty():
            print(f"\r[{number} of {len(due)}] {program.name}\033[K\r", end="", file=sys.stderr, flush=True)

    play_all(due, lambda program: run(program, options), options.jobs, done)
    for program in programs:
        if program.aside and options.show != "aside":
            print(f"{program.name:32} {results[program.name].get('error', 'set aside')}", flush=True)
        else:
            show(program, results[program.name])
    return results


def main():
    parser = arguments(__doc__, "lines.json")
    parser.add_argument("antifreeze")
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--limit", type=float, default=180)
    parser.add_argument("--show", choices=["tuned", "aside"], default="tuned")
    options = parser.parse_intermixed_args()
    options.antifreeze = os.path.abspath(options.antifreeze)
    programs = chosen(options.words)
    sums = table(programs, play(programs, options))
    if sums["ill"] and sums["both_right"] < TARGET * sums["ill"] or sums["alarms"]:
        sys.exit(f"{sums['both_right']} of {sums['ill']} right, {sums['alarms']} false alarms; the target is {TARGET:.0%}, and none")


if __name__ == "__main__":
    main()
