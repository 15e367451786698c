/* What each line of the program held over time: the sites of one line added up, the largest lines
 * each for itself and all others together. A site's figure holds until it is told again. */
#include <stdlib.h>
#include <string.h>

#include "count_of.h"
#include "map.h"
#include "report_parts.h"

static const char *const paint[] = {"k1", "k5", "k3", "k6", "k8", "k2", "k4", "k7"};
enum { LINES = sizeof paint / sizeof paint[0] };

/* A line that never held so much of what all held is left to the others. */
static const double least_share = 0.01;

/* From here on, a line holds so much more, or less. */
struct move {
        uint32_t t_ms, line;
        double bytes;
};

struct lines {
        size_t lines, moves; /* line 0 is what is in no line */
        const struct afz_track **track;
        double *now, *most;
        struct move *move; /* by time */
        double all_most;
};

static uint64_t key_of(const struct afz_track *site)
{
        uint64_t h = UINT64_C(14695981039346656037);
        for (const char *c = site->name; *c; c++)
                h = (h ^ (unsigned char)*c) * UINT64_C(1099511628211);
        h *= UINT64_C(1099511628211); /* where the one ends and the other begins */
        for (const char *c = site->detail; *c; c++)
                h = (h ^ (unsigned char)*c) * UINT64_C(1099511628211);
        return h;
}

static uint32_t line_of(struct lines *all, struct afz_map *known, const struct afz_track *site)
{
        uint64_t line = all->lines;
        if (site->subject.id == 0)
                return 0;
        if (afz_map_get(known, key_of(site), &line))
                return (uint32_t)line;
        (void)afz_map_put(known, key_of(site), line);
        all->track[all->lines++] = site;
        return (uint32_t)line;
}

static int by_time(const void *a, const void *b)
{
        const struct move *x = a, *y = b;
        return (x->t_ms > y->t_ms) - (x->t_ms < y->t_ms);
}

static void add_moves(struct lines *all, struct afz_map *known, const struct afz_track *site)
{
        const struct afz_column *live = afz_track_column(site, AFZ_SITE_LIVE);
        uint32_t line = line_of(all, known, site);
        double before = 0;
        for (size_t i = 0; live && i < live->count; i++) {
                double now = live->point[i].mean > 0 ? (double)live->point[i].mean : 0;
                all->move[all->moves++] = (struct move){live->point[i].t_ms, line, now - before};
                before = now;
        }
}

/* The most that each line, and all of them together, held. */
static void find_most(struct lines *all)
{
        double sum = 0;
        for (size_t i = 0; i < all->moves; i++) {
                const struct move *m = &all->move[i];
                all->now[m->line] += m->bytes;
                sum += m->bytes;
                if (all->now[m->line] > all->most[m->line])
                        all->most[m->line] = all->now[m->line];
                if (sum > all->all_most)
                        all->all_most = sum;
        }
        memset(all->now, 0, all->lines * sizeof *all->now);
}

static bool make_room(const struct afz_flight *flight, struct lines *ret, struct afz_map **ret_map)
{
        const struct afz_track *site;
        size_t sites = 0, moves = 0;
        for (size_t at = 0; (site = afz_flight_next(flight, AFZ_KIND_SITE, &at)); sites++) {
                const struct afz_column *live = afz_track_column(site, AFZ_SITE_LIVE);
                moves += live ? live->count : 0;
        }
        if (moves == 0)
                return false;
        ret->track = calloc(sites + 1, sizeof *ret->track);
        ret->now = calloc(sites + 1, sizeof *ret->now);
        ret->most = calloc(sites + 1, sizeof *ret->most);
        ret->move = calloc(moves, sizeof *ret->move);
        return ret->track && ret->now && ret->most && ret->move &&
               afz_map_new(sites + 1, ret_map) == 0;
}

static void free_lines(struct lines *all)
{
        free(all->track);
        free(all->now);
        free(all->most);
        free(all->move);
}

