/* links: sense */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "count_of.h"
#include "py_find.h"
#include "py_text.h"
#include "test_py_image.h"

enum { MAIN = 1000, OTHER = 1001, CAP = 64 };

static struct image image;
static struct afz_py_frame frames[CAP];

static void layout_of(unsigned minor, struct afz_py_layout *ret)
{
        unsigned char published[AFZ_PY_PUBLISHED_BYTES];
        if (minor < 13) {
                assert_int_equal(afz_py_layout_table(minor, ret), 0);
                return;
        }
        image_publish(minor, published);
        assert_int_equal(afz_py_layout_published(0x030000f0 | minor << 16, published, ret), 0);
}

/* A thread with three frames: leaf, middle, <module>. Returns the outermost frame. */
static uint64_t start_three(unsigned minor, uint64_t *ret_thread)
{
        struct afz_py_layout l;
        layout_of(minor, &l);
        uint64_t interpreter = image_start(&image, &l);
        uint64_t outer = image_frame(&image, image_code(&image, "/a.py", "<module>", 30), 0);
        uint64_t middle = image_frame(&image, image_code(&image, "/a.py", "middle", 20), outer);
        uint64_t leaf = image_frame(&image, image_code(&image, "/b.py", "leaf", 10), middle);
        *ret_thread = image_thread(&image, interpreter, leaf, IMAGE_BASE, MAIN);
        image_thread(&image, interpreter, 0, IMAGE_BASE, MAIN); /* being started, by that one */
        return outer;
}

static void check_frame(int i, const char *file, const char *function, int line)
{
        assert_string_equal(frames[i].file, file);
        assert_string_equal(frames[i].function, function);
        assert_int_equal(frames[i].line, line);
}

static void test_each_version(void **state)
{
        (void)state;
        for (unsigned minor = 9; minor <= 14; minor++) {
                uint64_t thread, found = 0;
                start_three(minor, &thread);
                assert_int_equal(afz_py_walk_check(&image.place), 0);
                if (minor >= 11) {
                        assert_int_equal(afz_py_walk_find(&image.place, MAIN, MAIN, &found), 0);
                        assert_true(found == thread);
                }
                assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, CAP), 3);
                check_frame(0, "/b.py", "leaf", 11);
                check_frame(1, "/a.py", "middle", 21);
                check_frame(2, "/a.py", "<module>", 31);
                assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, 2), 2);
                assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, 0), 0);
        }
}

static void test_passed_over(void **state)
{
        (void)state;
        for (unsigned minor = 12; minor <= 14; minor++) {
                uint64_t thread, outer = start_three(minor, &thread);
                const unsigned char by_c = 3;
                struct afz_py_layout *l = &image.place.layout;
                image_put(&image, outer + l->at[AFZ_PY_FRAME_OWNER], &by_c, 1);
                uint64_t code = image_code(&image, "/c.py", "begins", 1);
                uint64_t last = image_frame(&image, image_code(&image, "/c.py", "last", 1), 0);
                uint64_t begins = image_frame(&image, code, last);
                image_set(&image, begins, AFZ_PY_FRAME_INSTRUCTION,
                          code + l->at[AFZ_PY_CODE_INSTRUCTIONS]);
                image_set(&image, outer, AFZ_PY_FRAME_BACK, begins);
                assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, CAP), 3);
                check_frame(2, "/c.py", "last", 2);
        }
}

static void test_tagged_pointer(void **state)
{
        (void)state;
        uint64_t thread, outer = start_three(14, &thread);
        uint64_t code = image_code(&image, "/t.py", "tagged", 1);
        image_set(&image, outer, AFZ_PY_FRAME_CODE, code | 1);
        image_set(&image, outer, AFZ_PY_FRAME_INSTRUCTION,
                  code + image.place.layout.at[AFZ_PY_CODE_INSTRUCTIONS] + 4);
        assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, CAP), 3);
        check_frame(2, "/t.py", "tagged", 2);
}

