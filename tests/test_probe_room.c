/* links: probe/room.c, and what stands here in place of the rest of the probe: the clock, the guard
 * that looks, and who can be told no. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "antifreeze/step.h"
#include "hooks.h"

#define MIB UINT64_C(1048576)
#define MS  UINT64_C(1000000)
#define S   (1000 * MS)

/* ---- in place of the rest ---- */

AFZ_TLS struct afz_sampler afz_sampler;
struct afz_book *_Atomic afz_book_now;

static struct afz_book book;
static struct afz_room *page;

/* The guard looks when the clock is read for the n-th time from now; 0: not. */
static struct {
        _Atomic uint64_t now_ns;
        _Atomic unsigned look_in, look_every;
        uint64_t says_bytes;
        _Atomic unsigned asked; /* who can be told no */
        uint64_t frozen_ns;     /* the process stands still so long then, as the guard looks */
        int may, sealed, new_book;
} world;

static void look(uint64_t room_bytes)
{
        atomic_store(&page->room_bytes, room_bytes);
        atomic_store(&page->looked_ns, atomic_fetch_add(&world.now_ns, MS) + MS);
        atomic_fetch_add(&page->looks, 1);
}

uint64_t afz_now_ns(void)
{
        uint64_t now = atomic_fetch_add(&world.now_ns, MS) + MS;
        if (atomic_load(&world.look_in) > 0 && atomic_fetch_sub(&world.look_in, 1) == 1) {
                look(world.says_bytes);
                atomic_store(&world.look_in, atomic_load(&world.look_every));
                if (world.frozen_ns)
                        now = atomic_fetch_add(&world.now_ns, world.frozen_ns) + world.frozen_ns;
        }
        return now;
}

int afz_is_sealed(void)
{
        return world.sealed;
}

int afz_book_is_mine(void)
{
        return 1;
}

struct afz_book *afz_book_mine(int *ret_new)
{
        *ret_new = world.new_book;
        return &book;
}

int afz_refuse_may(struct afz_book *b, int armed, enum afz_ask how)
{
        assert_ptr_equal(b, &book);
        (void)how;
        atomic_fetch_add(&world.asked, 1);
        return armed || world.may;
}

/* Of other processes of the job. */
static struct afz_promise *promises(void)
{
        return (struct afz_promise *)(void *)((char *)page + AFZ_ROOM_PROMISES_AT);
}

/* ---- */

static int grants(uint64_t bytes)
{
        return afz_room_grants(bytes, AFZ_ASK_PLAIN);
}

/* The next look comes soon and says so. */
static int grants_with_look(uint64_t bytes, uint64_t says_bytes)
{
        world.says_bytes = says_bytes;
        atomic_store(&world.look_in, 6);
        return grants(bytes);
}

static void *map(uint64_t bytes)
{
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_true(at != MAP_FAILED);
        (void)madvise(at, bytes, MADV_NOHUGEPAGE); /* what is not touched is not there */
        return at;
}

