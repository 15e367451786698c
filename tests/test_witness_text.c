/* links: engine */
/* The text of a thread with more frames than it has room for. What reads the frames is played here:
 * a process of our own, with whatever stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "native_stack.h"
#include "py_stack.h"
#include "witness.h"

/* How long the folder of each frame's file is: the outer ones' by `less` shorter. */
static size_t folder, less;

int afz_py_open(pid_t pid, struct afz_py **ret)
{
        static char one;
        (void)pid;
        *ret = (struct afz_py *)(void *)&one;
        return 0;
}

int afz_py_thread(struct afz_py *py, pid_t tid, struct afz_py_frame *ret, size_t cap)
{
        (void)py;
        if (tid != getppid()) /* the witness is a child of the test */
                return 0;
        for (size_t i = 0; i < cap; i++) {
                int n = (int)(i < cap / 2 ? folder : folder - less);
                snprintf(ret[i].file, sizeof ret[i].file, "/%0*d/a.py", n, 0);
                snprintf(ret[i].function, sizeof ret[i].function, "f%zu", i);
                ret[i].line = 7;
        }
        return (int)cap;
}

void afz_py_close(struct afz_py *py)
{
        (void)py;
}

int afz_native_open(pid_t pid, struct afz_native **ret)
{
        (void)pid, (void)ret;
        return -1;
}

int afz_native_thread(struct afz_native *native, pid_t tid, uint64_t sp, uint64_t pc,
                      struct afz_native_frame *ret, size_t cap)
{
        (void)native, (void)tid, (void)sp, (void)pc, (void)ret, (void)cap;
        return -1;
}

void afz_native_close(struct afz_native *native)
{
        (void)native;
}

/* The frames are told from the innermost one on, without a hole, and as many as have room. */
static void check(void *ctx, int64_t code, const char *text)
{
        char in[16];
        int told = 0;
        if (code != ((int64_t)getpid() << 32 | getpid()))
                return;
        *(bool *)ctx = true;
        assert_non_null(strstr(text, ", slept "));
        for (const char *line = text; (line = strstr(line, "\npython: ")); told++) {
                line++;
                snprintf(in, sizeof in, " in f%d", told);
                size_t n = strcspn(line, "\n");
                assert_true(n > strlen(in));
                assert_memory_equal(line + n - strlen(in), in, strlen(in));
        }
        assert_true(told > 10); /* not none, either */
}

static void test_deep(void **state)
{
        const struct afz_env *env = *state;
        pid_t pid = getpid();
        for (folder = 60; folder < 240; folder += 3)
                for (less = 0; less < 60; less += 40) {
                        struct afz_witness *w;
                        bool seen = false;
                        assert_int_equal(afz_witness_start(env, &pid, 1, false, &w), 0);
                        while (!afz_witness_ended(w, afz_clock_ns(CLOCK_MONOTONIC)))
                                nanosleep(&(struct timespec){0, 200000}, NULL);
                        afz_witness_tell(w, check, &seen);
                        assert_true(seen);
                        afz_witness_free(w);
                }
}

int main(void)
{
        struct afz_env env;
        if (afz_env_open_live(&env) < 0)
                return 77;
        const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_deep, &env)};
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        afz_env_done(&env);
        return r;
}