/* Chains that never end, end nowhere, or lead to what is no code: what was good before stays. */
static void test_broken_chain(void **state)
{
        (void)state;
        for (unsigned minor = 9; minor <= 14; minor++) {
                uint64_t thread, outer = start_three(minor, &thread);
                image_set(&image, outer, AFZ_PY_FRAME_BACK, outer);
                int n = afz_py_walk_frames(&image.place, thread, frames, CAP);
                assert_in_range(n, 3, 8);
                static const uint64_t nowhere[] = {8, UINT64_MAX, UINT64_MAX - 7, IMAGE_BASE - 1};
                for (size_t i = 0; i < AFZ_COUNT_OF(nowhere); i++) {
                        image_set(&image, outer, AFZ_PY_FRAME_BACK, nowhere[i]);
                        n = afz_py_walk_frames(&image.place, thread, frames, CAP);
                        assert_int_equal(n, 3);
                }
                image_set(&image, outer, AFZ_PY_FRAME_CODE, image.place.runtime);
                assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, CAP), 2);
                image_set(&image, outer, AFZ_PY_FRAME_CODE, 0);
                assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, CAP), 2);
        }
}

static void test_unreadable_page(void **state)
{
        (void)state;
        uint64_t thread;
        start_three(12, &thread);
        image.used = (size_t)(thread + 256 - IMAGE_BASE); /* the cframe behind it is gone */
        assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, CAP), 0);
        image.used = 32;
        assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, CAP), 0);
        assert_int_equal(afz_py_walk_check(&image.place), -ENOTSUP);
}

/* Whoever may not look, or has nobody to look at, is told so from wherever it happens. */
static void test_error_passes(void **state)
{
        (void)state;
        uint64_t thread;
        start_three(11, &thread);
        image.reads = 0;
        assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, CAP), 3);
        size_t reads = image.reads;
        assert_true(reads > 20);
        for (size_t i = 1; i <= reads; i++) {
                image.reads_left = i;
                image.error = i % 2 ? -EPERM : -ESRCH;
                int r = afz_py_walk_frames(&image.place, thread, frames, CAP);
                assert_int_equal(r, image.error);
        }
        for (size_t i = 1; i <= reads; i++) {
                image.reads_left = i;
                image.error = -EFAULT;
                assert_in_range(afz_py_walk_frames(&image.place, thread, frames, CAP), 0, 3);
        }
}

static void test_lengths(void **state)
{
        static const uint64_t lies[] = {UINT64_MAX, INT64_MAX, UINT64_C(1) << 40, 1 << 30, 1 << 20};
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(lies); i++) {
                uint64_t thread, outer = start_three(10, &thread);
                uint64_t code = image_code(&image, "/c.py", "f", 1);
                uint64_t text = image_text(&image, 1, "short", 5);
                uint64_t table = image_bytes(&image, "", 0);
                image_set(&image, outer, AFZ_PY_FRAME_CODE, code);
                image_set(&image, code, AFZ_PY_CODE_FILE, text);
                image_set(&image, code, AFZ_PY_CODE_NAME, text);
                image_set(&image, code, AFZ_PY_CODE_LINES, table);
                image_set(&image, text, AFZ_PY_TEXT_LENGTH, lies[i]);
                image_set(&image, table, AFZ_PY_BYTES_SIZE, lies[i]);
                assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, CAP), 3);
                check_frame(2, "?", "?", 0);
        }
}

static void test_threads_in_a_ring(void **state)
{
        uint64_t thread, found;
        (void)state;
        start_three(12, &thread);
        image_set(&image, thread, AFZ_PY_THREAD_NEXT, thread);
        image.reads = 0;
        assert_int_equal(afz_py_walk_find(&image.place, OTHER, MAIN, &found), -ENOENT);
        assert_true(image.reads < 50);
        uint64_t interpreter = image.place.runtime + 2048;
        image_set(&image, interpreter, AFZ_PY_INTERPRETER_NEXT, interpreter);
        assert_int_equal(afz_py_walk_find(&image.place, OTHER, MAIN, &found), -ENOENT);
}

static void test_not_up(void **state)
{
        struct afz_py_layout l;
        (void)state;
        layout_of(11, &l);
        uint64_t interpreter = image_start(&image, &l);
        assert_int_equal(afz_py_walk_check(&image.place), -EAGAIN);
        uint64_t thread = image_thread(&image, interpreter, 0, 0, MAIN);
        assert_int_equal(afz_py_walk_check(&image.place), 0);
        assert_int_equal(afz_py_walk_frames(&image.place, thread, frames, CAP), 0);
        image_set(&image, thread, AFZ_PY_THREAD_INTERPRETER, thread);
        assert_int_equal(afz_py_walk_check(&image.place), -ENOTSUP);
        image_set(&image, image.place.runtime, AFZ_PY_RUNTIME_INTERPRETERS, 0);
        assert_int_equal(afz_py_walk_check(&image.place), -EAGAIN);
}