static int make_page(uint64_t bytes, uint64_t magic, int seals)
{
        int fd = memfd_create("room", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_true(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
        struct afz_room *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_true(room != MAP_FAILED);
        room->magic = magic;
        atomic_store(&room->room_bytes, 0);
        atomic_store(&room->looked_ns, UINT64_MAX / 2);
        if (seals != 0)
                assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
        page = room;
        return fd;
}

static int begin(void **state)
{
        (void)state;
        afz_book_now = &book;
        atomic_store(&book.refused, 0);
        atomic_store(&book.refused_bytes, 0);
        world.may = 1;
        world.sealed = world.new_book = 0;
        world.frozen_ns = 0;
        atomic_store(&world.asked, 0);
        atomic_store(&world.look_in, 0);
        atomic_store(&world.look_every, 0);
        atomic_fetch_add(&world.now_ns, 100 * S); /* all that was is over */
        afz_room_forget();
        if (page)
                look(100 * MIB);
        return 0;
}

/* The first test: from the second on there is a page. */
static void test_pages_that_are_none(void **state)
{
        static const struct {
                uint64_t bytes, magic;
                int seals;
        } bad[] = {
                {AFZ_ROOM_BYTES, AFZ_ROOM_MAGIC, 0},
                {AFZ_ROOM_BYTES, AFZ_ROOM_MAGIC, F_SEAL_GROW},
                {64, AFZ_ROOM_MAGIC, F_SEAL_SHRINK},
                {AFZ_ROOM_BYTES, AFZ_ROOM_MAGIC + 1, F_SEAL_SHRINK},
                {AFZ_ROOM_BYTES, AFZ_BOOK_MAGIC, F_SEAL_SHRINK},
        };
        (void)state;
        afz_room_open(-1);
        afz_room_open(0);
        for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
                int fd = make_page(bad[i].bytes, bad[i].magic, bad[i].seals);
                afz_room_open(fd);
                close(fd);
                assert_true(grants(UINT64_C(1) << 40));
                assert_true(antifreeze_room() == AFZ_ROOM_ALL);
                munmap(page, bad[i].bytes);
                page = NULL;
        }
        afz_room_add(&world, 100 * MIB, 100 * MIB); /* nobody minds */
        afz_room_gone((uint64_t)(uintptr_t)&world);
        int fd = make_page(AFZ_ROOM_FILE_BYTES, AFZ_ROOM_MAGIC, F_SEAL_SHRINK);
        afz_room_open(fd);
        close(fd);
        assert_int_equal(antifreeze_room(), 0);
}

static void test_by_what_is_known(void **state)
{
        (void)state;
        assert_int_equal(antifreeze_room(), 100 * MIB);
        assert_true(grants(100 * MIB));
        assert_true(grants(20 * MIB)); /* the same room: nobody took the other one */
        assert_int_equal(atomic_load(&world.asked), 0);
        assert_true(grants(AFZ_ROOM_LEAST - 1));
        look(0);
        assert_true(grants(AFZ_ROOM_LEAST - 1)); /* never refused */
        assert_int_equal(atomic_load(&world.asked), 0);
        assert_false(grants_with_look(AFZ_ROOM_LEAST, 0));
        assert_false(grants_with_look(UINT64_MAX, 0));
        look(AFZ_ROOM_ALL);
        assert_true(grants(UINT64_MAX));
}

/* What was freed since the last look is seen before a no. */
static void test_waits_for_a_look(void **state)
{
        (void)state;
        assert_false(grants_with_look(200 * MIB, 150 * MIB));
        assert_true(grants_with_look(200 * MIB, 201 * MIB));
        assert_int_equal(atomic_load(&world.asked), 2);
}

/* Who is frozen while it waits, as a job over its act line is, has a look all the same. */
static void test_frozen_while_it_waits(void **state)
{
        (void)state;
        world.frozen_ns = 400 * MS;
        assert_false(grants_with_look(200 * MIB, 150 * MIB));
        assert_true(grants_with_look(200 * MIB, 201 * MIB));
}

/* In the child of a fork this may be the first that asks for a book. */
static void test_a_new_book(void **state)
{
        (void)state;
        afz_sampler.seed = 5;
        assert_false(grants_with_look(200 * MIB, 150 * MIB));
        assert_int_equal(afz_sampler.seed, 5);
        world.new_book = 1;
        assert_false(grants_with_look(200 * MIB, 150 * MIB));
        assert_int_equal(afz_sampler.seed, 0);
}

static void test_a_guard_that_looks_no_more(void **state)
{
        (void)state;
        assert_true(grants(200 * MIB)); /* waited in vain */
        assert_int_equal(atomic_load(&world.asked), 1);
        atomic_fetch_add(&world.now_ns, 2 * S);
        uint64_t before = atomic_load(&world.now_ns);
        assert_true(grants(200 * MIB)); /* nobody waits any more */
        assert_true(atomic_load(&world.now_ns) < before + 5 * MS);
        assert_true(antifreeze_room() == AFZ_ROOM_ALL);
}

static void test_who_is_not_told_no(void **state)
{
        (void)state;
        world.may = 0;
        assert_true(grants_with_look(200 * MIB, 0));
        antifreeze_arm(1);
        assert_false(grants_with_look(200 * MIB, 0));
        antifreeze_arm(1);
        antifreeze_arm(-1);
        assert_false(grants_with_look(200 * MIB, 0));
        antifreeze_arm(-1);
        assert_true(grants_with_look(200 * MIB, 0));
        world.may = 1;
        world.sealed = 1;
        assert_true(grants_with_look(200 * MIB, 0));
        world.sealed = 0;
        afz_sampler.inside = 1;
        assert_true(grants_with_look(200 * MIB, 0));
        afz_sampler.inside = 0;
        assert_false(grants_with_look(200 * MIB, 0));
}

/* Granted, and not touched yet: the room is less by it, though no look can see it. */
static void test_what_is_not_touched_yet(void **state)
{
        char *at = map(60 * MIB);
        (void)state;
        afz_room_add(at, 60 * MIB, 60 * MIB);
        assert_int_equal(antifreeze_room(), 40 * MIB);
        assert_true(grants(40 * MIB));
        assert_false(grants_with_look(50 * MIB, 100 * MIB));
        memset(at, 1, 30 * MIB);
        assert_true(grants_with_look(50 * MIB, 100 * MIB)); /* others have let go of as much */
        assert_in_range(antifreeze_room(), 69 * MIB, 71 * MIB);
        memset(at, 1, 60 * MIB);
        assert_false(grants_with_look(80 * MIB, 40 * MIB));
        assert_true(grants(40 * MIB));
        assert_int_equal(afz_room_gone((uint64_t)(uintptr_t)at), 0);
        afz_room_add(at, 60 * MIB, 20 * MIB);
        assert_int_equal(afz_room_gone((uint64_t)(uintptr_t)at), 20 * MIB);
        assert_int_equal(afz_room_gone((uint64_t)(uintptr_t)at), 0);
        munmap(at, 60 * MIB);
        look(100 * MIB);
        assert_int_equal(antifreeze_room(), 100 * MIB);
}

/* What was touched after the look is neither in its figure nor untouched any more. */
static void test_a_measure_holds_for_later_looks(void **state)
{
        char *at = map(60 * MIB);
        (void)state;
        afz_room_add(at, 60 * MIB, 60 * MIB);
        look(100 * MIB);
        memset(at, 1, 60 * MIB);
        assert_true(grants(60 * MIB)); /* measured, and no look came: nothing is refused, but */
        assert_false(afz_room_fits(50 * MIB)); /* this is still by the look before */
        look(40 * MIB);
        assert_true(afz_room_fits(40 * MIB));
        assert_false(afz_room_fits(41 * MIB));
        assert_int_equal(antifreeze_room(), 40 * MIB);
        munmap(at, 60 * MIB);
}

/* A request that takes much of the room has the blocks measured, so that the next one need not
 * wait. */
static void test_measured_in_passing(void **state)
{
        char *at = map(60 * MIB);
        (void)state;
        afz_room_add(at, 60 * MIB, 60 * MIB);
        memset(at, 1, 60 * MIB);
        look(110 * MIB);
        assert_true(grants(20 * MIB));
        look(110 * MIB);
        assert_true(grants(110 * MIB));
        assert_int_equal(atomic_load(&world.asked), 0);
        munmap(at, 60 * MIB);
}

/* Tables that are sparse, rooms that are never used: they do not bind memory for ever. */
static void test_what_nobody_touches(void **state)
{
        char *at = map(90 * MIB);
        (void)state;
        afz_room_add(at, 90 * MIB, 90 * MIB);
        atomic_fetch_add(&world.now_ns, 9 * S);
        look(100 * MIB);
        assert_false(grants_with_look(50 * MIB, 100 * MIB));
        atomic_fetch_add(&world.now_ns, 2 * S);
        look(100 * MIB);
        assert_true(grants_with_look(50 * MIB, 100 * MIB));
        assert_int_equal(antifreeze_room(), 100 * MIB);
        munmap(at, 90 * MIB);
}

/* A little of it again and again: it is in use. */
static void test_what_is_touched_slowly(void **state)
{
        char *at = map(90 * MIB);
        (void)state;
        afz_room_add(at, 90 * MIB, 90 * MIB);
        for (unsigned i = 0; i < 4; i++) {
                atomic_fetch_add(&world.now_ns, 9 * S);
                look(100 * MIB);
                memset(at + i * MIB, 1, MIB);
                assert_false(grants_with_look(50 * MIB, 100 * MIB));
        }
        munmap(at, 90 * MIB);
}

static void test_untouched(void **state)
{
        char *at = map(3072 * MIB);
        (void)state;
        assert_int_equal(afz_room_untouched(at, 64 * MIB), 64 * MIB);
        memset(at, 1, 48 * MIB);
        assert_in_range(afz_room_untouched(at, 64 * MIB), 15 * MIB, 17 * MIB);
        assert_in_range(afz_room_untouched(at + 16, 64 * MIB - 4096), 15 * MIB, 17 * MIB);
        assert_in_range(afz_room_untouched(at, 3072 * MIB), 2990 * MIB, 3060 * MIB);
        assert_int_equal(afz_room_untouched(at, 48 * MIB), 0);
        assert_int_equal(afz_room_untouched(at, 0), 0);
        munmap(at, 3072 * MIB);
        assert_int_equal(afz_room_untouched(at, 64 * MIB), 0); /* it is no more */
}

static uint64_t bound(uint64_t room_bytes)
{
        look(room_bytes);
        return room_bytes - antifreeze_room();
}

/* More blocks than the list has room for: those that are all there make way. */
static void test_many_blocks(void **state)
{
        enum { BLOCKS = 1100, LISTED = 1024 };
        const uint64_t size = 16 * MIB, all = UINT64_C(1) << 50;
        char *at = map(BLOCKS * size);
        (void)state;
        for (uint64_t i = 0; i < BLOCKS; i++) {
                look(all);
                afz_room_add(at + i * size, size, size);
        }
        assert_int_equal(bound(all), LISTED * size);
        for (uint64_t i = 0; i < BLOCKS; i++)
                afz_room_gone((uint64_t)(uintptr_t)(at + i * size));
        assert_int_equal(bound(all), 0);
        for (uint64_t i = 0; i < BLOCKS; i++) {
                look(all);
                afz_room_add(at + i * size, size, i < LISTED ? 0 : size);
        }
        assert_int_equal(bound(all), (BLOCKS - LISTED) * size);
        munmap(at, BLOCKS * size);
        afz_room_forget();
        atomic_fetch_add(&world.now_ns, 10 * S); /* to a child its parent is another process */
        assert_int_equal(bound(all), 0);
}

static void test_refusals_are_counted(void **state)
{
        (void)state;
        afz_room_refused(20 * MIB);
        afz_room_refused(30 * MIB);
        assert_int_equal(book.refused, 2);
        assert_int_equal(book.refused_bytes, 50 * MIB);
        afz_book_now = NULL;
        afz_room_refused(20 * MIB);
        afz_book_now = &book;
        assert_int_equal(book.refused, 2);
}

/* What was granted to another process is waited for as long as it may take to touch it, however
 * large it is: the look that comes then knows. */
static void test_what_others_were_granted(void **state)
{
        static const struct {
                uint64_t bytes, for_ns, says_bytes;
                int granted;
        } rows[] = {
                {50 * MIB, 400 * MS, 120 * MIB, 1},
                {50 * MIB, 4600 * MS, 120 * MIB, 1}, /* as of 2 GiB */
                {50 * MIB, 4600 * MS, 90 * MIB, 0},  /* by itself it does not fit */
                {50 * MIB, 3600 * S, 120 * MIB, 0},  /* nobody is granted anything for an hour */
                {UINT64_MAX, 400 * MS, 120 * MIB, 1},
        };
        (void)state;
        world.frozen_ns = 150 * MS;
        atomic_store(&world.look_every, 8);
        for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_promise *p = promises() + 7;
                look(120 * MIB);
                atomic_store(&p->owner, 1);
                atomic_store(&p->bytes, rows[i].bytes);
                atomic_store(&p->until_ns, atomic_load(&world.now_ns) + rows[i].for_ns);
                assert_int_equal(grants_with_look(100 * MIB, rows[i].says_bytes), rows[i].granted);
                atomic_store(&p->until_ns, 0);
        }
}

