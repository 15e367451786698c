#include "hang_worker.h"

const char *afz_worker_end(const struct afz_flight *flight, const struct afz_track *proc)
{
        for (size_t i = 0; i < flight->marks; i++) {
                const struct afz_mark *m = &flight->mark[i];
                if (m->kind != AFZ_MARK_EVENT ||
                    (uint64_t)(m->code & UINT32_MAX) != proc->subject.id)
                        continue;
                if (m->code >> 32 == AFZ_EVENT_OOM_KILL)
                        return "was killed by the kernel for memory";
                if (m->code >> 32 == AFZ_EVENT_SEGFAULT)
                        return "crashed";
        }
        int64_t state;
        bool zombie = afz_column_last(afz_track_column(proc, AFZ_PROC_STATE), UINT32_MAX, &state) &&
                      (state == 'Z' || state == 'X');
        return zombie ? "ended, and nobody asked how" : "vanished";
}

uint32_t afz_worker_died_ms(const struct afz_track *proc)
{
        const struct afz_column *state = afz_track_column(proc, AFZ_PROC_STATE);
        for (size_t i = 0; state && i < state->count; i++)
                if (state->point[i].most == 'Z' || state->point[i].most == 'X')
                        return state->point[i].t_ms;
        return proc->last_ms;
}
