#include "zarr_copy.h"

#include <string.h>

/* A fixed size lets the compiler make one move of it. */
#define COPY_EACH(SIZE)                                                                            \
        for (uint64_t i = 0; i < count; i++, from += from_step, to += to_step)                     \
        memcpy(to, from, SIZE)

static void copy_line(uint64_t each, uint64_t count, const uint8_t *from, uint64_t from_step,
                      uint8_t *to, uint64_t to_step)
{
        if (from_step == each && to_step == each) {
                memcpy(to, from, count * each);
                return;
        }
        switch (each) {
        case 1:
                COPY_EACH(1);
                break;
        case 2:
                COPY_EACH(2);
                break;
        case 4:
                COPY_EACH(4);
                break;
        default:
                COPY_EACH(8);
                break;
        }
}

/* The last two dimensions are one line where that is so on both sides. */
static void merge_lines(struct afz_box *box)
{
        while (box->dimensions > 1) {
                uint32_t d = box->dimensions - 1;
                if (box->from_step[d - 1] != box->count[d] * box->from_step[d] ||
                    box->to_step[d - 1] != box->count[d] * box->to_step[d])
                        return;
                box->count[d - 1] *= box->count[d];
                box->from_step[d - 1] = box->from_step[d];
                box->to_step[d - 1] = box->to_step[d];
                box->dimensions--;
        }
}

void afz_box_copy(const struct afz_box *given, const uint8_t *from, uint8_t *to)
{
        struct afz_box box = *given;
        uint64_t at[AFZ_ZARR_DIMENSIONS] = {0};
        merge_lines(&box);
        uint32_t last = box.dimensions - 1;
        for (;;) {
                copy_line(box.each, box.count[last], from, box.from_step[last], to,
                          box.to_step[last]);
                uint32_t d = last;
                for (;;) {
                        if (d == 0)
                                return;
                        d--;
                        from += box.from_step[d], to += box.to_step[d];
                        if (++at[d] < box.count[d])
                                break;
                        from -= box.from_step[d] * box.count[d],
                                to -= box.to_step[d] * box.count[d];
                        at[d] = 0;
                }
        }
}

void afz_swap(uint8_t *data, uint64_t bytes, uint64_t each)
{
        for (uint64_t i = 0; i + each <= bytes; i += each)
                for (uint64_t a = i, b = i + each - 1; a < b; a++, b--) {
                        uint8_t kept = data[a];
                        data[a] = data[b], data[b] = kept;
                }
}
