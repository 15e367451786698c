/* The writing side; flight_block_read.c is the other. */
#include "flight_block.h"

#include <errno.h>
#include <stdlib.h>

#include "flight_block_form.h"
#include "flight_frame.h"
#include "flight_sink.h"
#include "flight_stream.h"
#include "pack.h"

enum {
        STREAM_MAX = AFZ_BLOCK_ROWS * AFZ_STREAM_WORST,
        COLUMN_MAX = 4 * STREAM_MAX + 128, /* bytes, at the very worst */
        SUBJECT_MAX = 1024,
};

struct writer {
        struct afz_block_about about;
        int (*emit)(void *ctx, const unsigned char *bytes, size_t len);
        void *ctx;
        struct afz_put block, column, first, second;
        bool empty;                     /* the block has no column yet */
        const struct afz_point *before; /* the column before, of the same subject in this block */
        size_t before_n;
        uint64_t gap[AFZ_BLOCK_ROWS], width[AFZ_BLOCK_ROWS], part[AFZ_BLOCK_ROWS];
        int64_t rise[AFZ_BLOCK_ROWS];
        uint64_t folded[AFZ_BLOCK_ROWS];
};

static uint32_t tick_of(const struct afz_block_about *about)
{
        return about->span_ms ? about->span_ms : 1;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
        while (b) {
                uint64_t rest = a % b;
                a = b;
                b = rest;
        }
        return a;
}

/* How the least values rise, and how wide the points are, in the largest step that divides them
 * all. Returns the step. */
static uint64_t differ(struct writer *w, const struct afz_point *p, size_t n, bool *ret_wide)
{
        uint64_t step = 0;
        *ret_wide = false;
        for (size_t i = 0; i < n; i++) {
                int64_t rise = i ? (int64_t)((uint64_t)p[i].least - (uint64_t)p[i - 1].least) : 0;
                w->width[i] = (uint64_t)p[i].most - (uint64_t)p[i].least;
                w->rise[i] = rise;
                *ret_wide = *ret_wide || w->width[i];
                if (step != 1)
                        step = gcd(gcd(w->width[i], rise < 0 ? -(uint64_t)rise : (uint64_t)rise),
                                   step);
        }
        if (step <= 1 || step > INT64_MAX)
                return 1;
        for (size_t i = 0; i < n; i++) {
                w->width[i] /= step;
                w->rise[i] /= (int64_t)step;
        }
        return step;
}

/* What moves evenly is told better by how its movement changes: both are tried. */
static const struct afz_put *put_rise(struct writer *w, size_t n)
{
        w->first.len = w->second.len = 0;
        for (size_t i = 1; i < n; i++)
                w->folded[i] = afz_zigzag(w->rise[i]);
        afz_stream_put(&w->first, w->folded + 1, n - 1);
        for (size_t i = 1; i < n; i++)
                w->folded[i] =
                        afz_zigzag((int64_t)((uint64_t)w->rise[i] - (uint64_t)w->rise[i - 1]));
        afz_stream_put(&w->second, w->folded + 1, n - 1);
        return w->second.len < w->first.len ? &w->second : &w->first;
}

static bool same_times(const struct writer *w, const struct afz_point *p, size_t n)
{
        bool same = w->before && w->before_n == n;
        for (size_t i = 0; i < n && same; i++)
                same = p[i].t_ms == w->before[i].t_ms;
        return same;
}

static void put_times(struct writer *w, const struct afz_point *p, size_t n)
{
        uint32_t tick = tick_of(&w->about);
        for (size_t i = 1; i < n; i++)
                w->gap[i] = (p[i].t_ms - p[i - 1].t_ms) / tick;
        afz_put_number(&w->column, (p[0].t_ms - w->about.from_ms) / tick);
        afz_stream_put(&w->column, w->gap + 1, n - 1);
}

/* Widths, and for those that are not 0 where the mean lies. */
static void put_widths(struct writer *w, const struct afz_point *p, size_t n, uint64_t step,
                       unsigned flags)
{
        size_t wide = 0;
        for (size_t i = 0; i < n; i++) {
                uint64_t width = w->width[i] * step;
                int64_t mean = p[i].mean > p[i].most ? p[i].most : p[i].mean;
                uint64_t offset = mean < p[i].least ? 0 : (uint64_t)mean - (uint64_t)p[i].least;
                if (width)
                        w->part[wide++] =
                                afz_block_part(offset, width, afz_block_parts(flags, width));
        }
        afz_stream_put(&w->column, w->width, n);
        afz_stream_put(&w->column, w->part, wide);
}

static void put_body(struct writer *w, const struct afz_point *p, size_t n, bool fine)
{
        struct afz_put *out = &w->column;
        bool wide, times = same_times(w, p, n);
        uint64_t step = differ(w, p, n, &wide);
        const struct afz_put *rise = put_rise(w, n);
        unsigned flags = (wide ? AFZ_COLUMN_WIDE : 0) | (times ? AFZ_COLUMN_TIMES : 0) |
                         (rise == &w->second ? AFZ_COLUMN_SECOND : 0) |
                         (fine ? AFZ_COLUMN_FINE : 0);
        out->len = 0;
        afz_put_byte(out, (unsigned char)flags);
        afz_put_number(out, n);
        if (!times)
                put_times(w, p, n);
        afz_put_signed(out, p[0].least);
        afz_put_number(out, step);
        afz_put_bytes(out, rise->p, rise->len);
        if (wide)
                put_widths(w, p, n, step, flags);
        w->before = p;
        w->before_n = n;
}

