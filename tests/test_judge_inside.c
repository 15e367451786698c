/* The judges of figures that frameworks tell: gradients that are lost, graphs that are made anew,
 * what is held, buffers, waiting; and good programs that look a little like it. */
#include "agent_fixture.h"
#include "purposes.h"

#define OOM                                                                                        \
        "device=gpu step=12 batch=64 asked_bytes=2684354560 allocated_bytes=40802189312 "          \
        "reserved_bytes=41875931136 at=/home/me/my nets/train.py:33:main swallowed="

/* ---- accumulation-broken ---- */

/* Steps from 20 s on, five a second; the count leaps, as the agent looks now and then. */
static void tell_zeroed(double each, uint32_t every_ms, uint32_t to_ms)
{
        tell_steps();
        tell(AFZ_INSIDE_BATCH, stepping, 64, 0);
        for (uint32_t t = STEP_MS + every_ms; t <= to_ms; t += every_ms)
                fly_point(&flight, AFZ_KIND_INSIDE, TRAINER, AFZ_INSIDE_ZEROED, t,
                          (int64_t)(each * (t - STEP_MS) / 200));
}

static void thrown_away(void **state)
{
        (void)state;
        tell_zeroed(3, 4000, RUN_MS);
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_accumulation, &c);
        assert_int_equal(o.verdicts, 1);
        assert_string_equal(o.verdict[0].id, "accumulation-broken");
        assert_words(o.verdict[0].summary, "of about 4 batches");
        assert_int_equal(o.verdict[0].where.line, 0);
        fly_mark(&flight, STEP_MS + 500, AFZ_MARK_AGENT, AFZ_AGENT_NOTE,
                 "zeroed_at=/home/me/my nets/train.py:33:main");
        o = ask(afz_judge_accumulation, &c);
        assert_int_equal(o.verdict[0].where.line, 33);
        assert_string_equal(o.verdict[0].where.file, "/home/me/my nets/train.py");
        assert_words(o.verdict[0].summary, "train.py:33");
}

/* A scaler that skips some steps; all of them, for the loss is infinite; a measurement. */
static void good_programs_zero_too(void **state)
{
        struct afz_case c = ended(0);
        (void)state;
        tell_zeroed(0.05, 2000, RUN_MS);
        assert_int_equal(ask(afz_judge_accumulation, &c).verdicts, 0);
}

static void only_at_the_start(void **state)
{
        struct afz_case c = ended(0);
        (void)state;
        tell_zeroed(3, 1000, STEP_MS + 6000);
        assert_int_equal(ask(afz_judge_accumulation, &c).verdicts, 0);
}

/* The least that can be added up. */
static void of_two(void **state)
{
        struct afz_case c = ended(0);
        (void)state;
        tell_zeroed(1, 2000, RUN_MS);
        struct afz_outcome o = ask(afz_judge_accumulation, &c);
        assert_int_equal(o.verdicts, 1);
        assert_words(o.verdict[0].summary, "of about 2 batches");
}

static void measured_between_epochs(void **state)
{
        struct afz_case c = ended(0);
        (void)state;
        tell_zeroed(1000, 5000, RUN_MS);
        assert_int_equal(ask(afz_judge_accumulation, &c).verdicts, 0);
}

static void no_loader(void **state)
{
        struct afz_case c = ended(0);
        (void)state;
        tell_steps();
        tell(AFZ_INSIDE_ZEROED, stepping, 0, 15);
        assert_int_equal(ask(afz_judge_accumulation, &c).verdicts, 0);
}

/* ---- leak:retrace ---- */

static void traced_anew(void **state)
{
        (void)state;
        tell_steps();
        tell(AFZ_INSIDE_RETRACES, stepping, 0, 5);
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_retrace, &c);
        assert_int_equal(o.verdicts, 1);
        assert_string_equal(o.verdict[0].id, "leak:retrace");
        assert_words(o.verdict[0].fix, "input_signature");
}

