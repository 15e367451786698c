/* Opening and closing: datasets, the plan, the arena, the threads. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "parts.h"
#include "room.h"

#define PAGE        UINT64_C(4096)
#define LINE        UINT64_C(64) /* of the processor's cache; what frameworks want arrays to begin on */
#define SEAMS_BYTES (4 * PAGE) /* between the parts of the arena */
#define MOST_BYTES  (UINT64_C(1) << 62)

enum {
        THREADS_LEAST = 8, /* may be had, whatever the number of cores: a disk wants several
                              questions at once */
        STACK_BYTES = 512 << 10,
        SLACK_BYTES = 1 << 20, /* more than the largest chunk of flat data and its alignment */
};

static uint64_t up(uint64_t value, uint64_t to)
{
        return (value + to - 1) & ~(to - 1);
}

/* "96M", rounded up, so that what is said is enough. */
static const char *say_bytes(uint64_t bytes, char ret[32])
{
        static const char unit[] = "KMGTPE";
        int u = 0;
        uint64_t each = 1024;
        while (u < 5 && bytes >= each * 10240) {
                each *= 1024;
                u++;
        }
        snprintf(ret, 32, "%llu%c", (unsigned long long)((bytes + each - 1) / each), unit[u]);
        return ret;
}

int afz_thread_start(pthread_t *ret, void *(*function)(void *), void *argument, const char *name)
{
        static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
        pthread_attr_t attributes;
        sigset_t all, before;
        sigfillset(&all); /* but for what tells of a crash in the thread itself */
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
                sigdelset(&all, own[i]);
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int r = pthread_create(ret, &attributes, function, argument);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
        if (r == 0) {
                pthread_setname_np(*ret, name);
                /* So that one that wakes up does not take the core from the program: next() was
                 * seen to last 5 ms instead of 0.5 where cores are few. */
                pthread_setschedparam(*ret, SCHED_BATCH, &(struct sched_param){0});
        }
        return -r;
}

/* ---- what there is ---- */

static int open_one(struct afz_loader *l, const struct afz_loader_options *options, char *why)
{
        struct afz_loader_options told = *options;
        const char *path = options->paths[l->datasets];
        int r = -EMEDIUMTYPE;
        if (l->datasets > 0) { /* labels tell their format themselves where they can */
                told.format = NULL;
                r = afz_dataset_open(&l->dataset[l->datasets], path, &told, why);
        }
        if (r == -EMEDIUMTYPE)
                r = afz_dataset_open(&l->dataset[l->datasets], path, options, why);
        return r;
}

static int open_datasets(struct afz_loader *l, const struct afz_loader_options *options, char *why)
{
        l->dataset = calloc(options->path_count, sizeof *l->dataset);
        if (!l->dataset)
                return afz_why(why, -ENOMEM, "no memory");
        for (uint32_t i = 0; i < options->path_count; i++) {
                int r = open_one(l, options, why);
                if (r < 0)
                        return r;
                struct afz_dataset *d = &l->dataset[l->datasets++];
                if (d->samples != l->dataset[0].samples)
                        return afz_why(why, -EINVAL,
                                       "%.150s has %llu samples, %.150s has %llu: they belong "
                                       "together one by one",
                                       l->dataset[0].path,
                                       (unsigned long long)l->dataset[0].samples, d->path,
                                       (unsigned long long)d->samples);
                if (d->heap_bytes > MOST_BYTES / AFZ_FIELDS_MAX)
                        return afz_why(why, -EOVERFLOW, "%.300s: chunks that no memory could hold",
                                       d->path);
                if (l->fields + d->fields > AFZ_FIELDS_MAX)
                        return afz_why(why, -EOVERFLOW, "a sample has more than %d fields",
                                       AFZ_FIELDS_MAX);
                memcpy(l->field + l->fields, d->field, d->fields * sizeof *d->field);
                l->fields += d->fields;
                l->needs.index_bytes += d->index_bytes;  /* that there is, within the budget each */
                l->needs.scratch_bytes += d->heap_bytes; /* each keeps what its libraries need */
                if (d->raw_bytes > l->raw_bytes)
                        l->raw_bytes = d->raw_bytes;
                if (d->decode_bytes > l->decode_bytes)
                        l->decode_bytes = d->decode_bytes;
        }
        return 0;
}

