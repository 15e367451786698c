/* links: engine */
/* What guard and scout put into the slots, and what comes out of them; no process, no disk. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "fixture.h"
#include "recorder_git.h"
#include "recorder_lane.h"
#include "recorder_state.h"

#define START_NS UINT64_C(5000000000)
#define SLOT     UINT32_C(512)

static uint64_t at_ms(uint64_t ms)
{
        return START_NS + ms * AFZ_NS_PER_MS;
}

/* ---- lanes ---- */

struct bench {
        struct afz_lane_shared *shared;
        unsigned char *data;
        uint32_t slot_bytes;
        struct afz_lane puts, takes;
        struct afz_flight flight;
        unsigned packs;
};

static void *share(size_t bytes)
{
        void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(map != MAP_FAILED);
        return map;
}

static void open_bench(struct bench *b, uint32_t slot_bytes)
{
        *b = (struct bench){.slot_bytes = slot_bytes};
        b->shared = share(sizeof *b->shared);
        b->data = share(afz_lane_bytes(slot_bytes));
        afz_lane_make(b->shared);
        afz_lane_init(&b->puts, b->shared, b->data, slot_bytes, START_NS);
        afz_lane_init(&b->takes, b->shared, b->data, slot_bytes, START_NS);
        assert_int_equal(afz_lane_join(&b->puts), 0);
        afz_flight_init(&b->flight);
}

static void close_bench(struct bench *b)
{
        afz_flight_done(&b->flight);
        afz_lane_leave(&b->puts);
        afz_lane_leave(&b->puts);
        munmap(b->data, afz_lane_bytes(b->slot_bytes));
        munmap(b->shared, sizeof *b->shared);
}

static struct afz_sample need(uint64_t bytes)
{
        struct afz_sample s = {.subject = {.kind = AFZ_KIND_HOLD}, .name = "job"};
        afz_sample_set_u64(&s, AFZ_HOLD_NEED, bytes);
        return s;
}

static void put_need(struct bench *b, uint64_t ms, uint64_t bytes)
{
        struct afz_sample s = need(bytes);
        afz_lane_begin(&b->puts, at_ms(ms));
        afz_lane_sample(&b->puts, at_ms(ms), &s);
        afz_lane_end(&b->puts);
}

/* Takes all there is into the flight; returns what the last asking said. */
static int take_all(struct bench *b, bool last)
{
        const unsigned char *pack;
        size_t len;
        int r;
        while ((r = afz_lane_take(&b->takes, last, &pack, &len)) > 0) {
                assert_int_equal(afz_unpack(pack, len, NULL, &b->flight), 0);
                afz_lane_taken(&b->takes);
                b->packs++;
        }
        assert_int_equal(afz_flight_settle(&b->flight), 0);
        return r;
}

static const struct afz_column *needs(const struct bench *b)
{
        return afz_track_column(afz_flight_one(&b->flight, AFZ_KIND_HOLD), AFZ_HOLD_NEED);
}

static void test_what_is_put_is_taken(void **state)
{
        struct bench b;
        (void)state;
        open_bench(&b, SLOT);
        assert_int_equal(take_all(&b, false), 0);
        assert_int_equal(b.packs, 0);
        put_need(&b, 10, 100);
        put_need(&b, 20, 200);
        assert_int_equal(take_all(&b, false), 0);
        assert_int_equal(b.packs, 1);
        assert_int_equal(take_all(&b, false), 0); /* nothing new */
        assert_int_equal(b.packs, 1);
        put_need(&b, 30, 300); /* the taken slot is not touched again: a new one begins */
        assert_int_equal(take_all(&b, false), 0);
        assert_int_equal(b.packs, 2);
        const struct afz_column *c = needs(&b);
        assert_int_equal(c->count, 3);
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(c->point[i].t_ms, 10 * (i + 1));
                assert_int_equal(c->point[i].mean, 100 * (i + 1));
        }
        close_bench(&b);
}

static void test_slots_are_used_again_and_again(void **state)
{
        struct bench b;
        (void)state;
        open_bench(&b, SLOT);
        for (uint64_t i = 0; i < 10 * AFZ_LANE_SLOTS; i++) {
                put_need(&b, i, i);
                assert_int_equal(take_all(&b, false), 0);
                assert_int_equal(b.packs, i + 1);
        }
        assert_int_equal(needs(&b)->count, 10 * AFZ_LANE_SLOTS);
        assert_int_equal(b.flight.marks, 0);
        close_bench(&b);
}

