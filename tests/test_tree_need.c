#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree_need.h"

#define MB UINT64_C(1000000)

static struct afz_need_proc process(uint64_t anon_mb, bool inherits, uint64_t parent_mb)
{
        struct afz_need_proc p = {.anon_bytes = anon_mb * MB};
        afz_need_born(&p, inherits, parent_mb * MB);
        return p;
}

static uint64_t need_mb(const struct afz_need_proc *p, size_t n)
{
        struct afz_need_sum sum = {0};
        for (size_t i = 0; i < n; i++)
                afz_need_add(&sum, &p[i]);
        return afz_need_total(&sum, UINT64_MAX) / MB;
}

static void test_forks_are_not_copies(void **state)
{
        struct afz_need_proc p[9] = {process(500, false, 0)};
        (void)state;
        for (int i = 1; i < 9; i++)
                p[i] = process(500, true, 500);
        assert_int_equal(need_mb(p, 9), 500);
        p[3].anon_bytes += 7 * MB; /* what it has got since is its own */
        assert_int_equal(need_mb(p, 9), 507);
}

static void test_fork_without_pss(void **state)
{
        static const struct {
                uint64_t first, parent, then, need;
        } table[] = {
                {500, 500, 500, 0},
                {500, 500, 520, 20},
                {520, 500, 520, 20}, /* grew before it was seen: no parent has given it that */
                {500, 500, 100, 0},  /* gave back: it has nothing of its own */
        };
        (void)state;
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                struct afz_need_proc p = process(table[i].first, true, table[i].parent);
                p.anon_bytes = table[i].then * MB;
                afz_need_moved(&p);
                assert_int_equal(afz_need_own(&p), table[i].need * MB);
        }
        /* From its least on, growth is its own again. */
        struct afz_need_proc p = process(500, true, 500);
        p.anon_bytes = 100 * MB;
        afz_need_moved(&p);
        p.anon_bytes = 300 * MB;
        afz_need_moved(&p);
        assert_int_equal(afz_need_own(&p), 200 * MB);
        /* Another program has nothing of its parent's. */
        afz_need_exec(&p);
        assert_int_equal(afz_need_own(&p), 300 * MB);
}

static void test_pss_and_growth(void **state)
{
        struct afz_need_proc p = process(400, true, 400);
        struct afz_need_pss pss = {.anon_bytes = 50 * MB, .rss_anon_bytes = 400 * MB};
        (void)state;
        afz_need_take_pss(&p, &pss);
        assert_int_equal(afz_need_own(&p), 50 * MB);
        p.anon_bytes = 410 * MB;
        assert_int_equal(afz_need_own(&p), 60 * MB);
        p.anon_bytes = 200 * MB; /* gave back half: of what it shared, half */
        assert_int_equal(afz_need_own(&p), 25 * MB);
        p.swap_bytes = 200 * MB; /* no: it went to swap */
        assert_int_equal(afz_need_own(&p), 50 * MB);
        p.anon_bytes = p.swap_bytes = 0;
        assert_int_equal(afz_need_own(&p), 0);
}

static void test_shared_memory_counts_once(void **state)
{
        struct afz_need_proc p[4] = {{0}};
        struct afz_need_sum sum = {0};
        (void)state;
        for (int i = 0; i < 4; i++) {
                p[i].shmem_bytes = 100 * MB;
                afz_need_add(&sum, &p[i]);
        }
        static const struct {
                uint64_t machine, need;
        } table[] = {
                {100 * MB, 100 * MB}, /* all the same memory */
                {0, 100 * MB},        /* one of them has it, whatever the machine says */
                {250 * MB, 250 * MB},   {900 * MB, 400 * MB}, /* others' growth is not theirs */
                {UINT64_MAX, 400 * MB},
        };
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
                assert_int_equal(afz_need_total(&sum, table[i].machine), table[i].need);
        /* By PSS, and once only. */
        struct afz_need_pss pss = {.shmem_bytes = 25 * MB, .rss_shmem_bytes = 100 * MB};
        for (int i = 0; i < 4; i++)
                afz_need_take_pss(&p[i], &pss);
        assert_int_equal(need_mb(p, 4), 100);
        p[0].shmem_bytes = 130 * MB;
        assert_int_equal(need_mb(p, 4), 130);
        /* Who comes later maps what was counted; it is more only if the machine has more. */
        struct afz_need_proc newcomer = {.shmem_bytes = 130 * MB};
        sum = (struct afz_need_sum){0};
        for (int i = 0; i < 4; i++)
                afz_need_add(&sum, &p[i]);
        afz_need_add(&sum, &newcomer);
        assert_int_equal(afz_need_total(&sum, 0), 130 * MB);
        assert_int_equal(afz_need_total(&sum, 30 * MB), 130 * MB);
        assert_int_equal(afz_need_total(&sum, 50 * MB), 150 * MB);
}

static void test_what_the_dead_leave(void **state)
{
        struct afz_need_proc parent = process(500, false, 0), lone = parent;
        (void)state;
        parent.shares = true;
        assert_int_equal(afz_need_left(&parent), 500 * MB); /* its forks may have it all */
        assert_int_equal(afz_need_left(&lone), 0);
        struct afz_need_pss pss = {
                .anon_bytes = 80 * MB, .private_bytes = 30 * MB, .rss_anon_bytes = 500 * MB};
        afz_need_take_pss(&parent, &pss);
        assert_int_equal(afz_need_left(&parent), 50 * MB);
}

static void test_hidden_copies(void **state)
{
        struct afz_need_sum sum = {.slack_bytes = 1000 * MB};
        static const struct {
                int64_t fall_mb, grown_mb;
                uint64_t fault_mb, hidden_mb;
        } table[] = {
                {0, 0, 500, 0},
                {300, 0, 500, 300},   /* the machine lost it, the family faulted enough */
                {300, 0, 40, 40},     /* another's growth, but for 40 */
                {300, 100, 500, 200}, /* 100 of it was seen */
                {300, 400, 500, 0},
                {-50, 0, 500, 0},
                {300, -200, 500, 300}, /* what was given back does not add to the fall */
                {5000, 0, 5000, 1000}, /* no more than there is to copy */
        };
        (void)state;
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
                assert_int_equal(afz_need_hidden(&sum, table[i].fall_mb * (int64_t)MB,
                                                 table[i].grown_mb * (int64_t)MB,
                                                 table[i].fault_mb * MB),
                                 table[i].hidden_mb * MB);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_forks_are_not_copies),
                cmocka_unit_test(test_fork_without_pss),
                cmocka_unit_test(test_pss_and_growth),
                cmocka_unit_test(test_shared_memory_counts_once),
                cmocka_unit_test(test_what_the_dead_leave),
                cmocka_unit_test(test_hidden_copies),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
