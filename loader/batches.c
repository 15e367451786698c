/* What is handed out: batches and their leases. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "now.h"
#include "parts.h"

enum {
        WAKE_PART = 2,
        FEW = 8
}; /* when no more than one in so many batches is ready; always, if there are but few */
enum {
        LEASE_BITS = 8,
        LEASE_COPY = 0xff
}; /* the lower bits of a lease: its buffer, or that it is a copy */

static const uint64_t NEVER_NS = INT64_MAX;

/* ---- next ---- */

static uint32_t leases_most(const struct afz_loader *l)
{
        return l->now.batches - 1 < AFZ_LEASES_MAX ? l->now.batches - 1 : AFZ_LEASES_MAX;
}

static uint32_t count_leased(const struct afz_loader *l)
{
        uint32_t leased = 0;
        for (uint32_t i = 0; i < l->plan.batches; i++)
                leased += l->buffer[i].state == AFZ_BUFFER_LEASED;
        return leased;
}

static void point(const struct afz_loader *l, uint8_t *data, struct afz_batch *batch)
{
        for (uint32_t i = 0; i < l->fields; i++)
                batch->data[i] = data + l->batch_field_at[i];
}

/* The gatherer is not woken for every buffer: it makes several at a time, before the last is gone.
 */
static void wake_gatherer(struct afz_loader *l)
{
        if (l->now.batches < FEW || l->entries <= l->now.batches / WAKE_PART)
                pthread_cond_signal(&l->gather);
}

static void free_buffer(struct afz_loader *l, uint32_t number)
{
        l->buffer[number].state = AFZ_BUFFER_FREE;
        l->buffer[number].lease = 0;
        if (number >= l->now.batches && !l->is_pinned)
                afz_arena_give(&l->arena, l->batches_at + number * l->needs.batch_bytes,
                               l->needs.batch_bytes);
        wake_gatherer(l);
}

static int lease_copy(struct afz_loader *l, uint32_t number, struct afz_batch *batch)
{
        struct afz_copy *copy = malloc(sizeof *copy);
        uint8_t *data = copy ? aligned_alloc(AFZ_ARENA_PAGE, l->needs.batch_bytes) : NULL;
        if (!data) {
                free(copy);
                return -ENOMEM;
        }
        memcpy(data, afz_buffer_at(l, number), l->needs.batch_bytes);
        *copy = (struct afz_copy){
                .next = l->copies, .data = data, .lease = ++l->leases << LEASE_BITS | LEASE_COPY};
        l->copies = copy;
        l->sums.copies++;
        batch->lease = copy->lease;
        batch->is_copy = 1;
        point(l, data, batch);
        free_buffer(l, number);
        return 0;
}

static int lease(struct afz_loader *l, uint32_t number, struct afz_batch *ret)
{
        struct afz_buffer *buffer = &l->buffer[number];
        struct afz_batch batch = {
                .count = buffer->count, .epoch = buffer->place.epoch, .index = buffer->index};
        if (count_leased(l) >= leases_most(l)) {
                int r = lease_copy(l, number, &batch);
                if (r < 0)
                        return r;
        } else {
                batch.lease = buffer->lease = ++l->leases << LEASE_BITS | number;
                buffer->state = AFZ_BUFFER_LEASED;
                point(l, afz_buffer_at(l, number), &batch);
        }
        l->held++;
        if (l->held > l->held_most)
                l->held_most = l->held;
        *ret = batch;
        return 0;
}

/* To wake another thread may cost who calls next() its place on the core, so that is left to
 * release(), unless nothing is left. */
static void pop(struct afz_loader *l)
{
        l->entry_first = (l->entry_first + 1) % AFZ_ENTRIES;
        if (--l->entries == 0)
                pthread_cond_signal(&l->gather);
}

