/* The judges of what the agent tells of memory: it ran out, was gotten over or not, steps were made
 * in parts; and good programs that look a little like it. */
#include <signal.h>

#include "agent_fixture.h"
#include "agent_tale.h"

/* ---- gpu-oom ---- */

#define OOM                                                                                        \
        "device=gpu step=12 batch=64 asked_bytes=2684354560 allocated_bytes=40802189312 "          \
        "reserved_bytes=41875931136 at=/home/me/my nets/train.py:33:main swallowed="

static void it_ended_for_it(void **state)
{
        (void)state;
        tell_steps();
        tell(AFZ_INSIDE_GPU_PARAMETERS, stepping, FLY_GB(2), 0);
        tell(AFZ_INSIDE_GPU_OPTIMIZER, stepping, FLY_GB(4), 0);
        event(RUN_MS, AFZ_AGENT_OOM, OOM "0");
        struct afz_case c = ended(1);
        struct afz_outcome o = ask(afz_judge_gpu_oom, &c);
        assert_int_equal(o.verdicts, 1);
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "gpu-oom");
        assert_int_equal(v->level, AFZ_LEVEL_ACT);
        assert_words(v->summary, "in step 12, with a batch of 64, at train.py:33");
        assert_string_equal(v->where.file, "/home/me/my nets/train.py");
        assert_int_equal(v->where.line, 33);
        assert_string_equal(v->where.function, "main");
        assert_true(has_evidence(v, "optimizer state 4.0G"));
        assert_words(v->fix, "a batch of");
        afz_verdicts_of(&c, &o); /* it explains the end */
        assert_string_equal(o.verdict[0].id, "gpu-oom");
        assert_string_equal(afz_outcome_find(&o, "exception")->caused_by, "gpu-oom");
}

#define SITES                                                                                      \
        "device=gpu total_bytes=8589934592 a_at=/home/me/my nets/net.py:22:forward "               \
        "a_bytes=4294967296 b_at=/home/me/my nets/train.py:9:<module> b_bytes=2147483648 "         \
        "c_at=nonsense c_bytes=1073741824"

/* What Python printed last, with its line; of one that ended well all the same, nothing. */
static void an_error_that_nobody_caught(void **state)
{
        static const char text[] = "at=/home/me/my nets/train.py:24:main: NameError: name 'i' is "
                                   "not defined";
        struct afz_outcome o;
        (void)state;
        event(RUN_MS, AFZ_AGENT_ERROR, text);
        struct afz_case c = ended(1);
        afz_verdicts_of(&c, &o);
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "exception");
        assert_words(v->summary, "NameError: name 'i' is not defined, at train.py:24 in main()");
        assert_string_equal(v->where.file, "/home/me/my nets/train.py");
        assert_int_equal(v->where.line, 24);
        assert_true(has_evidence(v, "exit status was 1"));
        c = ended(0);
        afz_verdicts_of(&c, &o);
        assert_null(afz_outcome_find(&o, "exception"));
}

/* A helper that failed long ago is not why it ends; who started the one that failed fails, too. */
static void whose_error_it_is(void **state)
{
        static const char torchrun[] = "at=/usr/bin/torchrun:8:<module>: ChildFailedError: "
                                       "train.py FAILED";
        struct afz_outcome o;
        (void)state;
        tell_steps();
        event(RUN_MS - 60000, AFZ_AGENT_ERROR, "at=helper.py:1:<module>: ImportError: no apex");
        struct afz_case c = ended(1);
        afz_verdicts_of(&c, &o);
        assert_string_equal(o.verdict[0].summary, "it ended by itself with exit status 1");
        event(RUN_MS - 2000, AFZ_AGENT_ERROR, "at=train.py:24:main: ValueError: no such column");
        event(RUN_MS - 10, AFZ_AGENT_ERROR, torchrun);
        c = ended(1);
        afz_verdicts_of(&c, &o);
        assert_words(o.verdict[0].summary, "ValueError: no such column");
        assert_int_equal(o.verdict[0].where.line, 24);
        c = ended(3); /* Python ends with 1 */
        afz_verdicts_of(&c, &o);
        assert_string_equal(o.verdict[0].summary, "it ended by itself with exit status 3");
        assert_true(has_evidence(&o.verdict[0], "had failed: ValueError, at train.py:24"));
}

