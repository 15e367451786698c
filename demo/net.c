#include "net.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrix.h"
#include "rng.h"

enum { STREAM_WEIGHTS = 100, STREAM_BUFFERS }; /* apart from the streams that draw digits */

static float *floats_new(size_t rows, size_t cols)
{
        return malloc(rows * cols * sizeof(float));
}

static void fill_uniform(struct afz_rng *rng, float *values, size_t n, float limit)
{
        for (size_t i = 0; i < n; i++)
                values[i] = afz_rng_between(rng, -limit, limit);
}

int afz_net_init(struct afz_net *net, uint64_t seed)
{
        struct afz_rng rng = afz_rng_seeded(seed, STREAM_WEIGHTS, 0);

        *net = (struct afz_net){
                .params = calloc(AFZ_NET_PARAMS, sizeof(float)),
                .grads = calloc(AFZ_NET_PARAMS, sizeof(float)),
        };
        if (!net->params || !net->grads) {
                afz_net_done(net);
                return -ENOMEM;
        }
        fill_uniform(&rng, &net->params[AFZ_NET_HIDDEN_WEIGHTS], AFZ_NET_INPUTS * AFZ_NET_HIDDEN,
                     sqrtf(6.0F / AFZ_NET_INPUTS));
        fill_uniform(&rng, &net->params[AFZ_NET_OUTPUT_WEIGHTS], AFZ_NET_OUTPUTS * AFZ_NET_HIDDEN,
                     sqrtf(6.0F / AFZ_NET_HIDDEN));
        return 0;
}

void afz_net_done(struct afz_net *net)
{
        if (!net)
                return;
        for (size_t i = 0; i < net->buffer_count; i++)
                free(net->buffers[i]);
        free(net->buffers);
        free(net->grads);
        free(net->params);
        *net = (struct afz_net){0};
}

int afz_net_add_leaky_layers(struct afz_net *net, size_t count, uint64_t seed)
{
        struct afz_rng rng = afz_rng_seeded(seed, STREAM_BUFFERS, net->buffer_count);
        float **buffers = reallocarray(net->buffers, net->buffer_count + count, sizeof(*buffers));

        if (!buffers)
                return -ENOMEM;
        net->buffers = buffers;
        for (size_t i = 0; i < count; i++) {
                float *buffer = floats_new(AFZ_NET_BUFFER_ROWS, AFZ_NET_HIDDEN);

                if (!buffer)
                        return -ENOMEM;
                /* Small, and smaller the more there are: the sum of them must not drown the signal.
                 */
                fill_uniform(&rng, buffer, AFZ_NET_BUFFER_ROWS * AFZ_NET_HIDDEN,
                             .01F / (float)count);
                net->buffers[net->buffer_count++] = buffer;
        }
        return 0;
}

int afz_pass_init(struct afz_pass *pass, size_t batch)
{
        const size_t sample_bytes =
                sizeof(uint8_t) +
                sizeof(float) * (AFZ_NET_INPUTS + 2 * AFZ_NET_HIDDEN + 2 * AFZ_NET_OUTPUTS);

        *pass = (struct afz_pass){0};
        if (batch > PTRDIFF_MAX / sample_bytes)
                return -ENOMEM;
        *pass = (struct afz_pass){
                .batch = batch,
                .input = floats_new(batch, AFZ_NET_INPUTS),
                .labels = malloc(batch),
                .hidden = floats_new(batch, AFZ_NET_HIDDEN),
                .output = floats_new(batch, AFZ_NET_OUTPUTS),
                .hidden_error = floats_new(batch, AFZ_NET_HIDDEN),
                .output_error = floats_new(batch, AFZ_NET_OUTPUTS),
        };
        if (pass->input && pass->labels && pass->hidden && pass->output && pass->hidden_error &&
            pass->output_error)
                return 0;
        afz_pass_done(pass);
        return -ENOMEM;
}

void afz_pass_done(struct afz_pass *pass)
{
        if (!pass)
                return;
        free(pass->output_error);
        free(pass->hidden_error);
        free(pass->output);
        free(pass->hidden);
        free(pass->labels);
        free(pass->input);
        *pass = (struct afz_pass){0};
}

static void add_leaky_layers(const struct afz_net *net, struct afz_pass *pass)
{
        for (size_t layer = 0; layer < net->buffer_count; layer++)
                for (size_t i = 0; i < pass->batch; i++) {
                        float *hidden = &pass->hidden[i * AFZ_NET_HIDDEN];
                        const float *row =
                                &net->buffers[layer][i % AFZ_NET_BUFFER_ROWS * AFZ_NET_HIDDEN];

                        for (size_t j = 0; j < AFZ_NET_HIDDEN; j++)
                                hidden[j] += row[j];
                }
}

static void softmax(float *logits)
{
        float highest = logits[0], sum = 0;

        for (size_t o = 1; o < AFZ_NET_OUTPUTS; o++)
                highest = fmaxf(highest, logits[o]);
        for (size_t o = 0; o < AFZ_NET_OUTPUTS; o++) {
                logits[o] = expf(logits[o] - highest);
                sum += logits[o];
        }
        for (size_t o = 0; o < AFZ_NET_OUTPUTS; o++)
                logits[o] /= sum;
}