static void test_half_a_tick_is_not_taken(void **state)
{
        struct bench b;
        struct afz_sample s = need(2);
        (void)state;
        open_bench(&b, SLOT);
        put_need(&b, 1, 1);
        afz_lane_begin(&b.puts, at_ms(2));
        afz_lane_sample(&b.puts, at_ms(2), &s);
        assert_int_equal(take_all(&b, false), -EAGAIN);
        assert_int_equal(b.packs, 0);
        afz_lane_end(&b.puts);
        assert_int_equal(take_all(&b, false), 0);
        assert_int_equal(needs(&b)->count, 2);
        close_bench(&b);
}

/* Who died in the middle of a tick leaves what was whole before it, to who takes or who comes next.
 */
static void test_one_that_died_in_mid_tick(void **state)
{
        for (int next = 0; next < 2; next++) {
                struct bench b;
                struct afz_sample s = need(3);
                (void)state;
                open_bench(&b, SLOT);
                put_need(&b, 1, 1);
                put_need(&b, 2, 2);
                afz_lane_begin(&b.puts, at_ms(3));
                afz_lane_sample(&b.puts, at_ms(3), &s);
                if (next) {
                        afz_lane_leave(&b.puts);
                        afz_lane_init(&b.puts, b.shared, b.data, SLOT, START_NS);
                        assert_int_equal(afz_lane_join(&b.puts), 0);
                        put_need(&b, 4, 4);
                        assert_int_equal(take_all(&b, false), 0);
                        assert_int_equal(b.packs, 2);
                        assert_int_equal(needs(&b)->point[2].mean, 4);
                } else {
                        assert_int_equal(take_all(&b, true), 0);
                        assert_int_equal(b.packs, 1);
                }
                assert_int_equal(needs(&b)->count, 2 + next);
                assert_int_equal(needs(&b)->point[1].mean, 2);
                close_bench(&b);
        }
}

static uint64_t told_as_gap(const struct bench *b)
{
        uint64_t sum = 0;
        for (size_t i = 0; i < b->flight.marks; i++)
                if (b->flight.mark[i].kind == AFZ_MARK_GAP)
                        sum += (uint64_t)b->flight.mark[i].code;
        return sum;
}

/* Nobody takes: the oldest is kept, nobody waits, and what was lost is told when there is room. */
static void test_what_finds_no_room_is_told(void **state)
{
        enum { MANY = 4000 };
        struct bench b;
        (void)state;
        open_bench(&b, SLOT);
        for (uint64_t i = 0; i < MANY; i++)
                put_need(&b, i, i << 12);
        assert_int_equal(take_all(&b, false), 0);
        size_t kept = needs(&b)->count;
        assert_true(kept > 100 && kept < MANY / 2);
        assert_int_equal(b.packs, AFZ_LANE_SLOTS - 1);
        assert_int_equal(needs(&b)->point[kept - 1].mean, (kept - 1) << 12);
        assert_int_equal(told_as_gap(&b), 0);
        put_need(&b, MANY, 7);
        assert_int_equal(take_all(&b, false), 0);
        assert_int_equal(told_as_gap(&b), MANY - kept);
        put_need(&b, MANY + 1, 8);
        assert_int_equal(take_all(&b, false), 0);
        assert_int_equal(told_as_gap(&b), MANY - kept); /* once */
        assert_int_equal(needs(&b)->count, kept + 2);
        close_bench(&b);
}

/* A record that is larger than a slot is lost alone. */
static void test_a_record_that_never_fits(void **state)
{
        struct bench b;
        char text[600];
        (void)state;
        memset(text, 'x', sizeof text - 1);
        text[sizeof text - 1] = '\0';
        open_bench(&b, SLOT);
        for (uint64_t i = 0; i < 3 * AFZ_LANE_SLOTS; i++) {
                afz_lane_begin(&b.puts, at_ms(i));
                afz_lane_mark(&b.puts, at_ms(i), AFZ_MARK_SAID, 0, text);
                afz_lane_mark(&b.puts, at_ms(i), AFZ_MARK_SAID, 0, "short");
                afz_lane_end(&b.puts);
                assert_int_equal(take_all(&b, false), 0);
        }
        size_t said = 0;
        for (size_t i = 0; i < b.flight.marks; i++)
                said += b.flight.mark[i].kind == AFZ_MARK_SAID;
        assert_int_equal(said, 3 * AFZ_LANE_SLOTS);
        assert_int_equal(told_as_gap(&b), 3 * AFZ_LANE_SLOTS - 1);
        close_bench(&b);
}

