/* links: sense */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "count_of.h"
#include "py_elf.h"
#include "py_line.h"
#include "test_py_image.h"

static struct image image;

static void test_tables(void **state)
{
        struct afz_py_layout l = {.minor = 99};
        (void)state;
        assert_int_equal(afz_py_layout_table(8, &l), -ENOTSUP);
        assert_int_equal(afz_py_layout_table(13, &l), -ENOTSUP);
        assert_int_equal(l.minor, 99);
        for (unsigned minor = 9; minor <= 12; minor++) {
                assert_int_equal(afz_py_layout_table(minor, &l), 0);
                assert_int_equal(l.minor, minor);
                assert_in_range(afz_py_layout_frame_bytes(&l), 32, AFZ_PY_OBJECT_CAP);
                assert_in_range(afz_py_layout_code_bytes(&l), 64, AFZ_PY_OBJECT_CAP);
                assert_int_equal(afz_py_has(&l, AFZ_PY_THREAD_NATIVE_ID), minor >= 11);
        }
}

static void put(unsigned char *published, size_t at, uint64_t value)
{
        memcpy(published + at, &value, sizeof value);
}

static void test_published(void **state)
{
        static const struct {
                size_t at;
                uint64_t value;
        } wrong[] = {
                {0, 0},          /* no cookie */
                {8, 0x030d00f1}, /* another version */
                {16, 1},         /* free-threaded */
                {16, 256},
        };
        unsigned char good[AFZ_PY_PUBLISHED_BYTES], bad[AFZ_PY_PUBLISHED_BYTES];
        struct afz_py_layout l = {.minor = 99};
        (void)state;
        image_publish(13, good);
        for (size_t i = 0; i < AFZ_COUNT_OF(wrong); i++) {
                memcpy(bad, good, sizeof bad);
                put(bad, wrong[i].at, wrong[i].value);
                assert_int_equal(afz_py_layout_published(0x030d00f0, bad, &l), -ENOTSUP);
        }
        /* Every number, too large: beyond its structure, or beyond all reason. */
        for (enum afz_py_field f = 0; f < AFZ_PY_FIELD_COUNT; f++) {
                uint32_t at = afz_py_field_position(13, f);
                static const uint64_t large[] = {4097, 1 << 21, UINT64_MAX};
                for (size_t i = 0; at != AFZ_PY_ABSENT && i < AFZ_COUNT_OF(large); i++) {
                        memcpy(bad, good, sizeof bad);
                        put(bad, at, large[i]);
                        assert_int_equal(afz_py_layout_published(0x030d00f0, bad, &l), -ENOTSUP);
                }
        }
        /* A code object whose fields lie farther apart than is read. */
        memcpy(bad, good, sizeof bad);
        put(bad, afz_py_field_position(13, AFZ_PY_CODE_FILE), 4000);
        assert_int_equal(afz_py_layout_published(0x030d00f0, bad, &l), -ENOTSUP);
        assert_int_equal(afz_py_layout_published(0x030f00f0, good, &l), -ENOTSUP);
        assert_int_equal(afz_py_layout_published(0x040d00f0, good, &l), -ENOTSUP);
        assert_int_equal(l.minor, 99);
        assert_int_equal(afz_py_layout_published(0x030d00f0, good, &l), 0);
        assert_int_equal(l.minor, 13);
}

struct line_case {
        unsigned minor;
        const char *table;
        size_t n;
        int64_t at;
        int line; /* of a code object whose first line is 100 */
};