/* Notes of the C library: `words` are 32-bit numbers at 4-byte places, the rest is 7. */
static uint64_t put_note(const uint32_t (*words)[2], size_t n)
{
        uint64_t at = image_new(&image, 1024);
        for (uint64_t k = 0; k < 1024; k += 4)
                image_put(&image, at + k, &(uint32_t){7}, 4);
        for (size_t k = 0; k < n; k++)
                image_put(&image, at + words[k][0], &words[k][1], 4);
        return at;
}

struct note_case {
        uint32_t main_note[3][2], first[3][2], second[3][2];
        uint32_t ask;
        int error;
        int which; /* 0: main, 1: first, 2: second */
};

static void test_find_by_note(void **state)
{
        static const struct note_case cases[] = {
                {{{720, 10}}, {{720, 11}}, {{720, 12}}, 10, 0, 0},
                {{{720, 10}}, {{720, 11}}, {{720, 12}}, 11, 0, 1},
                {{{720, 10}}, {{720, 11}}, {{720, 12}}, 12, 0, 2},
                {{{208, 10}}, {{208, 11}}, {{208, 12}}, 12, 0, 2},
                {{{720, 10}}, {{720, 11}}, {{720, 12}}, 13, -ENOENT, 0},
                /* process 1: ones are everywhere */
                {{{24, 1}, {720, 1}}, {{24, 1}, {720, 3}}, {{24, 1}, {720, 4}}, 4, 0, 2},
                {{{24, 1}, {720, 1}}, {{24, 1}, {720, 3}}, {{24, 1}, {720, 4}}, 1, 0, 0},
                /* the number elsewhere is no proof */
                {{{720, 10}}, {{724, 11}}, {{720, 12}}, 11, -ENOENT, 0},
                /* two say so, in one place or in two */
                {{{720, 10}}, {{720, 11}}, {{720, 11}}, 11, -ENOTSUP, 0},
                {{{720, 10}, {64, 10}}, {{720, 11}}, {{64, 11}}, 11, -ENOTSUP, 0},
                /* the main thread of Python isn't the process's */
                {{{720, 99}}, {{720, 11}}, {{720, 12}}, 11, -ENOTSUP, 0},
        };
        (void)state;
        for (unsigned minor = 9; minor <= 11; minor++) {
                for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                        const struct note_case *c = &cases[i];
                        uint32_t main_tid = c->main_note[0][1] == 1 ? 1 : 10;
                        struct afz_py_layout l;
                        layout_of(minor, &l);
                        uint64_t interpreter = image_start(&image, &l), thread[3], found = 0;
                        uint64_t frame =
                                image_frame(&image, image_code(&image, "/a.py", "f", 1), 0);
                        const uint32_t(*notes[])[2] = {c->main_note, c->first, c->second};
                        for (size_t k = 0; k < 3; k++) {
                                size_t words = notes[k][1][0] ? 2 : 1;
                                uint64_t ident = put_note(notes[k], words);
                                thread[k] = image_thread(&image, interpreter, frame, ident, 0);
                                /* One that is being started goes by its maker's numbers. */
                                image_thread(&image, interpreter, 0, ident, 0);
                                if (k == 0)
                                        image_set(&image, image.place.runtime,
                                                  AFZ_PY_RUNTIME_MAIN_THREAD, ident);
                        }
                        int r = afz_py_walk_find(&image.place, c->ask, main_tid, &found);
                        if (r != c->error || (r == 0 && found != thread[c->which]))
                                fail_msg("3.%u, case %zu: %d", minor, i, r);
                }
        }
}

struct text_case {
        unsigned width;
        const void *chars;
        size_t n;
        const char *start, *end; /* in 16 bytes */
};

