/* batch-too-large: what comes and goes with each step; and layer-buffer, which does neither. */
#include "memory_fixture.h"

static const struct fly_times stepping = {STEP_MS, RUN_MS, 1000};

static struct afz_outcome judge(const struct afz_case *c)
{
        return ask(afz_judge_batch, c);
}

/* 2 GiB stay; a step takes `own` on top, at two lines. */
static void tell_batches(double own)
{
        tell_site(1, "train.py:3 in make()", "make", NULL);
        tell_site(2, "net.py:12 in Net.forward()", "Net.forward", NULL);
        tell_site(3, "train.py:30", "<module>", NULL);
        tell_loaded(1, 2);
        tell_holds(2, stepping, &(struct holds){FLY_GB(0.1), 0, 4, FLY_GB(own * 0.7), 0});
        tell_holds(3, stepping, &(struct holds){0, 0, 0, FLY_GB(own * 0.5), 0});
        tell_high(stepping, 2 + own);
        tell_need(2.2 + own);
        tell_steps();
}

static void comes_and_goes(void **state)
{
        (void)state;
        tell_batches(7);
        struct afz_case c = a_run(true, 9.2);
        struct afz_outcome o = judge(&c);
        assert_int_equal(o.verdicts, 1);
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "batch-too-large");
        assert_int_equal(v->level, AFZ_LEVEL_ACT);
        assert_int_equal(v->where.line, 12);
        assert_string_equal(v->where.function, "Net.forward");
        assert_words(v->summary, "7.0G");
        assert_words(v->fix, "half the batch with 2 accumulation steps");
        assert_true(has_evidence(v, "train.py:30"));
        c.facts.batch = 256;
        assert_words(judge(&c).verdict[0].fix, "a batch of 128 with 2 accumulation steps");
}

static void as_many_parts_as_it_takes(void **state)
{
        (void)state;
        tell_batches(7);
        struct afz_case c = a_run(true, 9.2);
        c.facts.hard_bytes = c.budget_bytes = (uint64_t)FLY_GB(3.5);
        assert_words(judge(&c).verdict[0].fix, "an eighth of the batch");
        c.facts.hard_bytes = c.budget_bytes = (uint64_t)FLY_GB(2); /* no batch is small enough */
        assert_int_equal(judge(&c).verdicts, 0);
}

/* In a run of a few looks what is only built up has a high and a low, too: it must be seen to fall.
 */
static void what_only_rises_is_none(void **state)
{
        static const struct {
                uint32_t t_ms;
                double low, high;
        } look[] = {{STEP_MS + 200, 0, 0.6}, {STEP_MS + 1200, 0.6, 4.9}, {STEP_MS + 2200, 4.9, 9}};
        (void)state;
        tell_site(2, "net.py:12 in Net.forward()", "Net.forward", NULL);
        for (unsigned i = 0; i < AFZ_COUNT_OF(look); i++) {
                const struct fly_times now = {look[i].t_ms, look[i].t_ms + 1, 1};
                tell_holds(2, now,
                           &(struct holds){FLY_GB(look[i].high), 0, 4, FLY_GB(look[i].high),
                                           FLY_GB(look[i].low)});
                tell_high(now, look[i].high);
        }
        tell_need(9.2);
        fly_steps(&flight, fly_every(STEP_MS, STEP_MS + 2201, 200), 1);
        struct afz_case c = a_run(true, 9.2);
        assert_int_equal(judge(&c).verdicts, 0);
}

/* The way back through a network is one line with many stacks: each has a part of what it takes. */
static void a_line_of_many_stacks(void **state)
{
        (void)state;
        tell_site(1, "train.py:3 in make()", "make", NULL);
        tell_loaded(1, 2);
        for (unsigned stack = 2; stack < 6; stack++) {
                tell_site(stack, "train.py:30", "<module>", NULL);
                tell_holds(stack, stepping, &(struct holds){0, 0, 0, FLY_GB(1.75), 0});
        }
        tell_high(stepping, 9);
        tell_need(9.2);
        tell_steps();
        struct afz_case c = a_run(true, 9.2);
        struct afz_outcome o = judge(&c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].where.line, 30);
}

