/* dataset-in-memory: with a step clock, while it is loaded, and where no clock is known. */
#include "memory_fixture.h"

#include "site_top.h"

static struct afz_outcome judge(const struct afz_case *c)
{
        return ask(afz_judge_dataset, c);
}

static void tell_two_copies(void)
{
        tell_site(1, "train.py:7", "<module>", NULL);
        tell_site(2, "train.py:8", "<module>", NULL);
        tell_loaded(1, 6);
        tell_loaded(2, 3);
}

static void two_copies_and_a_wide_type(void **state)
{
        (void)state;
        tell_two_copies();
        tell_need(9.5);
        tell_steps();
        struct afz_case c = a_run(true, 9.5);
        struct afz_outcome o = judge(&c);
        assert_int_equal(o.verdicts, 1);
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "dataset-in-memory");
        assert_int_equal(v->level, AFZ_LEVEL_ACT);
        assert_true(v->confidence >= 0.8);
        assert_string_equal(v->where.file, "/home/me/train.py");
        assert_int_equal(v->where.line, 7);
        assert_words(v->summary, "before the first step");
        assert_true(has_evidence(v, "float64"));
        assert_true(has_evidence(v, "in one piece"));
        assert_words(v->fix, "float32");
}

/* Estimates and a look at another moment may make it more than there was: a part is none of that.
 */
static void a_part_is_no_more_than_the_whole(void **state)
{
        static const struct {
                double need_gb;
                const char *words;
        } rows[] = {{9.5, ": 9.0G of the 9.5G at its peak were"},
                    {8.5, ": as good as all of the 8.5G at its peak were"}};
        (void)state;
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                tell_two_copies();
                tell_need(rows[i].need_gb);
                tell_steps();
                struct afz_case c = a_run(true, rows[i].need_gb);
                assert_words(judge(&c).verdict[0].summary, rows[i].words);
        }
}

