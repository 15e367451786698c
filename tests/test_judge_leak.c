/* Kinds of leaks and their lines: hand-made recordings in, id, line and words out. */
#include "agent_event.h"
#include "leak_fixture.h"
#include "leak_kind.h"

#define BACKWARD                                                                                   \
        "c10::alloc_cpu() in libc10.so\ntorch::autograd::Engine::thread_main() in libt.so\n"
#define TENSOR(op)                                                                                 \
        "c10::alloc_cpu() in libc10.so\nat::native::" op "() in libt.so\n"                         \
        "torch::autograd::VariableType::() in libt.so\nnet.py:8 in forward()\nnet.py:20 in main()"
#define NODE                                                                                       \
        "libstdc++.so.6+0xa958c\ntorch::autograd::VariableType::() in libt.so\n"                   \
        "at::_ops::addmm::call() in libt.so\nnet.py:8 in forward()\nnet.py:20 in main()"

#define EAGER(op)                                                                                  \
        "tsl::port::AlignedMalloc() in libtf.so\ntensorflow::" op "() in libtf.so\n"               \
        "tensorflow::EagerExecute() in libtf.so\nnet.py:8 in forward()\nnet.py:20 in main()"

/* ---- lines ---- */

static void kept_from_every_step(void **state)
{
        (void)state;
        grows(10);
        process(MAIN, AFZ_ROLE_MAIN, 200, 10);
        tell_site(&history);
        tell_age(11, 30, 300);
        fly_steps(&flight, fly_every(1000, END_MS, 100), 0);
        struct afz_outcome o = judged();
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "leak:retained-history");
        assert_string_equal(v->where.file, "/home/me/train.py");
        assert_int_equal(v->where.line, 33);
        assert_string_equal(v->where.function, "step");
        assert_words(v->summary, "kept all the while");
        assert_words(v->summary, "allocated at train.py:33 in step()");
        assert_true(has_evidence(v, "with every step"));
        assert_true(
                has_evidence(v, "30 s (300 steps) old on the mean, and some is from every part"));
        assert_words(v->fix, "maxlen");
        assert_int_equal(v->level, AFZ_LEVEL_ACT);
}

/* What is kept are batches: who handed them out says so. */
static void kept_batches(void **state)
{
        (void)state;
        grows(10);
        process(MAIN, AFZ_ROLE_MAIN, 200, 10);
        tell_site(&history);
        tell_age(11, 30, 300);
        fly_steps(&flight, fly_every(1000, END_MS, 100), 0);
        fly_mark(&flight, END_MS - 9000, AFZ_MARK_AGENT, AFZ_AGENT_FEED, "held=300 copies=0: x");
        assert_false(has_evidence(&judged().verdict[0], "batches"));
        fly_mark(&flight, END_MS - 8000, AFZ_MARK_AGENT, AFZ_AGENT_FEED, "held=400 copies=392: x");
        struct afz_outcome o = judged();
        assert_true(has_evidence(&o.verdict[0], "it held 400 batches of its data at once"));
}

/* Native code: that it is kept, or forgotten, is the same from outside. */
static void a_line_of_c(void **state)
{
        struct site s = history;
        (void)state;
        grows(10);
        s.name = "list.c:9 in keep()";
        s.where = "/home/me/list.c:9";
        tell_site(&s);
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak");
        assert_int_equal(o.verdict[0].where.line, 9);
        assert_words(o.verdict[0].summary, "allocated at list.c:9");
}

/* A working set that is ever new, however large, is no history. */
static void young_survivors(void **state)
{
        (void)state;
        grows(10);
        tell_site(&history);
        tell_age(11, 1, 0);
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak");
}

/* Once, and then nothing: what grew is elsewhere. */
static void a_line_that_rose_once(void **state)
{
        (void)state;
        grows(10);
        tell_site(&(struct site){.id = 5, .name = "a.py:1", .where = "/a.py:1"});
        fly_point(&flight, AFZ_KIND_SITE, 5, AFZ_SITE_LIVE, END_MS, FLY_MB(300));
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak");
}

static void too_little_is_seen(void **state)
{
        struct site s = history;
        (void)state;
        grows(10);
        s.mega_per_s = 0.4; /* of 10: nobody knows of the rest */
        tell_site(&s);
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak");
        assert_int_equal(o.verdict[0].where.line, 0);
}

/* ... unless malloc tells where the rest is: what is kept lies between what was freed. */
static void history_in_pieces(void **state)
{
        struct site s = history;
        (void)state;
        grows(10);
        s.mega_per_s = 1.6;
        tell_site(&s);
        heap(60, 20, 8);
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak:retained-history");
        assert_int_equal(o.verdict[0].where.line, 33);
}

