/* Threads that load chunks. How many of them work is found by measuring: as many as there are
 * cores, and more while they mostly wait for the disk. That a thread had to wait is told by its
 * voluntary context switches; its time would also tell of others that want the core. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "now.h"
#include "parts.h"
#include "room.h"

enum {
        LOOK_LOADS = 16,       /* of all workers, before their number is looked at again */
        SELDOM_PART = 4,       /* less than one load in so many waits: the data are in memory */
        JOB_BYTES = 128 << 10, /* chunks that are smaller are taken several at a time, */
        JOB_PART = 4, /* but of a worker's share of what is left, only one part in so many */
};

/* Some chunks of a group. */
struct job {
        struct afz_group *group;
        uint32_t from, to;
};

struct chunk {
        uint64_t epoch, slot, first;
        uint32_t count;
};

/* ---- one chunk, without the lock ---- */

/* A run that may cross chunks of this dataset, in pieces that do not. */
static void load_run(struct afz_loader *l, struct afz_worker *worker, uint32_t which,
                     uint32_t field, const struct chunk *chunk, struct afz_group *bad)
{
        struct afz_dataset *d = &l->dataset[which];
        uint8_t *slot = afz_slot_at(l, chunk->slot);
        for (uint32_t done = 0; done < chunk->count;) {
                uint64_t first = l->options.start + chunk->first + done;
                uint64_t left = d->chunk_samples - first % d->chunk_samples;
                struct afz_load load = {
                        .first = first,
                        .count = left < chunk->count - done ? (uint32_t)left : chunk->count - done,
                        .draw = afz_mix(l->options.seed, chunk->epoch, UINT64_C(0x64726177)),
                        .bad = slot + l->slot_bad_at + done,
                };
                char why[AFZ_WHY_MAX] = "";
                for (uint32_t i = 0; i < d->fields; i++)
                        load.field[i] =
                                slot + l->slot_field_at[field + i] + done * d->field[i].bytes;
                int r = d->format->load(d, &load, &worker->scratch[which], why);
                if (r < 0)
                        memset(load.bad, 1, load.count);
                if ((r < 0 || why[0]) && first < bad->bad_sample) {
                        bad->bad_sample = first;
                        bad->error = r < 0 ? r : -EBADMSG;
                        memcpy(bad->why, why, sizeof bad->why);
                }
                done += load.count;
        }
}

static void load_chunk(struct afz_loader *l, struct afz_worker *worker, const struct chunk *chunk,
                       struct afz_group *bad)
{
        uint32_t field = 0;
        memset(afz_slot_at(l, chunk->slot) + l->slot_bad_at, 0, chunk->count);
        for (uint32_t i = 0; i < l->datasets; i++) {
                load_run(l, worker, i, field, chunk, bad);
                field += l->dataset[i].fields;
        }
}

/* What is kept has to do for all epochs. */
static bool is_wanted(const struct afz_loader *l, const struct afz_group *group, uint32_t i,
                      uint64_t number)
{
        if (!l->order.chosen)
                return true;
        uint64_t from = number * l->order.chunk_samples;
        return group->is_kept ? afz_chosen_mass(l->order.chosen, from,
                                                from + afz_order_chunk_samples(&l->order, number))
                              : group->chosen[i].before < group->chosen[i + 1].before;
}

/* Returns how many samples. */
static uint64_t load_job(struct afz_loader *l, struct afz_worker *worker, const struct job *job,
                         struct afz_group *bad)
{
        const struct afz_group *group = job->group;
        uint64_t samples = 0;
        for (uint32_t i = job->from; i < job->to; i++) {
                /* What is kept lies in the order of the data, and is read in it. */
                uint64_t number = i;
                if (!group->is_kept)
                        number = afz_permutation_at(&group->epoch_chunks, group->order.first + i);
                if (!is_wanted(l, group, i, number))
                        continue;
                struct chunk chunk = {
                        .epoch = group->epoch,
                        .slot = group->is_kept ? i : group->where[i],
                        .first = number * l->order.chunk_samples,
                        .count = afz_order_chunk_samples(&l->order, number),
                };
                load_chunk(l, worker, &chunk, bad);
                samples += chunk.count;
        }
        return samples;
}

/* ---- with it ---- */

static uint32_t share_of(const struct afz_loader *l, uint32_t left)
{
        uint64_t fit = JOB_BYTES / l->needs.slot_bytes, fair = left / (JOB_PART * l->active);
        uint64_t most = fit < fair ? fit : fair;
        return most > 1 ? (uint32_t)most : 1;
}

static bool take(struct afz_loader *l, const struct afz_worker *worker, struct job *ret)
{
        if (l->is_paused || worker->number >= l->active)
                return false;
        for (uint32_t i = 0; i < l->queued; i++) {
                struct afz_group *group = l->queue[i];
                uint32_t left = group->order.chunks - group->taken;
                if (group->state != AFZ_GROUP_LOADING || left == 0)
                        continue;
                *ret = (struct job){.group = group, .from = group->taken};
                group->taken += share_of(l, left);
                ret->to = group->taken;
                return true;
        }
        return false;
}

static void look(struct afz_loader *l, uint64_t waits)
{
        uint32_t most = l->now.threads, few = l->cores < most ? l->cores : most;
        l->measured++;
        l->measured_waits += waits;
        l->sums.loads++;
        l->sums.load_waits += waits;
        if (l->options.threads || l->measured < LOOK_LOADS)
                return;
        if (l->measured_waits >= l->measured && l->active < most) {
                l->active = 2 * l->active < most ? 2 * l->active : most;
                pthread_cond_broadcast(&l->work);
        } else if (l->measured_waits < l->measured / SELDOM_PART && l->active > few) {
                l->active = few;
        }
        l->measured = l->measured_waits = 0;
}

