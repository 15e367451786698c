/* links: base, fixture */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "count_of.h"
#include "dir.h"
#include "env.h"
#include "fixture.h"
#include "json.h"
#include "map.h"
#include "out.h"

/* ---- env ---- */

static void test_env_reads(void **state)
{
        static const struct afz_fixture_row rows[] = {
                {"proc/one", "12\n"},
                {"proc/max", "max\n"},
                {"proc/cut", "12"},
                {"proc/two", "12\n13\n"},
                {"proc/word", "x\n"},
                {"proc/empty", ""},
                {"proc/minus", "-1\n"},
                {"proc/link", "-> /some/where"},
                {"proc/broken/", NULL},
                {"proc/blank", "\n"},
                {"proc/huge", "99999999999999999999\n"},
                {0},
        };
        static const struct {
                const char *path;
                int error;
                uint64_t value;
        } cases[] = {
                {"one", 0, 12},          {"max", 0, UINT64_MAX}, {"cut", -EINVAL, 0},
                {"two", -EINVAL, 0},     {"word", -EINVAL, 0},   {"empty", -EINVAL, 0},
                {"minus", -EINVAL, 0},   {"huge", -ERANGE, 0},   {"broken", -EISDIR, 0},
                {"missing", -ENOENT, 0}, {"blank", -ENODATA, 0},
        };
        struct afz_fixture *f = afz_fixture_new(rows);
        const struct afz_env *env = afz_fixture_env(f);
        char buf[32];
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                uint64_t v = 7;
                int r = afz_env_read_u64(env, AFZ_ROOT_PROC, cases[i].path, &v);
                if (r != cases[i].error || v != (r < 0 ? 7 : cases[i].value))
                        fail_msg("%s: %d, %llu", cases[i].path, r, (unsigned long long)v);
        }
        assert_int_equal(afz_env_readlink(env, AFZ_ROOT_PROC, "link", buf, sizeof buf), 11);
        assert_string_equal(buf, "/some/where");
        assert_int_equal(afz_env_readlink(env, AFZ_ROOT_PROC, "link", buf, 11), -ENAMETOOLONG);
        assert_int_equal(afz_env_readlink(env, AFZ_ROOT_PROC, "one", buf, sizeof buf), -EINVAL);
        assert_int_equal(afz_env_readlink(env, AFZ_ROOT_SYS, "one", buf, sizeof buf), -ENODATA);
        assert_int_equal(afz_env_open(env, AFZ_ROOT_SYS, "x", 0), -ENODATA);
        afz_fixture_free(f);
}

/* A file that does not fit is never taken for a whole one. */
static void test_env_too_large(void **state)
{
        static const struct afz_fixture_row rows[] = {{"proc/f", "0123456789"}, {0}};
        struct afz_fixture *f = afz_fixture_new(rows);
        char buf[16];
        struct afz_span text = {NULL, 99};
        int fd = afz_env_open(afz_fixture_env(f), AFZ_ROOT_PROC, "f", 0);
        (void)state;
        assert_true(fd >= 0);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        assert_int_equal(afz_fd_read(fd, buf, 11), 10);
        assert_int_equal(afz_fd_read(fd, buf, 11), 10); /* from the start again */
        assert_int_equal(afz_fd_read(fd, buf, 10), -EOVERFLOW);
        assert_int_equal(afz_fd_read_record(fd, buf, 10), -EOVERFLOW);
        assert_int_equal(afz_fd_read_record(fd, buf, 11), 10);
        assert_int_equal(afz_fd_read_head(fd, buf, 4), 4);
        assert_int_equal(afz_env_read(afz_fixture_env(f), AFZ_ROOT_PROC, "f", buf, 5, &text),
                         -EOVERFLOW);
        assert_int_equal(text.n, 99);
        close(fd);
        afz_fixture_free(f);
}

