#include "py_layout.h"

#include <errno.h>
#include <string.h>

enum {
        FIRST_TABLE = 9,
        LAST_TABLE = 12,
        FIRST_PUBLISHED = 13,
        LAST_PUBLISHED = 14,
        FREE_THREADED = 16,    /* where in _Py_DebugOffsets: behind the cookie and the version */
        MOST_OFFSET = 1 << 20, /* bytes; the largest structure (an interpreter) is some 300 kB */
};

#define NONE AFZ_PY_ABSENT

/* Made by tests/test_py_layout.py --table, from the headers of 3.9.18, 3.10.13, 3.11.7 and 3.12.1.
 */
static const uint32_t tables[AFZ_PY_FIELD_COUNT][LAST_TABLE - FIRST_TABLE + 1] = {
        /* 3.9, 3.10, 3.11, 3.12 */
        [AFZ_PY_RUNTIME_INTERPRETERS] = {32, 32, 40, 40},
        [AFZ_PY_RUNTIME_MAIN_THREAD] = {72, 72, 80, NONE},
        [AFZ_PY_INTERPRETER_NEXT] = {0, 0, 0, 0},
        [AFZ_PY_INTERPRETER_THREADS] = {8, 8, 16, 72},
        [AFZ_PY_THREAD_NEXT] = {8, 8, 8, 8},
        [AFZ_PY_THREAD_INTERPRETER] = {16, 16, 16, 16},
        [AFZ_PY_THREAD_IDENT] = {176, 176, 152, 136},
        [AFZ_PY_THREAD_NATIVE_ID] = {NONE, NONE, 160, 144},
        [AFZ_PY_THREAD_FRAME] = {24, 24, 56, 56},
        [AFZ_PY_CFRAME_CURRENT] = {NONE, NONE, 8, 0},
        [AFZ_PY_FRAME_BACK] = {24, 24, 48, 8},
        [AFZ_PY_FRAME_CODE] = {32, 32, 32, 0},
        [AFZ_PY_FRAME_INSTRUCTION] = {104, 96, 56, 56},
        [AFZ_PY_FRAME_OWNER] = {NONE, NONE, 69, 70},
        [AFZ_PY_OBJECT_TYPE] = {8, 8, 8, 8},
        [AFZ_PY_CODE_FILE] = {104, 104, 112, 112},
        [AFZ_PY_CODE_NAME] = {112, 112, 128, 128},
        [AFZ_PY_CODE_LINES] = {120, 120, 136, 136},
        [AFZ_PY_CODE_FIRST_LINE] = {40, 40, 72, 68},
        [AFZ_PY_CODE_FIRST_TRACEABLE] = {NONE, NONE, 168, 176},
        [AFZ_PY_CODE_INSTRUCTIONS] = {NONE, NONE, 184, 192},
        [AFZ_PY_BYTES_SIZE] = {16, 16, 16, 16},
        [AFZ_PY_BYTES_DATA] = {32, 32, 32, 32},
        [AFZ_PY_TEXT_LENGTH] = {16, 16, 16, 16},
        [AFZ_PY_TEXT_STATE] = {32, 32, 32, 32},
        [AFZ_PY_TEXT_NARROW] = {48, 48, 48, 40},
        [AFZ_PY_TEXT_WIDE] = {72, 72, 72, 56},
};

static const enum afz_py_lines table_lines[] = {
        [9 - FIRST_TABLE] = AFZ_PY_LINES_LNOTAB,
        [10 - FIRST_TABLE] = AFZ_PY_LINES_RANGES,
        [11 - FIRST_TABLE] = AFZ_PY_LINES_LOCATIONS,
        [12 - FIRST_TABLE] = AFZ_PY_LINES_LOCATIONS,
};

/* Where in _Py_DebugOffsets a field's offset stands, and where the size of the structure that it
 * belongs to; by the same way, from the headers of 3.13.0 and 3.14.10. {0, 0}: not published. */
