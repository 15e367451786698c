#ifndef AFZ_CHOSEN_H
#define AFZ_CHOSEN_H
/* Which samples an epoch has, where that is not each of them once: a subset, or draws by weight.
 * Arithmetic over one list of 8 bytes a sample; whole numbers only, so that it is the same on every
 * machine.
 *
 * Each sample has a mass: how often a subset names it, or its weight as a whole number. An epoch
 * goes through the chunks in some order and lays their masses end to end; of `draws` marks that
 * stand at equal distances along the whole, the first somewhere by the seed, each chunk gets those
 * that fall on it. So it gets what its mass is worth, rounded up or down, and the epoch has its
 * length. (For a subset the distance is one, and a chunk has as many as it is named for.) Which
 * sample of the chunk a mark is, is drawn by their masses with putting back; of a subset each comes
 * as it is named. */
#include <stdbool.h>
#include <stdint.h>

struct afz_chosen {
        uint64_t *list; /* subset: samples, ascending; weights: the masses up to each and with it */
        uint64_t count;
        bool is_weighted;
        uint64_t total, draws; /* mass; samples of an epoch */
        uint64_t sum;          /* tells one choice from another; never 0 */
};

/* list: room for `count` numbers, which is the caller's. -EINVAL: a sample that is not there, or a
 * weight that is none, or all are 0; ret_bad is the first of them (count: all are 0). */
int afz_chosen_subset(struct afz_chosen *ret, uint64_t *list, const uint64_t *subset,
                      uint64_t count, uint64_t samples, uint64_t *ret_bad);
int afz_chosen_weights(struct afz_chosen *ret, uint64_t *list, const double *weights,
                       uint64_t count, uint64_t draws, uint64_t *ret_bad);

/* The mass of the samples from one on to before another. */
uint64_t afz_chosen_mass(const struct afz_chosen *chosen, uint64_t from, uint64_t to);
/* How many marks fall on what has so much mass before it, and none behind. */
uint64_t afz_chosen_marks(const struct afz_chosen *chosen, uint64_t mass, uint64_t seed,
                          uint64_t epoch);
/* Which sample the n-th mark (from 0) on the samples from `from` on to before `to` is; `at`: as
 * afz_chosen_at() has it for `from`. */
uint64_t afz_chosen_at(const struct afz_chosen *chosen, uint64_t from);
uint64_t afz_chosen_sample(const struct afz_chosen *chosen, uint64_t at, uint64_t from, uint64_t to,
                           uint64_t n, uint64_t key);

#endif
