#ifndef AFZ_PY_LAYOUT_H
#define AFZ_PY_LAYOUT_H
/* What is where in a CPython: offsets in bytes of the fields that lead from _PyRuntime to the line
 * a thread stands at. Pure data and checks; nothing here reads memory.
 *
 * 3.9 to 3.12 are tables. Their numbers are the compiler's: tests/test_py_layout.py compiles
 * offsetof() of every field against the headers of that very version, prints the rows, and holds
 * them against these as a test. From 3.13 on an interpreter publishes its own offsets
 * (_Py_DebugOffsets, at the start of _PyRuntime); of that structure only the positions are known
 * here. Structures of 64-bit builds are the same on x86-64 and arm64.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum afz_py_field {
        AFZ_PY_RUNTIME_INTERPRETERS, /* the list of interpreters */
        AFZ_PY_RUNTIME_MAIN_THREAD,  /* pthread_self() of the thread that is Python's main one */
        AFZ_PY_INTERPRETER_NEXT,
        AFZ_PY_INTERPRETER_THREADS, /* the list of its thread states */
        AFZ_PY_THREAD_NEXT,
        AFZ_PY_THREAD_INTERPRETER,
        AFZ_PY_THREAD_IDENT, /* pthread_self() */
        AFZ_PY_THREAD_NATIVE_ID,
        AFZ_PY_THREAD_FRAME, /* the innermost frame, or (3.11, 3.12) the cframe that knows it */
        AFZ_PY_CFRAME_CURRENT,
        AFZ_PY_FRAME_BACK,
        AFZ_PY_FRAME_CODE,
        AFZ_PY_FRAME_INSTRUCTION, /* an index (int) before 3.11, a pointer from then on */
        AFZ_PY_FRAME_OWNER,       /* one byte */
        AFZ_PY_OBJECT_TYPE,
        AFZ_PY_CODE_FILE,
        AFZ_PY_CODE_NAME, /* co_qualname where there is one */
        AFZ_PY_CODE_LINES,
        AFZ_PY_CODE_FIRST_LINE,      /* int */
        AFZ_PY_CODE_FIRST_TRACEABLE, /* int, in code units: before it a frame is still being set up
                                      */
        AFZ_PY_CODE_INSTRUCTIONS,
        AFZ_PY_BYTES_SIZE,
        AFZ_PY_BYTES_DATA,
        AFZ_PY_TEXT_LENGTH,
        AFZ_PY_TEXT_STATE,  /* 4 bytes; the shifts below */
        AFZ_PY_TEXT_NARROW, /* where the characters of a str of ASCII alone begin */
        AFZ_PY_TEXT_WIDE,   /* and of any other compact one */
        AFZ_PY_FIELD_COUNT,
};

/* This version has no such field. (0 is an offset.) */
#define AFZ_PY_ABSENT UINT32_MAX

/* The word at TEXT_STATE, in all versions: 3 bits of kind (bytes in a character), one each of
 * compact and ascii. */
enum {
        AFZ_PY_SHIFT_KIND = 2,
        AFZ_PY_SHIFT_COMPACT = 5,
        AFZ_PY_SHIFT_ASCII = 6,
};

/* How a code object notes its lines. */
enum afz_py_lines {
        AFZ_PY_LINES_LNOTAB,    /* 3.9: steps in bytes and lines */
        AFZ_PY_LINES_RANGES,    /* 3.10: ranges in bytes, some without a line */
        AFZ_PY_LINES_LOCATIONS, /* 3.11: ranges in code units, with columns */
};

/* A frame or code object is read in one piece of at most this; their fields lie in the first 216
 * bytes. */
#define AFZ_PY_OBJECT_CAP 512

struct afz_py_layout {
        unsigned minor; /* 3.minor */
        enum afz_py_lines lines;
        uint32_t at[AFZ_PY_FIELD_COUNT];
};

static inline bool afz_py_has(const struct afz_py_layout *l, enum afz_py_field f)
{
        return l->at[f] != AFZ_PY_ABSENT;
}

/* The whole of _Py_DebugOffsets that is looked at; read this much at _PyRuntime. */
#define AFZ_PY_PUBLISHED_BYTES 648

/* How many bytes of a frame and of a code object hold all that is asked of them. */
size_t afz_py_layout_frame_bytes(const struct afz_py_layout *l);
size_t afz_py_layout_code_bytes(const struct afz_py_layout *l);

/* The table of 3.minor; -ENOTSUP: no table for it. */
int afz_py_layout_table(unsigned minor, struct afz_py_layout *ret);

/*
 * The layout that an interpreter of version `hex` (PY_VERSION_HEX, as in its Py_Version) publishes
 * of itself. -ENOTSUP: no cookie, another version, a free-threaded build, a version whose positions
 * aren't known here, or a number that can't be (beyond the structure it belongs to).
 */
int afz_py_layout_published(uint32_t hex, const unsigned char published[AFZ_PY_PUBLISHED_BYTES],
                            struct afz_py_layout *ret);

/* For tests: the name of a field ("thread_next"), and where in _Py_DebugOffsets it stands.
 * AFZ_PY_ABSENT: not there. */
const char *afz_py_field_name(enum afz_py_field f);
uint32_t afz_py_field_position(unsigned minor, enum afz_py_field f);

#endif