static void who_ended_well_and_low_is_fine(void **state)
{
        (void)state;
        tell_batches(5.5);
        struct afz_case c = a_run(false, 7.7);
        assert_int_equal(judge(&c).verdicts, 0);
        c.facts.hard_bytes = c.budget_bytes = (uint64_t)FLY_GB(8.2);
        struct afz_outcome o = judge(&c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
}

static void a_small_burst_is_not_it(void **state)
{
        (void)state;
        tell_batches(1);
        struct afz_case c = a_run(true, 9.8);
        assert_int_equal(judge(&c).verdicts, 0);
}

/* What stays grows from look to look: that is a leak, whatever comes and goes on top. */
static void what_rises_is_no_batch(void **state)
{
        (void)state;
        tell_site(1, "train.py:3", "<module>", NULL);
        fly_line(&flight, AFZ_KIND_SITE, 1, AFZ_SITE_LIVE, stepping, FLY_GB(1), FLY_GB(0.1));
        fly_line(&flight, AFZ_KIND_SITE, 1, AFZ_SITE_LOW, stepping, FLY_GB(1), FLY_GB(0.1));
        fly_line(&flight, AFZ_KIND_SITE, 1, AFZ_SITE_HIGH, stepping, FLY_GB(6), FLY_GB(0.1));
        tell_high(stepping, 9.5);
        tell_need(9.8);
        tell_steps();
        struct afz_case c = a_run(true, 9.8);
        assert_int_equal(judge(&c).verdicts, 0);
}

/* TensorFlow: a pool that the first steps fill, by threads that know no line of the user's. */
static void a_pool_that_stays(void **state)
{
        (void)state;
        tell_site(1, "train.py:3", "<module>", NULL);
        fly_named(&flight, AFZ_KIND_SITE, 2, "tsl::port::AlignedMalloc() in libtf.so", ":0", "");
        fly_mark(&flight, 1000, AFZ_MARK_SITE, 2,
                 "tsl::port::AlignedMalloc() in libtf.so\ntsl::BFCAllocator::Extend() in libtf.so\n"
                 "tensorflow::ThreadPoolDevice::Compute() in libtf.so");
        tell_site(3, "train.py:19", "<module>",
                  "tensorflow/python/data/ops/iterator_ops.py:709 in "
                  "make()\nkeras/src/backend/tensorflow/trainer.py:397 in TensorFlowTrainer.fit()\n"
                  "train.py:19");
        tell_loaded(1, 2);
        tell_loaded(3, 0.1);
        tell_holds(2, stepping,
                   &(struct holds){FLY_GB(6.5), FLY_GB(0.5), 9, FLY_GB(6.5), FLY_GB(6.5)});
        tell_high(stepping, 8.7);
        tell_need(9);
        tell_steps();
        struct afz_case c = a_run(false, 9);
        struct afz_outcome o = judge(&c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].where.line, 19);
        assert_words(o.verdict[0].summary, "6.0G");
}

/* A loop of the user's own tells a step as it ends: the first one seems to come before all. */
static void a_pool_that_the_first_step_filled(void **state)
{
        (void)state;
        tell_site(1, "train.py:3", "<module>", NULL);
        tell_site(2, "train.py:23", "<module>",
                  "tsl::BFCAllocator::Extend() in libtf.so\n"
                  "tensorflow::ThreadPoolDevice::Compute() in libtf.so\n"
                  "tensorflow/python/eager/backprop.py:1066 in GradientTape.gradient()\n"
                  "train.py:23");
        tell_loaded(1, 2);
        tell_loaded(2, 6.5);
        tell_high(stepping, 8.7);
        tell_need(9);
        tell_steps();
        struct afz_case c = a_run(false, 9);
        struct afz_outcome o = judge(&c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].where.line, 23);
}

/* It ended before a step was over. */
static void stopped_in_its_first_step(void **state)
{
        (void)state;
        tell_site(1, "train.py:3", "<module>", NULL);
        tell_site(2, "net.py:12 in Net.forward()", "Net.forward",
                  "functional.py:1723 in relu()\nnet.py:12 in Net.forward()\ntrain.py:30");
        tell_loaded(1, 2);
        tell_holds(2, fly_every(50000, RUN_MS, 1000),
                   &(struct holds){FLY_GB(7), FLY_GB(7), 60, FLY_GB(7), 0});
        tell_need(9.4);
        struct afz_case c = a_run(true, 9.4);
        struct afz_outcome o = judge(&c);
        assert_int_equal(o.verdicts, 1);
        assert_words(o.verdict[0].summary, "in its first step");
        assert_words(o.verdict[0].fix,
                     "a quarter of the batch"); /* half of it would not be enough */
        assert_int_equal(o.verdict[0].where.line, 12);
        assert_true(o.verdict[0].confidence < 0.8);
        c = a_run(false, 9.4);
        assert_int_equal(judge(&c).verdicts, 0);
}

