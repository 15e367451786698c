#ifndef AFZ_INSIDE_H
#define AFZ_INSIDE_H
/* What a job's frameworks told of themselves (AFZ_KIND_INSIDE): figures that hold until they are
 * told again, of each process its own. Pure.
 */
#include "flight.h"

/* Of all processes that were alive then, added up: of ranks each has its own share. False: none
 * told it until then. */
bool afz_inside_at(const struct afz_flight *flight, enum afz_metric metric, uint32_t t_ms,
                   uint64_t *ret);

/* The most that was told at once in [from, to), and when. False: nobody told it in there. */
bool afz_inside_most(const struct afz_flight *flight, enum afz_metric metric, uint32_t from_ms,
                     uint32_t to_ms, uint64_t *ret, uint32_t *ret_ms);

/* The process that trains: the one that began most steps since then; NULL: none did. */
const struct afz_track *afz_inside_trainer(const struct afz_flight *flight, uint32_t from_ms);

/* What a model takes, on the host or in GPU memory: of all processes, in bytes; 0: nothing, or it
 * was not told. */
struct afz_inside_model {
        uint64_t parameters, gradients, optimizer, buffers, activations, batch;
        uint64_t fixed; /* the first four: what stays from step to step, however small the batch */
};

/* As it was last told until t; false: nothing was. */
bool afz_inside_model_at(const struct afz_flight *flight, bool gpu, uint32_t t_ms,
                         struct afz_inside_model *ret);

/* How a counter of the trainer keeps pace with its steps, look by look. */
struct afz_inside_pace {
        int64_t steps;           /* begun in all looks that are counted */
        int64_t counted;         /* by which it grew in them */
        unsigned looks, holding; /* those in which steps were made; of these, those in which it grew
                                    by at least `least` for each step */
        unsigned late_holding;   /* of these, in the later half of the looks */
        uint32_t from_ms, to_ms;
};

/* From the first look that saw a step to the last that did. False: fewer than two, or the figure
 * was never told. */
bool afz_inside_pace_of(const struct afz_track *trainer, enum afz_metric metric, double least,
                        struct afz_inside_pace *ret);

#endif
