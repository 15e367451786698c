#include "order.h"

#include <string.h>

/* A small domain makes a poor network, and walking out of a larger one costs nothing that counts.
 */
enum { BITS_LEAST = 6 };

static uint64_t mix(uint64_t x)
{
        x += UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return x ^ (x >> 31);
}

uint64_t afz_mix(uint64_t a, uint64_t b, uint64_t c)
{
        return mix(mix(mix(a) ^ b) ^ c);
}

void afz_permutation_init(struct afz_permutation *ret, uint64_t count, uint64_t key)
{
        uint32_t bits = BITS_LEAST;
        while (bits < 63 && (UINT64_C(1) << bits) < count)
                bits++;
        *ret = (struct afz_permutation){
                .count = count,
                .low_bits = bits / 2,
                .high_bits = bits - bits / 2,
        };
        for (uint32_t i = 0; i < AFZ_ROUNDS; i++)
                ret->key[i] = afz_mix(key, i, 0);
}

/* The upper half of a product depends on all bits of the factors. */
static inline uint64_t scramble(uint64_t half, uint64_t key, uint32_t bits)
{
        uint64_t x = (half ^ key) * UINT64_C(0xd6e8feb86659fd93);
        x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
        return x >> (64 - bits);
}

static inline uint64_t forth(const struct afz_permutation *p, uint64_t x)
{
        uint64_t low = x & ((UINT64_C(1) << p->low_bits) - 1), high = x >> p->low_bits;
        for (uint32_t i = 0; i < AFZ_ROUNDS; i += 2) {
                high ^= scramble(low, p->key[i], p->high_bits);
                low ^= scramble(high, p->key[i + 1], p->low_bits);
        }
        return high << p->low_bits | low;
}

static uint64_t back(const struct afz_permutation *p, uint64_t x)
{
        uint64_t low = x & ((UINT64_C(1) << p->low_bits) - 1), high = x >> p->low_bits;
        for (uint32_t i = AFZ_ROUNDS; i > 0; i -= 2) {
                low ^= scramble(high, p->key[i - 1], p->low_bits);
                high ^= scramble(low, p->key[i - 2], p->high_bits);
        }
        return high << p->low_bits | low;
}

uint64_t afz_permutation_at(const struct afz_permutation *permutation, uint64_t i)
{
        if (permutation->is_identity)
                return i;
        do
                i = forth(permutation, i);
        while (i >= permutation->count);
        return i;
}

uint64_t afz_permutation_place(const struct afz_permutation *permutation, uint64_t thing)
{
        if (permutation->is_identity)
                return thing;
        do
                thing = back(permutation, thing);
        while (thing >= permutation->count);
        return thing;
}

void afz_order_init(struct afz_order *ret, uint64_t seed, uint64_t samples, uint64_t chunk_samples,
                    bool is_shuffled)
{
        *ret = (struct afz_order){
                .seed = seed,
                .samples = samples,
                .chunk_samples = chunk_samples,
                .chunks = samples / chunk_samples + (samples % chunk_samples != 0),
                .is_shuffled = is_shuffled,
        };
}

uint32_t afz_order_chunk_samples(const struct afz_order *order, uint64_t chunk)
{
        uint64_t rest = order->samples - chunk * order->chunk_samples;
        return (uint32_t)(rest < order->chunk_samples ? rest : order->chunk_samples);
}

void afz_order_epoch(const struct afz_order *order, uint64_t epoch, struct afz_permutation *ret)
{
        afz_permutation_init(ret, order->chunks, afz_mix(order->seed, epoch, UINT64_MAX));
        ret->is_identity = !order->is_shuffled;
}

void afz_order_group(const struct afz_order *order, uint64_t epoch,
                     const struct afz_permutation *epoch_chunks, uint64_t first, uint32_t chunks,
                     struct afz_group_order *ret)
{
        uint64_t last = afz_permutation_place(epoch_chunks, order->chunks - 1);
        uint32_t last_samples = afz_order_chunk_samples(order, order->chunks - 1);
        uint64_t missing = order->chunk_samples - last_samples;
        bool is_here = last >= first && last - first < chunks;
        *ret = (struct afz_group_order){
                .first = first,
                .chunks = chunks,
                .chunk_samples = order->chunk_samples,
                .samples = chunks * order->chunk_samples - (is_here ? missing : 0),
                .start = first * order->chunk_samples - (last < first ? missing : 0),
                .short_at = is_here ? (uint32_t)(last - first) : chunks,
        };
        ret->whole = ret->samples - (is_here ? last_samples : 0);
        afz_permutation_init(&ret->permutation, ret->samples, afz_mix(order->seed, epoch, first));
        ret->permutation.is_identity = !order->is_shuffled;
}

