#include "site_top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sites are looked at once a second; a busy machine takes longer. */
#define LOOK_MS 1500

/* Programs free as they end: an end with so much less than before is that. Interpreters with a
 * framework take their time for it; what falls for longer is the program's own doing. */
#define FREED_SHARE 0.5
#define FREEING_MS  20000
#define FREEING_UP  0.02 /* of the most: what may rise on the way down */

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

enum afz_site_memory afz_site_memory_of(const struct afz_track *site)
{
        int64_t kind;
        bool known = afz_column_last(afz_track_column(site, AFZ_SITE_MEMORY), UINT32_MAX, &kind);
        return known && kind > 0 && kind < AFZ_MEMORIES ? (enum afz_site_memory)kind
                                                        : AFZ_MEMORY_UNKNOWN;
}

/* ---- lines ---- */

struct line {
        struct afz_site_row row;
        double top; /* of row.track alone */
        uint32_t first_ms;
        double aged_bytes, aged_steps_bytes; /* of these the age is known */
        double level[AFZ_SITE_PARTS + 1];
};

struct lines {
        struct line *line;
        size_t n;
};

static bool make_lines(const struct afz_flight *flight, struct lines *ret)
{
        size_t n = 0, at = 0;
        while (next_site(flight, &at))
                n++;
        *ret = (struct lines){0};
        if (n == 0)
                return false;
        ret->line = calloc(n, sizeof *ret->line);
        return ret->line != NULL;
}

bool afz_site_same_line(const struct afz_track *a, const struct afz_track *b)
{
        return strcmp(a->name, b->name) == 0 && strcmp(a->detail, b->detail) == 0;
}

/* The line of a site; an empty one at the end when it has none yet. */
static struct line *line_of(const struct lines *lines, const struct afz_track *track)
{
        size_t i = 0;
        while (i < lines->n && !afz_site_same_line(lines->line[i].row.track, track))
                i++;
        return &lines->line[i];
}

static struct line *add(struct lines *lines, const struct afz_site_row *more)
{
        struct line *line = line_of(lines, more->track);
        if (line == &lines->line[lines->n]) {
                line->first_ms = UINT32_MAX;
                lines->n++;
        }
        if (more->track->first_ms < line->first_ms)
                line->first_ms = more->track->first_ms;
        if (!line->row.track || more->bytes > line->top) {
                line->row.track = more->track;
                line->top = more->bytes;
        }
        line->row.bytes += more->bytes;
        line->row.blocks += more->blocks;
        line->row.early_bytes += more->early_bytes;
        line->row.counted_bytes += more->counted_bytes;
        return line;
}

static int larger_first(const void *a, const void *b)
{
        const struct line *x = a, *y = b;
        return (x->row.bytes < y->row.bytes) - (x->row.bytes > y->row.bytes);
}

/* Site 0 is all the others: it counts, but is no line. */
static bool tell(struct lines *lines, double rest, uint32_t t_ms, struct afz_site_top *ret)
{
        *ret = (struct afz_site_top){.t_ms = t_ms, .seen_bytes = rest};
        qsort(lines->line, lines->n, sizeof *lines->line, larger_first);
        for (size_t i = 0; i < lines->n; i++) {
                if (lines->line[i].row.bytes <= 0)
                        break;
                ret->seen_bytes += lines->line[i].row.bytes;
                if (ret->rows < AFZ_SITE_ROWS)
                        ret->row[ret->rows++] = lines->line[i].row;
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
                        (void)add(&lines, &row);
        }
        any = any && tell(&lines, rest, t_ms, ret);
        free(lines.line);
        return any;
}

/* ---- growth ---- */

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

double afz_site_grown(const struct afz_track *site, uint32_t from_ms, uint32_t to_ms)
{
        return near(site, to_ms) - last_of(site, AFZ_SITE_LIVE, from_ms + 1);
}

/* How old, by the bytes: what is live at several stacks of a line has several ages. */
static void take_age(struct line *line, const struct afz_track *track, uint32_t to_ms)
{
        /* Not a moment later: of what is freed at the end, the oldest stays longest. */
        uint32_t until_ms = to_ms < UINT32_MAX ? to_ms + 1 : to_ms;
        double live = near(track, to_ms);
        double age_ns = last_of(track, AFZ_SITE_AGE, until_ms);
        double steps = last_of(track, AFZ_SITE_AGE_STEPS, until_ms);
        if (age_ns > 0) {
                line->aged_bytes += live;
                line->row.age_ms += live * age_ns / 1e6;
        }
        if (steps > 0) {
                line->aged_steps_bytes += live;
                line->row.age_steps += live * steps;
        }
}

