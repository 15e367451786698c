/* Places in the data: where the last batch ended, and how to go on from there. */
#include <errno.h>
#include <string.h>

#include "parts.h"

static void forget_sizes(struct afz_place *place)
{
        memset(place->before, 0, sizeof place->before);
        memset(place->before_size, 0, sizeof place->before_size);
}

/* With the sizes of the groups that follow, where less was asked for. */
static struct afz_place with_sizes(const struct afz_loader *l, struct afz_place place)
{
        uint32_t n = 0;
        forget_sizes(&place);
        for (uint32_t i = 0; i < l->olds; i++) {
                const struct afz_old_size *old = &l->old[i];
                if (old->epoch < place.epoch ||
                    (old->epoch == place.epoch && old->first <= place.first))
                        continue;
                place.before[n] = (old->epoch - place.epoch) * l->order.chunks + old->first;
                place.before_size[n++] = old->size;
        }
        place.size = l->now.group < l->plan.group ? l->now.group : 0;
        return place;
}

static void take_sizes(struct afz_loader *l, const struct afz_place *place)
{
        l->olds = 0;
        for (uint32_t i = 0; i < AFZ_SIZES_MAX && place->before[i]; i++)
                l->old[l->olds++] = (struct afz_old_size){
                        .epoch = place->epoch + place->before[i] / l->order.chunks,
                        .first = place->before[i] % l->order.chunks,
                        .size = place->before_size[i],
                };
        if (place->size == 0 || place->size >= l->now.group)
                return;
        l->now.group = place->size;
        l->now.is_whole = false;
        if (l->now.slots > 2 * place->size)
                l->now.slots = 2 * place->size;
}

/* at: NULL: behind the last batch. */
static struct afz_place place_now(const struct afz_loader *l, const struct afz_place *at)
{
        struct afz_loader *mine = (struct afz_loader *)l; /* for its lock: ask() may come between */
        bool is_locked = afz_loader_lock(mine);
        struct afz_place place = with_sizes(l, at ? *at : l->place);
        if (is_locked)
                pthread_mutex_unlock(&mine->lock);
        return place;
}

void afz_loader_state(const struct afz_loader *l, uint8_t ret[AFZ_LOADER_STATE_BYTES])
{
        struct afz_place place = place_now(l, NULL);
        afz_place_pack(&place, ret);
}

void afz_loader_renew(const struct afz_loader *l, uint8_t state[AFZ_LOADER_STATE_BYTES])
{
        struct afz_place place;
        if (afz_place_unpack(state, &place) < 0 || place.chunk_samples != l->order.chunk_samples)
                return; /* of another */
        place = place_now(l, &place);
        afz_place_pack(&place, state);
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
        if (place->chosen != l->chosen.sum || place->draws != l->chosen.draws)
                return afz_why(why, -EINVAL,
                               "the state is of another subset of the data, or of other weights");
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
        uint64_t mass = afz_order_mass(&l->order, &chunks, place->first);
        while (place->first < l->order.chunks) {
                uint64_t size = place->group;
                if (size == 0)
                        size = afz_groups_size(l, place->epoch, place->first);
                afz_order_group(&l->order, place->epoch, &chunks, place->first, (uint32_t)size,
                                &group);
                if (l->order.chosen)
                        mass = afz_order_choose(&l->order, place->epoch, &chunks, mass, NULL,
                                                &group);
                if (place->offset < group.samples) {
                        *ret_at = group.start + place->offset;
                        return;
                }
                place->offset -= group.samples;
                place->first += size;
                place->group = 0;
        }
        *ret_at = afz_order_stream(&l->order);
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

/* Batches of this loader's that an epoch has before such a place: who left the state may have had
 * larger ones, or more ranks. */
static uint64_t batches_before(const struct afz_loader *l, uint64_t at)
{
        uint64_t all = (uint64_t)l->options.batch * l->options.ranks;
        uint64_t left = afz_order_stream(&l->order) - at, is_rest = left % all >= l->options.ranks;
        return afz_loader_batches(l) - left / all - (is_rest && !l->options.is_last_dropped);
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
        (void)afz_batches_allow(l, l->asked_bytes); /* a new plan is one for the whole budget */
        take_sizes(l, &place);
        struct afz_place settled = place;
        settle(l, &settled, &at);
        bool is_end = settled.first == l->order.chunks;
        place.batches = batches_before(l, at);
        l->place = place;
        l->at_epoch = place.epoch;
        l->at = at;
        l->at_batches = place.batches;
        afz_batches_drop(l);
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
        while (l->busy > 0 || l->copying > 0)
                pthread_cond_wait(&l->quiet, &l->lock);
        struct afz_place before = with_sizes(l, l->place);
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
        if (afz_loader_is_forked(l, ret_why))
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
        if (afz_loader_is_forked(l, ret_why))
                return -EPERM;
        if (epoch > INT64_MAX) /* epochs are compared, so they must not begin anew at 0 */
                return afz_why(ret_why, -EINVAL, "epoch %llu: they count from 0",
                               (unsigned long long)epoch);
        struct afz_place place = place_now(l, NULL);
        if (place.epoch == epoch && place.first == 0 && place.offset == 0)
                return 0; /* what is on its way is right */
        place.epoch = epoch;
        place.first = place.group = place.offset = place.batches = 0;
        forget_sizes(&place); /* of groups that are not gone back to */
        return go_quietly(l, place, ret_why);
}
