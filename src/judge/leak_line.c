#include "leak_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "site_use.h"
#include "step_clock.h"

static const struct {
        double own;   /* of all lines' growth: what one must have */
        double below; /* the same with all that it calls, or with the others of its function */
        double one;   /* and then by itself, to stand for them */
        double need;  /* of the job's growth, less what malloc holds: what must be seen of it */
        double least; /* of the job's growth in any case */
        double beside_bytes;   /* beside a pool, or between holes: growth that is no chance */
        unsigned beside_parts; /* of AFZ_SITE_PARTS: in so many it must rise, */
        double beside_age;     /* and be so old on the mean, of the time looked at */
        double shared;         /* of what was there when workers began, less code */
        double small;          /* of what a line holds: at least so much in small blocks */
        double asked;          /* of a pool's growth: what came when one line asked for memory, */
        double pieces;         /* in so many pieces: a few may be chance */
} rule = {
        .own = 0.4, /* the largest part, and more than one of three that share evenly; */
        .below = 0.6,
        .one = 0.2,
        .need = 0.25, /* and what no line is known of must not be nearly all */
        .least = 0.08,
        .beside_bytes = 3 << 20, /* three samples and more of the usual mean */
        .beside_parts = 3,       /* a few MB are a few samples; */
        .beside_age = 0.15,      /* what is kept evenly is half as old */
        .shared = 0.4,
        .small = 0.5,
        .asked = 0.6,
        .pieces = 4,
};

