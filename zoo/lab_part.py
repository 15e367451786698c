"""The part of a row that is run in the freeze lab's virtual machine, where a program may do its worst: guarded, and without a guard."""
import json
import os
import subprocess
import sys
import tempfile

import played
from play import examined, how
from row import HERE

LAB = os.path.join(HERE, "..", "lab", "lab")


def cells_of(row):
    return {"guarded": row.cell, "unguarded": "none/" + row.cell.partition("/")[2]}


def told(run):
    if "error" in run:
        raise RuntimeError(f"the lab: {run['error']}")
    return {"ended": how(run["status"]) if run["ended"] else "never", "seconds": run["after_s"], "later_ms": run["late_ms"],
            "stalled_s": run["stalled_s"], "else_died": run["else_died"], "noisy": run["noisy"]}


def play(row, options):
    """{"guarded": ..., "unguarded": ...}; and the verdict, where the row is nowhere else."""
    cells = cells_of(row)
    with tempfile.TemporaryDirectory(prefix="afz-zoo-lab-") as folder:
        out = os.path.join(folder, "lab.json")
        words = [word for cell in cells.values() for word in ("--cell", cell)]
        done = subprocess.run([sys.executable, "-B", LAB, "--build", options.build, "--json", out, *words], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise played.Missing(f"freeze lab ({done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode})")
        with open(out, encoding="utf-8") as file:
            found = {cell["cell"]: cell for cell in json.load(file)["cells"]}
    guarded, unguarded = (found[cell] for cell in cells.values())
    result = {"guarded": told(guarded["runs"][0]), "unguarded": told(unguarded["runs"][0]), "missed": guarded["missed"]}
    if not row.is_here:
        if not guarded["runs"][0]["verdict"]:
            raise RuntimeError("the lab: there is no verdict, which is not the same as a clean one")
        result.update(examined(row, "protect", guarded["runs"][0]["verdict"]["verdicts"]), line_right=None,
                      end_right=result["guarded"]["ended"] == row.protect)
    return result