static void begin_wait(struct afz_loader *l, uint64_t now)
{
        if (!l->is_epoch_begun) {
                l->is_epoch_begun = true;
                afz_pool_settle(l, now);
                l->epoch_sums = l->sums;
                l->began_epoch = l->place.epoch;
                l->began_ns = l->returned_ns = now;
                l->held_most = l->held;
        }
}

/* All of its samples were left out: there is nothing to give. */
static bool is_nothing(const struct afz_buffer *buffer)
{
        return buffer->state == AFZ_BUFFER_READY && buffer->error == 0 && buffer->count == 0;
}

/* Whatever has become of it, the place is behind it. */
static void pass(struct afz_loader *l, const struct afz_buffer *buffer)
{
        l->sums.skipped += buffer->skipped;
        l->place = buffer->place;
        pop(l);
}

static bool is_ready(struct afz_loader *l)
{
        while (l->entries > 0) {
                int number = l->entry[l->entry_first];
                if (number < 0 || !is_nothing(&l->buffer[number]))
                        return number < 0 || l->buffer[number].state == AFZ_BUFFER_READY;
                free_buffer(l, (uint32_t)number);
                pass(l, &l->buffer[number]);
        }
        return false;
}

/* Who waits lends a hand. */
static bool wait_ready(struct afz_loader *l, uint64_t until_ns)
{
        struct timespec until = {.tv_sec = (time_t)(until_ns / UINT64_C(1000000000)),
                                 .tv_nsec = (long)(until_ns % UINT64_C(1000000000))};
        while (!is_ready(l) && afz_now_ns() < until_ns)
                if (!afz_gather_some(l) && !is_ready(l))
                        (void)pthread_cond_timedwait(&l->ready, &l->lock, &until);
        return is_ready(l);
}

/* That what is ready stood there until then. */
static void count_idle(struct afz_loader *l, uint64_t until_ns)
{
        int number = l->entry[l->entry_first];
        if (number < 0)
                return;
        uint64_t since = l->buffer[number].ready_ns;
        if (since < l->returned_ns)
                since = l->returned_ns;
        l->sums.idle_ns += until_ns > since ? until_ns - since : 0;
}

static bool wait_entry(struct afz_loader *l, uint64_t most_ns)
{
        uint64_t began = afz_now_ns();
        begin_wait(l, began);
        bool is_there = is_ready(l);
        if (is_there) {
                count_idle(l, began);
                l->returned_ns = began;
        } else {
                is_there = wait_ready(l, most_ns == NEVER_NS ? NEVER_NS : began + most_ns);
                l->returned_ns = afz_now_ns();
                l->sums.waited_ns += l->returned_ns - began;
        }
        return is_there;
}

int afz_loader_wait(struct afz_loader *l, uint32_t most_ms)
{
        if (l->pid != getpid())
                return -EPERM;
        pthread_mutex_lock(&l->lock);
        int r = wait_entry(l, most_ms * UINT64_C(1000000));
        pthread_mutex_unlock(&l->lock);
        return r;
}

static int give(struct afz_loader *l, struct afz_batch *ret, char *why)
{
        int number = l->entry[l->entry_first], r = 1;
        if (number < 0) {
                l->place.epoch++;
                l->place.first = l->place.group = l->place.offset = l->place.batches = 0;
                l->is_epoch_begun = false;
                pop(l);
                return 0;
        }
        struct afz_buffer *buffer = &l->buffer[number];
        if (buffer->error < 0) {
                r = afz_why(why, buffer->error, "%s", buffer->why);
                free_buffer(l, (uint32_t)number);
        } else if (lease(l, (uint32_t)number, ret) < 0) {
                return afz_why(why, -ENOMEM,
                               "%llu batches are held, and there is no memory for one more",
                               (unsigned long long)l->held);
        } else if (buffer->skipped) {
                memcpy(why, buffer->why, AFZ_WHY_MAX);
        }
        pass(l, buffer);
        return r;
}

