/* The network and its optimisers: products, gradients against finite differences, losses that fall.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "matrix.h"
#include "net.h"
#include "optim.h"
#include "pool.h"
#include "rng.h"

static void fill(struct afz_rng *rng, float *values, size_t n)
{
        for (size_t i = 0; i < n; i++)
                values[i] = afz_rng_between(rng, -1, 1);
}

static void fill_pass(struct afz_pass *pass, uint64_t seed, uint64_t first)
{
        for (size_t i = 0; i < pass->batch; i++) {
                afz_digit_draw(seed, AFZ_DIGITS_TRAINING, first + i,
                               &pass->input[i * AFZ_DIGIT_PIXELS]);
                pass->labels[i] = afz_digit_label(first + i);
        }
}

/* Sizes around the edges of tiles (4), panels (16) and blocks (128, 256), plain and transposed. */
static void product_is_right(void **state)
{
        static const struct {
                size_t rows, inner, cols;
        } cases[] = {{1, 1, 16},   {3, 5, 16},   {4, 256, 32},
                     {5, 257, 48}, {129, 3, 16}, {130, 300, 32}};

        (void)state;
        for (size_t n = 0; n < 2 * sizeof(cases) / sizeof(cases[0]); n++) {
                const size_t rows = cases[n / 2].rows, inner = cases[n / 2].inner,
                             cols = cases[n / 2].cols;
                const size_t a_row = n % 2 ? 1 : inner, a_col = n % 2 ? rows : 1;
                struct afz_rng rng = afz_rng_seeded(n, 0, 0);
                float *a = malloc(rows * inner * sizeof(float));
                float *b = malloc(inner * cols * sizeof(float));
                float *c = malloc(rows * cols * sizeof(float));

                assert_true(a && b && c);
                fill(&rng, a, rows * inner);
                fill(&rng, b, inner * cols);
                for (size_t i = 0; i < rows * cols; i++)
                        c[i] = 1;
                afz_matrix_multiply_add(
                        &(struct afz_product){rows, inner, cols, a, a_row, a_col, b, c}, NULL);
                for (size_t i = 0; i < rows; i++)
                        for (size_t j = 0; j < cols; j++) {
                                double sum = 1;

                                for (size_t k = 0; k < inner; k++)
                                        sum += (double)a[i * a_row + k * a_col] *
                                               (double)b[k * cols + j];
                                assert_true(fabs(sum - (double)c[i * cols + j]) < 1e-4);
                        }
                free(c);
                free(b);
                free(a);
        }
}

static void dot_is_right(void **state)
{
        struct afz_rng rng = afz_rng_seeded(1, 0, 0);
        float a[100], b[100];

        (void)state;
        fill(&rng, a, 100);
        fill(&rng, b, 100);
        for (size_t n = 0; n <= 100; n++) {
                double sum = 0;

                for (size_t i = 0; i < n; i++)
                        sum += (double)a[i] * (double)b[i];
                assert_true(fabs(sum - (double)afz_matrix_dot(a, b, n)) < 1e-4);
        }
}

/* *ret_active counts the hidden units that ReLU lets through. */
static double loss_with(struct afz_net *net, struct afz_pass *pass, size_t param, float value,
                        size_t *ret_active)
{
        const float before = net->params[param];
        double loss;

        net->params[param] = value;
        afz_net_forward(net, pass, NULL);
        loss = afz_net_score(pass).loss;
        net->params[param] = before;
        *ret_active = 0;
        for (size_t i = 0; i < pass->batch * AFZ_NET_HIDDEN; i++)
                *ret_active += pass->hidden[i] > 0;
        return loss;
}

/*
 * (f(p + h) - f(p - h)) / 2h against the gradient, for parameters of each kind. Where a hidden unit
 * switches on or off between the two, the loss has a kink and no derivative to compare with.
 */
static void gradients(void **state)
{
        static const struct {
                size_t first, count;
        } kinds[] = {
                {AFZ_NET_HIDDEN_WEIGHTS, AFZ_NET_INPUTS * AFZ_NET_HIDDEN},
                {AFZ_NET_HIDDEN_BIAS, AFZ_NET_HIDDEN},
                {AFZ_NET_OUTPUT_WEIGHTS, AFZ_NET_OUTPUTS * AFZ_NET_HIDDEN},
                {AFZ_NET_OUTPUT_BIAS, AFZ_NET_OUTPUTS},
        };
        const float h = 2e-3F;
        struct afz_rng rng = afz_rng_seeded(11, 0, 0);
        struct afz_net net;
        struct afz_pass pass;
        double largest = 0;
        size_t compared = 0;

        (void)state;
        assert_int_equal(afz_net_init(&net, 1), 0);
        assert_int_equal(afz_net_add_leaky_layers(&net, 1, 1), 0);
        assert_int_equal(afz_pass_init(&pass, 7), 0); /* no multiple of a tile */
        fill_pass(&pass, 1, 0);
        afz_net_forward(&net, &pass, NULL);
        afz_net_backward(&net, &pass, NULL);
        for (size_t i = 0; i < 100; i++) {
                const size_t kind = i % 4;
                const size_t param =
                        kinds[kind].first + (size_t)(afz_rng_next(&rng) % kinds[kind].count);
                const float at = net.params[param];
                size_t active_up, active_down;
                const double up = loss_with(&net, &pass, param, at + h, &active_up);
                const double down = loss_with(&net, &pass, param, at - h, &active_down);
                const double wanted = (up - down) / (2 * (double)h), got = (double)net.grads[param];

                if (active_up != active_down)
                        continue;
                if (fabs(wanted - got) > 3e-4 + .02 * fabs(wanted))
                        fail_msg("parameter %zu: gradient %g, finite difference %g", param, got,
                                 wanted);
                compared++;
                largest = fmax(largest, fabs(got));
        }
        assert_true(compared > 80);
        assert_true(largest > .05); /* else the tolerance would hide everything */
        afz_pass_done(&pass);
        afz_net_done(&net);
}