uint64_t afz_order_stream(const struct afz_order *order)
{
        return order->chosen ? order->chosen->draws : order->samples;
}

static uint64_t mass_at(const struct afz_order *order, const struct afz_permutation *epoch_chunks,
                        uint64_t place, uint64_t *ret_from)
{
        uint64_t chunk = afz_permutation_at(epoch_chunks, place);
        *ret_from = chunk * order->chunk_samples;
        return afz_chosen_mass(order->chosen, *ret_from,
                               *ret_from + afz_order_chunk_samples(order, chunk));
}

uint64_t afz_order_mass(const struct afz_order *order, const struct afz_permutation *epoch_chunks,
                        uint64_t first)
{
        uint64_t mass = 0, from;
        for (uint64_t i = 0; order->chosen && i < first; i++)
                mass += mass_at(order, epoch_chunks, i, &from);
        return mass;
}

uint64_t afz_order_choose(const struct afz_order *order, uint64_t epoch,
                          const struct afz_permutation *epoch_chunks, uint64_t mass,
                          struct afz_chosen_chunk *table, struct afz_group_order *group)
{
        const struct afz_chosen *chosen = order->chosen;
        uint64_t start = afz_chosen_marks(chosen, mass, order->seed, epoch), end = start;
        for (uint32_t i = 0; i < group->chunks; i++) {
                uint64_t from, own = mass_at(order, epoch_chunks, group->first + i, &from);
                if (table)
                        table[i] = (struct afz_chosen_chunk){
                                .before = end - start,
                                .from = from,
                                .at = afz_chosen_at(chosen, from),
                        };
                mass += own;
                if (own)
                        end = afz_chosen_marks(chosen, mass, order->seed, epoch);
        }
        if (table)
                table[group->chunks] = (struct afz_chosen_chunk){.before = end - start};
        bool is_identity = group->permutation.is_identity;
        group->order = order;
        group->chosen = table;
        group->start = start;
        group->samples = end - start;
        group->key = afz_mix(order->seed, epoch, UINT64_C(0x77656967));
        afz_permutation_init(&group->permutation, group->samples,
                             afz_mix(order->seed, epoch, group->first));
        group->permutation.is_identity = is_identity;
        return mass;
}

void afz_group_chosen_at(const struct afz_group_order *group, uint64_t sample, uint32_t *ret_chunk,
                         uint32_t *ret_row)
{
        const struct afz_chosen_chunk *table = group->chosen;
        uint32_t low = 0, high = group->chunks; /* the last chunk that begins at or before it */
        while (high - low > 1) {
                uint32_t middle = low + (high - low) / 2;
                if (table[middle].before <= sample)
                        low = middle;
                else
                        high = middle;
        }
        const struct afz_order *order = group->order;
        uint64_t from = table[low].from, left = order->samples - from;
        uint64_t to = from + (left < order->chunk_samples ? left : order->chunk_samples);
        *ret_chunk = low;
        *ret_row = (uint32_t)(afz_chosen_sample(order->chosen, table[low].at, from, to,
                                                sample - table[low].before, group->key) -
                              from);
}

/* Of n drawn from `of`, as a part of the variance of one: without putting back. */
static double drawn(double n, double of)
{
        return of <= 1 || n >= of ? 0 : (of - n) / ((of - 1) * n);
}

double afz_order_quality(const struct afz_order *order, uint64_t group_chunks, uint64_t batch)
{
        double samples = (double)order->samples, n = (double)batch;
        if (!order->is_shuffled)
                return 0;
        double chunks = (double)order->chunks, k = (double)group_chunks;
        double in_group = k * samples / chunks;
        double between = drawn(k, chunks); /* of the groups' means; the rest is within */
        if (n > in_group)                  /* of several groups */
                between *= in_group / n;
        double here = between + (1 - between) * drawn(n, in_group);
        double global = drawn(n, samples);
        return here <= global || here <= 0 ? 1 : global / here;
}