static int next_within(struct afz_loader *l, uint64_t most_ns, struct afz_batch *ret, char *why)
{
        why[0] = '\0';
        if (afz_loader_is_forked(l, why))
                return -EPERM;
        pthread_mutex_lock(&l->lock);
        int r = wait_entry(l, most_ns) ? give(l, ret, why) : -ETIME;
        l->returned_ns = afz_now_ns();
        pthread_mutex_unlock(&l->lock);
        return r;
}

int afz_loader_next(struct afz_loader *l, struct afz_batch *ret, char ret_why[AFZ_WHY_MAX])
{
        return next_within(l, NEVER_NS, ret, ret_why);
}

int afz_loader_next_within(struct afz_loader *l, uint32_t most_ms, struct afz_batch *ret,
                           char ret_why[AFZ_WHY_MAX])
{
        return next_within(l, most_ms * UINT64_C(1000000), ret, ret_why);
}

int afz_loader_shared(const struct afz_loader *l, struct afz_shared *ret)
{
        struct afz_loader *mine = (struct afz_loader *)l; /* for its lock */
        if (l->pid != getpid())
                return -EPERM;
        if (!l->arena.is_shared)
                return -EINVAL;
        pthread_mutex_lock(&mine->lock);
        *ret = (struct afz_shared){.fd = l->arena.fd,
                                   .leases = leases_most(l),
                                   .at = l->arena.at,
                                   .bytes = l->batches_at + l->plan.batches * l->needs.batch_bytes};
        pthread_mutex_unlock(&mine->lock);
        return 0;
}

int afz_loader_pin(struct afz_loader *l, void **ret_at, uint64_t *ret_bytes)
{
        if (l->pid != getpid())
                return -EPERM;
        uint64_t bytes = l->plan.batches * l->needs.batch_bytes;
        pthread_mutex_lock(&l->lock);
        l->is_pinned = true;
        afz_arena_keep_from_children(&l->arena, l->batches_at, bytes);
        pthread_mutex_unlock(&l->lock);
        *ret_at = l->arena.at + l->batches_at;
        *ret_bytes = bytes;
        return 0;
}

static bool release_copy(struct afz_loader *l, uint64_t lease)
{
        for (struct afz_copy **at = &l->copies; *at; at = &(*at)->next)
                if ((*at)->lease == lease) {
                        struct afz_copy *copy = *at;
                        *at = copy->next;
                        free(copy->data);
                        free(copy);
                        return true;
                }
        return false;
}

void afz_loader_release(struct afz_loader *l, uint64_t lease)
{
        uint64_t number = lease & LEASE_COPY;
        bool is_ours = false;
        if (!l || l->pid != getpid())
                return;
        pthread_mutex_lock(&l->lock);
        if (number == LEASE_COPY)
                is_ours = release_copy(l, lease);
        else if (number < l->plan.batches && lease && l->buffer[number].lease == lease) {
                free_buffer(l, (uint32_t)number);
                is_ours = true;
        }
        l->held -= is_ours;
        bool is_last = is_ours && l->is_closed && l->held == 0;
        pthread_mutex_unlock(&l->lock);
        if (is_last)
                afz_loader_free(l);
}

void afz_batches_drop(struct afz_loader *l)
{
        for (uint32_t i = 0; i < l->plan.batches; i++)
                if (l->buffer[i].state == AFZ_BUFFER_READY ||
                    l->buffer[i].state == AFZ_BUFFER_FILLING)
                        free_buffer(l, i);
        l->entries = l->entry_first = 0;
}

/* ---- less ---- */

static uint64_t bytes_of(const struct afz_loader *l, const struct afz_plan *plan)
{
        return l->needs.index_bytes + plan->threads * l->needs.scratch_bytes +
               plan->batches * l->needs.batch_bytes +
               plan->slots * (l->needs.slot_bytes + l->needs.table_bytes);
}

