#include "keeper_record.h"

#include <stdlib.h>

#include "clock.h"
#include "keeper_names.h"
#include "recorder.h"
#include "symbols.h"

static const struct {
        unsigned top;         /* so many stacks are told at every look */
        unsigned most;        /* and so many ever, */
        unsigned lines;       /* with so many lines: all less than a pack has room for */
        uint64_t least_bytes; /* smaller ones are not told apart */
        uint64_t again_ns;    /* what is not among the top, or has not changed, is told so often */
        uint64_t whole_ns;    /* and where it lies, should what was told before be lost */
        uint64_t names_ns, last_names_ns; /* processor time for names in one look */
} rule = {
        .top = 48,
        .most = 224,
        .lines = 64,
        .least_bytes = 3 << 19, /* one sample of 1 MiB is chance */
        .again_ns = 10 * AFZ_NS_PER_S,
        .whole_ns = 120 * AFZ_NS_PER_S,
        .names_ns = 30 * AFZ_NS_PER_MS,
        .last_names_ns = 200 * AFZ_NS_PER_MS,
};

enum { MOST_NEW = 64 }; /* stacks that may come in one look: the top, and as large ones */

_Static_assert(sizeof((struct afz_keeper_record){0}.stack) >= AFZ_SITE_STACK_CAP, "room for one");

/* ---- who is told ---- */

/* What a step needs has come and gone between two looks: the most of it counts. */
static uint64_t size_of(const struct afz_site *site)
{
        const struct afz_site_count *now = &site->now;
        return now->high_bytes > now->live_bytes ? now->high_bytes : now->live_bytes;
}

