/* When less is asked for: what goes back at once, and that nothing of the order is lost by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loader_fixture.h"
#include "parts.h"
#include <sys/mman.h>

enum { SAMPLES = 20011, WIDTH = 16 }; /* of 128 bytes: 2.5 MB */

static int64_t ids[SAMPLES + 64], other[SAMPLES + 64];

static int make(void **state)
{
        fixture_make(state);
        write_rows(fixture_path, SAMPLES, WIDTH);
        return 0;
}

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

/* Wherever it is asked: what comes of the group that was begun is as it was, each sample comes
 * once, and a state of that moment leads to the very same; unless it is of a group that batches
 * ahead have used up, or says none, and so nothing of the next, which was larger. */
static void test_order(void **state)
{
        static const enum afz_shuffle ways[] = {AFZ_SHUFFLE_WINDOW, AFZ_SHUFFLE_NONE};
        static int64_t again[SAMPLES + 64], whole[SAMPLES + 64];
        char why[AFZ_WHY_MAX];
        uint32_t states = 0;
        (void)state;
        for (uint64_t n = 0; n < 2 * 626; n += n % 626 < 620 ? 23 : 1) {
                struct afz_loader_options options = rows_options();
                uint8_t place[AFZ_LOADER_STATE_BYTES];
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
                bool is_here = l->place.group && l->place.first == group->first;
                uint64_t sure = l->queue[0]->epoch == 0 ? group->start + group->samples : SAMPLES;
                states += is_here;
                assert_int_equal(afz_loader_ask(l, 1 * MIB), 0);
                afz_loader_state(l, place);
                uint64_t rest = take_epoch(l, WIDTH, ids + count);
                assert_all_once(ids, count + rest, SAMPLES);
                assert_memory_equal(ids, whole, sizeof *ids * sure);
                assert_all_once(other, take_epoch(l, WIDTH, other), SAMPLES);
                assert_int_equal(afz_loader_seek(l, place, why), 0);
                assert_int_equal(take_epoch(l, WIDTH, again), rest);
                if (is_here)
                        assert_memory_equal(ids + count, again, sizeof *ids * rest);
                assert_int_equal(take_epoch(l, WIDTH, again), SAMPLES);
                if (is_here)
                        assert_memory_equal(other, again, sizeof *ids * SAMPLES);
                afz_loader_close(l);
        }
        assert_true(states > 40); /* of some 66 */
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
        return cmocka_run_group_tests(tests, make, fixture_remove);
}
