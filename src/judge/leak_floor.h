#ifndef AFZ_LEAK_FLOOR_H
#define AFZ_LEAK_FLOOR_H
/* The valley floor under a figure: points in, block minima out. The first half of leak.h. */
#include "leak.h"

/* Divisible by every number of blocks that is tried (leak.c). */
enum { AFZ_FLOOR_PARTS = 48 };

struct afz_floor_part {
        unsigned points; /* 0: nothing is known in it, and the rest is void */
        unsigned looks;  /* that these were made of */
        int64_t least, most;
};

struct afz_floor {
        unsigned points;      /* in all parts */
        double lived_ms;      /* of the whole question; frozen time left out */
        double unit_ms;       /* what one unit of x took: 1, or a step's time */
        double x_first, part; /* where the parts begin, and how long each is */
        bool by_steps;
        uint32_t from_ms, to_ms;
        struct afz_floor_part at[AFZ_FLOOR_PARTS];
};

/* Parts of equal length over [from, to) less the first `drop` (a share of it). False: there is
 * nothing to look at. */
bool afz_floor_of(const struct afz_trend_ask *ask, double drop, struct afz_floor *ret);

/* A run that ends gives its memory back: where that begins. */
uint32_t afz_floor_end(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms);

#endif