int afz_batches_allow(struct afz_loader *l, uint64_t budget_bytes)
{
        struct afz_plan plan;
        uint64_t most = l->options.budget_bytes, floor = l->plan.floor_bytes;
        uint64_t within = budget_bytes < floor ? floor : budget_bytes > most ? most : budget_bytes;
        int r = afz_plan_make(&l->needs, within, &plan);
        if (r < 0)
                return r;
        plan.batches = plan.batches < l->plan.batches ? plan.batches : l->plan.batches;
        plan.threads = plan.threads < l->plan.threads ? plan.threads : l->plan.threads;
        /* Fewer batches may leave more: not in this arena. And groups of another size are another
         * order, which one rank alone must not have. */
        if (plan.slots >= l->plan.slots || l->options.ranks > 1) {
                plan.slots = l->plan.slots;
                plan.group = l->plan.group;
                plan.is_whole = l->plan.is_whole;
        }
        l->now = plan;
        l->asked_bytes = budget_bytes;
        if (l->active > plan.threads)
                l->active = plan.threads;
        for (uint32_t i = plan.batches; i < l->plan.batches; i++)
                if (l->buffer[i].state == AFZ_BUFFER_FREE)
                        free_buffer(l, i);
        return budget_bytes < floor || bytes_of(l, &plan) > budget_bytes ? -ENOSPC : 0;
}

/* It can be made again: nobody is at it, and what it is made of is there or still to come. */
static bool is_made_again(struct afz_loader *l, const struct afz_buffer *buffer)
{
        return buffer->pieces == 0 &&
               (buffer->next == buffer->from || afz_groups_ready(l, buffer->epoch, buffer->from));
}

/* The first entry of those ahead that are to be made again: it is where there shall be nothing any
 * more, or has to do with a group that could go. All that come behind it are made again with it. */
static uint32_t first_to_give(struct afz_loader *l)
{
        const struct afz_group *group = afz_groups_too_many(l);
        uint32_t first = l->entries;
        for (uint32_t i = l->entries; i-- > 0;) {
                int number = l->entry[(l->entry_first + i) % AFZ_ENTRIES];
                if (number < 0)
                        continue; /* the end of an epoch, which comes again by itself */
                const struct afz_buffer *buffer = &l->buffer[number];
                if (!is_made_again(l, buffer))
                        break;
                if ((uint32_t)number >= l->now.batches ||
                    (group && afz_group_is_reached(group, buffer->epoch, buffer->end)))
                        first = i;
        }
        return first;
}

static void give_ahead(struct afz_loader *l)
{
        uint32_t first = first_to_give(l);
        if (first == l->entries)
                return;
        const struct afz_buffer *buffer =
                &l->buffer[l->entry[(l->entry_first + first) % AFZ_ENTRIES]];
        l->at_epoch = buffer->epoch;
        l->at = buffer->begin;
        l->at_batches = buffer->index;
        while (l->entries > first) {
                int number = l->entry[(l->entry_first + --l->entries) % AFZ_ENTRIES];
                if (number >= 0)
                        free_buffer(l, (uint32_t)number);
        }
}

/* At once what can be, for who asks is short of memory now; the rest with the group that batches
 * are made of. */
static void give_at_once(struct afz_loader *l, uint64_t group_before)
{
        give_ahead(l);
        afz_groups_give(l, group_before);
        afz_pool_give(l);
        pthread_cond_signal(&l->gather);
}

int afz_loader_ask(struct afz_loader *l, uint64_t budget_bytes)
{
        if (l->pid != getpid())
                return -EPERM;
        pthread_mutex_lock(&l->lock);
        uint64_t before = bytes_of(l, &l->now), group = l->now.group;
        int r = afz_batches_allow(l, budget_bytes);
        if (bytes_of(l, &l->now) < before)
                give_at_once(l, group);
        else
                afz_groups_change(l, group);
        pthread_mutex_unlock(&l->lock);
        return r;
}
