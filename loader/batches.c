/* What is handed out: batches and their leases, places, figures. */
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

static bool is_forked(const struct afz_loader *l, char *why)
{
        if (l->pid == getpid())
                return false;
        afz_why(why, -EPERM,
                "this loader is its parent process's: a process that was forked cannot use it "
                "(DataLoader with "
                "num_workers=0, or a loader that is opened in the worker)");
        return true;
}

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
        if (number >= l->now.batches)
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
        *ret = batch;
        return 0;
}

static void pop(struct afz_loader *l)
{
        l->entry_first = (l->entry_first + 1) % AFZ_ENTRIES;
        l->entries--;
        wake_gatherer(l);
}

static void begin_wait(struct afz_loader *l, uint64_t now)
{
        if (!l->is_epoch_begun) {
                l->is_epoch_begun = true;
                l->epoch_sums = l->sums;
                l->returned_ns = now;
        }
}

static void wait_entry(struct afz_loader *l)
{
        uint64_t began = afz_now_ns();
        begin_wait(l, began);
        while (l->entries == 0)
                pthread_cond_wait(&l->ready, &l->lock);
        l->sums.waited_ns += afz_now_ns() - began;
        int number = l->entry[l->entry_first];
        if (number < 0)
                return;
        uint64_t since = l->buffer[number].ready_ns;
        if (since < l->returned_ns)
                since = l->returned_ns;
        l->sums.idle_ns += began > since ? began - since : 0;
}

int afz_loader_wait(struct afz_loader *l, uint32_t most_ms)
{
        if (l->pid != getpid())
                return -EPERM;
        pthread_mutex_lock(&l->lock);
        uint64_t began = afz_now_ns(), until = began + most_ms * UINT64_C(1000000);
        struct timespec end = {.tv_sec = (time_t)(until / UINT64_C(1000000000)),
                               .tv_nsec = (long)(until % UINT64_C(1000000000))};
        begin_wait(l, began);
        bool is_waiting = l->entries == 0;
        while (l->entries == 0 && pthread_cond_timedwait(&l->ready, &l->lock, &end) == 0)
                ;
        if (is_waiting) {
                uint64_t now = afz_now_ns();
                l->sums.waited_ns += now - began;
                l->returned_ns = now; /* nothing was ready before, so nothing stood idle */
        }
        int r = l->entries > 0;
        pthread_mutex_unlock(&l->lock);
        return r;
}

/* 1, 0, an error, or -EAGAIN: nothing was left of a batch, so on to the next. */
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
        } else if (buffer->count == 0) {
                r = -EAGAIN;
                free_buffer(l, (uint32_t)number);
        } else if (lease(l, (uint32_t)number, ret) < 0) {
                return afz_why(why, -ENOMEM,
                               "%llu batches are held, and there is no memory for one more",
                               (unsigned long long)l->held);
        } else if (buffer->skipped) {
                memcpy(why, buffer->why, AFZ_WHY_MAX);
        }
        l->sums.skipped += buffer->skipped;
        l->place = buffer->place;
        pop(l);
        return r;
}

