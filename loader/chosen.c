#include "chosen.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "order.h"

__extension__ typedef unsigned __int128 wide;

enum {
        TOTAL_BITS = 62,  /* of all masses together, at most */
        WEIGHT_BITS = 52, /* of the largest one: a double has no more */
};

static uint64_t sum_of(const struct afz_chosen *c)
{
        uint64_t sum = afz_mix(c->count, c->draws, c->is_weighted);
        for (uint64_t i = 0; i < c->count; i++)
                sum = afz_mix(sum, c->list[i], i);
        return sum ? sum : 1;
}

static void swap(uint64_t *a, uint64_t *b)
{
        uint64_t was = *a;
        *a = *b;
        *b = was;
}

static void sift(uint64_t *heap, uint64_t at, uint64_t count)
{
        for (uint64_t child; (child = 2 * at + 1) < count; at = child) {
                child += child + 1 < count && heap[child] < heap[child + 1];
                if (heap[at] >= heap[child])
                        return;
                swap(&heap[at], &heap[child]);
        }
}

/* In its place: qsort() takes as much memory again, which nobody has counted. */
static void sort(uint64_t *list, uint64_t count)
{
        for (uint64_t i = count / 2; i-- > 0;)
                sift(list, i, count);
        for (uint64_t n = count; n > 1;) {
                swap(&list[0], &list[--n]);
                sift(list, 0, n);
        }
}

int afz_chosen_subset(struct afz_chosen *ret, uint64_t *list, const uint64_t *subset,
                      uint64_t count, uint64_t samples, uint64_t *ret_bad)
{
        for (uint64_t i = 0; i < count; i++)
                if (subset[i] >= samples) {
                        *ret_bad = i;
                        return -EINVAL;
                }
        memcpy(list, subset, count * sizeof *list);
        sort(list, count);
        *ret = (struct afz_chosen){.list = list, .count = count, .total = count, .draws = count};
        ret->sum = sum_of(ret);
        return 0;
}

/* As a part of the largest; what has any weight has some. */
static uint64_t mass_of(double weight, double largest, int bits)
{
        uint64_t mass = (uint64_t)ldexp(weight / largest, bits);
        return mass || !(weight > 0) ? mass : 1;
}

int afz_chosen_weights(struct afz_chosen *ret, uint64_t *list, const double *weights,
                       uint64_t count, uint64_t draws, uint64_t *ret_bad)
{
        double largest = 0;
        int bits = TOTAL_BITS;
        for (uint64_t i = 0; i < count; i++) {
                if (!isfinite(weights[i]) || weights[i] < 0) {
                        *ret_bad = i;
                        return -EINVAL;
                }
                largest = weights[i] > largest ? weights[i] : largest;
        }
        if (!(largest > 0)) {
                *ret_bad = count;
                return -EINVAL;
        }
        while (bits > WEIGHT_BITS || (bits > 0 && count >> (TOTAL_BITS - bits)))
                bits--;
        uint64_t total = 0;
        for (uint64_t i = 0; i < count; i++)
                list[i] = total += mass_of(weights[i], largest, bits);
        *ret = (struct afz_chosen){
                .list = list, .count = count, .is_weighted = true, .total = total, .draws = draws};
        ret->sum = sum_of(ret);
        return 0;
}

/* The first place, from one on to before another, whose number is at least so much. */
static uint64_t find(const uint64_t *list, uint64_t from, uint64_t to, uint64_t least)
{
        while (from < to) {
                uint64_t middle = from + (to - from) / 2;
                if (list[middle] < least)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from;
}

static uint64_t sum_before(const struct afz_chosen *c, uint64_t sample)
{
        return sample ? c->list[sample - 1] : 0;
}

uint64_t afz_chosen_mass(const struct afz_chosen *c, uint64_t from, uint64_t to)
{
        if (c->is_weighted)
                return sum_before(c, to) - sum_before(c, from);
        return find(c->list, 0, c->count, to) - find(c->list, 0, c->count, from);
}

uint64_t afz_chosen_marks(const struct afz_chosen *c, uint64_t mass, uint64_t seed, uint64_t epoch)
{
        uint64_t shift = c->is_weighted ? afz_mix(seed, epoch, UINT64_C(0x6d61726b)) % c->total : 0;
        return (uint64_t)(((wide)mass * c->draws + shift) / c->total);
}

uint64_t afz_chosen_at(const struct afz_chosen *c, uint64_t from)
{
        return c->is_weighted ? sum_before(c, from) : find(c->list, 0, c->count, from);
}

uint64_t afz_chosen_sample(const struct afz_chosen *c, uint64_t at, uint64_t from, uint64_t to,
                           uint64_t n, uint64_t key)
{
        if (!c->is_weighted)
                return c->list[at + n];
        uint64_t mass = sum_before(c, to) - at;
        uint64_t drawn = (uint64_t)((wide)afz_mix(key, from, n) * mass >> 64);
        return find(c->list, from, to, at + drawn + 1);
}
