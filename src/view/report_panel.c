/* Which lines the time line has: a row for each panel, a row for each line, and what becomes of the
 * metric on its way there. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "count_of.h"
#include "report_parts.h"

enum panel {
        PANEL_MEMORY,
        PANEL_SITES,
        PANEL_MACHINE,
        PANEL_PRESSURE,
        PANEL_GPU_MEMORY,
        PANEL_GPU_BUSY,
        PANEL_CPU,
        PANEL_DISK,
        PANEL_STEPS,
        PANELS
};

static const struct panel_info {
        const char *id, *title, *what;
        enum afz_report_unit unit;
        unsigned height;
        double least; /* the axis reaches at least to here: noise shall look like noise */
} panels[PANELS] = {
        [PANEL_MEMORY] = {"memory", "Memory of the job",
                          "what it holds and the kernel cannot take back", AFZ_REPORT_BYTES, 220,
                          1 << 20},
        [PANEL_SITES] = {"lines", "Memory by line of the program",
                         "allocated there and not freed; estimated from samples", AFZ_REPORT_BYTES,
                         220, 1 << 20},
        [PANEL_MACHINE] = {"machine", "Memory of the machine", "the job and everything else",
                           AFZ_REPORT_BYTES, 132, 1 << 20},
        [PANEL_PRESSURE] = {"pressure", "Waiting for memory",
                            "the part of the time in which programs could only wait for it",
                            AFZ_REPORT_PERCENT, 112, 0.1},
        [PANEL_GPU_MEMORY] = {"vram", "GPU memory", "in use on each GPU, by everybody",
                              AFZ_REPORT_BYTES, 132, 1 << 20},
        [PANEL_GPU_BUSY] = {"gpu", "GPU at work", "the part of the time in which it computed",
                            AFZ_REPORT_PERCENT, 112, 1},
        [PANEL_CPU] = {"cpu", "Processor", "cores that the job kept busy", AFZ_REPORT_CORES, 112,
                       1},
        [PANEL_DISK] = {"disk", "Disk", "what the job read and wrote", AFZ_REPORT_PER_S, 112,
                        1 << 20},
        [PANEL_STEPS] = {"steps", "Training steps", "how long each took", AFZ_REPORT_SECONDS, 112,
                         0.001},
};

enum how {
        HOW_GAUGE,
        HOW_RATE,
        HOW_LEFT_OF_RAM, /* what is in use, from what is free */
        HOW_LEFT_OF_SWAP
};

/* Lines of one subject each. The first of the metrics that the recording has is drawn. */
static const struct source {
        enum panel panel;
        const char *name, *paint;
        enum afz_metric metric[2];
        enum how how;
        double factor;
        bool limit;     /* a line not to be crossed */
        bool skip_zero; /* not worth a line when it was never there */
} sources[] = {
        {PANEL_MEMORY,
         "needed by the job",
         "c1",
         {AFZ_HOLD_NEED, AFZ_JOB_NEED},
         HOW_GAUGE,
         1,
         false,
         false},
        {PANEL_MEMORY,
         "of that, in swap",
         "c2",
         {AFZ_HOLD_AWAY, AFZ_JOB_SWAP},
         HOW_GAUGE,
         1,
         false,
         true},
        {PANEL_MEMORY, "budget", "limit", {AFZ_HOLD_BUDGET}, HOW_GAUGE, 1, true, true},
        {PANEL_MEMORY, "budget and swap", "limit2", {AFZ_HOLD_HARD}, HOW_GAUGE, 1, true, true},
        {PANEL_MACHINE,
         "RAM in use",
         "c3",
         {AFZ_HOLD_AVAILABLE, AFZ_HOST_MEM_AVAILABLE},
         HOW_LEFT_OF_RAM,
         1,
         false,
         false},
        {PANEL_MACHINE,
         "swap in use",
         "c2",
         {AFZ_HOLD_SWAP_FREE, AFZ_HOST_SWAP_FREE},
         HOW_LEFT_OF_SWAP,
         1,
         false,
         true},
        {PANEL_PRESSURE,
         "all of the job waits",
         "c4",
         {AFZ_HOLD_JOB_STALL, AFZ_CGROUP_PRESSURE_FULL},
         HOW_RATE,
         1e-9,
         false,
         false},
        {PANEL_PRESSURE,
         "all of the machine waits",
         "c5",
         {AFZ_HOLD_STALL, AFZ_PSI_MEMORY_FULL},
         HOW_RATE,
         1e-9,
         false,
         false},
        {PANEL_PRESSURE,
         "some program waits",
         "c6",
         {AFZ_PSI_MEMORY_SOME},
         HOW_RATE,
         1e-9,
         false,
         false},
        {PANEL_CPU,
         "busy cores",
         "c3",
         {AFZ_JOB_CPU, AFZ_CGROUP_CPU},
         HOW_RATE,
         1e-9,
         false,
         false},
        {PANEL_DISK, "read", "c1", {AFZ_JOB_READ, AFZ_CGROUP_IO_READ}, HOW_RATE, 1, false, true},
        {PANEL_DISK,
         "written",
         "c4",
         {AFZ_JOB_WRITTEN, AFZ_CGROUP_IO_WRITTEN},
         HOW_RATE,
         1,
         false,
         true},
};

