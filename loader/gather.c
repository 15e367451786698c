/* The gatherer: one thread that makes batches of the rows of a group, ahead of who asks for them.
 */
#include <errno.h>
#include <string.h>

#include "now.h"
#include "parts.h"

enum {
        AHEAD = 16
}; /* rows whose place is known and whose first bytes are fetched before they are copied */

/* ---- rows, without the lock ---- */

struct rows {
        const struct afz_loader *loader;
        const struct afz_group *group;
        struct afz_buffer *buffer;
        uint8_t *to;
};

struct row {
        const uint8_t *slot;
        uint32_t row;
};

static void find(const struct rows *rows, uint64_t at, uint32_t count, struct row ret[AHEAD])
{
        const struct afz_loader *l = rows->loader;
        for (uint32_t i = 0; i < count; i++) {
                uint32_t chunk;
                afz_group_at(&rows->group->order, at + i, &chunk, &ret[i].row);
                ret[i].slot = afz_slot_at(l, rows->group->where[chunk]);
                for (uint32_t f = 0; f < l->fields; f++)
                        __builtin_prefetch(ret[i].slot + l->slot_field_at[f] +
                                           ret[i].row * l->field[f].bytes);
        }
}

static void note_bad(const struct rows *rows)
{
        struct afz_buffer *buffer = rows->buffer;
        if (rows->loader->options.on_error == AFZ_ERROR_RAISE)
                buffer->error = rows->group->error;
        if (buffer->skipped++ == 0)
                memcpy(buffer->why, rows->group->why, sizeof buffer->why);
}

static void copy(const struct rows *rows, uint64_t at, uint64_t end)
{
        const struct afz_loader *l = rows->loader;
        const bool has_bad = rows->group->error != 0;
        struct row row[AHEAD];
        for (; at < end; at += AHEAD) {
                uint32_t count = end - at < AHEAD ? (uint32_t)(end - at) : AHEAD;
                find(rows, at, count, row);
                for (uint32_t i = 0; i < count; i++) {
                        if (has_bad && row[i].slot[l->slot_bad_at + row[i].row]) {
                                note_bad(rows);
                                continue;
                        }
                        for (uint32_t f = 0; f < l->fields; f++) {
                                uint64_t bytes = l->field[f].bytes;
                                memcpy(rows->to + l->batch_field_at[f] +
                                               rows->buffer->count * bytes,
                                       row[i].slot + l->slot_field_at[f] + row[i].row * bytes,
                                       bytes);
                        }
                        rows->buffer->count++;
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
        uint64_t left = l->samples - l->at, all = ranks * batch;
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
        *ret_end = l->samples;
        return true;
}

static void place_behind(const struct afz_loader *l, uint64_t end, struct afz_place *ret)
{
        const struct afz_group *group = l->queue[0];
        if (l->queued > 1 && l->queue[1]->epoch == l->at_epoch && l->queue[1]->order.start <= end)
                group = l->queue[1];
        *ret = l->place; /* the data's own figures */
        ret->epoch = l->at_epoch;
        ret->first = group->order.first;
        ret->group = group->order.chunks;
        ret->offset = end - group->order.start;
        ret->batches = l->at_batches + 1;
}

static void put(struct afz_loader *l, int entry)
{
        l->entry[(l->entry_first + l->entries++) % AFZ_ENTRIES] = entry;
        pthread_cond_signal(&l->ready);
}

static int fill(struct afz_loader *l, uint32_t number, uint64_t from, uint64_t to)
{
        struct afz_buffer *buffer = &l->buffer[number];
        struct rows rows = {.loader = l, .buffer = buffer, .to = afz_buffer_at(l, number)};
        buffer->count = buffer->skipped = 0;
        buffer->error = 0;
        while (from < to) {
                struct afz_group *group = afz_groups_reach(l, from);
                if (!group)
                        return -EAGAIN;
                uint64_t start = group->order.start, end = start + group->order.samples;
                if (end > to)
                        end = to;
                rows.group = group;
                pthread_mutex_unlock(&l->lock);
                uint64_t began = afz_now_ns();
                copy(&rows, from - start, end - start);
                began = afz_now_ns() - began;
                pthread_mutex_lock(&l->lock);
                l->sums.gather_ns += began;
                from = end;
        }
        return 0;
}

static void make_batch(struct afz_loader *l, uint32_t number)
{
        struct afz_buffer *buffer = &l->buffer[number];
        uint64_t from, to, end;
        if (!next_span(l, &from, &to, &end)) {
                if (!afz_groups_end_epoch(l))
                        return;
                l->at_epoch++;
                l->at = l->at_batches = 0;
                put(l, -1);
                return;
        }
        buffer->state = AFZ_BUFFER_FILLING;
        if (fill(l, number, from, to) < 0) {
                buffer->state = AFZ_BUFFER_FREE;
                return;
        }
        place_behind(l, end, &buffer->place);
        buffer->index = l->at_batches++;
        l->at = end;
        buffer->ready_ns = afz_now_ns();
        buffer->state = AFZ_BUFFER_READY;
        put(l, (int)number);
}

/* Who held batches when less was asked for may have all that are allowed now: then one more, or
 * next() would wait for ever. There is one, as next() leases all but one at the most. */
static int free_buffer(const struct afz_loader *l)
{
        int beyond = -1;
        bool is_any_ready = false;
        for (uint32_t i = 0; i < l->plan.batches && l->entries < AFZ_ENTRIES; i++) {
                bool is_free = l->buffer[i].state == AFZ_BUFFER_FREE;
                if (is_free && i < l->now.batches)
                        return (int)i;
                if (is_free && beyond < 0)
                        beyond = (int)i;
                is_any_ready |= l->buffer[i].state == AFZ_BUFFER_READY;
        }
        return is_any_ready ? -1 : beyond;
}

static void *gather(void *argument)
{
        struct afz_loader *l = argument;
        pthread_mutex_lock(&l->lock);
        while (!l->is_quitting) {
                int number = l->is_paused ? -1 : free_buffer(l);
                if (number < 0) {
                        pthread_cond_wait(&l->gather, &l->lock);
                        continue;
                }
                l->is_gathering = true;
                make_batch(l, (uint32_t)number);
                l->is_gathering = false;
                if (l->is_paused)
                        pthread_cond_signal(&l->quiet);
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
