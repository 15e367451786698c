/* What `antifreeze convert` runs: arguments, signals, words. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert.h"
#include "now.h"
#include "quantity.h"
#include "talk.h"

struct order {
        struct afz_wish wish;
        uint64_t level, height, width, is_float, is_forced, is_dry, is_json, is_quiet;
        const char *mean, *deviation;
};

static atomic_int stopped_by; /* a signal's number; set by its handler */

static void stop(int signal)
{
        stopped_by = signal;
}

/* ---- arguments ---- */

static const struct {
        const char *name;
        size_t offset;
        bool is_text;
} arguments[] = {
        {"source", offsetof(struct order, wish.source), true},
        {"labels", offsetof(struct order, wish.labels), true},
        {"target", offsetof(struct order, wish.target), true},
        {"format", offsetof(struct order, wish.format), true},
        {"details", offsetof(struct order, wish.details), true},
        {"mean", offsetof(struct order, mean), true},
        {"deviation", offsetof(struct order, deviation), true},
        {"threads", offsetof(struct order, wish.threads), false},
        {"budget", offsetof(struct order, wish.budget_bytes), false},
        {"chunk", offsetof(struct order, wish.chunk_bytes), false},
        {"shard", offsetof(struct order, wish.shard_bytes), false},
        {"level", offsetof(struct order, level), false},
        {"height", offsetof(struct order, height), false},
        {"width", offsetof(struct order, width), false},
        {"float", offsetof(struct order, is_float), false},
        {"force", offsetof(struct order, is_forced), false},
        {"dry-run", offsetof(struct order, is_dry), false},
        {"json", offsetof(struct order, is_json), false},
        {"quiet", offsetof(struct order, is_quiet), false},
};

static int read_argument(const char *text, struct order *order)
{
        size_t length = strcspn(text, "=");
        for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
                char *to = (char *)order + arguments[i].offset;
                if (text[length] != '=' || strlen(arguments[i].name) != length ||
                    strncmp(arguments[i].name, text, length) != 0)
                        continue;
                if (!arguments[i].is_text)
                        return afz_parse_u64(text + length + 1, (uint64_t *)(void *)to);
                *(const char **)(void *)to = text + length + 1;
                return 0;
        }
        return -EINVAL;
}

/* "0.5,0.4,0.3": a number for each channel. */
static int read_three(const char *text, float ret[3])
{
        int end = 0;
        if (!text)
                return 0;
        return sscanf(text, "%f,%f,%f%n", &ret[0], &ret[1], &ret[2], &end) == 3 && !text[end]
                       ? 0
                       : -EINVAL;
}

static int read_order(int argc, char **argv, struct order *ret)
{
        *ret = (struct order){.level = 3,
                              .wish = {.budget_bytes = UINT64_C(256) << 20,
                                       .chunk_bytes = AFZ_CHUNK_BYTES,
                                       .shard_bytes = AFZ_SHARD_BYTES}};
        for (int i = 1; i < argc; i++)
                if (read_argument(argv[i], ret) < 0)
                        return -EINVAL;
        struct afz_wish *wish = &ret->wish;
        if (!wish->source || !wish->target || ret->height > UINT32_MAX || ret->width > UINT32_MAX ||
            wish->threads > UINT32_MAX || ret->level > 22 ||
            read_three(ret->mean, wish->image.mean) < 0 ||
            read_three(ret->deviation, wish->image.deviation) < 0)
                return -EINVAL;
        wish->level = (int)ret->level;
        wish->image.height = (uint32_t)ret->height;
        wish->image.width = (uint32_t)ret->width;
        wish->image.is_float = ret->is_float > 0;
        wish->is_forced = ret->is_forced > 0;
        wish->is_dry = ret->is_dry > 0;
        return 0;
}

/* ---- words ---- */

static json_t *as_json(const struct afz_wish *wish, const struct afz_outcome *o, double seconds)
{
        json_t *arrays = json_array();
        for (uint32_t i = 0; i < o->arrays; i++)
                json_array_append_new(arrays, afz_recipe_array(o, i, o->layout.samples));
        json_t *target = json_string(wish->target); /* NULL: no UTF-8 */
        json_t *about = json_pack(
                "{s:i, s:b, s:o, s:I, s:o, s:I, s:I, s:I, s:I}", "schema", 1, "dry_run",
                wish->is_dry, "target", target ? target : json_null(), "samples",
                (json_int_t)o->layout.samples, "arrays", arrays, "chunk_samples",
                (json_int_t)o->layout.chunk_samples, "shards", (json_int_t)o->layout.shards,
                "plain_bytes", (json_int_t)o->plain_bytes, "most_bytes", (json_int_t)o->most_bytes);
        json_t *more = wish->is_dry ? json_pack("{s:I, s:I, s:b}", "likely_bytes",
                                                (json_int_t)o->likely_bytes, "free_bytes",
                                                (json_int_t)o->free_bytes, "fits",
                                                o->likely_bytes <= o->free_bytes)
                                    : json_pack("{s:I, s:I, s:f}", "bytes",
                                                (json_int_t)o->disk_bytes, "resumed_samples",
                                                (json_int_t)o->begun_samples, "seconds", seconds);
        json_object_update(about, more);
        json_decref(more);
        return about;
}

