/* A loader whose batches another process may map. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loader_fixture.h"
#include <sys/mman.h>

enum { SAMPLES = 20011, WIDTH = 16 }; /* of 128 bytes: 2.5 MB */

static int64_t ids[SAMPLES + 64];

static int make(void **state)
{
        fixture_make(state);
        write_rows(fixture_path, SAMPLES, WIDTH);
        return 0;
}

static uint64_t bytes_taken(int fd)
{
        struct stat file;
        assert_int_equal(fstat(fd, &file), 0);
        return (uint64_t)file.st_blocks * 512;
}

static void test_batches_are_in_the_file(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_shared shared;
        struct afz_batch batch;
        uint64_t lease[AFZ_LEASES_MAX + 1];
        char why[AFZ_WHY_MAX];
        (void)state;
        options.is_shared = 1;
        struct afz_loader *loader = open_ok(&options);
        assert_int_equal(afz_loader_shared(loader, &shared), 0);
        assert_true(bytes_taken(shared.fd) <= options.budget_bytes); /* and all of it is there */
        assert_true(bytes_taken(shared.fd) >= shared.bytes);
        const uint8_t *theirs = mmap(NULL, shared.bytes, PROT_READ, MAP_SHARED, shared.fd, 0);
        assert_ptr_not_equal(theirs, MAP_FAILED);
        for (uint32_t i = 0; i <= shared.leases;
             i++) { /* none is given back, until one is a copy */
                assert_int_equal(afz_loader_next(loader, &batch, why), 1);
                assert_int_equal(batch.is_copy, i == shared.leases);
                lease[i] = batch.lease;
                if (!batch.is_copy) {
                        uint64_t at = (uint64_t)((uint8_t *)batch.data[0] - (uint8_t *)shared.at);
                        assert_in_range(at, 0, shared.bytes - batch.count * WIDTH * 8);
                        assert_memory_equal(theirs + at, batch.data[0], batch.count * WIDTH * 8);
                }
        }
        munmap((void *)theirs, shared.bytes);
        for (uint32_t i = 0; i <= shared.leases; i++)
                afz_loader_release(loader, lease[i]);
        afz_loader_close(loader);
}

static void test_less_goes_back(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_loader_facts facts;
        struct afz_shared shared;
        (void)state;
        options.is_shared = 1;
        struct afz_loader *loader = open_ok(&options);
        afz_loader_facts(loader, &facts);
        assert_int_equal(afz_loader_ask(loader, facts.floor_bytes), 0);
        assert_all_once(ids, take_epoch(loader, WIDTH, ids), SAMPLES);
        assert_all_once(ids, take_epoch(loader, WIDTH, ids), SAMPLES);
        assert_int_equal(afz_loader_shared(loader, &shared), 0);
        assert_true(bytes_taken(shared.fd) < options.budget_bytes / 2);
        afz_loader_close(loader);
}

static void test_nobody_cuts_it_off(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_shared shared;
        (void)state;
        options.is_shared = 1;
        struct afz_loader *loader = open_ok(&options);
        assert_int_equal(afz_loader_shared(loader, &shared), 0);
        assert_int_equal(ftruncate(shared.fd, 4096), -1);
        assert_int_equal(errno, EPERM);
        afz_loader_close(loader);
        assert_int_equal(fcntl(shared.fd, F_GETFD), -1); /* it was the loader's */
}

static void test_not_shared(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_loader *loader = open_ok(&options);
        struct afz_shared shared;
        (void)state;
        assert_int_equal(afz_loader_shared(loader, &shared), -EINVAL);
        afz_loader_close(loader);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_batches_are_in_the_file),
                cmocka_unit_test(test_less_goes_back),
                cmocka_unit_test(test_nobody_cuts_it_off),
                cmocka_unit_test(test_not_shared),
        };
        return cmocka_run_group_tests(tests, make, fixture_remove);
}
