/* The reading side of flight_block.h. */
#include <errno.h>

#include "flight_block.h"
#include "flight_block_form.h"
#include "flight_sink.h"
#include "flight_stream.h"
#include "pack.h"

struct block {
        struct afz_block_about about;
        unsigned kind;                 /* of the file, of the subject that was told last */
        struct afz_track *track;       /* NULL: none was told, or we do not know its kind */
        uint64_t rows;                 /* of the column that was told last */
        uint32_t t_ms[AFZ_BLOCK_ROWS]; /* its points' times */
        uint64_t gap[AFZ_BLOCK_ROWS], rise[AFZ_BLOCK_ROWS];
        uint64_t width[AFZ_BLOCK_ROWS], part[AFZ_BLOCK_ROWS];
};

static bool take_about(struct afz_take *take, struct afz_block_about *ret)
{
        return afz_take_u32(take, &ret->span_ms) && afz_take_u32(take, &ret->from_ms) &&
               afz_take_u32(take, &ret->to_ms) && ret->from_ms <= ret->to_ms;
}

int afz_block_about(const unsigned char *bytes, size_t len, struct afz_block_about *ret)
{
        struct afz_take take = {bytes, len};
        struct afz_block_about about;
        if (!take_about(&take, &about))
                return -EBADMSG;
        *ret = about;
        return 0;
}

static int take_subject(struct afz_sink *sink, struct afz_take *take, struct block *block)
{
        char name[AFZ_PACK_NAME_CAP], detail[AFZ_PACK_DETAIL_CAP], note[AFZ_PACK_NOTE_CAP];
        uint64_t kind;
        uint32_t first_ms, last_ms;
        struct afz_subject subject;
        if (!afz_take_number(take, &kind) || kind >= AFZ_NAMES_KINDS ||
            !afz_take_number(take, &subject.id) || !afz_take_number(take, &subject.start) ||
            !afz_take_u32(take, &first_ms) || !afz_take_u32(take, &last_ms) ||
            !afz_take_text(take, name, sizeof name) ||
            !afz_take_text(take, detail, sizeof detail) || !afz_take_text(take, note, sizeof note))
                return -EBADMSG;
        block->kind = (unsigned)kind;
        block->track = NULL;
        block->rows = 0;
        subject.kind = afz_sink_kind(sink, kind);
        if (subject.kind == AFZ_KIND_NONE)
                return 0;
        block->track = afz_flight_track(sink->flight, &subject, name, detail, note);
        if (!block->track)
                return -ENOMEM;
        if (first_ms <= last_ms)
                afz_flight_seen(sink->flight, block->track, first_ms, last_ms);
        return 0;
}

struct column {
        uint64_t rows, step, slope;
        unsigned char flags;
        int64_t least;
        size_t part; /* the next one's place */
};

/* The times stay for the columns that have the same. */
static bool take_times(struct afz_take *take, struct block *block, const struct column *c)
{
        const uint32_t span = block->about.span_ms, tick = span ? span : 1;
        uint64_t slot;
        if (c->flags & AFZ_COLUMN_TIMES)
                return block->rows == c->rows;
        block->rows = 0;
        if (!afz_take_number(take, &slot) || !afz_stream_take(take, block->gap + 1, c->rows - 1))
                return false;
        for (size_t i = 0; i < c->rows; i++) {
                uint64_t gap = i ? block->gap[i] : 0;
                if (slot > UINT32_MAX || gap > UINT32_MAX)
                        return false;
                slot += gap;
                uint64_t t_ms = block->about.from_ms + slot * tick;
                if (t_ms > UINT32_MAX - span)
                        return false;
                block->t_ms[i] = (uint32_t)t_ms;
        }
        block->rows = c->rows;
        return true;
}

static bool take_widths(struct afz_take *take, struct block *block, const struct column *c)
{
        size_t wide = 0;
        if (!afz_stream_take(take, block->width, c->rows))
                return false;
        for (size_t i = 0; i < c->rows; i++)
                wide += block->width[i] != 0;
        return afz_stream_take(take, block->part, wide);
}

static bool take_column(struct afz_take *take, struct block *block, struct column *ret)
{
        ret->part = 0;
        ret->slope = 0;
        return afz_take_byte(take, &ret->flags) && afz_take_number(take, &ret->rows) &&
               ret->rows > 0 && ret->rows <= AFZ_BLOCK_ROWS && take_times(take, block, ret) &&
               afz_take_signed(take, &ret->least) && afz_take_number(take, &ret->step) &&
               afz_stream_take(take, block->rise + 1, ret->rows - 1) &&
               (!(ret->flags & AFZ_COLUMN_WIDE) || take_widths(take, block, ret));
}