static int print_json(const struct afz_wish *wish, const struct afz_outcome *o, double seconds)
{
        json_t *about = as_json(wish, o, seconds);
        char *text = json_dumps(about, JSON_COMPACT);
        int n = text ? printf("%s\n", text) : -1;
        free(text);
        json_decref(about);
        return n;
}

static int print_dry(const struct afz_wish *wish, const struct afz_outcome *o)
{
        char plain[AFZ_SIZE_TEXT_CAP], likely[AFZ_SIZE_TEXT_CAP], free_[AFZ_SIZE_TEXT_CAP];
        return printf("%s would take about %s on disk (%s plain) in %llu shard%s; %s are free: it "
                      "%s\n",
                      wish->target, afz_format_size(likely, sizeof likely, o->likely_bytes),
                      afz_format_size(plain, sizeof plain, o->plain_bytes),
                      (unsigned long long)o->layout.shards, o->layout.shards == 1 ? "" : "s",
                      afz_format_size(free_, sizeof free_, o->free_bytes),
                      o->likely_bytes <= o->free_bytes ? "fits" : "does not fit");
}

static int print_made(const struct afz_wish *wish, const struct afz_outcome *o, double seconds)
{
        char plain[AFZ_SIZE_TEXT_CAP], disk[AFZ_SIZE_TEXT_CAP], time[AFZ_DURATION_TEXT_CAP];
        int n = o->is_whole_already
                        ? printf("%s is whole already: ", wish->target)
                        : printf("%s in %s: ", wish->target,
                                 afz_format_duration(time, sizeof time, (uint64_t)(seconds * 1e9)));
        n |= printf("%llu samples, %s on disk (%s plain)\n", (unsigned long long)o->layout.samples,
                    afz_format_size(disk, sizeof disk, o->disk_bytes),
                    afz_format_size(plain, sizeof plain, o->plain_bytes));
        n |= printf("    antifreeze.Loader(\"%s\", batch=256, budget=\"512MiB\")\n", wish->target);
        return n;
}

static int finish(const struct order *order, const struct afz_outcome *o, double seconds)
{
        int n = 0;
        if (order->is_json)
                n = print_json(&order->wish, o, seconds);
        else if (order->wish.is_dry)
                n = print_dry(&order->wish, o);
        else if (!order->is_quiet)
                n = print_made(&order->wish, o, seconds);
        if (n >= 0 && fflush(stdout) == 0)
                return AFZ_END_GOOD;
        fprintf(stderr, "antifreeze: cannot write to stdout\n");
        return AFZ_END_BAD;
}

/* Ends as whoever sent the signal expects. */
static int stop_now(const struct afz_outcome *o)
{
        uint64_t shard = o->layout.shard_chunks * o->layout.chunk_samples;
        double whole = (double)(o->done_samples - o->done_samples % shard);
        fprintf(stderr,
                "antifreeze: stopped; %.0f %% of the copy is done, and the same command goes on "
                "from there\n",
                100 * whole / (double)o->layout.samples);
        signal(stopped_by, SIG_DFL);
        raise(stopped_by);
        return AFZ_END_OWN;
}

/* From the moment that there is something to say of where it stands. A second signal ends it at
 * once: nothing is lost by that but time. */
static void catch_signals(void)
{
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
        struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
        struct sigaction before;
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
                if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
                        sigaction(signals[i], &action, NULL); /* else: nohup, or a shell's & */
}

static void show(const struct afz_outcome *outcome, void *about)
{
        struct afz_talk *talk = about;
        if (talk->began_ns == 0)
                catch_signals();
        afz_talk_show(outcome, talk);
}

int afz_convert_main(int argc, char **argv, const struct afz_source *arrow)
{
        struct order order;
        struct afz_outcome outcome;
        uint64_t began = afz_now_ns();
        if (read_order(argc, argv, &order) < 0) {
                fprintf(stderr, "antifreeze: this program is run by `antifreeze convert`\n");
                return AFZ_END_OWN;
        }
        order.wish.arrow = arrow;
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN);
        struct afz_talk talk = afz_talk_new(order.is_quiet > 0);
        enum afz_end end = afz_convert(&order.wish, &stopped_by, show, &talk, &outcome);
        afz_talk_clear(&talk);
        if (end == AFZ_END_STOPPED)
                return stop_now(&outcome);
        if (end == AFZ_END_GOOD)
                return finish(&order, &outcome, (double)(afz_now_ns() - began) / 1e9);
        fprintf(stderr, "antifreeze: %s\n", outcome.why);
        return (int)end;
}