/* In the parts of its own time, if it began in the earlier half: imports come before all steps. */
static void take_levels(struct line *line, const struct afz_track *track, uint32_t from_ms,
                        uint32_t to_ms)
{
        bool late = line->first_ms > from_ms && line->first_ms - from_ms <= (to_ms - from_ms) / 2;
        uint32_t start_ms = late ? line->first_ms : from_ms;
        for (unsigned i = late; i < AFZ_SITE_PARTS; i++) {
                uint64_t t_ms = start_ms + (uint64_t)(to_ms - start_ms) * i / AFZ_SITE_PARTS;
                line->level[i] += last_of(track, AFZ_SITE_LIVE, (uint32_t)t_ms + 1);
        }
        line->level[AFZ_SITE_PARTS] += near(track, to_ms);
}

static unsigned rises_of(const struct line *line)
{
        unsigned rises = 0;
        for (unsigned i = 0; i < AFZ_SITE_PARTS; i++)
                rises += line->level[i + 1] > line->level[i];
        return rises;
}

unsigned afz_site_parts(const struct afz_track *site, uint32_t from_ms, uint32_t to_ms)
{
        struct line line = {.first_ms = site->first_ms};
        if (from_ms >= to_ms)
                return 0;
        take_levels(&line, site, from_ms, to_ms);
        return rises_of(&line);
}

static void settle_line(struct line *line)
{
        struct afz_site_row *row = &line->row;
        row->age_ms = line->aged_bytes > 0 ? row->age_ms / line->aged_bytes : 0;
        row->age_steps = line->aged_steps_bytes > 0 ? row->age_steps / line->aged_steps_bytes : 0;
        row->parts = rises_of(line);
}

bool afz_site_growth(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                     struct afz_site_top *ret)
{
        double rest = 0, memory_bytes[AFZ_MEMORIES] = {0};
        const struct afz_track *track;
        struct lines lines;
        if (from_ms >= to_ms)
                return false;
        bool any = make_lines(flight, &lines);
        for (size_t at = 0; any && (track = next_site(flight, &at));) {
                struct afz_site_row row = {.track = track,
                                           .bytes = afz_site_grown(track, from_ms, to_ms)};
                memory_bytes[afz_site_memory_of(track)] += row.bytes;
                if (track->subject.id == 0) {
                        rest = row.bytes > 0 ? row.bytes : 0;
                        continue;
                }
                take_age(add(&lines, &row), track, to_ms);
        }
        for (size_t at = 0; any && (track = next_site(flight, &at));)
                if (track->subject.id != 0)
                        take_levels(line_of(&lines, track), track, from_ms, to_ms);
        for (size_t i = 0; any && i < lines.n; i++)
                settle_line(&lines.line[i]);
        any = any && tell(&lines, rest, to_ms, ret);
        if (any)
                memcpy(ret->memory_bytes, memory_bytes, sizeof memory_bytes);
        free(lines.line);
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

/* Adds up what was live at each instant, in place; how many instants there are. */
static size_t levels_of(struct move *move, size_t n)
{
        size_t levels = 0;
        double now = 0;
        for (size_t i = 0; i < n; i++) {
                now += move[i].bytes;
                if (i + 1 == n || move[i + 1].t_ms != move[i].t_ms)
                        move[levels++] = (struct move){move[i].t_ms, now};
        }
        return levels;
}

/* From the last one back over all that falls: where that began. */
static size_t fall_begins(const struct move *level, size_t levels)
{
        size_t top = levels - 1;
        for (size_t i = top; i > 0 && level[levels - 1].t_ms - level[i - 1].t_ms <= FREEING_MS;
             i--) {
                if (level[i - 1].bytes < (1 - FREEING_UP) * level[top].bytes)
                        break;
                if (level[i - 1].bytes > level[top].bytes)
                        top = i - 1;
        }
        return top;
}

bool afz_site_end(const struct afz_flight *flight, uint32_t *ret_ms)
{
        size_t n;
        struct move *move = moves_of(flight, &n);
        size_t levels = move ? levels_of(move, n) : 0;
        if (levels > 0) {
                size_t top = fall_begins(move, levels), end = levels - 1;
                bool freed = move[end].bytes < FREED_SHARE * move[top].bytes;
                *ret_ms = move[freed ? top : end].t_ms;
        }
        free(move);
        return levels > 0;
}

/* ---- words ---- */

/* "keep_reading() in server": of a program without lines, its name; a library is not the user's. */
static const char *program_of(const struct afz_track *site)
{
        const char *in = strstr(site->name, "() in ");
        return in && site->note[0] && !strstr(in, ".so") ? in + strlen("() in ") : "";
}

void afz_site_where(const struct afz_track *site, struct afz_where *ret)
{
        const char *colon = strrchr(site->detail, ':');
        long line = colon ? strtol(colon + 1, NULL, 10) : 0;
        const char *file = site->detail, *program = program_of(site);
        size_t n = colon ? (size_t)(colon - file) : 0;
        if (line <= 0 || line > INT32_MAX || n == 0) {
                file = program;
                n = strlen(program);
                line = 0;
        }
        if (n == 0)
                return;
        snprintf(ret->file, sizeof ret->file, "%.*s", (int)n, file);
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
