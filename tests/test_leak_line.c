/* Which line a leak is said of, and from when on: hand-made recordings in, lines out. */
#include "leak_fixture.h"

/* No line has most of it; the one that calls them all does. */
static void lines_that_share(void **state)
{
        static const char *const file[] = {"/me/net.py:8", "/me/net.py:9", "/me/net.py:10"};
        static const char *const name[] = {"net.py:8 in forward()", "net.py:9 in forward()",
                                           "net.py:10 in forward()"};
        static const char *const stack[] = {
                "libc.so+0x1\nnet.py:8 in forward()\nnet.py:20 in main()\nnet.py:30",
                "net.py:9 in forward()\nnet.py:20 in main()\nnet.py:30",
                "net.py:10 in forward()\nnet.py:20 in main()\nnet.py:30"};
        (void)state;
        grows(10);
        for (unsigned i = 0; i < 3; i++)
                tell_site(&(struct site){.id = 20 + i,
                                         .name = name[i],
                                         .where = file[i],
                                         .stack = stack[i],
                                         .mega_per_s = 3,
                                         .memory = AFZ_MEMORY_OBJECTS});
        struct afz_outcome o = judged();
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->where.file, "/me/net.py");
        assert_int_equal(v->where.line, 20);
        assert_string_equal(v->where.function, "main");
        assert_words(v->summary, "allocated below net.py:20 in main()");
}

/* Columns of a table: the lines of one function share it evenly, and the largest stands for them,
 * not who called it. */
static void lines_of_one_function(void **state)
{
        (void)state;
        static const struct site lines[] = {
                {20, "net.py:8 in read()", "/me/net.py:8", "read",
                 "net.py:8 in read()\nnet.py:20 in main()", 0, 3, AFZ_MEMORY_OBJECTS},
                {21, "net.py:9 in read()", "/me/net.py:9", "read",
                 "net.py:9 in read()\nnet.py:20 in main()", 0, 3.1, AFZ_MEMORY_OBJECTS},
                {22, "net.py:10 in read()", "/me/net.py:10", "read",
                 "net.py:10 in read()\nnet.py:20 in main()", 0, 3, AFZ_MEMORY_OBJECTS},
        };
        grows(10);
        for (unsigned i = 0; i < AFZ_COUNT_OF(lines); i++)
                tell_site(&lines[i]);
        struct afz_outcome o = judged();
        assert_int_equal(o.verdict[0].where.line, 9);
        assert_words(o.verdict[0].summary,
                     "allocated at net.py:9 in read() and the lines beside it");
        assert_true(has_evidence(&o.verdict[0], "allocated in the function around net.py:9"));
}

/* TensorFlow's pool grows at whichever line asks when it is full; what stays beside it tells. */
static void a_pool_hides_the_line(void **state)
{
        struct site pool = history, kept = history;
        (void)state;
        grows(10);
        process(MAIN, AFZ_ROLE_MAIN, 200, 10);
        fly_steps(&flight, fly_every(1000, END_MS, 100), 0);
        pool.id = 20;
        pool.name = "train.py:22";
        pool.where = "/home/me/train.py:22";
        pool.stack = "tsl::BFCAllocator::Extend() in libtf.so\ntrain.py:22";
        tell_site(&pool);
        assert_int_equal(judged().verdict[0].where.line, 22); /* nothing else is known */
        kept.mega = 0;
        kept.mega_per_s = 0.1;
        kept.memory = AFZ_MEMORY_OBJECTS;
        tell_site(&kept);
        tell_age(11, 30, 300);
        struct afz_outcome o = judged();
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "leak:retained-history");
        assert_int_equal(v->where.line, 33);
        assert_words(v->summary, "likely from train.py:33 in step()");
        assert_true(has_evidence(v, "TensorFlow's own pool grew"));
        assert_true(v->confidence < 0.8);
        kept.id = 21; /* young: of the last step */
        kept.name = "train.py:40";
        kept.where = "/home/me/train.py:40";
        kept.mega_per_s = 0.3;
        tell_site(&kept);
        tell_age(21, 0.2, 1);
        assert_int_equal(judged().verdict[0].where.line, 22); /* not clear any more */
        /* In many pieces, and always when one line asked: that is who finds it empty. */
        fly_point(&flight, AFZ_KIND_SITE, 20, AFZ_SITE_BLOCKS, END_MS - 500, 3);
        o = judged();
        assert_false(has_evidence(&o.verdict[0], "when this line asked for memory"));
        fly_point(&flight, AFZ_KIND_SITE, 20, AFZ_SITE_BLOCKS, END_MS - 400, 6);
        o = judged();
        assert_int_equal(o.verdict[0].where.line, 22);
        assert_true(has_evidence(&o.verdict[0], "when this line asked for memory"));
        assert_true(o.verdict[0].confidence < 0.8);
        struct site tensors = kept; /* small ones are not in the pool: they tell more */
        tensors.id = 23;
        tensors.name = "train.py:12";
        tensors.where = "/home/me/train.py:12";
        tensors.stack = "tensorflow::Tensor::Tensor() in libtf.so\ntrain.py:12";
        tensors.mega_per_s = 0.09;
        tensors.memory = AFZ_MEMORY_HEAP;
        tell_site(&tensors);
        tell_age(23, 30, 300);
        assert_int_equal(judged().verdict[0].where.line, 12);
}

