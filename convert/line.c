/* From the source to the target. Threads do all the same: take the next batch, which is a chunk of
 * each array, pack it, wait for their turn, put it down. Reading is in order under one lock,
 * writing in order under another, packing side by side: what comes out does not depend on their
 * number. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "convert.h"
#include "pack.h"
#include "quantity.h"
#include "room.h"

enum {
        THREADS_MAX = 6, /* each holds a batch, and a loader leases up to AFZ_LEASES_MAX of them */
        LOOK_MS = 100,   /* how soon a signal is seen, and how often it is shown how things stand */
        BATCH_PART = 4,  /* of the loader's budget go into batches */
};

struct line {
        const atomic_int *is_stopping;
        struct afz_loader *loader;
        struct afz_target *target;
        const struct afz_layout *layout;
        uint64_t first; /* chunk */

        pthread_mutex_t reading;
        uint64_t taken; /* chunks */
        bool is_over;

        pthread_mutex_t writing; /* all from here on */
        pthread_cond_t moved;
        uint64_t written; /* chunks */
        uint32_t running; /* threads */
        enum afz_end end;
        struct afz_outcome *outcome;
};

struct worker {
        struct line *line;
        struct afz_packer *packer;
        pthread_t thread;
};

struct packed {
        const uint8_t *at;
        uint64_t bytes;
};

/* ---- reading ---- */

static bool has_ended(struct line *line)
{
        pthread_mutex_lock(&line->writing);
        bool is = line->end != AFZ_END_GOOD;
        pthread_mutex_unlock(&line->writing);
        return is;
}

/* 1: a batch; 0: there is none, or there is to be none; else an error. Under `reading`. */
static int next_batch(struct line *line, struct afz_batch *ret, char *why)
{
        while (!line->is_over && !*line->is_stopping && !has_ended(line)) {
                int r = afz_loader_wait(line->loader, LOOK_MS);
                if (r > 0)
                        r = afz_loader_next(line->loader, ret, why);
                else if (r == 0)
                        continue;
                line->is_over = r <= 0;
                return r;
        }
        return 0;
}

static int take(struct line *line, struct afz_batch *ret, uint64_t *ret_number, char *why)
{
        pthread_mutex_lock(&line->reading);
        int r = next_batch(line, ret, why);
        if (r > 0)
                *ret_number = line->taken++;
        pthread_mutex_unlock(&line->reading);
        return r;
}

/* ---- packing ---- */