/* The lines that held the memory: of this error, or of one just before it. */
static void lines_that_hold_it(void **state)
{
        static const struct {
                uint32_t sites_ms;
                bool told;
        } rows[] = {{RUN_MS, true}, {RUN_MS - 9000, true}, {RUN_MS - 30000, false}};
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                (void)teardown(state);
                (void)setup(state);
                event(rows[i].sites_ms - 1, AFZ_AGENT_OOM, OOM "1");
                event(rows[i].sites_ms, AFZ_AGENT_SITES, SITES);
                event(RUN_MS, AFZ_AGENT_OOM, OOM "0");
                struct afz_case c = ended(1);
                struct afz_outcome o = ask(afz_judge_gpu_oom, &c);
                const struct afz_verdict *v = &o.verdict[0];
                assert_string_equal(v->id, "gpu-oom");
                assert_int_equal(
                        has_evidence(v, "net.py:22 in forward() held 4.0G of GPU memory (50 %)"),
                        rows[i].told);
                assert_int_equal(has_evidence(v, "train.py:9 in <module> held 2.0G"), rows[i].told);
                assert_false(has_evidence(v, "nonsense"));
        }
}

/* Enough was free, but in pieces. */
static void in_pieces(void **state)
{
        (void)state;
        event(RUN_MS, AFZ_AGENT_OOM,
              "device=gpu asked_bytes=1000000 allocated_bytes=50000000 reserved_bytes=90000000");
        struct afz_case c = ended(1);
        struct afz_outcome o = ask(afz_judge_gpu_oom, &c);
        assert_int_equal(o.verdicts, 1);
        assert_words(o.verdict[0].fix, "expandable_segments");
}

/* A fifth of what the framework holds and more: that is why, and the error is its end. A search for
 * a size, and the last gaps of a memory that is full, are not. */
static void pieces_are_the_cause(void **state)
{
        static const struct {
                const char *text;
                int code;
                bool said;
        } rows[] = {
                {"device=gpu asked_bytes=1000000 allocated_bytes=50000000 reserved_bytes=90000000 "
                 "at=train.py:9:main swallowed=0",
                 1, true},
                {"device=gpu asked_bytes=1000000 allocated_bytes=80000000 reserved_bytes=90000000 "
                 "swallowed=0",
                 1, false},
                {"device=gpu asked_bytes=50000000 allocated_bytes=50000000 reserved_bytes=90000000 "
                 "swallowed=0",
                 1, false},
                {"device=gpu asked_bytes=1000000 allocated_bytes=50000000 reserved_bytes=90000000 "
                 "swallowed=1",
                 0, false},
                {"device=host asked_bytes=1000000 allocated_bytes=50000000 reserved_bytes=90000000",
                 1, false},
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                struct afz_outcome o;
                (void)teardown(state);
                (void)setup(state);
                event(RUN_MS, AFZ_AGENT_OOM, rows[i].text);
                struct afz_case c = ended(rows[i].code);
                afz_verdicts_of(&c, &o);
                const struct afz_verdict *v = afz_outcome_find(&o, "gpu-fragmentation");
                if (!v != !rows[i].said)
                        fail_msg("row %u: %s", i, rows[i].text);
                if (!v)
                        continue;
                assert_ptr_equal(v, &o.verdict[0]);
                assert_int_equal(v->level, AFZ_LEVEL_ACT);
                assert_int_equal(v->where.line, 9);
                assert_string_equal(afz_outcome_find(&o, "gpu-oom")->caused_by, v->id);
        }
}

/* What stays from step to step, is not the model's, and was made by one line. */
static void data_that_lies_on_the_gpu(void **state)
{
        static const struct {
                int64_t kept, activations; /* beside a model of 1 GB */
                const char *sites;
                const char *first;
        } rows[] = {
                {FLY_GB(30), FLY_GB(2),
                 "device=gpu total_bytes=34000000000 a_at=train.py:8:load a_bytes=29000000000",
                 "dataset-in-vram"},
                {FLY_GB(30), 0,
                 "device=gpu total_bytes=34000000000 a_at=train.py:8:load a_bytes=9000000000",
                 "gpu-oom"}, /* of many lines */
                {FLY_GB(2), 0,
                 "device=gpu total_bytes=34000000000 a_at=net.py:8:forward a_bytes=29000000000",
                 "gpu-oom"}, /* it came with the step */
                {FLY_GB(30), FLY_GB(29),
                 "device=gpu total_bytes=34000000000 a_at=net.py:8:forward a_bytes=29000000000",
                 "gpu-oom"}, /* the same, of a step before, in whose midst it was told */
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                struct afz_outcome o;
                (void)teardown(state);
                (void)setup(state);
                tell_steps();
                tell(AFZ_INSIDE_GPU_PARAMETERS, stepping, FLY_GB(1), 0);
                tell(AFZ_INSIDE_GPU_ALLOCATED, stepping, FLY_GB(1) + rows[i].kept, 0);
                tell(AFZ_INSIDE_GPU_ACTIVATIONS, stepping, rows[i].activations, 0);
                event(RUN_MS, AFZ_AGENT_OOM, OOM "0");
                event(RUN_MS, AFZ_AGENT_SITES, rows[i].sites);
                struct afz_case c = ended(1);
                afz_verdicts_of(&c, &o);
                assert_string_equal(o.verdict[0].id, rows[i].first);
                if (i > 0)
                        continue;
                assert_int_equal(o.verdict[0].where.line, 8);
                assert_string_equal(afz_outcome_find(&o, "gpu-oom")->caused_by, rows[i].first);
        }
}

