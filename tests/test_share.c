/* How runs share the machine: nobody below what it keeps, nothing promised twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "count_of.h"
#include "lines.h"
#include "share.h"

#define MIB   (UINT64_C(1) << 20)
#define LEAST 64 /* MiB, of one that needs nothing */

enum { MOST = 4 };

struct in { /* MiB */
        uint64_t need, budget;
        bool fixed;
};

static void fill(const struct in *in, unsigned count, struct afz_stake *ret)
{
        for (unsigned i = 0; i < count; i++)
                ret[i] = (struct afz_stake){.need_bytes = in[i].need * MIB,
                                            .budget_bytes = in[i].budget * MIB,
                                            .fixed = in[i].fixed};
}

static void shares_and_grants(void **state)
{
        (void)state;
        static const struct {
                uint64_t room;
                unsigned count;
                struct in in[MOST];
                uint64_t share[MOST], granted[MOST];
        } rows[] = {
                /* Alone: all of it. */
                {8000, 1, {{0, 0, false}}, {8000}, {8000}},
                /* A second one: half, once the first has given it; not before. */
                {8000, 2, {{0, 8000, false}, {0, 0, false}}, {4000, 4000}, {8000, 0}},
                {8000, 2, {{0, 4000, false}, {0, 0, false}}, {4000, 4000}, {4000, 4000}},
                /* Taken already: 4000 * 1.25 + 64 are kept, what is beyond is shared. */
                {4000,
                 2,
                 {{4000, 8000, false}, {0, 0, false}},
                 {5064 + 1436, LEAST + 1436},
                 {8000, 0}},
                /* A given budget is never touched, and comes first. */
                {8000, 2, {{1000, 3000, true}, {0, 0, false}}, {3000, 6000}, {3000, 6000}},
                {8000, 2, {{0, 8000, false}, {0, 6000, true}}, {2000, 6000}, {8000, 6000}},
                /* One has gone: the others grow back. */
                {8000, 2, {{0, 2000, false}, {0, 2000, false}}, {4000, 4000}, {4000, 4000}},
                /* Nothing left: who is there keeps what it needs, who comes gets nothing. */
                {100, 2, {{4000, 4100, false}, {0, 0, false}}, {4100, LEAST}, {4100, 0}},
                /* Promised more than there is: nobody grows. */
                {1000, 2, {{0, 9000, true}, {0, 500, false}}, {9000, LEAST}, {9000, 500}},
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++) {
                struct afz_stake s[MOST];
                fill(rows[i].in, rows[i].count, s);
                afz_share_divide(s, rows[i].count, rows[i].room * MIB);
                for (unsigned k = 0; k < rows[i].count; k++)
                        assert_int_equal(s[k].share_bytes / MIB, rows[i].share[k]);
                afz_share_grant(s, rows[i].count, rows[i].room * MIB);
                for (unsigned k = 0; k < rows[i].count; k++)
                        assert_int_equal(s[k].budget_bytes / MIB, rows[i].granted[k]);
        }
}

/* What the sharing ones may still take beyond what they have. */
static uint64_t still_to_take(const struct afz_stake *s, unsigned count)
{
        uint64_t sum = 0;
        for (unsigned i = 0; i < count; i++)
                sum += s[i].budget_bytes > s[i].need_bytes ? s[i].budget_bytes - s[i].need_bytes
                                                           : 0;
        return sum;
}

/* Whatever stands in the table: promises that fit before fit afterwards. */
static void never_twice(void **state)
{
        (void)state;
        unsigned seed = 1;
        for (int round = 0; round < 20000; round++) {
                struct afz_stake s[MOST] = {0};
                unsigned count = 1 + (unsigned)rand_r(&seed) % MOST;
                uint64_t room = (uint64_t)(rand_r(&seed) % 20000) * MIB;
                for (unsigned i = 0; i < count; i++) {
                        uint64_t need = (uint64_t)(rand_r(&seed) % 4000) * MIB;
                        s[i] = (struct afz_stake){
                                .need_bytes = need,
                                .budget_bytes = need + (uint64_t)(rand_r(&seed) % 4000) * MIB,
                                .fixed = rand_r(&seed) % 3 == 0,
                        };
                }
                bool fitted = still_to_take(s, count) <= room;
                uint64_t before = still_to_take(s, count);
                afz_share_divide(s, count, room);
                for (unsigned i = 0; i < count; i++) {
                        uint64_t least = afz_budget_least(s[i].need_bytes);
                        assert_true(s[i].share_bytes >= least ||
                                    s[i].share_bytes >= s[i].budget_bytes);
                        assert_true(!s[i].fixed || s[i].share_bytes == s[i].budget_bytes);
                }
                afz_share_grant(s, count, room);
                assert_true(fitted ? still_to_take(s, count) <= room
                                   : still_to_take(s, count) == before);
        }
}

static void nothing_wraps(void **state)
{
        (void)state;
        struct afz_stake s[] = {{.need_bytes = UINT64_MAX, .budget_bytes = UINT64_MAX},
                                {.need_bytes = 1, .budget_bytes = UINT64_MAX, .fixed = true},
                                {.budget_bytes = 0}};
        afz_share_divide(s, 3, UINT64_MAX);
        assert_int_equal(s[0].share_bytes, UINT64_MAX);
        afz_share_grant(s, 3, UINT64_MAX);
        assert_int_equal(s[2].budget_bytes, 0);
        afz_share_divide(s, 0, 5);
        afz_share_grant(s, 0, 5);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(shares_and_grants),
                cmocka_unit_test(never_twice),
                cmocka_unit_test(nothing_wraps),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