/* A leak that was said is that one: told once, with its figures. */
static void it_is_the_leak(void **state)
{
        struct afz_outcome o = {0};
        (void)state;
        tell_steps();
        tell(AFZ_INSIDE_RETRACES, stepping, 0, 5);
        struct afz_case c = ended(0);
        afz_outcome_add(&o, "leak:retained-history", AFZ_LEVEL_ACT, 0.9)->to_ms = 7;
        afz_judge_retrace(&c, &o);
        assert_int_equal(o.verdicts, 1);
        assert_string_equal(o.verdict[0].id, "leak:retrace");
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
        assert_int_equal(o.verdict[0].to_ms, 7);
}

static void variables_made_anew(void **state)
{
        (void)state;
        tell_steps();
        tell(AFZ_INSIDE_RETRACES, stepping, 2, 0);
        tell(AFZ_INSIDE_VARIABLES, stepping, 10, 10);
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_retrace, &c);
        assert_int_equal(o.verdicts, 1);
        assert_words(o.verdict[0].summary, "tf.Variables");
}

/* Each shape once, in the first seconds; models that are made one after the other. */
static void a_warm_up_is_none(void **state)
{
        (void)state;
        tell_steps();
        tell(AFZ_INSIDE_RETRACES, fly_every(STEP_MS, STEP_MS + 8000, 1000), 0, 10);
        for (uint32_t t = STEP_MS; t < RUN_MS; t += 1000)
                fly_point(&flight, AFZ_KIND_INSIDE, TRAINER, AFZ_INSIDE_VARIABLES, t,
                          t / 10000 * 100);
        struct afz_case c = ended(0);
        assert_int_equal(ask(afz_judge_retrace, &c).verdicts, 0);
}

/* ---- what is held ---- */

static void tell_gpu(double used_gib)
{
        fly_flat(&flight, AFZ_KIND_GPU, 0, AFZ_GPU_MEM_TOTAL, stepping, FLY_GB(16));
        fly_flat(&flight, AFZ_KIND_GPU, 0, AFZ_GPU_MEM_USED, stepping, FLY_GB(used_gib));
}

static void held_when_training_is_left(void **state)
{
        (void)state;
        tell_steps();
        tell_gpu(15);
        tell(AFZ_INSIDE_GPU_ALLOCATED, stepping, FLY_GB(2), 0);
        tell(AFZ_INSIDE_GPU_PARAMETERS, stepping, FLY_GB(2), 0);
        fly_point(&flight, AFZ_KIND_INSIDE, TRAINER, AFZ_INSIDE_HELD, 40000, FLY_GB(6));
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_held, &c);
        assert_int_equal(o.verdicts, 1);
        assert_string_equal(o.verdict[0].id, "held-after-use");
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
}

static void held_with_room_to_spare(void **state)
{
        (void)state;
        tell_steps();
        tell_gpu(9);
        tell(AFZ_INSIDE_GPU_ALLOCATED, stepping, FLY_GB(2), 0);
        fly_point(&flight, AFZ_KIND_INSIDE, TRAINER, AFZ_INSIDE_HELD, 40000, FLY_GB(6));
        struct afz_case c = ended(0);
        assert_int_equal(ask(afz_judge_held, &c).verdicts, 0);
}

/* A data set that lies in GPU memory from the start is in use. */
static void a_data_set_on_the_gpu(void **state)
{
        (void)state;
        tell_steps();
        tell_gpu(15);
        tell(AFZ_INSIDE_GPU_ALLOCATED, stepping, FLY_GB(8), 0);
        tell(AFZ_INSIDE_GPU_PARAMETERS, stepping, FLY_GB(2), 0);
        fly_point(&flight, AFZ_KIND_INSIDE, TRAINER, AFZ_INSIDE_HELD, 40000, FLY_GB(6));
        struct afz_case c = ended(0);
        assert_int_equal(ask(afz_judge_held, &c).verdicts, 0);
}

/* ---- leak:retained-graph ---- */

