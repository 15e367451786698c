#include "flight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more, by doubling. */
static int make_room(void **array, size_t count, size_t *cap, size_t size)
{
        if (count < *cap)
                return 0;
        size_t more = *cap ? *cap * 2 : 8;
        void *grown = reallocarray(*array, more, size);
        if (!grown)
                return -ENOMEM;
        *array = grown;
        *cap = more;
        return 0;
}

/* Replaces a text; "" and NULL leave what is known. */
static int set_text(char **text, const char *with)
{
        if (*text && (!with || !with[0] || strcmp(*text, with) == 0))
                return 0;
        char *copy = strdup(with ? with : "");
        if (!copy)
                return -ENOMEM;
        free(*text);
        *text = copy;
        return 0;
}

void afz_flight_init(struct afz_flight *flight)
{
        memset(flight, 0, sizeof *flight);
}

void afz_flight_done(struct afz_flight *flight)
{
        for (size_t i = 0; i < flight->tracks; i++) {
                struct afz_track *track = &flight->track[i];
                for (size_t c = 0; c < track->columns; c++)
                        free(track->column[c].point);
                free(track->column);
                free(track->name);
                free(track->detail);
                free(track->note);
        }
        for (size_t i = 0; i < flight->marks; i++)
                free(flight->mark[i].text);
        free(flight->track);
        free(flight->mark);
        free(flight->head.cmd);
        free(flight->head.cwd);
        free(flight->head.git);
        afz_flight_init(flight);
}

struct afz_track *afz_flight_track(struct afz_flight *flight, const struct afz_subject *subject,
                                   const char *name, const char *detail, const char *note)
{
        struct afz_track *track = NULL;
        /* The newest first: a recording speaks of the same few again and again. */
        for (size_t i = flight->tracks; i-- > 0 && !track;)
                if (afz_subject_same(&flight->track[i].subject, subject))
                        track = &flight->track[i];
        if (!track) {
                if (make_room((void **)&flight->track, flight->tracks, &flight->tracks_cap,
                              sizeof *flight->track) < 0)
                        return NULL;
                track = &flight->track[flight->tracks++];
                *track = (struct afz_track){.subject = *subject, .first_ms = UINT32_MAX};
        }
        if (set_text(&track->name, name) < 0 || set_text(&track->detail, detail) < 0 ||
            set_text(&track->note, note) < 0)
                return NULL;
        return track;
}

static struct afz_column *column_of(struct afz_track *track, enum afz_metric metric)
{
        for (size_t i = 0; i < track->columns; i++)
                if (track->column[i].metric == metric)
                        return &track->column[i];
        if (make_room((void **)&track->column, track->columns, &track->cap, sizeof *track->column) <
            0)
                return NULL;
        struct afz_column *column = &track->column[track->columns++];
        *column = (struct afz_column){.metric = metric};
        return column;
}

int afz_flight_add(struct afz_flight *flight, struct afz_track *track, enum afz_metric metric,
                   const struct afz_point *point)
{
        struct afz_column *column = column_of(track, metric);
        if (!column)
                return -ENOMEM;
        if (column->count && point->t_ms < column->point[column->count - 1].t_ms)
                return -EINVAL;
        int r = make_room((void **)&column->point, column->count, &column->cap,
                          sizeof *column->point);
        if (r < 0)
                return r;
        column->point[column->count++] = *point;
        uint32_t end = point->t_ms + point->span_ms;
        if (point->t_ms < track->first_ms)
                track->first_ms = point->t_ms;
        if (end > track->last_ms)
                track->last_ms = end;
        if (end > flight->end_ms)
                flight->end_ms = end;
        return 0;
}

int afz_flight_mark(struct afz_flight *flight, uint32_t t_ms, enum afz_mark_kind kind, int64_t code,
                    const char *text, size_t text_len)
{
        int r = make_room((void **)&flight->mark, flight->marks, &flight->marks_cap,
                          sizeof *flight->mark);
        char *copy = strndup(text ? text : "", text ? text_len : 0);
        if (r < 0 || !copy) {
                free(copy);
                return -ENOMEM;
        }
        /* They come nearly in order: guard and scout each tell their own. */
        size_t at = flight->marks++;
        for (; at > 0 && flight->mark[at - 1].t_ms > t_ms; at--)
                flight->mark[at] = flight->mark[at - 1];
        flight->mark[at] =
                (struct afz_mark){.t_ms = t_ms, .kind = kind, .code = code, .text = copy};
        if (t_ms > flight->end_ms)
                flight->end_ms = t_ms;
        return 0;
}

