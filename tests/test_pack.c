/* What one process saw, packed and read back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pack_fixture.h"

static struct afz_flight unpacked(const struct afz_pack *pack)
{
        struct afz_flight f;
        afz_flight_init(&f);
        assert_int_equal(afz_unpack(pack->buf, pack->len, NULL, &f), 0);
        return f;
}

static int64_t value_at(const struct afz_flight *f, enum afz_kind kind, uint64_t id,
                        enum afz_metric metric, size_t i, uint32_t *t_ms)
{
        const struct afz_column *c = afz_track_column(afz_flight_find(f, kind, id), metric);
        assert_non_null(c);
        assert_true(i < c->count);
        assert_int_equal(c->point[i].span_ms, 0);
        assert_true(c->point[i].least == c->point[i].most && c->point[i].most == c->point[i].mean);
        *t_ms = c->point[i].t_ms;
        return c->point[i].mean;
}

static void test_there_and_back(void **state)
{
        (void)state;
        struct afz_pack pack;
        uint32_t t;
        pack_make(&pack, 4096);
        afz_pack_start(&pack, START_NS, at_ms(1000));
        struct afz_sample proc = sample_of(AFZ_KIND_PROC, 4711);
        proc.subject.start = 99;
        proc.name = "python3";
        proc.detail = "python3 train.py --batch 64";
        proc.note = "main";
        for (int i = 0; i < 5; i++) {
                afz_sample_set(&proc, AFZ_PROC_RSS, (INT64_C(1) << 30) + i * 4096);
                afz_sample_set(&proc, AFZ_PROC_READ_CALLS, 12345 + i * 7);
                afz_sample_set(&proc, AFZ_PROC_THREADS, 3);
                assert_int_equal(afz_pack_sample(&pack, at_ms(1000 + (unsigned)i * 100), &proc), 0);
        }
        assert_int_equal(pack.dropped, 0);
        struct afz_flight f = unpacked(&pack);
        const struct afz_track *track = afz_flight_find(&f, AFZ_KIND_PROC, 4711);
        assert_non_null(track);
        assert_int_equal(track->subject.start, 99);
        assert_string_equal(track->name, "python3");
        assert_string_equal(track->detail, "python3 train.py --batch 64");
        assert_string_equal(track->note, "main");
        assert_int_equal(track->first_ms, 1000);
        assert_int_equal(track->last_ms, 1400);
        assert_int_equal(track->columns, 3);
        for (unsigned i = 0; i < 5; i++) {
                assert_int_equal(value_at(&f, AFZ_KIND_PROC, 4711, AFZ_PROC_RSS, i, &t),
                                 (INT64_C(1) << 30) + i * 4096);
                assert_int_equal(t, 1000 + i * 100);
                assert_int_equal(value_at(&f, AFZ_KIND_PROC, 4711, AFZ_PROC_READ_CALLS, i, &t),
                                 12345 + i * 7);
                /* What did not change is told, too: it was seen. */
                assert_int_equal(value_at(&f, AFZ_KIND_PROC, 4711, AFZ_PROC_THREADS, i, &t), 3);
        }
        assert_int_equal(f.end_ms, 1400);
        afz_flight_done(&f);
        pack_done(&pack);
}

static void test_absent_is_not_zero(void **state)
{
        (void)state;
        struct afz_pack pack;
        uint32_t t;
        pack_make(&pack, 4096);
        afz_pack_start(&pack, START_NS, at_ms(0));
        struct afz_sample host = sample_of(AFZ_KIND_HOST, 0);
        for (unsigned i = 0; i < 6; i++) {
                afz_sample_set(&host, AFZ_HOST_MEM_FREE, 0);
                if (i % 2)
                        afz_sample_forget(&host, AFZ_HOST_LIMIT);
                else
                        afz_sample_set(&host, AFZ_HOST_LIMIT, 1 << 20);
                assert_int_equal(afz_pack_sample(&pack, at_ms(i * 10), &host), 0);
        }
        struct afz_flight f = unpacked(&pack);
        assert_int_equal(value_at(&f, AFZ_KIND_HOST, 0, AFZ_HOST_MEM_FREE, 5, &t), 0);
        assert_int_equal(t, 50);
        const struct afz_column *limit =
                afz_track_column(afz_flight_one(&f, AFZ_KIND_HOST), AFZ_HOST_LIMIT);
        assert_int_equal(limit->count, 3);
        assert_int_equal(value_at(&f, AFZ_KIND_HOST, 0, AFZ_HOST_LIMIT, 2, &t), 1 << 20);
        assert_int_equal(t, 40);
        assert_null(afz_track_column(afz_flight_one(&f, AFZ_KIND_HOST), AFZ_HOST_ZSWAP));
        afz_flight_done(&f);
        pack_done(&pack);
}

