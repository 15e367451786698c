#include "scout_shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"

enum {
        /* Members that are asked in one look, at 0.1 to 1 ms each. What the others hold counts when
         * one of these is seen with it. */
        MAX_MEMBERS = 128,
};

/* Asking the members of a large job is the dearest of all that we look at. What fills is looked at
 * in any case (afz_scout_shm_fills). */
static const struct {
        unsigned part;             /* of a core: 0.1 %; 32 processes take 4 ms */
        uint64_t slowest_ns;       /* so often in any case */
        uint64_t unfinished_bytes; /* written and not mapped, the job may have finished it, and what
                                    * it has finished is not swept: seen at the usual pace */
} pace = {
        .part = 1000,
        .slowest_ns = 5 * AFZ_NS_PER_S,
        .unfinished_bytes = UINT64_C(16) << 20, /* less is never swept */
};

struct afz_scout_shm {
        const struct afz_env *env;
        struct afz_shm *files; /* NULL: not begun, or there is no /dev/shm */
        uint64_t looked_ns;    /* 0: not yet */
        uint64_t cost_ns;      /* processor time, of the last look */
};

int afz_scout_shm_new(const struct afz_env *env, struct afz_scout_shm **ret)
{
        struct afz_scout_shm *shm = calloc(1, sizeof *shm);
        if (!shm)
                return -ENOMEM;
        shm->env = env;
        *ret = shm;
        return 0;
}

void afz_scout_shm_free(struct afz_scout_shm *shm)
{
        if (!shm)
                return;
        afz_shm_free(shm->files);
        free(shm);
}

void afz_scout_shm_begin(struct afz_scout_shm *shm)
{
        char path[64];
        afz_shm_free(shm->files);
        shm->files = NULL;
        shm->looked_ns = 0;
        snprintf(path, sizeof path, "/proc/self/fd/%d/shm", shm->env->root_fd[AFZ_ROOT_DEV]);
        (void)afz_shm_new(path, &shm->files);
}

bool afz_scout_shm_fills(const struct afz_scout_shm *shm)
{
        return shm->files && afz_shm_has_grown(shm->files);
}

static void look(struct afz_scout_shm *shm, const struct afz_window *w)
{
        const struct afz_sample *s;
        size_t cursor = 0;
        int asked = 0;
        uint64_t begin_ns = afz_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        if (afz_shm_look(shm->files) > 0)
                while (asked++ < MAX_MEMBERS && (s = afz_window_next(w, AFZ_KIND_PROC, &cursor)))
                        (void)afz_shm_note(shm->files, shm->env, (pid_t)s->subject.id);
        afz_shm_settle(shm->files, w->t_ns);
        shm->looked_ns = w->t_ns;
        shm->cost_ns = afz_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
}

static bool is_due(const struct afz_scout_shm *shm, uint64_t now_ns)
{
        uint64_t every_ns = shm->cost_ns * pace.part;
        if (every_ns > pace.slowest_ns)
                every_ns = pace.slowest_ns;
        return shm->looked_ns == 0 || now_ns - shm->looked_ns >= every_ns ||
               afz_scout_shm_fills(shm) ||
               afz_shm_held(shm->files).unmapped_bytes >= pace.unfinished_bytes;
}

void afz_scout_shm_take(struct afz_scout_shm *shm, const struct afz_window *window,
                        struct afz_scout_report *report)
{
        size_t cursor = 0;
        if (!shm->files)
                return;
        if (is_due(shm, window->t_ns) &&
            afz_window_next(window, AFZ_KIND_PROC, &cursor)) /* else nobody is left to be asked */
                look(shm, window);
        struct afz_shm_held held = afz_shm_held(shm->files);
        report->shm.unmapped_bytes = held.unmapped_bytes;
        if (held.bytes > report->shm.job_bytes)
                report->shm.job_bytes = held.bytes;
}

void afz_scout_shm_sweep(struct afz_scout_shm *shm, const struct afz_shm_end *end,
                         struct afz_scout_report *report)
{
        struct afz_shm_swept swept = {0};
        if (shm->files)
                (void)afz_shm_sweep(shm->files, shm->env, end, &swept);
        report->swept.done = true;
        report->swept.files = swept.files;
        report->swept.bytes = swept.bytes;
}