static struct {
        _Atomic unsigned round, there;
} race;

static void *ask(void *rounds)
{
        for (unsigned round = 1; round <= (unsigned)(uintptr_t)rounds; round++) {
                while (atomic_load(&race.round) < round)
                        sched_yield();
                (void)grants(20 * MIB);
                atomic_fetch_add(&race.there, 1);
        }
        return NULL;
}

/* Threads that are the first to ask have one promise together: of another they would think that it
 * is another process's. */
static void test_one_promise_a_process(void **state)
{
        enum { ROUNDS = 3000, THREADS = 2 };
        pthread_t thread[THREADS];
        unsigned most = 0;
        (void)state;
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, ask, (void *)(uintptr_t)ROUNDS),
                                 0);
        for (unsigned round = 1; round <= ROUNDS; round++) {
                unsigned owned = 0;
                memset(promises(), 0, AFZ_ROOM_PROMISES * sizeof *promises());
                afz_room_forget();
                look(1000 * MIB);
                atomic_store(&race.there, 0);
                atomic_store(&race.round, round);
                while (atomic_load(&race.there) < THREADS)
                        sched_yield();
                for (unsigned i = 0; i < AFZ_ROOM_PROMISES; i++)
                        owned += atomic_load(&promises()[i].owner) != 0;
                most = owned > most ? owned : most;
        }
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(most, 1);
}