/* What was not there at first is none: results that are kept, however few the steps were. */
static void results_are_no_data(void **state)
{
        (void)state;
        tell_steps();
        tell(AFZ_INSIDE_GPU_PARAMETERS, stepping, FLY_GB(1), 0);
        tell(AFZ_INSIDE_GPU_ALLOCATED, stepping, FLY_GB(2),
             FLY_GB(30) * 1000. / (RUN_MS - STEP_MS));
        event(RUN_MS, AFZ_AGENT_OOM, OOM "0");
        event(RUN_MS, AFZ_AGENT_SITES,
              "device=gpu total_bytes=34000000000 a_at=train.py:8:main a_bytes=29000000000");
        struct afz_case c = ended(1);
        assert_int_equal(ask(afz_judge_dataset_in_vram, &c).verdicts, 0);
}

/* Who looks for the largest batch that fits, or a library that tries its ways: no alarm. */
static void a_search_is_no_alarm(void **state)
{
        (void)state;
        tell_steps();
        for (int i = 0; i < 5; i++)
                event(STEP_MS + 10, AFZ_AGENT_OOM, "device=gpu step=1 swallowed=1");
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_gpu_oom, &c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_OK);
}

/* Who skips a batch again and again does not learn it. */
static void swallowed_again_and_again(void **state)
{
        (void)state;
        tell_steps();
        event(STEP_MS + 1000, AFZ_AGENT_OOM, "device=gpu step=5 batch=64 swallowed=1");
        event(STEP_MS + 5000, AFZ_AGENT_OOM, "device=gpu step=25 batch=64 swallowed=1");
        event(STEP_MS + 9000, AFZ_AGENT_OOM, "device=gpu step=45 batch=64 swallowed=1");
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_gpu_oom, &c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
        assert_words(o.verdict[0].summary, "3 times");
}

/* Who tries another size each time loses no step, though steps are made in between. */
static void a_search_with_steps(void **state)
{
        char text[80];
        (void)state;
        tell_steps();
        for (unsigned i = 0; i < 5; i++) {
                snprintf(text, sizeof text, "device=gpu step=%u batch=%u swallowed=1", 5 * i + 1,
                         1024U >> i);
                event(STEP_MS + 1000 * i, AFZ_AGENT_OOM, text);
        }
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_gpu_oom, &c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_OK);
}

static void the_last_thing_it_did(void **state)
{
        (void)state;
        tell_steps();
        event(RUN_MS, AFZ_AGENT_OOM, "device=gpu step=200 swallowed=1");
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_gpu_oom, &c);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
        assert_words(o.verdict[0].summary, "made no step after it");
}

/* It meant to train, and never came to it; without an optimizer it may be an evaluation. */
static void the_only_thing_it_did(void **state)
{
        for (int trains = 0; trains < 2; trains++) {
                (void)teardown(state);
                (void)setup(state);
                event(RUN_MS, AFZ_AGENT_OOM,
                      trains ? "device=gpu swallowed=1 trains=1"
                             : "device=gpu swallowed=1 trains=0");
                struct afz_case c = ended(0);
                struct afz_outcome o = ask(afz_judge_gpu_oom, &c);
                assert_int_equal(o.verdict[0].level, trains ? AFZ_LEVEL_WARN : AFZ_LEVEL_OK);
        }
}

/* ---- batch-too-large, with the split that worked ---- */