static void test_text(void **state)
{
        const struct text_case cases[] = {
                {1, "", 0, "", ""},
                {1, "plain", 5, "plain", "plain"},
                {1, "123456789012345", 15, "123456789012345", "123456789012345"},
                {1, "1234567890123456", 16, "123456789012...", "...567890123456"},
                {1, "gr\xf6\xdf", 4, "größ", "größ"},
                {1, "a\x1b[31m\x7f\x9b\n", 9, "a?[31m???", "a?[31m???"},
                {2, (const uint16_t[]){0x540d, 0x524d}, 2, "名前", "名前"},
                {2, (const uint16_t[]){0x540d, 0x540d, 0x540d, 0x540d, 0x540d, 0x540d}, 6,
                 "名名名名...", "...名名名名"},
                {2, (const uint16_t[]){0xd800, 'x', 0x202e}, 3, "?x?", "?x?"},
                {4, (const uint32_t[]){0x20000, 0x20001}, 2, "𠀀𠀁", "𠀀𠀁"},
                {4, (const uint32_t[]){0x110000, 0xffffffff, 'a'}, 3, "??a", "??a"},
        };
        struct afz_py_layout l;
        (void)state;
        for (unsigned minor = 9; minor <= 14; minor++) {
                layout_of(minor, &l);
                image_start(&image, &l);
                for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                        const struct text_case *c = &cases[i];
                        uint64_t at = image_text(&image, c->width, c->chars, c->n);
                        char start[16], end[16];
                        const struct afz_py_memory *m = &image.place.memory;
                        assert_int_equal(afz_py_text(m, &l, at, AFZ_PY_KEEP_START, start, 16), 0);
                        assert_int_equal(afz_py_text(m, &l, at, AFZ_PY_KEEP_END, end, 16), 0);
                        assert_string_equal(start, c->start);
                        assert_string_equal(end, c->end);
                }
        }
}

static void test_text_refused(void **state)
{
        struct afz_py_layout l;
        char text[16] = "untouched";
        (void)state;
        layout_of(9, &l);
        image_start(&image, &l);
        uint64_t at = image_text(&image, 1, "abc", 3);
        static const int states[] = {
                0,
                1 << AFZ_PY_SHIFT_KIND,                             /* not compact */
                1 << AFZ_PY_SHIFT_COMPACT,                          /* of no width */
                3 << AFZ_PY_SHIFT_KIND | 1 << AFZ_PY_SHIFT_COMPACT, /* of none that there is */
                2 << AFZ_PY_SHIFT_KIND | 1 << AFZ_PY_SHIFT_COMPACT | 1 << AFZ_PY_SHIFT_ASCII,
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(states); i++) {
                image_set_int(&image, at, AFZ_PY_TEXT_STATE, states[i]);
                assert_int_equal(
                        afz_py_text(&image.place.memory, &l, at, AFZ_PY_KEEP_START, text, 16),
                        -EBADMSG);
        }
        assert_string_equal(text, "untouched");
}

static void test_maps_line(void **state)
{
        static const struct {
                const char *line;
                bool taken;
        } cases[] = {
                {"7f12-7f13 r--p 00000000 fe:01 12   /usr/lib/libpython3.11.so.1.0", true},
                {"7f12-7f13 r--p 00000000 fe:01 12   /usr/lib/libpython3.11.so.1.0 (deleted)",
                 true},
                {"7f12-7f13 r--p 00000000 fe:01 12   /opt/with blank/bin/python3.9", true},
                {"7f12-7f13 r--p 00000000 fe:01 12   /opt/blender", true},
                {"7f12-7f13 r-xp 00001000 fe:01 12   /usr/lib/libpython3.11.so.1.0", false},
                {"7f12-7f13 r--p 00000000 fe:01 12   /usr/lib/libm.so", false},
                {"7f12-7f13 r--p 00000000 fe:01 12   /opt/python/libm.so", false},
                {"7f12-7f13 rw-p 00000000 00:00 0", false},
                {"7f12-7f13 rw-p 00000000 00:00 0    [python]", false},
                {"7f12", false},
                {"", false},
                {"x-y r--p 0 fe:01 12 /python3", false},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                uint64_t base = 0;
                bool taken = afz_py_find_line(afz_span_str(cases[i].line), AFZ_SPAN("/opt/blender"),
                                              &base);
                if (taken != cases[i].taken || base != (taken ? 0x7f12 : 0))
                        fail_msg("'%s': %d %llx", cases[i].line, taken, (unsigned long long)base);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_version),
                cmocka_unit_test(test_passed_over),
                cmocka_unit_test(test_tagged_pointer),
                cmocka_unit_test(test_broken_chain),
                cmocka_unit_test(test_unreadable_page),
                cmocka_unit_test(test_error_passes),
                cmocka_unit_test(test_lengths),
                cmocka_unit_test(test_threads_in_a_ring),
                cmocka_unit_test(test_not_up),
                cmocka_unit_test(test_find_by_note),
                cmocka_unit_test(test_text),
                cmocka_unit_test(test_text_refused),
                cmocka_unit_test(test_maps_line),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
