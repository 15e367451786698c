/* Batches are made of the rows of groups, a piece at a time: by one thread that runs ahead of who
 * asks for them, and by who asks and finds that nothing is ready.
 *
 * Pieces of a batch may be copied side by side, as the row of a sample in it is known beforehand;
 * but for samples that are left out, which all that follow move up by. So while a piece of a group
 * with bad samples is copied, no other of its batch is begun. */
#include <errno.h>
#include <string.h>

#include "now.h"
#include "parts.h"

enum {
        AHEAD = 16, /* rows whose place is known and whose first bytes are fetched before they are
                       copied */
        PIECE_BYTES = 256 << 10, /* some ten microseconds: who asks is not held up by a piece */
};

/* ---- rows, without the lock ---- */

/* Of one group, for one batch. */
struct piece {
        struct afz_group *group;
        uint32_t buffer;
        uint64_t at, end, to_row; /* in the group, in the batch */
        uint32_t bad;
};

struct row {
        const uint8_t *slot;
        uint32_t row;
};

static void find(const struct afz_loader *l, const struct piece *piece, uint64_t at, uint32_t count,
                 struct row ret[AHEAD])
{
        for (uint32_t i = 0; i < count; i++) {
                uint32_t chunk;
                afz_group_at(&piece->group->order, at + i, &chunk, &ret[i].row);
                ret[i].slot = afz_slot_at(l, piece->group->where[chunk]);
                for (uint32_t f = 0; f < l->fields; f++)
                        __builtin_prefetch(ret[i].slot + l->slot_field_at[f] +
                                           ret[i].row * l->field[f].bytes);
        }
}

static void copy(const struct afz_loader *l, struct piece *piece)
{
        const bool has_bad = piece->group->error != 0;
        uint8_t *to = afz_buffer_at(l, piece->buffer);
        uint64_t to_row = piece->to_row;
        struct row row[AHEAD];
        for (uint64_t at = piece->at; at < piece->end; at += AHEAD) {
                uint64_t left = piece->end - at;
                uint32_t count = left < AHEAD ? (uint32_t)left : AHEAD;
                find(l, piece, at, count, row);
                for (uint32_t i = 0; i < count; i++) {
                        if (has_bad && row[i].slot[l->slot_bad_at + row[i].row]) {
                                piece->bad++;
                                continue;
                        }
                        for (uint32_t f = 0; f < l->fields; f++) {
                                uint64_t bytes = l->field[f].bytes;
                                memcpy(to + l->batch_field_at[f] + to_row * bytes,
                                       row[i].slot + l->slot_field_at[f] + row[i].row * bytes,
                                       bytes);
                        }
                        to_row++;
                }
        }
}

/* ---- batches, with it ---- */

uint8_t *afz_buffer_at(const struct afz_loader *l, uint32_t buffer)
{
        return l->arena.at + l->batches_at + buffer * l->needs.batch_bytes;
}

/* What this rank takes of the next samples of the stream, and where all ranks are then. */
static bool next_span(const struct afz_loader *l, uint64_t *ret_from, uint64_t *ret_to,
                      uint64_t *ret_end)
{
        uint64_t rank = l->options.rank, ranks = l->options.ranks, batch = l->options.batch;
        uint64_t stream = afz_order_stream(&l->order), left = stream - l->at, all = ranks * batch;
        if (left >= all) {
                *ret_from = l->at + rank * batch;
                *ret_to = *ret_from + batch;
                *ret_end = l->at + all;
                return true;
        }
        if (left < ranks || l->options.is_last_dropped)
                return false;
        /* left < ranks * batch, which is at most 2^62 (open sees to it), and rank < ranks */
        uint64_t share = left / ranks, more = left % ranks;
        *ret_from = l->at + rank * share + (rank < more ? rank : more);
        *ret_to = *ret_from + share + (rank < more);
        *ret_end = stream;
        return true;
}

/* Its last piece's group is still there. */
static void place_behind(const struct afz_loader *l, struct afz_buffer *buffer)
{
        const struct afz_group *group = l->queue[0], *second = l->queue[1];
        struct afz_place *ret = &buffer->place;
        if (l->queued > 1 && second->epoch == buffer->epoch && second->order.start <= buffer->end)
                group = second;
        *ret = l->place; /* the data's own figures */
        ret->epoch = buffer->epoch;
        ret->first = group->order.first;
        ret->group = group->order.chunks;
        ret->offset = buffer->end - group->order.start;
        ret->batches = buffer->index + 1;
}

static void put(struct afz_loader *l, int entry)
{
        l->entry[(l->entry_first + l->entries++) % AFZ_ENTRIES] = entry;
        pthread_cond_signal(&l->ready);
}

static void end_epoch(struct afz_loader *l)
{
        l->at_epoch++;
        l->at = l->at_batches = 0;
        put(l, -1);
        afz_groups_advance(l);
}

/* Who held batches when less was asked for may have all that are allowed now: then one more, or
 * next() would wait for ever. There is one, as next() leases all but one at the most. */
static int free_buffer(const struct afz_loader *l)
{
        int beyond = -1;
        bool is_any_coming = false;
        for (uint32_t i = 0; i < l->plan.batches && l->entries < AFZ_ENTRIES; i++) {
                bool is_free = l->buffer[i].state == AFZ_BUFFER_FREE;
                if (is_free && i < l->now.batches)
                        return (int)i;
                if (is_free && beyond < 0)
                        beyond = (int)i;
                is_any_coming |= l->buffer[i].state == AFZ_BUFFER_READY ||
                                 l->buffer[i].state == AFZ_BUFFER_FILLING;
        }
        return is_any_coming ? -1 : beyond;
}