/* What is known to lie unused between blocks is nobody's line. */
static bool is_enough(const struct afz_leak_growth *g, double bytes)
{
        double used = g->bytes - afz_leak_slack(g);
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

/* ---- several lines of one function ---- */

/* Lines that share the growth evenly, as the columns of a table: the largest stands for them. */
static bool find_function(const struct afz_leak_growth *g, struct afz_leak_line *ret)
{
        const struct afz_site_row *first = &g->sites.row[0];
        const char *file, *other;
        size_t n = file_of(first->track, &file);
        double bytes = 0;
        if (n == 0 || !first->track->note[0] || first->bytes < rule.one * g->sites.seen_bytes)
                return false;
        for (unsigned i = 0; i < g->sites.rows; i++) {
                const struct afz_track *track = g->sites.row[i].track;
                if (strcmp(track->note, first->track->note) == 0 && file_of(track, &other) == n &&
                    strncmp(track->detail, first->track->detail,
                            (size_t)(file - first->track->detail) + n) == 0)
                        bytes += g->sites.row[i].bytes;
        }
        if (bytes < rule.below * g->sites.seen_bytes || !is_enough(g, bytes))
                return false;
        *ret = (struct afz_leak_line){.bytes = bytes, .row = first, .in_function = true};
        return true;
}

/* ---- a pool ---- */

/* Some of it stays each time: it is no rest of the last step. */
static bool stays(const struct afz_site_row *row, uint32_t from_ms, uint32_t to_ms)
{
        return row->parts >= rule.beside_parts &&
               (row->age_ms <= 0 || row->age_ms > rule.beside_age * (double)(to_ms - from_ms));
}

/* What a site holds of the steps; where none are told, what it grew by. */
static double kept_at(const struct afz_leak_growth *g, const struct afz_track *site)
{
        int64_t live = 0, early = 0;
        if (g->steps <= 0)
                return afz_site_grown(site, g->from_ms, g->to_ms);
        (void)afz_column_last(afz_track_column(site, AFZ_SITE_LIVE), g->to_ms + 1, &live);
        (void)afz_column_last(afz_track_column(site, AFZ_SITE_EARLY), g->to_ms + 1, &early);
        return (double)live - (double)early;
}

/* Small ones do not come from the pool. */
static bool is_tensor(const struct afz_flight *flight, const struct afz_track *site)
{
        return strstr(afz_site_stack(flight, site->subject.id), "tensorflow::Tensor::") != NULL;
}

static double beside_pool(const struct afz_leak_growth *g, const struct afz_track *line,
                          bool tensors)
{
        const struct afz_track *site;
        double sum = 0;
        for (size_t at = 0; (site = afz_flight_next(g->flight, AFZ_KIND_SITE, &at));)
                if (afz_site_same_line(site, line) && !afz_site_is_pool(g->flight, site) &&
                    (!tensors || is_tensor(g->flight, site)))
                        sum += kept_at(g, site);
        return sum > 0 ? sum : 0;
}

static bool find_most_beside(const struct afz_leak_growth *g, bool tensors,
                             struct afz_leak_line *ret)
{
        const struct afz_site_row *top = NULL;
        double most = 0, all = 0;
        for (unsigned i = 0; i < g->sites.rows; i++) {
                const struct afz_site_row *row = &g->sites.row[i];
                double bytes = beside_pool(g, row->track, tensors);
                all += bytes;
                if (bytes > most && stays(row, g->from_ms, g->to_ms)) {
                        most = bytes;
                        top = row;
                }
        }
        if (!top || most < rule.beside_bytes || most < rule.own * all)
                return false;
        *ret = (struct afz_leak_line){.bytes = g->sites.row[0].bytes, .row = top, .by_pool = true};
        return true;
}

/* By how much the pool grew when this line asked; NULL: any. */
static double pool_grown(const struct afz_leak_growth *g, const struct afz_track *line,
                         double *ret_pieces)
{
        const struct afz_track *site;
        double sum = 0;
        *ret_pieces = 0;
        for (size_t at = 0; (site = afz_flight_next(g->flight, AFZ_KIND_SITE, &at));) {
                double bytes = afz_site_grown(site, g->from_ms, g->to_ms);
                int64_t blocks = 0;
                if (bytes <= 0 || (line && !afz_site_same_line(site, line)) ||
                    !afz_site_is_pool(g->flight, site))
                        continue;
                (void)afz_column_last(afz_track_column(site, AFZ_SITE_BLOCKS), g->to_ms + 1,
                                      &blocks);
                sum += bytes;
                *ret_pieces += (double)blocks;
        }
        return sum;
}

/* What a step gives back serves the next: it is who keeps that finds the pool empty, and most often
 * asks for more. */
static bool find_asker(const struct afz_leak_growth *g, struct afz_leak_line *ret)
{
        double pieces, all = pool_grown(g, NULL, &pieces);
        for (unsigned i = 0; i < g->sites.rows; i++) {
                const struct afz_site_row *row = &g->sites.row[i];
                struct afz_where where = {0};
                double bytes = pool_grown(g, row->track, &pieces);
                afz_site_where(row->track, &where);
                if (where.line <= 0 || bytes < rule.asked * all || pieces < rule.pieces)
                        continue;
                *ret = (struct afz_leak_line){
                        .bytes = bytes, .row = row, .by_pool = true, .asked = true};
                return true;
        }
        return false;
}

/* Who keeps large tensors keeps small ones, too, which are not in the pool: the line that keeps
 * most of those. Else who asked for it; else the line that keeps most objects, as a tensor has some
 * that are kept with it. */
static bool find_beside(const struct afz_leak_growth *g, struct afz_leak_line *ret)
{
        return find_most_beside(g, true, ret) || find_asker(g, ret) ||
               find_most_beside(g, false, ret);
}

/* ---- lines that did not grow ---- */

bool afz_leak_shared_line(const struct afz_leak_growth *g, struct afz_site_row *ret)
{
        const struct afz_track *track;
        uint32_t began_ms = UINT32_MAX;
        struct afz_site_top top;
        for (size_t at = 0; (track = afz_flight_next(g->flight, AFZ_KIND_PROC, &at));)
                if (afz_leak_role_of(track) == AFZ_ROLE_WORKER && track->first_ms < began_ms)
                        began_ms = track->first_ms;
        /* Sites are looked at once a second: what was there may be told a little later. */
        uint32_t t_ms = g->from_ms > began_ms ? g->from_ms : began_ms;
        if (began_ms == UINT32_MAX || !afz_site_top_at(g->flight, t_ms, &top))
                return false;
        double code = afz_site_code_bytes(g->flight, &top);
        for (unsigned i = 0; i < top.rows; i++) {
                const struct afz_site_row *row = &top.row[i];
                if (afz_site_use_of(g->flight, row->track) == AFZ_USE_IMPORT)
                        continue;
                *ret = *row;
                return row->bytes >= rule.shared * (top.seen_bytes - code);
        }
        return false;
}

/* What it holds, less what lies in blocks of their own. */
static double in_small_blocks(const struct afz_track *site, uint32_t to_ms)
{
        int64_t live = 0, counted = 0;
        (void)afz_column_last(afz_track_column(site, AFZ_SITE_LIVE), to_ms, &live);
        (void)afz_column_last(afz_track_column(site, AFZ_SITE_COUNTED), to_ms, &counted);
        return live > 0 ? ((double)live - (double)counted) / (double)live : 0;
}

bool afz_leak_pin_line(const struct afz_leak_growth *g, struct afz_site_row *ret)
{
        const struct afz_column *steps = afz_step_column(g->flight, g->from_ms, g->to_ms);
        uint32_t from_ms = g->from_ms, first_ms;
        struct afz_site_top top;
        /* What was loaded or imported before lies at the bottom of the heap. */
        if (afz_step_first(steps, &first_ms) && first_ms > from_ms)
                from_ms = first_ms;
        if (from_ms >= g->to_ms || !afz_site_growth(g->flight, from_ms, g->to_ms, &top))
                return false;
        for (unsigned i = 0; i < top.rows; i++) {
                const struct afz_track *site = top.row[i].track;
                enum afz_site_memory memory = afz_site_memory_of(site);
                if (top.row[i].parts < rule.beside_parts || top.row[i].bytes < rule.beside_bytes ||
                    (memory != AFZ_MEMORY_HEAP && memory != AFZ_MEMORY_UNKNOWN) ||
                    in_small_blocks(site, g->to_ms) < rule.small ||
                    afz_site_use_of(g->flight, site) == AFZ_USE_IMPORT)
                        continue;
                *ret = top.row[i];
                return true;
        }
        return false;
}

/* ---- the line ---- */

static void name_row(struct afz_leak_line *line)
{
        snprintf(line->name, sizeof line->name, "%s", line->row->track->name);
        afz_site_where(line->row->track, &line->where);
}

bool afz_leak_line_of(const struct afz_leak_growth *g, struct afz_leak_line *ret)
{
        if (!g->has_sites)
                return false;
        const struct afz_site_row *first = &g->sites.row[0];
        struct afz_leak_line line = {.bytes = first->bytes, .row = first};
        if (first->bytes >= rule.own * g->sites.seen_bytes && is_enough(g, first->bytes)) {
                if (afz_site_is_pool(g->flight, first->track))
                        (void)find_beside(g, &line);
                name_row(&line);
        } else if (find_function(g, &line)) {
                name_row(&line);
        } else if (!find_caller(g, &line)) {
                return false;
        }
        line.share = line.bytes / g->sites.seen_bytes;
        line.is_python = is_python(line.row->track);
        *ret = line;
        return true;
}
