#ifndef AFZ_PURPOSES_H
#define AFZ_PURPOSES_H
/* What a job's memory is for, in a learner's words: parameters, gradients, activations, ... as its
 * framework tells it, on the host and in GPU memory, at the peak and at the end. Pure.
 *
 * (memory_ledger.h tells the same memory as the kernel sees it.) The rows add up to the whole: what
 * nobody told of has a row of its own. Figures are told by different hands at different moments, so
 * each is believed only as far as there is room for it; estimates and what comes and goes last.
 */
#include "flight.h"

enum afz_purpose {
        AFZ_FOR_PARAMETERS,
        AFZ_FOR_GRADIENTS,
        AFZ_FOR_OPTIMIZER,
        AFZ_FOR_BUFFERS,
        AFZ_FOR_ACTIVATIONS,
        AFZ_FOR_BATCH,
        AFZ_FOR_AHEAD,   /* batches that loaders fetch ahead */
        AFZ_FOR_SHUFFLE, /* buffers of tf.data */
        AFZ_FOR_DATASET, /* by lines: what was there before the first step, and is no model */
        AFZ_FOR_CODE,    /* by lines: imported modules */
        AFZ_FOR_CONTEXT, /* what CUDA itself takes */
        AFZ_FOR_CACHE,   /* given back by the program, kept by an allocator */
        AFZ_FOR_UNEXPLAINED,
        AFZ_PURPOSES
};

/* "optimizer state", and one clause in plain words. */
const char *afz_purpose_name(enum afz_purpose purpose);
const char *afz_purpose_what(enum afz_purpose purpose);

struct afz_purposes {
        uint32_t t_ms;
        uint64_t whole_bytes;
        uint64_t bytes[AFZ_PURPOSES];
};

/* False: nobody told of any of it. At the peak, and at the last moment that the job trained. */
bool afz_purposes_peak(const struct afz_flight *flight, bool gpu, struct afz_purposes *ret);
bool afz_purposes_now(const struct afz_flight *flight, bool gpu, struct afz_purposes *ret);

#endif