static void *allocate(void *seed)
{
        uint64_t x = (uint64_t)(uintptr_t)seed;
        for (unsigned i = 0; i < 3000; i++) {
                x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
                void *at = (void *)(uintptr_t)(x >> 20 << 12); /* nothing is there */
                if (afz_room_fits(20 * MIB))
                        afz_room_add(at, 20 * MIB, 20 * MIB);
                (void)antifreeze_room();
                if (i % 100 == 0) {
                        look(UINT64_C(1) << 40);
                        (void)afz_room_grants(UINT64_C(1) << 41, AFZ_ASK_PLAIN);
                }
                afz_room_gone((uint64_t)(uintptr_t)at);
        }
        return NULL;
}

static void test_threads(void **state)
{
        pthread_t thread[4];
        (void)state;
        world.may = 0;
        look(UINT64_C(1) << 40);
        for (uintptr_t i = 0; i < 4; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, allocate, (void *)(i + 1)), 0);
        for (unsigned i = 0; i < 4; i++)
                assert_int_equal(pthread_join(thread[i], NULL), 0);
        look(UINT64_C(1) << 40);
        assert_true(antifreeze_room() == UINT64_C(1) << 40);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_pages_that_are_none, begin),
                cmocka_unit_test_setup(test_by_what_is_known, begin),
                cmocka_unit_test_setup(test_waits_for_a_look, begin),
                cmocka_unit_test_setup(test_frozen_while_it_waits, begin),
                cmocka_unit_test_setup(test_a_new_book, begin),
                cmocka_unit_test_setup(test_a_guard_that_looks_no_more, begin),
                cmocka_unit_test_setup(test_who_is_not_told_no, begin),
                cmocka_unit_test_setup(test_what_is_not_touched_yet, begin),
                cmocka_unit_test_setup(test_a_measure_holds_for_later_looks, begin),
                cmocka_unit_test_setup(test_measured_in_passing, begin),
                cmocka_unit_test_setup(test_what_nobody_touches, begin),
                cmocka_unit_test_setup(test_what_is_touched_slowly, begin),
                cmocka_unit_test_setup(test_untouched, begin),
                cmocka_unit_test_setup(test_many_blocks, begin),
                cmocka_unit_test_setup(test_refusals_are_counted, begin),
                cmocka_unit_test_setup(test_what_others_were_granted, begin),
                cmocka_unit_test_setup(test_one_promise_a_process, begin),
                cmocka_unit_test_setup(test_threads, begin),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