/* Values at the edges of their type, in jumps that do not fit it. */
static void test_extremes(void **state)
{
        (void)state;
        static const int64_t value[] = {
                0,
                INT64_MAX,
                INT64_MIN,
                -1,
                INT64_MIN,
                INT64_MAX,
                0,
                4096,
                -4096,
                1,
                4095,
                4097,
                -1,
                1 << 30,
                63 * 4096,
                64 * 4096,
                31 * 4096,
                32 * 4096,
                31,
                32,
                -32,
                -33,
                10000000,
                10000001,
                -10000000,
                1000000000,
                INT64_MAX - 1,
                8,
                1000,
                -1000,
                1001,
                250,
                8191,
                INT64_C(1) << 62,
                -(INT64_C(1) << 62),
        };
        static const struct {
                enum afz_kind kind;
                enum afz_metric metric;
        } row[] = {
                {AFZ_KIND_JOB, AFZ_JOB_NEED},      {AFZ_KIND_JOB, AFZ_JOB_CPU},
                {AFZ_KIND_JOB, AFZ_JOB_PROCESSES}, {AFZ_KIND_THERMAL, AFZ_THERMAL_TEMP},
                {AFZ_KIND_GPU, AFZ_GPU_CLOCK},
        };
        for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
                struct afz_pack pack;
                uint32_t t;
                pack_make(&pack, 4096);
                afz_pack_start(&pack, START_NS, at_ms(0));
                struct afz_sample s = sample_of(row[r].kind, UINT64_MAX);
                for (size_t i = 0; i < sizeof value / sizeof value[0]; i++) {
                        afz_sample_set(&s, row[r].metric, value[i]);
                        assert_int_equal(afz_pack_sample(&pack, at_ms(i), &s), 0);
                }
                struct afz_flight f = unpacked(&pack);
                for (size_t i = 0; i < sizeof value / sizeof value[0]; i++)
                        assert_true(value_at(&f, row[r].kind, UINT64_MAX, row[r].metric, i, &t) ==
                                    value[i]);
                afz_flight_done(&f);
                pack_done(&pack);
        }
}

static void test_times(void **state)
{
        (void)state;
        struct afz_pack pack;
        uint32_t t;
        pack_make(&pack, 4096);
        /* Earlier than the start, out of order, and beyond what milliseconds can tell. */
        afz_pack_start(&pack, START_NS, at_ms(500));
        struct afz_sample job = sample_of(AFZ_KIND_JOB, 0);
        afz_sample_set(&job, AFZ_JOB_NEED, 1);
        assert_int_equal(afz_pack_sample(&pack, at_ms(700), &job), 0);
        afz_sample_set(&job, AFZ_JOB_NEED, 2);
        assert_int_equal(afz_pack_sample(&pack, at_ms(600), &job), 0);
        afz_sample_set(&job, AFZ_JOB_NEED, 3);
        assert_int_equal(afz_pack_sample(&pack, START_NS - MS, &job), 0);
        afz_sample_set(&job, AFZ_JOB_NEED, 4);
        assert_int_equal(afz_pack_sample(&pack, UINT64_MAX, &job), 0);
        struct afz_flight f = unpacked(&pack);
        static const struct {
                uint32_t t_ms;
                int64_t value;
        } want[] = {{0, 3}, {600, 2}, {700, 1}, {UINT32_MAX, 4}};
        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(value_at(&f, AFZ_KIND_JOB, 0, AFZ_JOB_NEED, i, &t), want[i].value);
                assert_int_equal(t, want[i].t_ms);
        }
        afz_flight_done(&f);
        pack_done(&pack);
}