/* The next smaller one of the lines; 0: there is none that counts. */
static size_t next_line(const struct lines *all, size_t before)
{
        size_t best = 0;
        for (size_t i = 1; i < all->lines; i++) {
                if (before && (all->most[i] > all->most[before] ||
                               (all->most[i] == all->most[before] && i <= before)))
                        continue;
                if (all->most[i] >= least_share * all->all_most && all->most[i] > 0 &&
                    (best == 0 || all->most[i] > all->most[best]))
                        best = i;
        }
        return best;
}

/* ---- drawing them ---- */

/* A line on its way through time: what it holds, and since when. */
struct held {
        struct afz_report_series *series;
        double bytes;
        uint32_t since_ms;
};

static void hold(struct held *h, uint32_t t_ms, double bytes)
{
        if (bytes == h->bytes || !h->series)
                return;
        if (t_ms > h->since_ms)
                afz_report_line_span(&h->series->line, h->since_ms, t_ms, h->bytes, h->bytes,
                                     h->bytes);
        h->bytes = bytes;
        h->since_ms = t_ms;
}

/* place[line]: which of the series shows it. */
static void draw(struct lines *all, const uint8_t *place, struct held *held, unsigned count,
                 uint32_t end_ms)
{
        double sum[LINES + 1] = {0};
        for (size_t i = 0; i < all->moves; i++) {
                const struct move *m = &all->move[i];
                sum[place[m->line]] += m->bytes;
                if (i + 1 < all->moves && all->move[i + 1].t_ms == m->t_ms)
                        continue; /* all of one instant belong together */
                for (unsigned s = 0; s < count; s++)
                        hold(&held[s], m->t_ms, sum[s] > 0.5 ? sum[s] : 0);
        }
        for (unsigned s = 0; s < count; s++)
                hold(&held[s], end_ms, -1);
}

static struct afz_report_series *add_series(struct afz_report_panel *panel, const char *name,
                                            const char *colour, uint32_t end_ms)
{
        struct afz_report_series *s = afz_report_series_add(panel, name, colour, end_ms);
        if (s)
                s->stacked = true;
        return s;
}

static void add_lines(struct afz_report_panel *panel, struct lines *all, uint32_t end_ms)
{
        struct held held[LINES + 1] = {0};
        unsigned count = 0;
        uint8_t *place = malloc(all->lines);
        if (!place)
                return;
        size_t i = next_line(all, 0);
        for (; i && count < LINES; i = next_line(all, i))
                count++;
        memset(place, (int)count, all->lines);
        count = 0;
        for (i = next_line(all, 0); i && count < LINES; i = next_line(all, i)) {
                held[count].series = add_series(panel, all->track[i]->name, paint[count], end_ms);
                place[i] = (uint8_t)count++;
        }
        held[count++].series = add_series(panel, "everywhere else", "k9", end_ms);
        draw(all, place, held, count, end_ms);
        if (held[count - 1].series && held[count - 1].series->line.peak <= 0)
                afz_report_series_drop(panel);
        free(place);
}

void afz_report_site_lines(struct afz_report_panel *panel, const struct afz_report *report,
                           uint32_t end_ms)
{
        struct lines all = {.lines = 1};
        struct afz_map *known = NULL;
        const struct afz_track *site;
        if (make_room(report->flight, &all, &known)) {
                for (size_t at = 0; (site = afz_flight_next(report->flight, AFZ_KIND_SITE, &at));)
                        add_moves(&all, known, site);
                qsort(all.move, all.moves, sizeof *all.move, by_time);
                find_most(&all);
                if (all.all_most > 0)
                        add_lines(panel, &all, end_ms);
        }
        afz_map_free(known);
        free_lines(&all);
        const struct afz_column *need = afz_flight_need(report->flight);
        struct afz_report_series *s =
                panel->count && need && need->count
                        ? afz_report_series_add(panel, "needed by the job", "c9", end_ms)
                        : NULL;
        if (s)
                afz_report_line_gauge(&s->line, need, 0, 1);
}
