/* next() and what is around it: waiting for a batch, and what a program's own memory makes of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loader_rows.h"
#include "parts.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { IS_MALLOC_GLIBC = 0 };
#else
enum { IS_MALLOC_GLIBC = 1 };
#endif

/* Steps of a training that makes two arrays: page faults of each. */
static long faults_of_steps(size_t bytes)
{
        enum { STEPS = 100 };
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        for (int i = 0; i < STEPS; i++) {
                char *volatile one = malloc(bytes), *volatile two = malloc(bytes);
                memset(one, 1, bytes);
                memset(two, 1, bytes);
                free(one);
                free(two);
        }
        getrusage(RUSAGE_SELF, &after);
        return (after.ru_minflt - before.ru_minflt) / STEPS;
}

/* The first of all tests: malloc forgets nothing. */
static void test_steps_keep_their_pages(void **state)
{
        struct afz_loader_options options = rows_options();
        (void)state;
        if (!IS_MALLOC_GLIBC)
                skip();
        options.budget_bytes = 16 * MIB;
        options.batch = 4096; /* of 512 KiB */
        long before = faults_of_steps(200 * KIB);
        struct afz_loader *l = open_ok(&options);
        long after = faults_of_steps(200 * KIB);
        if (before < 40 || after > 4)
                fail_msg("%ld page faults a step without a loader, %ld with one", before, after);
        afz_loader_close(l);
}

/* What wait() has promised comes at once, also where all samples of several batches were left out.
 */
static void test_wait_passes_what_is_empty(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_batch batch;
        char why[AFZ_WHY_MAX];
        uint64_t count = 0;
        int r = 1;
        (void)state;
        options.budget_bytes = 512 * KIB;
        options.shuffle = AFZ_SHUFFLE_NONE;
        options.on_error = AFZ_ERROR_SKIP;
        struct afz_loader *l = open_ok(&options);
        assert_int_equal(truncate(fixture_path, 128 + SAMPLES / 2 * WIDTH * 8), 0);
        while (r > 0) {
                assert_int_equal(afz_loader_wait(l, 60000), 1);
                r = afz_loader_next_within(l, 0, &batch, why);
                if (r > 0) {
                        assert_true(batch.count > 0);
                        count += batch.count;
                        afz_loader_release(l, batch.lease);
                }
        }
        write_rows(fixture_path, SAMPLES, WIDTH);
        assert_int_equal(r, 0);
        struct afz_loader_times times;
        afz_loader_times(l, &times);
        assert_int_equal(count + times.skipped, SAMPLES);
        assert_in_range(times.skipped, 4000, SAMPLES - 4000);
        afz_loader_close(l);
}

/* Late, while nobody makes batches; then it comes. */
static void test_within(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_batch batch;
        char why[AFZ_WHY_MAX];
        (void)state;
        struct afz_loader *l = open_ok(&options);
        assert_int_equal(afz_loader_next(l, &batch, why), 1);
        afz_loader_release(l, batch.lease);
        pthread_mutex_lock(&l->lock);
        l->is_paused = true;
        pthread_mutex_unlock(&l->lock);
        uint64_t index = batch.index;
        int r;
        while ((r = afz_loader_next_within(l, 1, &batch, why)) == 1) {
                assert_int_equal(batch.index, ++index);
                afz_loader_release(l, batch.lease);
        }
        assert_int_equal(r, -ETIME);
        pthread_mutex_lock(&l->lock);
        l->is_paused = false;
        pthread_cond_broadcast(&l->work);
        pthread_cond_broadcast(&l->gather);
        pthread_mutex_unlock(&l->lock);
        assert_int_equal(afz_loader_next_within(l, 60000, &batch, why), 1);
        assert_int_equal(batch.index, index + 1);
        afz_loader_release(l, batch.lease);
        afz_loader_close(l);
}

/* In a child: there the arena's pages are asked for in vain, with that error. */
static int open_without_pages(uint32_t error)
{
        struct sock_filter rules[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_madvise, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 23 /* MADV_POPULATE_WRITE */, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
        struct afz_loader_options options = rows_options();
        struct afz_loader *loader;
        char why[AFZ_WHY_MAX];
        int status;
        pid_t child = fork();
        if (child == 0) {
                if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
                        _exit(0);
                _exit(-afz_loader_open(&options, &loader, why));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* By hand where the kernel does not know it; but what is not there is not touched. */
static void test_pages_that_are_not_there(void **state)
{
        (void)state;
        if (!IS_MALLOC_GLIBC) /* sanitizers end such a child otherwise */
                skip();
        assert_int_equal(open_without_pages(EINVAL), 0);
        assert_int_equal(open_without_pages(ENOMEM), ENOMEM);
        assert_int_equal(open_without_pages(EFAULT), ENOMEM);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_steps_keep_their_pages),
                cmocka_unit_test(test_wait_passes_what_is_empty),
                cmocka_unit_test(test_within),
                cmocka_unit_test(test_pages_that_are_not_there),
        };
        return cmocka_run_group_tests(tests, make_rows, fixture_remove);
}