static void test_what_is_kept(void **state)
{
        (void)state;
        struct afz_pack pack;
        pack_make(&pack, 4096);
        afz_pack_start(&pack, START_NS, at_ms(0));
        size_t empty = pack.len;

        struct afz_sample s = sample_of(AFZ_KIND_CPU, 0);
        afz_sample_set(&s, AFZ_CPU_USER, 1);
        assert_int_equal(afz_pack_sample(&pack, at_ms(0), &s), 0);
        assert_int_equal(pack.len, empty);
        s.subject.id = AFZ_CPU_ALL;
        assert_int_equal(afz_pack_sample(&pack, at_ms(0), &s), 0);

        s = sample_of(AFZ_KIND_CGROUP, 1);
        afz_sample_set(&s, AFZ_CGROUP_LEVEL, 2);
        afz_sample_set(&s, AFZ_CGROUP_CURRENT, 7);
        assert_int_equal(afz_pack_sample(&pack, at_ms(0), &s), 0);
        s.subject.id = 2;
        afz_sample_set(&s, AFZ_CGROUP_MAX, 7);
        assert_int_equal(afz_pack_sample(&pack, at_ms(0), &s), 0);
        s = sample_of(AFZ_KIND_CGROUP, 3);
        afz_sample_set(&s, AFZ_CGROUP_LEVEL, 0);
        assert_int_equal(afz_pack_sample(&pack, at_ms(0), &s), 0);

        s = sample_of(AFZ_KIND_DISK, 1);
        afz_sample_set(&s, AFZ_DISK_JOB_USES, 0);
        assert_int_equal(afz_pack_sample(&pack, at_ms(0), &s), 0);
        s = sample_of(AFZ_KIND_PROC, 1);
        afz_sample_set(&s, AFZ_PROC_PSS_AGE, 5);
        assert_int_equal(afz_pack_sample(&pack, at_ms(0), &s), 0);
        s = sample_of(AFZ_KIND_NONE, 1);
        s.present = 1;
        assert_int_equal(afz_pack_sample(&pack, at_ms(0), &s), 0);
        s = sample_of(AFZ_KIND_VM, 0);
        s.present = UINT64_MAX; /* bits that mean nothing */
        assert_int_equal(afz_pack_sample(&pack, at_ms(0), &s), 0);

        struct afz_flight f = unpacked(&pack);
        assert_int_equal(f.tracks, 4);
        assert_non_null(afz_flight_find(&f, AFZ_KIND_CPU, AFZ_CPU_ALL));
        assert_null(afz_flight_find(&f, AFZ_KIND_CGROUP, 1));
        assert_non_null(afz_flight_find(&f, AFZ_KIND_CGROUP, 2));
        assert_non_null(afz_flight_find(&f, AFZ_KIND_CGROUP, 3));
        assert_int_equal(afz_flight_one(&f, AFZ_KIND_VM)->columns,
                         afz_kind_table[AFZ_KIND_VM].metrics);
        for (int k = 1; k < AFZ_KIND_COUNT; k++)
                assert_true(afz_pack_kept((enum afz_kind)k) != 0);
        afz_flight_done(&f);
        pack_done(&pack);
}

static void test_texts_are_safe(void **state)
{
        (void)state;
        struct afz_pack pack;
        char longest[5000], cut[AFZ_PACK_NAME_CAP + 8];
        pack_make(&pack, 1 << 16);
        memset(longest, 'x', sizeof longest - 1);
        longest[sizeof longest - 1] = '\0';
        /* A character of three bytes lies across the end. */
        memset(cut, 'y', sizeof cut);
        memcpy(cut + AFZ_PACK_NAME_CAP - 3, "\xe2\x82\xac", 4);
        afz_pack_start(&pack, START_NS, at_ms(0));
        struct afz_sample s = sample_of(AFZ_KIND_PROC, 1);
        s.name = "a\x1b[2Jb\nc";
        s.detail = longest;
        s.note = NULL;
        afz_sample_set(&s, AFZ_PROC_RSS, 1);
        assert_int_equal(afz_pack_sample(&pack, at_ms(0), &s), 0);
        s.subject.id = 2;
        s.name = cut;
        s.detail = NULL;
        assert_int_equal(afz_pack_sample(&pack, at_ms(0), &s), 0);
        assert_int_equal(afz_pack_mark(&pack, at_ms(1), AFZ_MARK_SAID, 0, longest), 0);
        assert_int_equal(afz_pack_mark(&pack, at_ms(2), AFZ_MARK_STACK, 5,
                                       "a\x07"
                                       "b\nc\r\n"),
                         0);
        assert_int_equal(afz_pack_mark(&pack, at_ms(3), AFZ_MARK_UNUSED, -5, NULL), 0);
        assert_int_equal(afz_pack_mark(&pack, at_ms(4), AFZ_MARK_SAID, 0, "a\nb"), 0);
        struct afz_flight f = unpacked(&pack);
        const struct afz_track *t = afz_flight_find(&f, AFZ_KIND_PROC, 1);
        assert_string_equal(t->name, "a?[2Jb?c");
        assert_int_equal(strlen(t->detail), AFZ_PACK_DETAIL_CAP - 1);
        assert_string_equal(t->note, "");
        t = afz_flight_find(&f, AFZ_KIND_PROC, 2);
        assert_int_equal(strlen(t->name), AFZ_PACK_NAME_CAP - 3);
        assert_int_equal(t->name[AFZ_PACK_NAME_CAP - 4], 'y');
        assert_int_equal(f.marks, 4);
        assert_int_equal(strlen(f.mark[0].text), AFZ_PACK_MARK_CAP - 1);
        assert_string_equal(f.mark[1].text, "a?b\nc?\n"); /* a stack is lines */
        assert_string_equal(f.mark[2].text, "");
        assert_int_equal(f.mark[2].code, -5);
        assert_int_equal(f.mark[2].kind, AFZ_MARK_UNUSED);
        assert_string_equal(f.mark[3].text, "a?b");
        afz_flight_done(&f);
        pack_done(&pack);
}