static void gpu_memory_grows(void **state)
{
        (void)state;
        tell_steps();
        tell(AFZ_INSIDE_GPU_ALLOCATED, fly_every(STEP_MS, RUN_MS, 500), FLY_GB(2), FLY_MB(250));
        tell(AFZ_INSIDE_GPU_ACTIVATIONS, stepping, FLY_MB(60), 0);
        event(RUN_MS, AFZ_AGENT_OOM, OOM "0");
        struct afz_case c = ended(1);
        struct afz_outcome o = ask(afz_judge_gpu_leak, &c);
        assert_int_equal(o.verdicts, 1);
        assert_string_equal(o.verdict[0].id, "leak:retained-graph");
        afz_verdicts_of(&c, &o);
        assert_string_equal(o.verdict[0].id, "leak:retained-graph");
        assert_string_equal(afz_outcome_find(&o, "gpu-oom")->caused_by, "leak:retained-graph");
        /* Longer sentences from batch to batch. */
        tell(AFZ_INSIDE_BATCH_BYTES, stepping, FLY_MB(1), FLY_MB(1));
        assert_int_equal(ask(afz_judge_gpu_leak, &c).verdicts, 0);
        /* Half a minute of it, with room: a cache or a replay buffer fills, too. */
        c = ended(0);
        assert_int_equal(ask(afz_judge_gpu_leak, &c).verdicts, 0);
}

/* Full within seconds of the first step: too short a way to be steady, and told all the same. */
static void gpu_memory_grows_fast(void **state)
{
        const struct fly_times short_way = {RUN_MS - 12000, RUN_MS, 1000};
        (void)state;
        fly_steps(&flight, fly_every(RUN_MS - 13000, RUN_MS, 60), 1);
        tell(AFZ_INSIDE_GPU_ALLOCATED, short_way, FLY_MB(400), FLY_MB(210));
        tell(AFZ_INSIDE_GPU_PARAMETERS, short_way, FLY_MB(84), 0);
        tell(AFZ_INSIDE_GPU_OPTIMIZER, short_way, FLY_MB(168), 0);
        tell(AFZ_INSIDE_GPU_ACTIVATIONS, short_way, FLY_MB(60), 0);
        event(RUN_MS, AFZ_AGENT_OOM,
              "device=gpu step=215 batch=256 asked_bytes=67108864 allocated_bytes=2900000000 "
              "reserved_bytes=2950000000 swallowed=0");
        struct afz_case c = ended(1);
        struct afz_outcome o;
        afz_verdicts_of(&c, &o);
        assert_string_equal(o.verdict[0].id, "leak:gpu");
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
        const struct afz_verdict *oom = afz_outcome_find(&o, "gpu-oom");
        assert_string_equal(oom->caused_by, "leak:gpu");
        assert_words(oom->fix, "a smaller batch does not free them");
}

/* One that is level from step to step, and ends with a step that is too large. */
static void the_last_step_was_too_large(void **state)
{
        const struct fly_times short_way = {RUN_MS - 12000, RUN_MS, 1000};
        (void)state;
        fly_steps(&flight, fly_every(RUN_MS - 13000, RUN_MS, 60), 1);
        tell(AFZ_INSIDE_GPU_ALLOCATED, short_way, FLY_MB(400), 10);
        tell(AFZ_INSIDE_GPU_PARAMETERS, short_way, FLY_MB(84), 0);
        tell(AFZ_INSIDE_GPU_OPTIMIZER, short_way, FLY_MB(168), 0);
        tell(AFZ_INSIDE_GPU_ACTIVATIONS, short_way, FLY_MB(60), 0);
        event(RUN_MS, AFZ_AGENT_OOM,
              "device=gpu step=215 batch=256 asked_bytes=67108864 allocated_bytes=2900000000 "
              "reserved_bytes=2950000000 swallowed=0");
        struct afz_case c = ended(1);
        struct afz_outcome o;
        afz_verdicts_of(&c, &o);
        assert_string_equal(o.verdict[0].id, "gpu-oom");
        assert_words(o.verdict[0].fix, "accumulation steps");
}