static int check_options(struct afz_loader *l, char *why)
{
        struct afz_loader_options *o = &l->options;
        uint64_t all;
        if (o->ranks == 0)
                o->ranks = 1;
        if (o->rank >= o->ranks)
                return afz_why(why, -EINVAL, "rank %u of %u ranks: they count from 0", o->rank,
                               o->ranks);
        if (o->batch == 0 || __builtin_mul_overflow((uint64_t)o->batch, o->ranks, &all) ||
            all > MOST_BYTES)
                return afz_why(why, -EINVAL, "a batch of %u samples", o->batch);
        if ((unsigned)o->shuffle > AFZ_SHUFFLE_GLOBAL || (unsigned)o->on_error > AFZ_ERROR_SKIP)
                return afz_why(why, -EINVAL, "no such way to shuffle, or to take errors");
        if (o->threads > AFZ_THREADS_MAX)
                o->threads = AFZ_THREADS_MAX;
        return 0;
}

uint64_t afz_loader_batches(const struct afz_loader *l)
{
        uint64_t all = (uint64_t)l->options.batch * l->options.ranks;
        uint64_t stream = l->chosen.list ? l->chosen.draws : l->samples, rest = stream % all;
        return stream / all + (rest >= l->options.ranks && !l->options.is_last_dropped);
}

/* ---- what it takes ---- */

static int needs_of_batch(struct afz_loader *l)
{
        uint64_t at = 0, bytes;
        for (uint32_t i = 0; i < l->fields; i++) {
                l->batch_field_at[i] = at;
                if (__builtin_mul_overflow(l->field[i].bytes, l->options.batch, &bytes) ||
                    __builtin_add_overflow(at, bytes, &at) || at > MOST_BYTES)
                        return -EOVERFLOW;
                at = up(at, LINE);
        }
        l->needs.batch_bytes = up(at, PAGE);
        l->raw_bytes = up(l->raw_bytes, PAGE);
        l->decode_bytes = up(l->decode_bytes, PAGE);
        if (l->raw_bytes > MOST_BYTES || l->decode_bytes > MOST_BYTES ||
            l->needs.scratch_bytes > MOST_BYTES)
                return -EOVERFLOW;
        l->needs.scratch_bytes += l->raw_bytes + l->decode_bytes;
        return 0;
}

static int needs_of_slot(const struct afz_loader *l, uint64_t chunk_samples,
                         uint64_t field_at[AFZ_FIELDS_MAX], uint64_t *ret_bad_at,
                         uint64_t *ret_bytes)
{
        uint64_t at = 0, bytes;
        for (uint32_t i = 0; i < l->fields; i++) {
                field_at[i] = at;
                if (__builtin_mul_overflow(l->field[i].bytes, chunk_samples, &bytes) ||
                    __builtin_add_overflow(at, bytes, &at) || at > MOST_BYTES)
                        return -EOVERFLOW;
                at = l->fields > 1 || chunk_samples > 1 ? up(at, LINE) : at;
        }
        *ret_bad_at = at;
        if (__builtin_add_overflow(at, chunk_samples, &at) || at > MOST_BYTES)
                return -EOVERFLOW;
        *ret_bytes = up(at, LINE);
        return 0;
}

static bool is_drawn(const struct afz_image_options *image)
{
        return image->is_random_crop || image->is_flipped || image->jitter > 0;
}

static bool is_single(const struct afz_loader *l)
{
        for (uint32_t i = 0; i < l->datasets; i++)
                if (!l->dataset[i].is_single)
                        return false;
        return true;
}

/* How data lie in slots for chunks of some size. */
struct lay {
        struct afz_plan_needs needs;
        struct afz_order order;
        uint64_t field_at[AFZ_FIELDS_MAX], bad_at;
};

