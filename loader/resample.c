#include "resample.h"

#include <math.h>
#include <string.h>

/* Vectors that every x86-64 and arm64 has: two pixels as bytes, and as numbers that hold 256 times
 * a byte. Weights of eight bits are what makes that fit, and is as exact as what comes out. */
typedef uint8_t bytes8 __attribute__((vector_size(8)));
typedef uint16_t words8 __attribute__((vector_size(16)));
typedef uint8_t bytes4 __attribute__((vector_size(4)));
typedef uint16_t words4 __attribute__((vector_size(8)));

enum { ALIGN = 64, WHOLE = 256, HALF = 128, PIXEL = 4, RING_MAX = 32 };

static uint64_t aligned(uint64_t bytes)
{
        return (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

/* The k-th is made of those from edge(k - 1) up to before edge(k + 1). One expression, so that the
 * edges of every second one meet exactly. */
static uint32_t edge(double k, double step, uint32_t in)
{
        double at = floor((k + 0.5) * step + 0.5);
        return at < 0 ? 0 : at > in ? in : (uint32_t)at;
}

static void reach(uint32_t k, double step, uint32_t in, uint32_t *ret_first, uint32_t *ret_end)
{
        if (step >= 1) {
                *ret_first = edge((double)k - 1, step, in);
                *ret_end = edge((double)k + 1, step, in);
        } else { /* the two beside it */
                double at = floor((k + 0.5) * step - 0.5);
                *ret_first = at < 0 ? 0 : (uint32_t)at;
                *ret_end = at + 2 > in ? in : (uint32_t)(at + 2);
        }
}

static double weight_of(uint32_t i, uint32_t k, double step)
{
        double far = fabs(i + 0.5 - (k + 0.5) * step) / (step >= 1 ? step : 1);
        return far < 1 ? 1 - far : 0;
}

static uint32_t taps_for(uint32_t in, uint32_t out)
{
        double step = (double)in / out;
        return step >= 1 ? (uint32_t)ceil(2 * step) + 1 : 2;
}

/* What is rounded off one weight is added to the next: together they are a whole. */
static void weigh(struct afz_taps *taps, uint32_t k, double step, uint32_t in)
{
        uint32_t first, end, given = 0;
        double all = 0, sum = 0;
        reach(k, step, in, &first, &end);
        for (uint32_t i = first; i < end; i++)
                all += weight_of(i, k, step);
        taps->first[k] = first;
        taps->count[k] = end - first;
        for (uint32_t i = first; i < end; i++) {
                sum += weight_of(i, k, step);
                uint32_t upto = (uint32_t)(WHOLE * sum / all + 0.5);
                taps->weight[(uint64_t)k * taps->most + (i - first)] = (uint16_t)(upto - given);
                given = upto;
        }
}

static void *take(uint8_t **memory, uint64_t bytes)
{
        void *taken = *memory;
        *memory += aligned(bytes);
        return taken;
}

static void taps_make(struct afz_taps *taps, uint32_t in, uint32_t out, uint8_t **memory)
{
        taps->most = taps_for(in, out);
        taps->first = take(memory, out * sizeof *taps->first);
        taps->count = take(memory, out * sizeof *taps->count);
        taps->weight = take(memory, (uint64_t)out * taps->most * sizeof *taps->weight);
        for (uint32_t k = 0; k < out; k++)
                weigh(taps, k, (double)in / out, in);
}

static uint64_t taps_bytes(uint64_t in, uint64_t out)
{
        return 2 * aligned(out * sizeof(uint32_t)) + aligned((2 * in + 4 * out) * sizeof(uint16_t));
}

/* Rows on their way, in one form or the other. */
static uint64_t rows_bytes(void)
{
        return 2 * aligned((uint64_t)AFZ_IMAGE_SIDE_MAX * PIXEL * sizeof(uint16_t));
}

uint64_t afz_resample_bytes(uint32_t out_width, uint32_t out_height)
{
        return taps_bytes(AFZ_IMAGE_SIDE_MAX, out_width) +
               taps_bytes(AFZ_IMAGE_SIDE_MAX, out_height) +
               aligned((uint64_t)AFZ_IMAGE_SIDE_MAX * PIXEL) + rows_bytes();
}

void afz_resample_start(struct afz_resample *r, uint8_t *memory, uint8_t *to)
{
        const uint64_t row = (uint64_t)r->in_width * PIXEL;
        r->row = r->done = 0;
        r->to = to;
        if (r->in_width == r->out_width && r->in_height == r->out_height)
                return;
        taps_make(&r->across, r->in_width, r->out_width, &memory);
        taps_make(&r->down, r->in_height, r->out_height, &memory);
        r->line = take(&memory, row);
        r->is_ring = r->down.most <= RING_MAX && r->down.most * row <= rows_bytes();
        if (r->is_ring) {
                r->kept = take(&memory, r->down.most * row);
        } else {
                r->sum[0] = take(&memory, row * sizeof(uint16_t));
                r->sum[1] = take(&memory, row * sizeof(uint16_t));
        }
}

/* sum = sum + row * weight, or without the sum before. Two pixels at a time. */
static void add_row(uint16_t *sum, const uint8_t *row, uint32_t width, uint16_t weight,
                    bool is_first)
{
        uint64_t i = 0, bytes = (uint64_t)width * PIXEL;
        for (; i + 8 <= bytes; i += 8) {
                bytes8 in;
                words8 old = {0};
                memcpy(&in, row + i, sizeof in);
                if (!is_first)
                        memcpy(&old, sum + i, sizeof old);
                old += __builtin_convertvector(in, words8) * weight;
                memcpy(sum + i, &old, sizeof old);
        }
        for (; i < bytes; i++)
                sum[i] = (uint16_t)((is_first ? 0 : sum[i]) + row[i] * weight);
}

static void round_row(uint8_t *to, const uint16_t *sum, uint32_t width)
{
        uint64_t i = 0, bytes = (uint64_t)width * PIXEL;
        for (; i + 8 <= bytes; i += 8) {
                words8 in;
                memcpy(&in, sum + i, sizeof in);
                bytes8 out = __builtin_convertvector((in + HALF) >> 8, bytes8);
                memcpy(to + i, &out, sizeof out);
        }
        for (; i < bytes; i++)
                to[i] = (uint8_t)((sum[i] + HALF) >> 8);
}

/* A row of in_width becomes one of out_width, and goes out. */
static void put_line(struct afz_resample *r, const uint8_t *line)
{
        uint8_t *to = r->to + (uint64_t)r->done++ * r->out_width * 3;
        const struct afz_taps *taps = &r->across;
        for (uint32_t x = 0; x < r->out_width; x++) {
                const uint16_t *weight = taps->weight + (uint64_t)x * taps->most;
                const uint8_t *in = line + (uint64_t)taps->first[x] * PIXEL;
                words4 sum = {HALF, HALF, HALF, HALF};
                for (uint32_t i = 0; i < taps->count[x]; i++, in += PIXEL) {
                        bytes4 pixel;
                        memcpy(&pixel, in, sizeof pixel);
                        sum += __builtin_convertvector(pixel, words4) * weight[i];
                }
                bytes4 out = __builtin_convertvector(sum >> 8, bytes4);
                memcpy(to + 3 * (uint64_t)(r->is_flipped ? r->out_width - 1 - x : x), &out, 3);
        }
}

/* At most two of the rows that come out are open at a time. */
static void sum_row(struct afz_resample *r, const uint8_t *row)
{
        const struct afz_taps *taps = &r->down;
        for (uint32_t y = r->done; y < r->out_height && taps->first[y] <= r->row; y++) {
                uint32_t tap = r->row - taps->first[y];
                add_row(r->sum[y & 1], row, r->in_width,
                        taps->weight[(uint64_t)y * taps->most + tap], tap == 0);
                if (tap + 1 == taps->count[y]) {
                        round_row(r->line, r->sum[y & 1], r->in_width);
                        put_line(r, r->line);
                }
        }
}

/* The rows of one that comes out, weighed: sums stay in registers. */
static void weigh_rows(uint8_t *to, const uint8_t *const *row, const uint16_t *weight,
                       uint32_t count, uint64_t bytes)
{
        uint64_t i = 0;
        for (; i + 16 <= bytes; i += 16) {
                words8 low = {HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF}, high = low;
                for (uint32_t k = 0; k < count; k++) {
                        bytes8 in[2];
                        memcpy(in, row[k] + i, sizeof in);
                        low += __builtin_convertvector(in[0], words8) * weight[k];
                        high += __builtin_convertvector(in[1], words8) * weight[k];
                }
                bytes8 out[2] = {__builtin_convertvector(low >> 8, bytes8),
                                 __builtin_convertvector(high >> 8, bytes8)};
                memcpy(to + i, out, sizeof out);
        }
        for (; i < bytes; i++) {
                uint32_t sum = HALF;
                for (uint32_t k = 0; k < count; k++)
                        sum += (uint32_t)row[k][i] * weight[k];
                to[i] = (uint8_t)(sum >> 8);
        }
}

static void keep_row(struct afz_resample *r, const uint8_t *row)
{
        const struct afz_taps *taps = &r->down;
        const uint64_t bytes = (uint64_t)r->in_width * PIXEL;
        const uint8_t *rows[RING_MAX];
        memcpy(r->kept + r->row % taps->most * bytes, row, bytes);
        while (r->done < r->out_height &&
               r->row + 1 >= taps->first[r->done] + taps->count[r->done]) {
                for (uint32_t i = 0; i < taps->count[r->done]; i++)
                        rows[i] = r->kept + (taps->first[r->done] + i) % taps->most * bytes;
                weigh_rows(r->line, rows, taps->weight + (uint64_t)r->done * taps->most,
                           taps->count[r->done], bytes);
                put_line(r, r->line);
        }
}

static void copy_row(struct afz_resample *r, const uint8_t *row)
{
        uint32_t width = r->out_width;
        uint8_t *to = r->to + (uint64_t)r->done++ * width * 3;
        if (r->is_flipped) {
                for (uint32_t x = 0; x < width; x++)
                        memcpy(to + 3 * (uint64_t)(width - 1 - x), row + PIXEL * (uint64_t)x, 3);
                return;
        }
        for (uint32_t x = 0; x + 1 < width;
             x++) /* four bytes are one move; the next pixel mends the last */
                memcpy(to + 3 * (uint64_t)x, row + PIXEL * (uint64_t)x, 4);
        memcpy(to + 3 * (uint64_t)(width - 1), row + PIXEL * (uint64_t)(width - 1), 3);
}

bool afz_resample_row(struct afz_resample *r, const uint8_t *row)
{
        if (r->done >= r->out_height || r->row >= r->in_height)
                return false;
        if (r->in_width == r->out_width && r->in_height == r->out_height)
                copy_row(r, row);
        else if (r->is_ring)
                keep_row(r, row);
        else
                sum_row(r, row);
        r->row++;
        return r->done < r->out_height;
}
