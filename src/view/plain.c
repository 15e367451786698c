#include "plain.h"

#include <string.h>

#include "count_of.h"
#include "figure.h"

#define ABSENT "-"

/* A line that grows slower than this, in a minute, is the noise of samples. */
#define GROWS_BYTES (8 << 20)

static void put_size(struct afz_out *line, bool known, uint64_t bytes)
{
        char buf[AFZ_FIGURE_CAP];
        afz_out_str(line, known ? afz_figure_size(buf, bytes) : ABSENT);
}

/* "10.0/16.0G", or "512M/4.0G" where the units differ. */
static void put_of(struct afz_out *line, const uint64_t *used, const uint64_t *total)
{
        char a[AFZ_FIGURE_CAP] = ABSENT, b[AFZ_FIGURE_CAP] = ABSENT;
        if (used)
                afz_figure_size(a, *used);
        if (total)
                afz_figure_size(b, *total);
        size_t n = strlen(a);
        if (used && total && a[n - 1] == b[strlen(b) - 1])
                n--;
        afz_out_bytes(line, a, n);
        afz_out_char(line, '/');
        afz_out_str(line, b);
}

/* "12%": without the blank that the live view has, so that a field is one word. */
static void put_percent(struct afz_out *line, bool known, double share)
{
        if (known && share >= 0) {
                afz_out_u64(line, (uint64_t)(share * 100 + 0.5));
                afz_out_char(line, '%');
        } else {
                afz_out_str(line, ABSENT);
        }
}

/* Used and total, where what is given is the total and what is left of it. */
static void put_used_of(struct afz_out *line, const struct afz_sample *host, enum afz_metric total,
                        enum afz_metric left)
{
        uint64_t all = 0, rest = 0;
        bool has_all = afz_sample_get_u64(host, total, &all),
             has_rest = afz_sample_get_u64(host, left, &rest);
        uint64_t used = all > rest ? all - rest : 0;
        put_of(line, has_all && has_rest ? &used : NULL, has_all ? &all : NULL);
}

static void put_job(struct afz_out *line, const struct afz_window *w)
{
        const struct afz_sample *job = afz_window_one(w, AFZ_KIND_JOB);
        uint64_t need = 0, count = 0;
        if (w->job_pid == 0)
                return;
        bool has_need = afz_sample_get_u64(job, AFZ_JOB_NEED, &need);
        afz_out_str(line, " job ");
        put_size(line, has_need, need);
        afz_out_str(line, " (");
        if (afz_sample_get_u64(job, AFZ_JOB_PROCESSES, &count))
                afz_out_u64(line, count);
        else
                afz_out_str(line, ABSENT);
        afz_out_char(line, ')');
}

static void put_swap(struct afz_out *line, const struct afz_window *w,
                     const struct afz_sample *host)
{
        double rate = 0;
        char buf[AFZ_FIGURE_CAP];
        uint64_t total;
        afz_out_str(line, " swap ");
        if (afz_sample_get_u64(host, AFZ_HOST_SWAP_TOTAL, &total) && total == 0) {
                afz_out_str(line, "none");
                return;
        }
        put_used_of(line, host, AFZ_HOST_SWAP_TOTAL, AFZ_HOST_SWAP_FREE);
        afz_out_str(line, " in ");
        bool known = afz_window_rate(w, afz_window_one(w, AFZ_KIND_VM), AFZ_VM_SWAP_IN, &rate);
        afz_out_str(line, known ? afz_figure_rate(buf, rate) : ABSENT);
}

static void put_share(struct afz_out *line, const struct afz_window *w,
                      const struct afz_sample *sample, enum afz_metric metric)
{
        double rate = 0;
        bool known = sample && afz_window_rate(w, sample, metric, &rate);
        put_percent(line, known, rate / 1e9);
}

static void put_psi(struct afz_out *line, const struct afz_window *w)
{
        const struct afz_sample *psi = afz_window_one(w, AFZ_KIND_PSI);
        afz_out_str(line, " psi mem ");
        put_share(line, w, psi, AFZ_PSI_MEMORY_SOME);
        afz_out_str(line, " io ");
        put_share(line, w, psi, AFZ_PSI_IO_SOME);
}

/* The machine's, summed over its cores. */
static bool machine_cpu(const struct afz_window *w, double *ret)
{
        static const enum afz_metric busy[] = {AFZ_CPU_USER, AFZ_CPU_SYSTEM, AFZ_CPU_IRQ};
        const struct afz_sample *all = afz_window_find(w, AFZ_KIND_CPU, AFZ_CPU_ALL);
        double sum = 0, rate;
        for (size_t i = 0; i < AFZ_COUNT_OF(busy); i++) {
                if (!all || !afz_window_rate(w, all, busy[i], &rate))
                        return false;
                sum += rate;
        }
        *ret = sum / 1e9;
        return true;
}

static void put_cpu(struct afz_out *line, const struct afz_window *w)
{
        double share = 0;
        afz_out_str(line, " cpu ");
        if (w->job_pid) {
                put_share(line, w, afz_window_one(w, AFZ_KIND_JOB), AFZ_JOB_CPU);
                return;
        }
        bool known = machine_cpu(w, &share);
        put_percent(line, known, share);
}

