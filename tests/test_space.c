/* links: judge */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "space.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static struct afz_space_word say(struct afz_space_word last, struct afz_space_disk disk,
                                 struct afz_space_shm shm)
{
        return afz_space_judge(&last, &disk, &shm);
}

static struct afz_space_disk disk_of(uint64_t size_gib, uint64_t free_mib, uint64_t rate_mib)
{
        return (struct afz_space_disk){
                .known = true,
                .size_bytes = size_gib * GIB,
                .free_bytes = free_mib * MIB,
                .rate_bytes_per_s = rate_mib * MIB,
                .left_s = rate_mib ? free_mib / rate_mib : UINT64_MAX,
        };
}

static void disks(void **state)
{
        (void)state;
        static const struct {
                uint64_t size_gib, free_mib, rate_mib;
                enum afz_space_level level;
        } rows[] = {
                {500, 400000, 0, AFZ_SPACE_OK}, {500, 400000, 100, AFZ_SPACE_OK},
                {500, 2000, 1, AFZ_SPACE_OK}, /* half an hour, and more than 1 GiB */
                {500, 1000, 1, AFZ_SPACE_WARN}, {500, 1000, 0, AFZ_SPACE_OK}, /* not its doing */
                {500, 200, 1, AFZ_SPACE_BRAKE}, {500, 0, 1, AFZ_SPACE_BRAKE},
                {500, 0, 0, AFZ_SPACE_OK},      {4, 150, 0, AFZ_SPACE_OK},
                {4, 150, 1, AFZ_SPACE_WARN}, /* 5 % of a small one */
                {4, 30, 1, AFZ_SPACE_BRAKE}, /* 1 % of it */
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct afz_space_word w =
                        say((struct afz_space_word){0},
                            disk_of(rows[i].size_gib, rows[i].free_mib, rows[i].rate_mib),
                            (struct afz_space_shm){0});
                assert_int_equal(w.level, rows[i].level);
                assert_int_equal(w.cause, w.level ? AFZ_CAUSE_DISK : AFZ_CAUSE_NONE);
        }
}

static void a_burst_is_no_rate(void **state)
{
        (void)state;
        const struct afz_space_shm none = {0};
        struct afz_space_word w = {0};
        for (int i = 0; i < 9; i++) { /* full in ten minutes, if it went on like that */
                w = say(w, disk_of(500, 50000, 100), none);
                assert_int_equal(w.level, AFZ_SPACE_OK);
        }
        struct afz_space_word paused = say(w, disk_of(500, 50000, 0), none);
        assert_int_equal(say(paused, disk_of(500, 50000, 100), none).level, AFZ_SPACE_OK);
        w = say(w, disk_of(500, 50000, 100), none);
        assert_int_equal(w.level, AFZ_SPACE_WARN);
        assert_int_equal(w.cause, AFZ_CAUSE_DISK);
        assert_int_equal(say(w, disk_of(500, 60000, 100), none).level, AFZ_SPACE_WARN);
        assert_int_equal(say(w, disk_of(500, 50000, 0), none).level, AFZ_SPACE_OK);
}

static void lines_are_sticky(void **state)
{
        (void)state;
        const struct afz_space_shm none = {0};
        struct afz_space_word w = say((struct afz_space_word){0}, disk_of(500, 255, 1), none);
        assert_int_equal(w.level, AFZ_SPACE_BRAKE);
        w = say(w, disk_of(500, 270, 1), none); /* within a tenth of the line */
        assert_int_equal(w.level, AFZ_SPACE_BRAKE);
        w = say(w, disk_of(500, 300, 1), none);
        assert_int_equal(w.level, AFZ_SPACE_WARN);
        w = say(w, disk_of(500, 300, 0), none); /* it pauses; the disk is as full as before */
        assert_int_equal(w.level, AFZ_SPACE_WARN);
        w = say(w, disk_of(500, 2000, 0), none);
        assert_int_equal(w.level, AFZ_SPACE_OK);
}

static void shm(void **state)
{
        (void)state;
        struct afz_space_shm s = {.known = true, .size_bytes = GIB, .free_bytes = 100 * MIB};
        const struct afz_space_disk none = {0};
        const struct afz_space_word ok = {0};
        assert_int_equal(say(ok, none, s).level, AFZ_SPACE_OK); /* somebody else's */
        s.job_bytes = 800 * MIB;
        struct afz_space_word w = say(ok, none, s);
        assert_int_equal(w.level, AFZ_SPACE_WARN);
        assert_int_equal(w.cause, AFZ_CAUSE_SHM);
        s.free_bytes = 215 * MIB;
        assert_int_equal(say(w, none, s).level, AFZ_SPACE_WARN);
        assert_int_equal(say(ok, none, s).level, AFZ_SPACE_OK);
        s.free_bytes = 2 * GIB; /* nonsense */
        assert_int_equal(say(ok, none, s).level, AFZ_SPACE_OK);
        /* The disk is worse. */
        s.free_bytes = 0;
        assert_int_equal(say(ok, disk_of(500, 10, 1), s).cause, AFZ_CAUSE_DISK);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(disks),
                cmocka_unit_test(a_burst_is_no_rate),
                cmocka_unit_test(lines_are_sticky),
                cmocka_unit_test(shm),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