const struct afz_track *afz_flight_next(const struct afz_flight *flight, enum afz_kind kind,
                                        size_t *cursor)
{
        while (*cursor < flight->tracks) {
                const struct afz_track *track = &flight->track[(*cursor)++];
                if (track->subject.kind == kind)
                        return track;
        }
        return NULL;
}

const struct afz_track *afz_flight_one(const struct afz_flight *flight, enum afz_kind kind)
{
        size_t cursor = 0;
        return afz_flight_next(flight, kind, &cursor);
}

const struct afz_track *afz_flight_find(const struct afz_flight *flight, enum afz_kind kind,
                                        uint64_t id)
{
        const struct afz_track *track;
        for (size_t cursor = 0; (track = afz_flight_next(flight, kind, &cursor));)
                if (track->subject.id == id)
                        return track;
        return NULL;
}

const struct afz_column *afz_track_column(const struct afz_track *track, enum afz_metric metric)
{
        for (size_t i = 0; track && i < track->columns; i++)
                if (track->column[i].metric == metric)
                        return &track->column[i];
        return NULL;
}

const struct afz_column *afz_flight_need(const struct afz_flight *flight)
{
        const struct afz_column *column =
                afz_track_column(afz_flight_one(flight, AFZ_KIND_HOLD), AFZ_HOLD_NEED);
        return column ? column
                      : afz_track_column(afz_flight_one(flight, AFZ_KIND_JOB), AFZ_JOB_NEED);
}

size_t afz_column_at(const struct afz_column *column, uint32_t t_ms)
{
        size_t low = 0, high = column->count;
        while (low < high) {
                size_t mid = low + (high - low) / 2;
                if (column->point[mid].t_ms < t_ms)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

bool afz_column_most(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms,
                     int64_t *ret)
{
        bool any = false;
        for (size_t i = column ? afz_column_at(column, from_ms) : 0;
             column && i < column->count && column->point[i].t_ms < to_ms; i++, any = true)
                if (!any || column->point[i].most > *ret)
                        *ret = column->point[i].most;
        return any;
}

bool afz_column_least(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms,
                      int64_t *ret)
{
        bool any = false;
        for (size_t i = column ? afz_column_at(column, from_ms) : 0;
             column && i < column->count && column->point[i].t_ms < to_ms; i++, any = true)
                if (!any || column->point[i].least < *ret)
                        *ret = column->point[i].least;
        return any;
}

bool afz_column_mean(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms, double *ret)
{
        double sum = 0, weight = 0;
        for (size_t i = column ? afz_column_at(column, from_ms) : 0;
             column && i < column->count && column->point[i].t_ms < to_ms; i++) {
                const struct afz_point *p = &column->point[i];
                double w =
                        p->span_ms ? p->span_ms : 100; /* a single reading: a tenth of a second */
                sum += (double)p->mean * w;
                weight += w;
        }
        if (weight <= 0)
                return false;
        *ret = sum / weight;
        return true;
}

bool afz_column_last(const struct afz_column *column, uint32_t to_ms, int64_t *ret)
{
        size_t at = column ? afz_column_at(column, to_ms) : 0;
        if (at == 0)
                return false;
        *ret = column->point[at - 1].mean;
        return true;
}

bool afz_column_rate(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms, double *ret)
{
        size_t first = column ? afz_column_at(column, from_ms) : 0;
        size_t end = column ? afz_column_at(column, to_ms) : 0;
        if (end < first + 2)
                return false;
        const struct afz_point *a = &column->point[first], *b = &column->point[end - 1];
        double ms = (double)(b->t_ms + b->span_ms) - (double)(a->t_ms + a->span_ms);
        if (ms <= 0 || b->mean < a->mean)
                return false;
        *ret = (double)(b->mean - a->mean) * 1000 / ms;
        return true;
}