static void two_of_the_same_size(void **state)
{
        (void)state;
        tell_site(1, "a.py:1", "<module>", NULL);
        tell_site(2, "a.py:2", "<module>", NULL);
        tell_loaded(1, 4);
        tell_loaded(2, 4.01);
        tell_need(9);
        tell_steps();
        struct afz_case c = a_run(false, 9);
        struct afz_outcome o = judge(&c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
        assert_true(has_evidence(&o.verdict[0], "two copies"));
        assert_false(has_evidence(&o.verdict[0], "float64"));
}

/* What it may use is far away: then it is nobody's business. */
static void a_small_one_is_fine(void **state)
{
        (void)state;
        tell_two_copies();
        tell_need(9.5);
        tell_steps();
        struct afz_case c = a_run(false, 9.5);
        c.facts.hard_bytes = c.budget_bytes = (uint64_t)FLY_GB(16);
        assert_int_equal(judge(&c).verdicts, 0);
}

/* What is not data, and what did not stay, or came later. */
static void other_things_are_not_data(void **state)
{
        (void)state;
        static const struct {
                const char *stack;
                double early;
        } rows[] = {
                {"torch/nn/modules/linear.py:111 in Linear.__init__()\ntrain.py:7", 6},
                {"tensorflow/python/ops/variables.py:2 in "
                 "Variable.__init__()\nkeras/src/layers/layer.py:6 in Layer.add_weight()\n"
                 "train.py:7",
                 6},
                {"dict.c:1 in grow()\n<frozen importlib._bootstrap>:241 in _call()\ntrain.py:7", 6},
                {"train.py:7", 1}, /* most of it came with the steps */
                {"tsl::BFCAllocator::Extend() in libtf.so\n"
                 "tensorflow::ThreadPoolDevice::Compute() in libtf.so\n"
                 "tensorflow/python/eager/backprop.py:1066 in GradientTape.gradient()\ntrain.py:7",
                 6}, /* the first step, told as it ended */
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                tell_site(1, "train.py:7", "<module>", rows[i].stack);
                tell_holds(1, whole, &(struct holds){FLY_GB(6), FLY_GB(rows[i].early), 9, -1, -1});
                tell_need(9);
                tell_steps();
                struct afz_case c = a_run(true, 9);
                if (judge(&c).verdicts != 0)
                        fail_msg("row %u", i);
        }
}

/* ---- stopped while it loads ---- */

static void tell_growing(uint64_t id, double gib, int64_t blocks)
{
        fly_line(&flight, AFZ_KIND_SITE, id, AFZ_SITE_LIVE, whole, 0, FLY_GB(gib) / 59.0);
        fly_flat(&flight, AFZ_KIND_SITE, id, AFZ_SITE_BLOCKS, whole, blocks);
        fly_line(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, fly_every(1000, RUN_MS, 100), 0,
                 FLY_GB(gib * 1.05) / 59.0);
}

static void stopped_while_loading(void **state)
{
        (void)state;
        static const struct {
                const char *line, *function;
                int64_t blocks;
                double reads; /* of what it holds; below 0: not recorded */
                bool says;
        } rows[] = {
                {"train.py:7", "<module>", 1, 0, true},      /* one huge array */
                {"train.py:7", "<module>", 9000, 1.1, true}, /* many pieces, from files */
                {"train.py:7 in load_images()", "load", 9000, 0, true}, /* by its name */
                {"train.py:7", "<module>", 9000, 0, false},             /* as a leak does */
                {"train.py:7", "<module>", 9000, -1, false},
                {"train.py:7", "<module>", 9000, 30, false}, /* a stream */
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                tell_site(1, rows[i].line, rows[i].function, NULL);
                tell_growing(1, 9, rows[i].blocks);
                if (rows[i].reads >= 0)
                        fly_line(&flight, AFZ_KIND_JOB, 100, AFZ_JOB_READ_CALLS, whole, 0,
                                 FLY_GB(9 * rows[i].reads) / 59.0);
                struct afz_case c = a_run(true, 9.45);
                struct afz_outcome o = judge(&c);
                if (o.verdicts != rows[i].says)
                        fail_msg("row %u", i);
                if (!rows[i].says)
                        continue;
                assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
                assert_words(o.verdict[0].summary, "while they came into memory");
                assert_int_equal(o.verdict[0].where.line, 7);
        }
}

/* It read as much as it holds, but rested meanwhile: whoever loads does so as fast as it goes. */
static void who_rests_does_not_load(void **state)
{
        static const struct {
                double cores, disk, network; /* the latter of what it holds */
                unsigned says;
        } rows[] = {
                {.05, 0, 0, 0}, {1, 0, 0, 1}, {.05, .5, 0, 1}, {.05, 0, 1.1, 1}, {.05, .01, .01, 0},
        };
        (void)state;
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                double per_s = (double)FLY_GB(9) / 59.0;
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                tell_site(1, "read.c:7 in main()", "main", NULL);
                fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, 0, 0);
                tell_growing(1, 9, 9000);
                fly_line(&flight, AFZ_KIND_JOB, 100, AFZ_JOB_READ_CALLS, whole, 0, per_s);
                fly_line(&flight, AFZ_KIND_JOB, 100, AFZ_JOB_READ, whole, 0, rows[i].disk * per_s);
                fly_line(&flight, AFZ_KIND_JOB, 100, AFZ_JOB_CPU, whole, 0, rows[i].cores * 1e9);
                fly_flat(&flight, AFZ_KIND_JOB, 100, AFZ_JOB_RUNNING, whole, rows[i].cores >= 1);
                fly_named(&flight, AFZ_KIND_NET, 2, "eth0", NULL, NULL);
                fly_line(&flight, AFZ_KIND_NET, 2, AFZ_NET_RECEIVED, whole, 0,
                         rows[i].network * per_s);
                fly_named(&flight, AFZ_KIND_NET, 1, "lo", NULL, NULL);
                fly_line(&flight, AFZ_KIND_NET, 1, AFZ_NET_RECEIVED, whole, 0, per_s);
                struct afz_case c = a_run(true, 9.45);
                if (judge(&c).verdicts != rows[i].says)
                        fail_msg("row %u", i);
        }
}

/* Of one line, a leak and a load: what is surer stays. */
static void a_leak_or_a_load(void **state)
{
        (void)state;
        static const struct {
                double confidence;
                const char *file, *stays;
                unsigned verdicts;
        } rows[] = {
                {0.75, "/home/me/train.py", "dataset-in-memory", 1},
                {0.95, "/home/me/train.py", "leak:retained-history", 1},
                {0.75, "/home/me/other.py", "leak:retained-history", 2},
                {0.75, "", "leak:retained-history", 2},
        };
        tell_site(1, "train.py:7", "<module>", NULL);
        tell_growing(1, 9, 1);
        struct afz_case c = a_run(true, 9.45);
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                struct afz_outcome o = {.end = c.facts.end};
                struct afz_verdict *v = afz_outcome_add(&o, "leak:retained-history", AFZ_LEVEL_ACT,
                                                        rows[i].confidence);
                snprintf(v->where.file, sizeof v->where.file, "%s", rows[i].file);
                v->where.line = 7;
                afz_judge_dataset(&c, &o);
                assert_int_equal(o.verdicts, 2);
                afz_verdicts_settle(&o);
                assert_int_equal(o.verdicts, rows[i].verdicts);
                assert_string_equal(o.verdict[0].id, rows[i].stays);
                assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
        }
}

