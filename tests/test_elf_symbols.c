/* links: sense */
/* Functions by address: of this very program, and of files that somebody has damaged. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf_symbols.h"
#include "symbols.h"

__attribute__((noinline)) static int a_function_of_ours(int x)
{
        return x * 31 + 7;
}

/* An address of this program as its file has it. */
static uint64_t in_file(uintptr_t address)
{
        extern const ElfW(Ehdr) __ehdr_start; /* by the linker: where the file's beginning is */
        return address - (uintptr_t)&__ehdr_start;
}

static struct afz_elf_symbols *open_self(void)
{
        struct afz_elf_symbols *s;
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(afz_elf_symbols_new(fd, &s), 0);
        return s;
}

static void test_self(void **state)
{
        struct afz_elf_symbols *s = open_self();
        char name[64];
        uint64_t at = in_file((uintptr_t)&a_function_of_ours);
        (void)state;
        assert_int_equal(a_function_of_ours(1), 38);
        assert_true(afz_elf_function(s, at, name, sizeof name));
        assert_string_equal(name, "a_function_of_ours");
        assert_true(afz_elf_function(s, at + 1, name, sizeof name));
        assert_string_equal(name, "a_function_of_ours");
        assert_true(afz_elf_function(s, at, name, 5)); /* cut, and ended */
        assert_string_equal(name, "a_fu");
        assert_false(afz_elf_function(s, 0, name, sizeof name));
        assert_false(afz_elf_function(s, UINT64_MAX, name, sizeof name));
        assert_false(afz_elf_function(s, at, name, 0));
        afz_elf_symbols_free(s);
        afz_elf_symbols_free(NULL);
}

/* The same through the module that adds lines, with a build id that is, and is not, this file's. */
static void test_build_id(void **state)
{
        struct afz_elf_symbols *s = open_self();
        struct afz_symbols *symbols;
        struct afz_symbol found[AFZ_SYMBOL_INLINES];
        const unsigned char *id;
        char path[4096];
        ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
        struct afz_symbol_module module = {.path = path};
        uint64_t at = in_file((uintptr_t)&a_function_of_ours);
        (void)state;
        assert_true(n > 0);
        path[n] = '\0';
        module.build_id_bytes = afz_elf_build_id(s, &id);
        module.build_id = id;
        assert_int_equal(afz_symbols_new(&symbols), 0);
        assert_true(afz_symbols_find(symbols, &module, at, found, AFZ_SYMBOL_INLINES) >= 1);
        assert_string_equal(found[0].function, "a_function_of_ours");
        afz_symbols_free(symbols);

        unsigned char other[8] = {0xde, 0xad, 0xbe, 0xef};
        module.build_id = other;
        module.build_id_bytes = sizeof other;
        assert_int_equal(afz_symbols_new(&symbols), 0);
        assert_int_equal(afz_symbols_find(symbols, &module, at, found, AFZ_SYMBOL_INLINES), 0);
        /* Another build at the same path: each is believed by itself. */
        module.build_id_bytes = afz_elf_build_id(s, &id);
        module.build_id = id;
        assert_true(afz_symbols_find(symbols, &module, at, found, AFZ_SYMBOL_INLINES) >= 1);
        module.build_id = other;
        module.build_id_bytes = sizeof other;
        assert_int_equal(afz_symbols_find(symbols, &module, at, found, AFZ_SYMBOL_INLINES), 0);
        afz_symbols_free(symbols);
        afz_elf_symbols_free(s);
}

static int make_file(const void *bytes, size_t n)
{
        int fd = memfd_create("elf", MFD_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, bytes, n, 0), n);
        return fd;
}

static void test_no_elf(void **state)
{
        static const Elf64_Ehdr other = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32}};
        const struct {
                const void *bytes;
                size_t n;
        } cases[] = {{"", 0}, {"\177ELF", 4}, {"#!/bin/sh\n", 10}, {&other, sizeof other}};
        (void)state;
        for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct afz_elf_symbols *s;
                int fd = make_file(cases[i].bytes, cases[i].n);
                assert_int_equal(afz_elf_symbols_new(fd, &s), -EBADMSG);
                assert_int_equal(close(fd), 0); /* it stayed ours */
        }
}

/* This program with its header, its sections and its symbols overwritten by noise, and cut. */
static void test_damaged(void **state)
{
        struct stat about;
        int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        (void)state;
        assert_int_equal(fstat(self, &about), 0);
        size_t n = (size_t)about.st_size;
        unsigned char *whole = malloc(n), *bytes = malloc(n);
        assert_int_equal(pread(self, whole, n, 0), n);
        const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)whole;
        uint64_t word = 88172645463325252;
        for (unsigned round = 0; round < 200; round++) {
                size_t at[] = {16, head->e_shoff, 0};
                size_t span[] = {48, head->e_shnum * sizeof(Elf64_Shdr), n};
                memcpy(bytes, whole, n);
                for (unsigned i = 0; i < 1 + round % 16; i++) {
                        word ^= word << 13, word ^= word >> 7, word ^= word << 17;
                        size_t to = at[round % 3] + word % span[round % 3];
                        if (to < n)
                                bytes[to] = (unsigned char)(word >> 40);
                }
                struct afz_elf_symbols *s;
                char name[64];
                int fd = make_file(bytes, round % 5 == 0 ? n - word % n : n);
                if (afz_elf_symbols_new(fd, &s) < 0) {
                        close(fd);
                        continue;
                }
                for (uint64_t a = 0; a < n; a += 997)
                        if (afz_elf_function(s, a, name, sizeof name))
                                assert_true(strlen(name) < sizeof name);
                afz_elf_symbols_free(s);
        }
        free(bytes);
        free(whole);
        close(self);
}

/* The leak checker of gcc 12 trips over libdw's thread variables; left alone with them, it takes
 * what the loader keeps for a leak. The loader's functions have names only where libc6-dbg is. */
const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
        return "use_tls=0";
}

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
        return "leak:_dl_map_object_deps\nleak:_dl_open\nleak:dl_open_worker\nleak:/ld-linux-\n";
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_self),
                cmocka_unit_test(test_build_id),
                cmocka_unit_test(test_no_elf),
                cmocka_unit_test(test_damaged),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
