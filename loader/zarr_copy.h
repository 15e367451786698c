#ifndef AFZ_ZARR_COPY_H
#define AFZ_ZARR_COPY_H
/* A box of elements from one memory layout to another: arithmetic alone. */
#include <stdint.h>

#include "zarr_meta.h"

struct afz_box {
        uint32_t dimensions;
        uint64_t each; /* bytes of an element: 1, 2, 4 or 8 */
        uint64_t count[AFZ_ZARR_DIMENSIONS];
        uint64_t from_step[AFZ_ZARR_DIMENSIONS],
                to_step[AFZ_ZARR_DIMENSIONS]; /* bytes; 0: the same again */
};

void afz_box_copy(const struct afz_box *box, const uint8_t *from, uint8_t *to);

/* Turns the bytes of each element round. */
void afz_swap(uint8_t *data, uint64_t bytes, uint64_t each);

#endif
