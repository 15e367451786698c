/* A run comes and goes among others: guards that follow their cap, and guards that do not. */
#include <signal.h>
#include <sys/wait.h>

#include "clock.h"
#include "lines.h"
#include "run_fixture.h"
#include "sharing.h"

#define MIB (UINT64_C(1) << 20)

/* 16 GiB free of 32: a reserve of 3.2 GiB. */
static const struct afz_fixture_row machine_rows[] = {
        {"machine", "page_bytes 4096\nself_pid 42\n"},
        {"proc/meminfo", "MemTotal: 33554432 kB\nMemFree: 16777216 kB\nMemAvailable: 16777216 kB\n"
                         "SwapTotal: 0 kB\nSwapFree: 0 kB\n"},
        {0},
};
static struct afz_fixture *machine;

static uint64_t room(void)
{
        return afz_room_of(32 * GIB, 16 * GIB, UINT64_MAX);
}

/* A run with a guard of its own, which looks at its page as the real one does. */
struct fake {
        struct afz_run run;
        pid_t guard;
};

static void guard_life(struct afz_run_page *page, bool obeys)
{
        for (;;) {
                uint64_t cap = page->cap_bytes;
                page->tick_ns = afz_clock_ns(CLOCK_BOOTTIME);
                if (obeys && cap != 0)
                        page->budget_bytes = cap;
                usleep(2000);
        }
}

static void fake_start(struct fake *f, uint64_t budget, bool given, bool looks, bool obeys)
{
        struct afz_run_page first = first_page();
        first.budget_bytes = budget;
        first.budget_given = given;
        first.root_pid = 1;
        if (!looks)
                first.tick_ns = 1;
        assert_int_equal(afz_run_new(NULL, &first, &f->run, NULL), 0);
        f->guard = 0;
        if (!looks)
                return;
        f->guard = fork();
        assert_true(f->guard >= 0);
        if (f->guard == 0) {
                alarm(30);
                guard_life(f->run.page, obeys);
        }
}

static void fake_end(struct fake *f)
{
        if (f->guard > 0) {
                kill(f->guard, SIGKILL);
                waitpid(f->guard, NULL, 0);
        }
        afz_run_done(&f->run);
}

struct joining {
        uint64_t wants;
        bool ask;
        struct afz_sharing sharing;
};

static int join_locked(void *ctx, uint64_t promised_bytes)
{
        struct joining *j = ctx;
        (void)promised_bytes;
        return afz_sharing_join(afz_fixture_env(machine), j->wants, j->ask, &j->sharing);
}

/* What a run would get that joins now; and the ms that it took. */
static uint64_t join(uint64_t wants, bool ask, struct afz_sharing *ret, uint64_t *ret_ms)
{
        struct joining j = {.wants = wants, .ask = ask};
        uint64_t begin = afz_clock_ns(CLOCK_MONOTONIC);
        assert_int_equal(afz_run_ledger("", join_locked, &j, NULL), 0);
        *ret_ms = (afz_clock_ns(CLOCK_MONOTONIC) - begin) / AFZ_NS_PER_MS;
        *ret = j.sharing;
        return room() - j.sharing.promised_bytes;
}

static void wait_for_budget(const struct fake *f, uint64_t bytes)
{
        for (int i = 0; i < 5000 && f->run.page->budget_bytes / MIB != bytes / MIB; i++)
                usleep(1000);
        assert_int_equal(f->run.page->budget_bytes / MIB, bytes / MIB);
}

static void test_alone(void **state)
{
        (void)state;
        struct afz_sharing s;
        uint64_t ms;
        assert_int_equal(join(0, true, &s, &ms), room());
        assert_string_equal(s.largest.id, "");
        assert_int_equal(s.room.total_bytes, 32 * GIB);
}

