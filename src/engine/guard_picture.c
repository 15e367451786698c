/* The picture before the job is stopped: what its lines hold (the keeper), where its threads stand
 * and what its memory is (the scout), all of it while it stands still. They take it, and the guard
 * only looks whether they have; the ladder says when, and for how long it may stand for that. */
#include <stdio.h>

#include "clock.h"
#include "guard_state.h"

/* A little more than the ladder waits: by then the job runs again, and what came too late is not of
 * the moment. */
#define PICTURE_NS (300 * AFZ_NS_PER_MS)

static void note(struct afz_guard *g, const char *text)
{
        afz_recorder_mark(g->recorder, g->pulse.t_ns, AFZ_MARK_SAID, 0, text);
}

void afz_guard_picture(struct afz_guard *g, enum afz_picture picture)
{
        switch (picture) {
        case AFZ_PICTURE_TAKE:
                g->picture_ns = g->pulse.t_ns;
                (void)afz_scout_picture(g->scout);
                afz_keeper_look_now(g->keeper);
                break;
        case AFZ_PICTURE_MISSED:
                note(g, "picture: there was no time to look where it stood before it was stopped");
                break;
        default:
                break;
        }
}

void afz_guard_picture_turn(struct afz_guard *g)
{
        if (g->picture_ns == 0)
                return;
        bool stacks = afz_scout_pictured(g->scout);
        bool sites = afz_keeper_looked(g->keeper);
        uint64_t took_ns = g->pulse.t_ns - g->picture_ns;
        if ((!stacks || !sites) && took_ns < PICTURE_NS)
                return;
        g->picture_ns = 0;
        afz_ladder_pictured(&g->ladder);
        char text[96];
        if (stacks && sites)
                snprintf(text, sizeof text, "picture: taken in %.0f ms%s",
                         (double)took_ns / (double)AFZ_NS_PER_MS,
                         g->braked ? ", while it stood still" : "");
        else
                snprintf(text, sizeof text, "picture: %s could not be looked at in time",
                         stacks  ? "what its lines hold"
                         : sites ? "where its threads stood"
                                 : "it");
        note(g, text);
}