/* ---- no clock ---- */

static void flat_without_a_clock(void **state)
{
        (void)state;
        tell_site(1, "train.py:7 in load()", "load", NULL);
        tell_loaded(1, 8);
        tell_need(9);
        fly_line(&flight, AFZ_KIND_JOB, 100, AFZ_JOB_CPU, fly_every(0, RUN_MS, 100), 0, 1e9);
        fly_flat(&flight, AFZ_KIND_JOB, 100, AFZ_JOB_READ_CALLS, fly_every(0, RUN_MS, 100), 7);
        fly_line(&flight, AFZ_KIND_JOB, 100, AFZ_JOB_WRITE_CALLS, fly_every(0, RUN_MS, 100), 0, 99);
        struct afz_case c = a_run(false, 9);
        struct afz_outcome o = judge(&c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
        assert_true(o.verdict[0].confidence < 0.75);
}

/* 2 GiB of texts so short that malloc takes four times that for them. */
static void what_malloc_adds(void **state)
{
        (void)state;
        tell_site(1, "table.c:7 in load()", "load", NULL);
        tell_need(8.5);
        tell_steps();
        fly_flat(&flight, AFZ_KIND_SITE, 1, AFZ_SITE_LIVE, whole, FLY_GB(2));
        fly_flat(&flight, AFZ_KIND_SITE, 1, AFZ_SITE_EARLY, whole, FLY_GB(2));
        fly_flat(&flight, AFZ_KIND_SITE, 1, AFZ_SITE_MEMORY, whole, AFZ_MEMORY_HEAP);
        struct afz_case c = a_run(false, 8.5);
        assert_int_equal(judge(&c).verdicts, 0); /* a quarter of it is not most */
        fly_flat(&flight, AFZ_KIND_INSIDE, 100, AFZ_INSIDE_HEAP_USED, whole, FLY_GB(8));
        struct afz_outcome o = judge(&c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].where.line, 7);
        assert_words(o.verdict[0].summary, "8.0G of the 8.5G");
}

/* Many blocks at a line whose name says nothing, there from the start: by its size alone. */
static void flat_at_a_line(void **state)
{
        (void)state;
        tell_site(1, "store.py:7 in features()", "features", NULL);
        tell_need(9);
        tell_holds(1, whole, &(struct holds){FLY_GB(6), 0, 4000, -1, -1});
        fly_line(&flight, AFZ_KIND_JOB, 100, AFZ_JOB_CPU, fly_every(0, RUN_MS, 100), 0, 1e9);
        fly_line(&flight, AFZ_KIND_JOB, 100, AFZ_JOB_WRITE_CALLS, fly_every(0, RUN_MS, 100), 0, 99);
        struct afz_case c = a_run(false, 9);
        struct afz_outcome o = judge(&c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
        assert_true(o.verdict[0].confidence < 0.65);
}

static void nothing_known_nothing_said(void **state)
{
        (void)state;
        struct afz_case c = a_run(true, 9.5);
        assert_int_equal(judge(&c).verdicts, 0); /* an empty flight */
        tell_need(9.5);
        tell_steps();
        assert_int_equal(judge(&c).verdicts, 0); /* no lines */
        tell_site(1, "train.py:7", "<module>", NULL);
        fly_flat(&flight, AFZ_KIND_SITE, 1, AFZ_SITE_LIVE, whole, FLY_GB(9));
        assert_int_equal(judge(&c).verdicts, 0); /* nobody told what is early */
        c.peak_bytes = c.budget_bytes = c.facts.hard_bytes = 0;
        assert_int_equal(judge(&c).verdicts, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(two_copies_and_a_wide_type),
                TEST(two_of_the_same_size),
                TEST(a_part_is_no_more_than_the_whole),
                TEST(a_small_one_is_fine),
                TEST(other_things_are_not_data),
                TEST(stopped_while_loading),
                TEST(who_rests_does_not_load),
                TEST(a_leak_or_a_load),
                TEST(flat_without_a_clock),
                TEST(what_malloc_adds),
                TEST(flat_at_a_line),
                TEST(nothing_known_nothing_said),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
