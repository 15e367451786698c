#!/usr/bin/env python3
"""Makes a C file of the pages in docs/verdicts: each as text for a terminal, with its id and its first line.

usage: why_pages.py PAGE.md... OUTPUT.c

A page has the id as its title, one line that says it all, and the sections of SECTIONS, in this order. It is written in a small
part of Markdown: paragraphs, lists with `- `, code and output indented by four blanks, `code`, *words*, [links](to.md). Lines of output
that are too long are broken as a terminal would; code is not.
"""
import os
import re
import sys
import textwrap

WIDTH = 80
LINE_WIDTH = 55  # of what it is in one line, so that ids and these fit side by side
SECTIONS = ["What it means", "How it is told", "How to fix it", "What it is not", "An example"]
HEADER = '/* Made by why_pages.py; do not edit. */\n#include "why_meaning.h"\n\n#include <stddef.h>\n\n'


class Bad(Exception):
    """A page that cannot be shown as it stands."""


def plain(text):
    """Without marks; what stands between backticks is kept as it is."""
    parts = re.split(r"`([^`]*)`", re.sub(r"\[([^\]]*)\]\([^)\s]*\.md\)", r"\1", text))
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"\*\*?([^*\s][^*]*)\*\*?", r"\1", parts[i])
    return "".join(parts)


def wrapped(text, first="", later=""):
    return textwrap.fill(plain(text), WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False,
                         break_on_hyphens=False).splitlines()


def shown(line):
    """Code or output, as it stands; of output a long line goes on in the next."""
    if len(line) <= WIDTH or not re.match(r" *(run \d|antifreeze: )", line):
        return [line]
    return textwrap.fill(line, WIDTH, subsequent_indent="    ", break_on_hyphens=False).splitlines()


def block_lines(block):
    """One block of a page, which is what stands between two empty lines."""
    if all(line.startswith("    ") for line in block):
        cut = 4 if block[0].startswith("    $ ") else 2  # what our own commands print is up to 80 wide
        return [part for line in block for part in shown(line[cut:])]
    lines = []
    for item in re.split(r"\n(?=- )", "\n".join(block)):
        text = " ".join(item.split())
        lines += wrapped(text[2:], "- ", "  ") if text.startswith("- ") else wrapped(text)
    return lines


def blocks(lines):
    block = []
    for line in [*lines, ""]:
        if line:
            block.append(line)
        elif block:
            yield block
            block = []


def rendered(text):
    """The page for a terminal, its id and its first line."""
    title, line, *rest = blocks(text.splitlines())
    if len(title) != 1 or not title[0].startswith("# ") or len(line) != 1 or line[0].startswith((" ", "#", "-")):
        raise Bad("it begins with '# ID', and one line that says what it is")
    out, sections = [title[0][2:] + ": " + plain(line[0])], []
    if len(plain(line[0])) > LINE_WIDTH:
        raise Bad(f"what it is in one line is {len(line[0])} wide; {LINE_WIDTH} are allowed")
    for block in rest:
        if any(each.startswith(("```", "|")) for each in block):
            raise Bad(f"there are no tables and fences in a terminal: {block[0]}")
        if block[0].startswith("#"):
            sections.append(block[0].removeprefix("## "))
            out += ["", sections[-1].upper()]
            block = block[1:]
        elif out[-1] != sections[-1].upper():
            out.append("")
        out += block_lines(block) if block else []
    if sections != SECTIONS:
        raise Bad(f"its sections are {sections}, not {SECTIONS}")
    for each in out:
        if len(each) > WIDTH or not each.isascii() or "\t" in each:
            raise Bad(f"this cannot be shown in {WIDTH} columns of plain ASCII: {each}")
    return title[0][2:], plain(line[0]), "\n".join(out) + "\n"


def page_of(path):
    with open(path, encoding="utf-8") as file:
        page = rendered(file.read())
    if page[0].replace(":", "-") + ".md" != os.path.basename(path):
        raise Bad(f"its title is '{page[0]}', which is another name")
    return page


def numbers(text):
    """As C numbers: a string literal of this length is more than the standard promises."""
    data = text.encode("ascii")
    return "".join("        " + ", ".join(map(str, data[at:at + 20])) + ",\n" for at in range(0, len(data), 20))


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main(*paths, output):
    made, rows = HEADER, ""
    for i, path in enumerate(paths):
        try:
            name, line, text = page_of(path)
        except Bad as bad:
            sys.exit(f"{path}: {bad}")
        made += f"static const char text_{i}[] = {{\n{numbers(text)}        0}};\n"
        rows += f"        {{{quoted(name)}, {quoted(line)}, text_{i}}},\n"
    made += f"\nconst struct afz_why_page afz_why_pages[] = {{\n{rows}        {{NULL, NULL, NULL}},\n}};\n"
    with open(output, "w", encoding="ascii") as file:
        file.write(made)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:-1], output=sys.argv[-1])
