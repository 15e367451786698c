/* A GPU library that is missing, refuses, hangs or dies; and the parts that make up for it. */
#include "gpu_bench.h"

#include <signal.h>
#include <sys/prctl.h>

#include "gpu_helper.h"
#include "gpu_nvml_poll.h"

/* ---- is there a GPU at all ---- */

static void no_gpu_leaves_nothing_running(void **state)
{
        struct bench *b = *state;
        unsetenv("ANTIFREEZE_NVML");
        assert_int_equal(open_sense(b), -ENODATA);
        assert_null(b->sense);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(afz_gpu_status(NULL)->state, AFZ_GPU_ABSENT);
        assert_int_equal(afz_gpu_wait_ready(NULL, LIMIT), 0);
        assert_int_equal(afz_gpu_helper_cpu_ns(NULL), 0);
}

static void missing_library_is_said(void **state)
{
        struct bench *b = *state;
        setenv("ANTIFREEZE_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
        assert_int_equal(open_sense(b), 0);
        assert_int_equal(afz_gpu_wait_ready(b->sense, LIMIT), 0);
        assert_int_equal(read_now(b), -ENODATA);
        assert_int_equal(state_of(b), AFZ_GPU_NO_LIBRARY);
        assert_non_null(strstr(afz_gpu_status(b->sense)->error, "nonexistent"));
        /* Not started again: there is nothing to hope for. */
        for (int i = 0; i < 10; i++) {
                afz_fixture_advance(b->fixture, 10 * S_NS);
                assert_int_equal(read_now(b), -ENODATA);
        }
        assert_int_equal(afz_gpu_status(b->sense)->restarts, 0);
}

static void failures_to_start(void **state)
{
        static const struct {
                const char *mode, *text, *error;
                int result;
                enum afz_gpu_state want;
        } rows[] = {
                {"", "", "NVML sees no GPU", -ENODATA, AFZ_GPU_NO_DEVICE},
                {"init 18", ONE_GPU, "Driver/library version mismatch", -EIO, AFZ_GPU_MISMATCH},
                {"init 9", ONE_GPU, "Driver Not Loaded", -EIO, AFZ_GPU_FAILED},
        };
        struct bench *b = *state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                setenv("FAKE_NVML_MODE", rows[i].mode, 1);
                start(b, rows[i].text);
                assert_int_equal(afz_gpu_wait_ready(b->sense, LIMIT), 0);
                assert_int_equal(read_now(b), rows[i].result);
                assert_int_equal(state_of(b), rows[i].want);
                assert_string_equal(afz_gpu_status(b->sense)->error, rows[i].error);
                afz_sense_gpu.close(b->sense);
                b->sense = NULL;
        }
}

/* ---- a library that hangs or dies ---- */

