#include "scout_shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        /* Members that are asked in one look, at 0.1 to 1 ms each. What the others hold counts when
         * one of these is seen with it. */
        MAX_MEMBERS = 128,
};

struct afz_scout_shm {
        const struct afz_env *env;
        struct afz_shm *files; /* NULL: not begun, or there is no /dev/shm */
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
        if (afz_shm_look(shm->files) > 0)
                while (asked++ < MAX_MEMBERS && (s = afz_window_next(w, AFZ_KIND_PROC, &cursor)))
                        (void)afz_shm_note(shm->files, shm->env, (pid_t)s->subject.id);
        afz_shm_settle(shm->files, w->t_ns);
}

void afz_scout_shm_take(struct afz_scout_shm *shm, const struct afz_window *window,
                        struct afz_scout_report *report)
{
        size_t cursor = 0;
        if (!shm->files)
                return;
        if (afz_window_next(window, AFZ_KIND_PROC, &cursor)) /* else nobody is left to be asked */
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
