/*
 * Where training samples come from: drawn on demand, held in memory as a whole, or read from a
 * file.
 *
 * A source gives any sample by its number, and gives the same one each time. Reading changes
 * nothing that another process could see, so forked workers may each use the source they inherited.
 * Threads may not share one.
 *
 * Making a source can take long (a data set of gigabytes is drawn): it gives up with -EINTR once
 * *stop is not 0.
 */
#ifndef AFZ_SOURCE_H
#define AFZ_SOURCE_H

#include <signal.h>
#include <stdint.h>

#include "scratch.h"

struct afz_source;

/* The right way: each sample is made when it is wanted, and takes no room before. */
int afz_source_new_drawn(uint64_t seed, uint64_t samples, struct afz_source **ret);

/* A pitfall: all samples are in memory before the first is used, twice: as double and as float. */
int afz_source_new_whole(uint64_t seed, uint64_t samples, const volatile sig_atomic_t *stop,
                         struct afz_source **ret);

/* A pitfall: a file that gives bytes_per_second at best. It is written here, into scratch. */
int afz_source_new_slow_disk(uint64_t seed, uint64_t samples, uint64_t bytes_per_second,
                             struct afz_scratch *scratch, const volatile sig_atomic_t *stop,
                             struct afz_source **ret);

struct afz_source *afz_source_free(struct afz_source *source);

/* One sample, sample < samples. -EINTR when a signal came while waiting (ask again), else -errno of
 * the file. */
int afz_source_read(struct afz_source *source, uint64_t sample, float *pixels, uint8_t *label);

uint64_t afz_source_samples(const struct afz_source *source);

#endif
