/* Thinning by age: what is kept of what was recorded, and what when it goes wrong. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "flight_file.h"
#include "flight_marks.h"
#include "flight_sink.h"
#include "flight_stream.h"
#include "flight_writer.h"
#include "pack_fixture.h"

#define MINUTE_MS UINT32_C(60000)
#define HOUR_MS   (60 * MINUTE_MS)

static char folder[64];
static int dir_fd;
static struct afz_pack pack;

static int setup(void **state)
{
        (void)state;
        snprintf(folder, sizeof folder, "/tmp/afz-flight-XXXXXX");
        if (!mkdtemp(folder))
                return -1;
        dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        pack_make(&pack, 1 << 16);
        return dir_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
        (void)state;
        pack_done(&pack);
        unlinkat(dir_fd, AFZ_FLIGHT_NAME, 0);
        close(dir_fd);
        return rmdir(folder); /* and nothing else was left there */
}

static struct afz_flight_writer *create(void)
{
        static char none[] = "";
        struct afz_flight_head head = {.run = "r", .cmd = none, .cwd = none, .git = none};
        struct afz_flight_writer *w;
        assert_int_equal(afz_flight_create(dir_fd, &head, START_NS, &w), 0);
        w->worth_bytes = 1 << 14;
        return w;
}

static struct afz_flight read_all(void)
{
        struct afz_flight f;
        char why[256] = "";
        if (afz_flight_read(dir_fd, NULL, &f, why) != 0)
                fail_msg("%s", why);
        return f;
}

/* ---- a job whose every reading is known ---- */

static int64_t need_at(uint32_t t_ms)
{
        uint64_t h = (t_ms + 1) * UINT64_C(0x9e3779b97f4a7c15);
        return ((int64_t)(t_ms / 1000) + (int64_t)(h >> 56)) * 4096;
}

static int64_t cpu_at(uint32_t t_ms)
{
        return (int64_t)t_ms * 1000003;
}

static char state_at(uint32_t t_ms)
{
        return "RSDZ"[(t_ms / 300) % 4];
}

static int64_t parent_at(uint32_t t_ms)
{
        return t_ms < 700000 ? 4000000 : 1;
}

static int write_half_second(struct afz_flight_writer *w, uint32_t from_ms, uint32_t step_ms,
                             uint32_t to_ms)
{
        afz_pack_start(&pack, START_NS, at_ms(from_ms));
        for (uint32_t t = from_ms; t < to_ms; t += step_ms) {
                struct afz_sample job = sample_of(AFZ_KIND_JOB, 0);
                struct afz_sample proc = sample_of(AFZ_KIND_PROC, 7);
                afz_sample_set(&job, AFZ_JOB_NEED, need_at(t));
                afz_sample_set(&job, AFZ_JOB_CPU, cpu_at(t));
                afz_sample_set(&proc, AFZ_PROC_STATE, state_at(t));
                afz_sample_set(&proc, AFZ_PROC_PPID, parent_at(t));
                proc.detail = "python3 train.py";
                assert_int_equal(afz_pack_sample(&pack, at_ms(t), &job), 0);
                assert_int_equal(afz_pack_sample(&pack, at_ms(t), &proc), 0);
                if (t % MINUTE_MS == 0)
                        afz_pack_mark(&pack, at_ms(t), AFZ_MARK_SAID, t, "a minute");
        }
        return afz_flight_write(w, pack.buf, pack.len);
}

/* Ten times a second, thinned as the writer would. Returns how often. */
static unsigned fly(struct afz_flight_writer *w, uint32_t from_ms, uint32_t to_ms)
{
        unsigned thinned = 0;
        for (uint32_t t = from_ms; t < to_ms; t += 500) {
                assert_int_equal(write_half_second(w, t, 100, t + 500), 0);
                int r = t % MINUTE_MS == 0 ? afz_flight_thin(w, at_ms(t)) : 0;
                assert_true(r >= 0);
                thinned += r > 0;
        }
        return thinned;
}