int afz_loader_next(struct afz_loader *l, struct afz_batch *ret, char ret_why[AFZ_WHY_MAX])
{
        int r;
        ret_why[0] = '\0';
        if (is_forked(l, ret_why))
                return -EPERM;
        pthread_mutex_lock(&l->lock);
        do {
                wait_entry(l);
                r = give(l, ret, ret_why);
        } while (r == -EAGAIN);
        l->returned_ns = afz_now_ns();
        pthread_mutex_unlock(&l->lock);
        return r;
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

/* ---- less ---- */

static int allow(struct afz_loader *l, uint64_t budget_bytes)
{
        struct afz_plan plan;
        uint64_t most = l->options.budget_bytes, floor = l->plan.floor_bytes;
        uint64_t within = budget_bytes < floor ? floor : budget_bytes > most ? most : budget_bytes;
        int r = afz_plan_make(&l->needs, within, &plan);
        if (r < 0)
                return r;
        plan.batches = plan.batches < l->plan.batches ? plan.batches : l->plan.batches;
        plan.threads = plan.threads < l->plan.threads ? plan.threads : l->plan.threads;
        /* Fewer batches may leave more: not in this arena. */
        if (plan.slots >= l->plan.slots) {
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
        return budget_bytes < floor ? -ENOSPC : 0;
}

int afz_loader_ask(struct afz_loader *l, uint64_t budget_bytes)
{
        if (l->pid != getpid())
                return -EPERM;
        pthread_mutex_lock(&l->lock);
        int r = allow(l, budget_bytes);
        pthread_mutex_unlock(&l->lock);
        return r;
}

/* ---- places ---- */

void afz_loader_state(const struct afz_loader *l, uint8_t ret[AFZ_LOADER_STATE_BYTES])
{
        afz_place_pack(&l->place, ret);
}

static int check_place(const struct afz_loader *l, const struct afz_place *place, char *why)
{
        if (place->samples != l->samples || place->start != l->options.start)
                return afz_why(why, -EINVAL,
                               "the state is of %llu samples from %llu on, the data have %llu from "
                               "%llu on",
                               (unsigned long long)place->samples, (unsigned long long)place->start,
                               (unsigned long long)l->samples,
                               (unsigned long long)l->options.start);
        if (place->seed != l->options.seed)
                return afz_why(
                        why, -EINVAL,
                        "the state is of seed %llu, the loader of seed %llu: its order is another",
                        (unsigned long long)place->seed, (unsigned long long)l->options.seed);
        if (place->shuffle != (uint32_t)l->options.shuffle)
                return afz_why(why, -EINVAL, "the state is of another kind of shuffle");
        if (place->chunk_samples != l->order.chunk_samples)
                for (uint32_t i = 0; i < l->datasets; i++)
                        if (!l->dataset[i].is_single)
                                return afz_why(why, -EINVAL,
                                               "the state is of data in chunks of %llu samples, "
                                               "these are in chunks of %llu",
                                               (unsigned long long)place->chunk_samples,
                                               (unsigned long long)l->order.chunk_samples);
        return 0;
}

/* To the group that the place is really in: a rank may be done with its part of a batch before the
 * group is there in which the others' part ends. */
static void settle(const struct afz_loader *l, struct afz_place *place, uint64_t *ret_at)
{
        struct afz_permutation chunks;
        struct afz_group_order group = {0};
        afz_order_epoch(&l->order, place->epoch, &chunks);
        while (place->first < l->order.chunks) {
                uint64_t left = l->order.chunks - place->first;
                uint64_t size = place->group          ? place->group
                                : l->now.group < left ? l->now.group
                                                      : left;
                afz_order_group(&l->order, place->epoch, &chunks, place->first, (uint32_t)size,
                                &group);
                if (place->offset < group.samples) {
                        *ret_at = group.start + place->offset;
                        return;
                }
                place->offset -= group.samples;
                place->first += size;
                place->group = 0;
        }
        *ret_at = l->samples;
}

static void drop_entries(struct afz_loader *l)
{
        for (uint32_t i = 0; i < l->plan.batches; i++)
                if (l->buffer[i].state == AFZ_BUFFER_READY ||
                    l->buffer[i].state == AFZ_BUFFER_FILLING)
                        free_buffer(l, i);
        l->entries = l->entry_first = 0;
}

static int why_no_room(const struct afz_loader *l, const struct afz_place *place, char *why)
{
        uint64_t sample = 1, chunks = place->group ? place->group : 1, bytes; /* 1: good or bad */
        for (uint32_t i = 0; i < l->fields; i++)
                sample += l->field[i].bytes;
        if (__builtin_mul_overflow(chunks * place->chunk_samples, sample, &bytes) ||
            __builtin_add_overflow(bytes, l->slots_at, &bytes))
                bytes = UINT64_MAX;
        return afz_why(why, -ENOSPC,
                       "the state's samples were shuffled %llu chunks of %llu at a time, which "
                       "needs a budget of at least %llu MiB",
                       (unsigned long long)chunks, (unsigned long long)place->chunk_samples,
                       (unsigned long long)(bytes >> 20) + 1);
}

/* All or nothing: on an error not a thing has changed. */
static int go(struct afz_loader *l, struct afz_place place, char *why)
{
        uint64_t at;
        int r = 0;
        if (place.chunk_samples != l->order.chunk_samples)
                r = afz_loader_replan(l, place.chunk_samples, place.group);
        else if (place.group > l->plan.slots)
                r = -ENOSPC;
        if (r < 0)
                return why_no_room(l, &place, why);
        (void)allow(l, l->asked_bytes); /* a new plan is one for the whole budget */
        struct afz_place settled = place;
        settle(l, &settled, &at);
        bool is_end = settled.first == l->order.chunks;
        l->place = place;
        l->at_epoch = place.epoch;
        l->at = at;
        l->at_batches = place.batches;
        drop_entries(l);
        afz_groups_reset(l, place.epoch + is_end, is_end ? 0 : settled.first,
                         is_end ? 0 : settled.group);
        l->is_epoch_begun = false;
        return 0;
}

static int go_quietly(struct afz_loader *l, struct afz_place place, char *why)
{
        pthread_mutex_lock(&l->lock);
        l->is_paused = true;
        pthread_cond_broadcast(&l->gather);
        while (l->busy > 0 || l->is_gathering)
                pthread_cond_wait(&l->quiet, &l->lock);
        struct afz_place before = l->place;
        int r = go(l, place, why);
        if (r < 0) { /* what was on its way is made again: a batch may have been left half done */
                char unused[AFZ_WHY_MAX];
                (void)go(l, before, unused);
        }
        l->is_paused = false;
        pthread_cond_broadcast(&l->work);
        pthread_cond_broadcast(&l->gather);
        pthread_mutex_unlock(&l->lock);
        return r;
}

int afz_loader_seek(struct afz_loader *l, const uint8_t state[AFZ_LOADER_STATE_BYTES],
                    char ret_why[AFZ_WHY_MAX])
{
        struct afz_place place;
        ret_why[0] = '\0';
        if (is_forked(l, ret_why))
                return -EPERM;
        int r = afz_place_unpack(state, &place);
        if (r < 0)
                return afz_why(ret_why, r,
                               r == -EBADMSG ? "this is no state of a loader, or it is damaged"
                                             : "the state is of a newer version");
        r = check_place(l, &place, ret_why);
        return r < 0 ? r : go_quietly(l, place, ret_why);
}

int afz_loader_begin(struct afz_loader *l, uint64_t epoch, char ret_why[AFZ_WHY_MAX])
{
        ret_why[0] = '\0';
        if (is_forked(l, ret_why))
                return -EPERM;
        struct afz_place place = l->place;
        if (place.epoch == epoch && place.first == 0 && place.offset == 0)
                return 0; /* what is on its way is right */
        place.epoch = epoch;
        place.first = place.group = place.offset = place.batches = 0;
        return go_quietly(l, place, ret_why);
}

/* ---- figures ---- */

/* A child may find the lock in the hands of a thread that it does not have; nothing changes there.
 */
static bool lock_here(struct afz_loader *l)
{
        return l->pid == getpid() && pthread_mutex_lock(&l->lock) == 0;
}

void afz_loader_facts(const struct afz_loader *l, struct afz_loader_facts *ret)
{
        struct afz_loader *mine = (struct afz_loader *)l; /* for its lock */
        uint64_t batch = (uint64_t)l->options.batch * l->options.ranks;
        bool is_locked = lock_here(mine);
        uint64_t group = l->now.group * l->order.chunk_samples;
        *ret = (struct afz_loader_facts){
                .samples = l->samples,
                .batches = afz_loader_batches(l),
                .budget_bytes = l->options.budget_bytes,
                .floor_bytes = l->plan.floor_bytes,
                .group_samples = group < l->samples ? group : l->samples,
                .shuffle_quality = afz_order_quality(&l->order, l->now.group, batch),
                .fields = l->fields,
                .threads = l->active,
        };
        if (is_locked)
                pthread_mutex_unlock(&mine->lock);
        memcpy(ret->field, l->field, sizeof ret->field);
}

void afz_loader_times(const struct afz_loader *l, struct afz_loader_times *ret)
{
        struct afz_loader *mine = (struct afz_loader *)l;
        bool is_locked = lock_here(mine);
        struct afz_sums s = l->sums, b = l->epoch_sums;
        *ret = (struct afz_loader_times){
                .read_ns = s.read_ns - b.read_ns,
                .read_bytes = s.read_bytes - b.read_bytes,
                .decode_ns = s.decode_ns - b.decode_ns,
                .decode_bytes = s.decode_bytes - b.decode_bytes,
                .gather_ns = s.gather_ns - b.gather_ns,
                .waited_ns = s.waited_ns - b.waited_ns,
                .idle_ns = s.idle_ns - b.idle_ns,
                .skipped = s.skipped - b.skipped,
                .copies = s.copies - b.copies,
                .held = l->held,
        };
        if (is_locked)
                pthread_mutex_unlock(&mine->lock);
}
