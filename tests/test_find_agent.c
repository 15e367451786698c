/* The agent's way into a command: what PYTHONPATH becomes, and which of Python's options keep it
 * out; and where parts of ours are found. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "count_of.h"
#include "find_agent.h"
#include "find_part.h"

static void test_path(void **state)
{
        static const struct {
                const char *before, *after;
        } rows[] = {
                {NULL, "/a/enter"},
                {"", "/a/enter"},
                {"/x", "/a/enter:/x"},
                {":/x:", "/a/enter::/x:"},
                {"/a/enter", "/a/enter"},
                {"/a/enter:/x", "/a/enter:/x"},
                {"/a/enter2", "/a/enter:/a/enter2"},
                {"/x:/a/enter", "/a/enter:/x:/a/enter"},
        };
        char path[64], small[12] = "as it was";
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++) {
                assert_int_equal(afz_agent_path("/a/enter", rows[i].before, path, sizeof path), 0);
                assert_string_equal(path, rows[i].after);
        }
        assert_int_equal(afz_agent_path("/a/enter", "/xyz", small, sizeof small), -ENAMETOOLONG);
}

static void test_kept_out(void **state)
{
        static const struct {
                const char *argv[8];
                const char *by;
        } rows[] = {
                {{NULL}, NULL},
                {{"python", NULL}, NULL},
                {{"python", "train.py", "-I", NULL}, NULL},
                {{"python", "-I", "train.py", NULL}, "-I"},
                {{"/opt/x/bin/python3.11", "-uE", "train.py", NULL}, "-E"},
                {{"python3", "-B", "-S", "-m", "train", NULL}, "-S"},
                {{"pypy3", "-I", NULL}, "-I"},
                {{"python", "-m", "train", "-I", NULL}, NULL},
                {{"python", "-c", "pass", "-I", NULL}, NULL},
                {{"python", "-cI", NULL}, NULL},
                {{"python", "-W", "-I", "train.py", NULL}, NULL},
                {{"python", "-WI", "train.py", NULL}, NULL},
                {{"python", "-X", "dev", "-I", NULL}, "-I"},
                {{"python", "--check-hash-based-pycs", "-I", "x.py", NULL}, NULL},
                {{"python", "--version", "-I", NULL}, "-I"},
                {{"python", "-", "-I", NULL}, NULL},
                {{"python", "-X", NULL}, NULL},
                {{"pythonic", "-I", NULL}, NULL},
                {{"python3.x", "-I", NULL}, NULL},
                {{"ls", "-I", NULL}, NULL},
                {{"", "-I", NULL}, NULL},
        };
        (void)state;
        assert_null(afz_agent_kept_out(NULL));
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++) {
                const char *by = afz_agent_kept_out(rows[i].argv);
                if (rows[i].by)
                        assert_string_equal(by ? by : "nothing", rows[i].by);
                else
                        assert_null(by);
        }
}

/* Whatever the folder is called in which Antifreeze was built or installed. */
static void test_part(void **state)
{
        static const struct afz_part part = {
                .name = "part.so", .beside = {"/none/", "/p*/"}, .installed = "/none"};
        char folder[] = "/tmp/afz [a-z]*?\\-XXXXXX", program[64], in[64], file[80], found[80];
        (void)state;
        assert_non_null(mkdtemp(folder));
        snprintf(program, sizeof program, "%s/antifreeze", folder);
        snprintf(in, sizeof in, "%s/part", folder);
        snprintf(file, sizeof file, "%s/part.so", in);
        assert_int_equal(mkdir(in, 0700), 0);
        assert_int_equal(afz_find_part_of(program, &part, found, sizeof found), -ENOENT);
        assert_int_equal(symlink("/dev/null", file), 0);
        assert_int_equal(afz_find_part_of(program, &part, found, sizeof found), 0);
        assert_string_equal(found, file);
        assert_int_equal(afz_find_part_of("antifreeze", &part, found, sizeof found), -ENOENT);
        assert_int_equal(unlink(file) + rmdir(in) + rmdir(folder), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_path),
                cmocka_unit_test(test_kept_out),
                cmocka_unit_test(test_part),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
