#ifndef AFZ_PARTS_H
#define AFZ_PARTS_H
/* The loader's insides, for its own files. One direction:
 *
 *   pool ──► slots ──► gatherer ──► buffers ──► afz_loader_next()
 *
 * pool.c       threads that each load the next chunk of the order into its slot
 * groups.c     which chunks are in memory now: the group that batches are made of and the next one
 * gather.c     one thread that copies rows from slots into batches, ahead of who asks
 * loader.c     opening and closing, the plan's layout in the arena
 * batches.c    what is handed out: next, leases, state, seek, times
 *
 * One lock, for all that is marked so. Loading and copying are done without it: a slot is written
 * by the one thread that took its chunk and read only once its group is ready, a buffer is written
 * by the gatherer and read only by who got it from next(). */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "antifreeze/loader.h"
#include "arena.h"
#include "format.h"
#include "order.h"
#include "plan.h"
#include "state.h"

enum { AFZ_GROUPS = 2, AFZ_ENTRIES = 2 * AFZ_BATCHES_MAX + 2 };

enum afz_group_state { AFZ_GROUP_FREE, AFZ_GROUP_LOADING, AFZ_GROUP_READY };

/* Chunks that are in memory together. */
struct afz_group {
        enum afz_group_state state;
        uint64_t epoch;
        struct afz_permutation epoch_chunks;
        struct afz_group_order order;
        uint32_t taken, done; /* chunks that threads have begun and finished */
        bool is_kept; /* all chunks, loaded once for all epochs: they lie in the order of the data
                       */
        uint32_t *where;     /* slot of each of its chunks */
        uint64_t bad_sample; /* the lowest of the samples that could not be read, and why */
        int error;
        char why[AFZ_WHY_MAX];
};

enum afz_buffer_state { AFZ_BUFFER_FREE, AFZ_BUFFER_FILLING, AFZ_BUFFER_READY, AFZ_BUFFER_LEASED };

/* Where a batch is made and handed out. */
struct afz_buffer {
        enum afz_buffer_state state;
        uint64_t lease;
        uint32_t count, skipped;
        struct afz_place place; /* behind it */
        uint64_t index, ready_ns;
        int error; /* in place of a batch */
        char why[AFZ_WHY_MAX];
};

/* A batch from the heap, for who holds too many. */
struct afz_copy {
        struct afz_copy *next;
        uint64_t lease;
        uint8_t *data;
};

struct afz_worker {
        struct afz_loader *loader;
        uint32_t number;
        pthread_t thread;
        struct afz_scratch *scratch; /* one for each dataset; they share their memory */
};

/* A sum that grows while the loader lives; times() shows what came to it since the epoch began. */
struct afz_sums {
        uint64_t read_ns, read_bytes, decode_ns, decode_bytes, gather_ns, waited_ns, idle_ns,
                skipped, copies;
};

struct afz_loader {
        /* Set at open, and not changed while threads run. */
        pid_t pid;
        struct afz_loader_options options; /* without its pointers */
        uint32_t datasets, fields;
        struct afz_dataset *dataset;
        struct afz_field field[AFZ_FIELDS_MAX];
        uint64_t samples;
        struct afz_plan_needs needs;
        struct afz_plan plan; /* the arena's layout */
        struct afz_arena arena;
        uint64_t batches_at, scratch_at, tables_at, slots_at;
        uint64_t batch_field_at[AFZ_FIELDS_MAX], slot_field_at[AFZ_FIELDS_MAX], slot_bad_at;
        uint64_t raw_bytes, decode_bytes; /* of a thread in the arena; its libraries take more */
        uint32_t cores;

        pthread_mutex_t lock;
        pthread_cond_t work;   /* for workers: a chunk to load */
        pthread_cond_t gather; /* for the gatherer: a group, a buffer */
        pthread_cond_t ready;  /* for next(): a batch */
        pthread_cond_t quiet;  /* for seek(): nobody is at work */

        /* Under the lock, from here on; order, only while all is quiet. */
        struct afz_order order;
        struct afz_plan now;  /* what may be used; as plan, or less when less was asked for */
        uint64_t asked_bytes; /* the budget of now */
        bool is_quitting, is_paused, is_closed;
        uint32_t started, active, busy; /* workers; those that may work; those that do */
        bool has_gatherer, is_gathering;
        struct afz_worker worker[AFZ_THREADS_MAX];
        pthread_t gatherer;

        struct afz_group group[AFZ_GROUPS];
        struct afz_group *queue[AFZ_GROUPS]; /* the one that batches are made of, and the next */
        uint32_t queued;
        uint64_t plan_epoch, plan_first; /* what the next group begins with */
        uint64_t forced; /* chunks that it must have, as a state says; 0: as planned */
        bool is_loaded;  /* of a plan that is whole: all chunks are there */

        uint64_t at_epoch, at, at_batches; /* the gatherer's place in the epoch's stream */
        struct afz_buffer buffer[AFZ_BATCHES_MAX];
        int entry[AFZ_ENTRIES]; /* what next() gives next: a buffer, or -1, the end of an epoch */
        uint32_t entry_first, entries;

        uint64_t leases, held; /* given out ever, and now */
        struct afz_copy *copies;
        struct afz_place place;           /* behind the last batch that next() gave */
        struct afz_sums sums, epoch_sums; /* as they were when the epoch began */
        bool is_epoch_begun;
        uint64_t returned_ns;              /* when next() last did */
        uint64_t measured, measured_waits; /* loads since the number of workers was looked at */
};

/* groups.c; under the lock. */
void afz_groups_plan(struct afz_loader *loader);
struct afz_group *afz_groups_reach(struct afz_loader *loader,
                                   uint64_t at);      /* NULL: paused, or quitting */
bool afz_groups_end_epoch(struct afz_loader *loader); /* false: paused, or quitting */
void afz_groups_reset(struct afz_loader *loader, uint64_t epoch, uint64_t first, uint64_t forced);

/* pool.c */
int afz_pool_start(struct afz_loader *loader);
void afz_pool_stop(struct afz_loader *loader);

/* gather.c */
int afz_gather_start(struct afz_loader *loader);
void afz_gather_stop(struct afz_loader *loader);
uint8_t *afz_buffer_at(const struct afz_loader *loader, uint32_t buffer);

/* loader.c */
void afz_loader_free(struct afz_loader *loader);
/* The number of batches of an epoch for each rank. */
uint64_t afz_loader_batches(const struct afz_loader *loader);
/* Slots for chunks of another size, at least as many as the group has; all is quiet. -ENOSPC: there
 * is no room for them, and nothing has changed. */
int afz_loader_replan(struct afz_loader *loader, uint64_t chunk_samples, uint64_t group);
/* A thread that no signal of the program comes to. */
int afz_thread_start(pthread_t *ret, void *(*function)(void *), void *argument, const char *name);

static inline uint8_t *afz_slot_at(const struct afz_loader *loader, uint64_t slot)
{
        return loader->arena.at + loader->slots_at + slot * loader->needs.slot_bytes;
}

#endif
