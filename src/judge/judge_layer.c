/* layer-buffer: large buffers that live in layers and are no parameters. They are there from the
 * start and stay as they are: no leak, but memory all the same. */
#include <stdio.h>

#include "end_clues.h"
#include "judge_words.h"
#include "judges.h"
#include "memory_line.h"
#include "site_top.h"
#include "site_use.h"
#include "step_clock.h"

static const struct {
        double share;       /* of the peak: what they must be */
        double least_bytes; /* and no less than this: smaller ones are nobody's trouble */
        double early;       /* of what a line holds: what must be from before the first step */
        double sure;        /* that it is no parameter, only names tell */
        double sure_many;   /* several blocks: one a layer */
} rule = {
        .share = 0.3,
        .least_bytes = 64 << 20,
        .early = 0.9,
        .sure = 0.65,
        .sure_many = 0.75,
};

void afz_judge_layer(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_memory_line line = afz_memory_line_of(c);
        uint32_t start_ms = afz_end_last_start(c->flight), from_ms, end_ms;
        const struct afz_column *clock = afz_step_column(c->flight, start_ms, UINT32_MAX);
        struct afz_site_top top;
        const struct afz_site_row *first = NULL;
        double bytes = 0, blocks = 0;
        if (line.peak_bytes <= 0 ||
            (!afz_step_steady(clock, 1, &from_ms, &end_ms) && !afz_site_peak(c->flight, &end_ms)) ||
            !afz_site_top_at(c->flight, end_ms, &top))
                return;
        double code = afz_site_code_bytes(c->flight, &top);
        for (unsigned i = 0; i < top.rows; i++) {
                const struct afz_site_row *row = &top.row[i];
                if (afz_site_use_of(c->flight, row->track) != AFZ_USE_LAYER ||
                    (clock && row->early_bytes < rule.early * row->bytes))
                        continue;
                first = first ? first : row;
                bytes += row->bytes;
                blocks += row->blocks;
        }
        if (!first || bytes < rule.share * (line.peak_bytes - code) || bytes < rule.least_bytes)
                return;
        struct afz_verdict *v =
                afz_outcome_add(ret, "layer-buffer", line.near ? AFZ_LEVEL_WARN : AFZ_LEVEL_OK,
                                blocks > 1.5 ? rule.sure_many : rule.sure);
        if (!v)
                return;
        afz_site_where(first->track, &v->where);
        snprintf(v->summary, sizeof v->summary,
                 "layers hold buffers of %s, %.0f %% of the %s at the peak, made at %s; they do "
                 "not grow: no leak",
                 SIZE(bytes), 100 * bytes / line.peak_bytes, SIZE(line.peak_bytes),
                 first->track->name);
        snprintf(v->fix, sizeof v->fix,
                 "make one buffer and share it between the layers, compute it when it is needed, "
                 "or keep it smaller (float16, bool for a mask)");
        afz_verdict_note(v, "in about %.0f block%s, there since layers were made", blocks,
                         blocks > 1.5 ? "s" : "");
        v->to_ms = end_ms;
}