struct afz_report_series *afz_report_series_add(struct afz_report_panel *panel, const char *name,
                                                const char *paint, uint32_t end_ms)
{
        struct afz_report_series *s =
                panel->count < AFZ_REPORT_SERIES ? calloc(1, sizeof *s) : NULL;
        if (!s)
                return NULL;
        snprintf(s->name, sizeof s->name, "%s", name);
        s->paint = paint;
        afz_report_line_init(&s->line, end_ms);
        panel->series[panel->count++] = s;
        return s;
}

void afz_report_series_drop(struct afz_report_panel *panel)
{
        free(panel->series[--panel->count]);
        panel->series[panel->count] = NULL;
}

static const struct afz_column *column_of(const struct afz_flight *flight,
                                          const struct source *source)
{
        for (int i = 0; i < 2 && source->metric[i]; i++) {
                const struct afz_column *column =
                        afz_track_column(afz_flight_one(flight, afz_metric_kind(source->metric[i])),
                                         source->metric[i]);
                if (column && column->count)
                        return column;
        }
        return NULL;
}

static void add_source(struct afz_report_panel *panel, const struct afz_report *report,
                       const struct source *source, uint32_t end_ms)
{
        const struct afz_flight_head *head = &report->flight->head;
        const struct afz_column *column = column_of(report->flight, source);
        double total = source->how == HOW_LEFT_OF_RAM    ? (double)head->ram_total_bytes
                       : source->how == HOW_LEFT_OF_SWAP ? (double)head->swap_total_bytes
                                                         : 0;
        if (!column || (source->how >= HOW_LEFT_OF_RAM && total <= 0))
                return;
        struct afz_report_series *s =
                afz_report_series_add(panel, source->name, source->paint, end_ms);
        if (!s)
                return;
        s->limit = source->limit;
        if (source->how == HOW_RATE)
                afz_report_line_rate(&s->line, column, source->factor);
        else if (source->how == HOW_GAUGE)
                afz_report_line_gauge(&s->line, column, 0, source->factor);
        else
                afz_report_line_gauge(&s->line, column, total, -1);
        if (s->limit) /* it stands until it is moved */
                s->line.joint = AFZ_REPORT_BUCKETS;
        if (s->line.known == 0 || (source->skip_zero && s->line.peak <= 0))
                afz_report_series_drop(panel);
}

static bool has_limit(const struct afz_report_panel *panel)
{
        for (unsigned i = 0; i < panel->count; i++)
                if (panel->series[i]->limit)
                        return true;
        return false;
}

static void add_limit(struct afz_report_panel *panel, const char *name, uint64_t value,
                      uint32_t end_ms)
{
        if (!afz_report_has(value) || panel->count == 0)
                return;
        struct afz_report_series *s = afz_report_series_add(panel, name, "limit", end_ms);
        if (!s)
                return;
        s->limit = true;
        afz_report_line_flat(&s->line, (double)value);
}

/* A line that says the same as the one before it is one too many. */
static void drop_same_limit(struct afz_report_panel *panel)
{
        if (panel->count < 2)
                return;
        const struct afz_report_series *a = panel->series[panel->count - 2];
        const struct afz_report_series *b = panel->series[panel->count - 1];
        if (a->limit && b->limit && fabs(a->line.peak - b->line.peak) < 0.01 * b->line.peak)
                afz_report_series_drop(panel);
}

/* ---- GPUs: one line each ---- */

static const char *const gpu_paint[] = {"c1", "c4", "c3", "c2", "c5", "c6", "c7", "c8"};

static void add_gpus(struct afz_report_panel *panel, const struct afz_flight *flight,
                     enum afz_metric metric, double factor, uint32_t end_ms)
{
        const struct afz_track *gpu;
        char name[80];
        for (size_t cursor = 0; (gpu = afz_flight_next(flight, AFZ_KIND_GPU, &cursor));) {
                const struct afz_column *column = afz_track_column(gpu, metric);
                if (!column || !column->count || panel->count == AFZ_COUNT_OF(gpu_paint))
                        continue;
                snprintf(name, sizeof name, "GPU %llu, %.60s", (unsigned long long)gpu->subject.id,
                         gpu->name);
                struct afz_report_series *s =
                        afz_report_series_add(panel, name, gpu_paint[panel->count], end_ms);
                if (s)
                        afz_report_line_gauge(&s->line, column, 0, factor);
        }
}

static uint64_t gpu_total(const struct afz_flight *flight)
{
        int64_t total = 0;
        (void)afz_column_last(
                afz_track_column(afz_flight_one(flight, AFZ_KIND_GPU), AFZ_GPU_MEM_TOTAL),
                UINT32_MAX, &total);
        return total > 0 ? (uint64_t)total : 0;
}

/* ---- steps: how long each took, from one change of their number to the next ---- */

