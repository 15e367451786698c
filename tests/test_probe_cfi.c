/* Unwind tables: those of this very program against the C library's own walk, and broken ones. */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "module.h"
#include "unwind.h"

enum { FRAMES = 64 };

static struct afz_unwind walk; /* as in the probe: on no stack */

static int walks, alike; /* not asserted at once: the walk may be in another thread */

/* Both walks from one and the same frame. Theirs begins with this function (or, where a sanitizer
 * stands in between, deeper), ours with its caller. */
__attribute__((noinline)) static void compare(void)
{
        void *theirs[FRAMES];
        uint64_t ours[FRAMES];
        int n = backtrace(theirs, FRAMES), m = 0, from = 0;
        walks++;
        if (afz_unwind_begin(&walk, NULL) < 0)
                return;
        while (m < FRAMES && afz_unwind_next(&walk))
                ours[m++] = walk.pc;
        while (m > 0 && from < n && ours[0] != (uint64_t)(uintptr_t)theirs[from])
                from++;
        int same = m > 0 && from < 3 && n - from == m;
        for (int i = 0; same && i < m; i++)
                same = ours[i] == (uint64_t)(uintptr_t)theirs[from + i];
        alike += same;
}

/* Frames of every kind: large, of a size known only at run time, aligned beyond the machine's. */
__attribute__((noinline)) static void aligned(int depth)
{
        _Alignas(64) volatile char room[64];
        room[0] = (char)depth;
        compare();
        room[1] = room[0];
}

__attribute__((noinline)) static void sized(int depth)
{
        volatile char *room = __builtin_alloca((size_t)depth * 100 + 16);
        room[0] = 1;
        if (depth > 0)
                sized(depth - 1);
        else
                aligned(depth);
        room[1] = room[0];
}

static void test_as_libc_does(void **state)
{
        (void)state;
        walks = alike = 0;
        compare();
        aligned(1);
        sized(0);
        sized(12);
        assert_int_equal(walks, 4);
        assert_int_equal(alike, walks);
}

static void *in_thread(void *unused)
{
        (void)unused;
        sized(5);
        return NULL;
}

static void test_in_a_thread(void **state)
{
        pthread_t thread;
        (void)state;
        walks = alike = 0;
        assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
        pthread_join(thread, NULL);
        assert_int_equal(walks, 1);
        assert_int_equal(alike, 1);
}

static void test_unknown_memory(void **state)
{
        uint64_t word;
        (void)state;
        assert_int_equal(afz_read_self(8, &word, sizeof word), 0);
        assert_int_equal(afz_read_self(UINT64_MAX - 4, &word, sizeof word), 0);
        assert_int_equal(afz_read_self((uint64_t)(uintptr_t)&walk, &word, sizeof word), 8);
        struct afz_module m;
        assert_int_equal(afz_module_find(NULL, 8, &m), -1);
        assert_int_equal(afz_module_find(NULL, (uint64_t)(uintptr_t)&in_thread, &m), 0);
        assert_true(m.unwind > m.base && m.unwind < m.end);
}

static void test_pack(void **state)
{
        static const struct afz_cfi_rule rules[] = {
                {AFZ_CFI_END, 0, 0, 0},
                {AFZ_CFI_SP, 8, -8, 0},
                {AFZ_CFI_FP, 16, -8, -16},
                {AFZ_CFI_SP, (1 << 21) - 8, -32000, 32000},
                {AFZ_CFI_DEREF, -(1 << 21) + 8, -8, 0},
                {AFZ_CFI_GUESS, 16, -8, -16},
                {AFZ_CFI_SIGNAL, 0, 0, 0},
        };
        struct afz_cfi_rule back;
        (void)state;
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
                for (unsigned tag = 0; tag < 0x2000; tag += 0x3ff) {
                        uint64_t packed = afz_cfi_pack(&rules[i], (uint16_t)tag);
                        assert_true(afz_cfi_unpack(packed, (uint16_t)tag, &back));
                        assert_int_equal(back.kind, rules[i].kind);
                        assert_int_equal(back.cfa, rules[i].cfa);
                        assert_int_equal(back.ra, rules[i].ra);
                        assert_int_equal(back.fp, rules[i].fp);
                        assert_false(afz_cfi_unpack(packed, (uint16_t)(tag ^ 1), &back));
                }
}

