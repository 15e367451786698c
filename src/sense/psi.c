/* Pressure of the whole machine. Totals are counted in every tick, so that 100 ms of stalling is
 * seen in the next tick and not in a 10 s average. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "count_of.h"
#include "psi_parse.h"
#include "sense.h"

struct row {
        const char *path;
        enum afz_metric some, full, some_avg10, full_avg10;
};

/* The kernel defines no "full" for the cpu of a whole machine, so its average is not kept. */
static const struct row rows[] = {
        {"pressure/cpu", AFZ_PSI_CPU_SOME, AFZ_PSI_CPU_FULL, AFZ_PSI_CPU_SOME_AVG10, 0},
        {"pressure/memory", AFZ_PSI_MEMORY_SOME, AFZ_PSI_MEMORY_FULL, AFZ_PSI_MEMORY_SOME_AVG10,
         AFZ_PSI_MEMORY_FULL_AVG10},
        {"pressure/io", AFZ_PSI_IO_SOME, AFZ_PSI_IO_FULL, AFZ_PSI_IO_SOME_AVG10,
         AFZ_PSI_IO_FULL_AVG10},
};
enum { ROWS = AFZ_COUNT_OF(rows) };

struct state {
        int fd[ROWS];
};

static void psi_close(void *p)
{
        struct state *st = p;
        for (int i = 0; st && i < ROWS; i++)
                if (st->fd[i] >= 0)
                        close(st->fd[i]);
        free(st);
}

static int psi_open(const struct afz_env *env, const struct afz_target *target, void **ret_state)
{
        (void)target;
        struct state *st = calloc(1, sizeof *st);
        char probe[256];
        int found = 0, err = -ENODATA;
        if (!st)
                return -ENOMEM;
        for (int i = 0; i < ROWS; i++) {
                st->fd[i] = afz_env_open(env, AFZ_ROOT_PROC, rows[i].path, 0);
                /* With psi=0 the files open, and say EOPNOTSUPP when they are read. */
                if (st->fd[i] >= 0 && afz_fd_read_record(st->fd[i], probe, sizeof probe) > 0)
                        found++;
                else if (st->fd[i] < 0 && afz_sense_missing(st->fd[i]) != -ENODATA)
                        err = st->fd[i];
        }
        if (found == 0) {
                psi_close(st);
                return err;
        }
        *ret_state = st;
        return 0;
}

static void set_line(struct afz_sample *s, const struct afz_psi_line *line, enum afz_metric total,
                     enum afz_metric avg10)
{
        afz_sample_set_u64(s, total, line->total_ns);
        if (avg10 != 0)
                afz_sample_set_u64(s, avg10, line->avg10_permyriad);
}

static int psi_read(void *p, struct afz_batch *out)
{
        struct state *st = p;
        struct afz_sample *s = afz_batch_add(out, (struct afz_subject){AFZ_KIND_PSI, 0, 0}, "psi");
        if (!s)
                return -ENOSPC;
        for (int i = 0; i < ROWS; i++) {
                char buf[256];
                struct afz_psi psi;
                ssize_t n = st->fd[i] >= 0 ? afz_fd_read_record(st->fd[i], buf, sizeof buf) : -1;
                if (n < 0 || afz_psi_parse((struct afz_span){buf, (size_t)n}, &psi) < 0)
                        continue;
                set_line(s, &psi.some, rows[i].some, rows[i].some_avg10);
                if (psi.has_full)
                        set_line(s, &psi.full, rows[i].full, rows[i].full_avg10);
        }
        return s->present != 0 ? 0 : -ENODATA; /* PSI can be turned off while we look */
}

const struct afz_sense afz_sense_psi = {
        .name = "psi",
        .what = "pressure: time lost waiting for memory, disks and cores",
        .max_samples = 1,
        .absent = "no pressure information (PSI): the kernel lacks it or was started with psi=0; "
                  "boot with psi=1 to see it",
        .denied = "/proc/pressure may not be read",
        .open = psi_open,
        .read = psi_read,
        .close = psi_close,
};