/* And what fits of them. */
static int try_chunks(const struct afz_loader *l, uint64_t chunk_samples, struct lay *ret,
                      struct afz_plan *ret_plan)
{
        struct lay lay = {.needs = l->needs};
        int r = needs_of_slot(l, chunk_samples, lay.field_at, &lay.bad_at, &lay.needs.slot_bytes);
        if (r < 0)
                return r;
        afz_order_init(&lay.order, l->options.seed, l->samples, chunk_samples,
                       l->options.shuffle != AFZ_SHUFFLE_NONE);
        lay.order.chosen = l->chosen.list ? &l->chosen : NULL;
        lay.needs.chunks = lay.order.chunks;
        lay.needs.is_one_group = l->options.shuffle == AFZ_SHUFFLE_GLOBAL && chunk_samples > 1;
        r = afz_plan_make(&lay.needs, l->options.budget_bytes, ret_plan);
        if (r == 0)
                *ret = lay;
        return r;
}

static void take_chunks(struct afz_loader *l, const struct lay *lay)
{
        l->needs = lay->needs;
        l->order = lay->order;
        l->slot_bad_at = lay->bad_at;
        memcpy(l->slot_field_at, lay->field_at, sizeof l->slot_field_at);
}

static int make_plan(struct afz_loader *l, char *why)
{
        uint64_t chunk = l->dataset[0].chunk_samples;
        struct afz_plan *plan = &l->plan;
        char need[32], have[32];
        struct lay lay;
        if (chunk > l->samples)
                chunk = l->samples;
        int r = needs_of_batch(l);
        if (r == 0)
                r = try_chunks(l, chunk, &lay, plan);
        if (r == -ENOSPC && l->options.shuffle == AFZ_SHUFFLE_GLOBAL && is_single(l))
                r = try_chunks(l, 1, &lay, plan); /* then each sample is a chunk */
        if (r == -ENOSPC && l->options.shuffle == AFZ_SHUFFLE_GLOBAL)
                return afz_why(why, r,
                               "a global shuffle of %.200s needs at least %s, the budget is %s; "
                               "shuffle=\"window\" does "
                               "with less",
                               l->dataset[0].path, say_bytes(plan->floor_bytes, need),
                               say_bytes(l->options.budget_bytes, have));
        if (r == -ENOSPC)
                return afz_why(why, r,
                               "%.200s needs at least %s for batches of %u, the budget is %s",
                               l->dataset[0].path, say_bytes(plan->floor_bytes, need),
                               l->options.batch, say_bytes(l->options.budget_bytes, have));
        if (r < 0)
                return afz_why(why, r, "%.200s: batches or chunks that no memory could hold",
                               l->dataset[0].path);
        take_chunks(l, &lay);
        l->now = *plan;
        l->asked_bytes = l->options.budget_bytes;
        return 0;
}

/* Tables and slots, behind what does not depend on the size of chunks. */
static void lay_out_slots(struct afz_loader *l, uint64_t slots)
{
        uint64_t each = l->chosen.list ? (slots + 1) * sizeof *l->group->chosen : 0;
        uint64_t where_at = l->tables_at + AFZ_GROUPS * each;
        l->slots_at = up(where_at + AFZ_GROUPS * slots * sizeof *l->group->where, PAGE);
        for (uint32_t i = 0; l->arena.at && i < AFZ_GROUPS; i++) {
                l->group[i].chosen = (void *)(l->arena.at + l->tables_at + i * each);
                l->group[i].where = (uint32_t *)(void *)(l->arena.at + where_at) + i * slots;
        }
}

