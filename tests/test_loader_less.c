/* When less is asked for: what goes back at once, and that nothing of the order is lost by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loader_rows.h"
#include "parts.h"
#include <sys/mman.h>

static int64_t ids[SAMPLES + 64], other[SAMPLES + 64];

/* Nobody is at work, for there is nothing to do: all that is to be loaded and made ahead is. */
static void wait_quiet(struct afz_loader *l)
{
        for (int tries = 0; tries < 60000; tries++) {
                bool is_quiet;
                pthread_mutex_lock(&l->lock);
                is_quiet = l->busy == 0 && l->copying == 0 && l->entries > 0;
                for (uint32_t i = 0; i < l->queued; i++)
                        is_quiet &= l->queue[i]->state == AFZ_GROUP_READY;
                for (uint32_t i = 0; i < l->now.batches; i++)
                        is_quiet &= l->buffer[i].state != AFZ_BUFFER_FILLING;
                if (is_quiet && l->entries < l->now.batches) /* or it has not been woken */
                        pthread_cond_signal(&l->gather);
                is_quiet &= l->entries >= l->now.batches;
                pthread_mutex_unlock(&l->lock);
                if (is_quiet)
                        return;
                usleep(1000);
        }
        fail_msg("it does not come to rest");
}

static uint64_t resident_bytes(const struct afz_loader *l)
{
        uint64_t pages = l->arena.bytes / AFZ_ARENA_PAGE, count = 0;
        unsigned char *is_there = malloc(pages);
        assert_int_equal(mincore(l->arena.at, l->arena.bytes, is_there), 0);
        for (uint64_t i = 0; i < pages; i++)
                count += is_there[i] & 1;
        free(is_there);
        return count * AFZ_ARENA_PAGE;
}

/* Long before the group that batches are made of is used up. */
static void test_at_once(void **state)
{
        (void)state;
        for (int is_shared = 0; is_shared < 2; is_shared++) {
                struct afz_loader_options options = rows_options();
                options.budget_bytes = 2 * MIB;
                options.is_shared = is_shared != 0;
                struct afz_loader *l = open_ok(&options);
                take_epoch(l, WIDTH, ids);
                assert_int_equal(take_batch(l, WIDTH, ids), 32);
                wait_quiet(l);
                assert_int_equal(l->queued, 2);
                uint64_t before = resident_bytes(l), first = l->queue[0]->order.first;
                uint64_t one = l->queue[0]->order.chunks * l->needs.slot_bytes;
                assert_int_equal(before, l->arena.bytes);
                assert_int_equal(afz_loader_ask(l, 1 * MIB), 0);
                assert_int_equal(l->queue[0]->order.first, first);
                uint64_t after = resident_bytes(l);
                if (after > 1 * MIB || after > before - one)
                        fail_msg("%llu bytes of %llu, a group has %llu", (unsigned long long)after,
                                 (unsigned long long)before, (unsigned long long)one);
                uint64_t count = 32 + take_epoch(l, WIDTH, ids + 32);
                assert_all_once(ids, count, SAMPLES);
                assert_true(resident_bytes(l) <= 1 * MIB);
                afz_loader_close(l);
        }
}

/* Among ranks, and where all data are in memory: batches that are ready, and what threads had. */
static void test_ahead_alone(void **state)
{
        (void)state;
        for (uint32_t ranks = 1; ranks <= 2; ranks++) {
                struct afz_loader_options options = rows_options();
                options.ranks = ranks;
                options.budget_bytes = ranks > 1 ? 2 * MIB : 16 * MIB;
                struct afz_loader *l = open_ok(&options);
                uint64_t all = take_epoch(l, WIDTH, ids);
                afz_loader_close(l);
                l = open_ok(&options);
                uint64_t count = (uint64_t)take_batch(l, WIDTH, other);
                wait_quiet(l);
                uint64_t scratch = l->plan.threads * (l->raw_bytes + l->decode_bytes);
                (void)afz_loader_ask(l, 1);
                uint64_t batches = (l->plan.batches - l->now.batches) * l->needs.batch_bytes;
                assert_true(batches > 0);
                assert_true(resident_bytes(l) <= l->arena.bytes - batches - scratch);
                count += take_epoch(l, WIDTH, other + count);
                assert_int_equal(count, all);
                assert_memory_equal(ids, other, sizeof *ids * all);
                afz_loader_close(l);
        }
}

