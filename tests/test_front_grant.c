/* What a batch system has granted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "count_of.h"
#include "front_grant.h"

static void test_grant(void **state)
{
        static const struct {
                const char *node, *cpu, *cpus;
                uint64_t mib;
        } rows[] = {
                {"1024", NULL, "2", 1024},
                {NULL, "512", "4", 2048},
                {NULL, "512", NULL, 0},
                {"0", NULL, "2", 0}, /* --mem=0: all of the node */
                {"much", NULL, NULL, 0},
                {"12x", NULL, NULL, 0},
                {"18446744073709551615", NULL, NULL, 0},
                {NULL, NULL, NULL, 0},
        };
        static const char *const names[] = {"SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU",
                                            "SLURM_CPUS_ON_NODE"};
        (void)state;
        (void)setenv("SLURMD_NODENAME", "node1", 1);
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++) {
                const char *const values[] = {rows[i].node, rows[i].cpu, rows[i].cpus};
                for (size_t k = 0; k < AFZ_COUNT_OF(names); k++)
                        (void)(values[k] ? setenv(names[k], values[k], 1) : unsetenv(names[k]));
                uint64_t want = rows[i].mib ? rows[i].mib << 20 : UINT64_MAX;
                if (afz_grant_bytes(getenv) != want)
                        fail_msg("row %zu: %llu", i, (unsigned long long)afz_grant_bytes(getenv));
        }
}

/* The shell that salloc starts is on the node where it was called. */
static void test_elsewhere(void **state)
{
        (void)state;
        (void)setenv("SLURM_MEM_PER_NODE", "1024", 1);
        (void)unsetenv("SLURMD_NODENAME");
        assert_true(afz_grant_bytes(getenv) == UINT64_MAX);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_grant),
                                           cmocka_unit_test(test_elsewhere)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
