#ifndef AFZ_ORDER_H
#define AFZ_ORDER_H
/* In which order samples come: arithmetic alone, no memory, the same on every machine.
 *
 * A permutation of any number of things is a Feistel network over the next power of two, walked on
 * while it leads outside. The chunks of an epoch come in one of them, made of seed and epoch. Some
 * that follow each other there make a group, and the samples of a group come in one of their own,
 * made of seed, epoch and the group's first chunk. The epoch's stream is group after group.
 *
 * All chunks have chunk_samples samples but the data's last one, which may have fewer; wherever in
 * a group that one lands, its samples are numbered as the group's last. */
#include <stdbool.h>
#include <stdint.h>

#include "chosen.h"

enum {
        AFZ_ROUNDS = 6
}; /* four are a random permutation in theory, for large numbers; small ones want more */

struct afz_permutation {
        uint64_t count;
        uint32_t low_bits, high_bits;
        bool is_identity;
        uint64_t key[AFZ_ROUNDS];
};

void afz_permutation_init(struct afz_permutation *ret, uint64_t count, uint64_t key);
/* What comes at place i (below count), and at which place a thing comes. */
uint64_t afz_permutation_at(const struct afz_permutation *permutation, uint64_t i);
uint64_t afz_permutation_place(const struct afz_permutation *permutation, uint64_t thing);

/* A number out of several, each bit of which depends on all of theirs. */
uint64_t afz_mix(uint64_t a, uint64_t b, uint64_t c);

struct afz_order {
        uint64_t seed, samples, chunk_samples, chunks;
        bool is_shuffled;
        const struct afz_chosen *chosen; /* NULL: each sample comes once */
};

void afz_order_init(struct afz_order *ret, uint64_t seed, uint64_t samples, uint64_t chunk_samples,
                    bool is_shuffled);
uint32_t afz_order_chunk_samples(const struct afz_order *order, uint64_t chunk);
void afz_order_epoch(const struct afz_order *order, uint64_t epoch, struct afz_permutation *ret);

/* A chunk of which some samples come. */
struct afz_chosen_chunk {
        uint64_t before; /* samples that come of the group's chunks before it */
        uint64_t from;   /* its first sample, */
        uint64_t at;     /* and that one's afz_chosen_at() */
};

struct afz_group_order {
        struct afz_permutation permutation; /* of its samples */
        uint64_t first, samples;
        uint64_t start; /* place in the epoch's stream */
        uint64_t chunk_samples;
        uint32_t chunks, short_at; /* which of its chunks is the data's last; = chunks: none */
        uint64_t whole;            /* samples that are in the others */
        /* Where not all samples come. */
        const struct afz_order *order;
        const struct afz_chosen_chunk *chosen; /* of each chunk, and one behind the last; or NULL */
        uint64_t key;                          /* for draws */
};

/* Of `chunks` chunks from place `first` of the epoch on; `epoch_chunks` as afz_order_epoch() has
 * made it. */
void afz_order_group(const struct afz_order *order, uint64_t epoch,
                     const struct afz_permutation *epoch_chunks, uint64_t first, uint32_t chunks,
                     struct afz_group_order *ret);
/* The same where order->chosen says which samples come; behind afz_order_group(). mass: of all
 * chunks before `first`; returns it with the group's own. table: for chunks + 1 of them, kept as
 * long as the group; NULL: only samples and start are wanted. */
uint64_t afz_order_choose(const struct afz_order *order, uint64_t epoch,
                          const struct afz_permutation *epoch_chunks, uint64_t mass,
                          struct afz_chosen_chunk *table, struct afz_group_order *group);
/* The mass of all chunks before place `first` of an epoch. */
uint64_t afz_order_mass(const struct afz_order *order, const struct afz_permutation *epoch_chunks,
                        uint64_t first);
/* Samples of an epoch. */
uint64_t afz_order_stream(const struct afz_order *order);

void afz_group_chosen_at(const struct afz_group_order *group, uint64_t sample, uint32_t *ret_chunk,
                         uint32_t *ret_row);

/* What comes at place i (below samples): the row-th sample of its chunk-th chunk. */
static inline void afz_group_at(const struct afz_group_order *group, uint64_t i,
                                uint32_t *ret_chunk, uint32_t *ret_row)
{
        uint64_t sample = afz_permutation_at(&group->permutation, i);
        if (group->chosen) {
                afz_group_chosen_at(group, sample, ret_chunk, ret_row);
                return;
        }
        if (sample >= group->whole) {
                *ret_chunk = group->short_at;
                *ret_row = (uint32_t)(sample - group->whole);
                return;
        }
        uint32_t chunk = (uint32_t)(sample / group->chunk_samples);
        *ret_row = (uint32_t)(sample % group->chunk_samples);
        *ret_chunk = chunk + (chunk >= group->short_at);
}

/* How close to a global shuffle this comes, 0 to 1: the variance of a batch's mean under a global
 * shuffle to what it is here, for data whose samples are all alike within a chunk, the worst there
 * is. */
double afz_order_quality(const struct afz_order *order, uint64_t group_chunks, uint64_t batch);

#endif