/* Two processes at once: each record is there once and whole, or counted. */
static void test_two_processes(void **state)
{
        enum { MANY = 200000 };
        struct bench b;
        (void)state;
        open_bench(&b, 2048);
        pid_t pid = fork();
        if (pid == 0) {
                for (uint64_t i = 0; i < MANY; i++)
                        put_need(&b, i / 100, i);
                while (b.puts.dropped > 0) /* until the last loss is told, and could be */
                        put_need(&b, MANY, MANY);
                _exit(0);
        }
        assert_true(pid > 0);
        int status;
        while (waitpid(pid, &status, WNOHANG) == 0)
                (void)take_all(&b, false);
        assert_int_equal(status, 0);
        assert_int_equal(take_all(&b, true), 0);
        const struct afz_column *c = needs(&b);
        int64_t before = -1;
        uint64_t extra = 0;
        for (size_t i = 0; i < c->count; i++) {
                if (c->point[i].mean == MANY) {
                        extra++;
                        continue;
                }
                if (c->point[i].mean <= before)
                        fail_msg("%lld after %lld", (long long)c->point[i].mean, (long long)before);
                before = c->point[i].mean;
        }
        /* Of the last ones that only wait for room, some may be lost as well. */
        assert_true(c->count - extra + told_as_gap(&b) >= MANY);
        assert_true(b.packs > AFZ_LANE_SLOTS);
        close_bench(&b);
}

/* ---- windows ---- */

static struct afz_recorder *open_scout(struct bench *b)
{
        struct afz_recorder *r = calloc(1, sizeof *r);
        assert_non_null(r);
        open_bench(b, 64 << 10);
        r->lane[AFZ_LANE_OF_SCOUT] = b->puts;
        return r;
}

static void take_scout(struct bench *b, struct afz_recorder *r)
{
        b->puts = r->lane[AFZ_LANE_OF_SCOUT]; /* so that closing frees what is its */
        assert_int_equal(take_all(b, false), 0);
}

static struct afz_batch *host_batch(uint64_t t_ns, int64_t available)
{
        struct afz_batch *batch;
        assert_int_equal(afz_batch_new(4, &batch), 0);
        afz_batch_start(batch, t_ns);
        struct afz_sample *s =
                afz_batch_add(batch, (struct afz_subject){.kind = AFZ_KIND_HOST}, "host");
        afz_sample_set(s, AFZ_HOST_MEM_AVAILABLE, available);
        return batch;
}

static void test_what_is_new_in_a_window(void **state)
{
        struct bench b;
        static struct afz_window w, next;
        (void)state;
        struct afz_recorder *r = open_scout(&b);
        uint64_t now_ns = afz_clock_ns(CLOCK_MONOTONIC);
        struct afz_batch *first = host_batch(now_ns, 10), *second = host_batch(now_ns + 1, 20);
        afz_batch_event(first, AFZ_EVENT_XID, 79, "lost", 4);
        afz_window_init(&w, AFZ_NS_PER_S);
        w.sources = 2;
        w.source[0].now = first;
        afz_window_advance(&w, now_ns);
        afz_recorder_window(r, &w);
        afz_recorder_window(r, &w); /* the same again */
        w.source[0].now = second;
        afz_window_advance(&w, now_ns + 1);
        afz_recorder_window(r, &w);
        take_scout(&b, r);
        const struct afz_track *host = afz_flight_one(&b.flight, AFZ_KIND_HOST);
        const struct afz_column *c = afz_track_column(host, AFZ_HOST_MEM_AVAILABLE);
        assert_int_equal(c->count, 2);
        assert_int_equal(c->point[0].mean, 10);
        assert_int_equal(c->point[1].mean, 20);
        assert_int_equal(b.flight.marks, 1);
        assert_int_equal(b.flight.mark[0].kind, AFZ_MARK_EVENT);
        assert_true(b.flight.mark[0].code == ((int64_t)AFZ_EVENT_XID << 32 | 79));
        assert_string_equal(b.flight.mark[0].text, "lost");

        /* The next attempt has a window of its own, with the same times. */
        afz_window_init(&next, AFZ_NS_PER_S);
        next.sources = 1;
        next.source[0].now = second;
        afz_window_advance(&next, now_ns + 1);
        afz_recorder_window(r, &next);
        take_scout(&b, r);
        assert_int_equal(
                afz_track_column(afz_flight_one(&b.flight, AFZ_KIND_HOST), AFZ_HOST_MEM_AVAILABLE)
                        ->count,
                3);
        afz_batch_free(first);
        afz_batch_free(second);
        free(r);
        close_bench(&b);
}

/* More events than a window has room for: the newest are kept. */
static void test_a_storm_of_events(void **state)
{
        struct bench b;
        static struct afz_window w;
        (void)state;
        struct afz_recorder *r = open_scout(&b);
        afz_window_init(&w, AFZ_NS_PER_S);
        w.ticks = 1;
        w.events = 3 * AFZ_WINDOW_EVENTS + 5;
        for (size_t i = 0; i < AFZ_WINDOW_EVENTS; i++)
                snprintf(w.event[i].text, sizeof w.event[i].text, "%zu", i);
        afz_recorder_window(r, &w);
        take_scout(&b, r);
        assert_int_equal(b.flight.marks, AFZ_WINDOW_EVENTS);
        free(r);
        close_bench(&b);
}

