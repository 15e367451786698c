/* shuffle-buffer: what tf.data keeps to shuffle or to cache is much of the job's memory. */
#include <stdio.h>

#include "end_clues.h"
#include "inside.h"
#include "judge_words.h"
#include "judges.h"
#include "memory_line.h"

static const struct {
        double share;        /* of the peak */
        uint64_t least;      /* bytes */
        double sure, unsure; /* it is an estimate: from shapes and counts, filled or not */
        double most;         /* of the peak: surer */
} rule = {
        .share = 0.25,
        .least = 64 << 20,
        .sure = 0.85,
        .unsure = 0.75,
        .most = 0.5,
};

/* Who has room enough is not hurt by it, and hears nothing. */
AFZ_JUDGE(shuffle)
{
        struct afz_memory_line line = afz_memory_line_of(c);
        uint64_t bytes;
        uint32_t at_ms;
        if (!line.near || line.peak_bytes <= 0 || afz_leak_said(ret) ||
            !afz_inside_most(c->flight, AFZ_INSIDE_SHUFFLE, afz_end_last_start(c->flight),
                             UINT32_MAX, &bytes, &at_ms) ||
            bytes < rule.least || (double)bytes < rule.share * line.peak_bytes)
                return;
        bool more = (double)bytes > line.peak_bytes;
        if (more && !line.met)
                return; /* then they were not filled, or it is reckoned wrongly */
        struct afz_verdict *v = afz_outcome_add(
                ret, "shuffle-buffer", line.met ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN,
                (double)bytes >= rule.most * line.peak_bytes ? rule.sure : rule.unsure);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 more ? "the buffers of tf.data (shuffle, cache) take %s when they are full: more "
                        "than the %s that it had at its peak"
                      : "the buffers of tf.data (shuffle, cache) take %s of the %s at the peak",
                 SIZE(bytes), SIZE(line.peak_bytes));
        snprintf(v->fix, sizeof v->fix,
                 "shuffle what is small: file names or indices, before map() decodes them and "
                 "before batch(); a shuffle buffer of some thousand samples is enough; cache to a "
                 "file (cache(\"name\")) instead of memory");
        afz_verdict_note(v, "by the size of their elements and how many they hold; it may use %s",
                         SIZE(line.bytes));
        v->from_ms = at_ms;
        v->to_ms = c->flight->end_ms > at_ms ? c->flight->end_ms : at_ms;
}