static int64_t away(int64_t a, int64_t b)
{
        return a < b ? b - a : a - b;
}

/* Against the readings themselves. A mean is told in 15ths of the width, and of those of ten
 * seconds the means were told before. */
static void check_need(const struct afz_point *p)
{
        int64_t least = need_at(p->t_ms), most = least, sum = 0, n = 0;
        for (uint32_t t = p->t_ms; t == p->t_ms || t < p->t_ms + p->span_ms; t += 100) {
                int64_t v = need_at(t);
                least = v < least ? v : least;
                most = v > most ? v : most;
                sum += v;
                n++;
        }
        assert_int_equal(p->least, least);
        assert_int_equal(p->most, most);
        assert_true(away(p->mean, sum / n) <= (most - least) / 15 + 1);
}

static void check_column(const struct afz_column *c, uint32_t end_ms)
{
        uint32_t next = 0;
        for (size_t i = 0; i < c->count; i++) {
                const struct afz_point *p = &c->point[i];
                assert_int_equal(p->t_ms, next); /* no gap, and nothing twice */
                next += p->span_ms ? p->span_ms : 100;
                uint32_t last = p->span_ms ? next - 100 : p->t_ms;
                if (c->metric == AFZ_JOB_NEED)
                        check_need(p);
                else if (c->metric == AFZ_JOB_CPU)
                        assert_true(p->mean == cpu_at(last) && p->least == p->mean);
                else if (c->metric == AFZ_PROC_STATE)
                        assert_int_equal(p->mean, state_at(last));
                else if (c->metric == AFZ_PROC_PPID)
                        assert_int_equal(p->mean, parent_at(last));
        }
        assert_int_equal(next, end_ms);
}

/* What spans the points of an age have. */
static void check_ages(const struct afz_column *c, uint32_t end_ms)
{
        for (size_t i = 0; i < c->count; i++) {
                uint32_t age = end_ms - c->point[i].t_ms, span = c->point[i].span_ms;
                if (age <= 5 * MINUTE_MS)
                        assert_int_equal(span, 0);
                else if (age <= HOUR_MS)
                        assert_true(span <= 1000);
                else if (age <= 24 * HOUR_MS)
                        assert_true(span <= 10000);
                if (age > 15 * MINUTE_MS)
                        assert_true(span >= 1000);
                if (age > 100 * MINUTE_MS)
                        assert_true(span >= 10000);
        }
}

static void check_all(const struct afz_flight *f, uint32_t end_ms)
{
        size_t columns = 0;
        assert_int_equal(f->tracks, 2);
        assert_int_equal(f->holes, 0);
        for (size_t i = 0; i < f->tracks; i++) {
                assert_int_equal(f->track[i].first_ms, 0);
                for (size_t c = 0; c < f->track[i].columns; c++, columns++) {
                        check_column(&f->track[i].column[c], end_ms);
                        check_ages(&f->track[i].column[c], end_ms);
                }
        }
        assert_int_equal(columns, 4);
        assert_string_equal(afz_flight_one(f, AFZ_KIND_PROC)->detail, "python3 train.py");
        assert_int_equal(f->marks, (end_ms + MINUTE_MS - 1) / MINUTE_MS);
        for (size_t i = 0; i < f->marks; i++) {
                assert_int_equal(f->mark[i].t_ms, i * MINUTE_MS);
                assert_string_equal(f->mark[i].text, "a minute");
        }
}

static void test_three_hours(void **state)
{
        (void)state;
        const uint32_t end_ms = 3 * HOUR_MS;
        struct afz_flight_writer *w = create();
        assert_true(fly(w, 0, end_ms) > 10);
        struct afz_flight f = read_all();
        assert_false(f.ended);
        check_all(&f, end_ms);
        afz_flight_done(&f);
        assert_int_equal(afz_flight_close(w), 0);
        f = read_all();
        assert_true(f.ended);
        check_all(&f, end_ms);
        afz_flight_done(&f);
}

