#ifndef AFZ_PARTS_H
#define AFZ_PARTS_H
/* The loader's insides, for its own files. One direction:
 *
 *   pool ──► slots ──► gatherer ──► buffers ──► afz_loader_next()
 *
 * pool.c       threads that each load the next chunk of the order into its slot
 * groups.c     which chunks are in memory now: the group that batches are made of and the next one
 * gather.c     rows from slots into batches: a thread that runs ahead of who asks, and who asks
 * loader.c     opening and closing, the plan's layout in the arena; part.c: which samples
 * batches.c    what is handed out: next, leases
 * places.c     state, seek, begin
 * figures.c    facts and times; slowest.c: what the times say
 *
 * One lock, for all that is marked so. Loading and copying are done without it: a slot is written
 * by the one thread that took its chunk and read only once its group is ready, a buffer's rows are
 * written by who took that piece of it and read only by who got it from next(). */
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

enum afz_group_state {
        AFZ_GROUP_FREE,
        AFZ_GROUP_LOADING,
        AFZ_GROUP_READY,
        AFZ_GROUP_DROPPED /* not wanted, but threads still load chunks that they have begun */
};

/* Chunks that are in memory together. */
struct afz_group {
        enum afz_group_state state;
        uint64_t epoch;
        struct afz_permutation epoch_chunks;
        struct afz_group_order order;
        uint32_t taken, done; /* chunks that threads have begun and finished */
        uint32_t readers;     /* pieces of batches that are being copied from it */
        bool is_kept; /* all chunks, loaded once for all epochs: they lie in the order of the data
                       */
        uint32_t *where;                 /* slot of each of its chunks */
        struct afz_chosen_chunk *chosen; /* what comes of each, where not all does */
        uint64_t bad_sample; /* the lowest of the samples that could not be read, and why */
        int error;
        char why[AFZ_WHY_MAX];
};

/* Groups that begin before that place have so many chunks, as they had before less was asked for.
 */
struct afz_old_size {
        uint64_t epoch, first, size;
};

enum afz_buffer_state { AFZ_BUFFER_FREE, AFZ_BUFFER_FILLING, AFZ_BUFFER_READY, AFZ_BUFFER_LEASED };

/* Where a batch is made and handed out. */
struct afz_buffer {
        enum afz_buffer_state state;
        uint64_t lease;
        uint64_t epoch, from, to; /* its samples: places in the stream */
        uint64_t next;            /* the first that nobody has taken */
        uint64_t begin, end;      /* where all ranks are before it, and behind it */
        uint32_t pieces;          /* that are being copied */
        bool is_alone;            /* one of them, that may have bad samples */
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
        bool is_given;               /* back to the system, until it is used again */
        bool is_busy;                /* with a chunk */
};

/* A sum that grows while the loader lives; times() shows what came to it since the epoch began. */
struct afz_sums {
        uint64_t read_ns, read_bytes, decode_ns, decode_bytes, gather_ns, waited_ns, idle_ns,
                skipped, copies, loading_ns, loaded, loads, load_waits, starved_ns, gathered;
};

struct afz_loader {
        /* Set at open, and not changed while threads run. */
        pid_t pid;
        struct afz_loader_options options; /* without its pointers */
        uint32_t datasets, fields;
        struct afz_dataset *dataset;
        struct afz_field field[AFZ_FIELDS_MAX];
        uint64_t samples;
        struct afz_chosen chosen; /* of these, where not each comes once; or no list */
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
        bool is_pinned;                 /* a device knows the pages of batches: they stay */
        uint32_t started, active, busy; /* workers; those that may work; those that do */
        bool has_gatherer;
        uint32_t copying; /* pieces of batches */
        struct afz_worker worker[AFZ_THREADS_MAX];
        pthread_t gatherer;