static void test_lines(void **state)
{
        /* Lines 100, 101 and, 200 bytes on, 100 + 1 + 127 + 73; then back by 5. */
        static const char lnotab[] = {6, 1, (char)200, 127, 0, 73, 4, -5};
        static const char ranges[] = {6, 0, 4, 1, 8, -128, 10, -3, (char)254, 50, 6, 0};
        /* 100 (2 units), 101 (1), none (8), 101 + 300 in the long form (1), that - 2 without
         * columns (4). */
        static const char locations[] = {(char)0x81, 0x12, (char)0xd8, 1, 2, (char)0xff, (char)0xf0,
                                         0x58,       0x09, 0,          1, 2, (char)0xeb, 5};
        static const struct line_case cases[] = {
                {9, lnotab, sizeof lnotab, -1, 100},
                {9, lnotab, sizeof lnotab, 0, 100},
                {9, lnotab, sizeof lnotab, 5, 100},
                {9, lnotab, sizeof lnotab, 6, 101},
                {9, lnotab, sizeof lnotab, 205, 101},
                {9, lnotab, sizeof lnotab, 206, 301},
                {9, lnotab, sizeof lnotab, 210, 296},
                {9, lnotab, sizeof lnotab, 1 << 30, 296},
                {9, lnotab, 3, 206, 101},
                {9, lnotab, 0, 4, 100},
                {10, ranges, sizeof ranges, -2, 100},
                {10, ranges, sizeof ranges, 0, 100},
                {10, ranges, sizeof ranges, 6, 101},
                {10, ranges, sizeof ranges, 10, 0},
                {10, ranges, sizeof ranges, 17, 0},
                {10, ranges, sizeof ranges, 18, 98},
                {10, ranges, sizeof ranges, 28, 148},
                {10, ranges, sizeof ranges, 287, 148},
                {10, ranges, sizeof ranges, 288, 0},
                {10, ranges, 1, 0, 0},
                {12, locations, sizeof locations, -2, 100},
                {12, locations, sizeof locations, 0, 100},
                {12, locations, sizeof locations, 2, 100},
                {12, locations, sizeof locations, 4, 101},
                {12, locations, sizeof locations, 6, 0},
                {12, locations, sizeof locations, 21, 0},
                {12, locations, sizeof locations, 22, 401},
                {12, locations, sizeof locations, 24, 399},
                {12, locations, sizeof locations, 31, 399},
                {12, locations, sizeof locations, 32, 0},
                {12, locations, 8, 22, 0},
                {12, "\xe8\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 9, 0, 0},
                {12, "\x01\x02", 2, 0, 0},
        };
        struct afz_py_layout l;
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                const struct line_case *c = &cases[i];
                assert_int_equal(afz_py_layout_table(c->minor, &l), 0);
                image_start(&image, &l);
                uint64_t table = image_bytes(&image, c->table, c->n);
                int line = afz_py_line(&image.place.memory, &l, table, 100, c->at);
                if (line != c->line)
                        fail_msg("case %zu: line %d, not %d", i, line, c->line);
        }
        uint64_t table = image_bytes(&image, "", 0);
        image_set(&image, table, AFZ_PY_BYTES_SIZE, 2 << 20);
        assert_int_equal(afz_py_line(&image.place.memory, &l, table, 100, 0), 0);
        assert_int_equal(afz_py_line(&image.place.memory, &l, 8, 100, 0), -EFAULT);
        assert_int_equal(afz_py_line(&image.place.memory, &l, 8, -5, -1), 0);
}

static int read_self(void *context, uint64_t address, void *ret, size_t bytes)
{
        struct iovec here = {ret, bytes}, there = {(void *)(uintptr_t)address, bytes};
        (void)context;
        return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes ? 0 : -EFAULT;
}

/* The C library of this very process: the dynamic linker knows the answers. */
static void test_symbols(void **state)
{
        static const char *const names[] = {"getppid", "fopen64", "stdout", "environ", "qsort_r"};
        const struct afz_py_memory self = {.read = read_self};
        struct afz_py_elf elf;
        Dl_info info;
        uint64_t at = 0;
        (void)state;
        void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        char byte;
        if (!libc || read_self(NULL, (uint64_t)(uintptr_t)&libc, &byte, 1) < 0)
                skip(); /* linked otherwise, or may not even look at itself */
        assert_true(dladdr(dlsym(libc, "getppid"), &info) != 0);
        uint64_t base = (uint64_t)(uintptr_t)info.dli_fbase;
        assert_int_equal(afz_py_elf_open(&self, base, &elf), 0);
        for (size_t i = 0; i < AFZ_COUNT_OF(names); i++) {
                assert_int_equal(afz_py_elf_find(&self, &elf, names[i], &at), 0);
                assert_true(at == (uint64_t)(uintptr_t)dlsym(libc, names[i]));
        }
        assert_int_equal(afz_py_elf_find(&self, &elf, "_PyRuntime", &at), -ENOENT);
        assert_int_equal(afz_py_elf_find(&self, &elf, "", &at), -ENOENT);
        assert_int_equal(afz_py_elf_open(&self, base + 1, &elf), -EBADMSG);
        assert_int_equal(afz_py_elf_open(&self, 4096, &elf), -EFAULT);
        dlclose(libc);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_tables),
                cmocka_unit_test(test_published),
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_symbols),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