static const struct position {
        uint16_t offset, size;
} published_at[AFZ_PY_FIELD_COUNT][LAST_PUBLISHED - FIRST_PUBLISHED + 1] = {
        [AFZ_PY_RUNTIME_INTERPRETERS] = {{40, 24}, {40, 24}},
        [AFZ_PY_INTERPRETER_NEXT] = {{64, 48}, {64, 48}},
        [AFZ_PY_INTERPRETER_THREADS] = {{72, 48}, {72, 48}},
        [AFZ_PY_THREAD_NEXT] = {{168, 152}, {192, 176}},
        [AFZ_PY_THREAD_INTERPRETER] = {{176, 152}, {200, 176}},
        [AFZ_PY_THREAD_IDENT] = {{192, 152}, {216, 176}},
        [AFZ_PY_THREAD_NATIVE_ID] = {{200, 152}, {224, 176}},
        [AFZ_PY_THREAD_FRAME] = {{184, 152}, {208, 176}},
        [AFZ_PY_FRAME_BACK] = {{232, 224}, {256, 248}},
        [AFZ_PY_FRAME_CODE] = {{240, 224}, {264, 248}},
        [AFZ_PY_FRAME_INSTRUCTION] = {{248, 224}, {272, 248}},
        [AFZ_PY_FRAME_OWNER] = {{264, 224}, {288, 248}},
        [AFZ_PY_OBJECT_TYPE] = {{360, 352}, {408, 400}},
        [AFZ_PY_CODE_FILE] = {{280, 272}, {320, 312}},
        [AFZ_PY_CODE_NAME] = {{296, 272}, {336, 312}},
        [AFZ_PY_CODE_LINES] = {{304, 272}, {344, 312}},
        [AFZ_PY_CODE_FIRST_LINE] = {{312, 272}, {352, 312}},
        [AFZ_PY_CODE_INSTRUCTIONS] = {{344, 272}, {384, 312}},
        [AFZ_PY_BYTES_SIZE] = {{520, 512}, {600, 592}},
        [AFZ_PY_BYTES_DATA] = {{528, 512}, {608, 592}},
        [AFZ_PY_TEXT_LENGTH] = {{552, 536}, {632, 616}},
        [AFZ_PY_TEXT_STATE] = {{544, 536}, {624, 616}},
        [AFZ_PY_TEXT_NARROW] = {{560, 536}, {640, 616}},
};

static const char *const field_names[AFZ_PY_FIELD_COUNT] = {
        [AFZ_PY_RUNTIME_INTERPRETERS] = "runtime_interpreters",
        [AFZ_PY_RUNTIME_MAIN_THREAD] = "runtime_main_thread",
        [AFZ_PY_INTERPRETER_NEXT] = "interpreter_next",
        [AFZ_PY_INTERPRETER_THREADS] = "interpreter_threads",
        [AFZ_PY_THREAD_NEXT] = "thread_next",
        [AFZ_PY_THREAD_INTERPRETER] = "thread_interpreter",
        [AFZ_PY_THREAD_IDENT] = "thread_ident",
        [AFZ_PY_THREAD_NATIVE_ID] = "thread_native_id",
        [AFZ_PY_THREAD_FRAME] = "thread_frame",
        [AFZ_PY_CFRAME_CURRENT] = "cframe_current",
        [AFZ_PY_FRAME_BACK] = "frame_back",
        [AFZ_PY_FRAME_CODE] = "frame_code",
        [AFZ_PY_FRAME_INSTRUCTION] = "frame_instruction",
        [AFZ_PY_FRAME_OWNER] = "frame_owner",
        [AFZ_PY_OBJECT_TYPE] = "object_type",
        [AFZ_PY_CODE_FILE] = "code_file",
        [AFZ_PY_CODE_NAME] = "code_name",
        [AFZ_PY_CODE_LINES] = "code_lines",
        [AFZ_PY_CODE_FIRST_LINE] = "code_first_line",
        [AFZ_PY_CODE_FIRST_TRACEABLE] = "code_first_traceable",
        [AFZ_PY_CODE_INSTRUCTIONS] = "code_instructions",
        [AFZ_PY_BYTES_SIZE] = "bytes_size",
        [AFZ_PY_BYTES_DATA] = "bytes_data",
        [AFZ_PY_TEXT_LENGTH] = "text_length",
        [AFZ_PY_TEXT_STATE] = "text_state",
        [AFZ_PY_TEXT_NARROW] = "text_narrow",
        [AFZ_PY_TEXT_WIDE] = "text_wide",
};

