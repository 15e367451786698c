/* flight.afz: written, cut, damaged, thinned, read. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "crc32.h"
#include "flight_file.h"
#include "flight_writer.h"
#include "pack_fixture.h"

static char folder[64];
static int dir_fd;

static int setup(void **state)
{
        (void)state;
        snprintf(folder, sizeof folder, "/tmp/afz-flight-XXXXXX");
        if (!mkdtemp(folder))
                return -1;
        dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return dir_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
        (void)state;
        unlinkat(dir_fd, AFZ_FLIGHT_NAME, 0);
        unlinkat(dir_fd, AFZ_FLIGHT_NAME ".new", 0);
        close(dir_fd);
        return rmdir(folder);
}

static char cmd[] = "python3 train.py", cwd[] = "/home/u", git[] = "main 1234abc";

static struct afz_flight_head some_head(void)
{
        return (struct afz_flight_head){
                .run = "20261115-063745-kxqz",
                .boot_id = "5b7e4c3f-0000-4000-8000-123456789abc",
                .host = "box",
                .cmd = cmd,
                .cwd = cwd,
                .git = git,
                .started_s = 1794724665,
                .ram_total_bytes = UINT64_C(16) << 30,
                .budget_bytes = UINT64_MAX,
                .cores = 8,
                .tier = 2,
                .policy = 1,
        };
}

static struct afz_flight_writer *create(void)
{
        struct afz_flight_head head = some_head();
        struct afz_flight_writer *w;
        assert_int_equal(afz_flight_create(dir_fd, &head, START_NS, &w), 0);
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

/* Half a second of a job that grows by a page in each tick, and of one process. */
static int write_half_second(struct afz_flight_writer *w, struct afz_pack *pack, uint32_t from_ms)
{
        afz_pack_start(pack, START_NS, at_ms(from_ms));
        for (uint32_t t = from_ms; t < from_ms + 500; t += 100) {
                struct afz_sample job = sample_of(AFZ_KIND_JOB, 0);
                struct afz_sample proc = sample_of(AFZ_KIND_PROC, 7);
                afz_sample_set(&job, AFZ_JOB_NEED, (int64_t)t * 4096 / 100);
                afz_sample_set(&job, AFZ_JOB_CPU, (int64_t)t * 1000000);
                afz_sample_set(&proc, AFZ_PROC_STATE, t % 500 == 400 ? 'D' : 'S');
                afz_sample_set(&proc, AFZ_PROC_PPID, 1);
                proc.detail = "python3 train.py";
                afz_pack_sample(pack, at_ms(t), &job);
                afz_pack_sample(pack, at_ms(t), &proc);
        }
        if (from_ms % 10000 == 0)
                afz_pack_mark(pack, at_ms(from_ms), AFZ_MARK_UNUSED, from_ms / 10000, "");
        return afz_flight_write(w, pack->buf, pack->len);
}

static const struct afz_column *need_of(const struct afz_flight *f)
{
        const struct afz_column *c = afz_flight_need(f);
        assert_non_null(c);
        return c;
}

