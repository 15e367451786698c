/* links: sense */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pss_gate.h"

#define MS  UINT64_C(1000000)
#define S   UINT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

struct ground {
        struct afz_pss_gate gate;
        struct afz_pss_record r;
        uint64_t now;
};

static struct ground ground_new(void)
{
        struct ground g = {.now = 100 * S};
        afz_pss_gate_init(&g.gate, g.now);
        return g;
}

static bool is_open(struct ground *g, uint64_t rss)
{
        return afz_pss_gate_open(&g->gate, &g->r, g->now, rss);
}

static void took(struct ground *g, uint64_t cost_ns, uint64_t rss)
{
        afz_pss_gate_took(&g->gate, &g->r, g->now, cost_ns, rss);
}

static void test_never_tried(void **state)
{
        struct ground g = ground_new();
        (void)state;
        assert_true(is_open(&g, 1));
        assert_true(is_open(&g, 2 * GIB));
        assert_false(is_open(&g, 2 * GIB + 1));
        assert_false(is_open(&g, 210 * GIB));
        g.now += 3600 * S; /* patience makes it no shorter */
        assert_false(is_open(&g, 210 * GIB));
}

static void test_not_more_often_than_each_second(void **state)
{
        struct ground g = ground_new();
        (void)state;
        took(&g, MS, 100 * MIB);
        assert_false(is_open(&g, 100 * MIB));
        g.now += S - 1;
        assert_false(is_open(&g, 100 * MIB));
        g.now += 1;
        assert_true(is_open(&g, 100 * MIB));
}

static void test_too_slow(void **state)
{
        struct ground g = ground_new();
        (void)state;
        took(&g, 10 * MS, GIB); /* 10 ms a GiB */
        g.now += 20 * S;
        assert_true(is_open(&g, 5 * GIB));
        assert_false(is_open(&g, 6 * GIB)); /* 60 ms */
        g.now += 3600 * S;
        assert_false(is_open(&g, 6 * GIB));
        assert_true(is_open(&g, 4 * GIB)); /* it gave memory back */
}

/* A first look at a process of 1 MiB took 50 us, nearly all of it fixed costs: that is not 50 us a
 * MiB, and must not shut the gate when the process has loaded its model. */
static void test_small_reading_tells_little(void **state)
{
        struct ground g = ground_new();
        (void)state;
        took(&g, 50000, MIB);
        g.now += S;
        assert_true(is_open(&g, 2 * GIB));
        assert_false(is_open(&g, 4 * GIB)); /* 86 ms at 82 ns a page */
        assert_false(is_open(&g, 210 * GIB));
}

/* A tiny process can have 60,000 mappings: what it cost counts, whatever its size. */
static void test_small_but_slow(void **state)
{
        struct ground g = ground_new();
        (void)state;
        took(&g, 80 * MS, 10 * MIB);
        g.now += 10 * S;
        assert_false(is_open(&g, 10 * MIB));
}

/* One reading that took long because the machine was busy does not shut the gate for good. */
static void test_slow_once(void **state)
{
        struct ground g = ground_new();
        (void)state;
        took(&g, 60 * MS, 100 * MIB);
        g.now += 30 * S;
        assert_false(is_open(&g, 100 * MIB));
        g.now += 600 * S; /* 60 ms are now one part in ten thousand */
        assert_true(is_open(&g, 100 * MIB));
        took(&g, 2 * MS, 100 * MIB);
        g.now += S;
        assert_true(is_open(&g, 100 * MIB));
        /* But never for one that should be slow. */
        took(&g, 60 * MS, 3 * GIB);
        g.now += 3600 * S;
        assert_false(is_open(&g, 3 * GIB));
}

/* However many processes there are: at most a thousandth of all time, after the first 250 ms. */
static void test_share_of_time(void **state)
{
        enum { PROCESSES = 500 };
        static struct afz_pss_record r[PROCESSES];
        struct afz_pss_gate gate;
        uint64_t now = S, spent = 0, end = now + 600 * S;
        (void)state;
        afz_pss_gate_init(&gate, now);
        for (; now < end; now += 100 * MS)
                for (int i = 0; i < PROCESSES; i++)
                        if (afz_pss_gate_open(&gate, &r[i], now, 50 * MIB)) {
                                afz_pss_gate_took(&gate, &r[i], now, 3 * MS, 50 * MIB);
                                spent += 3 * MS;
                        }
        assert_true(spent <= 250 * MS + 600 * MS + 3 * MS);
        assert_true(spent >= 250 * MS + 60 * MS); /* and it is used */
        for (int i = 0; i < PROCESSES; i++)
                r[i].next_ns = 0;
}

static void test_clock_jumps(void **state)
{
        struct ground g = ground_new();
        (void)state;
        took(&g, 250 * MS, 100 * MIB);
        assert_int_equal(g.gate.credit_ns, 0);
        g.now -= 50 * S; /* back: nothing is earned, nothing breaks */
        assert_false(is_open(&g, MIB));
        assert_int_equal(g.gate.credit_ns, 0);
        g.now = UINT64_MAX; /* far ahead: no more than there ever is */
        (void)is_open(&g, MIB);
        assert_int_equal(g.gate.credit_ns, 250 * MS);
}

static void test_absurd_costs(void **state)
{
        struct ground g = ground_new();
        (void)state;
        took(&g, INT64_MAX / 2, 0);
        g.now += 10 * S;
        assert_false(is_open(&g, UINT64_MAX));
        g.r = (struct afz_pss_record){.taken_ns = 1, .cost_ns = UINT64_MAX, .cost_bytes = GIB};
        afz_pss_gate_init(&g.gate, g.now);
        assert_false(is_open(&g, UINT64_MAX));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_never_tried),
                cmocka_unit_test(test_not_more_often_than_each_second),
                cmocka_unit_test(test_too_slow),
                cmocka_unit_test(test_small_reading_tells_little),
                cmocka_unit_test(test_small_but_slow),
                cmocka_unit_test(test_slow_once),
                cmocka_unit_test(test_share_of_time),
                cmocka_unit_test(test_clock_jumps),
                cmocka_unit_test(test_absurd_costs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