static void test_env_machine_and_space(void **state)
{
        static const struct afz_fixture_row rows[] = {
                {"machine", "page_bytes 16384\nclock_ticks 250\nself_pid 42\n"},
                {"fs_space", "1 2\n100 50 40 9 8 /a b\n200 1 1 1 1 /c\n7 7 7"},
                {0},
        };
        static const struct afz_fixture_row silly[] = {
                {"machine", "page_bytes 3\nclock_ticks 0\nself_pid x\n"}, {0}};
        struct afz_fixture *f = afz_fixture_new(rows);
        const struct afz_env *env = afz_fixture_env(f);
        struct afz_fs_space space;
        (void)state;
        assert_int_equal(env->page_bytes, 16384);
        assert_int_equal(env->clock_ticks, 250);
        assert_int_equal(env->self_pid, 42);
        assert_int_equal(env->fs_space(env, "/a b", &space), 0);
        assert_int_equal(space.total_bytes, 100);
        assert_int_equal(space.files_free, 8);
        assert_int_equal(env->fs_space(env, "/missing", &space), -ENODATA);
        for (int i = 0; i < AFZ_ROOT_COUNT; i++)
                assert_int_equal(env->root_fd[i], -1);
        afz_fixture_free(f);
        f = afz_fixture_new(silly);
        assert_int_equal(afz_fixture_env(f)->page_bytes, sysconf(_SC_PAGESIZE));
        assert_int_equal(afz_fixture_env(f)->clock_ticks, sysconf(_SC_CLK_TCK));
        afz_fixture_free(f);
}

static void test_env_opens_nothing_for_good(void **state)
{
        size_t before = afz_fixture_open_fds();
        struct afz_env env;
        (void)state;
        assert_int_equal(afz_env_open_live(&env), 0);
        assert_true(afz_env_now(&env) > 0);
        afz_env_done(&env);
        afz_env_done(&env);
        afz_env_done(NULL);
        assert_int_equal(afz_env_open_fixture("/nowhere/at/all", &env), -ENOENT);
        assert_int_equal(afz_fixture_open_fds(), before);
}

struct listened {
        int calls, last_err;
        char path[64];
};

static void on_open(void *ctx, enum afz_root root, enum afz_open_kind kind, const char *path,
                    int err)
{
        struct listened *l = ctx;
        (void)kind;
        assert_int_equal(root, AFZ_ROOT_PROC);
        l->calls++;
        l->last_err = err;
        snprintf(l->path, sizeof l->path, "%s", path);
}

static void test_env_tells_of_every_path(void **state)
{
        static const struct afz_fixture_row rows[] = {{"proc/f", "1\n"}, {0}};
        struct afz_fixture *f = afz_fixture_new(rows);
        struct afz_env env = *afz_fixture_env(f);
        struct listened l = {0};
        uint64_t v;
        (void)state;
        env.on_open = on_open;
        env.ctx = &l;
        assert_int_equal(afz_env_read_u64(&env, AFZ_ROOT_PROC, "f", &v), 0);
        assert_int_equal(l.calls, 1);
        assert_int_equal(l.last_err, 0);
        assert_int_equal(afz_env_read_u64(&env, AFZ_ROOT_PROC, "g", &v), -ENOENT);
        assert_int_equal(l.calls, 2);
        assert_int_equal(l.last_err, -ENOENT);
        assert_string_equal(l.path, "g");
        afz_fixture_free(f);
}

/* What the kernel says of a process that died while its file was open. */
static void test_env_process_vanishes(void **state)
{
        struct afz_env env;
        char path[40], buf[1024];
        (void)state;
        assert_int_equal(afz_env_open_live(&env), 0);
        pid_t pid = fork();
        if (pid == 0) {
                pause();
                _exit(0);
        }
        assert_true(afz_path(path, sizeof path, "%d/stat", (int)pid) > 0);
        int fd = afz_env_open(&env, AFZ_ROOT_PROC, path, 0);
        assert_true(fd >= 0);
        assert_true(afz_fd_read_record(fd, buf, sizeof buf) > 0);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(afz_fd_read_record(fd, buf, sizeof buf), -ESRCH);
        assert_int_equal(afz_fd_read(fd, buf, sizeof buf), -ESRCH);
        close(fd);
        afz_env_done(&env);
}

