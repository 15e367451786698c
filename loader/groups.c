/* Which chunks are in memory. The first of two groups lies at the lower end of the slots, the other
 * at the upper one; so each may have as many as the other leaves, and what both leave is in one
 * piece. */
#include <string.h>

#include "parts.h"

static uint64_t slots_of(const struct afz_group *group)
{
        return group->state == AFZ_GROUP_FREE ? 0 : group->order.chunks;
}

static bool is_before(uint64_t epoch, uint64_t first, const struct afz_old_size *old)
{
        return epoch < old->epoch || (epoch == old->epoch && first < old->first);
}

uint64_t afz_groups_size(const struct afz_loader *l, uint64_t epoch, uint64_t first)
{
        uint64_t left = l->order.chunks - first, size = l->now.group;
        for (uint32_t i = l->olds; i-- > 0;)
                if (is_before(epoch, first, &l->old[i]))
                        size = l->old[i].size;
        if (size > l->plan.slots) /* of a loader that had more */
                size = l->now.group;
        return size < left ? size : left;
}

/* How many chunks the next group is to have; 0: it has to wait for room. Not fewer where there is
 * room for some: its size, and the order, would depend on what was there before. */
static uint64_t next_size(struct afz_loader *l)
{
        uint64_t used = 0;
        uint64_t want = l->forced ? l->forced : afz_groups_size(l, l->plan_epoch, l->plan_first);
        for (int i = 0; i < AFZ_GROUPS; i++) {
                used += slots_of(&l->group[i]);
                if (l->group[i].state == AFZ_GROUP_DROPPED)
                        return 0;
        }
        /* A group that was made with more room than is allowed now still fits the arena. */
        if (used == 0)
                return want < l->plan.slots ? want : l->plan.slots;
        if (l->now.is_whole && l->plan_first == 0)
                return 0;
        return used + want <= l->now.slots ? want : 0;
}

static void give_back(struct afz_loader *l)
{
        uint64_t low = slots_of(&l->group[0]), high = l->plan.slots - slots_of(&l->group[1]);
        if (l->now.slots < l->plan.slots && low < high)
                afz_arena_give(&l->arena, l->slots_at + low * l->needs.slot_bytes,
                               (high - low) * l->needs.slot_bytes);
}

static void plan_from(struct afz_loader *l, uint64_t epoch, uint64_t first)
{
        struct afz_permutation chunks;
        afz_order_epoch(&l->order, epoch, &chunks);
        l->plan_epoch = epoch;
        l->plan_first = first;
        l->plan_mass = afz_order_mass(&l->order, &chunks, first);
}

static void plan_one(struct afz_loader *l, struct afz_group *group, uint32_t chunks)
{
        bool is_low = group == &l->group[0];
        uint32_t base = is_low ? 0 : (uint32_t)(l->plan.slots - chunks);
        group->is_kept = l->now.is_whole && chunks == l->order.chunks && is_low;
        group->epoch = l->plan_epoch;
        group->taken = group->done = 0;
        group->error = group->is_kept && l->is_loaded ? group->error : 0;
        afz_order_epoch(&l->order, group->epoch, &group->epoch_chunks);
        afz_order_group(&l->order, group->epoch, &group->epoch_chunks, l->plan_first, chunks,
                        &group->order);
        if (l->order.chosen)
                l->plan_mass = afz_order_choose(&l->order, group->epoch, &group->epoch_chunks,
                                                l->plan_mass, group->chosen, &group->order);
        for (uint32_t i = 0; i < chunks; i++)
                group->where[i] = group->is_kept
                                          ? (uint32_t)afz_permutation_at(&group->epoch_chunks, i)
                                          : base + i;
        group->state = group->is_kept && l->is_loaded ? AFZ_GROUP_READY : AFZ_GROUP_LOADING;
        if (group->state == AFZ_GROUP_LOADING) {
                group->bad_sample = UINT64_MAX;
                l->is_loaded = false;
        }
}

void afz_groups_plan(struct afz_loader *l)
{
        while (l->queued < AFZ_GROUPS) {
                struct afz_group *group = &l->group[l->group[0].state != AFZ_GROUP_FREE];
                uint64_t chunks = group->state == AFZ_GROUP_FREE ? next_size(l) : 0;
                if (chunks == 0)
                        break;
                plan_one(l, group, (uint32_t)chunks);
                l->queue[l->queued++] = group;
                l->forced = 0;
                l->plan_first += chunks;
                if (l->plan_first == l->order.chunks)
                        plan_from(l, l->plan_epoch + 1, 0);
        }
        give_back(l);
        pthread_cond_broadcast(&l->work);
        pthread_cond_signal(&l->gather);
}

/* ---- less ---- */

const struct afz_group *afz_groups_too_many(const struct afz_loader *l)
{
        if (l->queued < AFZ_GROUPS || slots_of(l->queue[0]) + slots_of(l->queue[1]) <= l->now.slots)
                return NULL;
        return l->queue[1];
}

