#include "site_top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sites are looked at once a second; a busy machine takes longer. */
#define LOOK_MS 1500

/* Programs free as they end: an end with so much less than before is that. */
#define FREED_SHARE 0.5

static const struct afz_track *next_site(const struct afz_flight *flight, size_t *at)
{
        return afz_flight_next(flight, AFZ_KIND_SITE, at);
}

static double last_of(const struct afz_track *track, enum afz_metric metric, uint32_t to_ms)
{
        int64_t value;
        return afz_column_last(afz_track_column(track, metric), to_ms, &value) && value > 0
                       ? (double)value
                       : 0;
}

/* ---- lines ---- */

struct lines {
        struct afz_site_row *row;
        double *top; /* of row[i].track alone */
        size_t rows;
};

static bool make_lines(const struct afz_flight *flight, struct lines *ret)
{
        size_t n = 0, at = 0;
        while (next_site(flight, &at))
                n++;
        *ret = (struct lines){0};
        if (n == 0)
                return false;
        ret->row = calloc(n, sizeof *ret->row);
        ret->top = calloc(n, sizeof *ret->top);
        return ret->row && ret->top;
}

static void free_lines(struct lines *lines)
{
        free(lines->row);
        free(lines->top);
}

/* Sites of one line are one; those of the same name in another file are not. */
static bool is_same_line(const struct afz_track *a, const struct afz_track *b)
{
        return strcmp(a->name, b->name) == 0 && strcmp(a->detail, b->detail) == 0;
}

static void add(struct lines *lines, const struct afz_site_row *more)
{
        size_t i = 0;
        while (i < lines->rows && !is_same_line(lines->row[i].track, more->track))
                i++;
        struct afz_site_row *row = &lines->row[i];
        if (i == lines->rows)
                lines->rows++;
        if (!row->track || more->bytes > lines->top[i]) {
                row->track = more->track;
                lines->top[i] = more->bytes;
        }
        row->bytes += more->bytes;
        row->blocks += more->blocks;
        row->early_bytes += more->early_bytes;
        row->counted_bytes += more->counted_bytes;
}

