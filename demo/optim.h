/*
 * Optimisers: parameters and gradients in, better parameters out.
 *
 * SGD (with momentum 0.9) keeps one float of state for each parameter, Adam two. Each optimiser is
 * a row in one table; to add one is to add a row.
 */
#ifndef AFZ_OPTIM_H
#define AFZ_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#include "pool.h"

enum afz_optim_kind { AFZ_OPTIM_SGD, AFZ_OPTIM_ADAM, AFZ_OPTIM_COUNT };

struct afz_optim {
        enum afz_optim_kind kind;
        float rate;
        size_t params;
        uint64_t step;
        float *state; /* the mean of the gradients; for Adam then the mean of their squares */
};

/* rate 0 means the optimiser's own default. -ENOMEM. */
int afz_optim_init(struct afz_optim *optim, enum afz_optim_kind kind, float rate, size_t params);
void afz_optim_done(struct afz_optim *optim);

void afz_optim_step(struct afz_optim *optim, float *params, const float *grads,
                    struct afz_pool *pool);

const char *afz_optim_name(enum afz_optim_kind kind);

#endif
