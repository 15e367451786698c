#include "slowest.h"

#include <stdbool.h>
#include <stdio.h>

static const struct {
        double waited;     /* share of an epoch in which the program waited for batches: */
        double load_waits; /* for each piece that is loaded: it came from memory with fewer */
} rule = {
        .waited = 0.1,      /* with less, nothing is gained by a loader that is faster */
        .load_waits = 0.25, /* as pool.c looks at it */
};

static double share(uint64_t part_ns, uint64_t of_ns)
{
        double of = (double)of_ns, part = (double)part_ns;
        return part < of ? part / of : of > 0;
}

/* Batches are made of what is loaded, one after the other: either that copying was slower, or it
 * had to wait for samples. Threads read and decode by turns: what they did longer is the slower. */
enum afz_side afz_slowest_of(const struct afz_loader_times *t)
{
        if (t->epoch_ns == 0)
                return AFZ_SIDE_NONE;
        if (share(t->waited_ns, t->epoch_ns) < rule.waited)
                return AFZ_SIDE_CONSUMER;
        if (t->gather_ns >= t->starved_ns)
                return AFZ_SIDE_GATHER;
        if (t->read_ns < t->decode_ns)
                return AFZ_SIDE_DECODE;
        bool is_cached = (double)t->load_waits < rule.load_waits * (double)t->loads;
        return is_cached ? AFZ_SIDE_CACHE : AFZ_SIDE_DISK;
}

/* ---- in words ---- */

static double per_second(uint64_t amount, uint64_t ns)
{
        return ns ? (double)amount * 1e9 / (double)ns : 0;
}

struct text {
        char is[32];
};

/* "212M", "4.1G": three digits. */
static struct text size(double bytes)
{
        static const char units[] = {0, 'K', 'M', 'G', 'T'};
        struct text text;
        unsigned unit = 0;
        while (bytes >= 999.5 && unit + 1 < sizeof units) {
                bytes /= 1024;
                unit++;
        }
        snprintf(text.is, sizeof text.is, bytes < 9.95 && unit ? "%.1f%s" : "%.0f%s", bytes,
                 (const char[]){units[unit], 0});
        return text;
}

/* "1,340"; "12.5" where that is said of so few. */
static struct text count(double number)
{
        struct text text;
        unsigned long long whole = number < 9e17 ? (unsigned long long)(number + 0.5) : 0;
        if (number < 99.95)
                snprintf(text.is, sizeof text.is, "%.1f", number);
        else if (whole < 1000)
                snprintf(text.is, sizeof text.is, "%llu", whole);
        else if (whole < 1000000)
                snprintf(text.is, sizeof text.is, "%llu,%03llu", whole / 1000, whole % 1000);
        else
                snprintf(text.is, sizeof text.is, "%llu,%03llu,%03llu", whole / 1000000,
                         whole / 1000 % 1000, whole % 1000);
        return text;
}

static int say_rate(const struct afz_loader_times *t, enum afz_side side, uint32_t threads,
                    const char *things, char *words, size_t room)
{
        double idle = share(t->idle_ns, t->epoch_ns);
        switch (side) {
        case AFZ_SIDE_CONSUMER:
                if (idle < rule.waited)
                        return snprintf(words, room,
                                        "your training step, though the loader is hardly faster");
                return snprintf(words, room,
                                "your training step: batches waited for it %.0f %% of the time",
                                100 * idle);
        case AFZ_SIDE_DISK:
        case AFZ_SIDE_CACHE:
                return snprintf(words, room, "%s: %s/s",
                                side == AFZ_SIDE_DISK ? "the disk" : "reading from the page cache",
                                size(per_second(t->read_bytes, t->loading_ns)).is);
        case AFZ_SIDE_DECODE:
                return snprintf(words, room, "decoding: %s %s/s on %u thread%s",
                                count(per_second(t->loaded, t->loading_ns)).is, things, threads,
                                threads == 1 ? "" : "s");
        case AFZ_SIDE_GATHER:
                return snprintf(words, room, "putting batches together: %s/s",
                                size(per_second(t->gather_bytes, t->gather_ns)).is);
        default:
                return snprintf(words, room, "%s", "");
        }
}

enum afz_side afz_slowest_say(const struct afz_loader_times *t, uint32_t threads,
                              const char *things, char ret_words[AFZ_WHY_MAX])
{
        enum afz_side side = afz_slowest_of(t);
        int n = say_rate(t, side, threads, things, ret_words, AFZ_WHY_MAX);
        if (side > AFZ_SIDE_CONSUMER)
                n += snprintf(ret_words + n, AFZ_WHY_MAX - (size_t)n,
                              "; the program waited for data %.0f %% of the time",
                              100 * share(t->waited_ns, t->epoch_ns));
        if (side != AFZ_SIDE_NONE && t->copies)
                snprintf(ret_words + n, AFZ_WHY_MAX - (size_t)n,
                         "; you hold %llu batches, so that %llu had to be copied",
                         (unsigned long long)t->held_most, (unsigned long long)t->copies);
        return side;
}
