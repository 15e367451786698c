#ifndef AFZ_RESAMPLE_H
#define AFZ_RESAMPLE_H
/* A picture made larger or smaller while its rows come in, in memory for a few of them.
 *
 * Each pixel that comes out is the mean of those around its place, by a triangle of the width of
 * the step (what others call bilinear, with antialiasing where it gets smaller). Rows are of four
 * bytes a pixel, the fourth of which counts for nothing; out comes three bytes a pixel. */
#include <stdbool.h>
#include <stdint.h>

/* Wider and higher ones are not read: of a JPEG that is after it was scaled down in decoding. */
enum { AFZ_IMAGE_SIDE_MAX = 16384 };

/* Of one direction: which of those that come in make up each that goes out. */
struct afz_taps {
        uint32_t most; /* of one */
        uint32_t *first;
        uint32_t *count;
        uint16_t *weight; /* `most` each, in 256ths; together 256 */
};

struct afz_resample {
        uint32_t in_width, in_height, out_width, out_height;
        struct afz_taps across, down;
        bool is_ring;     /* the rows that the next one is made of are kept; else it is summed up */
        uint8_t *kept;    /* down.most rows, one over the other in turn */
        uint16_t *sum[2]; /* or the two rows that are on their way out */
        uint8_t *line;    /* a row of in_width that is ready */
        uint32_t row, done; /* rows that came in, rows that went out */
        bool is_flipped;    /* left to right */
        uint8_t *to;
};

/* What afz_resample_start() takes of `memory` at most, whatever comes in. */
uint64_t afz_resample_bytes(uint32_t out_width, uint32_t out_height);

/* memory: aligned to 64. Sizes are at least 1, at most AFZ_IMAGE_SIDE_MAX. */
void afz_resample_start(struct afz_resample *r, uint8_t *memory, uint8_t *to);
/* The next row; false when no more are needed. */
bool afz_resample_row(struct afz_resample *r, const uint8_t *row);

#endif