/* Imports for most of its life, then a leak at one line. */
static void a_leak_behind_imports(void **state)
{
        struct site s = history;
        (void)state;
        for (uint32_t t = 0; t < END_MS; t += 100) {
                double mega =
                        t < 35000 ? 20 + 8.0 * (t / 4000 % 9) : 300 + 10.0 * (t - 35000) / 1000;
                fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, t,
                          FLY_MB(mega + 5 * fly_saw(t, 700)));
        }
        struct afz_case c = {
                .flight = &flight,
                .facts = {.end = {.how = AFZ_END_STOPPED}, .stop_cause = AFZ_CAUSE_BUDGET}};
        assert_int_equal(ask(afz_judge_leak, &c).verdicts, 0);
        (void)fly_named(&flight, AFZ_KIND_SITE, s.id, s.name, s.where, s.function);
        fly_line(&flight, AFZ_KIND_SITE, s.id, AFZ_SITE_LIVE, fly_every(35000, END_MS, 1000), 0,
                 10 << 20);
        struct afz_outcome o = judged();
        assert_string_equal(o.verdict[0].id, "leak:retained-history");
        assert_in_range(o.verdict[0].from_ms, 35000, 50000);
}

/* It ended by itself, with next to nothing left: something of every step was kept, or it was not.
 */
static void it_came_close(void **state)
{
        (void)state;
        static const struct {
                double hard_mega;
                bool stepped;
                int64_t age;
                unsigned verdicts;
        } rows[] = {
                {380, true, 60, 1},
                {600, true, 60, 0}, /* there was room */
                {380, false, 0, 0}, /* data, for all that is known */
                {380, true, 1, 0},  /* of the last step */
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                for (uint32_t t = 0; t < 15000; t += 100)
                        fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, t,
                                  FLY_MB(60 + 20.0 * t / 1000 + fly_saw(t, 700)));
                (void)fly_named(&flight, AFZ_KIND_SITE, 11, history.name, history.where, "step");
                fly_line(&flight, AFZ_KIND_SITE, 11, AFZ_SITE_LIVE, fly_every(0, 15000, 1000), 0,
                         20 << 20);
                if (rows[i].stepped)
                        fly_steps(&flight, fly_every(0, 15000, 50), 1);
                if (rows[i].age > 0)
                        fly_point(&flight, AFZ_KIND_SITE, 11, AFZ_SITE_AGE_STEPS, 14000,
                                  rows[i].age);
                struct afz_case c = {.flight = &flight,
                                     .facts = {.end = {.how = AFZ_END_EXIT},
                                               .hard_bytes = (uint64_t)FLY_MB(rows[i].hard_mega)}};
                struct afz_outcome o = ask(afz_judge_leak, &c);
                if (o.verdicts != rows[i].verdicts)
                        fail_msg("row %u: %u verdicts", i, o.verdicts);
                if (i == 0) {
                        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
                        assert_int_equal(o.verdict[0].where.line, 33);
                        assert_words(o.verdict[0].summary, "was all but full");
                        assert_true(o.verdict[0].confidence < 0.7);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(lines_that_share),      TEST(lines_of_one_function),
                TEST(a_pool_hides_the_line), TEST(a_leak_behind_imports),
                TEST(it_came_close),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
