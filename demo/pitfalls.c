#include "pitfalls.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deadlock.h"
#include "matrix.h"

struct keepsake {
        struct keepsake *older;
        float values[];
};

struct afz_pitfalls {
        const struct afz_options *options;
        struct keepsake *history, *intermediates; /* the newest of each */
        FILE *log;
        struct afz_deadlock *deadlock;
};

static struct keepsake *keep(struct keepsake **list, size_t values)
{
        struct keepsake *kept = malloc(sizeof(*kept) + values * sizeof(kept->values[0]));

        if (!kept)
                return NULL;
        kept->older = *list;
        *list = kept;
        return kept;
}

static void forget_all(struct keepsake *list)
{
        while (list) {
                struct keepsake *older = list->older;

                free(list);
                list = older;
        }
}

/* history.append(activations): the hidden layer's, over and over until the asked-for size is
 * reached. */
static int retain_history(struct afz_pitfalls *pitfalls, uint64_t step, const struct afz_pass *pass)
{
        const size_t wanted = pitfalls->options->retain_history_bytes / sizeof(float) + 1;
        const size_t there = pass->batch * AFZ_NET_HIDDEN;
        struct keepsake *kept;

        (void)step;
        if (!pitfalls->options->retain_history_bytes)
                return 0;
        kept = keep(&pitfalls->history, wanted);
        if (!kept)
                return -ENOMEM;
        for (size_t done = 0; done < wanted; done += there) {
                const size_t part = wanted - done < there ? wanted - done : there;

                memcpy(&kept->values[done], pass->hidden, part * sizeof(float));
        }
        return 0;
}

/* results.append(outputs @ outputs.T): batch x batch, of no use once the step is over. */
static int retain_intermediate(struct afz_pitfalls *pitfalls, uint64_t step,
                               const struct afz_pass *pass)
{
        struct keepsake *kept;
        size_t values;

        (void)step;
        if (!pitfalls->options->retain_intermediate)
                return 0;
        if (__builtin_mul_overflow(pass->batch, pass->batch, &values) ||
            values > SIZE_MAX / sizeof(float) - 1)
                return -ENOMEM;
        kept = keep(&pitfalls->intermediates, values);
        if (!kept)
                return -ENOMEM;
        for (size_t i = 0; i < pass->batch; i++)
                for (size_t j = 0; j < pass->batch; j++)
                        kept->values[i * pass->batch + j] =
                                afz_matrix_dot(&pass->output[i * AFZ_NET_OUTPUTS],
                                               &pass->output[j * AFZ_NET_OUTPUTS], AFZ_NET_OUTPUTS);
        return 0;
}

/* A line for each sample: some 500 kB a step, as text, which nobody reads. */
static int log_everything(struct afz_pitfalls *pitfalls, uint64_t step, const struct afz_pass *pass)
{
        if (!pitfalls->log)
                return 0;
        for (size_t i = 0; i < pass->batch; i++) {
                fprintf(pitfalls->log, "step %llu sample %zu:", (unsigned long long)step, i);
                for (size_t j = 0; j < AFZ_NET_HIDDEN; j++)
                        fprintf(pitfalls->log, " %.6f",
                                (double)pass->hidden[i * AFZ_NET_HIDDEN + j]);
                putc('\n', pitfalls->log);
        }
        errno = 0;
        if (fflush(pitfalls->log) != 0 || ferror(pitfalls->log))
                return errno ? -errno : -EIO;
        return 0;
}

/* Iterates x = cos x until it stands still to within a tolerance that is below zero by mistake. */
static int spin(struct afz_pitfalls *pitfalls, uint64_t step, const struct afz_pass *pass)
{
        volatile double tolerance = -1e-9;
        volatile double change = 1;
        double x = pass->batch ? (double)pass->output[0] : 1;

        if (step != pitfalls->options->spin_step)
                return 0;
        while (fabs(change) > tolerance) {
                const double next = cos(x);

                change = next - x;
                x = next;
        }
        return 0;
}

static int deadlock(struct afz_pitfalls *pitfalls, uint64_t step, const struct afz_pass *pass)
{
        (void)pass;
        if (step == pitfalls->options->deadlock_step)
                afz_deadlock_cross(pitfalls->deadlock);
        return 0;
}

static const struct {
        const char *name;
        int (*step)(struct afz_pitfalls *pitfalls, uint64_t step, const struct afz_pass *pass);
} rows[] = {
        {"retain-history", retain_history},
        {"retain-intermediate", retain_intermediate},
        {"log-everything", log_everything},
        {"spin", spin},
        {"deadlock", deadlock},
};

static int open_log(struct afz_scratch *scratch, FILE **ret)
{
        int fd, rc = afz_scratch_create(scratch, "activations.log", &fd);
        FILE *log;

        if (rc < 0)
                return rc;
        log = fdopen(fd, "w");
        if (!log) {
                rc = -errno;
                close(fd);
                return rc;
        }
        *ret = log;
        return 0;
}

int afz_pitfalls_new(const struct afz_options *options, struct afz_scratch *scratch,
                     struct afz_pitfalls **ret)
{
        struct afz_pitfalls *pitfalls = calloc(1, sizeof(*pitfalls));
        int rc = 0;

        if (!pitfalls)
                return -ENOMEM;
        pitfalls->options = options;
        if (options->log_everything)
                rc = open_log(scratch, &pitfalls->log);
        if (rc == 0 && options->deadlock_step)
                rc = afz_deadlock_new(&pitfalls->deadlock);
        if (rc < 0) {
                afz_pitfalls_free(pitfalls);
                return rc;
        }
        *ret = pitfalls;
        return 0;
}

struct afz_pitfalls *afz_pitfalls_free(struct afz_pitfalls *pitfalls)
{
        if (!pitfalls)
                return NULL;
        afz_deadlock_free(pitfalls->deadlock);
        if (pitfalls->log)
                fclose(pitfalls->log);
        forget_all(pitfalls->intermediates);
        forget_all(pitfalls->history);
        free(pitfalls);
        return NULL;
}

int afz_pitfalls_step(struct afz_pitfalls *pitfalls, uint64_t step, const struct afz_pass *pass,
                      const char **ret_name)
{
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const int rc = rows[i].step(pitfalls, step, pass);

                if (rc < 0) {
                        *ret_name = rows[i].name;
                        return rc;
                }
        }
        return 0;
}
