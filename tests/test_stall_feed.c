/* data-stall where the loader says itself what held it up: which of its words counts, what is made
 * of it, and that a program which is fed hears nothing of it. */
#include "agent_fixture.h"

#define DISK        "limit=disk epoch=2 epoch_ms=20000 waited_ms=15000 threads=4 held=1 copies=0"
#define DECODE      "limit=decode epoch=2 epoch_ms=20000 waited_ms=15000 threads=2 held=1 copies=0"
#define FED         "limit=consumer epoch=3 epoch_ms=20000 waited_ms=100 threads=4 held=1 copies=0"
#define SAYS_DISK   DISK ": the disk: 212M/s; the program waited for data 75 % of the time"
#define SAYS_DECODE DECODE ": decoding: 1,340 pictures/s on 2 threads; the program waited ..."

/* Steps that wait, by the clock, on 4 cores of which the job uses some. */
static struct afz_outcome judge(double share, double cores)
{
        tell_steps();
        tell(AFZ_INSIDE_WAIT, stepping, 0, share * 1e9);
        flight.head.cores = 4;
        fly_line(&flight, AFZ_KIND_JOB, 1, AFZ_JOB_CPU, whole, 0, cores * 1e9);
        struct afz_case c = ended(0);
        return ask(afz_judge_data_stall, &c);
}

static void the_disk(void **state)
{
        (void)state;
        event(50000, AFZ_AGENT_FEED, SAYS_DISK);
        struct afz_outcome o = judge(0.7, 1);
        assert_int_equal(o.verdicts, 1);
        assert_string_equal(o.verdict[0].id, "data-stall");
        assert_string_equal(o.verdict[0].summary,
                            "its steps wait for their data 70 % of the time; what holds the loader "
                            "up is the disk: 212M/s");
        assert_words(o.verdict[0].fix, "antifreeze convert");
        assert_null(strstr(o.verdict[0].fix, "num_workers"));
        assert_true(o.verdict[0].confidence > 0.85);
}

static void decoding(void **state)
{
        (void)state;
        event(50000, AFZ_AGENT_FEED, SAYS_DECODE);
        struct afz_outcome o = judge(0.7, 1);
        assert_words(o.verdict[0].summary, "decoding: 1,340 pictures/s on 2 threads");
        assert_words(o.verdict[0].fix, "more threads");
}

/* All cores decode: no more threads, but less work for them. */
static void decoding_on_all_cores(void **state)
{
        (void)state;
        event(50000, AFZ_AGENT_FEED, SAYS_DECODE);
        struct afz_outcome o = judge(0.7, 3.9);
        assert_int_equal(o.verdicts, 1);
        assert_words(o.verdict[0].fix, "decode the data once");
        assert_null(strstr(o.verdict[0].fix, "threads"));
}

static void each_has_its_way_out(void **state)
{
        static const struct {
                const char *limit, *fix;
        } rows[] = {{"disk", "faster"},
                    {"cache", "narrower"},
                    {"gather", "fewer bytes"},
                    {"transform", "cheaper"}};
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                char text[200];
                snprintf(text, sizeof text, "limit=%s epoch_ms=20000 waited_ms=%d: x: 1M/s",
                         rows[i].limit, 15000 + (int)i);
                event(50000 + (uint32_t)i, AFZ_AGENT_FEED, text);
                struct afz_case c = ended(0);
                struct afz_outcome o = i ? ask(afz_judge_data_stall, &c) : judge(0.7, 1);
                assert_words(o.verdict[0].fix, rows[i].fix);
        }
}

/* What was waited for the longest is what counts, wherever it stands, and by its last whole word.
 */
static void of_several(void **state)
{
        (void)state;
        event(30000, AFZ_AGENT_FEED, "limit=decode epoch_ms=9000 waited_ms=9000: decoding: 1/s");
        event(25000, AFZ_AGENT_FEED, "limit=gather epoch_ms=4000 waited_ms=3000: copying: 1M/s");
        event(40000, AFZ_AGENT_FEED, SAYS_DECODE);
        event(45000, AFZ_AGENT_FEED, "limit=disk epoch_ms=20000 waited_ms=14000: the disk: 9M/s");
        event(50000, AFZ_AGENT_FEED, FED ": your training step: ...");
        event(55000, AFZ_AGENT_FEED, "limit=decode epoch_ms=10 waited_ms=10: decoding: 9/s");
        struct afz_outcome o = judge(0.7, 1);
        assert_words(o.verdict[0].summary, "decoding: 1,340 pictures/s");
}