/* The least that the top ones have; found by halving, so that nobody need be sorted. */
static uint64_t top_bytes(struct afz_keeper_record *r)
{
        const struct afz_sites *s = r->sites;
        uint64_t low = rule.least_bytes, high = AFZ_BOOK_SANE;
        unsigned count = 0;
        for (uint32_t i = 1; i < s->sites; i++)
                if (s->site[i].role == AFZ_SITE_STACK && size_of(&s->site[i]) >= low)
                        r->size_bytes[count++] = size_of(&s->site[i]);
        while (low < high) {
                uint64_t middle = low + (high - low) / 2;
                unsigned n = 0;
                for (unsigned i = 0; i < count; i++)
                        n += r->size_bytes[i] >= middle;
                if (n > rule.top)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool is_same(const struct afz_site_count *a, const struct afz_site_count *b)
{
        return a->live_bytes == b->live_bytes && a->blocks == b->blocks &&
               a->early_bytes == b->early_bytes && a->total_bytes == b->total_bytes &&
               a->high_bytes == b->high_bytes && a->low_bytes == b->low_bytes;
}

static bool is_due(const struct afz_site *site, uint64_t top, uint64_t t_ns, bool last)
{
        const struct afz_site_count *now = &site->now, *put = &site->put;
        if (last || site->put_ns == 0 || t_ns - site->put_ns >= rule.again_ns)
                return true;
        if (is_same(now, put))
                return false;
        /* One that is freed drops out of the top: that is news, too. */
        return size_of(site) >= top || now->live_bytes <= put->live_bytes / 2;
}

/* ---- telling ---- */

static void name(struct afz_keeper_record *r, struct afz_site *site)
{
        if (!r->asked && afz_symbols_new(&r->symbols) < 0)
                r->symbols = NULL;
        r->asked = true;
        afz_site_set_name(r->sites, site, r->symbols, r->stack);
}

/* Steps are shorter than looks, and looks may go by untold: what was highest and lowest is kept
 * until it is. */
static void keep_water(struct afz_site *site)
{
        if (site->now.high_bytes > site->high_bytes)
                site->high_bytes = site->now.high_bytes;
        if (site->now.low_bytes < site->low_bytes)
                site->low_bytes = site->now.low_bytes;
}

/* Ages change at every look: to a thirtieth is fine enough, and takes less room. */
static int64_t rough(double value)
{
        uint64_t n = value > 0 ? (uint64_t)value : 0, unit = 1;
        while (n / unit >= 64)
                unit *= 2;
        return (int64_t)(n / unit * unit);
}

static void set_age(struct afz_sample *s, const struct afz_site_count *now)
{
        if (now->aged_bytes > 0) /* blocks tell whole seconds */
                afz_sample_set(s, AFZ_SITE_AGE,
                               rough(now->aged_s / now->aged_bytes * 10) *
                                       (int64_t)(AFZ_NS_PER_S / 10));
        if (now->stepped_bytes > 0)
                afz_sample_set(s, AFZ_SITE_AGE_STEPS,
                               rough(now->stepped_steps / now->stepped_bytes));
}

/* Of estimates, whole pages: the recording holds those in fewer bytes. */
static void set_bytes(struct afz_sample *s, enum afz_metric metric, uint64_t bytes)
{
        afz_sample_set_u64(s, metric, (bytes + 2048) / 4096 * 4096);
}

static void put(struct afz_keeper_record *r, struct afz_site *site, uint64_t t_ns, bool is_new)
{
        const struct afz_site_count *now = &site->now;
        bool whole = is_new || t_ns - site->told_ns >= rule.whole_ns;
        struct afz_sample s = {
                .t_ns = t_ns,
                .subject = {.kind = AFZ_KIND_SITE, .id = site->id},
                .name = site->name,
                .detail = whole ? site->where : NULL,
                .note = whole ? site->function : NULL,
        };
        set_bytes(&s, AFZ_SITE_LIVE, now->live_bytes);
        afz_sample_set_u64(&s, AFZ_SITE_BLOCKS, now->blocks);
        if (site->id != 0 && site->role == AFZ_SITE_STACK) /* else it may run back */
                set_bytes(&s, AFZ_SITE_TOTAL, now->total_bytes);
        set_bytes(&s, AFZ_SITE_EARLY, now->early_bytes);
        set_bytes(&s, AFZ_SITE_COUNTED, now->counted_bytes);
        afz_sample_set_u64(&s, AFZ_SITE_PROCESSES, site->processes);
        set_bytes(&s, AFZ_SITE_HIGH, site->high_bytes);
        set_bytes(&s, AFZ_SITE_LOW, site->low_bytes);
        set_age(&s, now);
        if (site->kind != AFZ_SITE_FREE)
                afz_sample_set(&s, AFZ_SITE_MEMORY, (int64_t)site->kind);
        afz_recorder_site(r->recorder, &s, is_new ? r->stack : NULL);
        site->put = *now;
        site->put_ns = t_ns;
        site->high_bytes = 0;
        site->low_bytes = UINT64_MAX;
        if (whole)
                site->told_ns = t_ns;
}

/* One that is new gets its name; false: there is no time for that in this look. */
static bool take_in(struct afz_keeper_record *r, struct afz_site *site, uint64_t until_ns)
{
        if (afz_clock_ns(CLOCK_PROCESS_CPUTIME_ID) >= until_ns)
                return false;
        name(r, site);
        site->recorded = true;
        return true;
}

static int by_size(const void *a, const void *b)
{
        uint64_t x = size_of(*(struct afz_site *const *)a);
        uint64_t y = size_of(*(struct afz_site *const *)b);
        return (x < y) - (x > y);
}

/* New ones come last, and the largest of them first: there may be no time to name them all. */
static void put_stacks(struct afz_keeper_record *r, uint64_t t_ns, uint64_t until_ns, bool last)
{
        struct afz_site *new[MOST_NEW];
        unsigned count = 0;
        uint64_t top = top_bytes(r);
        for (uint32_t i = 1; i < r->sites->sites; i++) {
                struct afz_site *site = &r->sites->site[i];
                if (site->role != AFZ_SITE_STACK)
                        continue;
                keep_water(site);
                if (site->recorded && is_due(site, top, t_ns, last))
                        put(r, site, t_ns, false);
                else if (!site->recorded && size_of(site) >= top && count < MOST_NEW)
                        new[count++] = site;
        }
        qsort(new, count, sizeof *new, by_size);
        for (unsigned i = 0; i < count && r->stacks < rule.most && take_in(r, new[i], until_ns);
             i++) {
                r->stacks++;
                put(r, new[i], t_ns, true);
        }
}

/* What is in no stack that is recorded goes to its line; deep learning has thousands of stacks, and
 * small ones are most of them. */
static void add_to_lines(struct afz_sites *s)
{
        for (uint32_t i = 1, n = s->sites; i < n; i++) { /* lines come to it on the way */
                struct afz_site *site = &s->site[i];
                if (site->role != AFZ_SITE_STACK || site->recorded || site->now.total_bytes == 0)
                        continue;
                if (!site->lined)
                        site->line = afz_site_find_line(s, site);
                site->lined = true;
                struct afz_site *to = &s->site[site->line];
                afz_site_count_add(&to->now, &site->now);
                if (site->processes > to->processes)
                        to->processes = site->processes;
        }
}

static void put_lines(struct afz_keeper_record *r, uint64_t t_ns, bool last)
{
        struct afz_site *rest = &r->sites->site[0];
        for (uint32_t i = 1; i < r->sites->sites; i++) {
                struct afz_site *site = &r->sites->site[i];
                bool is_new = !site->recorded;
                if (site->role != AFZ_SITE_LINE)
                        continue;
                keep_water(site);
                if (is_new) {
                        if (size_of(site) < rule.least_bytes || r->lines >= rule.lines) {
                                afz_site_count_add(&rest->now, &site->now);
                                continue;
                        }
                        (void)take_in(r, site, UINT64_MAX); /* lines are Python's: named at once */
                        r->lines++;
                }
                if (is_new || is_due(site, 0, t_ns, last))
                        put(r, site, t_ns, is_new);
        }
}

/* All that is in neither, so that shares can be told. */
static void put_rest(struct afz_keeper_record *r, uint64_t t_ns, bool last)
{
        struct afz_site *rest = &r->sites->site[0];
        keep_water(rest);
        if (!rest->named)
                afz_site_set_name(r->sites, rest, NULL, r->stack);
        if (is_due(rest, 0, t_ns, last) && (rest->now.live_bytes > 0 || rest->put_ns > 0))
                put(r, rest, t_ns, false);
}

void afz_keeper_record(struct afz_keeper_record *r, uint64_t t_ns, bool last)
{
        uint64_t until_ns = afz_clock_ns(CLOCK_PROCESS_CPUTIME_ID) +
                            (last ? rule.last_names_ns : rule.names_ns);
        afz_recorder_sites_begin(r->recorder, t_ns);
        put_stacks(r, t_ns, until_ns, last);
        add_to_lines(r->sites);
        put_lines(r, t_ns, last);
        put_rest(r, t_ns, last);
        afz_recorder_sites_end(r->recorder);
}
