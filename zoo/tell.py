"""What the zoo found, as lines while it runs, as sums, and as the page docs/zoo.md."""
from play import POLICIES, parts_of
from played import mark, place

HEAD = ("program", "what is true", "verdict", "line", "under protect", "under adapt", "the machine's beat", "cost, of a core",
        "seconds with, without us", "in the lab's machine: with, without us")
INTRO = """# The zoo

Every example of the seed documents as a real program, and those causes that they only name, each run under Antifreeze by `make zoo`,
which made this page. [`zoo/`](../zoo/) has the programs; what is expected of each stands in its rows (`zoo/rows_*.py`). Programs and
judges were mended until they agreed, so this is no blind score: how often programs that were never heard before are called by their right
name stands in [bench/RESULTS.md](../bench/RESULTS.md#verdicts). Rows with a GPU come from another machine, with an H200, and may be of an
earlier build. An empty cell was not run.

- **The program is judged, not the label that it came with.** Forms: `written` is the seed's own code and the least that makes it a
  training; `shown` is scaled or repaired, so that its trouble is real within a minute; `correct` is truly correct; `loader` is the same
  with `antifreeze.Loader`. What is said of a correct form is `clean`: no verdict, no deed, no word.
- **verdict, line**: of both policies. The line is the one marked in the source; "-" where there is none to be named.
- **under protect, under adapt**: how it ended, and after how many seconds. *stopped* is by Antifreeze, before the machine felt it.
- **the machine's beat**: a stand-in for a desktop touches 192 MB every 50 ms; how much later than on the idle machine before the worst
  beat came. Kept: at most 100 ms.
- **cost**: processor time of all of Antifreeze, of one core.
- **in the lab's machine**: a virtual one of 1 GiB ([`lab/`](../lab/)), where a program may do its worst: how much later than on the idle machine
  the worst beat came, and how it ended, with Antifreeze and without. *never*: it was still running after two minutes. *noisy*: other programs of the
  host took time from that machine, so that the beat says little.
"""


def found(row, results):
    """{part: result} of those that ran."""
    return {part: results[f"{row.name} {part}"] for part in (*parts_of(row), "vm")
            if "error" not in results.get(f"{row.name} {part}", {"error": ""})}


def is_right(result):
    return (result.get("verdict_right", True) and result.get("line_right") is not False and result.get("end_right", True)
            and not (result.get("missed") and not result["guarded"]["noisy"]))


def show(key, result):
    if "error" in result:
        return f"{key:44} {result['error'].strip()}"
    if "guarded" in result:
        return f"{key:44} {lab_words(result)}"
    if "said" not in result:
        return f"{key:44} {result['ended']:9}{result['seconds']:5.0f} s" + (f"\n{result['tail']}" if result["tail"] else "")
    more = [] if result["end_right"] else ["WRONG end"]
    more += [f"deeds {result['deeds']}"] if result["deeds"] and not result["verdict_right"] else []
    return (f"{key:44} {result['ended']:9}{result['seconds']:5.0f} s {result['peak_mb']:6} MB  verdict {mark(result['verdict_right'])}, "
            f"line {mark(result['line_right'])}, beat +{result['later_ms']:.0f} ms: {result['said']} {place(result['where'])} {' '.join(more)}").rstrip()


def lab_words(result):
    with_us, without = result["guarded"], result["unguarded"]
    return f"{'' if result['end_right'] else '**wrong** end: '}{lab_side(with_us)}; {lab_side(without)}"


def lab_side(side):
    died = f", {', '.join(side['else_died'])} died" if side["else_died"] else ""
    return f"+{side['later_ms'] / 1000:.2f} s, {side['ended']}{died}{' (noisy)' if side['noisy'] else ''}"


# The page -----------------------------------------------------------------------------------------------------------