static void start_block(struct writer *w)
{
        w->block.len = 0;
        w->before = NULL;
        w->empty = true;
        afz_put_number(&w->block, w->about.span_ms);
        afz_put_number(&w->block, w->about.from_ms);
        afz_put_number(&w->block, w->about.to_ms);
}

static int end_block(struct writer *w)
{
        if (w->block.full)
                return -EOVERFLOW;
        int r = w->empty ? 0 : w->emit(w->ctx, w->block.p, w->block.len);
        start_block(w);
        return r;
}

static void put_subject(struct writer *w, const struct afz_track *track)
{
        w->before = NULL;
        afz_put_number(&w->block, AFZ_BLOCK_SUBJECT);
        afz_put_number(&w->block, (uint64_t)track->subject.kind);
        afz_put_number(&w->block, track->subject.id);
        afz_put_number(&w->block, track->subject.start);
        afz_put_number(&w->block, track->first_ms);
        afz_put_number(&w->block, track->last_ms);
        afz_put_text(&w->block, track->name, AFZ_PACK_NAME_CAP);
        afz_put_text(&w->block, track->detail, AFZ_PACK_DETAIL_CAP);
        afz_put_text(&w->block, track->note, AFZ_PACK_NOTE_CAP);
}

/* A column, with its subject anew when a block is full. */
static int put_column(struct writer *w, const struct afz_track *track,
                      const struct afz_column *column)
{
        bool fine = afz_metric_is_last(column->metric);
        for (size_t at = 0, n; at < column->count; at += n) {
                n = column->count - at < AFZ_BLOCK_ROWS ? column->count - at : AFZ_BLOCK_ROWS;
                put_body(w, column->point + at, n, fine);
                if (w->block.cap - w->block.len < w->column.len + SUBJECT_MAX) {
                        int r = end_block(w);
                        if (r < 0)
                                return r;
                        put_subject(w, track);
                        put_body(w, column->point + at, n, fine);
                }
                afz_put_number(&w->block, AFZ_BLOCK_COLUMN);
                afz_put_number(&w->block, afz_metric_index(column->metric));
                afz_put_number(&w->block, w->column.len);
                afz_put_bytes(&w->block, w->column.p, w->column.len);
                w->empty = false;
        }
        return w->column.full ? -EOVERFLOW : 0;
}

static int put_track(struct writer *w, const struct afz_track *track)
{
        int r = 0;
        if (track->columns && w->block.cap - w->block.len < 2 * SUBJECT_MAX)
                r = end_block(w);
        if (track->columns)
                put_subject(w, track);
        for (size_t c = 0; c < track->columns && r >= 0; c++)
                r = put_column(w, track, &track->column[c]);
        return r;
}

static struct afz_block_about about_of(const struct afz_flight *flight, uint32_t span_ms)
{
        struct afz_block_about about = {.span_ms = span_ms, .from_ms = UINT32_MAX};
        for (size_t i = 0; i < flight->tracks; i++)
                for (size_t c = 0; c < flight->track[i].columns; c++) {
                        const struct afz_column *column = &flight->track[i].column[c];
                        if (column->count == 0)
                                continue;
                        uint32_t first = column->point[0].t_ms;
                        uint32_t last = column->point[column->count - 1].t_ms;
                        uint32_t tick = tick_of(&about);
                        uint32_t end = last > UINT32_MAX - tick ? UINT32_MAX : last + tick;
                        about.from_ms = first < about.from_ms ? first : about.from_ms;
                        about.to_ms = end > about.to_ms ? end : about.to_ms;
                }
        return about;
}

int afz_block_write(const struct afz_flight *flight, uint32_t span_ms,
                    int (*put)(void *ctx, const unsigned char *bytes, size_t len), void *ctx)
{
        struct writer *w = malloc(sizeof *w);
        unsigned char *room = malloc(AFZ_FRAME_MAX + COLUMN_MAX + 2 * (size_t)STREAM_MAX);
        int r = w && room ? 0 : -ENOMEM;
        if (r == 0) {
                unsigned char *p = room + AFZ_FRAME_MAX;
                w->about = about_of(flight, span_ms);
                w->emit = put;
                w->ctx = ctx;
                w->block = (struct afz_put){.p = room, .cap = AFZ_FRAME_MAX};
                w->column = (struct afz_put){.p = p, .cap = COLUMN_MAX};
                w->first = (struct afz_put){.p = p + COLUMN_MAX, .cap = STREAM_MAX};
                w->second = (struct afz_put){.p = p + COLUMN_MAX + STREAM_MAX, .cap = STREAM_MAX};
                w->rise[0] = 0;
                start_block(w);
        }
        for (size_t i = 0; r >= 0 && i < flight->tracks; i++)
                r = put_track(w, &flight->track[i]);
        if (r >= 0)
                r = end_block(w);
        free(room);
        free(w);
        return r;
}
