/* The few figures at the top, and the facts at the end: machine, recording, and our own cost. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "report_parts.h"

static void tile(struct afz_out *out, const char *title, const char *value, const char *below)
{
        afz_out_fmt(out, "<div><dt>%s</dt><dd>%s", title, value);
        if (below[0]) {
                afz_out_str(out, "<small>");
                afz_report_text(out, below, 160);
                afz_out_str(out, "</small>");
        }
        afz_out_str(out, "</dd></div>\n");
}

static const char *end_words(const struct afz_end *end, char *buf, size_t cap)
{
        static const char *const words[AFZ_END_COUNT] = {
                [AFZ_END_RUNNING] = "it still runs",
                [AFZ_END_EXIT] = "ended by itself, exit status",
                [AFZ_END_SIGNAL] = "ended by signal",
                [AFZ_END_STOPPED] = "then stopped by Antifreeze",
                [AFZ_END_OOM_KILLED] = "then killed by the kernel at the limit",
                [AFZ_END_LOST] = "nobody saw the end",
                [AFZ_END_UNKNOWN] = "ended; how is not known",
        };
        if (end->how == AFZ_END_EXIT || end->how == AFZ_END_SIGNAL)
                snprintf(buf, cap, "%s %d", words[end->how], end->code);
        else
                snprintf(buf, cap, "%s", words[end->how]);
        return buf;
}

static const struct afz_report_series *series_of(const struct afz_report_picture *picture,
                                                 const char *panel, unsigned i)
{
        for (unsigned p = 0; p < picture->count; p++)
                if (strcmp(picture->panel[p].id, panel) == 0 && i < picture->panel[p].count)
                        return picture->panel[p].series[i];
        return NULL;
}

static void peak_tile(struct afz_out *out, const struct afz_report *report)
{
        char value[AFZ_REPORT_TEXT_CAP], of[AFZ_REPORT_TEXT_CAP], below[80] = "no budget was set";
        if (!afz_report_has(report->peak_bytes))
                return;
        if (afz_report_has(report->budget_bytes))
                snprintf(below, sizeof below, "of %s that it may use",
                         afz_report_value(of, AFZ_REPORT_BYTES, (double)report->budget_bytes));
        tile(out, "Memory, at most",
             afz_report_value(value, AFZ_REPORT_BYTES, (double)report->peak_bytes), below);
}

static void wait_tile(struct afz_out *out, const struct afz_report_picture *picture)
{
        const struct afz_report_series *s = series_of(picture, "pressure", 0);
        char value[AFZ_REPORT_TEXT_CAP], below[100];
        if (!s || s->line.seconds <= 0)
                return;
        snprintf(below, sizeof below, "%s",
                 strncmp(s->name, "all of the job", 14) == 0
                         ? "all of the job, waiting for memory"
                         : "all of the machine, waiting for memory");
        tile(out, "Stood still", afz_report_value(value, AFZ_REPORT_SECONDS, s->line.total), below);
}

static double own_fraction(const struct afz_report *report)
{
        return report->duration_ms
                       ? (double)report->own_cpu_ns / AFZ_NS_PER_MS / (double)report->duration_ms
                       : 0;
}

static const char *cost(const struct afz_report *report, char buf[AFZ_REPORT_TEXT_CAP])
{
        snprintf(buf, AFZ_REPORT_TEXT_CAP, "%.2f %%", own_fraction(report) * 100);
        return buf;
}

void afz_report_figures(struct afz_out *out, const struct afz_report *report,
                        const struct afz_report_picture *picture)
{
        char value[AFZ_REPORT_TEXT_CAP], below[100];
        const struct afz_report_series *swap = series_of(picture, "memory", 1);

        afz_out_str(out, "<dl class=\"figures\">\n");
        peak_tile(out, report);
        if (swap && !swap->limit)
                tile(out, "Swap, at most",
                     afz_report_value(value, AFZ_REPORT_BYTES, swap->line.peak), "of the job");
        if (afz_report_has(report->gpu_peak_bytes))
                tile(out, "GPU memory, at most",
                     afz_report_value(value, AFZ_REPORT_BYTES, (double)report->gpu_peak_bytes),
                     "on one GPU");
        tile(out, "Ran for", afz_report_time(value, report->duration_ms),
             end_words(&report->outcome->end, below, sizeof below));
        wait_tile(out, picture);
        if (afz_report_has(report->own_cpu_ns))
                tile(out, "Antifreeze itself", cost(report, value), "of one core");
        afz_out_str(out, "</dl>\n");
}

/* ---- facts ---- */

