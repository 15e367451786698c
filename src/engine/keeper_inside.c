#include "keeper_inside.h"

#include <string.h>

#include "clock.h"
#include "recorder.h"

static const struct {
        unsigned top;         /* so many of the largest are told, */
        uint64_t least_bytes; /* if they hold so much at least: shells do not */
        unsigned at_once;     /* and with those that have steps so many at a time: with all sites
                                 together less than a pack has room for */
        unsigned ever;        /* workers come and go */
        uint64_t again_ns;    /* what has not changed is told so often */
} rule = {
        .top = 8,
        .least_bytes = 16 << 20,
        .at_once = 24,
        .ever = 256,
        .again_ns = 10 * AFZ_NS_PER_S,
};

/* Where a figure that was told goes to. */
#define METRIC(id, name) [AFZ_TOLD_##id] = AFZ_INSIDE_##id,
static const enum afz_metric metric_of[AFZ_TOLD_COUNT] = {AFZ_TOLD_LIST(METRIC)};
#undef METRIC

static uint64_t more(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static uint64_t later(enum afz_metric metric, uint64_t now, uint64_t before)
{
        bool counts = afz_metric_info(metric)->type == AFZ_COUNTER;
        return counts && now != AFZ_TOLD_NOT && before != AFZ_TOLD_NOT ? more(now, before) : now;
}

void afz_inside_look(struct afz_inside *in, struct afz_book *book)
{
        struct afz_book_inside before = in->now;
        afz_book_inside(book, &in->now);
        in->now.step = more(in->now.step, before.step);
        in->now.wait_ns = more(in->now.wait_ns, before.wait_ns);
        in->now.refused = more(in->now.refused, before.refused);
        in->now.refused_bytes = more(in->now.refused_bytes, before.refused_bytes);
        for (unsigned i = 0; i < AFZ_TOLD_COUNT; i++)
                in->now.told[i] = later(metric_of[i], in->now.told[i], before.told[i]);
}

void afz_inside_there(struct afz_inside *in, uint64_t there_bytes, uint64_t said_bytes)
{
        /* What is not there was not there at the highest, either. */
        uint64_t hidden = said_bytes > there_bytes ? said_bytes - there_bytes : 0;
        uint64_t high = in->now.high_bytes;
        in->live_bytes = there_bytes;
        in->now.high_bytes = more(high > hidden ? high - hidden : 0, there_bytes);
}

/* ---- who is told ---- */

/* A heap in pieces is large, though little of it is live. */
static uint64_t size_of(const struct afz_inside_one *one)
{
        const struct afz_inside *in = one->inside;
        return in->live_bytes > in->now.heap_taken_bytes ? in->live_bytes
                                                         : in->now.heap_taken_bytes;
}

static bool is_among_the_largest(const struct afz_inside_one *one, unsigned n, unsigned at)
{
        uint64_t size = size_of(&one[at]);
        unsigned larger = 0;
        for (unsigned i = 0; i < n; i++)
                larger += size_of(&one[i]) > size;
        return larger < rule.top && size >= rule.least_bytes;
}

static bool tells(const struct afz_book_inside *now)
{
        bool some = now->step > 0 || now->refused > 0;
        for (unsigned i = 0; i < AFZ_TOLD_COUNT; i++)
                some |= now->told[i] != AFZ_TOLD_NOT;
        return some;
}

static void choose(const struct afz_inside_one *one, unsigned n, unsigned *chosen)
{
        unsigned told = 0;
        for (unsigned i = 0; i < n; i++)
                told += one[i].inside->chosen;
        for (unsigned pass = 0; pass < 2; pass++) { /* who tells something comes first */
                for (unsigned i = 0; i < n && told < rule.at_once && *chosen < rule.ever; i++) {
                        struct afz_inside *in = one[i].inside;
                        if (in->chosen ||
                            (pass == 0 ? !tells(&in->now) : !is_among_the_largest(one, n, i)))
                                continue;
                        in->chosen = true;
                        told++;
                        ++*chosen;
                }
        }
}

static bool is_due(const struct afz_inside *in, uint64_t t_ns, bool last)
{
        const struct afz_book_inside *now = &in->now, *put = &in->put;
        return last || in->put_ns == 0 || t_ns - in->put_ns >= rule.again_ns ||
               now->step != put->step || in->live_bytes != in->put_live_bytes ||
               now->high_bytes != put->high_bytes ||
               now->heap_taken_bytes != put->heap_taken_bytes ||
               now->heap_used_bytes != put->heap_used_bytes || now->refused != put->refused ||
               memcmp(now->told, put->told, sizeof now->told) != 0;
}

/* ---- telling ---- */

static void put_first_step(struct afz_recorder *recorder, const struct afz_inside_one *one)
{
        struct afz_sample s = {
                .t_ns = one->before_ns,
                .subject = {.kind = AFZ_KIND_INSIDE, .id = one->pid},
                .name = one->inside->name,
        };
        afz_sample_set(&s, AFZ_INSIDE_STEP, 0);
        afz_recorder_site(recorder, &s, NULL);
}

static void put(struct afz_recorder *recorder, const struct afz_inside_one *one, uint64_t t_ns)
{
        struct afz_inside *in = one->inside;
        const struct afz_book_inside *now = &in->now;
        struct afz_sample s = {
                .t_ns = t_ns,
                .subject = {.kind = AFZ_KIND_INSIDE, .id = one->pid},
                .name = in->name,
        };
        if (now->step > 0 && in->put.step == 0)
                put_first_step(recorder, one);
        if (now->step > 0)
                afz_sample_set_u64(&s, AFZ_INSIDE_STEP, now->step);
        if (now->wait_ns > 0)
                afz_sample_set_u64(&s, AFZ_INSIDE_WAIT, now->wait_ns);
        afz_sample_set_u64(&s, AFZ_INSIDE_LIVE, in->live_bytes);
        afz_sample_set_u64(&s, AFZ_INSIDE_HIGH, now->high_bytes);
        if (now->heap_known) {
                afz_sample_set_u64(&s, AFZ_INSIDE_HEAP_TAKEN, now->heap_taken_bytes);
                afz_sample_set_u64(&s, AFZ_INSIDE_HEAP_USED, now->heap_used_bytes);
        }
        if (now->refused > 0) {
                afz_sample_set_u64(&s, AFZ_INSIDE_REFUSED, now->refused);
                afz_sample_set_u64(&s, AFZ_INSIDE_REFUSED_BYTES, now->refused_bytes);
        }
        for (unsigned i = 0; i < AFZ_TOLD_COUNT; i++)
                if (now->told[i] != AFZ_TOLD_NOT)
                        afz_sample_set_u64(&s, metric_of[i], now->told[i]);
        afz_recorder_site(recorder, &s, NULL);
        in->put = *now;
        in->put_live_bytes = in->live_bytes;
        in->put_ns = t_ns;
}

void afz_inside_record(struct afz_recorder *recorder, const struct afz_inside_one *one, unsigned n,
                       uint64_t t_ns, bool last, unsigned *chosen)
{
        choose(one, n, chosen);
        for (unsigned i = 0; i < n; i++)
                if (one[i].inside->chosen && is_due(one[i].inside, t_ns, last))
                        put(recorder, &one[i], t_ns);
}