static int make_arena(struct afz_loader *l, char *why)
{
        char need[32];
        l->batches_at = 0;
        l->scratch_at = l->plan.batches * l->needs.batch_bytes;
        l->tables_at = l->scratch_at + l->plan.threads * (l->raw_bytes + l->decode_bytes);
        lay_out_slots(l, l->plan.slots);
        uint64_t bytes = l->slots_at + l->plan.slots * l->needs.slot_bytes;
        uint64_t heap = l->needs.scratch_bytes - l->raw_bytes - l->decode_bytes; /* of a thread */
        uint64_t most = l->options.budget_bytes - l->needs.index_bytes - l->plan.threads * heap;
        if (l->plan.is_whole) /* a state may be of chunks of another size, of which the last is not
                                 full */
                bytes = bytes + SLACK_BYTES < most ? bytes + SLACK_BYTES
                        : bytes > most             ? bytes
                                                   : most;
        /* To touch what is not there would be the end of this process, or of another. */
        int r = bytes > afz_room_most_bytes()
                        ? -ENOMEM
                        : afz_arena_open(&l->arena, bytes, l->options.is_shared);
        if (r < 0 && r != -ENOMEM)
                return afz_why(why, r, "no memory that can be shared: %s", strerror(-r));
        if (r < 0)
                return afz_why(why, r,
                               "the budget would take %s of memory, and so much is not free here",
                               say_bytes(bytes, need));
        afz_arena_keep_from_children(&l->arena, l->scratch_at, l->arena.bytes - l->scratch_at);
        lay_out_slots(l, l->plan.slots);
        return 0;
}

/* As many slots as the arena has room for, which was made for others. */
static bool fit_slots(const struct afz_loader *l, const struct afz_plan_needs *needs,
                      struct afz_plan *plan)
{
        const uint64_t table = needs->table_bytes, slot = needs->slot_bytes;
        const uint64_t at =
                l->tables_at + (l->chosen.list ? AFZ_GROUPS * sizeof *l->group->chosen : 0);
        uint64_t slots = (l->arena.bytes - l->tables_at) / (slot + table);
        while (slots > 0 && up(at + slots * table, PAGE) + slots * slot > l->arena.bytes)
                slots--;
        if (plan->slots <= slots)
                return true;
        plan->is_whole = false;
        plan->slots = slots;
        plan->group = slots < 2 ? slots : plan->group < slots / 2 ? plan->group : slots / 2;
        return slots > 0 && !needs->is_one_group;
}

int afz_loader_replan(struct afz_loader *l, uint64_t chunk_samples, uint64_t group)
{
        struct lay lay;
        struct afz_plan plan;
        int r = try_chunks(l, chunk_samples, &lay, &plan);
        if (r < 0)
                return r;
        if (!fit_slots(l, &lay.needs, &plan) || plan.slots < group)
                return -ENOSPC;
        take_chunks(l, &lay);
        plan.threads = l->plan.threads;
        plan.batches = l->plan.batches;
        lay_out_slots(l, plan.slots);
        l->plan = l->now = plan;
        l->is_loaded = false;
        return 0;
}

/* glibc's malloc gives what a program frees at the heap's end back to the system, unless it has
 * seen arrays of that size come and go. Batches that came from it would have taught it so. As ours
 * do not, a training step whose own arrays are as large got fresh pages at every turn: 64 of them
 * in the benchmark, which made 290 microseconds of 180. It keeps two such arrays at the most. */
static void teach_malloc(uint64_t batch_bytes)
{
        void *volatile batch = malloc(batch_bytes);
        free(batch);
}

/* ---- the threads ---- */

static int start(struct afz_loader *l, char *why)
{
        l->active = l->options.threads           ? l->plan.threads
                    : l->cores < l->plan.threads ? l->cores
                                                 : l->plan.threads;
        l->place = (struct afz_place){
                .seed = l->options.seed,
                .samples = l->samples,
                .start = l->options.start,
                .chunk_samples = l->order.chunk_samples,
                .shuffle = l->options.shuffle,
                .draws = l->chosen.draws,
                .chosen = l->chosen.sum,
        };
        afz_groups_reset(l, 0, 0, 0);
        int r = afz_pool_start(l);
        if (r == 0)
                r = afz_gather_start(l);
        return r < 0 ? afz_why(why, r, "no thread could be started: %s", strerror(-r)) : 0;
}

static void stop(struct afz_loader *l)
{
        pthread_mutex_lock(&l->lock);
        l->is_quitting = true;
        pthread_cond_broadcast(&l->work);
        pthread_cond_broadcast(&l->gather);
        pthread_mutex_unlock(&l->lock);
        afz_gather_stop(l);
        afz_pool_stop(l);
}

bool afz_loader_is_forked(const struct afz_loader *l, char *why)
{
        if (l->pid == getpid())
                return false;
        afz_why(why, -EPERM,
                "this loader is its parent process's: a process that was forked cannot use it "
                "(DataLoader with "
                "num_workers=0, or a loader that is opened in the worker)");
        return true;
}