/* More than a day, one reading in ten seconds; nothing is asked for until the end. */
static void test_days(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        const uint32_t end_ms = 40 * HOUR_MS;
        uint32_t longest = 0;
        for (uint32_t t = 0; t < end_ms; t += 200000) {
                assert_int_equal(write_half_second(w, t, 10000, t + 200000), 0);
                if (t % (20 * MINUTE_MS) == 0)
                        assert_true(afz_flight_thin(w, at_ms(t)) >= 0);
        }
        struct afz_flight f = read_all();
        const struct afz_column *need = afz_flight_need(&f);
        assert_int_equal(f.holes, 0);
        for (size_t i = 0; i < need->count; i++) {
                uint32_t age = end_ms - need->point[i].t_ms, span = need->point[i].span_ms;
                assert_true(age < 24 * HOUR_MS ? span <= 10000 : span <= 60000);
                longest = span > longest ? span : longest;
                assert_true(i == 0 || need->point[i].t_ms > need->point[i - 1].t_ms);
        }
        assert_int_equal(longest, 60000);
        assert_true(need->count <= end_ms / 10000 * 3 / 4);
        afz_flight_done(&f);
        assert_int_equal(afz_flight_close(w), 0);
}

/* A writer that could not thin for hours does it in one go, within bounds. */
static void test_late(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        const uint32_t end_ms = 2 * HOUR_MS;
        for (uint32_t t = 0; t < end_ms; t += 500)
                assert_int_equal(write_half_second(w, t, 100, t + 500), 0);
        for (int i = 0; i < 4; i++)
                assert_true(afz_flight_thin(w, at_ms(end_ms)) >= 0);
        struct afz_flight f = read_all();
        const struct afz_column *need = afz_flight_need(&f);
        assert_int_equal(f.marks, 120);
        assert_int_equal(need->point[0].t_ms, 0);
        assert_int_equal(need->point[need->count - 1].t_ms, end_ms - 100);
        afz_flight_done(&f);
        assert_int_equal(afz_flight_close(w), 0);
}

static void test_not_worth_it(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        struct stat before, after;
        w->worth_bytes = 1 << 20;
        assert_int_equal(afz_flight_thin(w, at_ms(HOUR_MS)), 0);
        for (uint32_t t = 0; t < 2 * MINUTE_MS; t += 500)
                assert_int_equal(write_half_second(w, t, 100, t + 500), 0);
        assert_int_equal(fstatat(dir_fd, AFZ_FLIGHT_NAME, &before, 0), 0);
        assert_int_equal(afz_flight_thin(w, at_ms(HOUR_MS)), 0);
        assert_int_equal(afz_flight_thin(w, 0), 0);
        assert_int_equal(fstatat(dir_fd, AFZ_FLIGHT_NAME, &after, 0), 0);
        assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
        assert_int_equal(afz_flight_close(w), 0);
}

/* Who has the old file open reads it to its end. */
static void test_readers_keep_theirs(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        struct stat before, after;
        struct afz_flight f;
        for (uint32_t t = 0; t < 10 * MINUTE_MS; t += 500)
                assert_int_equal(write_half_second(w, t, 100, t + 500), 0);
        int fd = openat(dir_fd, AFZ_FLIGHT_NAME, O_RDONLY | O_CLOEXEC);
        assert_int_equal(fstat(fd, &before), 0);
        assert_int_equal(afz_flight_thin(w, at_ms(10 * MINUTE_MS)), 1);
        assert_int_equal(fstatat(dir_fd, AFZ_FLIGHT_NAME, &after, 0), 0);
        assert_true(before.st_ino != after.st_ino && after.st_size < before.st_size);
        assert_int_equal(after.st_mode & 07777, 0600);
        assert_int_equal(afz_flight_read_fd(fd, NULL, &f, NULL), 0);
        assert_int_equal(afz_flight_need(&f)->count, 6000);
        afz_flight_done(&f);
        f = read_all(); /* exact columns so far: nothing is lost */
        assert_int_equal(afz_flight_need(&f)->count, 6000);
        afz_flight_done(&f);
        close(fd);
        assert_int_equal(afz_flight_close(w), 0);
}