static void put_gpu(struct afz_out *line, const struct afz_window *w)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        uint64_t used = 0, total = 0, util = 0, gpus = 0, useds = 0, totals = 0, utils = 0, v;
        while ((s = afz_window_next(w, AFZ_KIND_GPU, &cursor))) {
                if (afz_sample_has(s, AFZ_GPU_PARENT))
                        continue; /* a MIG instance: its GPU has it already */
                gpus++;
                if (afz_sample_get_u64(s, AFZ_GPU_MEM_USED, &v))
                        used += v, useds++;
                if (afz_sample_get_u64(s, AFZ_GPU_MEM_TOTAL, &v))
                        total += v, totals++;
                if (afz_sample_get_u64(s, AFZ_GPU_UTIL, &v))
                        util += v, utils++;
        }
        if (gpus == 0)
                return;
        afz_out_str(line, " gpu ");
        /* A sum with a part missing is no sum. */
        put_of(line, useds == gpus ? &used : NULL, totals == gpus ? &total : NULL);
        afz_out_char(line, ' ');
        put_percent(line, utils > 0, utils ? (double)util / (double)utils / 10000 : 0);
}

/* The whole sentence; else without what it says in brackets; else the one word for it. */
static void put_limit(struct afz_out *line, const struct afz_limit *limit)
{
        size_t room = line->cap > line->len + 3 ? line->cap - line->len - 3 : 0;
        size_t n = strnlen(limit->text, sizeof limit->text);
        const char *bracket = memmem(limit->text, n, " (", 2);

        afz_out_str(line, " | ");
        if (n > room && bracket)
                n = (size_t)(bracket - limit->text);
        if (n > 0 && n <= room)
                afz_out_bytes(line, limit->text, n);
        else
                afz_out_str(line, afz_limit_name(limit->kind));
}

/* One line: what a terminal would take for more than text becomes '?'. */
static void put_ascii(struct afz_out *out, char *text, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (text[i] < 0x20 || text[i] > 0x7e)
                        text[i] = '?';
        afz_out_bytes(out, text, n);
        afz_out_char(out, '\n');
}

void afz_plain_line(struct afz_out *out, const struct afz_window *window, const char *clock)
{
        char text[AFZ_PLAIN_COLUMNS];
        struct afz_out line = afz_out_to(-1, text, sizeof text);
        const struct afz_sample *host = afz_window_one(window, AFZ_KIND_HOST);

        if (clock) {
                afz_out_str(&line, clock);
                afz_out_char(&line, ' ');
        }
        afz_out_str(&line, "ram ");
        put_used_of(&line, host, AFZ_HOST_MEM_TOTAL, AFZ_HOST_MEM_AVAILABLE);
        put_job(&line, window);
        put_swap(&line, window, host);
        put_cpu(&line, window);
        put_psi(&line, window);
        put_gpu(&line, window);
        put_limit(&line, &window->limit);
        put_ascii(out, text, line.len);
}

/* " train.py:33 in load() 1.2G +210M/min" */
static size_t put_held(char *buf, size_t cap, const struct afz_lines_now *lines,
                       const struct afz_line_now *held)
{
        char size[AFZ_FIGURE_CAP];
        struct afz_out one = afz_out_to(-1, buf, cap);
        double minute = lines->growth_s ? (double)held->growth_bytes * 60 / lines->growth_s : 0;
        afz_out_char(&one, ' ');
        afz_out_str(&one, held->name);
        afz_out_char(&one, ' ');
        afz_out_str(&one, afz_figure_size(size, held->live_bytes));
        if (minute >= GROWS_BYTES && minute < 1e18) {
                afz_out_str(&one, " +");
                afz_out_str(&one, afz_figure_size(size, (uint64_t)minute));
                afz_out_str(&one, "/min");
        }
        return one.err ? cap + 1 : one.len;
}

void afz_plain_uses(struct afz_out *out, const struct afz_lines_now *lines, const char *clock)
{
        char text[AFZ_PLAIN_COLUMNS], size[AFZ_FIGURE_CAP];
        for (int gpu = 0; lines && lines->known && gpu < 2; gpu++) {
                struct afz_out line = afz_out_to(-1, text, sizeof text);
                if (lines->uses[gpu] == 0)
                        continue;
                if (clock) {
                        afz_out_str(&line, clock);
                        afz_out_char(&line, ' ');
                }
                afz_out_str(&line, gpu ? "GPU memory is for" : "memory is for");
                for (uint32_t i = 0; i < lines->uses[gpu]; i++) {
                        const struct afz_use_now *use = &lines->use[gpu][i];
                        afz_figure_size(size, use->bytes);
                        if (strlen(use->name) + strlen(size) + 4 > line.cap - line.len)
                                break;
                        afz_out_str(&line, i ? ", " : ": ");
                        afz_out_str(&line, use->name);
                        afz_out_char(&line, ' ');
                        afz_out_str(&line, size);
                }
                put_ascii(out, text, line.len);
        }
}

void afz_plain_lines(struct afz_out *out, const struct afz_lines_now *lines, const char *clock)
{
        char text[AFZ_PLAIN_COLUMNS], one[AFZ_PLAIN_COLUMNS], size[AFZ_FIGURE_CAP];
        struct afz_out line = afz_out_to(-1, text, sizeof text);
        if (!lines || !lines->known || lines->rows == 0)
                return;
        if (clock) {
                afz_out_str(&line, clock);
                afz_out_char(&line, ' ');
        }
        afz_out_str(&line, "lines ");
        afz_out_str(&line, afz_figure_size(size, lines->live_bytes));
        for (uint32_t i = 0; i < lines->rows; i++) {
                size_t n = put_held(one, sizeof one, lines, &lines->row[i]);
                if (n + 1 > line.cap - line.len)
                        break; /* a figure that is cut would be another */
                afz_out_char(&line, i ? ',' : ':');
                afz_out_bytes(&line, one, n);
        }
        put_ascii(out, text, line.len);
}