static void tell_splits(void)
{
        tell_steps();
        event(STEP_MS + 1000, AFZ_AGENT_OOM,
              "device=host step=3 batch=256 micro=256 asked_bytes=9 swallowed=0");
        event(STEP_MS + 1001, AFZ_AGENT_SPLIT, "step=3 batch=256 micro=128: too large");
        event(STEP_MS + 1100, AFZ_AGENT_OOM, "device=host step=3 batch=256 micro=128 swallowed=0");
        event(STEP_MS + 1101, AFZ_AGENT_SPLIT, "step=3 batch=256 micro=64: too large");
        tell(AFZ_INSIDE_SPLITS, stepping, 0, 5);
}

static void the_split_that_worked(void **state)
{
        (void)state;
        tell_splits();
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_batch, &c);
        assert_int_equal(o.verdicts, 1);
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "batch-too-large");
        assert_int_equal(v->level, AFZ_LEVEL_WARN);
        assert_words(v->summary, "in 4 parts of 64");
        assert_words(v->fix, "a batch of 64 with 4 accumulation steps");
        assert_true(has_evidence(v, "memory ran out 2 times, and it went on each time"));
        assert_int_equal(ask(afz_judge_gpu_oom, &c).verdicts, 0);
        assert_int_equal(ask(afz_judge_model_large, &c).verdicts, 0);
}

static void and_one_that_did_not(void **state)
{
        (void)state;
        tell_splits();
        event(RUN_MS, AFZ_AGENT_OOM, "device=host step=190 batch=256 micro=64 swallowed=0");
        struct afz_case c = ended(1);
        struct afz_outcome o;
        afz_verdicts_of(&c, &o);
        assert_string_equal(o.verdict[0].id, "batch-too-large");
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
        assert_words(o.verdict[0].fix, "a batch of 32 with 8");
        assert_string_equal(afz_outcome_find(&o, "host-exhaustion")->caused_by, "batch-too-large");
}

/* Where something that stays is to blame, parts that did not help are no verdict on the batch;
 * parts that got it over an error are. */
static void parts_for_want_of_better(void **state)
{
        static const char *const blamed[] = {"dataset-in-memory", "dataset-in-vram"};
        for (unsigned i = 0; i < 2 * AFZ_COUNT_OF(blamed); i++) {
                bool fails = i % 2;
                struct afz_outcome o = {0};
                (void)teardown(state);
                (void)setup(state);
                tell_splits();
                if (fails)
                        event(RUN_MS, AFZ_AGENT_OOM,
                              "device=host step=190 batch=256 micro=64 swallowed=0");
                struct afz_case c = ended(fails);
                afz_outcome_add(&o, blamed[i / 2], AFZ_LEVEL_WARN, 0.8);
                afz_judge_batch(&c, &o);
                assert_int_equal(afz_outcome_find(&o, "batch-too-large") != NULL, !fails);
        }
}

/* What was tried in an attempt before is told, but is no verdict on this one. */
static void another_attempt(void **state)
{
        struct afz_tale t;
        (void)state;
        fly_mark(&flight, 0, AFZ_MARK_ATTEMPT, 1, "");
        tell_splits();
        fly_mark(&flight, RUN_MS - 100, AFZ_MARK_ATTEMPT, 2, "");
        struct afz_case c = ended(0);
        assert_int_equal(ask(afz_judge_batch, &c).verdicts, 0);
        afz_tale_of(&flight, &c.facts.end, 0, &t);
        assert_int_equal(t.splits, 2);
}

/* Started anew, it makes its steps in parts from the first on: no event says so. */
static void in_parts_from_the_start(void **state)
{
        (void)state;
        fly_mark(&flight, 0, AFZ_MARK_ATTEMPT, 1, "");
        event(5000, AFZ_AGENT_SPLIT, "step=3 batch=256 micro=128: too large");
        fly_mark(&flight, STEP_MS - 1000, AFZ_MARK_ATTEMPT, 2, "");
        fly_steps(&flight, fly_every(STEP_MS, RUN_MS, 200), 1);
        tell(AFZ_INSIDE_BATCH, stepping, 256, 0);
        tell(AFZ_INSIDE_MICRO, stepping, 32, 0);
        tell(AFZ_INSIDE_SPLITS, stepping, 1, 5);
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_batch, &c);
        assert_int_equal(o.verdicts, 1);
        assert_words(o.verdict[0].summary, "in 8 parts of 32");
}

/* ---- model-too-large ---- */