/* Whatever the room, what is in can be read, and what is not was counted. */
static void test_no_room(void **state)
{
        (void)state;
        for (size_t cap = 0; cap < 300; cap++) {
                struct afz_pack pack;
                uint32_t in = 0, out = 0;
                pack_make(&pack, cap ? cap : 1);
                pack.cap = cap;
                afz_pack_start(&pack, START_NS, at_ms(0));
                for (unsigned i = 0; i < 40; i++) {
                        struct afz_sample s = sample_of(AFZ_KIND_PROC, i % 8);
                        afz_sample_set(&s, AFZ_PROC_RSS, i * 4099);
                        int r = i % 5 ? afz_pack_sample(&pack, at_ms(i), &s)
                                      : afz_pack_mark(&pack, at_ms(i), AFZ_MARK_UNUSED, i, "step");
                        assert_true(r == 0 || r == -ENOSPC);
                        in += r == 0;
                        out += r != 0;
                        assert_true(pack.len <= cap);
                }
                assert_int_equal(pack.dropped, out);
                if (pack.len > 0) {
                        struct afz_flight f = unpacked(&pack);
                        size_t points = 0;
                        for (size_t i = 0; i < f.tracks; i++)
                                points += f.track[i].column[0].count;
                        assert_int_equal(points + f.marks, in);
                        afz_flight_done(&f);
                }
                pack_done(&pack);
        }
}

static void test_many_subjects(void **state)
{
        (void)state;
        struct afz_pack pack;
        pack_make(&pack, 1 << 18);
        afz_pack_start(&pack, START_NS, at_ms(0));
        for (unsigned round = 0; round < 3; round++)
                for (unsigned i = 0; i < AFZ_PACK_SUBJECTS + 5; i++) {
                        struct afz_sample s = sample_of(AFZ_KIND_PROC, i);
                        afz_sample_set(&s, AFZ_PROC_RSS, i + round);
                        assert_int_equal(afz_pack_sample(&pack, at_ms(round), &s),
                                         i < AFZ_PACK_SUBJECTS ? 0 : -ENOSPC);
                }
        assert_int_equal(pack.dropped, 15);
        struct afz_flight f = unpacked(&pack);
        assert_int_equal(f.tracks, AFZ_PACK_SUBJECTS);
        for (size_t i = 0; i < f.tracks; i++)
                assert_int_equal(f.track[i].column[0].count, 3);
        afz_flight_done(&f);
        /* It can be begun again. */
        afz_pack_start(&pack, START_NS, at_ms(9));
        assert_int_equal(pack.dropped, 0);
        f = unpacked(&pack);
        assert_int_equal(f.tracks, 0);
        afz_flight_done(&f);
        pack_done(&pack);
}

