#include "leak_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
        double own;   /* of all lines' growth: what one must have */
        double below; /* the same with all that it calls */
        double need;  /* of the job's growth, less what malloc holds: what must be seen of it */
        double least; /* of the job's growth in any case */
} rule = {
        .own = 0.4, /* the largest part, and more than one of three that share evenly; */
        .below = 0.6,
        .need = 0.25, /* and what no line is known of must not be nearly all */
        .least = 0.08,
};

/* What is known to lie unused between blocks is nobody's line. */
static bool is_enough(const struct afz_leak_growth *g, double bytes)
{
        double slack = g->heap.known ? g->heap.free_bytes[1] - g->heap.free_bytes[0] : 0;
        double used = g->bytes - (slack > 0 ? slack : 0);
        return bytes >= rule.need * used && bytes >= rule.least * g->bytes;
}

static bool is_python(const struct afz_track *site)
{
        return strstr(site->detail, ".py:") || site->detail[0] == '<';
}

/* ---- a line that calls them all ---- */

static bool has_frame(const char *stack, const char *frame, size_t n)
{
        for (const char *at = stack; *at;) {
                size_t len = strcspn(at, "\n");
                if (len == n && memcmp(at, frame, n) == 0)
                        return true;
                at += len + (at[len] == '\n');
        }
        return false;
}

/* The growth of all sites below this frame. */
static double below(const struct afz_leak_growth *g, const char *frame, size_t n)
{
        const struct afz_track *site;
        double sum = 0;
        for (size_t at = 0; (site = afz_flight_next(g->flight, AFZ_KIND_SITE, &at));) {
                double bytes = afz_site_grown(site, g->from_ms, g->to_ms);
                if (bytes > 0 && has_frame(afz_site_stack(g->flight, site->subject.id), frame, n))
                        sum += bytes;
        }
        return sum;
}

/* "train.py:33 in step()", which is in the file of `site`. */
static void set_where(const struct afz_track *site, const char *frame, size_t n,
                      struct afz_where *ret)
{
        const char *file_end = strrchr(site->detail, ':');
        const char *colon = memchr(frame, ':', n);
        char text[128];
        snprintf(text, sizeof text, "%.*s", (int)n, frame);
        const char *in = strstr(text, " in ");
        snprintf(ret->file, sizeof ret->file, "%.*s", (int)(file_end - site->detail), site->detail);
        ret->line = (int32_t)strtol(colon + 1, NULL, 10);
        if (in) {
                size_t len = strlen(in + 4);
                if (len > 2 && strcmp(in + 4 + len - 2, "()") == 0)
                        len -= 2;
                snprintf(ret->function, sizeof ret->function, "%.*s", (int)len, in + 4);
        }
}

/* The file's name as stacks tell it, its ':' included; its length, or 0: not known. */
static size_t file_of(const struct afz_track *site, const char **ret)
{
        const char *end = strrchr(site->detail, ':');
        const char *slash = strrchr(site->detail, '/');
        if (!end || end == site->detail || strtol(end + 1, NULL, 10) <= 0)
                return 0;
        *ret = slash && slash < end ? slash + 1 : site->detail;
        return (size_t)(end + 1 - *ret);
}

static bool find_caller(const struct afz_leak_growth *g, struct afz_leak_line *ret)
{
        const struct afz_site_row *first = &g->sites.row[0];
        const char *file, *frame = afz_site_stack(g->flight, first->track->subject.id);
        size_t file_len = file_of(first->track, &file);
        for (size_t len; file_len > 0 && *frame; frame += len + (frame[len] == '\n')) {
                len = strcspn(frame, "\n");
                if (len <= file_len || strncmp(frame, file, file_len) != 0)
                        continue;
                double bytes = below(g, frame, len);
                if (bytes < rule.below * g->sites.seen_bytes || !is_enough(g, bytes))
                        continue;
                *ret = (struct afz_leak_line){.bytes = bytes, .row = first, .is_below = true};
                snprintf(ret->name, sizeof ret->name, "%.*s", (int)len, frame);
                set_where(first->track, frame, len, &ret->where);
                return true;
        }
        return false;
}

bool afz_leak_line_of(const struct afz_leak_growth *g, struct afz_leak_line *ret)
{
        if (!g->has_sites)
                return false;
        const struct afz_site_row *first = &g->sites.row[0];
        struct afz_leak_line line = {.bytes = first->bytes, .row = first};
        if (first->bytes >= rule.own * g->sites.seen_bytes && is_enough(g, first->bytes)) {
                snprintf(line.name, sizeof line.name, "%s", first->track->name);
                afz_site_where(first->track, &line.where);
        } else if (!find_caller(g, &line)) {
                return false;
        }
        line.share = line.bytes / g->sites.seen_bytes;
        line.is_python = is_python(first->track);
        *ret = line;
        return true;
}