bool afz_group_is_reached(const struct afz_group *group, uint64_t epoch, uint64_t at)
{
        return epoch > group->epoch || (epoch == group->epoch && at >= group->order.start);
}

/* Some of it is in a batch, or a state says how many chunks it has: that of a batch that ends at
 * its start does. */
static bool is_used(const struct afz_loader *l, const struct afz_group *group)
{
        if (group->readers > 0 || l->place.epoch > group->epoch ||
            (l->place.epoch == group->epoch && l->place.first >= group->order.first))
                return true;
        for (uint32_t i = 0; i < l->plan.batches; i++) {
                const struct afz_buffer *b = &l->buffer[i];
                if ((b->state == AFZ_BUFFER_READY &&
                     afz_group_is_reached(group, b->epoch, b->end)) ||
                    (b->state == AFZ_BUFFER_FILLING && b->next > b->from &&
                     afz_group_is_reached(group, b->epoch, b->next)))
                        return true;
        }
        return false;
}

void afz_groups_change(struct afz_loader *l, uint64_t before)
{
        uint64_t epoch = l->plan_epoch, first = l->plan_first;
        while (l->olds > 0 && !is_before(l->old[l->olds - 1].epoch, l->old[l->olds - 1].first,
                                         &(struct afz_old_size){epoch, first, 0}))
                before = l->old[--l->olds].size;
        if (before == l->now.group)
                return;
        if (l->olds == AFZ_SIZES_MAX) /* asked so often within the batches that are made ahead */
                memmove(l->old, l->old + 1, --l->olds * sizeof *l->old);
        l->old[l->olds++] = (struct afz_old_size){epoch, first, before};
}

void afz_groups_give(struct afz_loader *l, uint64_t before)
{
        const struct afz_group *second = afz_groups_too_many(l);
        if (second && !is_used(l, second)) {
                struct afz_group *group = l->queue[--l->queued];
                group->state = group->taken > group->done ? AFZ_GROUP_DROPPED : AFZ_GROUP_FREE;
                plan_from(l, group->epoch, group->order.first);
        }
        afz_groups_change(l, before);
        afz_groups_plan(l);
}

/* ---- on and on ---- */

static uint64_t end_of(const struct afz_group *group)
{
        return group->order.start + group->order.samples;
}

/* Nobody loads it or copies from it, and no batch will be made of it. */
static bool is_done_with(const struct afz_loader *l, const struct afz_group *group)
{
        if (group->state != AFZ_GROUP_READY || group->readers > 0 || group->epoch > l->at_epoch ||
            (group->epoch == l->at_epoch && l->at < end_of(group)))
                return false;
        for (uint32_t i = 0; i < l->plan.batches; i++) {
                const struct afz_buffer *buffer = &l->buffer[i];
                if (buffer->state == AFZ_BUFFER_FILLING && buffer->epoch == group->epoch &&
                    buffer->next < buffer->to && buffer->next < end_of(group))
                        return false;
        }
        return true;
}

/* Batches that were begun have all that they need of an epoch. */
static bool is_epoch_served(const struct afz_loader *l, uint64_t epoch)
{
        for (uint32_t i = 0; i < l->plan.batches; i++) {
                const struct afz_buffer *buffer = &l->buffer[i];
                if (buffer->state == AFZ_BUFFER_FILLING && buffer->epoch == epoch &&
                    buffer->next < buffer->to)
                        return false;
        }
        return true;
}

void afz_groups_advance(struct afz_loader *l)
{
        /* Of the last samples, which are not wanted, there are more than are in memory. */
        while (l->plan_epoch < l->at_epoch && is_epoch_served(l, l->plan_epoch))
                plan_from(l, l->plan_epoch + 1, 0);
        while (l->queued > 0 && is_done_with(l, l->queue[0])) {
                l->queue[0]->state = AFZ_GROUP_FREE;
                l->queue[0] = l->queue[1];
                l->queued--;
                afz_groups_plan(l);
        }
}

struct afz_group *afz_groups_ready(struct afz_loader *l, uint64_t epoch, uint64_t at)
{
        for (uint32_t i = 0; i < l->queued; i++) {
                struct afz_group *group = l->queue[i];
                if (group->epoch == epoch && at >= group->order.start && at < end_of(group))
                        return group->state == AFZ_GROUP_READY ? group : NULL;
        }
        return NULL;
}

void afz_groups_reset(struct afz_loader *l, uint64_t epoch, uint64_t first, uint64_t forced)
{
        for (int i = 0; i < AFZ_GROUPS; i++)
                l->group[i].state = AFZ_GROUP_FREE;
        l->queued = 0;
        plan_from(l, epoch, first);
        l->forced = forced;
        afz_groups_plan(l);
}