static size_t fill(struct afz_pack *pack, size_t *lens)
{
        uint64_t seed = 88172645463325252;
        size_t n = 0;
        afz_pack_start(pack, START_NS, at_ms(0));
        lens[n++] = pack->len;
        for (unsigned i = 0; i < 60; i++) {
                struct afz_sample s = sample_of(i % 3 ? AFZ_KIND_PROC : AFZ_KIND_HOST, i % 3);
                for (unsigned m = 0; m < 12; m++) {
                        s.value[m] = (int64_t)pack_random(&seed) >> (pack_random(&seed) % 60);
                        s.present |= (pack_random(&seed) & 1) << m;
                }
                s.present |= 2;
                if (i % 7 == 6)
                        afz_pack_mark(pack, at_ms(i), AFZ_MARK_SAID, i, "warn");
                else
                        afz_pack_sample(pack, at_ms(i), &s);
                lens[n++] = pack->len;
        }
        return n;
}

/* Cut off at each byte: whole records are read, a half one is not, and is said. */
static void test_cut_anywhere(void **state)
{
        (void)state;
        struct afz_pack pack;
        size_t lens[80];
        pack_make(&pack, 1 << 15);
        size_t n = fill(&pack, lens);
        for (size_t len = 0; len <= pack.len; len++) {
                bool whole = false;
                for (size_t i = 0; i < n; i++)
                        whole = whole || lens[i] == len;
                unsigned char *copy = malloc(len ? len : 1); /* so that a sanitizer sees the end */
                memcpy(copy, pack.buf, len);
                struct afz_flight f;
                afz_flight_init(&f);
                assert_int_equal(afz_unpack(copy, len, NULL, &f), whole ? 0 : -EBADMSG);
                afz_flight_done(&f);
                free(copy);
        }
        pack_done(&pack);
}

/* Each byte turned into others: anything but a crash, and what is in the flight is in order. */
static void test_garbled(void **state)
{
        (void)state;
        struct afz_pack pack;
        size_t lens[80];
        uint64_t seed = 12345;
        pack_make(&pack, 1 << 15);
        fill(&pack, lens);
        for (size_t i = 0; i < pack.len; i++) {
                unsigned char was = pack.buf[i];
                pack.buf[i] = (unsigned char)(was ^ (1 + pack_random(&seed) % 255));
                struct afz_flight f;
                afz_flight_init(&f);
                int r = afz_unpack(pack.buf, pack.len, NULL, &f);
                assert_true(r == 0 || r == -EBADMSG);
                for (size_t t = 0; t < f.tracks; t++)
                        for (size_t c = 0; c < f.track[t].columns; c++)
                                for (size_t p = 1; p < f.track[t].column[c].count; p++)
                                        assert_true(f.track[t].column[c].point[p - 1].t_ms <=
                                                    f.track[t].column[c].point[p].t_ms);
                afz_flight_done(&f);
                pack.buf[i] = was;
        }
        pack_done(&pack);
}

static bool only_need(enum afz_metric metric)
{
        return metric == AFZ_JOB_NEED;
}

static void test_wanted(void **state)
{
        (void)state;
        struct afz_pack pack;
        pack_make(&pack, 4096);
        afz_pack_start(&pack, START_NS, at_ms(0));
        struct afz_sample job = sample_of(AFZ_KIND_JOB, 0), host = sample_of(AFZ_KIND_HOST, 0);
        afz_sample_set(&job, AFZ_JOB_NEED, 1);
        afz_sample_set(&job, AFZ_JOB_RSS, 2);
        afz_sample_set(&host, AFZ_HOST_DIRTY, 3);
        afz_pack_sample(&pack, at_ms(5), &job);
        afz_pack_sample(&pack, at_ms(6), &host);
        struct afz_flight f;
        afz_flight_init(&f);
        assert_int_equal(afz_unpack(pack.buf, pack.len, only_need, &f), 0);
        assert_int_equal(afz_flight_one(&f, AFZ_KIND_JOB)->columns, 1);
        /* It was there, though nothing of it is wanted. */
        assert_int_equal(afz_flight_one(&f, AFZ_KIND_HOST)->columns, 0);
        assert_int_equal(afz_flight_one(&f, AFZ_KIND_HOST)->last_ms, 6);
        afz_flight_done(&f);
        pack_done(&pack);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_absent_is_not_zero),
                cmocka_unit_test(test_extremes),       cmocka_unit_test(test_times),
                cmocka_unit_test(test_what_is_kept),   cmocka_unit_test(test_texts_are_safe),
                cmocka_unit_test(test_no_room),        cmocka_unit_test(test_many_subjects),
                cmocka_unit_test(test_cut_anywhere),   cmocka_unit_test(test_garbled),
                cmocka_unit_test(test_wanted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
