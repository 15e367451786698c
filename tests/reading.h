#ifndef AFZ_READING_H
#define AFZ_READING_H
/* One sense in a test: opened on an env, read into a batch of its own at the env's time.
 *
 *      struct afz_reading r;
 *      assert_int_equal(afz_reading_open(&r, &afz_sense_host, env, 0), 0);
 *      assert_int_equal(afz_reading_take(&r), 0);
 *      ... r.batch ...
 *      afz_reading_done(&r);       (also after a failed open)
 */
#include <stdlib.h>

#include "sense.h"

struct afz_reading {
        const struct afz_sense *sense;
        const struct afz_env *env;
        void *state;
        struct afz_batch *batch;
};

static inline int afz_reading_open(struct afz_reading *r, const struct afz_sense *sense,
                                   const struct afz_env *env, uint64_t pid)
{
        *r = (struct afz_reading){.sense = sense, .env = env};
        if (afz_batch_new(sense->max_samples, &r->batch) < 0)
                abort();
        return sense->open(env, &(struct afz_target){.pid = pid}, &r->state);
}

static inline int afz_reading_take(struct afz_reading *r)
{
        afz_batch_start(r->batch, afz_env_now(r->env));
        return r->sense->read(r->state, r->batch);
}

static inline void afz_reading_done(struct afz_reading *r)
{
        r->sense->close(r->state);
        afz_batch_free(r->batch);
}

/* The sample of a subject in the newest batch, or NULL. */
static inline const struct afz_sample *afz_reading_of(const struct afz_reading *r,
                                                      enum afz_kind kind, uint64_t id)
{
        for (size_t i = 0; i < r->batch->count; i++)
                if (r->batch->sample[i].subject.kind == kind &&
                    r->batch->sample[i].subject.id == id)
                        return &r->batch->sample[i];
        return NULL;
}

/* For assertions: INT64_MIN stands for absent, or for no such sample. */
#define AFZ_ABSENT INT64_MIN

static inline int64_t afz_value(const struct afz_sample *s, enum afz_metric m)
{
        return afz_sample_or(s, m, AFZ_ABSENT);
}

#endif