static void not_even_one_sample(void **state)
{
        (void)state;
        tell_steps();
        tell(AFZ_INSIDE_OPTIMIZER, stepping, FLY_GB(4), 0);
        event(RUN_MS, AFZ_AGENT_OOM, "device=host step=1 batch=64 micro=1 swallowed=0");
        struct afz_case c = ended(1);
        struct afz_outcome o = ask(afz_judge_model_large, &c);
        assert_int_equal(o.verdicts, 1);
        assert_string_equal(o.verdict[0].id, "model-too-large");
        assert_words(o.verdict[0].fix, "8-bit optimizer (saves 3.0G)");
        afz_verdicts_of(&c, &o);
        assert_string_equal(o.verdict[0].id, "model-too-large");
        c = ended(0); /* it was computed again instead of kept, and ended well */
        assert_int_equal(ask(afz_judge_model_large, &c).verdicts, 0);
}

/* Thousands of steps were made: it fits, and something else came. Nor is it the model that is too
 * large where enough was free, but in pieces. */
static void one_sample_fit_before(void **state)
{
        static const struct {
                const char *text;
                unsigned verdicts;
        } rows[] = {
                {"device=gpu step=1 batch=1 swallowed=0", 1},
                {"device=gpu step=2 batch=1 swallowed=0", 1}, /* the optimizer's state came */
                {"device=gpu step=5000 batch=1 swallowed=0", 0},
                {"device=gpu step=5000 batch=64 micro=1 swallowed=0", 0},
                {"device=gpu batch=1 swallowed=0", 0}, /* by the clock */
                {"device=gpu step=1 batch=1 asked_bytes=1000000 allocated_bytes=50000000 "
                 "reserved_bytes=90000000 swallowed=0",
                 0},
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                (void)teardown(state);
                (void)setup(state);
                tell_steps();
                event(RUN_MS, AFZ_AGENT_OOM, rows[i].text);
                struct afz_case c = ended(1);
                if (ask(afz_judge_model_large, &c).verdicts != rows[i].verdicts)
                        fail_msg("row %u: %s", i, rows[i].text);
                struct afz_outcome o = ask(afz_judge_gpu_oom, &c);
                assert_null(strstr(o.verdict[0].fix, "halve the batch"));
        }
}

static void the_model_alone(void **state)
{
        (void)state;
        tell_steps();
        tell(AFZ_INSIDE_PARAMETERS, stepping, FLY_GB(3), 0);
        tell(AFZ_INSIDE_OPTIMIZER, stepping, FLY_GB(5.5), 0);
        struct afz_case c = a_run(true, 9.9);
        assert_int_equal(ask(afz_judge_model_large, &c).verdicts, 1);
        c.facts.hard_bytes = c.budget_bytes = (uint64_t)FLY_GB(20);
        assert_int_equal(ask(afz_judge_model_large, &c).verdicts, 0);
}

/* An error that means "no memory" is told as that, with its line. */
static void it_asked_for_too_much(void **state)
{
        (void)state;
        event(RUN_MS, AFZ_AGENT_OOM,
              "device=host asked_bytes=8796093022208 at=/x/a.py:7:load swallowed=0");
        struct afz_case c = ended(1);
        struct afz_outcome o = ask(afz_judge_end, &c);
        assert_string_equal(o.verdict[0].id, "host-exhaustion");
        assert_words(o.verdict[0].summary, "8.0T at once");
        assert_int_equal(ask(afz_judge_batch, &c).verdicts, 0);
        assert_int_equal(o.verdict[0].where.line, 7);
        /* What was there by then is another's, and does not take its place. */
        tell_site(1, "a.py:1", "<module>", NULL);
        tell_loaded(1, 4.5);
        assert_int_equal(ask(afz_judge_end, &c).verdict[0].where.line, 7);
}

/* ---- refused by us ---- */

