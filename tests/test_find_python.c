/* Which Python is meant, and which calls of it are worth a guard. */
#include <errno.h>
#include <fcntl.h>
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
#include "find_python.h"

static void test_is_program(void **state)
{
        (void)state;
        static const struct {
                const char *args[6];
                bool expected;
        } rows[] = {
                {{NULL}, true}, /* the prompt */
                {{"-", NULL}, true},
                {{"train.py", "-c", NULL}, true},
                {{"-u", "train.py", NULL}, true},
                {{"-m", "torch.distributed.run", "-c", NULL}, true},
                {{"-mtrain", NULL}, true},
                {{"-X", "dev", "-W", "-c", "train.py", NULL}, true},
                {{"-Xdev", "train.py", NULL}, true},
                {{"--check-hash-based-pycs", "always", "train.py", NULL}, true},
                {{"-i", NULL}, true},
                {{"-V", NULL}, false},
                {{"--version", NULL}, false},
                {{"-h", NULL}, false},
                {{"-?", NULL}, false},
                {{"-c", "pass", NULL}, false},
                {{"-Ic", "pass", NULL}, false},
                {{"-m", "pip", "list", NULL}, false},
                {{"-mpip", "list", NULL}, false},
                {{"-B", "-m", "venv", NULL}, false},
                {{"-m", NULL}, true}, /* Python's to complain about */
                {{"-X", NULL}, true},
                {{"--check-hash-based-pycs", NULL}, true},
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++)
                if (afz_python_is_program(rows[i].args) != rows[i].expected)
                        fail_msg("row %zu: %s", i, rows[i].args[0] ? rows[i].args[0] : "");
}

static void test_is_link(void **state)
{
        (void)state;
        assert_true(afz_python_is_link("antifreeze-python"));
        assert_true(afz_python_is_link("/x/.venv/bin/antifreeze-python"));
        assert_false(afz_python_is_link("antifreeze"));
        assert_false(afz_python_is_link("/x/antifreeze-python/antifreeze"));
        assert_false(afz_python_is_link(""));
        assert_false(afz_python_is_link(NULL));
}

static void put(const char *path, mode_t mode)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
        assert_true(fd >= 0);
        close(fd);
}

static void test_find(void **state)
{
        (void)state;
        char folder[] = "/tmp/afz-python-XXXXXX", found[1024], a[64], b[64], path[256];
        assert_non_null(mkdtemp(folder));
        snprintf(a, sizeof a, "%s/a", folder), snprintf(b, sizeof b, "%s/b", folder);
        assert_int_equal(mkdir(a, 0700), 0);
        assert_int_equal(mkdir(b, 0700), 0);
        unsetenv("ANTIFREEZE_PYTHON"), unsetenv("VIRTUAL_ENV");
        snprintf(path, sizeof path, "%s::/nowhere:%s", a, b);
        setenv("PATH", path, 1);
        assert_int_equal(afz_find_python(NULL, found, sizeof found), -ENOENT);

        char ours[128], plain[128], three[128], link[128], small[4];
        snprintf(ours, sizeof ours, "%s/python3", a); /* a link to us is none */
        assert_int_equal(symlink("/proc/self/exe", ours), 0);
        snprintf(plain, sizeof plain, "%s/python", a);
        put(plain, 0600); /* what cannot be run is none */
        assert_int_equal(afz_find_python(NULL, found, sizeof found), -ENOENT);
        snprintf(three, sizeof three, "%s/python3", b);
        put(three, 0700);
        assert_int_equal(afz_find_python(NULL, found, sizeof found), 0);
        assert_string_equal(found, three);
        assert_true(afz_find_python(NULL, small, sizeof small) < 0);

        assert_int_equal(chmod(plain, 0700), 0); /* beside the link comes before PATH */
        setenv("PATH", b, 1);
        snprintf(link, sizeof link, "%s/antifreeze-python", a);
        assert_int_equal(afz_find_python(link, found, sizeof found), 0);
        assert_string_equal(found, plain);
        setenv("ANTIFREEZE_PYTHON", "/my/python", 1);
        assert_int_equal(afz_find_python(link, found, sizeof found), 0);
        assert_string_equal(found, "/my/python");
        setenv("ANTIFREEZE_PYTHON", ours, 1); /* ourselves would begin anew for ever */
        assert_int_equal(afz_find_python(link, found, sizeof found), 0);
        assert_string_equal(found, plain);

        unlink(ours), unlink(plain), unlink(three);
        rmdir(a), rmdir(b), rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_is_program),
                cmocka_unit_test(test_is_link),
                cmocka_unit_test(test_find),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