static void test_path_is_never_cut(void **state)
{
        char buf[8];
        (void)state;
        assert_int_equal(afz_path(buf, sizeof buf, "%s", "1234567"), 7);
        assert_int_equal(afz_path(buf, sizeof buf, "%s", "12345678"), -ENAMETOOLONG);
}

/* ---- dir ---- */

static void test_dir_lists_all(void **state)
{
        enum { FILES = 700 }; /* more than one buffer of getdents() */
        static const struct afz_fixture_row rows[] = {{"proc/d/", NULL}, {"proc/file", ""}, {0}};
        struct afz_fixture *f = afz_fixture_new(rows);
        struct afz_dir dir;
        uint64_t n, sum = 0, seen = 0;
        int r;
        (void)state;
        for (int i = 0; i < FILES; i++) {
                char path[64];
                snprintf(path, sizeof path, "proc/d/%d", i);
                afz_fixture_set(f, path, "");
        }
        assert_int_equal(afz_dir_open(&dir, afz_fixture_env(f), AFZ_ROOT_PROC, "d"), 0);
        for (int round = 0; round < 2; round++) {
                sum = seen = 0;
                while ((r = afz_dir_next(&dir)) > 0) {
                        assert_int_equal(afz_dir_name_u64(&dir, &n), 0);
                        assert_true(dir.inode != 0);
                        sum += n;
                        seen++;
                }
                assert_int_equal(r, 0);
                assert_int_equal(seen, FILES);
                assert_int_equal(sum, FILES * (FILES - 1) / 2);
                assert_int_equal(afz_dir_rewind(&dir), 0);
        }
        afz_dir_close(&dir);
        afz_dir_close(&dir);
        assert_int_equal(afz_dir_open(&dir, afz_fixture_env(f), AFZ_ROOT_PROC, "file"), -ENOTDIR);
        assert_int_equal(afz_dir_open(&dir, afz_fixture_env(f), AFZ_ROOT_SYS, "."), -ENODATA);
        afz_dir_close(&dir);
        afz_fixture_free(f);
}

static void test_dir_names(void **state)
{
        static const struct {
                const char *name;
                int error;
                uint64_t value;
        } cases[] = {
                {"1", 0, 1},
                {"4194304", 0, 4194304},
                {"self", -EINVAL, 0},
                {"12a", -EINVAL, 0},
                {"-1", -EINVAL, 0},
                {" 1", -EINVAL, 0},
                {"99999999999999999999", -ERANGE, 0},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct afz_dir dir = {.name = cases[i].name, .fd = -1};
                uint64_t v = 7;
                assert_int_equal(afz_dir_name_u64(&dir, &v), cases[i].error);
                assert_int_equal(v, cases[i].error ? 7 : cases[i].value);
        }
}

/* ---- map ---- */

static void test_map_against_an_array(void **state)
{
        enum { KEYS = 512, STEPS = 200000 };
        static uint64_t want[KEYS];
        static bool has[KEYS];
        struct afz_map *map;
        uint64_t x = 88172645463325252U, v;
        size_t count = 0;
        (void)state;
        memset(has, 0, sizeof has);
        assert_int_equal(afz_map_new(KEYS, &map), 0);
        for (int i = 0; i < STEPS; i++) {
                x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                size_t k = (size_t)(x >> 20) % KEYS;
                /* Keys that are far apart and keys in a run, zero and the largest among them. */
                uint64_t key = k == 1 ? UINT64_MAX : k % 2 ? k << 32 : k;
                if (x % 3 == 0) {
                        assert_int_equal(afz_map_remove(map, key), has[k]);
                        count -= has[k];
                        has[k] = false;
                } else {
                        assert_int_equal(afz_map_put(map, key, x), 0);
                        count += !has[k];
                        has[k] = true;
                        want[k] = x;
                }
                assert_int_equal(afz_map_get(map, key, &v), has[k]);
                assert_true(!has[k] || v == want[k]);
                assert_int_equal(afz_map_count(map), count);
        }
        for (size_t k = 0; k < KEYS; k++) {
                uint64_t key = k == 1 ? UINT64_MAX : k % 2 ? k << 32 : k;
                assert_int_equal(afz_map_get(map, key, &v), has[k]);
                assert_true(!has[k] || v == want[k]);
        }
        afz_map_clear(map);
        assert_int_equal(afz_map_count(map), 0);
        assert_false(afz_map_get(map, 0, &v));
        afz_map_free(map);
        afz_map_free(NULL);
}