static void fact(struct afz_out *out, const char *title, const char *value)
{
        if (!value || !value[0])
                return;
        afz_out_fmt(out, "<tr><th scope=\"row\">%s</th><td>", title);
        afz_report_text(out, value, 2000);
        afz_out_str(out, "</td></tr>\n");
}

static void fact_size(struct afz_out *out, const char *title, uint64_t bytes)
{
        char value[AFZ_REPORT_TEXT_CAP];
        if (afz_report_has(bytes))
                fact(out, title, afz_report_value(value, AFZ_REPORT_BYTES, (double)bytes));
}

static void put_gpus(struct afz_out *out, const struct afz_flight *flight)
{
        const struct afz_track *gpu;
        char text[200], size[AFZ_REPORT_TEXT_CAP];
        int told = 0;
        for (size_t cursor = 0; told < 8 && (gpu = afz_flight_next(flight, AFZ_KIND_GPU, &cursor));
             told++) {
                int64_t total = 0;
                (void)afz_column_last(afz_track_column(gpu, AFZ_GPU_MEM_TOTAL), UINT32_MAX, &total);
                if (total > 0)
                        snprintf(text, sizeof text, "%.100s, %s", gpu->name,
                                 afz_report_value(size, AFZ_REPORT_BYTES, (double)total));
                else
                        snprintf(text, sizeof text, "%.100s", gpu->name);
                fact(out, told ? "" : "GPU", text);
        }
}

static void put_machine(struct afz_out *out, const struct afz_report *report)
{
        const struct afz_flight_head *head = &report->flight->head;
        char cores[24] = "";
        if (!head->host[0] && !head->ram_total_bytes)
                return; /* there was no recording to know it from */
        if (head->cores)
                snprintf(cores, sizeof cores, "%" PRIu32, head->cores);
        afz_out_str(out, "<div><h2>Machine</h2><table class=\"facts\"><tbody>\n");
        fact(out, "Name", head->host);
        fact(out, "Cores", cores);
        fact_size(out, "RAM", head->ram_total_bytes);
        if (head->swap_total_bytes || !head->ram_total_bytes)
                fact_size(out, "Swap", head->swap_total_bytes);
        else
                fact(out, "Swap", "none");
        put_gpus(out, report->flight);
        afz_out_str(out, "</tbody></table></div>\n");
}

/* From the first step to when the last began. */
static void fact_steps(struct afz_out *out, const struct afz_flight *flight)
{
        const struct afz_column *steps = afz_flight_steps(flight);
        const struct afz_point *first = NULL, *last = NULL;
        char text[120], one[AFZ_REPORT_TEXT_CAP];
        for (size_t i = 0; steps && i < steps->count; i++) {
                const struct afz_point *p = &steps->point[i];
                if (p->mean <= 0)
                        continue;
                if (!first || p->mean < last->mean) /* or it began anew */
                        first = p;
                if (!last || p->mean != last->mean)
                        last = p;
        }
        if (!last)
                return;
        double seconds = ((double)last->t_ms + last->span_ms - first->t_ms - first->span_ms) / 1000;
        double more = (double)last->mean - (double)first->mean;
        int n = snprintf(text, sizeof text, "%lld", (long long)last->mean);
        if (seconds > 0 && more >= seconds)
                snprintf(text + n, sizeof text - (size_t)n, ", %.3g a second", more / seconds);
        else if (seconds > 0 && more > 0)
                snprintf(text + n, sizeof text - (size_t)n, ", one in %s",
                         afz_report_value(one, AFZ_REPORT_SECONDS, seconds / more));
        fact(out, "Training steps", text);
}