void afz_loader_free(struct afz_loader *l)
{
        for (uint32_t i = 0; i < l->datasets; i++)
                afz_dataset_close(&l->dataset[i]);
        free(l->dataset);
        free(l->chosen.list);
        afz_arena_close(&l->arena);
        pthread_mutex_destroy(&l->lock);
        pthread_cond_destroy(&l->work);
        pthread_cond_destroy(&l->gather);
        pthread_cond_destroy(&l->ready);
        pthread_cond_destroy(&l->quiet);
        free(l);
}

static int open_all(struct afz_loader *l, const struct afz_loader_options *options, char *why)
{
        int r = check_options(l, why);
        if (r == 0)
                r = open_datasets(l, options, why);
        if (r == 0)
                r = afz_part_take(l, options, why);
        if (r < 0)
                return r;
        if (afz_loader_batches(l) == 0)
                return afz_why(why, -EINVAL,
                               "%llu samples make not one batch of %u for each of %u ranks",
                               (unsigned long long)(l->chosen.list ? l->chosen.draws : l->samples),
                               l->options.batch, l->options.ranks);
        l->cores = afz_room_cores();
        uint32_t threads = l->options.threads             ? l->options.threads
                           : 2 * l->cores > THREADS_LEAST ? 2 * l->cores
                                                          : THREADS_LEAST;
        l->needs.threads = threads < AFZ_THREADS_MAX ? threads : AFZ_THREADS_MAX;
        l->needs.index_bytes += SEAMS_BYTES;
        l->needs.table_bytes = AFZ_GROUPS * (sizeof *l->group->where +
                                             (l->chosen.list ? sizeof *l->group->chosen : 0));
        l->needs.is_kept = !is_drawn(&l->options.image);
        r = make_plan(l, why);
        if (r == 0)
                r = make_arena(l, why);
        if (r < 0)
                return r;
        teach_malloc(l->needs.batch_bytes);
        return start(l, why);
}

int afz_loader_open(const struct afz_loader_options *options, struct afz_loader **ret,
                    char ret_why[AFZ_WHY_MAX])
{
        ret_why[0] = '\0';
        if (options->path_count == 0 || options->path_count > AFZ_FIELDS_MAX)
                return afz_why(ret_why, -EINVAL, "no path, or more than %d", AFZ_FIELDS_MAX);
        struct afz_loader *l = calloc(1, sizeof *l);
        if (!l)
                return afz_why(ret_why, -ENOMEM, "no memory");
        pthread_condattr_t monotonic;
        l->pid = getpid();
        l->options = *options;
        l->options.paths = NULL;
        l->options.subset = NULL;
        l->options.weights = NULL;
        l->options.format = l->options.details = NULL;
        pthread_mutex_init(&l->lock, NULL);
        pthread_cond_init(&l->work, NULL);
        pthread_cond_init(&l->gather, NULL);
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&l->ready, &monotonic);
        pthread_condattr_destroy(&monotonic);
        pthread_cond_init(&l->quiet, NULL);
        int r = open_all(l, options, ret_why);
        if (r < 0) {
                stop(l);
                afz_loader_free(l);
                return r;
        }
        *ret = l;
        return 0;
}

void afz_loader_close(struct afz_loader *l)
{
        if (!l || l->pid != getpid()) /* the threads and the lock are the parent's */
                return;
        stop(l);
        pthread_mutex_lock(&l->lock);
        l->is_closed = true;
        bool is_last = l->held == 0;
        if (!is_last) { /* all but what is leased goes at once */
                afz_arena_give(&l->arena, l->scratch_at, l->arena.bytes - l->scratch_at);
                for (uint32_t i = 0; i < l->plan.batches; i++)
                        if (l->buffer[i].state != AFZ_BUFFER_LEASED)
                                afz_arena_give(&l->arena, l->batches_at + i * l->needs.batch_bytes,
                                               l->needs.batch_bytes);
        }
        pthread_mutex_unlock(&l->lock);
        if (is_last)
                afz_loader_free(l);
}