/* Words that do not name what was waited for: then the clock speaks alone. */
static void not_to_be_used(void **state)
{
        static const char *const rows[] = {
                "",
                DISK, /* says nothing */
                DISK ": ",
                DISK ": ; the disk",
                FED ": your training step: batches waited for it 93 % of the time",
                "limit=moon epoch_ms=20000 waited_ms=15000: the moon: 1M/s",
                "epoch_ms=20000 waited_ms=15000: the disk: 1M/s",
                "limit=disk epoch_ms=20000: the disk: 1M/s",
                "limit=disk epoch_ms=20000 waited_ms=-1: the disk: 1M/s",
                "limit=disk epoch_ms=20000 waited_ms=x: the disk: 1M/s",
                "limit=disk epoch_ms=20000 waited_ms=6900: another's disk: 1M/s",
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                event(50000, AFZ_AGENT_FEED, rows[i]);
        event(10000, AFZ_AGENT_FEED, SAYS_DISK); /* before the steps that are looked at */
        event(50000, AFZ_AGENT_NOTE, SAYS_DISK);
        struct afz_outcome o = judge(0.7, 1);
        assert_int_equal(o.verdicts, 1);
        assert_words(o.verdict[0].summary, "goes by until the next batch");
        assert_words(o.verdict[0].fix, "num_workers");
}

/* What a loader says of itself is no reason to speak where steps do not wait. */
static void a_program_that_is_fed(void **state)
{
        (void)state;
        event(50000, AFZ_AGENT_FEED, SAYS_DISK);
        assert_int_equal(judge(0.3, 1).verdicts, 0);
}

static void the_gpu_is_fed(void **state)
{
        (void)state;
        event(50000, AFZ_AGENT_FEED, SAYS_DISK);
        tell(AFZ_INSIDE_GPU_ALLOCATED, stepping, FLY_GB(2), 0);
        fly_flat(&flight, AFZ_KIND_GPU, 0, AFZ_GPU_UTIL, stepping, 9500);
        assert_int_equal(judge(0.8, 1).verdicts, 0);
}

static void too_many_are_held(void **state)
{
        (void)state;
        event(50000, AFZ_AGENT_FEED,
              "limit=gather epoch_ms=20000 waited_ms=15000 held=12 copies=41: copying: 1M/s");
        struct afz_outcome o = judge(0.7, 1);
        assert_string_equal(o.verdict[0].evidence[0],
                            "it holds 12 batches at once, so that 41 had to be copied");
}

/* By disks: it reads all the while, and next to nothing else is done. */
static void beside_the_disks(void **state)
{
        (void)state;
        event(50000, AFZ_AGENT_FEED, SAYS_DECODE);
        flight.head.cores = 4;
        fly_line(&flight, AFZ_KIND_JOB, 1, AFZ_JOB_CPU, whole, 0, 0.1e9);
        fly_line(&flight, AFZ_KIND_JOB, 1, AFZ_JOB_READ, whole, 0, 2e6);
        fly_line(&flight, AFZ_KIND_JOB, 1, AFZ_JOB_WRITTEN, whole, 0, 0);
        struct afz_case c = ended(0);
        struct afz_outcome o = ask(afz_judge_data_stall, &c);
        assert_int_equal(o.verdicts, 1);
        assert_words(o.verdict[0].summary, "came in");
        assert_words(o.verdict[0].fix, "more threads");
        assert_true(strstr(o.verdict[0].evidence[1], "decoding: 1,340 pictures/s") ||
                    strstr(o.verdict[0].evidence[2], "decoding: 1,340 pictures/s"));
}

/* Long words are cut between two characters. */
static void a_long_word(void **state)
{
        char text[600] = DISK ": x";
        size_t n = strlen(text);
        (void)state;
        for (int i = 0; i < 200; i++, n += 2)
                memcpy(text + n, "\xc3\xa4", 3);
        event(50000, AFZ_AGENT_FEED, text);
        struct afz_outcome o = judge(0.7, 1);
        n = strlen(o.verdict[0].summary);
        assert_true(n < sizeof o.verdict[0].summary - 1);
        assert_int_equal((unsigned char)o.verdict[0].summary[n - 1], 0xa4);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(the_disk),
                TEST(decoding),
                TEST(decoding_on_all_cores),
                TEST(each_has_its_way_out),
                TEST(of_several),
                TEST(not_to_be_used),
                TEST(a_program_that_is_fed),
                TEST(the_gpu_is_fed),
                TEST(too_many_are_held),
                TEST(beside_the_disks),
                TEST(a_long_word),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
