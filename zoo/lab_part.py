"""The part of a row that is run in the freeze lab's virtual machine, where a program may do its worst: guarded, and without a guard."""
import json
import os
import subprocess
import sys
import tempfile

import played
from cells import JOBS, parse
from play import examined, how
from row import HERE, allowed

LAB = os.path.join(HERE, "..", "lab", "lab")
NO_MACHINE = 2  # its exit status
CAP_S = 120  # of a job that has no end; those that have one take less, in an emulated machine on a busy host as well


def cells_of(row):
    return {"guarded": row.cell, "unguarded": "none/" + row.cell.partition("/")[2]}


def digest(row, options):
    """Changes with the row's job in the lab, too."""
    return played.digest(row, options.antifreeze, row, JOBS[parse(row.cell).job])


def told(run):
    if "error" in run:
        raise RuntimeError(f"the lab: {run['error']}")
    return {"ended": how(run["status"]) if run["ended"] else "never", "seconds": run["after_s"], "later_ms": run["late_ms"],
            "stalled_s": run["stalled_s"], "else_died": run["else_died"], "noisy": run["noisy"]}


def result_of(row, cells):
    """{"guarded": ..., "unguarded": ...}; and the verdict, where the row is nowhere else. `cells` is what the lab found, by name."""
    guarded, unguarded = (cells[cell] for cell in cells_of(row).values())
    with_us, verdict = told(guarded["runs"][0]), guarded["runs"][0]["verdict"]
    if with_us["ended"] == "never" and with_us["noisy"]:
        raise played.Late(f"the lab: not at its end after {CAP_S} s, on a busy host")
    result = {"guarded": with_us, "unguarded": told(unguarded["runs"][0]), "missed": guarded["missed"],
              "end_right": with_us["ended"] in allowed(row.protect)}
    if not row.is_here:
        if not verdict:
            raise RuntimeError("the lab: there is no verdict, which is not the same as a clean one")
        result.update(examined(row, "protect", verdict["verdicts"]), line_right=None)
    return result


def lines_of(words):
    """What the lab says of its progress, passed on; raises Missing with its last line where it has no machine, RuntimeError where it failed."""
    last = ""
    with subprocess.Popen([sys.executable, "-B", LAB, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr:
                print(f"    {line.rstrip()}", file=sys.stderr, flush=True)
                last = line.strip() or last
                yield line
        except BaseException:
            process.terminate()
            raise
    if process.returncode == NO_MACHINE:
        raise played.Missing(f"freeze lab ({last})")
    if process.returncode != 0:
        raise RuntimeError(f"the lab ended with {process.returncode}; the last it said: {last}")


def found_in(path):
    """{cell: what was found} of those that have run."""
    try:
        with open(path, encoding="utf-8") as file:
            return {cell["cell"]: cell for cell in json.load(file)["cells"] if cell["runs"]}
    except FileNotFoundError:
        return {}


def fail(error):
    raise error


def play_all(rows, options):
    """(row, its result) as each comes to its end; all in one run of the lab, whose machines take a while to start."""
    left = list(rows)
    with tempfile.TemporaryDirectory(prefix="afz-zoo-lab-") as folder:
        out = os.path.join(folder, "lab.json")
        words = [word for row in rows for cell in cells_of(row).values() for word in ("--cell", cell)]
        words += ["--keep", options.keep] if options.keep else []
        why = RuntimeError("the lab: its machine ended before there was a result")
        try:
            # Tried once: a host that is busy stays so, and what that does to the figures is told with them.
            for _ in lines_of(["--build", options.build, "--json", out, "--cap", str(CAP_S), "--tries", "1", *words]):
                cells = found_in(out)
                for row in [row for row in left if set(cells_of(row).values()) <= set(cells)]:
                    left.remove(row)
                    yield row, played.or_say(result_of, row, cells)
        except (played.Missing, RuntimeError) as error:
            why = error
    yield from ((row, played.or_say(fail, why)) for row in left)
