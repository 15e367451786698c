#!/usr/bin/python3
"""What py_layout.c says is where, against each CPython's own headers: offsetof() of every field, for every version whose
headers (python3.X-dev, with the internal ones) are found.

    test_py_layout.py PY_STACK_DUMP [INCLUDE_FOLDER...]     77: no compiler or no headers here
    test_py_layout.py --table INCLUDE_FOLDER...             the rows for py_layout.c; this is how they were made
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

from scenario import Checks

# What stands for each field, in C, by the first version in which it does; absent fields have no row.
FIELDS = {
    "runtime_interpreters": {9: "offsetof(_PyRuntimeState, interpreters.head)"},
    "runtime_main_thread": {9: "offsetof(_PyRuntimeState, main_thread)", 12: None},
    "interpreter_next": {9: "offsetof(PyInterpreterState, next)"},
    "interpreter_threads": {9: "offsetof(PyInterpreterState, tstate_head)", 11: "offsetof(PyInterpreterState, threads.head)"},
    "thread_next": {9: "offsetof(PyThreadState, next)"},
    "thread_interpreter": {9: "offsetof(PyThreadState, interp)"},
    "thread_ident": {9: "offsetof(PyThreadState, thread_id)"},
    "thread_native_id": {9: None, 11: "offsetof(PyThreadState, native_thread_id)"},
    "thread_frame": {9: "offsetof(PyThreadState, frame)", 11: "offsetof(PyThreadState, cframe)",
                     13: "offsetof(PyThreadState, current_frame)"},
    "cframe_current": {9: None, 11: "offsetof(_PyCFrame, current_frame)", 13: None},
    "frame_back": {9: "offsetof(PyFrameObject, f_back)", 11: "offsetof(_PyInterpreterFrame, previous)"},
    "frame_code": {9: "offsetof(PyFrameObject, f_code)", 11: "offsetof(_PyInterpreterFrame, f_code)",
                   13: "offsetof(_PyInterpreterFrame, f_executable)"},
    "frame_instruction": {9: "offsetof(PyFrameObject, f_lasti)", 11: "offsetof(_PyInterpreterFrame, prev_instr)",
                          13: "offsetof(_PyInterpreterFrame, instr_ptr)"},
    "frame_owner": {9: None, 11: "offsetof(_PyInterpreterFrame, owner)"},
    "object_type": {9: "offsetof(PyObject, ob_type)"},
    "code_file": {9: "offsetof(PyCodeObject, co_filename)"},
    "code_name": {9: "offsetof(PyCodeObject, co_name)", 11: "offsetof(PyCodeObject, co_qualname)"},
    "code_lines": {9: "offsetof(PyCodeObject, co_lnotab)", 10: "offsetof(PyCodeObject, co_linetable)"},
    "code_first_line": {9: "offsetof(PyCodeObject, co_firstlineno)"},
    "code_first_traceable": {9: None, 11: "offsetof(PyCodeObject, _co_firsttraceable)"},
    "code_instructions": {9: None, 11: "offsetof(PyCodeObject, co_code_adaptive)"},
    "bytes_size": {9: "offsetof(PyBytesObject, ob_base.ob_size)"},
    "bytes_data": {9: "offsetof(PyBytesObject, ob_sval)"},
    "text_length": {9: "offsetof(PyASCIIObject, length)"},
    "text_state": {9: "offsetof(PyASCIIObject, state)"},
    "text_narrow": {9: "sizeof(PyASCIIObject)"},
    "text_wide": {9: "sizeof(PyCompactUnicodeObject)"},
}
# A bit field has no offsetof(): all of it set, and the word looked at.
BITS = {"kind": 7, "compact": 1, "ascii": 1}
# From 3.13 on: where in _Py_DebugOffsets each published number stands.
PUBLISHED = {
    "runtime_interpreters": "runtime_state.interpreters_head",
    "interpreter_next": "interpreter_state.next",
    "interpreter_threads": "interpreter_state.threads_head",
    "thread_next": "thread_state.next",
    "thread_interpreter": "thread_state.interp",
    "thread_ident": "thread_state.thread_id",
    "thread_native_id": "thread_state.native_thread_id",
    "thread_frame": "thread_state.current_frame",
    "frame_back": "interpreter_frame.previous",
    "frame_code": "interpreter_frame.executable",
    "frame_instruction": "interpreter_frame.instr_ptr",
    "frame_owner": "interpreter_frame.owner",
    "object_type": "pyobject.ob_type",
    "code_file": "code_object.filename",
    "code_name": "code_object.qualname",
    "code_lines": "code_object.linetable",
    "code_first_line": "code_object.firstlineno",
    "code_instructions": "code_object.co_code_adaptive",
    "bytes_size": "bytes_object.ob_size",
    "bytes_data": "bytes_object.ob_sval",
    "text_length": "unicode_object.length",
    "text_state": "unicode_object.state",
    "text_narrow": "unicode_object.asciiobject_size",
}
SIZES = ["runtime_state", "interpreter_state", "thread_state", "interpreter_frame", "code_object", "pyobject", "bytes_object",
         "unicode_object"]


def minor_of(include):
    text = open(os.path.join(include, "patchlevel.h")).read()
    return int(re.search(r"#define PY_MINOR_VERSION\s+(\d+)", text).group(1))


def program(minor):
    """Prints "name value" for every field; with 3.13+, "published.name position" too."""
    lines = ["#define Py_BUILD_CORE 1", "#include <stddef.h>", "#include <stdio.h>", "#include <string.h>",
             "#include <Python.h>", "#include <frameobject.h>"]
    if minor >= 11:
        lines.append("#include <internal/pycore_frame.h>")
    if minor >= 14:
        lines.append("#include <internal/pycore_interpframe_structs.h>")
    lines += ["#include <internal/pycore_interp.h>", "#include <internal/pycore_runtime.h>", "int main(void)", "{"]
    for name, ways in FIELDS.items():
        c = ways[max(v for v in ways if v <= minor)]
        if c:
            lines.append(f'printf("{name} %zu\\n", (size_t){c});')
    for bit, all_set in BITS.items():
        lines.append("{ PyASCIIObject a; unsigned word; memset(&a, 0, sizeof a);"
                     f" a.state.{bit} = {all_set}; memcpy(&word, &a.state, sizeof word);"
                     f' printf("shift.{bit} %d\\n", __builtin_ctz(word)); }}')
    if minor >= 13:
        lines.append("#define AT(f) offsetof(_Py_DebugOffsets, f)")
        lines += [f'printf("published.{k} %zu\\n", AT({v}));' for k, v in PUBLISHED.items()]
        lines += [f'printf("published.size.{s} %zu\\n", AT({s}.size));' for s in SIZES]
        lines.append('printf("published.free_threaded %zu\\n", AT(free_threaded));')
    return "\n".join(lines + ["return 0;", "}", ""])


def ask_headers(include):
    """offsetof() by the compiler; None where it can't compile them."""
    with tempfile.TemporaryDirectory() as d:
        source, exe = os.path.join(d, "a.c"), os.path.join(d, "a")
        with open(source, "w") as f:
            f.write(program(minor_of(include)))
        multiarch = glob.glob(os.path.join(os.path.dirname(include), "*-linux-gnu"))
        r = subprocess.run(["cc", "-w", "-I", include, "-I", os.path.join(include, "internal"), "-I", os.path.dirname(include),
                            *sum((["-I", m] for m in multiarch), []), source, "-o", exe], capture_output=True, text=True)
        if r.returncode != 0:
            print(f"# {include}: {r.stderr[:2000]}")
            return None
        out = subprocess.run([exe], capture_output=True, text=True, check=True).stdout
    return dict(line.split() for line in out.splitlines())


