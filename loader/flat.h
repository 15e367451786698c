#ifndef AFZ_FLAT_H
#define AFZ_FLAT_H
/* Samples one behind the other in a file, as they are in memory: what npy, IDX, raw records and
 * packed tokens have in common. The format says where they begin and what a sample is; all else is
 * here. */
#include "format.h"

struct afz_flat {
        uint64_t data_at; /* where the first sample is */
        uint64_t stride; /* from one sample to the next; less than a sample's bytes: they overlap */
        bool is_swapped; /* numbers have their bytes the other way round */
};

/* To be called at the end of a format's open(), with samples and fields of the dataset filled in.
 * Samples' fields follow each other. Errors: as open(). */
int afz_flat_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                  const struct afz_flat *flat, char why[AFZ_WHY_MAX]);
void afz_flat_close(struct afz_dataset *dataset);
int afz_flat_load(struct afz_dataset *dataset, const struct afz_load *load,
                  struct afz_scratch *scratch, char why[AFZ_WHY_MAX]);

/* The beginning of a file, at most `cap` bytes, and the file's size: for headers. How many, or
 * -errno with why. */
int64_t afz_flat_head(const char *path, uint8_t *ret, uint64_t cap, uint64_t *ret_file_bytes,
                      char why[AFZ_WHY_MAX]);

/* '<f4', '|u1', 'i8', 'float32': as NumPy has them. -EINVAL: another kind of thing. */
int afz_dtype_parse(const char *text, uint64_t len, enum afz_dtype *ret, bool *ret_is_swapped);

#endif