static void test_map_full(void **state)
{
        struct afz_map *map;
        uint64_t v;
        (void)state;
        assert_int_equal(afz_map_new(2, &map), 0);
        assert_int_equal(afz_map_put(map, 1, 10), 0);
        assert_int_equal(afz_map_put(map, 2, 20), 0);
        assert_int_equal(afz_map_put(map, 3, 30), -ENOSPC);
        assert_false(afz_map_get(map, 3, &v));
        assert_int_equal(afz_map_put(map, 1, 11), 0); /* a key that is there is replaced */
        assert_true(afz_map_get(map, 1, &v) && v == 11);
        assert_true(afz_map_remove(map, 2));
        assert_false(afz_map_remove(map, 2));
        assert_int_equal(afz_map_put(map, 3, 30), 0);
        afz_map_free(map);
        assert_int_equal(afz_map_new(0, &map), 0);
        assert_int_equal(afz_map_put(map, 1, 1), -ENOSPC);
        afz_map_free(map);
}

/* ---- out ---- */

static void test_out_in_memory(void **state)
{
        char buf[8];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        (void)state;
        afz_out_str(&out, "1234");
        afz_out_i64(&out, -56);
        assert_int_equal(afz_out_flush(&out), 0);
        assert_int_equal(out.len, 7);
        assert_memory_equal(buf, "1234-56", 7);
        afz_out_str(&out, "78");
        assert_int_equal(afz_out_flush(&out), -ENOSPC);
        assert_int_equal(out.len, 8);
        assert_memory_equal(buf, "1234-567", 8);
}

static void test_out_numbers(void **state)
{
        char buf[128] = "";
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        (void)state;
        afz_out_u64(&out, 0);
        afz_out_char(&out, ' ');
        afz_out_u64(&out, UINT64_MAX);
        afz_out_char(&out, ' ');
        afz_out_i64(&out, INT64_MIN);
        afz_out_char(&out, ' ');
        afz_out_fmt(&out, "%03d", 7);
        afz_out_char(&out, '\0');
        assert_string_equal(buf, "0 18446744073709551615 -9223372036854775808 007");
}

static void test_out_to_a_descriptor(void **state)
{
        int fds[2];
        char buf[4], got[64] = "";
        (void)state;
        assert_int_equal(pipe(fds), 0);
        struct afz_out out = afz_out_to(fds[1], buf, sizeof buf);
        afz_out_str(&out, "longer than the buffer");
        assert_int_equal(afz_out_flush(&out), 0);
        assert_int_equal(read(fds[0], got, sizeof got), 22);
        assert_string_equal(got, "longer than the buffer");
        close(fds[0]);
        signal(SIGPIPE, SIG_IGN);
        afz_out_str(&out, "x");
        assert_int_equal(afz_out_flush(&out), -EPIPE);
        afz_out_str(&out, "more"); /* the first error stays; what follows is dropped */
        assert_int_equal(afz_out_flush(&out), -EPIPE);
        close(fds[1]);
}

static void test_out_without_a_buffer(void **state)
{
        struct afz_out out = afz_out_to(STDOUT_FILENO, NULL, 0);
        (void)state;
        afz_out_bytes(&out, "", 0);
        assert_int_equal(out.err, 0);
        afz_out_char(&out, 'x'); /* must come back at all */
        assert_int_equal(out.err, -ENOSPC);
}