        struct afz_group group[AFZ_GROUPS];
        struct afz_group *queue[AFZ_GROUPS]; /* the one that batches are made of, and the next */
        uint32_t queued;
        uint64_t plan_epoch, plan_first; /* what the next group begins with, */
        uint64_t plan_mass;              /* and what is before it: chosen.h */
        uint64_t forced; /* chunks that it must have, as a state says; 0: as planned */
        struct afz_old_size old[AFZ_SIZES_MAX]; /* in order; all others are as now has it */
        uint32_t olds;
        bool is_loaded; /* of a plan that is whole: all chunks are there */

        uint64_t at_epoch, at, at_batches; /* behind the last batch that was begun */
        struct afz_buffer buffer[AFZ_BATCHES_MAX];
        int entry[AFZ_ENTRIES]; /* what next() gives next: a buffer, or -1, the end of an epoch */
        uint32_t entry_first, entries;

        uint64_t leases, held, held_most; /* given out ever, now, and at once in this epoch */
        struct afz_copy *copies;
        struct afz_place place;           /* behind the last batch that next() gave */
        struct afz_sums sums, epoch_sums; /* as they were when the epoch began */
        bool is_epoch_begun;
        uint64_t began_epoch;              /* whose times these are */
        uint64_t began_ns, returned_ns;    /* the epoch; next(), the last time */
        uint64_t settled_ns;               /* up to when loading_ns is counted */
        uint64_t measured, measured_waits; /* loads since the number of workers was looked at */
};

/* part.c */
int afz_part_take(struct afz_loader *loader, const struct afz_loader_options *options, char *why);

/* groups.c; under the lock. */
void afz_groups_plan(struct afz_loader *loader);
/* That this place of the stream is in; NULL: it is not loaded. */
struct afz_group *afz_groups_ready(struct afz_loader *loader, uint64_t epoch, uint64_t at);
/* What is done with makes room for what comes next. */
void afz_groups_advance(struct afz_loader *loader);
/* How many chunks a group has that begins there. */
uint64_t afz_groups_size(const struct afz_loader *loader, uint64_t epoch, uint64_t first);
/* The size of groups is another from the next one on that is planned; before: what it was. */
void afz_groups_change(struct afz_loader *loader, uint64_t before);
void afz_groups_reset(struct afz_loader *loader, uint64_t epoch, uint64_t first, uint64_t forced);
/* The second group, if both are more than may be used now; else NULL. */
const struct afz_group *afz_groups_too_many(const struct afz_loader *loader);
/* This place of the stream is at its start or behind it. */
bool afz_group_is_reached(const struct afz_group *group, uint64_t epoch, uint64_t at);
/* What is more than may be used goes back to the system, unless a batch has some of it. before: as
 * of afz_groups_change(), which it does. */
void afz_groups_give(struct afz_loader *loader, uint64_t before);

/* pool.c */
int afz_pool_start(struct afz_loader *loader);
void afz_pool_stop(struct afz_loader *loader);
void afz_pool_settle(struct afz_loader *loader, uint64_t now_ns); /* its time so far; locked */
/* Memory of threads that have nothing to do goes back to the system; locked. */
void afz_pool_give(struct afz_loader *loader);

/* gather.c */
int afz_gather_start(struct afz_loader *loader);
void afz_gather_stop(struct afz_loader *loader);
/* Copies a piece of the next batch that is not done, without the lock meanwhile; false: there is
 * none for now. */
bool afz_gather_some(struct afz_loader *loader);
uint8_t *afz_buffer_at(const struct afz_loader *loader, uint32_t buffer);

/* batches.c; under the lock. */
/* To make do with so many bytes; -ENOSPC: with the least that will do. */
int afz_batches_allow(struct afz_loader *loader, uint64_t budget_bytes);
/* What is on its way is not wanted; all is quiet. */
void afz_batches_drop(struct afz_loader *loader);

/* figures.c */
/* False: in a child, which may find the lock in the hands of a thread that it does not have;
 * nothing changes there. */
bool afz_loader_lock(struct afz_loader *loader);

/* loader.c */
/* Another process has opened it; why says so. */
bool afz_loader_is_forked(const struct afz_loader *loader, char *why);
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