/* What comes of a state is the rest of an epoch and all of the next, as the run itself had them. */
static void assert_goes_on(struct afz_loader *l, const uint8_t place[AFZ_LOADER_STATE_BYTES],
                           const int64_t *rest, uint64_t count, const int64_t *next)
{
        static int64_t again[SAMPLES + 64];
        uint8_t later[AFZ_LOADER_STATE_BYTES];
        char why[AFZ_WHY_MAX];
        if (afz_loader_seek(l, place, why) < 0)
                fail_msg("%s", why);
        afz_loader_state(l, later);
        assert_memory_equal(place, later, sizeof later);
        assert_int_equal(take_epoch(l, WIDTH, again), count);
        assert_memory_equal(rest, again, sizeof *rest * count);
        afz_loader_state(l, later);
        assert_int_equal(afz_loader_seek(l, later, why), 0);
        assert_int_equal(take_epoch(l, WIDTH, again), SAMPLES);
        assert_memory_equal(next, again, sizeof *next * SAMPLES);
}

/* Wherever it is asked, once or twice: what comes of the group that was begun is as it was, each
 * sample comes once, and a state of that moment leads to the very same, here and in a process that
 * has the whole budget again, or more. */
static void test_order(void **state)
{
        static const enum afz_shuffle ways[] = {AFZ_SHUFFLE_WINDOW, AFZ_SHUFFLE_NONE};
        static const uint64_t budgets[] = {2 * MIB, 16 * MIB, 96 * MIB};
        static int64_t whole[SAMPLES + 64];
        char why[AFZ_WHY_MAX];
        (void)state;
        for (uint64_t n = 0; n < 2 * 626; n += n % 626 < 620 ? 23 : 1) {
                struct afz_loader_options options = rows_options();
                uint8_t early[AFZ_LOADER_STATE_BYTES], place[AFZ_LOADER_STATE_BYTES];
                uint64_t count = 0;
                options.budget_bytes = 2 * MIB;
                options.shuffle = ways[n / 626];
                struct afz_loader *l = open_ok(&options);
                assert_int_equal(take_epoch(l, WIDTH, whole), SAMPLES);
                assert_int_equal(afz_loader_begin(l, 0, why), 0);
                for (uint64_t i = 0; i < n % 626; i++)
                        count += (uint64_t)take_batch(l, WIDTH, ids + count);
                wait_quiet(l);
                const struct afz_group_order *group = &l->queue[0]->order;
                uint64_t sure = l->queue[0]->epoch == 0 ? group->start + group->samples : SAMPLES;
                afz_loader_state(l, early);
                assert_int_equal(afz_loader_ask(l, n % 5 < 3 ? 1 * MIB : 1400 * KIB), 0);
                if (n % 2) {
                        wait_quiet(l);
                        assert_int_equal(afz_loader_ask(l, 700 * KIB), 0);
                }
                afz_loader_state(l, place);
                assert_memory_not_equal(early, place, sizeof place);
                uint64_t rest = take_epoch(l, WIDTH, ids + count);
                afz_loader_renew(l, early);
                assert_memory_equal(early, place, sizeof place);
                assert_all_once(ids, count + rest, SAMPLES);
                assert_memory_equal(ids, whole, sizeof *ids * sure);
                assert_all_once(other, take_epoch(l, WIDTH, other), SAMPLES);
                assert_goes_on(l, place, ids + count, rest, other);
                afz_loader_close(l);
                options.budget_bytes = budgets[n % 3];
                l = open_ok(&options);
                assert_goes_on(l, place, ids + count, rest, other);
                afz_loader_close(l);
        }
}

/* Of a group that is being loaded, when its chunks are: here one that never ends, until it does. */
static void test_while_it_loads(void **state)
{
        struct afz_loader_options options = rows_options();
        (void)state;
        options.budget_bytes = 2 * MIB;
        struct afz_loader *l = open_ok(&options);
        assert_int_equal(take_batch(l, WIDTH, ids), 32);
        wait_quiet(l);
        pthread_mutex_lock(&l->lock); /* as if a thread had one chunk left */
        struct afz_group *second = l->queue[1];
        second->state = AFZ_GROUP_LOADING;
        second->done--;
        pthread_mutex_unlock(&l->lock);
        uint64_t before = resident_bytes(l), bytes = second->order.chunks * l->needs.slot_bytes;
        assert_int_equal(afz_loader_ask(l, 1 * MIB), 0);
        assert_int_equal(second->state, AFZ_GROUP_DROPPED);
        assert_int_equal(l->queued, 1);
        assert_true(resident_bytes(l) > before - bytes);
        pthread_mutex_lock(&l->lock); /* now it is done */
        second->done++;
        second->state = AFZ_GROUP_FREE;
        afz_groups_plan(l);
        pthread_mutex_unlock(&l->lock);
        assert_true(resident_bytes(l) <= before - bytes);
        assert_all_once(ids, 32 + take_epoch(l, WIDTH, ids + 32), SAMPLES);
        afz_loader_close(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_at_once),
                cmocka_unit_test(test_ahead_alone),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_while_it_loads),
        };
        return cmocka_run_group_tests(tests, make_rows, fixture_remove);
}
