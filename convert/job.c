/* One copy, from its beginning to its end. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "convert.h"
#include "quantity.h"

/* Left free on the disk: a full one is everybody's trouble. */
#define SPARE_BYTES (UINT64_C(64) << 20)

enum afz_end afz_end_with(struct afz_outcome *outcome, enum afz_end end, const char *format, ...)
{
        va_list words;
        va_start(words, format);
        vsnprintf(outcome->why, sizeof outcome->why, format, words);
        va_end(words);
        for (char *at = outcome->why; *at; at++) /* names of files may be anything */
                if ((unsigned char)*at < ' ' || *at == 0x7f)
                        *at = '?';
        return end;
}

/* What is yet to be written of so many bytes. */
static uint64_t rest_of(const struct afz_outcome *o, uint64_t bytes)
{
        double left = (double)(o->layout.samples - o->begun_samples) / (double)o->layout.samples;
        return (uint64_t)((double)bytes * left);
}

/* Only where it might not fit is it tried how well the data pack. */
static enum afz_end check_room(const struct afz_wish *wish, struct afz_outcome *outcome)
{
        char need[AFZ_SIZE_TEXT_CAP], have[AFZ_SIZE_TEXT_CAP];
        if (rest_of(outcome, outcome->most_bytes) + SPARE_BYTES <= outcome->free_bytes)
                return AFZ_END_GOOD;
        enum afz_end end = afz_source_try(wish, outcome);
        if (end != AFZ_END_GOOD)
                return end;
        uint64_t bytes = rest_of(outcome, outcome->likely_bytes);
        if (bytes <= outcome->free_bytes)
                return AFZ_END_GOOD;
        return afz_end_with(outcome, AFZ_END_OWN,
                            "%.300s would take about %s, and %s are free there: make room, or "
                            "choose another place",
                            wish->target, afz_format_size(need, sizeof need, bytes),
                            afz_format_size(have, sizeof have, outcome->free_bytes));
}

/* Else old and new samples might stand side by side. */
static bool has_changed(const struct afz_wish *wish, const struct afz_outcome *outcome,
                        const struct afz_target *target)
{
        json_t *now = afz_recipe_new(wish, outcome);
        bool is = afz_recipe_differs(target->recipe, now) != NULL;
        json_decref(now);
        return is;
}

static enum afz_end fill(const struct afz_wish *wish, const atomic_int *is_stopping, afz_show *show,
                         void *about, struct afz_target *target, struct afz_outcome *outcome)
{
        outcome->begun_samples = afz_layout_samples_before(&outcome->layout, target->done);
        outcome->done_samples = outcome->begun_samples;
        enum afz_end end = AFZ_END_GOOD;
        if (target->done < outcome->layout.shards) {
                end = check_room(wish, outcome);
                show(outcome, about);
                if (end == AFZ_END_GOOD)
                        end = afz_line_run(wish, is_stopping, show, about, target, outcome);
        }
        if (end == AFZ_END_GOOD && has_changed(wish, outcome, target))
                end = afz_end_with(outcome, AFZ_END_BAD,
                                   "%.300s has changed while it was read: --force begins anew",
                                   wish->source);
        if (end != AFZ_END_GOOD)
                return end;
        int r = afz_target_finish(target);
        return r < 0 ? afz_end_with(outcome, AFZ_END_OWN,
                                    "%.300s: %s; the same command goes on from there", wish->target,
                                    strerror(-r))
                     : AFZ_END_GOOD;
}

enum afz_end afz_convert(const struct afz_wish *wish, const atomic_int *is_stopping, afz_show *show,
                         void *about, struct afz_outcome *ret)
{
        struct afz_target target;
        *ret = (struct afz_outcome){0};
        enum afz_end end = afz_target_check(wish, ret);
        if (end == AFZ_END_GOOD)
                end = afz_source_look(wish, ret);
        if (end == AFZ_END_GOOD && wish->is_dry)
                return afz_source_try(wish, ret);
        if (end == AFZ_END_GOOD && wish->is_forced) /* before it clears what is there */
                end = afz_line_check(wish, ret);
        if (end == AFZ_END_GOOD)
                end = afz_target_open(wish, ret, &target);
        if (end != AFZ_END_GOOD || ret->is_whole_already)
                return end;
        end = fill(wish, is_stopping, show, about, &target, ret);
        show(ret, about);
        afz_target_close(&target);
        return end;
}
