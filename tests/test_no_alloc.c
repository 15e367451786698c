/* links: engine. Not for builds with a sanitizer, which has the allocator to itself. */
#include <errno.h>
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

#include "engine.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
        __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

/* The allocator's own entry points under its other names, so that ours can stand in their place
 * without dlsym(), which allocates. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);
extern void __libc_free(void *p);

static volatile bool counting;
static volatile unsigned long calls;

#ifndef SANITIZED
void *malloc(size_t n)
{
        calls += counting;
        return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
        calls += counting;
        return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
        calls += counting;
        return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
        calls += counting;
        return __libc_memalign(align, n);
}

void free(void *p)
{
        calls += counting && p;
        __libc_free(p);
}
#endif

/* Time passes by 100 ms a tick, so that every sense has its turn many times. */
static uint64_t now_ns = UINT64_C(1000000000);

static uint64_t moved_now(void *ctx)
{
        (void)ctx;
        return now_ns;
}

/* A job in which something is always born and something dies. */
static _Noreturn void job(void)
{
        for (;;) {
                pid_t kid = fork();
                if (kid == 0) {
                        if (fork() == 0) {
                                usleep(3000);
                                _exit(0);
                        }
                        usleep(1000);
                        _exit(0);
                }
                waitpid(kid, NULL, 0);
        }
}

static void run_ticks(uint64_t pid)
{
        struct afz_env env;
        struct afz_engine *e;
        uint64_t most = 0;
        assert_int_equal(afz_env_open_live(&env), 0);
        env.now_ns = moved_now;
        assert_int_equal(afz_engine_new(&env, &(struct afz_target){.pid = pid}, &e), 0);
        for (int i = 0; i < 202; i++) {
                counting = i >= 2;
                afz_engine_tick(e);
                counting = false;
                now_ns += UINT64_C(100000000);
                const struct afz_sample *j = afz_window_one(afz_engine_window(e), AFZ_KIND_JOB);
                uint64_t n = (uint64_t)afz_sample_or(j, AFZ_JOB_PROCESSES, 0);
                most = n > most ? n : most;
        }
        afz_engine_free(e);
        afz_env_done(&env);
        assert_true(most >= 1);
        if (calls > 0)
                fail_msg("%lu calls of the allocator in 200 ticks", calls);
}

static void test_counter_counts(void **state)
{
        (void)state;
        calls = 0;
        counting = true;
        void *volatile p = malloc(10);
        p = realloc(p, 20);
        free(p);
        counting = false;
        assert_int_equal(calls, 3);
        calls = 0;
}

static void test_job_ticks(void **state)
{
        (void)state;
        pid_t pid = fork();
        if (pid == 0)
                job();
        run_ticks((uint64_t)pid);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

static void test_machine_ticks(void **state)
{
        (void)state;
        run_ticks(0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_counter_counts),
                cmocka_unit_test(test_job_ticks),
                cmocka_unit_test(test_machine_ticks),
        };
#ifdef SANITIZED
        (void)tests;
        puts("skipped: a sanitizer has its own allocator, which cannot be counted");
        return 77;
#else
        return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