static int pack(struct worker *worker, const struct afz_batch *batch, struct packed *ret)
{
        const struct afz_outcome *o = worker->line->outcome;
        const struct afz_layout *layout = worker->line->layout;
        afz_packer_empty(worker->packer);
        for (uint32_t i = 0; i < o->arrays; i++) {
                uint64_t each = o->array[i].field.bytes;
                int r = afz_pack(worker->packer, batch->data[i], batch->count * each,
                                 layout->chunk_samples * each, &ret[i].at, &ret[i].bytes);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- writing ---- */

static enum afz_end failed_writing(struct line *line, int error)
{
        static const struct {
                int error;
                const char *what, *then;
        } rows[] = {
                {-ENOSPC, "the disk is full", " when there is room"},
                {-EDQUOT, "your share of the disk is full", " when there is room"},
                {-EFBIG, "files may not become so large here (ulimit -f)", ""},
        };
        uint64_t done = afz_layout_samples_before(line->layout, line->target->done);
        const char *what = strerror(-error), *then = "";
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                if (rows[i].error == error)
                        what = rows[i].what, then = rows[i].then;
        return afz_end_with(line->outcome, AFZ_END_OWN,
                            "%s; %.0f %% of the copy is done, and the same command goes on from "
                            "there%s",
                            what, 100 * (double)done / (double)line->layout->samples, then);
}

/* The chunk behind the last one; ends a shard that is full. Under `writing`. */
static int put(struct line *line, const struct packed *packed, uint64_t samples)
{
        struct afz_target *target = line->target;
        uint64_t shard = line->written / line->layout->shard_chunks;
        for (uint32_t i = 0; i < target->arrays; i++) {
                int r = afz_array_put(&target->array[i], packed[i].at, packed[i].bytes);
                if (r < 0)
                        return r;
                line->outcome->disk_bytes += packed[i].bytes;
        }
        line->outcome->done_samples += samples;
        line->written++;
        if (line->written % line->layout->shard_chunks && line->written < line->layout->chunks)
                return 0;
        for (uint32_t i = 0; i < target->arrays; i++) {
                int r = afz_array_end_shard(&target->array[i], shard);
                if (r < 0)
                        return r;
                line->outcome->disk_bytes += afz_array_index_bytes(line->layout);
        }
        return afz_target_keep(target, shard + 1);
}

static enum afz_end put_in_turn(struct line *line, uint64_t number, const struct packed *packed,
                                uint64_t samples)
{
        pthread_mutex_lock(&line->writing);
        while (line->written != line->first + number && line->end == AFZ_END_GOOD)
                pthread_cond_wait(&line->moved, &line->writing);
        int r = line->end == AFZ_END_GOOD ? put(line, packed, samples) : 0;
        if (r < 0)
                line->end = failed_writing(line, r);
        enum afz_end end = line->end;
        pthread_cond_broadcast(&line->moved);
        pthread_mutex_unlock(&line->writing);
        return end;
}

static void end_for(struct line *line, int error, const char *why)
{
        pthread_mutex_lock(&line->writing);
        if (line->end == AFZ_END_GOOD)
                line->end = afz_source_failed(line->outcome, error, why);
        pthread_cond_broadcast(&line->moved);
        pthread_mutex_unlock(&line->writing);
}

/* ---- threads ---- */

static void *work(void *argument)
{
        struct worker *worker = argument;
        struct line *line = worker->line;
        struct packed packed[AFZ_FIELDS_MAX];
        struct afz_batch batch;
        char why[AFZ_WHY_MAX] = "";
        uint64_t number;
        int r;
        while ((r = take(line, &batch, &number, why)) > 0) {
                r = pack(worker, &batch, packed);
                afz_loader_release(line->loader, batch.lease);
                if (r < 0)
                        snprintf(why, sizeof why, "no memory to pack a chunk in");
                if (r < 0 || put_in_turn(line, number, packed, batch.count) != AFZ_END_GOOD)
                        break;
        }
        if (r < 0)
                end_for(line, r, why);
        pthread_mutex_lock(&line->writing);
        line->running--;
        pthread_cond_broadcast(&line->moved);
        pthread_mutex_unlock(&line->writing);
        return NULL;
}

/* Shows how it stands until nobody works any more. */
static void watch(struct line *line, afz_show *show, void *about)
{
        pthread_mutex_lock(&line->writing);
        while (line->running > 0) {
                struct timespec until;
                clock_gettime(CLOCK_MONOTONIC, &until);
                until.tv_nsec += LOOK_MS * 1000000;
                if (until.tv_nsec >= 1000000000)
                        until.tv_sec++, until.tv_nsec -= 1000000000;
                while (line->running > 0 &&
                       pthread_cond_timedwait(&line->moved, &line->writing, &until) == 0)
                        ;
                struct afz_outcome now = *line->outcome;
                pthread_mutex_unlock(&line->writing);
                show(&now, about);
                pthread_mutex_lock(&line->writing);
        }
        pthread_mutex_unlock(&line->writing);
}

static void line_init(struct line *line)
{
        pthread_condattr_t monotonic;
        pthread_mutex_init(&line->reading, NULL);
        pthread_mutex_init(&line->writing, NULL);
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&line->moved, &monotonic);
        pthread_condattr_destroy(&monotonic);
}

static void line_free(struct line *line)
{
        pthread_mutex_destroy(&line->reading);
        pthread_mutex_destroy(&line->writing);
        pthread_cond_destroy(&line->moved);
}

static enum afz_end run_threads(struct line *line, struct worker *worker, uint32_t count,
                                afz_show *show, void *about)
{
        uint32_t started = 0;
        line->running = count;
        for (; started < count; started++)
                if (pthread_create(&worker[started].thread, NULL, work, &worker[started]) != 0)
                        break;
        pthread_mutex_lock(&line->writing);
        line->running -= count - started;
        if (started == 0)
                line->end = afz_end_with(line->outcome, AFZ_END_OWN, "no thread can be started");
        pthread_mutex_unlock(&line->writing);
        watch(line, show, about);
        for (uint32_t i = 0; i < started; i++)
                pthread_join(worker[i].thread, NULL);
        if (line->end == AFZ_END_GOOD && line->written < line->layout->chunks)
                return *line->is_stopping ? AFZ_END_STOPPED
                                          : afz_end_with(line->outcome, AFZ_END_BAD,
                                                         "the source ended before its last sample");
        return line->end;
}

/* ---- how many ---- */

/* As many as there are cores, while packing leaves the loader most of the budget and their batches
 * are a quarter of that. */
static uint32_t packers_for(const struct afz_wish *wish, const struct afz_outcome *o,
                            struct worker worker[THREADS_MAX], uint64_t *ret_own_bytes)
{
        uint64_t chunk = o->layout.chunk_samples * o->layout.sample_bytes, largest = 0, room = 0;
        uint32_t count = 0, cores = afz_room_cores();
        uint32_t most = cores < THREADS_MAX ? cores : THREADS_MAX;
        uint64_t own =
                chunk + o->arrays * afz_array_index_bytes(&o->layout); /* the last chunk, indexes */
        for (uint32_t i = 0; i < o->arrays; i++) {
                uint64_t bytes = o->array[i].field.bytes * o->layout.chunk_samples;
                largest = bytes > largest ? bytes : largest;
                room += afz_pack_most_bytes(bytes);
        }
        while (count < most) {
                struct afz_packer *packer = afz_packer_new(wish->level, largest, room);
                uint64_t each = packer ? afz_packer_bytes(packer) : 0;
                if (!packer || (count > 0 &&
                                (own + each > wish->budget_bytes / 4 ||
                                 (count + 2) * chunk > (wish->budget_bytes - own) / BATCH_PART))) {
                        afz_packer_free(packer);
                        break;
                }
                worker[count++].packer = packer;
                own += each;
        }
        *ret_own_bytes = own;
        return count;
}

static void free_packers(struct worker worker[THREADS_MAX])
{
        for (uint32_t i = 0; i < THREADS_MAX; i++)
                afz_packer_free(worker[i].packer);
}

/* Who packs, and what they take from; all of it within the budget. */
static enum afz_end prepare(const struct afz_wish *wish, struct afz_outcome *outcome,
                            struct worker worker[THREADS_MAX], uint32_t *ret_count,
                            struct afz_loader **ret)
{
        uint64_t own_bytes;
        *ret_count = packers_for(wish, outcome, worker, &own_bytes);
        if (*ret_count == 0)
                return afz_end_with(outcome, AFZ_END_OWN, "no memory to pack chunks in");
        return afz_source_open(wish, outcome, outcome->begun_samples, own_bytes, ret);
}

enum afz_end afz_line_check(const struct afz_wish *wish, struct afz_outcome *outcome)
{
        struct worker worker[THREADS_MAX] = {0};
        struct afz_loader *loader = NULL;
        uint32_t count;
        enum afz_end end = prepare(wish, outcome, worker, &count, &loader);
        afz_loader_close(loader);
        free_packers(worker);
        return end;
}

enum afz_end afz_line_run(const struct afz_wish *wish, const atomic_int *is_stopping,
                          afz_show *show, void *about, struct afz_target *target,
                          struct afz_outcome *outcome)
{
        struct worker worker[THREADS_MAX] = {0};
        uint64_t first = target->done * outcome->layout.shard_chunks;
        struct line line = {.is_stopping = is_stopping,
                            .target = target,
                            .layout = &outcome->layout,
                            .first = first,
                            .written = first,
                            .outcome = outcome};
        uint32_t count;
        enum afz_end end = prepare(wish, outcome, worker, &count, &line.loader);
        if (end == AFZ_END_GOOD) {
                line_init(&line);
                for (uint32_t i = 0; i < count; i++)
                        worker[i].line = &line;
                end = run_threads(&line, worker, count, show, about);
                afz_loader_close(line.loader);
                line_free(&line);
        }
        free_packers(worker);
        return end;
}
