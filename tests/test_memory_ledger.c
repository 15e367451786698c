/* links: judge */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flight_fixture.h"
#include "memory_ledger.h"
#include "role.h"

#define AT 10000 /* the moment that is asked for */

static void put(struct afz_flight *f, enum afz_kind kind, uint64_t id, enum afz_metric m, double mb)
{
        fly_flat(f, kind, id, m, fly_every(0, AT + 1000, 1000), FLY_MB(mb));
}

static uint64_t mb_of(const struct afz_ledger *l, enum afz_ledger_kind kind)
{
        for (unsigned i = 0; i < l->rows; i++)
                if (l->row[i].kind == kind)
                        return l->row[i].bytes >> 20;
        return 0;
}

/* What every ledger promises, whatever it was made from. */
static void check(const struct afz_ledger *l)
{
        uint64_t sum = 0;
        double share = 0;
        bool seen[AFZ_LEDGER_KINDS] = {false};
        assert_in_range(l->rows, 0, AFZ_LEDGER_KINDS);
        for (unsigned i = 0; i < l->rows; i++) {
                const struct afz_ledger_row *row = &l->row[i];
                assert_false(seen[row->kind]);
                seen[row->kind] = true;
                assert_true(row->name[0] && row->what[0] && row->bytes > 0);
                assert_true(row->share >= 0 && row->share <= 1);
                if (row->in_need) {
                        sum += row->bytes;
                        share += row->share;
                }
        }
        assert_int_equal(sum, l->whole_bytes);
        assert_int_equal(l->whole_bytes, l->need_bytes + l->over_bytes);
        if (sum > 0)
                assert_true(share > 0.999999 && share < 1.000001);
        for (unsigned i = 1; i < l->processes; i++)
                assert_true(l->process[i - 1].bytes >= l->process[i].bytes);
}

static void look(const struct afz_flight *f, struct afz_ledger *l)
{
        memset(l, 0xee, sizeof *l);
        assert_true(afz_ledger_at(f, AT, l));
        check(l);
}

/* A parent of 500 MB with 8 forks that share it, and 5 MB of each one's own. */
static void fly_forks(struct afz_flight *f, bool tells_private)
{
        afz_flight_init(f);
        for (unsigned i = 0; i < 9; i++) {
                uint64_t pid = 100 + i;
                fly_named(f, AFZ_KIND_PROC, pid, "python3", NULL, NULL);
                put(f, AFZ_KIND_PROC, pid, AFZ_PROC_RSS, 520);
                put(f, AFZ_KIND_PROC, pid, AFZ_PROC_RSS_ANON, 505);
                put(f, AFZ_KIND_PROC, pid, AFZ_PROC_PSS_ANON, 500.0 / 9 + 5);
                put(f, AFZ_KIND_PROC, pid, AFZ_PROC_PSS_SHMEM, 2);
                put(f, AFZ_KIND_PROC, pid, AFZ_PROC_PSS_FILE, 1);
                put(f, AFZ_KIND_PROC, pid, AFZ_PROC_NEED, 500.0 / 9 + 7);
                if (tells_private)
                        put(f, AFZ_KIND_PROC, pid, AFZ_PROC_PRIVATE_DIRTY, 5);
                fly_flat(f, AFZ_KIND_PROC, pid, AFZ_PROC_ROLE, fly_every(0, AT + 1, 1000),
                         i ? AFZ_ROLE_WORKER : AFZ_ROLE_MAIN);
        }
        put(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, 563);
}

static void test_shared_once(void **state)
{
        (void)state;
        for (int tells = 0; tells < 2; tells++) {
                struct afz_flight f;
                struct afz_ledger l;
                fly_forks(&f, tells);
                look(&f, &l);
                assert_in_range(mb_of(&l, AFZ_LEDGER_SHARED), 495, 501);
                assert_in_range(mb_of(&l, AFZ_LEDGER_PRIVATE), 44, 50);
                assert_int_equal(mb_of(&l, AFZ_LEDGER_SHM), 18);
                assert_int_equal(mb_of(&l, AFZ_LEDGER_FILES), 9);
                assert_in_range(mb_of(&l, AFZ_LEDGER_UNEXPLAINED), 0, 1);
                assert_int_equal(l.over_bytes >> 20, 0);
                assert_int_equal(l.processes, 5);
                assert_int_equal(l.more_processes, 4);
                assert_in_range(l.more_bytes >> 20, 248, 252);
                afz_flight_done(&f);
        }
}

