#include "hindsight.h"

#include <stdio.h>
#include <string.h>

#include "agent_tale.h"
#include "end_clues.h"
#include "hang_stacks.h"
#include "leak_stretch.h"
#include "quantity.h"

static const struct {
        double leak_share; /* of what comes and goes with its steps: what it kept grew by more */
        double same;       /* of what a framework had: so much more or less is the same */
} rule = {
        .leak_share = 2, /* without any step it would get half as far again */
        .same = 0.02,    /* half a batch less is more than that, where a batch matters */
};

/* ---- one attempt ---- */

/* Small steps leave room for what is kept: with little of that, they may bring it to its end. */
static bool steps_take_little(const struct afz_case *c)
{
        const struct afz_column *need = afz_flight_need(c->flight);
        struct afz_leak_stretch s = afz_leak_stretch_of(c);
        bool is_short;
        if (!need)
                return true;
        struct afz_trend trend = afz_leak_trend_to_line(c, need, &s, &is_short);
        double grown = (double)trend.floor_last - (double)trend.floor_first;
        double swing = (double)trend.top_last - (double)trend.floor_last;
        return trend.growth != AFZ_GROWTH_LEAK || grown > rule.leak_share * swing;
}

static void note_request(const struct afz_case *c, struct afz_hindsight *ret)
{
        struct afz_tale tale;
        afz_tale_of(c->flight, &c->facts.end, afz_end_last_start(c->flight), &tale);
        const struct afz_oom *oom = &tale.last[0];
        if (tale.ooms[1] > 0 && (tale.ooms[0] == 0 || tale.last[1].t_ms > oom->t_ms))
                oom = &tale.last[1];
        if (tale.ooms[0] + tale.ooms[1] == 0 || !afz_oom_is_fatal(oom, &c->facts.end))
                return;
        ret->asked_bytes = oom->asked_bytes;
        ret->taken_bytes = oom->allocated_bytes;
        ret->outside = oom->step == 0 && oom->batch == 0 && !oom->trains;
        ret->is_too_much =
                !oom->gpu && c->facts.hard_bytes > 0 && oom->asked_bytes > c->facts.hard_bytes;
        afz_oom_where(oom, &ret->where);
}

void afz_hindsight_of(const struct afz_case *c, const struct afz_outcome *outcome,
                      struct afz_hindsight *ret)
{
        *ret = (struct afz_hindsight){0};
        note_request(c, ret);
        if (outcome->verdicts == 0)
                return;
        const struct afz_verdict *v = &outcome->verdict[0];
        ret->is_large = afz_verdict_is_of(v->id, "model-too-large");
        ret->leaks = afz_verdict_is_of(v->id, "leak") && steps_take_little(c);
        if (ret->leaks || ret->is_large)
                ret->where = v->where;
}

/* ---- the next one ---- */

static bool is_near(uint64_t a, uint64_t b)
{
        uint64_t larger = a > b ? a : b, apart = a > b ? a - b : b - a;
        return (double)apart <= rule.same * (double)larger;
}

/* The same request at the same line need not fail where all else takes less: that it took as much,
 * or that it could never be met, has to be known. */
static bool is_same(const struct afz_hindsight *a, const struct afz_hindsight *b)
{
        return a->asked_bytes > 0 && a->asked_bytes == b->asked_bytes && a->where.line > 0 &&
               a->where.line == b->where.line && strcmp(a->where.file, b->where.file) == 0 &&
               (b->is_too_much || (a->taken_bytes > 0 && b->taken_bytes > 0 &&
                                   is_near(a->taken_bytes, b->taken_bytes)));
}

enum afz_vain afz_hindsight_vain(const struct afz_hindsight *before,
                                 const struct afz_hindsight *now)
{
        return now->leaks                             ? AFZ_VAIN_LEAK
               : now->is_large                        ? AFZ_VAIN_MODEL
               : now->asked_bytes > 0 && now->outside ? AFZ_VAIN_REQUEST
               : is_same(before, now)                 ? AFZ_VAIN_SAME
                                                      : AFZ_VAIN_NOT;
}

const char *afz_vain_words(enum afz_vain vain, const struct afz_hindsight *now, char *buf,
                           size_t cap)
{
        char place[200] = "", size[AFZ_SIZE_TEXT_CAP];
        if (now->where.line > 0)
                snprintf(place, sizeof place, " (%s:%d)", afz_where_file(&now->where),
                         (int)now->where.line);
        (void)afz_format_size(size, sizeof size, now->asked_bytes);
        switch (vain) {
        case AFZ_VAIN_LEAK:
                snprintf(buf, cap, "it leaks%s, and nothing that it did is saved", place);
                break;
        case AFZ_VAIN_MODEL:
                snprintf(buf, cap, "its model does not fit%s, whatever the batch", place);
                break;
        case AFZ_VAIN_REQUEST:
                snprintf(buf, cap, "it asked for %s at once%s, before its first step", size, place);
                break;
        case AFZ_VAIN_SAME:
                snprintf(buf, cap, "in smaller steps, too, it asked for the same %s%s", size,
                         place);
                break;
        default:
                snprintf(buf, cap, "%s", "");
                break;
        }
        return buf;
}