static void add_steps(struct afz_report_panel *panel, const struct afz_flight *flight,
                      uint32_t end_ms)
{
        const struct afz_column *steps = afz_flight_steps(flight);
        const struct afz_point *before = NULL;
        struct afz_report_series *s =
                steps ? afz_report_series_add(panel, "time of a step", "c1", end_ms) : NULL;
        for (size_t i = 0; s && i < steps->count; i++) {
                const struct afz_point *now = &steps->point[i];
                /* Of a span, the value is that at its end. */
                uint64_t t_ms = (uint64_t)now->t_ms + now->span_ms;
                uint64_t since = before ? (uint64_t)before->t_ms + before->span_ms : 0;
                int64_t more;
                if (before && now->mean == before->mean)
                        continue;
                if (before && before->mean > 0 && t_ms > since &&
                    !__builtin_sub_overflow(now->mean, before->mean, &more) && more > 0) {
                        double seconds = (double)(t_ms - since) / 1000 / (double)more;
                        afz_report_line_span(&s->line, since, t_ms, seconds, seconds, seconds);
                }
                before = now;
        }
        if (s && s->line.known == 0)
                afz_report_series_drop(panel);
}

/* ---- all together ---- */

/* How high the areas that lie upon one another reach. */
static double stacked_most(const struct afz_report_panel *panel)
{
        double most = 0;
        for (unsigned b = 0; b < AFZ_REPORT_BUCKETS; b++) {
                double sum = 0;
                for (unsigned i = 0; i < panel->count; i++)
                        if (panel->series[i]->stacked)
                                sum += panel->series[i]->line.bucket[b].mid;
                most = fmax(most, sum);
        }
        return most;
}

void afz_report_panel_scale(struct afz_report_panel *panel, double least)
{
        double most = fmax(least, stacked_most(panel));
        for (unsigned i = 0; i < panel->count; i++)
                most = fmax(most, panel->series[i]->line.peak);
        panel->step = afz_report_step(panel->unit, most, panel->height > 150 ? 5 : 3);
        panel->most = ceil(most / panel->step - 0.001) * panel->step;
        /* The highest line shall not lie on the edge. */
        if (most > panel->most * 0.985 && panel->unit != AFZ_REPORT_PERCENT)
                panel->most += panel->step;
}

static void fill(struct afz_report_panel *panel, enum panel which, const struct afz_report *report,
                 uint32_t end_ms)
{
        const struct afz_flight *flight = report->flight;
        for (size_t i = 0; i < AFZ_COUNT_OF(sources); i++)
                if (sources[i].panel == which)
                        add_source(panel, report, &sources[i], end_ms);
        if (which == PANEL_MEMORY && !has_limit(panel))
                add_limit(panel, "budget", report->budget_bytes, end_ms);
        else if (which == PANEL_MEMORY)
                drop_same_limit(panel);
        if (which == PANEL_SITES)
                afz_report_site_lines(panel, report, end_ms);
        if (which == PANEL_MACHINE)
                add_limit(panel, "all RAM", flight->head.ram_total_bytes, end_ms);
        if (which == PANEL_CPU)
                add_limit(panel, "all cores", flight->head.cores, end_ms);
        if (which == PANEL_GPU_MEMORY) {
                add_gpus(panel, flight, AFZ_GPU_MEM_USED, 1, end_ms);
                add_limit(panel, "all of a GPU's memory", gpu_total(flight), end_ms);
        }
        if (which == PANEL_GPU_BUSY)
                add_gpus(panel, flight, AFZ_GPU_UTIL, 1e-4, end_ms);
        if (which == PANEL_STEPS)
                add_steps(panel, flight, end_ms);
}

int afz_report_picture_make(const struct afz_report *report, struct afz_report_picture **ret)
{
        struct afz_report_picture *picture = calloc(1, sizeof *picture);
        if (!picture)
                return -ENOMEM;
        picture->end_ms = report->flight->end_ms ? report->flight->end_ms : 1;
        afz_report_events_find(&picture->events, report->flight);
        for (enum panel i = 0; i < PANELS; i++) {
                struct afz_report_panel *panel = &picture->panel[picture->count];
                const struct panel_info *info = &panels[i];
                *panel = (struct afz_report_panel){.id = info->id,
                                                   .title = info->title,
                                                   .what = info->what,
                                                   .unit = info->unit,
                                                   .height = info->height};
                fill(panel, i, report, picture->end_ms);
                if (panel->count && panel->series[0]->limit) /* a line to nothing */
                        while (panel->count)
                                afz_report_series_drop(panel);
                if (panel->count == 0)
                        continue;
                afz_report_panel_scale(panel, info->least);
                picture->count++;
        }
        *ret = picture;
        return 0;
}

void afz_report_picture_free(struct afz_report_picture *picture)
{
        for (unsigned p = 0; picture && p < AFZ_REPORT_PANELS; p++)
                for (unsigned i = 0; i < picture->panel[p].count; i++)
                        free(picture->panel[p].series[i]);
        free(picture);
}
