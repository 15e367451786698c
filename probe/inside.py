#!/usr/bin/env python3
"""Makes an assembly file with the probe's library in it, without its symbols: for `antifreeze demo`, which needs no other file.

usage: inside.py LIBRARY STRIP SMALL OUTPUT
"""
import os
import subprocess
import sys

library, strip, small, output = sys.argv[1:]
subprocess.run([strip, "-o", small, library], check=True)
with open(output, "w", encoding="utf-8") as file:
    file.write(f"""        .section .rodata
        .globl afz_probe_inside, afz_probe_inside_end
afz_probe_inside:
        .incbin "{os.path.abspath(small)}"
afz_probe_inside_end:
        .byte 0
        .section .note.GNU-stack,"",%progbits
""")