/* Another program on our terminal may have set O_NONBLOCK: a full pipe is waited for. */
static void test_out_to_a_full_pipe(void **state)
{
        enum { BYTES = 300000 };
        static char buf[BYTES], got[4096];
        int fds[2], status;
        (void)state;
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
        pid_t pid = fork();
        if (pid == 0) {
                size_t sum = 0;
                ssize_t n;
                close(fds[1]);
                while ((n = read(fds[0], got, sizeof got)) > 0)
                        sum += (size_t)n;
                _exit(sum == BYTES ? 0 : 1);
        }
        close(fds[0]);
        struct afz_out out = afz_out_to(fds[1], buf, sizeof buf);
        for (int i = 0; i < BYTES; i++)
                afz_out_char(&out, 'x');
        assert_int_equal(afz_out_flush(&out), 0);
        close(fds[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

/* ---- json ---- */

static void test_json_shape(void **state)
{
        char buf[256] = "";
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        struct afz_json j = {.out = &out};
        (void)state;
        afz_json_open(&j, '{');
        afz_json_key(&j, "a"), afz_json_u64(&j, UINT64_MAX);
        afz_json_key(&j, "b"), afz_json_open(&j, '[');
        afz_json_i64(&j, -1), afz_json_bool(&j, true), afz_json_bool(&j, false);
        afz_json_open(&j, '{'), afz_json_close(&j, '}');
        afz_json_open(&j, '['), afz_json_close(&j, ']');
        afz_json_close(&j, ']');
        afz_json_key(&j, "c"), afz_json_str(&j, NULL);
        afz_json_key(&j, "d"), afz_json_double(&j, 1.005, 1);
        afz_json_key(&j, "e"), afz_json_double(&j, (double)NAN, 1);
        afz_json_key(&j, "f"), afz_json_double(&j, -(double)INFINITY, 1);
        afz_json_close(&j, '}');
        assert_string_equal(buf, "{\"a\":18446744073709551615,\"b\":[-1,true,false,{},[]],"
                                 "\"c\":null,\"d\":1.0,\"e\":null,\"f\":null}");
}

static void test_json_strings(void **state)
{
        static const struct {
                const char *text, *want;
        } cases[] = {
                {"", "\"\""},
                {"a\"b\\c", "\"a\\\"b\\\\c\""},
                {"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
                {"\x01\x1b\x7f", "\"\\u0001\\u001b\\u007f\""},
                {"\xc2\x9b\xc2\xa0", "\"\\u009b\xc2\xa0\""}, /* a control of two bytes, and none */
                {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\xa7",
                 "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\xa7\""},
                {"\xff", "\"\xef\xbf\xbd\""},
                {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong */
                {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* surrogate */
                {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
                {"x\xe2\x82", "\"x\xef\xbf\xbd\xef\xbf\xbd\""}, /* cut */
                {"\xe2\x82"
                 "A",
                 "\"\xef\xbf\xbd\xef\xbf\xbd"
                 "A\""},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                char buf[128] = "";
                struct afz_out out = afz_out_to(-1, buf, sizeof buf);
                struct afz_json j = {.out = &out};
                afz_json_str(&j, cases[i].text);
                assert_string_equal(buf, cases[i].want);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_env_reads),
                cmocka_unit_test(test_env_too_large),
                cmocka_unit_test(test_env_machine_and_space),
                cmocka_unit_test(test_env_opens_nothing_for_good),
                cmocka_unit_test(test_env_tells_of_every_path),
                cmocka_unit_test(test_env_process_vanishes),
                cmocka_unit_test(test_path_is_never_cut),
                cmocka_unit_test(test_dir_lists_all),
                cmocka_unit_test(test_dir_names),
                cmocka_unit_test(test_map_against_an_array),
                cmocka_unit_test(test_map_full),
                cmocka_unit_test(test_out_in_memory),
                cmocka_unit_test(test_out_numbers),
                cmocka_unit_test(test_out_to_a_descriptor),
                cmocka_unit_test(test_out_without_a_buffer),
                cmocka_unit_test(test_out_to_a_full_pipe),
                cmocka_unit_test(test_json_shape),
                cmocka_unit_test(test_json_strings),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