const char *afz_py_field_name(enum afz_py_field f)
{
        return field_names[f];
}

uint32_t afz_py_field_position(unsigned minor, enum afz_py_field f)
{
        if (minor < FIRST_PUBLISHED || minor > LAST_PUBLISHED)
                return AFZ_PY_ABSENT;
        uint32_t at = published_at[f][minor - FIRST_PUBLISHED].offset;
        return at == 0 ? AFZ_PY_ABSENT : at;
}

static size_t span_of(const struct afz_py_layout *l, enum afz_py_field first,
                      enum afz_py_field last)
{
        size_t most = 0;
        for (enum afz_py_field f = first; f <= last; f++) {
                if (f != AFZ_PY_CODE_INSTRUCTIONS && afz_py_has(l, f) && l->at[f] + 8 > most)
                        most = l->at[f] + 8;
        }
        return most;
}

size_t afz_py_layout_frame_bytes(const struct afz_py_layout *l)
{
        return span_of(l, AFZ_PY_FRAME_BACK, AFZ_PY_FRAME_OWNER);
}

size_t afz_py_layout_code_bytes(const struct afz_py_layout *l)
{
        return span_of(l, AFZ_PY_OBJECT_TYPE, AFZ_PY_CODE_INSTRUCTIONS);
}

int afz_py_layout_table(unsigned minor, struct afz_py_layout *ret)
{
        if (minor < FIRST_TABLE || minor > LAST_TABLE)
                return -ENOTSUP;
        struct afz_py_layout l = {.minor = minor, .lines = table_lines[minor - FIRST_TABLE]};
        for (enum afz_py_field f = 0; f < AFZ_PY_FIELD_COUNT; f++)
                l.at[f] = tables[f][minor - FIRST_TABLE];
        *ret = l;
        return 0;
}

static uint64_t word_at(const unsigned char *published, size_t at)
{
        uint64_t word;
        memcpy(&word, published + at, sizeof word);
        return word;
}

/* What isn't published but follows from what is, in builds with the GIL: two pointers end the head
 * of a compact str, and the count of the first traceable unit stands before co_extra and the
 * instructions. */
static int derive(struct afz_py_layout *l)
{
        if (l->at[AFZ_PY_CODE_INSTRUCTIONS] < 16)
                return -ENOTSUP;
        l->at[AFZ_PY_TEXT_WIDE] = l->at[AFZ_PY_TEXT_NARROW] + 16;
        l->at[AFZ_PY_CODE_FIRST_TRACEABLE] = l->at[AFZ_PY_CODE_INSTRUCTIONS] - 16;
        if (afz_py_layout_frame_bytes(l) > AFZ_PY_OBJECT_CAP ||
            afz_py_layout_code_bytes(l) > AFZ_PY_OBJECT_CAP)
                return -ENOTSUP;
        return 0;
}

int afz_py_layout_published(uint32_t hex, const unsigned char published[AFZ_PY_PUBLISHED_BYTES],
                            struct afz_py_layout *ret)
{
        unsigned minor = hex >> 16 & 0xff;
        struct afz_py_layout l = {.minor = minor, .lines = AFZ_PY_LINES_LOCATIONS};
        if (hex >> 24 != 3 || minor < FIRST_PUBLISHED || minor > LAST_PUBLISHED)
                return -ENOTSUP;
        if (memcmp(published, "xdebugpy", 8) != 0 || word_at(published, 8) != hex ||
            word_at(published, FREE_THREADED) != 0)
                return -ENOTSUP;
        for (enum afz_py_field f = 0; f < AFZ_PY_FIELD_COUNT; f++) {
                const struct position *p = &published_at[f][minor - FIRST_PUBLISHED];
                l.at[f] = AFZ_PY_ABSENT;
                if (p->offset == 0)
                        continue;
                uint64_t offset = word_at(published, p->offset);
                /* <=: characters begin where the head of a str ends. */
                if (offset > word_at(published, p->size) || offset > MOST_OFFSET)
                        return -ENOTSUP;
                l.at[f] = (uint32_t)offset;
        }
        int r = derive(&l);
        if (r < 0)
                return r;
        *ret = l;
        return 0;
}
