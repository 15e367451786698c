#include "arrow_parts.h"

#include <errno.h>

uint64_t afz_arrow_common(const uint64_t *rows, uint64_t parts)
{
        /* Each vote for the candidate is set off against one for another; only what has more than
         * half can be left, and whether it has is counted. */
        uint64_t candidate = 0, votes = 0, count = 0;
        for (uint64_t i = 0; i < parts; i++) {
                if (votes == 0)
                        candidate = rows[i];
                if (rows[i] == candidate)
                        votes++;
                else
                        votes--;
        }
        for (uint64_t i = 0; i < parts; i++)
                count += rows[i] == candidate;
        return count > parts / 2 ? candidate : 0;
}

int afz_arrow_parts_make(const uint64_t *rows, uint64_t parts, uint64_t common,
                         struct afz_arrow_part *ret, uint64_t *ret_samples)
{
        uint64_t first = 0, done = 0;
        for (int is_rest = common == 0; is_rest < 2; is_rest++)
                for (uint64_t i = 0; i < parts; i++) {
                        if (common && (rows[i] == common) == is_rest)
                                continue;
                        if (rows[i] == 0)
                                return -EBADMSG;
                        ret[done++] = (struct afz_arrow_part){first, i, rows[i]};
                        if (__builtin_add_overflow(first, rows[i], &first) || first > INT64_MAX)
                                return -EOVERFLOW;
                }
        *ret_samples = first;
        return 0;
}

const struct afz_arrow_part *afz_arrow_part_of(const struct afz_arrow_part *part, uint64_t parts,
                                               uint64_t sample)
{
        uint64_t low = 0, high = parts; /* the last whose first is not above: in [low, high) */
        while (high - low > 1) {
                uint64_t middle = low + (high - low) / 2;
                if (part[middle].first <= sample)
                        low = middle;
                else
                        high = middle;
        }
        return &part[low];
}