def ask_table(dump, minor):
    r = subprocess.run([dump, "--layout", str(minor)], capture_output=True, text=True)
    return dict(line.split() for line in r.stdout.splitlines()) if r.returncode == 0 else None


def found_headers():
    found = []
    for folder in os.environ["PATH"].split(":"):
        prefix = os.path.dirname(os.path.realpath(folder))
        found += glob.glob(os.path.join(prefix, "include/python3.*"))
    return sorted({i for i in found if os.path.exists(os.path.join(i, "internal/pycore_runtime.h"))
                   and 9 <= minor_of(i) <= 14})


def main():
    if sys.argv[1] == "--table":
        for include in sys.argv[2:]:
            print(f"# 3.{minor_of(include)}", include)
            for k, v in (ask_headers(include) or {}).items():
                print(f"        [AFZ_PY_{k.upper()}] = {v},")
        return 0
    dump, includes = os.path.abspath(sys.argv[1]), sys.argv[2:] or found_headers()
    everything = Checks(deadline=60)
    tried = 0
    for include in includes:
        minor = minor_of(include)
        headers, table = ask_headers(include), ask_table(dump, minor)
        if headers is None:
            continue
        tried += 1
        everything.check(f"3.{minor} is in the table", table is not None)
        wrong = [f"{k}: headers {headers.get(k)}, table {(table or {}).get(k)}"
                 for k in sorted(set(headers) | set(table or {}))
                 if headers.get(k) != (table or {}).get(k) and (minor < 13 or k in (table or {}))]
        if minor >= 13:  # what py_layout.c derives from what is published
            wrong += [f"{k} isn't where it is looked for" for k, near, step in
                      (("text_wide", "text_narrow", 16), ("code_first_traceable", "code_instructions", -16))
                      if int(headers[k]) != int(headers[near]) + step]
        everything.check(f"3.{minor} ({include}): {len(headers)} numbers", not wrong, "\n".join(wrong))
    if not tried:
        print("no compiler, or no python3-dev here whose internal headers compile")
        return 77
    return everything.finish()


if __name__ == "__main__":
    sys.exit(main())
