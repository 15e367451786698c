/* Which chunks are in memory. The first of two groups lies at the lower end of the slots, the other
 * at the upper one; so each may have as many as the other leaves, and what both leave is in one
 * piece. */
#include <string.h>

#include "parts.h"

static uint64_t slots_of(const struct afz_group *group)
{
        return group->state == AFZ_GROUP_FREE ? 0 : group->order.chunks;
}

/* How many chunks the next group is to have; 0: it has to wait for room. */
static uint64_t next_size(struct afz_loader *l)
{
        uint64_t left = l->order.chunks - l->plan_first, used = 0;
        uint64_t want = l->forced ? l->forced : l->now.group;
        for (int i = 0; i < AFZ_GROUPS; i++)
                used += slots_of(&l->group[i]);
        if (want > left)
                want = left;
        /* A group that was made with more room than is allowed now still fits the arena. */
        if (used == 0)
                return want < l->plan.slots ? want : l->plan.slots;
        if (l->now.is_whole && l->plan_first == 0)
                return 0;
        uint64_t room = used < l->now.slots ? l->now.slots - used : 0;
        if (want <= room)
                return want;
        return l->forced ? 0 : room;
}

static void give_back(struct afz_loader *l)
{
        uint64_t low = slots_of(&l->group[0]), high = l->plan.slots - slots_of(&l->group[1]);
        if (l->now.slots < l->plan.slots && low < high)
                afz_arena_give(&l->arena, l->slots_at + low * l->needs.slot_bytes,
                               (high - low) * l->needs.slot_bytes);
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
                if (l->plan_first == l->order.chunks) {
                        l->plan_first = 0;
                        l->plan_epoch++;
                }
        }
        give_back(l);
        pthread_cond_broadcast(&l->work);
        pthread_cond_signal(&l->gather);
}

static bool wait_ready(struct afz_loader *l, const struct afz_group *group)
{
        while (group->state != AFZ_GROUP_READY && !l->is_paused && !l->is_quitting)
                pthread_cond_wait(&l->gather, &l->lock);
        return !l->is_paused && !l->is_quitting;
}

/* The first of the queue is done with. */
static bool drop_first(struct afz_loader *l)
{
        if (!wait_ready(l, l->queue[0]))
                return false;
        l->queue[0]->state = AFZ_GROUP_FREE;
        l->queue[0] = l->queue[1];
        l->queued--;
        afz_groups_plan(l);
        return true;
}

struct afz_group *afz_groups_reach(struct afz_loader *l, uint64_t at)
{
        while (l->queue[0]->epoch != l->at_epoch ||
               at - l->queue[0]->order.start >= l->queue[0]->order.samples)
                if (!drop_first(l))
                        return NULL;
        return wait_ready(l, l->queue[0]) ? l->queue[0] : NULL;
}

bool afz_groups_end_epoch(struct afz_loader *l)
{
        /* Of the last samples, which are not wanted, there are more than are in memory. */
        if (l->plan_epoch == l->at_epoch) {
                l->plan_epoch++;
                l->plan_first = 0;
        }
        while (l->queued && l->queue[0]->epoch == l->at_epoch)
                if (!drop_first(l))
                        return false;
        return true;
}

void afz_groups_reset(struct afz_loader *l, uint64_t epoch, uint64_t first, uint64_t forced)
{
        for (int i = 0; i < AFZ_GROUPS; i++)
                l->group[i].state = AFZ_GROUP_FREE;
        l->queued = 0;
        l->plan_epoch = epoch;
        l->plan_first = first;
        l->forced = forced;
        afz_groups_plan(l);
}
