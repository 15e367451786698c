#ifndef AFZ_HINDSIGHT_H
#define AFZ_HINDSIGHT_H
/* An attempt was ended by memory: would the next one end in the same way? For who would start the
 * job again though nothing of this attempt is saved. Pure.
 *
 * Smaller steps are the only thing that is different then. They are worth a start unless it is
 * known that they change nothing: what ended it is a leak, a model of which not even one sample
 * fits, or memory that is asked for outside of all steps, or is the same after steps were made
 * smaller.
 */
#include "verdicts.h"

/* What an attempt that memory ended shows of the next one. */
struct afz_hindsight {
        bool leaks;           /* what it keeps, far more than what its steps take, ended it */
        bool is_large;        /* its model does not fit, whatever the batch */
        uint64_t asked_bytes; /* it ended of a request for so much; 0: it did not, or nobody
                                 knows of how much */
        uint64_t taken_bytes; /* what its framework had then; 0: not known */
        bool outside;         /* no step, no batch and no optimizer was there yet: data, a model */
        bool is_too_much;     /* more than all that it may use */
        struct afz_where where; /* of the leak or of the request; as of verdicts */
};

/* From its recording and what the judges say of its end. */
void afz_hindsight_of(const struct afz_case *c, const struct afz_outcome *outcome,
                      struct afz_hindsight *ret);

/* Why another attempt would be in vain. */
enum afz_vain {
        AFZ_VAIN_NOT,     /* it need not be */
        AFZ_VAIN_LEAK,    /* it leaks */
        AFZ_VAIN_MODEL,   /* its model is too large */
        AFZ_VAIN_REQUEST, /* it asks for too much before it comes to a step */
        AFZ_VAIN_SAME,    /* the attempt before asked for the same, with larger steps */
};

/* `before` is of the attempt before; all zeros: there was none. */
enum afz_vain afz_hindsight_vain(const struct afz_hindsight *before,
                                 const struct afz_hindsight *now);

/* "it leaks (train.py:16), and nothing that it did is saved": printable, as far as there is room.
 * Returns buf. */
const char *afz_vain_words(enum afz_vain vain, const struct afz_hindsight *now, char *buf,
                           size_t cap);

#endif
