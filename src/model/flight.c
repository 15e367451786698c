#include "flight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So far back a mark is put into its place at once. A file that was made to deceive could else have
 * each before all others, and be read for hours. */
enum { MARKS_BACK = 256 };

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
        free(flight->slot);
        free(flight->mark);
        free(flight->head.cmd);
        free(flight->head.cwd);
        free(flight->head.git);
        afz_flight_init(flight);
}

static size_t slot_of(const struct afz_flight *flight, const struct afz_subject *subject)
{
        uint64_t h = (subject->id + 1) * UINT64_C(0x9e3779b97f4a7c15);
        h = (h ^ h >> 29 ^ subject->start) * UINT64_C(0xbf58476d1ce4e5b9);
        h = (h ^ h >> 32 ^ (uint64_t)subject->kind) * UINT64_C(0x94d049bb133111eb);
        size_t at = (size_t)(h >> 32) & (flight->slots - 1);
        /* Slots hold the number of a track and one more; never all of them are in use. */
        while (flight->slot[at] &&
               !afz_subject_same(&flight->track[flight->slot[at] - 1].subject, subject))
                at = (at + 1) & (flight->slots - 1);
        return at;
}

/* Twice as many slots as tracks, at least. */
static int make_slots(struct afz_flight *flight)
{
        if (flight->slots >= 2 * (flight->tracks + 1))
                return 0;
        size_t slots = flight->slots ? flight->slots * 2 : 64;
        uint32_t *slot = calloc(slots, sizeof *slot);
        if (!slot)
                return -ENOMEM;
        free(flight->slot);
        flight->slot = slot;
        flight->slots = slots;
        for (size_t i = 0; i < flight->tracks; i++)
                slot[slot_of(flight, &flight->track[i].subject)] = (uint32_t)i + 1;
        return 0;
}

/* The newest track behind those of its kind; one of a kind that does not exist is met by who walks
 * them all. */
static void chain(struct afz_flight *flight, enum afz_kind kind)
{
        if ((unsigned)kind >= AFZ_KIND_COUNT)
                return;
        uint32_t number = (uint32_t)flight->tracks, last = flight->last[kind];
        *(last ? &flight->track[last - 1].next : &flight->first[kind]) = number;
        flight->last[kind] = number;
}

static struct afz_track *new_track(struct afz_flight *flight, const struct afz_subject *subject,
                                   size_t slot)
{
        if (make_room((void **)&flight->track, flight->tracks, &flight->tracks_cap,
                      sizeof *flight->track) < 0)
                return NULL;
        struct afz_track track = {.subject = *subject, .first_ms = UINT32_MAX};
        track.name = strdup("");
        track.detail = strdup("");
        track.note = strdup("");
        if (!track.name || !track.detail || !track.note) {
                free(track.name);
                free(track.detail);
                free(track.note);
                return NULL;
        }
        flight->track[flight->tracks++] = track;
        flight->slot[slot] = (uint32_t)flight->tracks;
        chain(flight, subject->kind);
        return &flight->track[flight->tracks - 1];
}