static void fresh_network_knows_nothing(void **state)
{
        struct afz_net net;
        struct afz_pass pass;
        struct afz_score score;

        (void)state;
        assert_int_equal(afz_net_init(&net, 1), 0);
        assert_int_equal(afz_pass_init(&pass, 200), 0);
        fill_pass(&pass, 1, 0);
        afz_net_forward(&net, &pass, NULL);
        score = afz_net_score(&pass);
        assert_true(score.loss > 1.5 && score.loss < 4); /* ln 10 = 2.3 */
        assert_in_range(score.correct, 0, 60);
        for (size_t i = 0; i < pass.batch; i++) {
                float sum = 0;

                for (size_t o = 0; o < AFZ_NET_OUTPUTS; o++)
                        sum += pass.output[i * AFZ_NET_OUTPUTS + o];
                assert_true(fabsf(sum - 1) < 1e-5F);
        }
        afz_pass_done(&pass);
        afz_net_done(&net);
}

/* Trains and returns the last loss; the parameters are the caller's to look at. */
static double train(struct afz_net *net, enum afz_optim_kind kind, size_t steps,
                    struct afz_pool *pool)
{
        struct afz_optim optim;
        struct afz_pass pass;
        double loss = 0;

        assert_int_equal(afz_net_init(net, 1), 0);
        assert_int_equal(afz_optim_init(&optim, kind, 0, AFZ_NET_PARAMS), 0);
        assert_int_equal(afz_pass_init(&pass, 32), 0);
        for (size_t step = 0; step < steps; step++) {
                fill_pass(&pass, 1, step * pass.batch);
                afz_net_forward(net, &pass, pool);
                loss = afz_net_score(&pass).loss;
                afz_net_backward(net, &pass, pool);
                afz_optim_step(&optim, net->params, net->grads, pool);
        }
        afz_pass_done(&pass);
        afz_optim_done(&optim);
        return loss;
}

static void both_optimisers_learn(void **state)
{
        (void)state;
        for (unsigned kind = 0; kind < AFZ_OPTIM_COUNT; kind++) {
                struct afz_net net;
                const double loss = train(&net, (enum afz_optim_kind)kind, 120, NULL);

                if (!(loss < 1.2))
                        fail_msg("%s ends at a loss of %g",
                                 afz_optim_name((enum afz_optim_kind)kind), loss);
                afz_net_done(&net);
        }
}

static void threads_change_no_bit(void **state)
{
        struct afz_net one, three;
        struct afz_pool *pool;

        (void)state;
        assert_int_equal(afz_pool_new(3, &pool), 0);
        train(&one, AFZ_OPTIM_ADAM, 5, NULL);
        train(&three, AFZ_OPTIM_ADAM, 5, pool);
        assert_memory_equal(one.params, three.params, AFZ_NET_PARAMS * sizeof(float));
        afz_net_done(&three);
        afz_net_done(&one);
        afz_pool_free(pool);
}

static void shares_cover_all(void **state)
{
        (void)state;
        for (size_t total = 0; total < 20; total++)
                for (size_t shares = 1; shares < 7; shares++) {
                        size_t expected = 0;

                        for (size_t share = 0; share < shares; share++) {
                                size_t first, end;

                                afz_pool_share(total, share, shares, &first, &end);
                                assert_int_equal(first, expected);
                                assert_in_range(end - first, total / shares, total / shares + 1);
                                expected = end;
                        }
                        assert_int_equal(expected, total);
                }
}

static void endless_batch_is_refused(void **state)
{
        struct afz_pass pass;

        (void)state;
        assert_int_equal(afz_pass_init(&pass, SIZE_MAX / 8), -ENOMEM);
        assert_null(pass.input);
        afz_pass_done(&pass);
        afz_pass_done(NULL);
        afz_net_done(NULL);
        afz_optim_done(NULL);
        assert_null(afz_pool_free(NULL));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(product_is_right),
                cmocka_unit_test(dot_is_right),
                cmocka_unit_test(gradients),
                cmocka_unit_test(fresh_network_knows_nothing),
                cmocka_unit_test(both_optimisers_learn),
                cmocka_unit_test(threads_change_no_bit),
                cmocka_unit_test(shares_cover_all),
                cmocka_unit_test(endless_batch_is_refused),
        };

        return cmocka_run_group_tests_name("demo_net", tests, NULL, NULL);
}
