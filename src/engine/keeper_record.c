#include "keeper_record.h"

#include <stdlib.h>

#include "clock.h"
#include "keeper_names.h"
#include "recorder.h"
#include "symbols.h"

static const struct {
        unsigned top;         /* so many sites are told at every look */
        unsigned most;        /* and so many ever: less than a pack has room for */
        uint64_t least_bytes; /* smaller ones are not told apart */
        uint64_t again_ns;    /* what is not among the top, or has not changed, is told so often */
        uint64_t whole_ns;    /* and where it lies, should what was told before be lost */
        uint64_t names_ns, last_names_ns; /* processor time for names in one look */
} rule = {
        .top = 48,
        .most = 288,
        .least_bytes = 3 << 19, /* one sample of 1 MiB is chance */
        .again_ns = 10 * AFZ_NS_PER_S,
        .whole_ns = 120 * AFZ_NS_PER_S,
        .names_ns = 30 * AFZ_NS_PER_MS,
        .last_names_ns = 200 * AFZ_NS_PER_MS,
};

_Static_assert(sizeof((struct afz_keeper_record){0}.stack) >= AFZ_SITE_STACK_CAP, "room for one");

/* ---- who is told ---- */

/* The least that the top ones have; found by halving, so that nobody need be sorted. */
static uint64_t top_bytes(const struct afz_sites *s)
{
        uint64_t low = rule.least_bytes, high = AFZ_BOOK_SANE;
        while (low < high) {
                uint64_t middle = low + (high - low) / 2;
                unsigned n = 0;
                for (uint32_t i = 1; i < s->sites; i++)
                        n += s->site[i].now.live_bytes >= middle;
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
               a->early_bytes == b->early_bytes && a->total_bytes == b->total_bytes;
}

static bool is_due(const struct afz_site *site, uint64_t top, uint64_t t_ns, bool last)
{
        const struct afz_site_count *now = &site->now, *put = &site->put;
        if (last || site->put_ns == 0 || t_ns - site->put_ns >= rule.again_ns)
                return true;
        if (is_same(now, put))
                return false;
        /* One that is freed drops out of the top: that is news, too. */
        return now->live_bytes >= top || now->live_bytes <= put->live_bytes / 2;
}

/* ---- telling ---- */

static void name(struct afz_keeper_record *r, struct afz_site *site)
{
        if (!r->asked && afz_symbols_new(&r->symbols) < 0)
                r->symbols = NULL;
        r->asked = true;
        afz_site_set_name(r->sites, site, r->symbols, r->stack);
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
        afz_sample_set_u64(&s, AFZ_SITE_LIVE, now->live_bytes);
        afz_sample_set_u64(&s, AFZ_SITE_BLOCKS, now->blocks);
        afz_sample_set_u64(&s, AFZ_SITE_TOTAL, now->total_bytes);
        afz_sample_set_u64(&s, AFZ_SITE_EARLY, now->early_bytes);
        afz_sample_set_u64(&s, AFZ_SITE_COUNTED, now->counted_bytes);
        afz_sample_set_u64(&s, AFZ_SITE_PROCESSES, site->processes);
        if (site->kind != AFZ_SITE_FREE)
                afz_sample_set(&s, AFZ_SITE_MEMORY, (int64_t)site->kind);
        afz_recorder_site(r->recorder, &s, is_new ? r->stack : NULL);
        site->put = *now;
        site->put_ns = t_ns;
        if (whole)
                site->told_ns = t_ns;
}

/* All that is in no site that is recorded, so that shares can be told. */
static void put_rest(struct afz_keeper_record *r, uint64_t t_ns, bool last)
{
        struct afz_site *rest = &r->sites->site[0];
        for (uint32_t i = 1; i < r->sites->sites; i++) {
                const struct afz_site *site = &r->sites->site[i];
                if (site->recorded)
                        continue;
                rest->now.live_bytes += site->now.live_bytes;
                rest->now.blocks += site->now.blocks;
                rest->now.total_bytes += site->now.total_bytes;
                rest->now.early_bytes += site->now.early_bytes;
                rest->now.counted_bytes += site->now.counted_bytes;
        }
        if (!rest->named)
                afz_site_set_name(r->sites, rest, NULL, r->stack);
        if (is_due(rest, 0, t_ns, last) && (rest->now.live_bytes > 0 || rest->put_ns > 0))
                put(r, rest, t_ns, false);
}

void afz_keeper_record(struct afz_keeper_record *r, uint64_t t_ns, bool last)
{
        uint64_t top = top_bytes(r->sites);
        uint64_t until_ns = afz_clock_ns(CLOCK_PROCESS_CPUTIME_ID) +
                            (last ? rule.last_names_ns : rule.names_ns);
        afz_recorder_sites_begin(r->recorder, t_ns);
        for (uint32_t i = 1; i < r->sites->sites; i++) {
                struct afz_site *site = &r->sites->site[i];
                bool is_new = !site->recorded;
                if (is_new ? site->now.live_bytes < top || r->recorded >= rule.most
                           : !is_due(site, top, t_ns, last))
                        continue;
                if (is_new) {
                        if (afz_clock_ns(CLOCK_PROCESS_CPUTIME_ID) >= until_ns)
                                continue; /* at the next look */
                        name(r, site);
                        site->recorded = true;
                        r->recorded++;
                }
                put(r, site, t_ns, is_new);
        }
        put_rest(r, t_ns, last);
        afz_recorder_sites_end(r->recorder);
}
