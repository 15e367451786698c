#ifndef AFZ_IDX_H
#define AFZ_IDX_H
/* The header of an IDX file, the format of MNIST: two zeros, a type, a number of dimensions, and
 * these. */
#include "npy.h"

/* As afz_npy_parse(), and into the same. */
int afz_idx_parse(const uint8_t *head, uint64_t bytes, struct afz_npy *ret);

#endif
