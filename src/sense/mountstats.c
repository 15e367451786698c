#include "mountstats.h"

#include <errno.h>
#include <string.h>

/* "device SOURCE mounted on POINT with fstype TYPE ...": whether the line is the head of a
 * mount, and where. A mount without a source has "no device mounted on POINT ...". */
static bool is_head(struct afz_span line, struct afz_span *ret_point)
{
        struct afz_span word;
        if (afz_span_take_prefix(&line, "device ") == 0) {
                if (afz_span_take_word(&line, &word) < 0)
                        return false;
        } else if (afz_span_take_prefix(&line, "no device") < 0) {
                return false;
        }
        return afz_span_take_prefix(&line, " mounted on ") == 0 &&
               afz_span_take_word(&line, ret_point) == 0;
}

static void add_bytes(struct afz_span numbers, struct afz_mountstats *s)
{
        enum { COUNTERS = 8, SERVER_READ = 4, SERVER_WRITTEN = 5 };
        uint64_t v[COUNTERS];
        for (size_t i = 0; i < COUNTERS; i++)
                if (afz_span_take_u64(&numbers, &v[i]) < 0)
                        return;
        s->has_bytes = true;
        s->read_bytes = v[SERVER_READ];
        s->written_bytes = v[SERVER_WRITTEN];
}

static int add_op(struct afz_span name, struct afz_span numbers, struct afz_mountstats *s)
{
        enum { COUNTERS = 8, OPS = 0, TRANSMISSIONS = 1, ROUND_TRIP_MS = 6 };
        uint64_t v[COUNTERS];
        for (size_t i = 0; i < COUNTERS; i++)
                if (afz_span_take_u64(&numbers, &v[i]) < 0)
                        return -EINVAL;
        uint64_t again = v[TRANSMISSIONS] > v[OPS] ? v[TRANSMISSIONS] - v[OPS] : 0;
        if (__builtin_add_overflow(s->ops, v[OPS], &s->ops) ||
            __builtin_add_overflow(s->wait_ms, v[ROUND_TRIP_MS], &s->wait_ms) ||
            __builtin_add_overflow(s->resent, again, &s->resent))
                return -ERANGE;
        if (afz_span_eq(name, "READ")) {
                s->read_ops = v[OPS];
                s->read_wait_ms = v[ROUND_TRIP_MS];
        }
        return 0;
}

/* One line below a head; *in_ops says whether the list of requests has begun. */
static int add_line(struct afz_span line, bool *in_ops, struct afz_mountstats *s)
{
        struct afz_span name;
        line = afz_span_trim(line);
        if (afz_span_starts(line, "per-op statistics")) {
                *in_ops = s->has_ops = true;
                return 0;
        }
        if (afz_span_take_until(&line, ':', &name) < 0)
                return 0;
        if (*in_ops)
                return add_op(name, line, s);
        if (afz_span_eq(name, "bytes"))
                add_bytes(line, s);
        return 0;
}

/* Takes the lines up to the next head. */
static struct afz_mountstats take_section(struct afz_span *text)
{
        struct afz_mountstats s = {0};
        bool in_ops = false, broken = false;
        for (;;) {
                struct afz_span rest = *text, line, ignored;
                if (afz_span_take_line(&rest, &line) < 0 || is_head(line, &ignored))
                        break;
                *text = rest;
                if (!broken && add_line(line, &in_ops, &s) < 0)
                        broken = true;
        }
        if (broken) /* a sum that lacks a part would go backwards and forth */
                s = (struct afz_mountstats){.has_bytes = s.has_bytes,
                                            .read_bytes = s.read_bytes,
                                            .written_bytes = s.written_bytes};
        return s;
}

int afz_mountstats_find(struct afz_span text, struct afz_span point, struct afz_mountstats *ret)
{
        struct afz_mountstats found = {0};
        struct afz_span line, here;
        while (afz_span_take_line(&text, &line) == 0) {
                if (!is_head(line, &here))
                        continue;
                struct afz_mountstats s = take_section(&text);
                if (here.n == point.n && afz_span_starts(here, "/") &&
                    memcmp(here.p, point.p, here.n) == 0)
                        found = s;
        }
        if (!found.has_bytes && !found.has_ops)
                return -ENODATA;
        *ret = found;
        return 0;
}
