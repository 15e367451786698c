#include "why_now.h"

#include <stdio.h>
#include <string.h>

#include "quantity.h"

static const struct {
        uint32_t span_ms;    /* "just now": compared with the same time before */
        double moved;        /* of its need from the one to the other; less is its breathing */
        int64_t least_bytes; /* likewise */
        double per_s_from;   /* bytes: from here on growth is told by the second */
        double idle_cores;   /* so little is a timer that ticks, not work */
        double idle_gpu_permyriad; /* and so little a display's */
} rule = {
        .span_ms = 5000,
        .moved = 0.02,
        .least_bytes = 1 << 20,
        .per_s_from = 1 << 20,
        .idle_cores = 0.02,
        .idle_gpu_permyriad = 300,
};

/* ", grows by 76M a second" */
static bool put_growth(const struct afz_flight *flight, uint32_t now_ms, struct afz_out *out)
{
        const struct afz_column *need = afz_flight_need(flight);
        double now, before;
        char size[AFZ_SIZE_TEXT_CAP];
        if (now_ms < 2 * rule.span_ms ||
            !afz_column_mean(need, now_ms - rule.span_ms, UINT32_MAX, &now) ||
            !afz_column_mean(need, now_ms - 2 * rule.span_ms, now_ms - rule.span_ms, &before))
                return false;
        double moved = now - before, apart = moved < 0 ? -moved : moved;
        if (apart < before * rule.moved || apart < (double)rule.least_bytes)
                return false;
        double per_s = apart * 1e3 / rule.span_ms;
        bool by_second = per_s >= rule.per_s_from;
        afz_out_fmt(out, ", %s by %s a %s", moved > 0 ? "grows" : "shrinks",
                    afz_format_size(size, sizeof size, (uint64_t)(by_second ? per_s : per_s * 60)),
                    by_second ? "second" : "minute");
        return true;
}

static bool gpu_works(const struct afz_flight *flight, uint32_t now_ms)
{
        const struct afz_track *gpu;
        double busy;
        for (size_t cursor = 0; (gpu = afz_flight_next(flight, AFZ_KIND_GPU, &cursor));)
                if (afz_column_mean(afz_track_column(gpu, AFZ_GPU_UTIL), now_ms - rule.span_ms,
                                    UINT32_MAX, &busy) &&
                    busy >= rule.idle_gpu_permyriad)
                        return true;
        return false;
}

/* ", and computes on 1.1 cores", ", and waits": who grows or computes elsewhere does not wait. */
static void put_work(const struct afz_flight *flight, uint32_t now_ms, bool moves,
                     struct afz_out *out)
{
        const struct afz_track *job = afz_flight_one(flight, AFZ_KIND_JOB);
        const struct afz_column *cpu = afz_track_column(job, AFZ_JOB_CPU);
        double ns_per_s;
        int64_t in_disk_wait = 0;
        if (now_ms < rule.span_ms ||
            !afz_column_rate(cpu, now_ms - rule.span_ms, UINT32_MAX, &ns_per_s))
                return;
        (void)afz_column_last(afz_track_column(job, AFZ_JOB_DISK_WAIT), UINT32_MAX, &in_disk_wait);
        if (ns_per_s / 1e9 >= rule.idle_cores)
                afz_out_fmt(out, ", and computes on %.1f core%s", ns_per_s / 1e9,
                            ns_per_s / 1e9 < 1.05 && ns_per_s / 1e9 >= 0.95 ? "" : "s");
        else if (!moves && !gpu_works(flight, now_ms))
                afz_out_fmt(out, ", and waits%s", in_disk_wait > 0 ? " for a disk" : "");
}

const char *afz_why_now(const struct afz_run_known *known, const struct afz_flight *flight,
                        char buf[AFZ_WHY_NOW_CAP])
{
        const struct afz_run_page *page = &known->page;
        char took[AFZ_DURATION_TEXT_CAP], need[AFZ_SIZE_TEXT_CAP], budget[AFZ_SIZE_TEXT_CAP];
        struct afz_out out = afz_out_to(-1, buf, AFZ_WHY_NOW_CAP - 1);
        afz_out_fmt(&out, "still running after %s: it needs %s",
                    afz_format_duration(took, sizeof took, known->duration_ns),
                    afz_format_size(need, sizeof need, page->need_bytes));
        if (page->budget_bytes != 0)
                afz_out_fmt(&out, " of the %s it may use",
                            afz_format_size(budget, sizeof budget, page->budget_bytes));
        bool moves = put_growth(flight, flight->end_ms, &out);
        put_work(flight, flight->end_ms, moves, &out);
        if (page->braked)
                afz_out_str(&out, "; it is slowed down just now");
        buf[out.len] = '\0';
        return buf;
}