static void put_run(struct afz_out *out, const struct afz_report *report)
{
        static const char *const tiers[AFZ_TIER_COUNT] = {
                [AFZ_TIER_NONE] = "no cgroup: Antifreeze alone, by looking often",
                [AFZ_TIER_CGROUP1] = "a cgroup (v1) of its own, kept by the kernel",
                [AFZ_TIER_CGROUP2] = "a cgroup (v2) of its own, kept by the kernel",
                [AFZ_TIER_SCOPE] = "a systemd scope (cgroup v2), kept by the kernel",
        };
        static const char *const policies[AFZ_POLICY_COUNT] = {
                [AFZ_POLICY_WATCH] = "watch: no limits",
                [AFZ_POLICY_PROTECT] = "protect the machine",
                [AFZ_POLICY_ADAPT] = "adapt: smaller rather than stopped",
        };
        const struct afz_flight *flight = report->flight;
        afz_out_str(out, "<div><h2>Run</h2><table class=\"facts\"><tbody>\n");
        fact(out, "Held by", report->tier < AFZ_TIER_COUNT ? tiers[report->tier] : "");
        fact(out, "Policy", report->policy < AFZ_POLICY_COUNT ? policies[report->policy] : "");
        if (afz_report_has(report->budget_bytes))
                fact_size(out, "Budget", report->budget_bytes);
        fact_size(out, "Swap allowed", report->swap_bytes);
        fact_steps(out, flight);
        fact(out, "Folder", flight->head.cwd);
        fact(out, "Git", flight->head.git);
        afz_out_str(out, "</tbody></table></div>\n");
}

static uint64_t last_of(const struct afz_flight *flight, enum afz_metric metric)
{
        int64_t v = 0;
        (void)afz_column_last(
                afz_track_column(afz_flight_one(flight, afz_metric_kind(metric)), metric),
                UINT32_MAX, &v);
        return v > 0 ? (uint64_t)v : 0;
}

static void put_cost(struct afz_out *out, const struct afz_report *report)
{
        const struct afz_flight *flight = report->flight;
        char text[AFZ_REPORT_TEXT_CAP + 40], value[AFZ_REPORT_TEXT_CAP];
        int64_t rss = 0;
        afz_out_str(out, "<div><h2>Antifreeze itself</h2><table class=\"facts\"><tbody>\n");
        if (afz_report_has(report->own_cpu_ns)) {
                snprintf(text, sizeof text, "%s of one core (%s in all)", cost(report, value),
                         afz_report_time((char[AFZ_REPORT_TEXT_CAP]){0},
                                         report->own_cpu_ns / AFZ_NS_PER_MS));
                fact(out, "Processor", text);
        }
        if (afz_column_most(afz_track_column(afz_flight_one(flight, AFZ_KIND_SELF), AFZ_SELF_RSS),
                            0, UINT32_MAX, &rss) &&
            rss > 0)
                fact_size(out, "Memory", (uint64_t)rss);
        if (last_of(flight, AFZ_SELF_TICKS)) {
                snprintf(text, sizeof text, "%" PRIu64, last_of(flight, AFZ_SELF_TICKS));
                fact(out, "Looks", text);
        }
        fact(out, "Recording",
             flight->tracks == 0 ? "there is none"
             : flight->ended     ? "complete"
                                 : "up to where it was cut off, or it still goes on");
        if (flight->holes) {
                snprintf(text, sizeof text, "%" PRIu32 " parts were damaged", flight->holes);
                fact(out, "Damage", text);
        }
        afz_out_str(out, "</tbody></table></div>\n");
}

void afz_report_facts(struct afz_out *out, const struct afz_report *report)
{
        afz_out_str(out, "<section class=\"card three\">\n");
        put_machine(out, report);
        put_run(out, report);
        put_cost(out, report);
        afz_out_str(out, "</section>\n");
}

/* ---- what the recording alone tells ---- */

static uint64_t highest_of(const struct afz_column *column)
{
        int64_t most = 0;
        return afz_column_most(column, 0, UINT32_MAX, &most) && most > 0 ? (uint64_t)most : 0;
}

void afz_report_from_flight(struct afz_report *ret, const struct afz_flight *flight,
                            const struct afz_outcome *outcome)
{
        const struct afz_flight_head *head = &flight->head;
        const struct afz_track *gpu;
        *ret = (struct afz_report){.flight = flight,
                                   .outcome = outcome,
                                   .run = head->run,
                                   .cmd = head->cmd ? head->cmd : "",
                                   .version = "",
                                   .started_s = head->started_s,
                                   .duration_ms = flight->end_ms,
                                   .tier = head->tier,
                                   .policy = head->policy,
                                   .budget_bytes = head->budget_bytes,
                                   .swap_bytes = head->swap_bytes,
                                   .peak_bytes = highest_of(afz_flight_need(flight)),
                                   .own_cpu_ns = last_of(flight, AFZ_SELF_CPU)};
        for (size_t cursor = 0; (gpu = afz_flight_next(flight, AFZ_KIND_GPU, &cursor));) {
                uint64_t most = highest_of(afz_track_column(gpu, AFZ_GPU_MEM_USED));
                if (most > ret->gpu_peak_bytes)
                        ret->gpu_peak_bytes = most;
        }
}