/* ---- graphs ---- */

static void graph(const char *const *stack, const double *per_s, unsigned n)
{
        grows(10);
        for (unsigned i = 0; i < n; i++)
                tell_site(&(struct site){.id = 20 + i,
                                         .name = "net.py:8 in forward()",
                                         .where = "/me/net.py:8",
                                         .function = "forward",
                                         .stack = stack[i],
                                         .mega = 1,
                                         .mega_per_s = per_s[i],
                                         .memory = AFZ_MEMORY_HEAP});
}

static void graphs(void **state)
{
        static const struct {
                const char *stack[3];
                double per_s[3];
                const char *id;
        } row[] = {
                /* Results of operations, and the nodes. */
                {{TENSOR("relu"), NODE}, {8, 0.2}, "leak:retained-graph"},
                /* No node was sampled: but what lies between is kept, too. */
                {{TENSOR("relu"), TENSOR("addmm")}, {5, 4}, "leak:retained-graph"},
                /* All was freed on the way back, but for the nodes. */
                {{NODE}, {9}, "leak:retained-graph"},
                /* One result alone, detached: a history. */
                {{TENSOR("addmm")}, {9}, "leak:retained-history"},
                /* A tape: two operations of one line, or one. */
                {{EAGER("ReluOp"), EAGER("BiasOp")}, {6, 3}, "leak:retained-graph"},
                {{EAGER("BiasOp")}, {9}, "leak:retained-history"},
                /* Gradients are of no graph. */
                {{BACKWARD "net.py:8 in forward()", BACKWARD "x"}, {5, 4}, "leak:retained-history"},
                /* Hostile: nothing, a lone newline, plumbing without an end. */
                {{NULL, "\n", "libc.so+0x1\nlibc.so+0x2"}, {3, 3, 3}, "leak:retained-history"},
        };
        (void)state;
        for (unsigned i = 0; i < AFZ_COUNT_OF(row); i++) {
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                graph(row[i].stack, row[i].per_s, 3);
                struct afz_outcome o = judged();
                if (strcmp(o.verdict[0].id, row[i].id) != 0)
                        fail_msg("row %u: %s, not %s", i, o.verdict[0].id, row[i].id);
                assert_int_equal(o.verdict[0].where.line, 8);
        }
}

/* What a step needs while it runs, and a look happens to see, is not kept. */
static void scratch_of_the_last_step(void **state)
{
        static const char *const stack[] = {TENSOR("addmm")};
        static const double per_s[] = {9};
        (void)state;
        graph(stack, per_s, 1);
        fly_mark(&flight, 0, AFZ_MARK_SITE, 21, TENSOR("sqrt"));
        for (uint32_t t = 0; t <= END_MS; t += 1000)
                fly_point(&flight, AFZ_KIND_SITE, 21, AFZ_SITE_LIVE, t, FLY_MB(t % 7000 ? 0 : 80));
        fly_point(&flight, AFZ_KIND_SITE, 21, AFZ_SITE_LIVE, END_MS + 100, FLY_MB(80));
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak:retained-history");
}

/* ---- what the kernel and malloc tell ---- */

static void copies_of_workers(void **state)
{
        (void)state;
        grows(10);
        process(MAIN, AFZ_ROLE_MAIN, 400, 0);
        for (uint64_t pid = 101; pid < 105; pid++)
                process(pid, AFZ_ROLE_WORKER, 400, 0);
        struct afz_outcome o = judged();
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "leak:worker-copy");
        assert_true(has_evidence(v, "4 loader workers shared with their parent"));
        assert_words(v->fix, "NumPy");
        assert_true(v->confidence < 0.9);
}

/* The line that made what they share, and what they copy by and by. */
static void the_line_that_is_copied(void **state)
{
        struct site list = history, code = {.id = 12, .name = "imports of modules"};
        (void)state;
        grows(10);
        process(MAIN, AFZ_ROLE_MAIN, 400, 0);
        for (uint64_t pid = 101; pid < 105; pid++)
                process(pid, AFZ_ROLE_WORKER, 400, 0);
        list.mega = 100;
        list.mega_per_s = 0;
        list.memory = AFZ_MEMORY_OBJECTS;
        code.mega = 120; /* more, but nobody's line */
        tell_site(&list);
        tell_site(&code);
        struct afz_outcome o = judged();
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "leak:worker-copy");
        assert_int_equal(v->where.line, 33);
        assert_true(has_evidence(v, "100M of what they shared was there before they began"));
        list.id = 13; /* as much again elsewhere, twice: then it is not clear */
        list.name = "train.py:40";
        list.where = "/home/me/train.py:40";
        tell_site(&list);
        list.id = 14;
        list.where = "/home/me/other.py:40";
        tell_site(&list);
        o = judged();
        assert_string_equal(o.verdict[0].id, "leak:worker-copy");
        assert_string_equal(o.verdict[0].where.file, "");
}