struct afz_track *afz_flight_track(struct afz_flight *flight, const struct afz_subject *subject,
                                   const char *name, const char *detail, const char *note)
{
        if (make_slots(flight) < 0)
                return NULL;
        size_t slot = slot_of(flight, subject);
        struct afz_track *track = flight->slot[slot] ? &flight->track[flight->slot[slot] - 1]
                                                     : new_track(flight, subject, slot);
        if (!track || set_text(&track->name, name) < 0 || set_text(&track->detail, detail) < 0 ||
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

void afz_flight_seen(struct afz_flight *flight, struct afz_track *track, uint32_t from_ms,
                     uint32_t to_ms)
{
        if (from_ms < track->first_ms)
                track->first_ms = from_ms;
        if (to_ms > track->last_ms)
                track->last_ms = to_ms;
        if (to_ms > flight->end_ms)
                flight->end_ms = to_ms;
}

static int put_point(struct afz_flight *flight, struct afz_track *track, struct afz_column *column,
                     const struct afz_point *point)
{
        int r = make_room((void **)&column->point, column->count, &column->cap,
                          sizeof *column->point);
        if (r < 0)
                return r;
        column->point[column->count++] = *point;
        uint32_t end = point->t_ms + point->span_ms;
        afz_flight_seen(flight, track, point->t_ms, end < point->t_ms ? UINT32_MAX : end);
        return 0;
}

int afz_flight_add(struct afz_flight *flight, struct afz_track *track, enum afz_metric metric,
                   const struct afz_point *point)
{
        struct afz_column *column = column_of(track, metric);
        if (!column)
                return -ENOMEM;
        if (column->count && point->t_ms < column->point[column->count - 1].t_ms)
                return -EINVAL;
        return put_point(flight, track, column, point);
}

int afz_flight_put(struct afz_flight *flight, struct afz_track *track, enum afz_metric metric,
                   const struct afz_point *point)
{
        struct afz_column *column = column_of(track, metric);
        return column ? put_point(flight, track, column, point) : -ENOMEM;
}

struct afz_column *afz_flight_column(struct afz_track *track, enum afz_metric metric, size_t more)
{
        struct afz_column *column = column_of(track, metric);
        if (!column || more <= column->cap - column->count)
                return column;
        size_t cap = column->count + more;
        if (cap < 2 * column->cap)
                cap = 2 * column->cap;
        void *grown = reallocarray(column->point, cap, sizeof *column->point);
        if (!grown)
                return NULL;
        column->point = grown;
        column->cap = cap;
        return column;
}

/* Merges two neighbouring runs that are each in order. */
static void merge(const struct afz_point *a, size_t n, size_t m, struct afz_point *to)
{
        const struct afz_point *b = a + n, *a_end = b, *b_end = b + m;
        while (a < a_end && b < b_end)
                *to++ = b->t_ms < a->t_ms ? *b++ : *a++;
        while (a < a_end)
                *to++ = *a++;
        while (b < b_end)
                *to++ = *b++;
}

/* From the bottom up, and stable: what was told later stays later within a millisecond. */
static int sort_points(struct afz_column *column)
{
        struct afz_point *from = column->point, *to = malloc(column->count * sizeof *to);
        if (!to)
                return -ENOMEM;
        size_t count = column->count;
        for (size_t width = 1; width < count; width *= 2) {
                for (size_t at = 0; at < count; at += 2 * width) {
                        size_t n = count - at < width ? count - at : width;
                        size_t m = count - at - n < width ? count - at - n : width;
                        merge(from + at, n, m, to + at);
                }
                struct afz_point *swap = from;
                from = to;
                to = swap;
        }
        column->point = from;
        column->cap = count;
        free(to);
        return 0;
}

static int settle_column(struct afz_column *column)
{
        for (size_t i = 1; i < column->count; i++)
                if (column->point[i].t_ms < column->point[i - 1].t_ms)
                        return sort_points(column);
        return 0;
}

static int compare_marks(const void *a, const void *b)
{
        const struct afz_mark *x = a, *y = b;
        if (x->t_ms != y->t_ms)
                return x->t_ms < y->t_ms ? -1 : 1;
        if (x->kind != y->kind)
                return x->kind < y->kind ? -1 : 1;
        return (x->code > y->code) - (x->code < y->code);
}

int afz_flight_settle(struct afz_flight *flight)
{
        if (flight->marks_mixed)
                qsort(flight->mark, flight->marks, sizeof *flight->mark, compare_marks);
        flight->marks_mixed = false;
        for (size_t i = 0; i < flight->tracks; i++)
                for (size_t c = 0; c < flight->track[i].columns; c++) {
                        int r = settle_column(&flight->track[i].column[c]);
                        if (r < 0)
                                return r;
                }
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
        size_t at = flight->marks++, furthest = at > MARKS_BACK ? at - MARKS_BACK : 0;
        while (at > furthest && flight->mark[at - 1].t_ms > t_ms)
                at--;
        if (at > 0 && flight->mark[at - 1].t_ms > t_ms) {
                flight->marks_mixed = true;
                at = flight->marks - 1;
        }
        memmove(&flight->mark[at + 1], &flight->mark[at],
                (flight->marks - 1 - at) * sizeof *flight->mark);
        flight->mark[at] =
                (struct afz_mark){.t_ms = t_ms, .kind = kind, .code = code, .text = copy};
        if (t_ms > flight->end_ms)
                flight->end_ms = t_ms;
        return 0;
}

bool afz_flight_is_own_cgroup(const struct afz_flight *flight, const struct afz_track *cgroup)
{
        char mine[64];
        snprintf(mine, sizeof mine, "antifreeze-%s", flight->head.run);
        return strstr(cgroup->name, mine) != NULL;
}

const struct afz_track *afz_flight_next(const struct afz_flight *flight, enum afz_kind kind,
                                        size_t *cursor)
{
        if (*cursor > flight->tracks || (unsigned)kind >= AFZ_KIND_COUNT)
                return NULL;
        uint32_t next = *cursor ? flight->track[*cursor - 1].next : flight->first[kind];
        *cursor = next ? next : SIZE_MAX;
        return next ? &flight->track[next - 1] : NULL;
}

bool afz_mark_is_picture(const struct afz_mark *mark)
{
        return mark->kind == AFZ_MARK_STACK &&
               strncmp(mark->text, AFZ_STACK_FROZEN, strlen(AFZ_STACK_FROZEN)) == 0;
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

const struct afz_column *afz_flight_steps(const struct afz_flight *flight)
{
        const struct afz_column *most = NULL;
        const struct afz_track *track;
        int64_t steps, best = 0;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));) {
                const struct afz_column *column = afz_track_column(track, AFZ_INSIDE_STEP);
                if (afz_column_last(column, UINT32_MAX, &steps) && steps > best) {
                        best = steps;
                        most = column;
                }
        }
        return most;
}

uint64_t afz_flight_disk_ns(const struct afz_flight *flight)
{
        const struct afz_track *self;
        int64_t ns, most = 0;
        for (size_t cursor = 0; (self = afz_flight_next(flight, AFZ_KIND_SELF, &cursor));)
                if (strcmp(self->name, "afz-writer") == 0 &&
                    afz_column_most(afz_track_column(self, AFZ_SELF_TICK), 0, UINT32_MAX, &ns) &&
                    ns > most)
                        most = ns;
        return (uint64_t)most;
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
        *ret = ((double)b->mean - (double)a->mean) * 1000 / ms;
        return true;
}
