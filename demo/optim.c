#include "optim.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The usual constants: momentum 0.9 for SGD; those of the paper for Adam (Kingma and Ba, 2015). */
#define MOMENTUM 0.9F
#define BETA1    0.9F
#define BETA2    0.999F
#define EPSILON  1e-8F

struct update {
        struct afz_optim *optim;
        float *params;
        const float *grads;
};

static void sgd_share(void *ctx, size_t share, size_t shares);
static void adam_share(void *ctx, size_t share, size_t shares);

static const struct {
        const char *name;
        float rate; /* default: the largest round figure that trains this network without a warm-up
                     */
        size_t states; /* floats kept for each parameter */
        afz_pool_work share;
} kinds[AFZ_OPTIM_COUNT] = {
        [AFZ_OPTIM_SGD] = {.name = "sgd", .rate = .05F, .states = 1, .share = sgd_share},
        [AFZ_OPTIM_ADAM] = {.name = "adam", .rate = .001F, .states = 2, .share = adam_share},
};

static void sgd_share(void *ctx, size_t share, size_t shares)
{
        const struct update *update = ctx;
        const float rate = update->optim->rate;
        float *restrict params = update->params;
        float *restrict speed = update->optim->state;
        const float *restrict grads = update->grads;
        size_t first, end;

        afz_pool_share(update->optim->params, share, shares, &first, &end);
        for (size_t i = first; i < end; i++) {
                speed[i] = MOMENTUM * speed[i] + grads[i];
                params[i] -= rate * speed[i];
        }
}

static void adam_share(void *ctx, size_t share, size_t shares)
{
        const struct update *update = ctx;
        const float step = (float)update->optim->step;
        const float unbias1 = 1 / (1 - powf(BETA1, step)), unbias2 = 1 / (1 - powf(BETA2, step));
        const float rate = update->optim->rate * unbias1;
        float *restrict params = update->params;
        float *restrict mean = update->optim->state;
        float *restrict square = update->optim->state + update->optim->params;
        const float *restrict grads = update->grads;
        size_t first, end;

        afz_pool_share(update->optim->params, share, shares, &first, &end);
        for (size_t i = first; i < end; i++) {
                mean[i] = BETA1 * mean[i] + (1 - BETA1) * grads[i];
                square[i] = BETA2 * square[i] + (1 - BETA2) * grads[i] * grads[i];
                params[i] -= rate * mean[i] / (sqrtf(square[i] * unbias2) + EPSILON);
        }
}

int afz_optim_init(struct afz_optim *optim, enum afz_optim_kind kind, float rate, size_t params)
{
        float *state = calloc(params, kinds[kind].states * sizeof(*state));

        if (!state)
                return -ENOMEM;
        *optim = (struct afz_optim){
                .kind = kind,
                .rate = rate > 0 ? rate : kinds[kind].rate,
                .params = params,
                .state = state,
        };
        return 0;
}

void afz_optim_done(struct afz_optim *optim)
{
        if (!optim)
                return;
        free(optim->state);
        optim->state = NULL;
}

void afz_optim_step(struct afz_optim *optim, float *params, const float *grads,
                    struct afz_pool *pool)
{
        struct update update = {optim, params, grads};

        optim->step++;
        afz_pool_run(pool, kinds[optim->kind].share, &update);
}

const char *afz_optim_name(enum afz_optim_kind kind)
{
        return kinds[kind].name;
}