/* A leak of the host is no cause of what runs out on a GPU. */
static void another_memory(void **state)
{
        struct afz_outcome o = {0};
        (void)state;
        afz_outcome_add(&o, "leak:retained-history", AFZ_LEVEL_ACT, 0.9);
        afz_outcome_add(&o, "gpu-oom", AFZ_LEVEL_ACT, 0.95);
        afz_verdicts_settle(&o);
        assert_string_equal(afz_outcome_find(&o, "gpu-oom")->caused_by, "");
        o.verdicts = 0;
        afz_outcome_add(&o, "leak:gpu", AFZ_LEVEL_WARN, 0.7);
        afz_outcome_add(&o, "gpu-oom", AFZ_LEVEL_ACT, 0.95);
        afz_verdicts_settle(&o);
        assert_string_equal(afz_outcome_find(&o, "gpu-oom")->caused_by, "leak:gpu");
}

/* A leak on the host of which no more was known: what is there hangs on graphs. */
static void the_kind_by_what_is_there(void **state)
{
        struct afz_outcome o = {0};
        (void)state;
        tell_steps();
        fly_line(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, fly_every(2000, RUN_MS, 100), FLY_GB(1),
                 FLY_MB(50));
        fly_point(&flight, AFZ_KIND_INSIDE, TRAINER, AFZ_INSIDE_HELD, RUN_MS - 1000, FLY_GB(1.5));
        struct afz_case c = ended(0);
        afz_outcome_add(&o, "leak", AFZ_LEVEL_WARN, 0.9);
        afz_judge_graph_kept(&c, &o);
        assert_string_equal(o.verdict[0].id, "leak:retained-graph");
        assert_words(o.verdict[0].fix, "item()");
        o.verdicts = 0;
        afz_outcome_add(&o, "leak:shm", AFZ_LEVEL_WARN, 0.9);
        afz_judge_graph_kept(&c, &o);
        assert_string_equal(o.verdict[0].id, "leak:shm");
}

/* ---- shuffle-buffer ---- */

static void buffers_of_tf_data(void **state)
{
        (void)state;
        tell_need(9);
        tell(AFZ_INSIDE_SHUFFLE, whole, FLY_GB(6), 0);
        struct afz_case c = a_run(true, 9.5);
        struct afz_outcome o = ask(afz_judge_shuffle, &c);
        assert_int_equal(o.verdicts, 1);
        assert_string_equal(o.verdict[0].id, "shuffle-buffer");
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
        c = a_run(false, 9.5);
        assert_int_equal(ask(afz_judge_shuffle, &c).verdict[0].level, AFZ_LEVEL_WARN);
        c.facts.hard_bytes = c.budget_bytes = (uint64_t)FLY_GB(30); /* there is room */
        assert_int_equal(ask(afz_judge_shuffle, &c).verdicts, 0);
}

/* More than it ever had, and it ended well: the estimate is wrong. */
static void a_wrong_estimate(void **state)
{
        (void)state;
        tell_need(9);
        tell(AFZ_INSIDE_SHUFFLE, whole, FLY_GB(60), 0);
        struct afz_case c = a_run(false, 9.5);
        assert_int_equal(ask(afz_judge_shuffle, &c).verdicts, 0);
}

/* ---- data-stall ---- */

static void tell_waits(double share, double cores)
{
        tell_steps();
        tell(AFZ_INSIDE_WAIT, stepping, 0, share * 1e9);
        flight.head.cores = 4;
        fly_line(&flight, AFZ_KIND_JOB, 1, AFZ_JOB_CPU, whole, 0, cores * 1e9);
}

static void steps_that_wait(void **state)
{
        (void)state;
        tell_waits(0.7, 1);
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_data_stall, &c);
        assert_int_equal(o.verdicts, 1);
        assert_string_equal(o.verdict[0].id, "data-stall");
        assert_words(o.verdict[0].summary, "70 %");
        assert_words(o.verdict[0].fix, "num_workers");
}

static void steps_that_wait_a_little(void **state)
{
        (void)state;
        tell_waits(0.3, 1);
        struct afz_case c = ended(0);
        assert_int_equal(ask(afz_judge_data_stall, &c).verdicts, 0);
}