/* cgroup v2: its figures are the need's own. */
static void fly_group(struct afz_flight *f)
{
        afz_flight_init(f);
        f->head.tier = AFZ_TIER_CGROUP2;
        put(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, 1000);
        put(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_AWAY, 100);
        fly_flat(f, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_VERSION, fly_every(0, AT + 1, 1000), 2);
        put(f, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_ANON, 700);
        put(f, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_SHMEM, 120);
        put(f, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_FILE, 420);
        put(f, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_KERNEL, 60);
        put(f, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_SLAB_RECLAIMABLE, 20);
        put(f, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_SWAP, 130);
        put(f, AFZ_KIND_PROC, 100, AFZ_PROC_RSS, 900);
        put(f, AFZ_KIND_PROC, 100, AFZ_PROC_RSS_ANON, 690);
        put(f, AFZ_KIND_PROC, 100, AFZ_PROC_PINNED, 50);
        put(f, AFZ_KIND_GPU_PROC, 100, AFZ_GPU_PROC_MEM, 2000);
        fly_flat(f, AFZ_KIND_GPU_PROC, 100, AFZ_GPU_PROC_IN_JOB, fly_every(0, AT + 1, 1000), 1);
        put(f, AFZ_KIND_GPU_PROC, 777, AFZ_GPU_PROC_MEM, 9000); /* not the job's */
}

static void test_group(void **state)
{
        (void)state;
        static const struct {
                enum afz_ledger_kind kind;
                uint64_t mb;
                bool in_need;
        } want[] = {
                {AFZ_LEDGER_PRIVATE, 650, true}, {AFZ_LEDGER_SHM, 120, true},
                {AFZ_LEDGER_PINNED, 50, true},   {AFZ_LEDGER_KERNEL, 40, true},
                {AFZ_LEDGER_SWAP, 100, true},    {AFZ_LEDGER_UNEXPLAINED, 40, true},
                {AFZ_LEDGER_FILES, 300, false},  {AFZ_LEDGER_VRAM, 2000, false},
        };
        struct afz_flight f;
        struct afz_ledger l;
        fly_group(&f);
        look(&f, &l);
        assert_int_equal(l.rows, sizeof want / sizeof *want);
        for (unsigned i = 0; i < l.rows; i++) {
                assert_int_equal(l.row[i].kind, want[i].kind);
                assert_int_equal(l.row[i].bytes, want[i].mb << 20);
                assert_int_equal(l.row[i].in_need, want[i].in_need);
        }
        assert_int_equal(l.over_bytes, 0);
        afz_flight_done(&f);
}

/* More pinned than anonymous: the rest is shared memory's, and still nothing is twice. */
static void test_pinned_shm(void **state)
{
        (void)state;
        struct afz_flight f;
        struct afz_ledger l;
        fly_group(&f);
        fly_point(&f, AFZ_KIND_PROC, 100, AFZ_PROC_PINNED, AT + 1000, FLY_MB(750));
        for (enum afz_metric m = AFZ_CGROUP_CURRENT; m <= AFZ_CGROUP_SLAB_RECLAIMABLE; m++)
                if (afz_track_column(afz_flight_one(&f, AFZ_KIND_CGROUP), m))
                        fly_point(&f, AFZ_KIND_CGROUP, 0, m, AT + 1000,
                                  FLY_MB(m == AFZ_CGROUP_ANON ? 700 : 120));
        fly_point(&f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, AT + 1000, FLY_MB(1000));
        assert_true(afz_ledger_at(&f, AT + 1000, &l));
        check(&l);
        assert_int_equal(mb_of(&l, AFZ_LEDGER_PINNED), 750);
        assert_int_equal(mb_of(&l, AFZ_LEDGER_PRIVATE), 0);
        assert_int_equal(mb_of(&l, AFZ_LEDGER_SHM), 70);
        afz_flight_done(&f);
}

static void test_sum_exceeds(void **state)
{
        (void)state;
        struct afz_flight f;
        struct afz_ledger l;
        afz_flight_init(&f);
        put(&f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, 100);
        put(&f, AFZ_KIND_PROC, 100, AFZ_PROC_RSS, 200);
        put(&f, AFZ_KIND_PROC, 100, AFZ_PROC_RSS_ANON, 150);
        look(&f, &l);
        assert_int_equal(l.over_bytes, 50 << 20);
        assert_int_equal(mb_of(&l, AFZ_LEDGER_UNEXPLAINED), 0);
        assert_int_equal(mb_of(&l, AFZ_LEDGER_PRIVATE), 150);
        afz_flight_done(&f);
}

