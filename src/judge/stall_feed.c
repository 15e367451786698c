#include "stall_feed.h"

#include <stdio.h>

enum {
        CLAUSE_MAX = 120, /* bytes */
        WHOLE_PART = 2,   /* a word about less than one part in so many of an epoch tells little */
};
#define FREE_CORES 0.5 /* from so many on, more threads could work */

/* ---- one event ---- */

static const char *const names[AFZ_FEED_LIMITS] = {
        [AFZ_FEED_DISK] = "disk",           [AFZ_FEED_CACHE] = "cache",
        [AFZ_FEED_DECODE] = "decode",       [AFZ_FEED_GATHER] = "gather",
        [AFZ_FEED_TRANSFORM] = "transform",
};

static bool read_limit(struct afz_span text, enum afz_feed_limit *ret)
{
        struct afz_span name;
        if (!afz_agent_event_value(text, "limit", &name))
                return false;
        for (unsigned i = 0; i < AFZ_FEED_LIMITS; i++)
                if (afz_span_eq(name, names[i])) {
                        *ret = (enum afz_feed_limit)i;
                        return true;
                }
        return false; /* the program itself was the slower side */
}

static uint64_t number(struct afz_span text, const char *key)
{
        uint64_t value = 0;
        (void)afz_agent_event_number(text, key, &value);
        return value;
}

/* The sentence as far as its first ';': what comes behind is told by figures. No more of it than
 * belongs into another sentence, and no half character. */
static struct afz_span first_clause(struct afz_span sentence)
{
        size_t n = 0;
        while (n < sentence.n && n < CLAUSE_MAX && sentence.p[n] != ';')
                n++;
        while (n > 0 && n < sentence.n && ((unsigned char)sentence.p[n] & 0xc0) == 0x80)
                n--;
        return (struct afz_span){sentence.p, n};
}

static bool is_told(const struct afz_mark *mark, uint32_t from_ms)
{
        return mark->kind == AFZ_MARK_AGENT && mark->code == AFZ_AGENT_FEED &&
               mark->t_ms >= from_ms;
}

static bool read_event(const struct afz_mark *mark, double least_share, struct afz_feed *ret)
{
        struct afz_span text = afz_span_str(mark->text);
        struct afz_feed feed = {
                .rate = first_clause(afz_agent_event_sentence(text)),
                .waited_ms = number(text, "waited_ms"),
                .held = number(text, "held"),
                .copies = number(text, "copies"),
        };
        if (!read_limit(text, &feed.limit) || feed.rate.n == 0 || feed.waited_ms == 0 ||
            (double)feed.waited_ms < least_share * (double)number(text, "epoch_ms"))
                return false;
        *ret = feed;
        return true;
}

/* ---- all of them ---- */

/* What was waited for in all, and in one word at most, by the limit. A long epoch is told of
 * several times, each time from its start on: that weighs more, but it does so for all. */
struct waits {
        double all_ms[AFZ_FEED_LIMITS];
        uint64_t most_ms[AFZ_FEED_LIMITS];
};

static struct waits add_up(const struct afz_flight *flight, uint32_t from_ms, double least_share)
{
        struct waits waits = {0};
        struct afz_feed feed;
        for (size_t i = 0; i < flight->marks; i++) {
                if (!is_told(&flight->mark[i], from_ms) ||
                    !read_event(&flight->mark[i], least_share, &feed))
                        continue;
                waits.all_ms[feed.limit] += (double)feed.waited_ms;
                if (feed.waited_ms > waits.most_ms[feed.limit])
                        waits.most_ms[feed.limit] = feed.waited_ms;
        }
        return waits;
}

bool afz_feed_of(const struct afz_flight *flight, uint32_t from_ms, double least_share,
                 struct afz_feed *ret)
{
        struct waits waits = add_up(flight, from_ms, least_share);
        struct afz_feed feed;
        unsigned limit = 0;
        for (unsigned i = 1; i < AFZ_FEED_LIMITS; i++)
                if (waits.all_ms[i] > waits.all_ms[limit])
                        limit = i;
        for (size_t i = flight->marks; i-- > 0;)
                if (is_told(&flight->mark[i], from_ms) &&
                    read_event(&flight->mark[i], least_share, &feed) && feed.limit == limit &&
                    feed.waited_ms >= waits.most_ms[limit] / WHOLE_PART) {
                        *ret = feed;
                        return true;
                }
        return false;
}

uint64_t afz_feed_held(const struct afz_flight *flight, uint32_t from_ms)
{
        uint64_t held = 0;
        for (size_t i = 0; i < flight->marks; i++) {
                struct afz_span text = afz_span_str(flight->mark[i].text);
                if (!is_told(&flight->mark[i], from_ms))
                        continue;
                held = number(text, "copies") > 0 ? number(text, "held") : 0;
        }
        return held;
}

/* ---- in words ---- */

static const char *const fixes[AFZ_FEED_LIMITS] = {
        [AFZ_FEED_DISK] =
                "the disk gives no more: copy the data to a faster one, make it smaller "
                "(`antifreeze convert` compresses it), or give the loader a budget that holds all "
                "of it, so that it is read once",
        [AFZ_FEED_CACHE] =
                "give the loader a budget that holds all of the data, so that it is read once, or "
                "store it in narrower types (float16, uint8): it comes from memory already",
        [AFZ_FEED_DECODE] =
                "decode the data once instead of in every epoch: `antifreeze convert` keeps a copy "
                "that is quick to read; or store smaller pictures",
        [AFZ_FEED_GATHER] =
                "fewer bytes for each sample: store narrower types (float16, uint8), and make them "
                "wider in the step",
        [AFZ_FEED_TRANSFORM] = "let more processes do the transform (workers=), make it cheaper, "
                               "or do once what is "
                               "the same in every epoch and store that",
};

static const char more_threads[] =
        "let more threads decode: without threads=, antifreeze.Loader finds out how many help; "
        "else decode once (`antifreeze convert`), or store smaller pictures";

void afz_feed_say(const struct afz_feed *feed, double free_cores, struct afz_verdict *v)
{
        bool few = feed->limit == AFZ_FEED_DECODE && free_cores >= FREE_CORES;
        snprintf(v->fix, sizeof v->fix, "%s", few ? more_threads : fixes[feed->limit]);
        if (feed->copies > 0)
                afz_verdict_note(v, "it holds %llu batches at once, so that %llu had to be copied",
                                 (unsigned long long)feed->held, (unsigned long long)feed->copies);
}