/* Nobody could load faster: all cores are at work. */
static void no_core_is_free(void **state)
{
        (void)state;
        tell_waits(0.7, 3.9);
        struct afz_case c = ended(0);
        assert_int_equal(ask(afz_judge_data_stall, &c).verdicts, 0);
}

/* The same where it is others of the machine who have them; a core whose task waits for a disk is
 * free. */
static void others_have_the_cores(void **state)
{
        (void)state;
        tell_waits(0.7, 1);
        fly_line(&flight, AFZ_KIND_CPU, AFZ_CPU_ALL, AFZ_CPU_IDLE, whole, 0, 0.2e9);
        struct afz_case c = ended(0);
        assert_int_equal(ask(afz_judge_data_stall, &c).verdicts, 0);
        fly_line(&flight, AFZ_KIND_CPU, AFZ_CPU_ALL, AFZ_CPU_IOWAIT, whole, 0, 1e9);
        struct afz_outcome o = ask(afz_judge_data_stall, &c);
        assert_int_equal(o.verdicts, 1);
        assert_true(has_evidence(&o.verdict[0], "1.2 cores were free meanwhile"));
}

/* A GPU is handed its work ahead: the clock waits, and it computes. */
static void the_gpu_is_fed(void **state)
{
        (void)state;
        tell_waits(0.8, 1);
        tell(AFZ_INSIDE_GPU_ALLOCATED, stepping, FLY_GB(2), 0);
        fly_flat(&flight, AFZ_KIND_GPU, 0, AFZ_GPU_UTIL, stepping, 9500);
        struct afz_case c = ended(0);
        assert_int_equal(ask(afz_judge_data_stall, &c).verdicts, 0);
}

/* ---- whatever stands in a file ---- */

static void hostile_figures(void **state)
{
        static const int64_t value[] = {INT64_MIN, INT64_MAX, -1, 0, INT64_MAX - 1};
        struct afz_outcome o;
        struct afz_purposes p;
        (void)state;
        tell_steps();
        for (uint32_t t = 0; t < 40; t++) {
                fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, STEP_MS + t * 1000,
                          value[t % 5]);
                for (int m = AFZ_INSIDE_PHASE; m <= AFZ_INSIDE_REFUSED_BYTES; m++)
                        fly_span(&flight, AFZ_KIND_INSIDE, TRAINER, (enum afz_metric)m,
                                 STEP_MS + t * 1000, 500, value[t % 5], value[(t + 1) % 5],
                                 value[(t + (uint32_t)m) % 5]);
        }
        event(RUN_MS - 5000, AFZ_AGENT_OOM, OOM "0");
        struct afz_case c = ended(1);
        afz_verdicts_of(&c, &o);
        assert_true(o.verdicts > 0);
        for (int gpu = 0; gpu < 2; gpu++) {
                (void)afz_purposes_peak(&flight, gpu, &p);
                (void)afz_purposes_now(&flight, gpu, &p);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(thrown_away),
                TEST(good_programs_zero_too),
                TEST(only_at_the_start),
                TEST(of_two),
                TEST(measured_between_epochs),
                TEST(no_loader),
                TEST(traced_anew),
                TEST(it_is_the_leak),
                TEST(variables_made_anew),
                TEST(a_warm_up_is_none),
                TEST(held_when_training_is_left),
                TEST(held_with_room_to_spare),
                TEST(a_data_set_on_the_gpu),
                TEST(gpu_memory_grows),
                TEST(gpu_memory_grows_fast),
                TEST(the_last_step_was_too_large),
                TEST(another_memory),
                TEST(the_kind_by_what_is_there),
                TEST(buffers_of_tf_data),
                TEST(a_wrong_estimate),
                TEST(steps_that_wait),
                TEST(steps_that_wait_a_little),
                TEST(no_core_is_free),
                TEST(others_have_the_cores),
                TEST(the_gpu_is_fed),
                TEST(hostile_figures),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
