/*
 * Batches, in order: read by the caller itself, or ahead of it by forked workers.
 *
 * Batch k holds the same samples however many workers there are: an epoch goes through the source
 * once in an order that depends on seed and epoch alone; samples that do not fill a last batch are
 * left out. Worker w makes the batches w, w + N, w + 2N... and hands them over in shared memory,
 * two batches of room each.
 *
 * Workers die with the process that made the loader, whatever its end, and ignore SIGINT (a
 * terminal sends it to all; the trainer wants to finish its step). Make a loader before any thread:
 * fork() takes only the calling one along.
 */
#ifndef AFZ_LOADER_H
#define AFZ_LOADER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "source.h"

struct afz_loader;

struct afz_loader_config {
        struct afz_source *source; /* outlives the loader; has at least one batch of samples */
        uint64_t seed;
        size_t batch;
        size_t workers; /* 0: the caller reads */
};

int afz_loader_new(const struct afz_loader_config *config, struct afz_loader **ret);
struct afz_loader *afz_loader_free(struct afz_loader *loader);

/*
 * The next batch: batch x AFZ_DIGIT_PIXELS floats and batch labels. -EINTR when a signal came while
 * waiting (ask again: nothing is lost), -ECHILD when a worker has died (see afz_loader_casualty()),
 * else the source's error.
 */
int afz_loader_next(struct afz_loader *loader, float *pixels, uint8_t *labels);

/* After -ECHILD: who died, and how, as waitpid() tells it. */
pid_t afz_loader_casualty(const struct afz_loader *loader, int *ret_status);

uint64_t afz_loader_steps_per_epoch(const struct afz_loader *loader);

/* Which sample stands at a place of an epoch: a permutation of [0, samples) for each (seed, epoch).
 */
uint64_t afz_loader_shuffle(uint64_t seed, uint64_t epoch, uint64_t samples, uint64_t place);

#endif
