#include "front_end.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "explain.h"
#include "run_state.h"

/* A clean run that is over sooner has nothing to add to what the guard wrote, and would wait for
 * the disk a second time. */
#define WORTH_WRITING_NS AFZ_NS_PER_S

static bool is_worth_writing(const struct afz_outcome *guard, const struct afz_run_known *known)
{
        const struct afz_outcome *now = &known->outcome;
        bool fine = guard->verdicts == 1 && now->verdicts == 1 &&
                    now->verdict[0].level == AFZ_LEVEL_OK &&
                    strcmp(guard->verdict[0].id, now->verdict[0].id) == 0;
        return !fine || known->duration_ns >= WORTH_WRITING_NS;
}

/* False: the guard's own word is all there is. */
static bool look_into(const struct afz_front_end *end, struct afz_run_known *ret)
{
        struct afz_run *run = end->run;
        struct afz_run_state state;
        if (run->dir_fd < 0 || afz_run_state_read(run->state_fd, &state) < 0 ||
            state.outcome.end.how == AFZ_END_RUNNING)
                return false;
        *ret = (struct afz_run_known){
                .page = *run->page, .outcome = state.outcome, .duration_ns = state.duration_ns};
        (void)afz_explain_known(ret, run->dir_fd, NULL, NULL);
        if (is_worth_writing(&state.outcome, ret))
                (void)afz_run_write(run, &ret->outcome);
        return ret->outcome.verdicts > 0;
}

void afz_front_explain(const struct afz_front_end *end, char *ret, size_t cap)
{
        struct afz_run_known known;
        const char *id = end->run->page->id;
        snprintf(ret, cap, "%s", end->verdict->text);
        if (!look_into(end, &known)) {
                afz_front_speak(end->style, id, end->verdict, false);
                return;
        }
        const struct afz_verdict *v = &known.outcome.verdict[0];
        snprintf(ret, cap, "%s: %s", v->id, v->summary);
        afz_front_tell(end->style, id, end->verdict, &known.outcome, true);
}

void afz_front_explain_lost(struct afz_run *run)
{
        struct afz_run_known known = {.page = *run->page, .outcome.end = {AFZ_END_LOST, -1}};
        uint64_t now = afz_clock_ns(CLOCK_BOOTTIME);
        if (run->dir_fd < 0)
                return;
        known.duration_ns = now > known.page.started_ns ? now - known.page.started_ns : 0;
        (void)afz_explain_known(&known, run->dir_fd, NULL, NULL);
        (void)afz_run_write(run, &known.outcome);
}