/* A data set is built, then workers begin to copy it: that is what it ended for. */
static void copies_behind_a_data_set(void **state)
{
        (void)state;
        for (uint32_t t = 0; t < END_MS; t += 100) {
                double mega = t < 30000 ? 20 + 13.0 * t / 1000 : 400 + 9.0 * (t - 30000) / 1000;
                fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, t, FLY_MB(mega));
        }
        fly_line(&flight, AFZ_KIND_PROC, MAIN, AFZ_PROC_RSS_ANON, fly_every(0, 30000, 1000), 0,
                 13 << 20);
        fly_flat(&flight, AFZ_KIND_PROC, MAIN, AFZ_PROC_RSS_ANON, fly_every(30000, END_MS, 1000),
                 FLY_MB(400));
        for (uint64_t pid = 101; pid < 104; pid++) {
                struct fly_times t = fly_every(30500, END_MS, 1000);
                fly_flat(&flight, AFZ_KIND_PROC, pid, AFZ_PROC_ROLE, t, AFZ_ROLE_WORKER);
                fly_flat(&flight, AFZ_KIND_PROC, pid, AFZ_PROC_RSS_ANON, t, FLY_MB(400));
        }
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak:worker-copy");
        assert_true(o.verdict[0].from_ms > 30000);
}

static void workers_that_grow(void **state)
{
        (void)state;
        grows(10);
        process(MAIN, AFZ_ROLE_MAIN, 400, 0);
        process(101, AFZ_ROLE_WORKER, 400, 5);
        process(102, AFZ_ROLE_WORKER, 400, 5);
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak");
        assert_words(o.verdict[0].fix, "loader workers grow");
}

/* Of one process nothing is known: it may be that one. */
static void a_process_that_cannot_be_read(void **state)
{
        (void)state;
        grows(10);
        process(101, AFZ_ROLE_WORKER, 900, 0);
        fly_flat(&flight, AFZ_KIND_PROC, 7, AFZ_PROC_STATE, fly_every(0, END_MS, 1000), 'S');
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak");
}

/* Workers that are too small to have copied so much. */
static void small_workers(void **state)
{
        (void)state;
        grows(10);
        process(101, AFZ_ROLE_WORKER, 30, 0);
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak");
}

static void a_heap_in_pieces(void **state)
{
        (void)state;
        grows(10);
        process(MAIN, AFZ_ROLE_MAIN, 200, 10);
        heap(80, 10, 9);
        tell_site(&(struct site){.id = 5, .name = "a.c:1", .where = "/a.c:1", .mega = 70});
        tell_site(&(struct site){.id = 6, .name = "a.c:2", .where = "/a.c:2", .mega_per_s = 0.1});
        struct afz_outcome o = judged();
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "leak:fragmentation");
        assert_true(has_evidence(v, "mallinfo2"));
        assert_words(v->fix, "malloc_trim(0)");
        assert_true(v->confidence >= 0.7);
}

/* What is small and stays lies between what was freed: it is named, large blocks are not. */
static void what_holds_the_pieces(void **state)
{
        struct site pin = history, large = {.id = 5, .name = "a.py:1", .where = "/a.py:1"};
        (void)state;
        grows(10);
        process(MAIN, AFZ_ROLE_MAIN, 200, 10);
        heap(80, 10, 9);
        pin.mega_per_s = 0.3;
        large.mega_per_s = 0.5;
        tell_site(&pin);
        tell_site(&large);
        tell_age(11, 30, 0);
        fly_line(&flight, AFZ_KIND_SITE, 5, AFZ_SITE_COUNTED, fly_every(0, END_MS, 1000), 0,
                 1 << 19);
        struct afz_outcome o = judged();
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "leak:fragmentation");
        assert_int_equal(v->where.line, 33);
        assert_words(v->summary, "what holds it is kept at train.py:33 in step()");
        assert_words(v->fix, "MALLOC_MMAP_THRESHOLD_=65536");
}