/* One writes and thins as fast as it can, another reads all the while: it never sees damage, and
 * never less than before. */
static void test_read_while_written(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        uint32_t end_ms = 0;
        unsigned reads = 0;
        int status;
        pid_t pid = fork();
        if (pid == 0) {
                fly(w, 0, 40 * MINUTE_MS);
                _exit(0);
        }
        assert_true(pid > 0);
        do {
                struct afz_flight f = read_all();
                assert_int_equal(f.holes, 0);
                assert_true(f.end_ms >= end_ms);
                end_ms = f.end_ms;
                afz_flight_done(&f);
                reads++;
        } while (waitpid(pid, &status, WNOHANG) == 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        struct afz_flight f = read_all();
        assert_int_equal(f.end_ms, 40 * MINUTE_MS - 100);
        assert_int_equal(f.marks, 40);
        afz_flight_done(&f);
        close(w->fd); /* the other's is the file's writer */
        close(w->dir_fd);
        free(w->about);
        free(w);
        assert_true(reads > 0);
}

/* ---- when it goes wrong ---- */

static int calls, fail_at;

static ssize_t failing_pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
        if (calls++ < fail_at)
                return pwritev(fd, iov, n, at);
        errno = ENOSPC;
        return -1;
}

static void test_full_disk(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        for (uint32_t t = 0; t < 10 * MINUTE_MS; t += 500)
                assert_int_equal(write_half_second(w, t, 100, t + 500), 0);
        for (fail_at = 0; fail_at < 40; fail_at++) {
                struct stat st;
                calls = 0;
                w->pwritev = failing_pwritev;
                int r = afz_flight_thin(w, at_ms(10 * MINUTE_MS));
                w->pwritev = pwritev;
                assert_true(r == -ENOSPC || r == 1);
                assert_int_equal(fstatat(dir_fd, AFZ_FLIGHT_NAME ".new", &st, 0), -1);
                struct afz_flight f = read_all();
                assert_int_equal(afz_flight_need(&f)->count, 6000);
                assert_int_equal(f.holes, 0);
                afz_flight_done(&f);
                if (r == 1)
                        break;
        }
        assert_in_range(fail_at, 1, 39);
        assert_int_equal(write_half_second(w, 10 * MINUTE_MS, 100, 10 * MINUTE_MS + 500), 0);
        assert_int_equal(afz_flight_close(w), 0);
        struct afz_flight f = read_all();
        assert_int_equal(afz_flight_need(&f)->count, 6005);
        assert_true(f.ended);
        afz_flight_done(&f);
}

/* Damage in the old file is not forgotten with it. */
static void test_damage_is_told(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        for (uint32_t t = 0; t < 10 * MINUTE_MS; t += 500)
                assert_int_equal(write_half_second(w, t, 100, t + 500), 0);
        assert_int_equal(pwrite(w->fd, "damaged", 7, (off_t)(w->raw_at + w->end) / 2), 7);
        assert_int_equal(afz_flight_thin(w, at_ms(10 * MINUTE_MS)), 1);
        assert_true(fly(w, 10 * MINUTE_MS, 30 * MINUTE_MS) > 0);
        assert_int_equal(afz_flight_close(w), 0);
        struct afz_flight f = read_all();
        unsigned gaps = 0;
        for (size_t i = 0; i < f.marks; i++)
                gaps += f.mark[i].kind == AFZ_MARK_GAP && f.mark[i].code == 1;
        assert_int_equal(gaps, 1);
        assert_int_equal(f.holes, 0);
        afz_flight_done(&f);
}

/* ---- the end ---- */

/* A short run's recording is made small at its end, and loses nothing by it; when that fails, it is
 * as it was. */