def verdict_cell(row, parts):
    wrong = {part: r["said"] for part, r in parts.items() if r.get("verdict_right") is False}
    if wrong:
        return "**wrong**: " + ", ".join(f"{said} under {part}" for part, said in wrong.items())
    return "right" if any("verdict_right" in r for r in parts.values()) else ""


def line_cell(parts):
    named = [r for r in parts.values() if r.get("line_right") is not None]
    if any(not r["line_right"] for r in named):
        return "**wrong**: " + place(next(r["where"] for r in named if not r["line_right"]))
    return f"right: {place(named[0]['where']).split(' ')[0]}" if named else "-"


def end_cell(result):
    if not result:
        return ""
    if "error" in result:
        return f"**no result**: {result['error'].splitlines()[0]}"
    again = f", {result['attempts']} attempts" if result.get("attempts", 1) > 1 else ""
    return f"{'' if result['end_right'] else '**wrong**: '}{result['ended']}, {result['seconds']:.0f} s{again}"


def beat_cell(parts):
    felt = [parts[p] for p in POLICIES if p in parts]
    if not felt:
        return ""
    worst = max(felt, key=lambda r: r["later_ms"])
    return f"{'kept' if all(r['kept'] for r in felt) else '**late**'}, +{worst['later_ms']:.0f} ms"


def cells(row, results):
    parts = found(row, results)
    if not parts:
        return [f"`{row.name}`", " or ".join(row.want[:1]), results.get(f"{row.name} protect", {}).get("error", "not run").splitlines()[0]] + [""] * 7
    policies = [parts[p] for p in POLICIES if p in parts]
    adapted = f"; adapted: {row.want_adapt[0]}" if row.want_adapt else ""
    return [f"`{row.name}`", row.want[0] + adapted, verdict_cell(row, parts), line_cell(parts),
            *(end_cell(results.get(f"{row.name} {p}") if p in parts_of(row) else None) for p in POLICIES),
            beat_cell(parts), f"{max(r['cost'] for r in policies):.1%}" if policies else "",
            f"{parts['protect']['seconds']:.0f}, {parts['bare']['seconds']:.0f}" if {"protect", "bare"} <= set(parts) else "",
            lab_words(parts["vm"]) if "vm" in parts else ""]


def summary(rows, results):
    """How many rows ran, and of how many all was right."""
    ran = [(row, found(row, results)) for row in rows]
    ran = [(row, parts) for row, parts in ran if parts]
    clean = [(row, parts) for row, parts in ran if row.is_clean]
    guarded = [r for _, parts in ran for p, r in parts.items() if p in POLICIES]
    return {"rows": len(rows), "ran": len(ran), "all_right": sum(all(map(is_right, parts.values())) for _, parts in ran),
            "runs": len(guarded), "verdict_right": sum(r["verdict_right"] for r in guarded),
            "lines": sum(r["line_right"] is not None for r in guarded), "line_right": sum(r["line_right"] is True for r in guarded),
            "end_right": sum(r["end_right"] for r in guarded), "kept_beat": sum(r["kept"] for r in guarded),
            "clean": len(clean), "alarms": sum(not is_right(r) for _, parts in clean for r in parts.values())}


def sentence(sums):
    return (f"{sums['ran']} of {sums['rows']} programs ran, in {sums['runs']} runs: {sums['verdict_right']} verdicts right, "
            f"{sums['line_right']} of {sums['lines']} lines, {sums['end_right']} ends; the beat was kept in {sums['kept_beat']}. "
            f"{sums['clean']} correct forms, {sums['alarms']} false alarms.")


def page(rows, results):
    lines = [INTRO, sentence(summary(rows, results)), "", "| " + " | ".join(HEAD) + " |", "| --- " * len(HEAD) + "|"]
    lines += ["| " + " | ".join(cells(row, results)) + " |" for row in rows]
    lines += ["", "## What each of them is", ""]
    lines += [f"- `{row.name}` ({row.budget}): {row.why}" for row in rows]
    return "\n".join(lines) + "\n"
