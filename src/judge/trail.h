#ifndef AFZ_TRAIL_H
#define AFZ_TRAIL_H
/* The recent past of one figure: enough to tell how fast it changes. Pure, in place.
 *
 * The clock is the caller's. Where the job's own running time is used, a brake is a gap by itself.
 */
#include <stdbool.h>
#include <stdint.h>

enum { AFZ_TRAIL_POINTS = 32 };

struct afz_trail {
        uint64_t spacing_ns; /* between the points that are kept */
        uint64_t t_ns[AFZ_TRAIL_POINTS], value[AFZ_TRAIL_POINTS];
        unsigned head, count;
        uint64_t last_t_ns, last;
        bool has;
};

void afz_trail_init(struct afz_trail *trail, uint64_t spacing_ns);
void afz_trail_clear(struct afz_trail *trail);
/* t_ns never falls. */
void afz_trail_add(struct afz_trail *trail, uint64_t t_ns, uint64_t value);

/* The change over the last window_ns, or over what there is if that is less, and the time it took.
 * False while there are not two points. */
bool afz_trail_change(const struct afz_trail *trail, uint64_t window_ns, int64_t *ret_change,
                      uint64_t *ret_ns);
/* The same by the second; 0 where it is not known. */
int64_t afz_trail_rate(const struct afz_trail *trail, uint64_t window_ns);

#endif