static int larger_first(const void *a, const void *b)
{
        const struct afz_site_row *x = a, *y = b;
        return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Site 0 is all the others: it counts, but is no line. */
static bool tell(struct lines *lines, double rest, uint32_t t_ms, struct afz_site_top *ret)
{
        *ret = (struct afz_site_top){.t_ms = t_ms, .seen_bytes = rest};
        qsort(lines->row, lines->rows, sizeof *lines->row, larger_first);
        for (size_t i = 0; i < lines->rows; i++) {
                if (lines->row[i].bytes <= 0)
                        break;
                ret->seen_bytes += lines->row[i].bytes;
                if (ret->rows < AFZ_SITE_ROWS)
                        ret->row[ret->rows++] = lines->row[i];
        }
        return ret->rows > 0;
}

bool afz_site_top_at(const struct afz_flight *flight, uint32_t t_ms, struct afz_site_top *ret)
{
        uint32_t to_ms = t_ms < UINT32_MAX ? t_ms + 1 : t_ms;
        const struct afz_track *track;
        struct lines lines;
        double rest = 0;
        bool any = make_lines(flight, &lines);
        for (size_t at = 0; any && (track = next_site(flight, &at));) {
                struct afz_site_row row = {
                        .track = track,
                        .bytes = last_of(track, AFZ_SITE_LIVE, to_ms),
                        .blocks = last_of(track, AFZ_SITE_BLOCKS, to_ms),
                        .early_bytes = last_of(track, AFZ_SITE_EARLY, to_ms),
                        .counted_bytes = last_of(track, AFZ_SITE_COUNTED, to_ms),
                };
                if (track->subject.id == 0)
                        rest += row.bytes;
                else
                        add(&lines, &row);
        }
        any = any && tell(&lines, rest, t_ms, ret);
        free_lines(&lines);
        return any;
}

/* A program that ends frees: what it held in the moment before is meant. */
static double near(const struct afz_track *track, uint32_t t_ms)
{
        const struct afz_column *live = afz_track_column(track, AFZ_SITE_LIVE);
        uint32_t from_ms = t_ms > LOOK_MS ? t_ms - LOOK_MS : 0;
        uint32_t to_ms = t_ms < UINT32_MAX - LOOK_MS ? t_ms + LOOK_MS : UINT32_MAX;
        int64_t most;
        double last = last_of(track, AFZ_SITE_LIVE, t_ms);
        if (!afz_column_most(live, from_ms, to_ms, &most) || (double)most < last)
                return last;
        return (double)most;
}

bool afz_site_growth(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                     struct afz_site_top *ret)
{
        const struct afz_track *track;
        struct lines lines;
        double rest = 0;
        bool any = make_lines(flight, &lines);
        for (size_t at = 0; any && (track = next_site(flight, &at));) {
                double before = last_of(track, AFZ_SITE_LIVE, from_ms + 1);
                struct afz_site_row row = {.track = track, .bytes = near(track, to_ms) - before};
                if (track->subject.id != 0)
                        add(&lines, &row);
                else if (row.bytes > 0)
                        rest = row.bytes;
        }
        any = any && tell(&lines, rest, to_ms, ret);
        free_lines(&lines);
        return any;
}

/* ---- when ---- */

struct move {
        uint32_t t_ms;
        double bytes; /* more, or less, from here on */
};

static int earlier_first(const void *a, const void *b)
{
        const struct move *x = a, *y = b;
        return (x->t_ms > y->t_ms) - (x->t_ms < y->t_ms);
}

/* All changes of all sites, by time; the caller's to free. */
static struct move *moves_of(const struct afz_flight *flight, size_t *ret_n)
{
        const struct afz_track *track;
        size_t n = 0, all = 0;
        for (size_t at = 0; (track = next_site(flight, &at));) {
                const struct afz_column *live = afz_track_column(track, AFZ_SITE_LIVE);
                all += live ? live->count : 0;
        }
        struct move *move = all ? malloc(all * sizeof *move) : NULL;
        for (size_t at = 0; move && (track = next_site(flight, &at));) {
                const struct afz_column *live = afz_track_column(track, AFZ_SITE_LIVE);
                double before = 0;
                for (size_t i = 0; live && i < live->count; i++) {
                        double now = (double)live->point[i].most;
                        move[n++] = (struct move){live->point[i].t_ms, now - before};
                        before = now;
                }
        }
        if (move)
                qsort(move, n, sizeof *move, earlier_first);
        *ret_n = n;
        return move;
}

bool afz_site_peak(const struct afz_flight *flight, uint32_t *ret_ms)
{
        size_t n;
        struct move *move = moves_of(flight, &n);
        double now = 0, most = -1;
        for (size_t i = 0; move && i < n; i++) {
                now += move[i].bytes;
                /* All of one instant belong together. */
                if ((i + 1 == n || move[i + 1].t_ms != move[i].t_ms) && now > most) {
                        most = now;
                        *ret_ms = move[i].t_ms;
                }
        }
        free(move);
        return most > 0;
}

bool afz_site_end(const struct afz_flight *flight, uint32_t *ret_ms)
{
        size_t n;
        struct move *move = moves_of(flight, &n);
        double now = 0, before = 0;
        uint32_t end_ms = 0, before_ms = 0;
        for (size_t i = 0; move && i < n; i++) {
                if (move[i].t_ms != end_ms) {
                        before = now;
                        before_ms = end_ms;
                        end_ms = move[i].t_ms;
                }
                now += move[i].bytes;
        }
        free(move);
        if (n > 0)
                *ret_ms = now < FREED_SHARE * before ? before_ms : end_ms;
        return n > 0;
}

/* ---- words ---- */

void afz_site_where(const struct afz_track *site, struct afz_where *ret)
{
        const char *colon = strrchr(site->detail, ':');
        long line = colon ? strtol(colon + 1, NULL, 10) : 0;
        if (!colon || colon == site->detail || line <= 0 || line > INT32_MAX)
                return;
        snprintf(ret->file, sizeof ret->file, "%.*s", (int)(colon - site->detail), site->detail);
        ret->line = (int32_t)line;
        snprintf(ret->function, sizeof ret->function, "%s", site->note);
}

static const char *said_of(const struct afz_flight *flight, uint64_t id)
{
        const char *text = "";
        for (size_t i = 0; i < flight->marks; i++)
                if (flight->mark[i].kind == AFZ_MARK_SITE && (uint64_t)flight->mark[i].code == id)
                        text = flight->mark[i].text;
        return text;
}

const char *afz_site_stack(const struct afz_flight *flight, uint64_t id)
{
        return id ? said_of(flight, id) : "";
}

const char *afz_site_probe(const struct afz_flight *flight)
{
        return said_of(flight, 0);
}
