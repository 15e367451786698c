#include "batch_split.h"

#include <stdio.h>

#include "agent_tale.h"
#include "count_of.h"
#include "end_clues.h"
#include "judge_words.h"
#include "memory_line.h"

/* How sure: it was tried. Whether something else took the room is not known. */
static const double sure = 0.9;

/* "a batch of 16 with 4 accumulation steps": what went through, as a program says it. */
static void put_fix(const struct afz_tale *t, bool ended, struct afz_verdict *v)
{
        uint64_t micro = ended && t->micro > 1 ? t->micro / 2 : t->micro;
        uint64_t parts = micro > 0 ? (t->batch + micro - 1) / micro : 1;
        snprintf(v->fix, sizeof v->fix,
                 ended ? "try a batch of %llu with %llu accumulation steps; if that is too much as "
                         "well, activation checkpointing or a smaller model"
                       : "a batch of %llu with %llu accumulation steps is the same without the "
                         "tries "
                         "that fail; or leave it so: --policy adapt finds it each time",
                 (unsigned long long)micro, (unsigned long long)parts);
}

static void note_ooms(const struct afz_tale *t, struct afz_verdict *v)
{
        char words[AFZ_EVIDENCE_CAP];
        if (afz_tale_words(t, words, sizeof words))
                afz_verdict_note(v, "%s", words);
        for (int gpu = 1; gpu >= 0; gpu--) {
                const struct afz_oom *oom = &t->last[gpu];
                if (t->ooms[gpu] == 0)
                        continue;
                afz_oom_where(oom, &v->where);
                if (oom->asked_bytes > 0)
                        afz_verdict_note(v, "the last time, %s were asked for at once",
                                         SIZE(oom->asked_bytes));
                return;
        }
}

/* Whether something that stays was found to be to blame: then parts were made for want of a better
 * remedy, and where they did not help, or nothing ever ran out, the batch is not the trouble. */
static bool is_for_another(const struct afz_tale *t, bool ended, const struct afz_outcome *said)
{
        static const char *const stays[] = {"dataset-in-memory", "dataset-in-vram",
                                            "shuffle-buffer"};
        if (!ended && t->ooms[false] + t->ooms[true] > 0)
                return false;
        for (unsigned i = 0; i < AFZ_COUNT_OF(stays); i++)
                if (afz_outcome_find(said, stays[i]))
                        return true;
        return false;
}

bool afz_batch_split_say(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_tale t;
        afz_tale_of(c->flight, &c->facts.end, afz_end_last_start(c->flight), &t);
        bool cut = t.splits > 0 || (t.split_steps > 0 && t.micro > 0);
        if (!cut || afz_outcome_find(ret, "model-too-large"))
                return cut;
        uint64_t parts = afz_tale_parts(&t);
        bool ended = afz_memory_line_of(c).met ||
                     afz_oom_is_fatal(&t.last[t.ooms[true] > 0], &c->facts.end);
        if (is_for_another(&t, ended, ret))
                return true;
        struct afz_verdict *v = afz_outcome_add(ret, "batch-too-large",
                                                ended ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN, sure);
        if (!v)
                return true;
        if (ended)
                snprintf(v->summary, sizeof v->summary,
                         "the batch is too large: its %llu samples do not fit at once, and %llu at "
                         "once did not, either",
                         (unsigned long long)t.batch, (unsigned long long)t.micro);
        else if (parts > 1)
                snprintf(v->summary, sizeof v->summary,
                         "the batch is too large for what it may use: its %llu samples do not fit "
                         "at once; in %llu parts of %llu each step went through",
                         (unsigned long long)t.batch, (unsigned long long)parts,
                         (unsigned long long)t.micro);
        else
                snprintf(v->summary, sizeof v->summary,
                         "the batch was too large for a while: steps were made in parts, until its "
                         "%llu samples fit at once again",
                         (unsigned long long)t.batch);
        note_ooms(&t, v);
        put_fix(&t, ended, v);
        v->from_ms = t.split_ms;
        v->to_ms = c->flight->end_ms > t.split_ms ? c->flight->end_ms : t.split_ms;
        return true;
}
