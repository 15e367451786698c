#include "why_use.h"

#include <stdio.h>

#include "agent_tale.h"
#include "purposes.h"
#include "quantity.h"
#include "run.h"

/* In one line, less than this of the whole is not worth a word. */
#define LEAST_SHARE 0.01

bool afz_why_use_wanted(enum afz_metric metric)
{
        enum afz_kind kind = afz_metric_kind(metric);
        return kind == AFZ_KIND_SITE || kind == AFZ_KIND_INSIDE || kind == AFZ_KIND_GPU_PROC ||
               metric == AFZ_HOLD_NEED || metric == AFZ_JOB_NEED;
}

/* Largest first, but what is not explained last. */
static unsigned sort(const struct afz_purposes *p, enum afz_purpose order[AFZ_PURPOSES])
{
        unsigned n = 0;
        for (unsigned k = 0; k < AFZ_FOR_UNEXPLAINED; k++) {
                unsigned at = n;
                if (p->bytes[k] == 0)
                        continue;
                for (; at > 0 && p->bytes[order[at - 1]] < p->bytes[k]; at--)
                        order[at] = order[at - 1];
                order[at] = (enum afz_purpose)k;
                n++;
        }
        if (p->bytes[AFZ_FOR_UNEXPLAINED] > 0)
                order[n++] = AFZ_FOR_UNEXPLAINED;
        return n;
}

/* "of 3.1G at its peak: activations 1.6G, dataset 800M, parameters 100M, unexplained 300M" */
static void put_short(struct afz_out *out, const struct afz_purposes *p, bool gpu, const char *when)
{
        enum afz_purpose order[AFZ_PURPOSES];
        char text[400], size[AFZ_SIZE_TEXT_CAP];
        struct afz_out line = afz_out_to(-1, text, sizeof text - 1);
        unsigned n = sort(p, order), told = 0;
        afz_out_fmt(&line, "of %s%s %s: ", afz_format_size(size, sizeof size, p->whole_bytes),
                    gpu ? " of GPU memory" : "", when);
        for (unsigned i = 0; i < n; i++) {
                if ((double)p->bytes[order[i]] < LEAST_SHARE * (double)p->whole_bytes)
                        continue;
                afz_out_fmt(&line, "%s%s %s", told++ ? ", " : "", afz_purpose_name(order[i]),
                            afz_format_size(size, sizeof size, p->bytes[order[i]]));
        }
        text[line.len] = '\0';
        afz_run_put_row(out, "used for", text);
}

static void put_row(struct afz_out *out, enum afz_purpose k, const uint64_t *peak,
                    const uint64_t *now)
{
        char a[AFZ_SIZE_TEXT_CAP] = "", b[AFZ_SIZE_TEXT_CAP] = "";
        if (peak)
                afz_format_size(a, sizeof a, *peak);
        if (now)
                afz_format_size(b, sizeof b, *now);
        afz_out_fmt(out, "  %8s %8s  %s: %s\n", a, b, afz_purpose_name(k), afz_purpose_what(k));
}

static void put_full(struct afz_out *out, const struct afz_purposes *peak,
                     const struct afz_purposes *now, bool gpu, bool running)
{
        char a[AFZ_SIZE_TEXT_CAP] = "", b[AFZ_SIZE_TEXT_CAP] = "";
        afz_out_fmt(out, "what its %s was for\n", gpu ? "GPU memory" : "memory");
        afz_out_fmt(out, "  %8s %8s\n", peak ? "peak" : "", now ? running ? "now" : "end" : "");
        for (unsigned k = 0; k < AFZ_PURPOSES; k++)
                if ((peak && peak->bytes[k]) || (now && now->bytes[k]))
                        put_row(out, (enum afz_purpose)k, peak ? &peak->bytes[k] : NULL,
                                now ? &now->bytes[k] : NULL);
        if (peak)
                afz_format_size(a, sizeof a, peak->whole_bytes);
        if (now)
                afz_format_size(b, sizeof b, now->whole_bytes);
        afz_out_fmt(out, "  %8s %8s  all of it\n", a, b);
}

void afz_why_use(struct afz_out *out, const struct afz_flight *flight, bool running, bool full)
{
        for (int gpu = 0; gpu < 2; gpu++) {
                struct afz_purposes peak, now;
                bool has_peak = afz_purposes_peak(flight, gpu, &peak);
                bool has_now = afz_purposes_now(flight, gpu, &now);
                if (full && (has_peak || has_now))
                        put_full(out, has_peak ? &peak : NULL, has_now ? &now : NULL, gpu, running);
                else if (has_peak)
                        put_short(out, &peak, gpu, "at its peak");
                else if (has_now) /* the peak was in an attempt, or at a moment, that told nothing
                                   */
                        put_short(out, &now, gpu, running ? "just now" : "at the end");
        }
}

void afz_why_adapted(struct afz_out *out, const struct afz_flight *flight,
                     const struct afz_end *end)
{
        struct afz_tale tale;
        char text[400];
        afz_tale_of(flight, end, 0, &tale);
        if (afz_tale_words(&tale, text, sizeof text))
                afz_run_put_row(out, "adapted", text);
}