/* ---- broken tables ---- */

struct memory {
        unsigned char *bytes;
        uint64_t size;
};

static uint64_t read_memory(void *context, uint64_t at, void *buf, uint64_t size)
{
        const struct memory *m = context;
        if (at >= m->size)
                return 0;
        uint64_t n = size < m->size - at ? size : m->size - at;
        memcpy(buf, m->bytes + at, n);
        return n;
}

/* This program's own table with every byte of its head, and many of its rest, turned over. */
static void test_broken(void **state)
{
        static struct afz_cfi_source source;
        struct afz_module m;
        struct afz_cfi_rule rule;
        uint64_t pc = (uint64_t)(uintptr_t)&test_pack + 8;
        (void)state;
        assert_int_equal(afz_module_find(NULL, pc, &m), 0);
        struct memory copy = {.size = m.end - m.base};
        copy.bytes = calloc(1, copy.size);
        for (uint64_t at = 0; at < copy.size; at += 4096)
                (void)afz_read_self(m.base + at, copy.bytes + at,
                                    copy.size - at < 4096 ? copy.size - at : 4096);
        source.read = read_memory;
        source.context = &copy;
        uint64_t hdr = m.unwind - m.base;
        pc -= m.base;
        assert_int_equal(afz_cfi_find(&source, hdr, 0, copy.size, pc, &rule), 0);
        uint32_t seed = 1;
        for (unsigned i = 0; i < 20000; i++) {
                seed = seed * 1664525 + 1013904223;
                uint64_t at = hdr + (i < 2000 ? i / 8 : seed % (copy.size - hdr));
                unsigned char had = copy.bytes[at];
                copy.bytes[at] ^= (unsigned char)(1u << i % 8);
                struct afz_cfi_rule other = {.cfa = 77};
                if (afz_cfi_find(&source, hdr, 0, copy.size, pc, &other) < 0)
                        assert_int_equal(other.cfa, 77);
                else
                        assert_true(other.kind == AFZ_CFI_END || other.kind == AFZ_CFI_SIGNAL ||
                                    other.ra != 0);
                copy.bytes[at] = had;
        }
        free(copy.bytes);
}

static int start(void **state)
{
        (void)state;
        afz_module_start();
        afz_unwind_start();
        return 0;
}

/* Functions that a library exports, by any address in them, as dladdr() names them. */
static void test_functions(void **state)
{
        void *libc = dlopen("libc.so.6", RTLD_NOW);
        static const char *const names[] = {"qsort", "strtoul", "getpid", "fopen"};
        struct afz_module m;
        (void)state;
        assert_non_null(libc);
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
                Dl_info about;
                void *at = dlsym(libc, names[i]);
                assert_true(at && dladdr(at, &about) && about.dli_sname);
                uint64_t pc = (uint64_t)(uintptr_t)at;
                assert_int_equal(afz_module_find(NULL, pc, &m), 0);
                if (strstr(m.path, "libc.so") == NULL) /* a sanitizer stands before it */
                        continue;
                const char *first = afz_module_function(&m, pc);
                assert_non_null(first);
                assert_ptr_equal(dlsym(libc, first), at); /* it may have several names */
                assert_string_equal(afz_module_function(&m, pc + 3), first);
                assert_null(afz_module_function(&m, m.base)); /* the file's head */
        }
        dlclose(libc);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_as_libc_does),   cmocka_unit_test(test_in_a_thread),
                cmocka_unit_test(test_unknown_memory), cmocka_unit_test(test_pack),
                cmocka_unit_test(test_broken),         cmocka_unit_test(test_functions),
        };
        return cmocka_run_group_tests(tests, start, NULL);
}