static off_t size_of_file(void)
{
        struct stat st;
        assert_int_equal(fstatat(dir_fd, AFZ_FLIGHT_NAME, &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        return st.st_size;
}

static unsigned char *load(size_t *len)
{
        *len = (size_t)size_of_file();
        unsigned char *bytes = malloc(*len);
        int fd = openat(dir_fd, AFZ_FLIGHT_NAME, O_RDONLY);
        assert_int_equal(read(fd, bytes, *len), (ssize_t)*len);
        close(fd);
        return bytes;
}

static int read_bytes(const unsigned char *bytes, size_t len, struct afz_flight *ret, char *why)
{
        int fd = memfd_create("flight", MFD_CLOEXEC);
        assert_int_equal(write(fd, bytes, len), (ssize_t)len);
        int r = afz_flight_read_fd(fd, NULL, ret, why);
        close(fd);
        return r;
}

static void test_crc(void **state)
{
        (void)state;
        assert_int_equal(afz_crc32(0, "123456789", 9), 0xcbf43926);
        assert_int_equal(afz_crc32(afz_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
        assert_int_equal(afz_crc32(0, "", 0), 0);
}

static void test_there_and_back(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        struct afz_pack pack;
        uint64_t took_ns;
        pack_make(&pack, 1 << 16);
        for (uint32_t t = 0; t < 20000; t += 500)
                assert_int_equal(write_half_second(w, &pack, t), 0);
        assert_int_equal(afz_flight_sync(w, &took_ns), 0);

        /* While it is written. */
        struct afz_flight f = read_all();
        assert_false(f.ended);
        assert_int_equal(need_of(&f)->count, 200);
        afz_flight_done(&f);

        assert_int_equal(afz_flight_close(w), 0);
        f = read_all();
        assert_true(f.ended);
        assert_int_equal(f.holes, 0);
        assert_string_equal(f.head.run, "20261115-063745-kxqz");
        assert_string_equal(f.head.host, "box");
        assert_string_equal(f.head.cmd, cmd);
        assert_string_equal(f.head.cwd, cwd);
        assert_string_equal(f.head.git, git);
        assert_int_equal(f.head.started_s, 1794724665);
        assert_true(f.head.budget_bytes == UINT64_MAX);
        assert_int_equal(f.head.cores, 8);
        assert_int_equal(f.head.tier, 2);
        assert_int_equal(f.end_ms, 19900);
        assert_int_equal(f.marks, 2);
        const struct afz_column *need = need_of(&f);
        assert_int_equal(need->count, 200);
        for (size_t i = 0; i < need->count; i++) {
                assert_int_equal(need->point[i].t_ms, i * 100);
                assert_int_equal(need->point[i].mean, (int64_t)i * 4096);
        }
        afz_flight_done(&f);
        assert_int_equal(afz_flight_close(NULL), 0);
        pack_done(&pack);
}

/* Who writes after another run: the folder's old recording goes, and its reader keeps it. */
static void test_replaces(void **state)
{
        (void)state;
        struct afz_pack pack;
        struct afz_flight f;
        pack_make(&pack, 1 << 16);
        struct afz_flight_writer *w = create();
        write_half_second(w, &pack, 0);
        assert_int_equal(afz_flight_close(w), 0);
        int fd = openat(dir_fd, AFZ_FLIGHT_NAME, O_RDONLY);
        w = create();
        f = read_all();
        assert_int_equal(f.tracks, 0);
        afz_flight_done(&f);
        assert_int_equal(afz_flight_read_fd(fd, NULL, &f, NULL), 0);
        assert_int_equal(f.tracks, 2);
        assert_true(f.ended);
        afz_flight_done(&f);
        assert_int_equal(afz_flight_close(w), 0);
        close(fd);
        pack_done(&pack);
}

/* A cut costs the frame it meets and no other. */
static void test_cut(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        struct afz_pack pack;
        size_t len, ends[6], n = 0;
        pack_make(&pack, 1 << 16);
        ends[n++] = (size_t)size_of_file();
        for (uint32_t t = 0; t < 2000; t += 500) {
                write_half_second(w, &pack, t);
                ends[n++] = (size_t)size_of_file();
        }
        assert_int_equal(afz_flight_close(w), 0);
        unsigned char *bytes = load(&len);
        for (size_t cut = ends[0]; cut <= len; cut += cut + 40 < len ? 11 : 1) {
                struct afz_flight f;
                size_t whole = 0;
                while (whole + 1 < n && ends[whole + 1] <= cut)
                        whole++;
                assert_int_equal(read_bytes(bytes, cut, &f, NULL), 0);
                assert_int_equal(whole ? need_of(&f)->count : f.tracks, whole * 5);
                assert_int_equal(f.holes, 0);
                assert_int_equal(f.ended, cut == len);
                afz_flight_done(&f);
        }
        /* Zeros behind it are what some file systems leave after a power cut. */
        unsigned char *longer = calloc(1, len + 5000);
        struct afz_flight f;
        memcpy(longer, bytes, len);
        assert_int_equal(read_bytes(longer, len + 5000, &f, NULL), 0);
        assert_int_equal(f.holes, 0);
        assert_int_equal(need_of(&f)->count, 20);
        afz_flight_done(&f);
        free(longer);
        free(bytes);
        pack_done(&pack);
}

/* One byte turned, anywhere behind the file's head: at most one frame is missing, and it is said.
 */
static void test_damage(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        struct afz_pack pack;
        size_t len;
        pack_make(&pack, 1 << 16);
        size_t first = (size_t)size_of_file();
        for (uint32_t t = 0; t < 2000; t += 500)
                write_half_second(w, &pack, t);
        assert_int_equal(afz_flight_close(w), 0);
        unsigned char *bytes = load(&len);
        for (size_t at = AFZ_FILE_HEAD; at < len; at += at < first ? 97 : 5) {
                struct afz_flight f;
                bytes[at] ^= 0x55;
                assert_int_equal(read_bytes(bytes, len, &f, NULL), 0);
                /* The last frame is so short that what is left of it looks cut off. */
                if (at < len - AFZ_FRAME_HEAD)
                        assert_int_equal(f.holes, 1);
                size_t count = need_of(&f)->count;
                assert_true(count == 20 || (at >= first && count == 15));
                assert_non_null(f.head.cmd);
                afz_flight_done(&f);
                bytes[at] ^= 0x55;
        }
        free(bytes);
        pack_done(&pack);
}

static void test_foreign(void **state)
{
        (void)state;
        static const struct {
                const char *bytes;
                size_t len;
                int r;
                const char *why;
        } row[] = {
                {"", 0, -EBADMSG, "the recording is empty: nothing was recorded"},
                {"\x89"
                 "AFZ",
                 4, -EBADMSG, "the recording is empty: nothing was recorded"},
                {"hello", 5, -EBADMSG, "the recording is not a recording of Antifreeze"},
                {"SQLite format 3\0\0\0\0\0", 20, -EBADMSG,
                 "the recording is not a recording of Antifreeze"},
                {"\x89"
                 "AFZ\n\x1a\n\2\0\0\0\0\0\0\0",
                 16, -EBADMSG, "the recording is not a recording of Antifreeze"},
                {"\x89"
                 "AFZ\r\n\x1a\n\2\0\0\0\0\0\0\0",
                 16, -EPROTO,
                 "the recording is a recording of version 2, and this Antifreeze reads version 1"},
        };
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
                char why[256] = "";
                struct afz_flight f;
                assert_int_equal(
                        read_bytes((const unsigned char *)row[i].bytes, row[i].len, &f, why),
                        row[i].r);
                assert_string_equal(why, row[i].why);
                assert_int_equal(
                        read_bytes((const unsigned char *)row[i].bytes, row[i].len, &f, NULL),
                        row[i].r);
        }
        struct afz_flight f;
        char why[256];
        assert_int_equal(afz_flight_read(dir_fd, NULL, &f, why), -ENOENT);
        assert_string_equal(why, "there is no flight.afz: the run was not recorded");
        assert_int_equal(mkdirat(dir_fd, AFZ_FLIGHT_NAME, 0700), 0);
        assert_int_equal(afz_flight_read(dir_fd, NULL, &f, why), -EBADMSG);
        assert_string_equal(why, "flight.afz is not a file");
        assert_int_equal(unlinkat(dir_fd, AFZ_FLIGHT_NAME, AT_REMOVEDIR), 0);
        assert_int_equal(mkfifoat(dir_fd, AFZ_FLIGHT_NAME, 0600), 0);
        assert_int_equal(afz_flight_read(dir_fd, NULL, &f, why), -EBADMSG);
}

/* A file of a version with other rows in its tables: names decide, not numbers. */
static void test_other_names(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        struct afz_pack pack;
        struct afz_flight f;
        char why[256];
        size_t len;
        pack_make(&pack, 1 << 16);
        write_half_second(w, &pack, 0);
        assert_int_equal(afz_flight_close(w), 0);
        unsigned char *bytes = load(&len), *name = memmem(bytes, len, "need_bytes", 10);
        size_t about = (size_t)bytes[24] | (size_t)bytes[25] << 8;
        assert_non_null(name);
        memcpy(name, "anon_sum_b", 10); /* no metric of ours */
        bytes[12] ^= 1;                 /* the names' sum */
        afz_frame_head(bytes + AFZ_FILE_HEAD, AFZ_FRAME_ABOUT,
                       bytes + AFZ_FILE_HEAD + AFZ_FRAME_HEAD, about);
        assert_int_equal(read_bytes(bytes, len, &f, why), 0);
        assert_null(afz_flight_need(&f));
        assert_non_null(afz_track_column(afz_flight_one(&f, AFZ_KIND_JOB), AFZ_JOB_CPU));
        afz_flight_done(&f);
        /* Without them nothing is guessed. */
        bytes[AFZ_FILE_HEAD + AFZ_FRAME_HEAD + 3] ^= 1;
        assert_int_equal(read_bytes(bytes, len, &f, why), -EBADMSG);
        assert_string_equal(why,
                            "the recording is damaged at its start, and of another Antifreeze");
        free(bytes);
        pack_done(&pack);
}

/* ---- a disk that fails ---- */

static struct {
        int calls, fail_at, err;
        size_t most; /* bytes that a call writes; 0: all */
} disk;

static ssize_t bad_pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
        int call = disk.calls++;
        if (disk.fail_at >= 0 && call >= disk.fail_at && disk.err) {
                errno = disk.err;
                return -1;
        }
        if (!disk.most)
                return pwritev(fd, iov, n, at);
        size_t len = iov->iov_len < disk.most ? iov->iov_len : disk.most;
        return pwrite(fd, iov->iov_base, len, at);
}

static void test_short_writes(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        struct afz_pack pack;
        pack_make(&pack, 1 << 16);
        disk.calls = 0;
        disk.fail_at = -1;
        disk.most = 7;
        w->pwritev = bad_pwritev;
        for (uint32_t t = 0; t < 2000; t += 500)
                assert_int_equal(write_half_second(w, &pack, t), 0);
        assert_int_equal(afz_flight_close(w), 0);
        struct afz_flight f = read_all();
        assert_int_equal(need_of(&f)->count, 20);
        assert_int_equal(f.holes, 0);
        assert_true(f.ended);
        afz_flight_done(&f);
        pack_done(&pack);
}

static void test_errors(void **state)
{
        (void)state;
        static const int errs[] = {ENOSPC, EIO, EDQUOT, ESTALE};
        struct afz_pack pack;
        pack_make(&pack, 1 << 16);
        for (size_t e = 0; e < sizeof errs / sizeof errs[0]; e++) {
                struct afz_flight_writer *w = create();
                w->pwritev = bad_pwritev;
                disk.err = 0;
                disk.calls = 0;
                disk.most = 40; /* so that a frame is cut in the middle */
                disk.fail_at = -1;
                assert_int_equal(write_half_second(w, &pack, 0), 0);
                off_t size = size_of_file();
                disk.fail_at = disk.calls + 3;
                disk.err = errs[e];
                for (uint32_t t = 500; t < 2000; t += 500) {
                        assert_int_equal(write_half_second(w, &pack, t), -errs[e]);
                        assert_int_equal(size_of_file(), size);
                }
                disk.err = 0;
                assert_int_equal(write_half_second(w, &pack, 2000), 0);
                assert_int_equal(afz_flight_close(w), 0);
                struct afz_flight f = read_all();
                assert_int_equal(need_of(&f)->count, 10);
                assert_int_equal(f.holes, 0);
                assert_int_equal(f.marks, 2); /* the step at 0 */
                assert_int_equal(f.mark[1].kind, AFZ_MARK_GAP);
                assert_int_equal(f.mark[1].code, 3);
                assert_int_equal(f.mark[1].t_ms, 500);
                assert_non_null(strstr(f.mark[1].text, strerror(errs[e])));
                afz_flight_done(&f);
        }
        pack_done(&pack);
}

static void test_limit_on_size(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        struct afz_pack pack;
        struct rlimit was, small;
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
        pack_make(&pack, 1 << 16);
        assert_int_equal(write_half_second(w, &pack, 0), 0);
        off_t size = size_of_file();
        small = (struct rlimit){(rlim_t)size + 50, was.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        assert_int_equal(write_half_second(w, &pack, 500), -EFBIG);
        assert_int_equal(size_of_file(), size);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
        assert_int_equal(write_half_second(w, &pack, 1000), 0);
        assert_int_equal(afz_flight_close(w), 0);
        struct afz_flight f = read_all();
        assert_int_equal(need_of(&f)->count, 10);
        assert_int_equal(f.marks, 2);
        assert_int_equal(f.mark[1].kind, AFZ_MARK_GAP);
        assert_true(f.ended);
        afz_flight_done(&f);
        pack_done(&pack);
}

static void test_no_pack(void **state)
{
        (void)state;
        struct afz_flight_writer *w = create();
        off_t size = size_of_file();
        unsigned char *large = calloc(1, AFZ_FRAME_MAX + 1);
        assert_int_equal(afz_flight_write(w, "", 0), -EBADMSG);
        assert_int_equal(afz_flight_write(w, "\2\0", 2), -EBADMSG);
        assert_int_equal(afz_flight_write(w, large, AFZ_FRAME_MAX + 1), -E2BIG);
        assert_int_equal(size_of_file(), size);
        assert_int_equal(afz_flight_close(w), 0);
        free(large);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_crc),
                cmocka_unit_test_setup_teardown(test_there_and_back, setup, teardown),
                cmocka_unit_test_setup_teardown(test_replaces, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
                cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
                cmocka_unit_test_setup_teardown(test_foreign, setup, teardown),
                cmocka_unit_test_setup_teardown(test_other_names, setup, teardown),
                cmocka_unit_test_setup_teardown(test_short_writes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
                cmocka_unit_test_setup_teardown(test_limit_on_size, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_pack, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