/* The next batch of the stream, or the end of its epoch; false: there is no room for it. */
static bool begin_batch(struct afz_loader *l)
{
        int number = free_buffer(l);
        uint64_t from, to, end;
        if (number < 0)
                return false;
        if (!next_span(l, &from, &to, &end)) {
                end_epoch(l);
                return true;
        }
        struct afz_buffer *buffer = &l->buffer[number];
        buffer->state = AFZ_BUFFER_FILLING;
        buffer->epoch = l->at_epoch;
        buffer->from = buffer->next = from;
        buffer->to = to;
        buffer->begin = l->at;
        buffer->end = end;
        buffer->index = l->at_batches++;
        buffer->pieces = buffer->skipped = 0;
        buffer->is_alone = false;
        buffer->error = 0;
        l->at = end;
        put(l, number);
        return true;
}

static uint64_t piece_rows(const struct afz_loader *l)
{
        uint64_t rows = PIECE_BYTES * (uint64_t)l->options.batch / l->needs.batch_bytes;
        return rows ? rows : 1;
}

/* Of the first batch that has one left for which the samples are there. */
static bool find_piece(struct afz_loader *l, struct piece *ret)
{
        for (uint32_t i = 0; i < l->entries; i++) {
                int number = l->entry[(l->entry_first + i) % AFZ_ENTRIES];
                struct afz_buffer *buffer = number < 0 ? NULL : &l->buffer[number];
                if (!buffer || buffer->state != AFZ_BUFFER_FILLING || buffer->is_alone ||
                    buffer->next == buffer->to)
                        continue;
                struct afz_group *group = afz_groups_ready(l, buffer->epoch, buffer->next);
                if (!group) /* what comes behind is not there either */
                        return false;
                uint64_t start = group->order.start, end = start + group->order.samples;
                uint64_t most = buffer->next + piece_rows(l);
                end = end < buffer->to ? end : buffer->to;
                *ret = (struct piece){
                        .group = group,
                        .buffer = (uint32_t)number,
                        .at = buffer->next - start,
                        .end = (end < most ? end : most) - start,
                        .to_row = buffer->next - buffer->from - buffer->skipped,
                };
                return true;
        }
        return false;
}

static bool take_piece(struct afz_loader *l, struct piece *ret)
{
        if (l->is_paused || l->is_quitting)
                return false;
        while (!find_piece(l, ret))
                if (!begin_batch(l))
                        return false;
        struct afz_buffer *buffer = &l->buffer[ret->buffer];
        buffer->next += ret->end - ret->at;
        buffer->is_alone = ret->group->error != 0;
        buffer->pieces++;
        ret->group->readers++;
        l->copying++;
        return true;
}

static void finish_piece(struct afz_loader *l, const struct piece *piece)
{
        struct afz_buffer *buffer = &l->buffer[piece->buffer];
        if (piece->bad && l->options.on_error == AFZ_ERROR_RAISE)
                buffer->error = piece->group->error;
        if (piece->bad && buffer->skipped == 0)
                memcpy(buffer->why, piece->group->why, sizeof buffer->why);
        buffer->skipped += piece->bad;
        if (piece->group->error != 0) /* else it is another that is alone */
                buffer->is_alone = false;
        piece->group->readers--;
        if (--buffer->pieces == 0 && buffer->next == buffer->to) {
                buffer->count = (uint32_t)(buffer->to - buffer->from) - buffer->skipped;
                place_behind(l, buffer);
                buffer->ready_ns = afz_now_ns();
                buffer->state = AFZ_BUFFER_READY;
                pthread_cond_signal(&l->ready);
        }
        afz_groups_advance(l);
        if (--l->copying == 0 && l->is_paused)
                pthread_cond_signal(&l->quiet);
}

bool afz_gather_some(struct afz_loader *l)
{
        struct piece piece;
        if (!take_piece(l, &piece))
                return false;
        pthread_mutex_unlock(&l->lock);
        uint64_t began = afz_now_ns();
        copy(l, &piece);
        began = afz_now_ns() - began;
        pthread_mutex_lock(&l->lock);
        l->sums.gather_ns += began;
        l->sums.gathered += piece.end - piece.at;
        finish_piece(l, &piece);
        return true;
}

static bool is_starved(const struct afz_loader *l)
{
        for (uint32_t i = 0; i < l->plan.batches; i++)
                if (l->buffer[i].state == AFZ_BUFFER_FILLING && l->buffer[i].pieces == 0)
                        return true;
        return false;
}

static void *gather(void *argument)
{
        struct afz_loader *l = argument;
        pthread_mutex_lock(&l->lock);
        while (!l->is_quitting) {
                if (afz_gather_some(l))
                        continue;
                uint64_t began = is_starved(l) ? afz_now_ns() : 0;
                pthread_cond_wait(&l->gather, &l->lock);
                l->sums.starved_ns += began ? afz_now_ns() - began : 0;
        }
        pthread_mutex_unlock(&l->lock);
        return NULL;
}

int afz_gather_start(struct afz_loader *l)
{
        int r = afz_thread_start(&l->gatherer, gather, l, "afz-gather");
        l->has_gatherer = r == 0;
        return r;
}

void afz_gather_stop(struct afz_loader *l)
{
        if (l->has_gatherer)
                pthread_join(l->gatherer, NULL);
        l->has_gatherer = false;
}
