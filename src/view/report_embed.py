#!/usr/bin/env python3
"""Makes a C file of report.css and the scripts, one behind the other: each as text, with the sum that the page's policy names.

usage: report_embed.py CSS JS... OUTPUT
"""
import base64
import hashlib
import sys

HEADER = '/* Made by report_embed.py; do not edit. */\n#include "report_parts.h"\n'


def lines_of(data):
    """The bytes as C numbers: a string literal of this length is more than the standard promises."""
    for at in range(0, len(data), 20):
        yield "        " + ", ".join(map(str, data[at:at + 20])) + ","


def read(path):
    with open(path, "rb") as file:
        return file.read()


def main(css, *js, output):
    text = HEADER
    for name, paths in (("css", [css]), ("js", js)):
        data = b"".join(map(read, paths))
        digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
        text += f"\nconst char afz_report_{name}_sha256[] = \"{digest}\";\n"
        # Signed: char is, on some machines, and all of our text is ASCII.
        assert max(data) < 128, f"{paths}: only ASCII, please"
        text += f"const char afz_report_{name}[] = {{\n" + "\n".join(lines_of(data)) + "\n        0};\n"
    with open(output, "w", encoding="ascii") as file:
        file.write(text)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:-1], output=sys.argv[-1])