/* What the probe refused is told, whoever made what of it. */
static void refused_by_us(void **state)
{
        static const struct {
                enum afz_end_how how;
                int code;
                uint32_t refused_ms;
                const char *id, *words; /* words: in the summary, or a note */
        } rows[] = {
                {AFZ_END_SIGNAL, SIGABRT, RUN_MS - 1000, "host-exhaustion", "2 large requests"},
                {AFZ_END_SIGNAL, SIGSEGV, RUN_MS - 1000, "host-exhaustion", "2 large requests"},
                {AFZ_END_EXIT, 134, RUN_MS - 1000, "host-exhaustion", "2 large requests"},
                {AFZ_END_EXIT, 1, RUN_MS - 1000, "host-exhaustion", "--policy adapt"},
                {AFZ_END_EXIT, 1, STEP_MS + 1000, "exception",
                 "2 large requests"}, /* gotten over */
                {AFZ_END_EXIT, 0, RUN_MS - 1000, "clean", "2 large requests"},
                {AFZ_END_SIGNAL, SIGABRT, 0, "crash", NULL},
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                (void)teardown(state);
                (void)setup(state);
                tell_steps();
                uint32_t t = rows[i].refused_ms;
                tell(AFZ_INSIDE_REFUSED, (struct fly_times){1000, t ? t : RUN_MS, 1000}, 0, 0);
                if (t > 0) {
                        tell(AFZ_INSIDE_REFUSED, (struct fly_times){t, RUN_MS, 1000}, 2, 0);
                        tell(AFZ_INSIDE_REFUSED_BYTES, (struct fly_times){t, RUN_MS, 1000},
                             FLY_MB(512), 0);
                }
                struct afz_case c = ended(rows[i].code);
                c.facts.end.how = rows[i].how;
                struct afz_outcome o = ask(afz_judge_end, &c);
                assert_int_equal(o.verdicts, 1);
                const struct afz_verdict *v = &o.verdict[0];
                if (strcmp(v->id, rows[i].id) != 0)
                        fail_msg("row %u: %s: %s", i, v->id, v->summary);
                if (rows[i].words && !strstr(v->summary, rows[i].words) &&
                    !has_evidence(v, rows[i].words))
                        fail_msg("row %u: %s", i, v->summary);
        }
}

/* ---- words ---- */

static void the_tale_in_words(void **state)
{
        struct afz_tale t;
        char text[400];
        (void)state;
        tell_splits();
        event(STEP_MS + 2000, AFZ_AGENT_RESUME, "step=40: goes on");
        const struct afz_end end = {AFZ_END_EXIT, 0};
        afz_tale_of(&flight, &end, 0, &t);
        assert_true(afz_tale_words(&t, text, sizeof text));
        assert_words(text, "from step 3 on each step was made in 4 parts, 64 of its 256 samples at "
                           "once (195 steps so)");
        assert_words(text, "checkpoint, at step 40");
        assert_true(afz_tale_words(&t, text, 20)); /* cut, not over its end */
        assert_true(strlen(text) < 20);
        t = (struct afz_tale){0};
        assert_false(afz_tale_words(&t, text, sizeof text));
}

/* Whatever was sent is read without harm. */
static void hostile_events(void **state)
{
        static const char *const text[] = {
                "",
                ":",
                "device=",
                "device=gpu at=",
                "device=gpu at=:",
                "device=gpu at=::",
                "device=gpu at=a:99999999999999999999:f",
                "device=gpu at=:1:",
                "at=x.py:-3:f",
                "step=18446744073709551615 batch=18446744073709551615 micro=1 device=gpu",
                "batch=1 micro=5",
                "batch=0 micro=0",
                "batch=18446744073709551615 micro=1",
        };
        struct afz_outcome o;
        (void)state;
        tell_steps();
        for (unsigned i = 0; i < AFZ_COUNT_OF(text); i++)
                for (int kind = 0; kind <= AFZ_AGENT_EVENTS; kind++)
                        event(STEP_MS + i, (enum afz_agent_event)kind, text[i]);
        struct afz_case c = ended(1);
        afz_verdicts_of(&c, &o);
        assert_true(o.verdicts > 0);
        for (unsigned i = 0; i < o.verdicts; i++)
                assert_true(o.verdict[i].where.line >= 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(it_ended_for_it),         TEST(an_error_that_nobody_caught),
                TEST(lines_that_hold_it),      TEST(in_pieces),
                TEST(a_search_is_no_alarm),    TEST(swallowed_again_and_again),
                TEST(the_last_thing_it_did),   TEST(the_only_thing_it_did),
                TEST(a_search_with_steps),     TEST(one_sample_fit_before),
                TEST(refused_by_us),           TEST(the_split_that_worked),
                TEST(and_one_that_did_not),    TEST(another_attempt),
                TEST(in_parts_from_the_start), TEST(not_even_one_sample),
                TEST(the_model_alone),         TEST(it_asked_for_too_much),
                TEST(the_tale_in_words),       TEST(parts_for_want_of_better),
                TEST(pieces_are_the_cause),    TEST(data_that_lies_on_the_gpu),
                TEST(whose_error_it_is),       TEST(results_are_no_data),
                TEST(hostile_events),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
