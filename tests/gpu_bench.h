#ifndef AFZ_GPU_BENCH_H
#define AFZ_GPU_BENCH_H
/* What the tests of the GPU sense share: a fixture, a fake NVML that reads from a text in it, and
 * the sense on top. FAKE_NVML_DIR is where the fake libraries are, AFZ_FIXTURES where the
 * recordings are.
 *
 * Nothing sleeps: values are waited for with afz_gpu_wait_ready(), and "stuck" is a matter of the
 * fixture's clock (the helper's own stands still, as it was forked).
 */
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "gpu.h"
#include "sense.h"

#define S_NS  UINT64_C(1000000000)
#define LIMIT (30 * S_NS) /* for a wait that only ends so when the test fails */

#define ONE_GPU                                                                                    \
        "driver 580.95.05\nnvml 13.580.95.05\ncuda 13000\n"                                        \
        "gpu 0 name NVIDIA H200\ngpu 0 uuid GPU-1\ngpu 0 pci 00000000:01:00.0\n"                   \
        "gpu 0 mem 1000000 300000 600000 100000\ngpu 0 util 42 7\ngpu 0 temp 34\n"                 \
        "gpu 0 temp_slowdown 87\ngpu 0 power 76543\ngpu 0 power_limit 700000\ngpu 0 fan 30\n"      \
        "gpu 0 clock 345\ngpu 0 clock_max 1980\ngpu 0 mem_clock 3201\ngpu 0 throttle 1\n"          \
        "gpu 0 ecc_corrected 2\ngpu 0 ecc_uncorrected 3\ngpu 0 pcie_rx 11\ngpu 0 pcie_tx 12\n"     \
        "gpu 0 pcie_gen 5\ngpu 0 pcie_width 16\ngpu 0 pcie_replays 4\n"                            \
        "proc 0 101 1000\nproc 0 102 2000\nproc 0 103 -1\nproc 0 101 1000 graphics\n"              \
        "proc 0 104 500 graphics\nproc 0 105 600 mps\n"

struct bench {
        struct afz_fixture *fixture;
        char file[256], fifo[256];
        size_t fds;
        void *sense;
        struct afz_batch *batch;
};

static const struct afz_fixture_row machine[] = {
        {"proc/101/comm", "python3\n"},
        {"proc/102/comm", "a) Z\nb\n"},
        {"proc/driver/nvidia/version",
         "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"},
        {"sys/", NULL},
        {0},
};

/* Replaced whole, as a reader must never see half of it. */
static inline void say(struct bench *b, const char *text)
{
        char fresh[300];
        snprintf(fresh, sizeof fresh, "%s.new", b->file);
        FILE *f = fopen(fresh, "w");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(rename(fresh, b->file), 0);
}

static inline void use_library(const char *variant)
{
        char path[512];
        const char *dir = getenv("FAKE_NVML_DIR");
        assert_non_null(dir);
        snprintf(path, sizeof path, "%s/libfake-nvml-%s.so", dir, variant);
        setenv("ANTIFREEZE_NVML", path, 1);
}

static inline int setup(void **state)
{
        struct bench *b = calloc(1, sizeof *b);
        b->fds = afz_fixture_open_fds();
        b->fixture = afz_fixture_new(machine);
        snprintf(b->file, sizeof b->file, "%s/nvml.txt", afz_fixture_dir(b->fixture));
        setenv("FAKE_NVML_FILE", b->file, 1);
        snprintf(b->fifo, sizeof b->fifo, "%s/fifo", afz_fixture_dir(b->fixture));
        assert_int_equal(mkfifo(b->fifo, 0600), 0);
        setenv("FAKE_NVML_FIFO", b->fifo, 1);
        unsetenv("FAKE_NVML_MODE");
        use_library("now");
        assert_int_equal(afz_batch_new(afz_sense_gpu.max_samples, &b->batch), 0);
        *state = b;
        return 0;
}

/* After every test: no process and no descriptor is left. */
static inline int teardown(void **state)
{
        struct bench *b = *state;
        afz_sense_gpu.close(b->sense);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        afz_batch_free(b->batch);
        unlink(b->file);
        unlink(b->fifo);
        afz_fixture_free(b->fixture);
        assert_int_equal(afz_fixture_open_fds(), b->fds);
        free(b);
        return 0;
}

static inline int open_sense(struct bench *b)
{
        struct afz_target all = {0};
        return afz_sense_gpu.open(afz_fixture_env(b->fixture), &all, &b->sense);
}

static inline int read_now(struct bench *b)
{
        afz_batch_start(b->batch, afz_env_now(afz_fixture_env(b->fixture)));
        return afz_sense_gpu.read(b->sense, b->batch);
}

static inline void read_fresh(struct bench *b)
{
        assert_int_equal(afz_gpu_wait_ready(b->sense, LIMIT), 0);
        assert_int_equal(read_now(b), 0);
}

static inline void start(struct bench *b, const char *text)
{
        say(b, text);
        assert_int_equal(open_sense(b), 0);
}

static inline const struct afz_sample *find(const struct bench *b, enum afz_kind kind, uint64_t id)
{
        for (size_t i = 0; i < b->batch->count; i++)
                if (b->batch->sample[i].subject.kind == kind &&
                    b->batch->sample[i].subject.id == id)
                        return &b->batch->sample[i];
        return NULL;
}

static inline size_t count_kind(const struct bench *b, enum afz_kind kind)
{
        size_t count = 0;
        for (size_t i = 0; i < b->batch->count; i++)
                count += b->batch->sample[i].subject.kind == kind;
        return count;
}

static inline void expect(const struct afz_sample *s, enum afz_metric metric, int64_t want)
{
        int64_t value;
        assert_non_null(s);
        if (!afz_sample_get(s, metric, &value))
                fail_msg("%s is absent", afz_metric_info(metric)->name);
        if (value != want)
                fail_msg("%s is %lld, not %lld", afz_metric_info(metric)->name, (long long)value,
                         (long long)want);
}

static inline void expect_absent(const struct afz_sample *s, enum afz_metric metric)
{
        assert_non_null(s);
        if (afz_sample_has(s, metric))
                fail_msg("%s is there", afz_metric_info(metric)->name);
}

static inline const struct afz_event *event_of(const struct bench *b, enum afz_event_kind kind)
{
        for (size_t i = 0; i < b->batch->events; i++)
                if (b->batch->event[i].kind == kind)
                        return &b->batch->event[i];
        return NULL;
}

static inline enum afz_gpu_state state_of(const struct bench *b)
{
        return afz_gpu_status(b->sense)->state;
}

#define TEST_(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
