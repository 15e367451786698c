#ifndef AFZ_NPY_H
#define AFZ_NPY_H
/* The header of a .npy: a line of Python that says what an array is, of which nothing is believed.
 */
#include <stdbool.h>
#include <stdint.h>

#include "format.h"

enum { AFZ_NPY_HEAD_MAX = 16 << 10 }; /* bytes; of arrays of numbers, they have some hundred */

struct afz_npy {
        enum afz_dtype dtype;
        bool is_swapped, is_fortran;
        uint32_t dimensions;
        uint64_t shape[AFZ_DIMENSIONS_MAX + 1]; /* the first: samples */
        uint64_t data_at;
};

/* -EMEDIUMTYPE: no .npy; -EBADMSG: cut off or damaged; -ENOTSUP: another version; -EINVAL: of
 * things that are not numbers; -EOVERFLOW: too many dimensions. */
int afz_npy_parse(const uint8_t *head, uint64_t bytes, struct afz_npy *ret);

/* Samples and the one field of a dataset, out of a header; errors with why, `path` in it. */
int afz_npy_describe(struct afz_dataset *dataset, const struct afz_npy *npy, char why[AFZ_WHY_MAX]);
/* What an error of afz_npy_parse() means, and what to do. Returns it. */
int afz_npy_why(int error, const char *path, char why[AFZ_WHY_MAX]);

/* Opens a file of which that is known already: its samples lie one behind the other. */
int afz_npy_open_as_flat(struct afz_dataset *dataset, const struct afz_loader_options *options,
                         const struct afz_npy *npy, char why[AFZ_WHY_MAX]);

#endif