void afz_net_forward(const struct afz_net *net, struct afz_pass *pass, struct afz_pool *pool)
{
        const float *weights = &net->params[AFZ_NET_OUTPUT_WEIGHTS];
        const float *bias = &net->params[AFZ_NET_OUTPUT_BIAS];

        for (size_t i = 0; i < pass->batch; i++)
                memcpy(&pass->hidden[i * AFZ_NET_HIDDEN], &net->params[AFZ_NET_HIDDEN_BIAS],
                       AFZ_NET_HIDDEN * sizeof(float));
        afz_matrix_multiply_add(&(struct afz_product){.rows = pass->batch,
                                                      .inner = AFZ_NET_INPUTS,
                                                      .cols = AFZ_NET_HIDDEN,
                                                      .a = pass->input,
                                                      .a_row = AFZ_NET_INPUTS,
                                                      .a_col = 1,
                                                      .b = &net->params[AFZ_NET_HIDDEN_WEIGHTS],
                                                      .c = pass->hidden},
                                pool);
        add_leaky_layers(net, pass);

        for (size_t i = 0; i < pass->batch; i++) {
                float *hidden = &pass->hidden[i * AFZ_NET_HIDDEN];
                float *output = &pass->output[i * AFZ_NET_OUTPUTS];

                for (size_t j = 0; j < AFZ_NET_HIDDEN; j++)
                        hidden[j] = hidden[j] > 0 ? hidden[j] : 0;
                for (size_t o = 0; o < AFZ_NET_OUTPUTS; o++)
                        output[o] = bias[o] + afz_matrix_dot(hidden, &weights[o * AFZ_NET_HIDDEN],
                                                             AFZ_NET_HIDDEN);
                softmax(output);
        }
}

struct afz_score afz_net_score(const struct afz_pass *pass)
{
        struct afz_score score = {0};

        for (size_t i = 0; i < pass->batch; i++) {
                const float *output = &pass->output[i * AFZ_NET_OUTPUTS];
                size_t best = 0;

                for (size_t o = 1; o < AFZ_NET_OUTPUTS; o++)
                        if (output[o] > output[best])
                                best = o;
                score.correct += best == pass->labels[i];
                /* The floor keeps a network that is sure and wrong at a large loss instead of an
                 * endless one. */
                score.loss -= log(fmax((double)output[pass->labels[i]], 1e-12));
        }
        score.loss /= (double)pass->batch;
        return score;
}

/* With softmax and cross-entropy together, the derivative is simply what was said less what was
 * right. */
static void output_errors(struct afz_pass *pass)
{
        const float scale = 1 / (float)pass->batch;

        for (size_t i = 0; i < pass->batch; i++)
                for (size_t o = 0; o < AFZ_NET_OUTPUTS; o++) {
                        const size_t at = i * AFZ_NET_OUTPUTS + o;
                        const float truth = pass->labels[i] == o ? 1 : 0;

                        pass->output_error[at] = (pass->output[at] - truth) * scale;
                }
}

static void hidden_errors(const struct afz_net *net, struct afz_pass *pass, struct afz_pool *pool)
{
        const size_t n = pass->batch * AFZ_NET_HIDDEN;

        memset(pass->hidden_error, 0, n * sizeof(float));
        afz_matrix_multiply_add(&(struct afz_product){.rows = pass->batch,
                                                      .inner = AFZ_NET_OUTPUTS,
                                                      .cols = AFZ_NET_HIDDEN,
                                                      .a = pass->output_error,
                                                      .a_row = AFZ_NET_OUTPUTS,
                                                      .a_col = 1,
                                                      .b = &net->params[AFZ_NET_OUTPUT_WEIGHTS],
                                                      .c = pass->hidden_error},
                                pool);
        for (size_t i = 0; i < n; i++)
                pass->hidden_error[i] = pass->hidden[i] > 0 ? pass->hidden_error[i] : 0;
}

/* bias += the column sums of error. */
static void bias_gradient(const float *error, size_t batch, size_t cols, float *bias)
{
        for (size_t i = 0; i < batch; i++)
                for (size_t j = 0; j < cols; j++)
                        bias[j] += error[i * cols + j];
}

void afz_net_backward(struct afz_net *net, struct afz_pass *pass, struct afz_pool *pool)
{
        memset(net->grads, 0, AFZ_NET_PARAMS * sizeof(float));
        output_errors(pass);
        hidden_errors(net, pass, pool);

        afz_matrix_multiply_add(&(struct afz_product){.rows = AFZ_NET_OUTPUTS,
                                                      .inner = pass->batch,
                                                      .cols = AFZ_NET_HIDDEN,
                                                      .a = pass->output_error,
                                                      .a_row = 1,
                                                      .a_col = AFZ_NET_OUTPUTS,
                                                      .b = pass->hidden,
                                                      .c = &net->grads[AFZ_NET_OUTPUT_WEIGHTS]},
                                pool);
        afz_matrix_multiply_add(&(struct afz_product){.rows = AFZ_NET_INPUTS,
                                                      .inner = pass->batch,
                                                      .cols = AFZ_NET_HIDDEN,
                                                      .a = pass->input,
                                                      .a_row = 1,
                                                      .a_col = AFZ_NET_INPUTS,
                                                      .b = pass->hidden_error,
                                                      .c = &net->grads[AFZ_NET_HIDDEN_WEIGHTS]},
                                pool);
        bias_gradient(pass->output_error, pass->batch, AFZ_NET_OUTPUTS,
                      &net->grads[AFZ_NET_OUTPUT_BIAS]);
        bias_gradient(pass->hidden_error, pass->batch, AFZ_NET_HIDDEN,
                      &net->grads[AFZ_NET_HIDDEN_BIAS]);
}