/* It grows by 500 MB a second, and its cgroup is read once a second. */
static void test_growth_between_readings(void **state)
{
        (void)state;
        struct afz_flight f;
        struct afz_ledger l;
        afz_flight_init(&f);
        f.head.tier = AFZ_TIER_CGROUP1;
        fly_line(&f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, fly_every(0, AT, 10), 0, 500e6);
        fly_line(&f, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_ANON, fly_every(0, AT, 1000), 0, 500e6);
        fly_flat(&f, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_SHMEM, fly_every(0, AT, 1000), 0);
        fly_line(&f, AFZ_KIND_JOB, 100, AFZ_JOB_ANON, fly_every(0, AT, 100), 0, 500e6);
        assert_true(afz_ledger_peak(&f, &l));
        check(&l);
        assert_int_equal(l.t_ms, AT - 10);
        assert_true(mb_of(&l, AFZ_LEDGER_UNEXPLAINED) < 60); /* 100 ms of growth, not a second's */
        afz_flight_done(&f);
}

/* Nobody's parts are known: all of it is unexplained, and that is said. */
static void test_need_alone(void **state)
{
        (void)state;
        struct afz_flight f;
        struct afz_ledger l;
        afz_flight_init(&f);
        put(&f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, 300);
        look(&f, &l);
        assert_int_equal(l.rows, 1);
        assert_int_equal(l.row[0].kind, AFZ_LEDGER_UNEXPLAINED);
        assert_int_equal(l.processes, 0);
        afz_flight_done(&f);
}

static void test_when(void **state)
{
        (void)state;
        struct afz_flight f;
        struct afz_ledger l;
        afz_flight_init(&f);
        assert_false(afz_ledger_peak(&f, &l));
        assert_false(afz_ledger_now(&f, &l));
        /* Up, down, and gone. */
        static const double mb[] = {10, 50, 400, 90, 70, 0, 0};
        for (uint32_t i = 0; i < 7; i++)
                fly_point(&f, AFZ_KIND_JOB, 100, AFZ_JOB_NEED, i * 1000, FLY_MB(mb[i]));
        fly_flat(&f, AFZ_KIND_PROC, 100, AFZ_PROC_RSS, fly_every(0, 2000, 100), FLY_MB(20));
        fly_flat(&f, AFZ_KIND_PROC, 100, AFZ_PROC_RSS_ANON, fly_every(0, 2000, 100), FLY_MB(20));
        assert_true(afz_ledger_peak(&f, &l));
        assert_int_equal(l.t_ms, 2000);
        assert_int_equal(l.need_bytes, 400 << 20);
        assert_int_equal(l.processes, 1);
        assert_true(afz_ledger_now(&f, &l));
        assert_int_equal(l.t_ms, 4000);
        assert_true(afz_ledger_at(&f, 6000, &l));
        assert_int_equal(l.processes, 0);           /* it was last seen four seconds before */
        assert_false(afz_ledger_at(&f, 60000, &l)); /* nobody knows */
        afz_flight_done(&f);
}

static void test_hostile(void **state)
{
        (void)state;
        static const int64_t values[] = {INT64_MAX, INT64_MIN, 0, -1, 1};
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
                struct afz_flight f;
                struct afz_ledger l;
                afz_flight_init(&f);
                f.head.tier = k % 2 ? AFZ_TIER_NONE : AFZ_TIER_CGROUP2;
                for (uint32_t i = 0; i < 3; i++) {
                        uint32_t t = i == 2 ? UINT32_MAX : i * 1000, span = i ? 0 : UINT32_MAX;
                        int64_t v = values[k];
                        fly_span(&f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, t, span, v, 1000, v);
                        for (uint64_t pid = 0; pid < 9; pid++)
                                for (enum afz_metric m = AFZ_PROC_PPID; m <= AFZ_PROC_OOM_ADJ; m++)
                                        fly_span(&f, AFZ_KIND_PROC, pid, m, t, span, v, v, v);
                        for (enum afz_metric m = AFZ_CGROUP_VERSION; m <= AFZ_CGROUP_FROZEN; m++)
                                fly_span(&f, AFZ_KIND_CGROUP, 0, m, t, span, v, v,
                                         m == AFZ_CGROUP_VERSION ? 2 : v);
                        fly_span(&f, AFZ_KIND_GPU_PROC, 1, AFZ_GPU_PROC_MEM, t, span, v, v, v);
                }
                (void)afz_ledger_peak(&f, &l);
                (void)afz_ledger_now(&f, &l);
                for (uint32_t t = 0; t < 3; t++)
                        if (afz_ledger_at(&f, t == 2 ? UINT32_MAX : t * 1000, &l))
                                assert_in_range(l.rows, 0, AFZ_LEDGER_KINDS);
                afz_flight_done(&f);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_shared_once),
                cmocka_unit_test(test_group),
                cmocka_unit_test(test_pinned_shm),
                cmocka_unit_test(test_sum_exceeds),
                cmocka_unit_test(test_growth_between_readings),
                cmocka_unit_test(test_need_alone),
                cmocka_unit_test(test_when),
                cmocka_unit_test(test_hostile),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
