#include "keeper_answer.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "count_of.h"
#include "span.h"
#include "wire.h"

/* So that AFZ_SITE_PAST of them are a minute. */
#define APART_NS  (10 * AFZ_NS_PER_S)
#define LITTLE_NS (5 * AFZ_NS_PER_S)

/* More are never recorded (keeper_record.c); what is beyond is told as the rest. */
enum { MOST_LINES = 320 };

/* ---- what was ---- */

void afz_past_keep(struct afz_past *past, struct afz_sites *s, uint64_t t_ns)
{
        bool first = past->t_ns[past->last] == 0;
        if (!first && t_ns - past->t_ns[past->last] < APART_NS)
                return;
        if (!first)
                past->last = (past->last + 1) % AFZ_SITE_PAST;
        past->full |= !first && past->last == 0;
        past->t_ns[past->last] = t_ns;
        for (uint32_t i = 0; i < s->sites; i++) {
                struct afz_site *site = &s->site[i];
                site->past[past->last] = i == 0 || site->recorded ? site->now.live_bytes : 0;
        }
}

/* Since when growth is told: for a minute; of a program that has not lived for so long, a little
 * while, as else all that it loaded at its start would be told as growing. False: not yet. */
static bool find_then(const struct afz_past *past, uint64_t t_ns, unsigned *ret)
{
        if (past->full) {
                *ret = (past->last + 1) % AFZ_SITE_PAST;
                return t_ns > past->t_ns[*ret];
        }
        for (unsigned at = past->last; at > 0; at--)
                if (t_ns >= past->t_ns[at] + LITTLE_NS) {
                        *ret = at;
                        return true;
                }
        return false;
}

/* ---- what it is for ---- */

void afz_keeper_answer_told(const uint64_t *told, struct afz_keeper_answer *ret)
{
        const struct {
                enum afz_told told;
                uint64_t *to;
        } row[] = {
                {AFZ_TOLD_PARAMETERS, &ret->use[0].parameters},
                {AFZ_TOLD_GRADIENTS, &ret->use[0].gradients},
                {AFZ_TOLD_OPTIMIZER, &ret->use[0].optimizer},
                {AFZ_TOLD_BUFFERS, &ret->use[0].buffers},
                {AFZ_TOLD_ACTIVATIONS, &ret->use[0].activations},
                {AFZ_TOLD_BATCH_BYTES, &ret->use[0].batch},
                {AFZ_TOLD_GPU_PARAMETERS, &ret->use[1].parameters},
                {AFZ_TOLD_GPU_GRADIENTS, &ret->use[1].gradients},
                {AFZ_TOLD_GPU_OPTIMIZER, &ret->use[1].optimizer},
                {AFZ_TOLD_GPU_BUFFERS, &ret->use[1].buffers},
                {AFZ_TOLD_GPU_ACTIVATIONS, &ret->use[1].activations},
                {AFZ_TOLD_GPU_BATCH_BYTES, &ret->use[1].batch},
                {AFZ_TOLD_LOADER, &ret->loader_bytes},
                {AFZ_TOLD_SHUFFLE, &ret->shuffle_bytes},
                {AFZ_TOLD_GPU_ALLOCATED, &ret->gpu_tensors_bytes},
                {AFZ_TOLD_GPU_RESERVED, &ret->gpu_held_bytes},
                {AFZ_TOLD_GPU_ALLOCATED_PEAK, &ret->gpu_peak_bytes},
                {AFZ_TOLD_OOMS, &ret->ooms_count},
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(row); i++)
                if (told[row[i].told] != AFZ_TOLD_NOT)
                        *row[i].to += told[row[i].told];
        if (told[AFZ_TOLD_BATCH] != AFZ_TOLD_NOT)
                ret->batch_count = told[AFZ_TOLD_BATCH];
        if (told[AFZ_TOLD_MICRO] != AFZ_TOLD_NOT)
                ret->micro_count = told[AFZ_TOLD_MICRO];
}

/* ---- lines ---- */

struct line {
        const struct afz_site *site; /* its largest: what it is called by */
        uint64_t live_bytes, past_bytes;
        uint32_t processes; /* of one site: several may be in the same */
};

static bool is_same_line(const struct afz_site *a, const struct afz_site *b)
{
        return strcmp(a->name, b->name) == 0 && strcmp(a->where, b->where) == 0;
}

static void add(struct line *l, const struct afz_site *site, uint64_t past_bytes)
{
        if (!l->site || site->now.live_bytes > l->site->now.live_bytes)
                l->site = site;
        if (site->processes > l->processes)
                l->processes = site->processes;
        l->live_bytes += site->now.live_bytes;
        l->past_bytes += past_bytes;
}

static unsigned collect(const struct afz_sites *s, unsigned past, struct line line[MOST_LINES])
{
        unsigned n = 0;
        for (uint32_t i = 1; i < s->sites; i++) {
                const struct afz_site *site = &s->site[i];
                unsigned at = 0;
                if (!site->recorded)
                        continue;
                while (at < n && !is_same_line(line[at].site, site))
                        at++;
                if (at == MOST_LINES)
                        continue;
                if (at == n)
                        line[n++] = (struct line){0};
                add(&line[at], site, site->past[past]);
        }
        return n;
}

static int by_size(const void *a, const void *b)
{
        const struct line *x = a, *y = b;
        return (x->live_bytes < y->live_bytes) - (x->live_bytes > y->live_bytes);
}

static void put_row(struct afz_keeper_answer *ret, const struct line *l)
{
        if (l->live_bytes == 0)
                return;
        struct afz_keeper_row *row = &ret->row[ret->rows++];
        afz_span_copy(afz_span_str(l->site->name), row->name, sizeof row->name);
        row->live_bytes = l->live_bytes;
        row->growth_bytes = ret->growth_s > 0 ? (int64_t)(l->live_bytes - l->past_bytes) : 0;
        row->kind = (uint32_t)l->site->kind;
        row->processes = l->processes;
}

void afz_keeper_answer(const struct afz_sites *sites, const struct afz_past *past, uint64_t t_ns,
                       struct afz_keeper_answer *ret)
{
        struct line line[MOST_LINES], rest = {0};
        unsigned then = 0;
        bool known = find_then(past, t_ns, &then);
        unsigned n = collect(sites, then, line);
        ret->growth_s = known ? (uint32_t)((t_ns - past->t_ns[then]) / AFZ_NS_PER_S) : 0;
        add(&rest, &sites->site[0], sites->site[0].past[then]);
        ret->live_bytes = rest.live_bytes;
        ret->rows = 0;
        qsort(line, n, sizeof *line, by_size);
        for (unsigned i = 0; i < n; i++) {
                ret->live_bytes += line[i].live_bytes;
                if (ret->rows < AFZ_KEEPER_ROWS - 1) {
                        put_row(ret, &line[i]);
                        continue;
                }
                rest.live_bytes += line[i].live_bytes;
                rest.past_bytes += line[i].past_bytes;
        }
        put_row(ret, &rest);
}