/* Nobody asked malloc: then it is a guess, and only where lines tell of what it had before. */
static void a_heap_that_may_be_in_pieces(void **state)
{
        struct site had = {.id = 5, .name = "a.py:1", .where = "/a.py:1", .mega = 150};
        (void)state;
        grows(10);
        tell_site(&had);
        tell_site(&(struct site){.id = 6, .name = "a.py:2", .where = "/a.py:2", .mega_per_s = .1});
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak:fragmentation");
        assert_true(o.verdict[0].confidence < 0.6);
        afz_flight_done(&flight);
        afz_flight_init(&flight);
        grows(10);
        had.mega = 20; /* of 200: most of it is not seen at all */
        tell_site(&had);
        o = judged();
        assert_string_equal(o.verdict[0].id, "leak");
}

static void by_memory(void **state)
{
        static const struct {
                enum afz_site_memory memory;
                double cgroup_per_s;
                const char *id, *words;
                bool around; /* the cgroup is not the job's own */
        } row[] = {
                {AFZ_MEMORY_PINNED, 0, "leak:pinned", "pinned for the GPU"},
                {AFZ_MEMORY_SHARED, 9, "leak:shm", "in shared memory"},
                {AFZ_MEMORY_OBJECTS, 0, "leak:retained-history", "kept"},
                {(enum afz_site_memory)99, 0, "leak:retained-history", "kept"},
                {AFZ_MEMORY_HEAP, 9, "leak:retained-history", "kept", true}, /* somebody else's */
                {(enum afz_site_memory) - 1, 0, "leak:retained-history", "kept"},
        };
        (void)state;
        for (unsigned i = 0; i < AFZ_COUNT_OF(row); i++) {
                struct site s = history;
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                grows(10);
                s.memory = row[i].memory;
                tell_site(&s);
                (void)fly_named(&flight, AFZ_KIND_CGROUP, 1,
                                row[i].around ? "user.slice" : "antifreeze-", NULL, NULL);
                fly_line(&flight, AFZ_KIND_CGROUP, 1, AFZ_CGROUP_SHMEM, fly_every(0, END_MS, 1000),
                         0, row[i].cgroup_per_s * (1 << 20));
                struct afz_outcome o = judged();
                assert_string_equal(o.verdict[0].id, row[i].id);
                assert_words(o.verdict[0].summary, row[i].words);
                assert_int_equal(o.verdict[0].where.line, 33);
        }
}

/* Shared memory is seen without a probe, too. */
static void shared_without_lines(void **state)
{
        (void)state;
        grows(10);
        fly_line(&flight, AFZ_KIND_JOB, MAIN, AFZ_JOB_PSS_SHMEM, fly_every(0, END_MS, 1000), 0,
                 9 << 20);
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak:shm");
        assert_true(has_evidence(&o.verdict[0], "is shared memory"));
}

/* Tensors are made in the heap and then moved: half of the growth are holes that they left. */
static void shared_beside_holes(void **state)
{
        static const struct {
                double shared, holes;
                const char *id;
        } rows[] = {{5, 4.8, "leak:shm"}, {2, 7, "leak:fragmentation"}, {4, 0, "leak"}};
        (void)state;
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                grows(10);
                process(MAIN, AFZ_ROLE_MAIN, 200, 10);
                heap(80, 10, rows[i].holes);
                fly_line(&flight, AFZ_KIND_JOB, MAIN, AFZ_JOB_PSS_SHMEM, fly_every(0, END_MS, 1000),
                         0, rows[i].shared * (1 << 20));
                struct afz_outcome o = judged();
                assert_string_equal(o.verdict[0].id, rows[i].id);
                assert_int_equal(has_evidence(&o.verdict[0], "lies unused in the heap"), i == 0);
        }
}

/* A job that grows with pauses, which is the only sign that it works. */
static void grows_with_pauses(double mega_a_look)
{
        for (uint32_t look = 0; look * 100 < END_MS; look++)
                fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, look * 100,
                          FLY_MB(200 + mega_a_look * (look / 2)));
        fly_flat(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_HARD, fly_every(0, END_MS, 1000), FLY_GB(8));
}

#define TABLE "train.py:8"
#define POOL  "tsl::BFCAllocator::Extend() in libtf.so\ntrain.py:8"

/* A few blocks whose pages are written to bit by bit are no leak; blocks that are made anew, ever
 * larger, are one, and so are many; and TensorFlow's pool, where memory is given back, as in steps.
 */