static void test_nobody_records(void **state)
{
        static struct afz_window w;
        struct afz_sample s = need(1);
        (void)state;
        afz_recorder_go(NULL, AFZ_TIER_NONE);
        afz_recorder_pulse(NULL, &s);
        afz_recorder_mark(NULL, 1, AFZ_MARK_SAID, 0, "x");
        afz_recorder_window(NULL, &w);
        assert_int_equal(afz_recorder_join(NULL), 0);
        assert_int_equal(afz_recorder_pid(NULL), 0);
        assert_int_equal(afz_recorder_trouble(NULL), 0);
        assert_int_equal(afz_recorder_cpu_ns(NULL), 0);
        afz_recorder_stop(NULL, AFZ_NS_PER_S);
        afz_recorder_free(NULL);
}

/* ---- git ---- */

#define REV  "0123456789abcdef0123456789abcdef01234567"
#define REV2 "89abcdef0123456789abcdef0123456789abcdef"
#define LONG REV "89abcdef0123456789abcdef"

static void test_git(void **state)
{
        static const struct afz_fixture_row rows[] = {
                {"loose/.git/HEAD", "ref: refs/heads/main\n"},
                {"loose/.git/refs/heads/main", REV "\n"},
                {"loose/a/b/c/", NULL},
                {"detached/.git/HEAD", REV2 "\n"},
                {"long/.git/HEAD", LONG "\n"},
                {"packed/.git/HEAD", "ref: refs/heads/x\n"},
                {"packed/.git/packed-refs", "# pack-refs with: peeled fully-peeled sorted \n" REV2
                                            " refs/heads/main\n^" REV2 "\n" REV " refs/heads/x\n"},
                {"tree/.git", "gitdir: ../loose/.git/worktrees/t\n"},
                {"loose/.git/worktrees/t/HEAD", "ref: refs/heads/side\n"},
                {"loose/.git/worktrees/t/commondir", "../..\n"},
                {"loose/.git/refs/heads/side", REV2 "\n"},
                {"unborn/.git/HEAD", "ref: refs/heads/main\n"},
                {"cut/.git/HEAD", "0123456789abcdef"},
                {"upper/.git/HEAD", "0123456789ABCDEF0123456789abcdef01234567\n"},
                {"empty/.git/HEAD", ""},
                {"headless/.git/", NULL},
                {"astray/.git", "gitdir: /nonexistent/x\n"},
                {"noise/.git", "hello\n"},
                {"outside/.git/HEAD", "ref: \n"},
                {0},
        };
        static const struct {
                const char *folder, *revision;
        } cases[] = {
                {"loose", REV},   {"loose/a/b/c", REV}, {"detached", REV2}, {"long", LONG},
                {"packed", REV},  {"tree", REV2},       {"unborn", ""},     {"cut", ""},
                {"upper", ""},    {"empty", ""},        {"headless", ""},   {"outside", ""},
                {"nonesuch", ""},
        };
        struct afz_fixture *f = afz_fixture_new(rows);
        size_t fds = afz_fixture_open_fds();
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char path[1024], got[AFZ_GIT_CAP] = "old";
                snprintf(path, sizeof path, "%s/%s", afz_fixture_dir(f), cases[i].folder);
                afz_git_revision(path, got);
                if (strcmp(got, cases[i].revision) != 0)
                        fail_msg("%s: '%s'", cases[i].folder, got);
        }
        /* Whatever lies above them: they end, and it is a revision or nothing. */
        static const char *const others[] = {"astray", "noise"};
        for (size_t i = 0; i < 2; i++) {
                char path[1024], got[AFZ_GIT_CAP] = "old";
                snprintf(path, sizeof path, "%s/%s", afz_fixture_dir(f), others[i]);
                afz_git_revision(path, got);
                assert_true(got[0] == '\0' || strlen(got) >= 40);
        }
        assert_int_equal(afz_fixture_open_fds(), fds);
        afz_fixture_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_put_is_taken),
                cmocka_unit_test(test_slots_are_used_again_and_again),
                cmocka_unit_test(test_half_a_tick_is_not_taken),
                cmocka_unit_test(test_one_that_died_in_mid_tick),
                cmocka_unit_test(test_what_finds_no_room_is_told),
                cmocka_unit_test(test_a_record_that_never_fits),
                cmocka_unit_test(test_two_processes),
                cmocka_unit_test(test_what_is_new_in_a_window),
                cmocka_unit_test(test_a_storm_of_events),
                cmocka_unit_test(test_nobody_records),
                cmocka_unit_test(test_git),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
