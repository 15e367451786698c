/*
 * The network: a perceptron of 784 inputs, 1024 hidden units (ReLU) and 10 outputs (softmax,
 * cross-entropy).
 *
 * All parameters lie in one array, and so do their gradients at the same places: an optimiser sees
 * two flat arrays and needs to know no more. A pass is what one batch needs on its way forth and
 * back; it is made for a batch size and grows with it. The loss is the mean over the batch, and the
 * gradients are those of that mean.
 */
#ifndef AFZ_NET_H
#define AFZ_NET_H

#include <stddef.h>
#include <stdint.h>

#include "digits.h"
#include "pool.h"

enum {
        AFZ_NET_INPUTS = AFZ_DIGIT_PIXELS,
        AFZ_NET_HIDDEN = 1024,
        AFZ_NET_OUTPUTS = AFZ_DIGIT_CLASSES,

        /* Where each kind begins in the array of parameters. Both matrices have rows of
           AFZ_NET_HIDDEN. */
        AFZ_NET_HIDDEN_WEIGHTS = 0,
        AFZ_NET_HIDDEN_BIAS = AFZ_NET_HIDDEN_WEIGHTS + AFZ_NET_INPUTS * AFZ_NET_HIDDEN,
        AFZ_NET_OUTPUT_WEIGHTS = AFZ_NET_HIDDEN_BIAS + AFZ_NET_HIDDEN,
        AFZ_NET_OUTPUT_BIAS = AFZ_NET_OUTPUT_WEIGHTS + AFZ_NET_OUTPUTS * AFZ_NET_HIDDEN,
        AFZ_NET_PARAMS = AFZ_NET_OUTPUT_BIAS + AFZ_NET_OUTPUTS,

        AFZ_NET_BUFFER_ROWS = 1024, /* of a leaky layer; 1024 x 1024 floats are 4 MiB */
};

struct afz_net {
        float *params, *grads; /* AFZ_NET_PARAMS each */
        float **buffers;       /* see afz_net_add_leaky_layers() */
        size_t buffer_count;
};

struct afz_pass {
        size_t batch;
        float *input;        /* batch x AFZ_NET_INPUTS; the caller fills it */
        uint8_t *labels;     /* batch; the caller fills it */
        float *hidden;       /* batch x AFZ_NET_HIDDEN, after ReLU */
        float *output;       /* batch x AFZ_NET_OUTPUTS: probabilities */
        float *hidden_error; /* as hidden: the loss's derivative before ReLU */
        float *output_error; /* as output: the loss's derivative before softmax */
};

struct afz_score {
        double loss; /* mean over the batch */
        size_t correct;
};

/* Weights start at random from the seed, scaled so that signals keep their size (He). -ENOMEM. */
int afz_net_init(struct afz_net *net, uint64_t seed);
void afz_net_done(struct afz_net *net);

/*
 * A pitfall that lives in the network: layers before ReLU that add a buffer of constants, own it
 * and train nothing of it. Each takes 4 MiB for as long as the network lives; the network learns as
 * well with it as without. -ENOMEM.
 */
int afz_net_add_leaky_layers(struct afz_net *net, size_t count, uint64_t seed);

/* -ENOMEM, also for a batch whose size no address space holds. */
int afz_pass_init(struct afz_pass *pass, size_t batch);
void afz_pass_done(struct afz_pass *pass);

/* input -> hidden, output. */
void afz_net_forward(const struct afz_net *net, struct afz_pass *pass, struct afz_pool *pool);

/* After afz_net_forward(). */
struct afz_score afz_net_score(const struct afz_pass *pass);

/* After afz_net_forward(): fills net->grads, replacing what was there. */
void afz_net_backward(struct afz_net *net, struct afz_pass *pass, struct afz_pool *pool);

#endif