static void large_blocks_that_fill(void **state)
{
        struct site fill = {.id = 11,
                            .name = "train.py:8",
                            .where = "/home/me/train.py:8",
                            .mega = 1,
                            .memory = AFZ_MEMORY_HEAP};
        static const struct {
                unsigned blocks;
                bool made_anew, has_teeth;
                unsigned verdicts;
                const char *stack;
                unsigned larger; /* than what is full when it ends, so many times */
        } rows[] = {{2, false, false, 0, TABLE, 1},   {2, false, true, 0, TABLE, 1},
                    {2, false, false, 0, TABLE, 3},   {2, true, false, 1, TABLE, 1},
                    {400, false, false, 1, TABLE, 1}, {2, false, false, 0, POOL, 1},
                    {2, false, true, 1, POOL, 1}};
        struct fly_times t = fly_every(0, END_MS, 1000);
        (void)state;
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                struct afz_case c = {
                        .flight = &flight,
                        .facts = {.end = {.how = AFZ_END_STOPPED}, .stop_cause = AFZ_CAUSE_BUDGET}};
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                fill.stack = rows[i].stack;
                fill.mega_per_s = rows[i].has_teeth ? 9.5 : 38;
                if (rows[i].has_teeth)
                        grows(10);
                else
                        grows_with_pauses(8);
                tell_site(&fill);
                fly_flat(&flight, AFZ_KIND_SITE, fill.id, AFZ_SITE_BLOCKS, t, rows[i].blocks);
                fly_line(&flight, AFZ_KIND_SITE, fill.id, AFZ_SITE_TOTAL, t,
                         FLY_MB(rows[i].larger * fill.mega_per_s * END_MS / 1000),
                         rows[i].made_anew ? 4 * fill.mega_per_s * (1 << 20) : 0);
                struct afz_outcome o = ask(afz_judge_leak, &c);
                if (o.verdicts != rows[i].verdicts)
                        fail_msg("row %u: %s", i, o.verdicts > 0 ? o.verdict[0].summary : "silent");
        }
}

/* What counts is what the line asked for, by whatever ways it was reached: six that hold two blocks
 * each are a dozen. */
static void a_line_of_many_stacks(void **state)
{
        static const struct {
                unsigned stacks, blocks, verdicts;
        } rows[] = {{6, 2, 1}, {6, 1, 0}, {1, 2, 0}};
        struct fly_times t = fly_every(0, END_MS, 1000);
        struct afz_case c = {
                .flight = &flight,
                .facts = {.end = {.how = AFZ_END_STOPPED}, .stop_cause = AFZ_CAUSE_BUDGET}};
        (void)state;
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                double mega_per_s = 38.0 / rows[i].stacks;
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                grows_with_pauses(8);
                for (unsigned s = 0; s < rows[i].stacks; s++) {
                        tell_site(&(struct site){.id = 11 + s,
                                                 .name = "train.py:8",
                                                 .where = "/home/me/train.py:8",
                                                 .stack = TABLE,
                                                 .mega = 1,
                                                 .mega_per_s = mega_per_s,
                                                 .memory = AFZ_MEMORY_HEAP});
                        fly_flat(&flight, AFZ_KIND_SITE, 11 + s, AFZ_SITE_BLOCKS, t,
                                 rows[i].blocks);
                        fly_flat(&flight, AFZ_KIND_SITE, 11 + s, AFZ_SITE_TOTAL, t,
                                 FLY_MB(mega_per_s * END_MS / 1000));
                }
                assert_int_equal(ask(afz_judge_leak, &c).verdicts, rows[i].verdicts);
        }
}

/* The family explains what a leak explains, and one of it is said. */
static void kinds_are_a_family(void **state)
{
        struct afz_outcome o = {0};
        (void)state;
        (void)afz_outcome_add(&o, "host-exhaustion", AFZ_LEVEL_ACT, 0.95);
        (void)afz_outcome_add(&o, "leak:worker-copy", AFZ_LEVEL_ACT, 0.7);
        afz_verdicts_settle(&o);
        assert_string_equal(o.verdict[0].id, "leak:worker-copy");
        assert_string_equal(o.verdict[1].caused_by, "leak:worker-copy");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(kept_from_every_step),
                TEST(kept_batches),
                TEST(a_line_of_c),
                TEST(young_survivors),
                TEST(a_line_that_rose_once),
                TEST(too_little_is_seen),
                TEST(history_in_pieces),
                TEST(graphs),
                TEST(scratch_of_the_last_step),
                TEST(copies_of_workers),
                TEST(the_line_that_is_copied),
                TEST(copies_behind_a_data_set),
                TEST(workers_that_grow),
                TEST(a_process_that_cannot_be_read),
                TEST(small_workers),
                TEST(a_heap_in_pieces),
                TEST(what_holds_the_pieces),
                TEST(a_heap_that_may_be_in_pieces),
                TEST(by_memory),
                TEST(shared_without_lines),
                TEST(shared_beside_holes),
                TEST(large_blocks_that_fill),
                TEST(a_line_of_many_stacks),
                TEST(kinds_are_a_family),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
