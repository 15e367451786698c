/* Sources and the loader: the same batches whoever reads them, each sample once an epoch, dead
 * workers noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "digits.h"
#include "loader.h"
#include "scratch.h"
#include "source.h"

enum { SAMPLES = 50, BATCH = 8, BATCHES = 14 }; /* two epochs of 6 batches, and 2 more */

static const volatile sig_atomic_t go_on = 0, stopped = SIGTERM;

struct batches {
        float pixels[BATCHES][BATCH * AFZ_DIGIT_PIXELS];
        uint8_t labels[BATCHES][BATCH];
};

static void read_all(struct afz_source *source, size_t workers, struct batches *ret)
{
        struct afz_loader *loader;

        assert_int_equal(afz_loader_new(&(struct afz_loader_config){.source = source,
                                                                    .seed = 9,
                                                                    .batch = BATCH,
                                                                    .workers = workers},
                                        &loader),
                         0);
        assert_int_equal(afz_loader_steps_per_epoch(loader), SAMPLES / BATCH);
        for (size_t i = 0; i < BATCHES; i++)
                assert_int_equal(afz_loader_next(loader, ret->pixels[i], ret->labels[i]), 0);
        afz_loader_free(loader);
}

static void shuffle_is_a_permutation(void **state)
{
        (void)state;
        for (uint64_t samples = 1; samples < 130; samples++) {
                uint8_t seen[130] = {0};

                for (uint64_t place = 0; place < samples; place++) {
                        const uint64_t sample = afz_loader_shuffle(3, samples, samples, place);

                        assert_true(sample < samples);
                        assert_int_equal(seen[sample]++, 0);
                }
        }
}

static void workers_and_sources_agree(void **state)
{
        static struct batches drawn, other;
        struct afz_source *source;

        (void)state;
        assert_int_equal(afz_source_new_drawn(9, SAMPLES, &source), 0);
        read_all(source, 0, &drawn);
        for (size_t workers = 1; workers <= 3; workers++) {
                memset(&other, 0, sizeof(other));
                read_all(source, workers, &other);
                assert_memory_equal(&drawn, &other, sizeof(drawn));
        }
        afz_source_free(source);

        assert_int_equal(afz_source_new_whole(9, SAMPLES, &go_on, &source), 0);
        read_all(source, 0, &other);
        assert_memory_equal(&drawn, &other, sizeof(drawn));
        afz_source_free(source);
}

/* The file holds a byte for each pixel, so it is right to half a step of 1/255. */
static void disk_gives_what_was_drawn(void **state)
{
        float pixels[AFZ_DIGIT_PIXELS], wanted[AFZ_DIGIT_PIXELS];
        struct afz_scratch *scratch;
        struct afz_source *source;
        char path[4096];
        struct stat st;

        (void)state;
        assert_int_equal(afz_scratch_new(NULL, &scratch), 0);
        snprintf(path, sizeof(path), "%s", afz_scratch_path(scratch));
        assert_int_equal(
                afz_source_new_slow_disk(9, SAMPLES, UINT64_C(1) << 40, scratch, &go_on, &source),
                0);
        for (uint64_t i = 0; i < SAMPLES; i++) {
                uint8_t label;

                assert_int_equal(afz_source_read(source, i, pixels, &label), 0);
                assert_int_equal(label, afz_digit_label(i));
                afz_digit_draw(9, AFZ_DIGITS_TRAINING, i, wanted);
                for (size_t j = 0; j < AFZ_DIGIT_PIXELS; j++)
                        assert_true(fabsf(pixels[j] - wanted[j]) < .51F / 255);
        }
        afz_source_free(source);
        assert_int_equal(stat(path, &st), 0);
        afz_scratch_free(scratch);
        assert_int_equal(stat(path, &st), -1);
}

static void stop_ends_the_preparations(void **state)
{
        struct afz_source *source = NULL;
        struct afz_scratch *scratch;

        (void)state;
        assert_int_equal(afz_source_new_whole(9, 1000, &stopped, &source), -EINTR);
        assert_int_equal(afz_scratch_new(NULL, &scratch), 0);
        assert_int_equal(afz_source_new_slow_disk(9, 1000, 1, scratch, &stopped, &source), -EINTR);
        assert_null(source);
        afz_scratch_free(scratch);
}

static void scratch_refuses(void **state)
{
        struct afz_scratch *scratch = NULL;
        char *endless = malloc(10001);

        (void)state;
        assert_non_null(endless);
        memset(endless, 'x', 10000);
        endless[10000] = '\0';
        assert_int_equal(afz_scratch_new("/nonexistent/folder", &scratch), -ENOENT);
        assert_int_equal(afz_scratch_new("/dev/null", &scratch), -ENOTDIR);
        assert_int_equal(afz_scratch_new(endless, &scratch), -ENAMETOOLONG);
        assert_null(scratch);
        assert_null(afz_scratch_free(NULL));
        free(endless);
}

/* The first child of this process: the loader's only worker. */
static pid_t only_child(void)
{
        char path[64];
        long pid = 0;
        FILE *children;

        snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
        children = fopen(path, "re");
        if (!children)
                return 0;
        if (fscanf(children, "%ld", &pid) != 1)
                pid = 0;
        fclose(children);
        return (pid_t)pid;
}

static void dead_worker_is_noticed(void **state)
{
        static float pixels[BATCH * AFZ_DIGIT_PIXELS];
        uint8_t labels[BATCH];
        struct afz_source *source;
        struct afz_loader *loader;
        int rc, status;
        pid_t worker;

        (void)state;
        assert_int_equal(afz_source_new_drawn(9, SAMPLES, &source), 0);
        assert_int_equal(
                afz_loader_new(
                        &(struct afz_loader_config){.source = source, .batch = BATCH, .workers = 1},
                        &loader),
                0);
        worker = only_child();
        if (!worker)
                skip(); /* a kernel without CONFIG_PROC_CHILDREN */
        kill(worker, SIGKILL);
        do /* what it had ready is still good */
                rc = afz_loader_next(loader, pixels, labels);
        while (rc == 0);
        assert_int_equal(rc, -ECHILD);
        assert_int_equal(afz_loader_casualty(loader, &status), worker);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        afz_loader_free(loader);
        afz_source_free(source);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(shuffle_is_a_permutation),
                cmocka_unit_test(workers_and_sources_agree),
                cmocka_unit_test(disk_gives_what_was_drawn),
                cmocka_unit_test(stop_ends_the_preparations),
                cmocka_unit_test(scratch_refuses),
                cmocka_unit_test(dead_worker_is_noticed),
        };

        return cmocka_run_group_tests_name("demo_loader", tests, NULL, NULL);
}