/* Blocks until the fake is inside the call that never returns. */
static void wait_for_hang(struct bench *b)
{
        (void)afz_gpu_wait_ready(b->sense, 0); /* asks for a poll now */
        int fd = open(b->fifo, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        close(fd);
}

static void a_call_that_hangs_is_a_finding(void **state)
{
        struct bench *b = *state;
        start(b, "gpu 0 name A\ngpu 0 mem 9 1 8 0\n");
        read_fresh(b);
        say(b, "gpu 0 name A\ngpu 0 mem 9 1 8 0\nmode hang nvmlDeviceGetTemperature\n");
        wait_for_hang(b);
        assert_int_equal(read_now(b), 0);
        assert_int_equal(state_of(b), AFZ_GPU_OK);
        expect(find(b, AFZ_KIND_GPU, 0), AFZ_GPU_MEM_USED, 1);
        for (int i = 1; i <= 8; i++) {
                afz_fixture_advance(b->fixture, S_NS / 2);
                assert_int_equal(read_now(b), 0);
                assert_int_equal(state_of(b), i >= 4 ? AFZ_GPU_STUCK : AFZ_GPU_OK);
                assert_int_equal(b->batch->events, i == 4 ? 1 : 0); /* said once */
                /* Values are shown for 3 s and not longer. */
                assert_int_equal(count_kind(b, AFZ_KIND_GPU), i <= 6 ? 1 : 0);
                if (i == 4)
                        assert_non_null(strstr(b->batch->event[0].text,
                                               "nvmlDeviceGetTemperature for 2 s"));
        }
        assert_string_equal(afz_gpu_status(b->sense)->call, "nvmlDeviceGetTemperature");
        assert_int_equal(afz_gpu_wait_ready(b->sense, 0), -ETIMEDOUT);
}

static void a_hang_at_the_start(void **state)
{
        struct bench *b = *state;
        setenv("FAKE_NVML_MODE", "hang nvmlInit_v2", 1);
        start(b, ONE_GPU);
        assert_int_equal(read_now(b), -EAGAIN); /* open() did not wait */
        wait_for_hang(b);
        for (int i = 0; i < 4; i++) {
                afz_fixture_advance(b->fixture, S_NS);
                (void)read_now(b);
        }
        assert_int_equal(state_of(b), AFZ_GPU_STUCK);
        assert_string_equal(afz_gpu_status(b->sense)->call, "nvmlInit_v2");
}

/* A paused machine: the clock jumps by an hour while the helper happened to be in a call. */
static void a_jump_of_the_clock_is_no_hang(void **state)
{
        struct bench *b = *state;
        setenv("FAKE_NVML_MODE", "hang nvmlInit_v2", 1);
        start(b, ONE_GPU);
        wait_for_hang(b);
        (void)read_now(b);
        afz_fixture_advance(b->fixture, 3600 * S_NS);
        (void)read_now(b);
        assert_int_equal(state_of(b), AFZ_GPU_STARTING);
}

static void it_is_started_again(void **state)
{
        struct bench *b = *state;
        start(b, "gpu 0 name A\ngpu 0 mem 9 1 8 0\n");
        read_fresh(b);
        say(b, "mode die nvmlDeviceGetUtilizationRates\ngpu 0 name A\ngpu 0 mem 9 1 8 0\n");
        assert_int_equal(afz_gpu_wait_ready(b->sense, LIMIT), 0);
        say(b, "gpu 0 name A\ngpu 0 mem 9 5 4 0\n");
        (void)read_now(b);
        assert_int_equal(afz_gpu_status(b->sense)->restarts, 0); /* not before its time */
        afz_fixture_advance(b->fixture, S_NS);
        assert_int_equal(read_now(b), 0);
        assert_int_equal(afz_gpu_status(b->sense)->restarts, 1);
        read_fresh(b);
        assert_int_equal(state_of(b), AFZ_GPU_OK);
        expect(find(b, AFZ_KIND_GPU, 0), AFZ_GPU_MEM_USED, 5);
}

static void it_gives_up_in_the_end(void **state)
{
        struct bench *b = *state;
        setenv("FAKE_NVML_MODE", "die nvmlDeviceGetCount_v2", 1);
        start(b, ONE_GPU);
        for (unsigned i = 0; i <= AFZ_GPU_RESTARTS; i++) {
                assert_int_equal(afz_gpu_wait_ready(b->sense, LIMIT), 0); /* until it is dead */
                afz_fixture_advance(b->fixture, 60 * S_NS);
                (void)read_now(b);
                assert_int_equal(afz_gpu_status(b->sense)->restarts,
                                 i < AFZ_GPU_RESTARTS ? i + 1 : AFZ_GPU_RESTARTS);
        }
        assert_int_equal(read_now(b), -EIO);
        assert_int_equal(state_of(b), AFZ_GPU_DIED);
        assert_non_null(strstr(afz_gpu_status(b->sense)->error, "died 4 times"));
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* We are killed: the helper must not stay behind. As a subreaper this test inherits it, and sees
 * its end. */
static void the_helper_dies_with_us(void **state)
{
        struct bench *b = *state;
        setenv("FAKE_NVML_MODE", "hang nvmlInit_v2", 1);
        unsetenv("FAKE_NVML_FIFO");
        say(b, ONE_GPU);
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        pid_t pid = fork();
        if (pid == 0) {
                struct afz_target all = {0};
                void *sense;
                int r = afz_sense_gpu.open(afz_fixture_env(b->fixture), &all, &sense);
                kill(getpid(), r < 0 ? SIGABRT : SIGKILL);
        }
        for (int ended = 0; ended < 2; ended++) {
                int status;
                assert_true(waitpid(-1, &status, 0) > 0);
                assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
                            (WIFEXITED(status) && WEXITSTATUS(status) == 0));
        }
        prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* ---- the pure parts ---- */

static void strides(void **state)
{
        (void)state;
        static const struct {
                size_t end;
                unsigned count, cap, want;
        } rows[] = {
                {16, 1, 64, 16},   {24, 1, 64, 24},   {32, 1, 64, 32}, {32, 2, 64, 16},
                {48, 2, 64, 24},   {64, 2, 64, 32},   {56, 2, 64, 32}, /* the last field left as it
                                                                          was */
                {72, 3, 64, 24},   {1024, 3, 64, 16},                  /* all room cleared first */
                {1536, 3, 64, 24}, {2048, 3, 64, 32}, {50, 2, 64, 0},  {0, 2, 64, 0},
        };
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                assert_int_equal(afz_nvml_stride(rows[i].end, rows[i].count, rows[i].cap),
                                 rows[i].want);
}

static void half_a_report_is_not_taken(void **state)
{
        (void)state;
        static struct afz_gpu_shared shared;
        static struct afz_gpu_report report, got;
        uint32_t seq = 0;
        assert_false(afz_gpu_shared_take(&shared, &seq, &got));
        report.snapshot.gpus = 2;
        report.snapshot.procs = 1;
        report.snapshot.gpu[1].value[3] = 77;
        report.snapshot.proc[0].pid = 5;
        afz_gpu_shared_publish(&shared, &report);
        assert_true(afz_gpu_shared_take(&shared, &seq, &got));
        assert_int_equal(got.snapshot.gpu[1].value[3], 77);
        assert_int_equal(got.snapshot.proc[0].pid, 5);
        assert_false(afz_gpu_shared_take(&shared, &seq, &got)); /* nothing new */
        atomic_fetch_add(&shared.seq, 1);                       /* died while writing */
        assert_false(afz_gpu_shared_take(&shared, &seq, &got));
        atomic_fetch_add(&shared.seq, 1);
        report.snapshot.gpus = AFZ_GPU_MAX + 1; /* a helper gone mad */
        atomic_store(&shared.word[offsetof(struct afz_gpu_report, snapshot.gpus) / 8], ~0ULL);
        assert_false(afz_gpu_shared_take(&shared, &seq, &got));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST_(no_gpu_leaves_nothing_running),
                TEST_(missing_library_is_said),
                TEST_(failures_to_start),
                TEST_(a_call_that_hangs_is_a_finding),
                TEST_(a_hang_at_the_start),
                TEST_(a_jump_of_the_clock_is_no_hang),
                TEST_(it_is_started_again),
                TEST_(it_gives_up_in_the_end),
                TEST_(the_helper_dies_with_us),
                cmocka_unit_test(strides),
                cmocka_unit_test(half_a_report_is_not_taken),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