static void test_obeys(void **state)
{
        (void)state;
        struct afz_sharing s;
        struct fake a, b;
        uint64_t ms;
        fake_start(&a, room(), false, true, true);
        assert_int_equal(join(0, true, &s, &ms) / MIB, room() / 2 / MIB);
        assert_true(a.run.page->budget_bytes <= room() / 2);
        assert_string_equal(s.largest.id, a.run.page->id);

        fake_start(&b, room() / 2, false, true, true);
        assert_in_range(join(0, true, &s, &ms) / MIB, room() / 3 / MIB - 1, room() / 3 / MIB + 1);
        assert_true(a.run.page->budget_bytes + b.run.page->budget_bytes <= room() / 3 * 2 + 3);

        /* The third was never made: the two have all again. Then one goes. */
        afz_sharing_again(afz_fixture_env(machine));
        wait_for_budget(&a, room() / 2);
        wait_for_budget(&b, room() / 2);
        fake_end(&b);
        afz_sharing_again(afz_fixture_env(machine));
        wait_for_budget(&a, room());
        fake_end(&a);
}

/* What it did not give up still counts; and it does not keep the newcomer waiting for long. */
static void test_does_not_obey(void **state)
{
        (void)state;
        struct afz_sharing s;
        struct fake a;
        uint64_t ms;
        fake_start(&a, 10 * GIB, false, true, false);
        assert_int_equal(join(0, true, &s, &ms) / MIB, (room() - 10 * GIB) / MIB);
        assert_in_range(ms, 350, 5000);
        assert_int_equal(s.largest.budget_bytes, 10 * GIB);
        fake_end(&a);
}

static void test_nobody_to_wait_for(void **state)
{
        (void)state;
        struct afz_sharing s;
        struct fake hung, given;
        uint64_t ms;
        fake_start(&hung, 2 * GIB, false, false, false);
        fake_start(&given, 4 * GIB, true, true, true);
        given.run.page->need_bytes = GIB;
        assert_int_equal(join(0, true, &s, &ms) / MIB, (room() - 5 * GIB) / MIB);
        assert_in_range(ms, 0, 300);
        assert_int_equal(hung.run.page->cap_bytes, 0);
        assert_int_equal(given.run.page->cap_bytes, 0);
        fake_end(&hung);
        fake_end(&given);
}

/* A newcomer with --budget has its own, and the others what it leaves. */
static void test_explicit_joins(void **state)
{
        (void)state;
        struct afz_sharing s;
        struct fake a;
        uint64_t ms;
        fake_start(&a, room(), false, true, true);
        (void)join(5 * GIB, true, &s, &ms);
        wait_for_budget(&a, room() - 5 * GIB);
        fake_end(&a);
}

static void test_dry_run_moves_nothing(void **state)
{
        (void)state;
        struct afz_sharing s;
        struct fake a;
        uint64_t ms;
        fake_start(&a, room(), false, true, true);
        assert_int_equal(join(0, false, &s, &ms) / MIB, room() / 2 / MIB);
        assert_int_equal(a.run.page->cap_bytes, 0);
        assert_int_equal(a.run.page->budget_bytes, room());
        fake_end(&a);
}

/* A job that needs nearly all it has keeps it. */
static void test_need_is_kept(void **state)
{
        (void)state;
        struct afz_sharing s;
        struct fake a;
        uint64_t ms;
        fake_start(&a, 20 * GIB, false, true, true);
        a.run.page->need_bytes = 19 * GIB;
        (void)join(0, true, &s, &ms);
        assert_int_equal(a.run.page->budget_bytes, 20 * GIB);
        assert_true(s.promised_bytes >= GIB);
        fake_end(&a);
}

static int open_machine(void **state)
{
        (void)state;
        machine = afz_fixture_new(machine_rows);
        return 0;
}

static int close_machine(void **state)
{
        (void)state;
        afz_fixture_free(machine);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROW(test_alone),          ROW(test_obeys),
                ROW(test_does_not_obey),  ROW(test_nobody_to_wait_for),
                ROW(test_explicit_joins), ROW(test_dry_run_moves_nothing),
                ROW(test_need_is_kept),
        };
        return cmocka_run_group_tests(tests, open_machine, close_machine);
}