static void test_tidy(void **state)
{
        (void)state;
        for (fail_at = 0; fail_at < 10; fail_at++) {
                struct afz_flight_writer *w = create();
                struct stat before, after;
                for (uint32_t t = 0; t < 5 * MINUTE_MS; t += 500)
                        assert_int_equal(write_half_second(w, t, 100, t + 500), 0);
                assert_int_equal(fstatat(dir_fd, AFZ_FLIGHT_NAME, &before, 0), 0);
                assert_int_equal(afz_flight_end(w), 0);
                assert_int_equal(afz_flight_end(w), 0); /* harmless twice */
                struct afz_flight ended = read_all();
                assert_true(ended.ended);
                afz_flight_done(&ended);
                calls = 0;
                w->pwritev = failing_pwritev;
                assert_int_equal(afz_flight_close(w), 0);
                assert_int_equal(fstatat(dir_fd, AFZ_FLIGHT_NAME, &after, 0), 0);
                struct afz_flight f = read_all();
                assert_true(f.ended);
                check_all(&f, 5 * MINUTE_MS);
                afz_flight_done(&f);
                if (calls <= fail_at) {
                        assert_true(after.st_size < before.st_size / 3);
                        return;
                }
                assert_true(after.st_size > before.st_size);
        }
        fail_msg("it was never made small");
}

/* While a recording is made small, the next run may begin in the same folder: its own stays. */
static void test_next_run(void **state)
{
        (void)state;
        struct afz_flight_writer *old = create(), *next;
        struct stat before, after;
        for (uint32_t t = 0; t < 5 * MINUTE_MS; t += 500)
                assert_int_equal(write_half_second(old, t, 100, t + 500), 0);
        next = create();
        assert_int_equal(fstatat(dir_fd, AFZ_FLIGHT_NAME, &before, 0), 0);
        assert_int_equal(afz_flight_close(old), 0);
        assert_int_equal(fstatat(dir_fd, AFZ_FLIGHT_NAME, &after, 0), 0);
        assert_true(before.st_ino == after.st_ino);
        assert_int_equal(afz_flight_close(next), 0);
}

/* ---- the parts ---- */

static void test_streams(void **state)
{
        (void)state;
        static unsigned char buf[300 * AFZ_STREAM_WORST];
        uint64_t v[300], back[300], seed = 4711;
        for (unsigned kind = 0; kind < 200; kind++) {
                size_t n = pack_random(&seed) % 300;
                unsigned bits = kind % 65;
                for (size_t i = 0; i < n; i++) {
                        v[i] = bits ? pack_random(&seed) >> (64 - bits) : 0;
                        if (kind > 100 && pack_random(&seed) % 8)
                                v[i] = kind; /* few and large among many and small */
                }
                struct afz_put put = {.p = buf, .cap = sizeof buf};
                afz_stream_put(&put, v, n);
                assert_false(put.full);
                unsigned char *exact = malloc(put.len ? put.len : 1);
                memcpy(exact, buf, put.len);
                struct afz_take take = {exact, put.len};
                assert_true(afz_stream_take(&take, back, n));
                assert_int_equal(take.n, 0);
                assert_memory_equal(v, back, n * sizeof v[0]);
                if (n) {
                        take = (struct afz_take){exact, put.len - 1};
                        assert_false(afz_stream_take(&take, back, n));
                }
                free(exact);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_streams),
                cmocka_unit_test_setup_teardown(test_three_hours, setup, teardown),
                cmocka_unit_test_setup_teardown(test_days, setup, teardown),
                cmocka_unit_test_setup_teardown(test_late, setup, teardown),
                cmocka_unit_test_setup_teardown(test_not_worth_it, setup, teardown),
                cmocka_unit_test_setup_teardown(test_readers_keep_theirs, setup, teardown),
                cmocka_unit_test_setup_teardown(test_read_while_written, setup, teardown),
                cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
                cmocka_unit_test_setup_teardown(test_damage_is_told, setup, teardown),
                cmocka_unit_test_setup_teardown(test_tidy, setup, teardown),
                cmocka_unit_test_setup_teardown(test_next_run, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