void afz_pool_settle(struct afz_loader *l, uint64_t now_ns)
{
        if (l->busy > 0)
                l->sums.loading_ns += now_ns - l->settled_ns;
        l->settled_ns = now_ns;
}

static void count(struct afz_loader *l, struct afz_worker *worker, uint64_t samples,
                  uint64_t took_ns)
{
        uint64_t read_ns = 0;
        for (uint32_t i = 0; i < l->datasets; i++) {
                read_ns += worker->scratch[i].read_ns;
                l->sums.read_bytes += worker->scratch[i].read_bytes;
                l->sums.decode_bytes += samples * l->dataset[i].sample_bytes;
                worker->scratch[i].read_ns = worker->scratch[i].read_bytes = 0;
        }
        l->sums.read_ns += read_ns;
        l->sums.decode_ns += took_ns > read_ns ? took_ns - read_ns : 0;
        l->sums.loaded += samples;
}

static void finish(struct afz_loader *l, const struct job *job, const struct afz_group *bad)
{
        struct afz_group *group = job->group;
        if (bad->bad_sample < group->bad_sample) {
                group->bad_sample = bad->bad_sample;
                group->error = bad->error;
                memcpy(group->why, bad->why, sizeof group->why);
        }
        group->done += job->to - job->from;
        if (group->state == AFZ_GROUP_DROPPED) {
                if (group->done == group->taken) {
                        group->state = AFZ_GROUP_FREE;
                        afz_groups_plan(l);
                }
        } else if (group->done == group->order.chunks) {
                group->state = AFZ_GROUP_READY;
                l->is_loaded |= group->is_kept;
                afz_groups_advance(l); /* it may be that nothing of it comes to this rank */
                pthread_cond_signal(&l->gather);
                pthread_cond_signal(&l->ready); /* who waits for a batch helps to make it */
        }
}

static uint64_t count_waits(void)
{
        struct rusage usage;
        return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nvcsw : 0;
}

static void one(struct afz_loader *l, struct afz_worker *worker, const struct job *job)
{
        struct afz_group bad = {.bad_sample = UINT64_MAX};
        uint64_t began = afz_now_ns(), waits = count_waits();
        uint64_t samples = load_job(l, worker, job, &bad);
        uint64_t took = afz_now_ns() - began;
        waits = count_waits() - waits;
        pthread_mutex_lock(&l->lock);
        count(l, worker, samples, took);
        look(l, waits);
        finish(l, job, &bad);
}

/* ---- less ---- */

static void give_scratch(struct afz_loader *l, struct afz_worker *worker)
{
        uint64_t bytes = l->raw_bytes + l->decode_bytes;
        if (worker->is_given)
                return;
        afz_arena_give(&l->arena, l->scratch_at + worker->number * bytes, bytes);
        worker->is_given = true;
}

void afz_pool_give(struct afz_loader *l)
{
        for (uint32_t i = 0; i < l->started; i++)
                if (!l->worker[i].is_busy)
                        give_scratch(l, &l->worker[i]);
}

/* ---- the threads ---- */

static void *work(void *argument)
{
        struct afz_worker *worker = argument;
        struct afz_loader *l = worker->loader;
        struct job job;
        pthread_mutex_lock(&l->lock);
        while (!l->is_quitting) {
                if (!take(l, worker, &job)) {
                        if (worker->number >= l->now.threads) /* when less was asked for */
                                give_scratch(l, worker);
                        pthread_cond_wait(&l->work, &l->lock);
                        continue;
                }
                worker->is_given = false;
                worker->is_busy = true;
                if (l->busy == 0)
                        afz_pool_settle(l, afz_now_ns());
                l->busy++;
                pthread_mutex_unlock(&l->lock);
                one(l, worker, &job); /* comes back with the lock */
                worker->is_busy = false;
                if (l->busy == 1)
                        afz_pool_settle(l, afz_now_ns());
                if (--l->busy == 0)
                        pthread_cond_signal(&l->quiet);
        }
        pthread_mutex_unlock(&l->lock);
        return NULL;
}

int afz_pool_start(struct afz_loader *l)
{
        for (uint32_t d = 0; d < l->datasets; d++)
                l->dataset[d].is_passing =
                        l->options.ranks < 2 && afz_room_is_scarce(l->dataset[d].disk_bytes);
        for (uint32_t i = 0; i < l->plan.threads; i++) {
                struct afz_worker *worker = &l->worker[i];
                uint8_t *memory =
                        l->arena.at + l->scratch_at + i * (l->raw_bytes + l->decode_bytes);
                *worker = (struct afz_worker){.loader = l, .number = i};
                worker->scratch = calloc(l->datasets, sizeof *worker->scratch);
                if (!worker->scratch)
                        return -ENOMEM;
                for (uint32_t d = 0; d < l->datasets; d++)
                        worker->scratch[d] = (struct afz_scratch){
                                .raw = memory,
                                .raw_bytes = l->raw_bytes,
                                .decode = memory + l->raw_bytes,
                                .decode_bytes = l->decode_bytes,
                                .is_passing = l->dataset[d].is_passing,
                        };
                int r = afz_thread_start(&worker->thread, work, worker, "afz-load");
                if (r < 0) {
                        free(worker->scratch);
                        return r;
                }
                l->started++;
        }
        return 0;
}

void afz_pool_stop(struct afz_loader *l)
{
        for (uint32_t i = 0; i < l->started; i++) {
                pthread_join(l->worker[i].thread, NULL);
                for (uint32_t d = 0; d < l->datasets; d++)
                        if (l->dataset[d].format->forget)
                                l->dataset[d].format->forget(&l->worker[i].scratch[d]);
                free(l->worker[i].scratch);
        }
        l->started = 0;
}