/* Its first block was larger than what was left: what it asked for counts, not what was there. */
static void stopped_in_its_first_block(void **state)
{
        static const struct {
                double total;
                int64_t blocks;
                unsigned says;
        } rows[] = {{8, 1, 1}, {1.5, 1, 0}, {8, 20, 0}, {80, 1, 0}};
        (void)state;
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                tell_site(1, "train.py:3", "<module>", NULL);
                tell_site(2, "net.py:12 in Net.forward()", "Net.forward", NULL);
                tell_loaded(1, 8);
                tell_holds(2, fly_every(50000, RUN_MS, 1000),
                           &(struct holds){FLY_GB(1.4), FLY_GB(1.4), rows[i].blocks, -1, -1});
                fly_flat(&flight, AFZ_KIND_SITE, 2, AFZ_SITE_TOTAL, fly_every(50000, RUN_MS, 1000),
                         FLY_GB(rows[i].total));
                tell_need(9.4);
                struct afz_case c = a_run(true, 9.4);
                struct afz_outcome o = judge(&c);
                if (o.verdicts != rows[i].says)
                        fail_msg("row %u", i);
                if (!rows[i].says)
                        continue;
                assert_words(o.verdict[0].summary, "had asked for 8.0G");
                assert_true(has_evidence(&o.verdict[0], "before the step is about 8.0G"));
                assert_int_equal(o.verdict[0].where.line, 12);
        }
}

static void nothing_known_nothing_said(void **state)
{
        (void)state;
        struct afz_case c = a_run(true, 9.2);
        assert_int_equal(judge(&c).verdicts, 0);
        tell_need(9.2);
        tell_steps();
        tell_site(1, "train.py:3", "<module>", NULL);
        fly_flat(&flight, AFZ_KIND_SITE, 1, AFZ_SITE_LIVE, whole, FLY_GB(9));
        assert_int_equal(judge(&c).verdicts, 0); /* no high and low water */
        c.facts.hard_bytes = c.budget_bytes = 0;
        assert_int_equal(judge(&c).verdicts, 0);
}

/* ---- layer-buffer ---- */

static void layers_hold_buffers(void **state)
{
        (void)state;
        static const struct {
                const char *line, *function, *stack;
                bool says;
        } rows[] = {
                {"net.py:8 in LeakyLayer.__init__()", "LeakyLayer.__init__", NULL, true},
                {"net.py:8 in Mask.build()", "Mask.build",
                 "core.py:1 in assign()\nnet.py:8 in Mask.build()\nkeras/src/layers/layer.py:232 "
                 "in build_wrapper()",
                 true},
                {"net.py:8 in __init__()", "__init__",
                 "net.py:8 in __init__()\nnet.py:20 in "
                 "__init__()\ntrain.py:3",
                 true},
                {"net.py:8 in Faces.__init__()", "Faces.__init__", NULL, false},
                {"net.py:8 in FacesDataset.__init__()", "FacesDataset.__init__", NULL, false},
                {"net.py:8 in Net.__init__()", "Net.__init__",
                 "torch/nn/modules/linear.py:111 in Linear.__init__()\nnet.py:8 in Net.__init__()",
                 false},
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                tell_site(1, rows[i].line, rows[i].function, rows[i].stack);
                tell_holds(1, whole, &(struct holds){FLY_GB(4), FLY_GB(4), 80, -1, -1});
                tell_need(9);
                tell_steps();
                struct afz_case c = a_run(false, 9);
                struct afz_outcome o = ask(afz_judge_layer, &c);
                if (o.verdicts != rows[i].says)
                        fail_msg("row %u", i);
                if (!rows[i].says)
                        continue;
                assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
                assert_words(o.verdict[0].summary, "no leak");
                assert_int_equal(o.verdict[0].where.line, 8);
        }
}

static void layers_are_no_alarm(void **state)
{
        (void)state;
        tell_site(1, "net.py:8 in LeakyLayer.__init__()", "LeakyLayer.__init__", NULL);
        tell_holds(1, whole, &(struct holds){FLY_GB(4), FLY_GB(4), 80, -1, -1});
        tell_need(5);
        tell_steps();
        struct afz_case c = a_run(false, 5); /* of 10 */
        assert_int_equal(ask(afz_judge_layer, &c).verdict[0].level, AFZ_LEVEL_OK);
        c = a_run(true, 9.5);
        assert_int_equal(ask(afz_judge_layer, &c).verdict[0].level, AFZ_LEVEL_WARN);
        c = a_run(false, 100);
        assert_int_equal(ask(afz_judge_layer, &c).verdicts, 0); /* a small part of it */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(comes_and_goes),
                TEST(as_many_parts_as_it_takes),
                TEST(what_only_rises_is_none),
                TEST(a_line_of_many_stacks),
                TEST(who_ended_well_and_low_is_fine),
                TEST(a_small_burst_is_not_it),
                TEST(what_rises_is_no_batch),
                TEST(a_pool_that_stays),
                TEST(a_pool_that_the_first_step_filled),
                TEST(stopped_in_its_first_step),
                TEST(stopped_in_its_first_block),
                TEST(nothing_known_nothing_said),
                TEST(layers_hold_buffers),
                TEST(layers_are_no_alarm),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