/* The next point, from the one before; false: its width is beyond what there is. */
static inline bool next_point(const struct block *block, struct column *c, size_t i,
                              struct afz_point *p)
{
        uint64_t width = 0, offset = 0;
        if (i > 0) {
                uint64_t rise = (uint64_t)afz_unzigzag(block->rise[i]);
                c->slope = c->flags & AFZ_COLUMN_SECOND ? c->slope + rise : rise;
                p->least = (int64_t)((uint64_t)p->least + c->slope * c->step);
        }
        if (c->flags & AFZ_COLUMN_WIDE && block->width[i]) {
                uint64_t part = block->part[c->part++];
                width = block->width[i] * c->step;
                unsigned parts = afz_block_parts(c->flags, width);
                if (width == 0 || part > parts)
                        return false;
                offset = afz_block_offset(part, width, parts);
        }
        p->t_ms = block->t_ms[i];
        p->span_ms = block->about.span_ms;
        p->most = (int64_t)((uint64_t)p->least + width);
        p->mean = (int64_t)((uint64_t)p->least + offset);
        return p->most >= p->least;
}

/* Two rounds of thinning can both have met a span; then it is told twice, one after the other. */
static bool joins(struct afz_column *column, const struct afz_point *p, bool last)
{
        struct afz_point *before = column->count ? &column->point[column->count - 1] : NULL;
        if (!before || p->span_ms == 0 || before->t_ms != p->t_ms || before->span_ms != p->span_ms)
                return false;
        if (p->least < before->least)
                before->least = p->least;
        if (p->most > before->most)
                before->most = p->most;
        before->mean = last ? p->mean : before->mean / 2 + p->mean / 2;
        return true;
}

/* Into a flight as it is: many points at once. */
static int keep_column(struct afz_sink *sink, struct block *block, struct column *c,
                       enum afz_metric metric)
{
        struct afz_column *column = afz_flight_column(block->track, metric, c->rows);
        struct afz_point p = {.least = c->least};
        bool last = afz_metric_is_last(metric);
        if (!column)
                return -ENOMEM;
        sink->points += c->rows;
        for (size_t i = 0; i < c->rows; i++) {
                if (!next_point(block, c, i, &p))
                        return -EBADMSG;
                if (i > 0 || !joins(column, &p, last))
                        column->point[column->count++] = p;
                if (i == 0 || i + 1 == c->rows)
                        afz_flight_seen(sink->flight, block->track, p.t_ms, p.t_ms + p.span_ms);
        }
        return 0;
}

static int gather_column(struct afz_sink *sink, struct block *block, struct column *c,
                         enum afz_metric metric)
{
        struct afz_point p = {.least = c->least};
        int r = 0;
        for (size_t i = 0; i < c->rows && r >= 0; i++) {
                if (!next_point(block, c, i, &p))
                        return -EBADMSG;
                r = afz_sink_point(sink, block->track, metric, &p);
        }
        return r;
}

/* Of a column that nobody wants only the times count: the next one may have the same. */
static int pass_over(struct afz_take *body, struct block *block)
{
        struct column c;
        return afz_take_byte(body, &c.flags) && afz_take_number(body, &c.rows) && c.rows > 0 &&
                               c.rows <= AFZ_BLOCK_ROWS && take_times(body, block, &c)
                       ? 0
                       : -EBADMSG;
}

static int read_column(struct afz_sink *sink, struct afz_take *take, struct block *block)
{
        struct afz_take body;
        struct column c;
        uint64_t index;
        enum afz_metric metric;
        if (!afz_take_number(take, &index) || !afz_take_piece(take, &body))
                return -EBADMSG;
        if (!block->track || index >= AFZ_METRICS_PER_KIND ||
            !afz_sink_metric(sink, block->kind, (unsigned)index, &metric))
                return pass_over(&body, block);
        if (!take_column(&body, block, &c))
                return -EBADMSG;
        return sink->span_ms ? gather_column(sink, block, &c, metric)
                             : keep_column(sink, block, &c, metric);
}

int afz_block_read(struct afz_sink *sink, const unsigned char *bytes, size_t len)
{
        struct afz_take take = {bytes, len};
        struct block block;
        block.track = NULL;
        block.rows = 0;
        if (!take_about(&take, &block.about))
                return -EBADMSG;
        int r = 0;
        while (take.n && r >= 0) {
                uint64_t tag;
                if (!afz_take_number(&take, &tag))
                        return -EBADMSG;
                if (tag == AFZ_BLOCK_SUBJECT)
                        r = take_subject(sink, &take, &block);
                else if (tag == AFZ_BLOCK_COLUMN)
                        r = read_column(sink, &take, &block);
                else
                        r = -EBADMSG;
        }
        return r;
}
