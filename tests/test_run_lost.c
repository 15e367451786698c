/* Runs that nobody saw end: a killed guard, a machine that went down, torn and unwritable files. */
#include <sys/wait.h>

#include "flight_file.h"
#include "pack.h"
#include "run_fixture.h"
#include "run_id.h"

struct collected {
        int answer, calls;
        char place[AFZ_RUN_PLACE_CAP];
};

static int collect(void *ctx, const char *place)
{
        struct collected *c = ctx;
        c->calls++;
        snprintf(c->place, sizeof c->place, "%s", place);
        return c->answer;
}

static void test_lost_is_collected(void **state)
{
        (void)state;
        struct afz_run run, living;
        struct afz_run_ref ref;
        struct collected c = {.answer = -EBUSY};
        char id[AFZ_RUN_ID_CAP], page[AFZ_RUN_PATH_CAP], socket[AFZ_RUN_SOCKET_CAP];

        start(NULL, &living);
        start(NULL, &run);
        run.page->need_bytes = GIB;
        run.page->tick_ns += 2500000000;
        memcpy(id, run.page->id, sizeof id);
        memcpy(page, run.page_path, sizeof page);
        memcpy(socket, run.socket, sizeof socket);
        close(open(socket, O_CREAT | O_WRONLY, 0600));
        assert_int_equal(promised(), 7 * GIB);
        lose(&run);
        assert_int_equal(promised(), 4 * GIB);

        /* Its job lives on in its cgroup: the promise stands. */
        assert_int_equal(afz_run_collect(collect, &c, NULL), 0);
        assert_int_equal(c.calls, 1);
        assert_string_equal(c.place, "/sys/fs/cgroup/antifreeze-x");
        assert_true(is_there(page));
        assert_int_equal(promised(), 7 * GIB);
        c.answer = 0;
        assert_int_equal(afz_run_collect(collect, &c, NULL), 1);
        assert_false(is_there(page));
        assert_false(is_there(socket));
        assert_int_equal(promised(), 4 * GIB);
        assert_int_equal(afz_run_collect(collect, &c, NULL), 0);
        assert_int_equal(c.calls, 2);

        assert_int_equal(afz_run_find(id, &ref), 0);
        assert_has(told(&ref, true), "{\"how\":\"lost\",\"code\":null}");
        assert_has(told(&ref, true), "\"duration_s\":2.500");
        assert_has(told(&ref, true), "\"id\":\"lost\"");
        finish(&living, 0);
}

/* `why` does not wait for the next run. */
static void test_lost_is_told(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_ref ref;
        char path[AFZ_RUN_PATH_CAP];

        start(NULL, &run);
        lose(&run);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_false(ref.live);
        assert_has(told(&ref, false), "the guard was killed");
        snprintf(path, sizeof path, "%s", ref.dir);
        assert_true(strlen(path) + 16 < sizeof path);
        memcpy(path + strlen(path), "/" AFZ_RUN_STATE, sizeof "/" AFZ_RUN_STATE);
        assert_false(is_there(path));
        assert_has(told(&ref, true), "\"how\":\"lost\"");
        assert_true(is_there(ref.page_path)); /* the collector still needs its place */
}

static void test_machine_lost(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_state s;
        struct afz_run_ref ref;

        start(NULL, &run);
        int fd = open_state(&run);
        assert_int_equal(afz_run_state_read(fd, &s), 0);
        memcpy(s.page.boot_id, "00000000-1111", 14);
        assert_int_equal(afz_run_state_write(fd, &s), 0);
        close(fd);
        unlink(run.page_path); /* a tmpfs does not outlive the machine */
        lose(&run);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_has(told(&ref, true), "\"id\":\"machine-lost\"");
        assert_has(told(&ref, true), "\"how\":\"lost\"");
}

/* A shared home: what runs on another machine is not ours to end. */
static void test_other_machine(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_state s;
        struct afz_run_ref ref;

        start(NULL, &run);
        int fd = open_state(&run);
        assert_int_equal(afz_run_state_read(fd, &s), 0);
        memcpy(s.host, "elsewhere.example", 18);
        assert_int_equal(afz_run_state_write(fd, &s), 0);
        close(fd);
        unlink(run.page_path);
        lose(&run);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_has(told(&ref, true), "\"end\":null");
        assert_int_equal(afz_run_settle(ref.dir, ref.id, NULL), -ENOENT);
}

/* At a logout the runtime folder goes, and the job goes on. */
static void test_runtime_folder_vanishes(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_ref ref;

        start(NULL, &run);
        afz_fixture_remove(fixture, "run/antifreeze");
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_true(ref.live);
        assert_string_equal(ref.socket, "");
        assert_has(told(&ref, true), "\"end\":null");
        finish(&run, 0);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_has(told(&ref, true), "\"how\":\"exit\"");
}

/* The disk is full at the end: the last word has its room, and `why` has the answer. */
static void test_files_cannot_be_written(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_ref ref;
        struct afz_outcome end = {.end = {AFZ_END_EXIT, 5}};

        start(NULL, &run);
        assert_int_equal(mkdirat(run.dir_fd, "verdict.json.new", 0700), 0);
        assert_true(afz_run_write(&run, &end) < 0);
        assert_int_equal(faccessat(run.dir_fd, "verdict.txt.new", F_OK, 0), -1);
        afz_run_done(&run);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_false(ref.live);
        assert_has(told(&ref, true), "{\"how\":\"exit\",\"code\":5}");
        assert_has(told(&ref, false), "exit status 5");
        char path[AFZ_RUN_PATH_CAP + 32];
        snprintf(path, sizeof path, "%s/verdict.json.new", ref.dir);
        assert_int_equal(rmdir(path), 0);
        assert_has(told(&ref, true), "\"code\":5"); /* and is now recorded */
        snprintf(path, sizeof path, "%s/" AFZ_RUN_STATE, ref.dir);
        assert_false(is_there(path));
        assert_has(told(&ref, true), "\"code\":5");
}

/* A power cut in the middle of a slot: the one before stands. */
static void test_torn_state(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_state s, before;

        start(NULL, &run);
        int fd = open_state(&run);
        assert_int_equal(afz_run_state_read(fd, &before), 0);
        s = before;
        s.outcome.end.how = AFZ_END_EXIT;
        assert_int_equal(afz_run_state_write(fd, &s), 0);
        assert_int_equal(afz_run_state_read(fd, &s), 0);
        assert_int_equal(s.outcome.end.how, AFZ_END_EXIT);
        off_t slot = (off_t)(s.turn % 2) * (off_t)sizeof s;
        assert_int_equal(pwrite(fd, "torn", 4, slot + 1000), 4);
        assert_int_equal(afz_run_state_read(fd, &s), 0);
        assert_int_equal(s.outcome.end.how, AFZ_END_RUNNING);
        assert_int_equal(s.turn, before.turn);
        assert_int_equal(ftruncate(fd, 100), 0);
        assert_int_equal(afz_run_state_read(fd, &s), -EBADMSG);
        close(fd);
        finish(&run, 0);
}

/* A recording of a run, not closed, that was written in this boot of this machine. */
static void leave_recording(const char *folder, const char *id, const char *boot_id)
{
        static char none[] = "", cmd[] = "train";
        unsigned char bytes[256];
        struct afz_flight_head head = {.cmd = cmd, .cwd = none, .git = none};
        struct afz_pack pack = {.buf = bytes, .cap = sizeof bytes};
        struct afz_flight_writer *w;
        int dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        pid_t pid = fork(); /* it dies with its file open: closing it would end it in order */
        if (pid == 0) {
                snprintf(head.run, sizeof head.run, "%s", id);
                snprintf(head.boot_id, sizeof head.boot_id, "%s", boot_id);
                (void)gethostname(head.host, sizeof head.host - 1);
                afz_pack_start(&pack, 0, 1000000000);
                if (afz_pack_mark(&pack, 1000000000, AFZ_MARK_ATTEMPT, 1, "") < 0 ||
                    afz_flight_create(dir_fd, &head, 0, &w) < 0 ||
                    afz_flight_write(w, pack.buf, pack.len) < 0)
                        _exit(1);
                _exit(0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close(dir_fd);
}

/* A power cut in a run's first moments: the names of its files are there, their bytes are not, and
 * the recording is all there is. */
static void test_nothing_but_a_recording(void **state)
{
        static const char *const names[] = {AFZ_RUN_STATE, "verdict.json", "verdict.txt"};
        (void)state;
        struct afz_run run;
        struct afz_run_ref ref;
        struct afz_run_known known;
        char id[AFZ_RUN_ID_CAP], here[AFZ_BOOT_ID_CAP];

        start(at("d"), &run);
        memcpy(id, run.page->id, sizeof id);
        unlink(run.page_path);
        for (size_t i = 0; i < 3; i++) {
                int fd = openat(run.dir_fd, names[i], O_WRONLY | O_TRUNC | O_CLOEXEC);
                assert_true(fd >= 0);
                close(fd);
        }
        lose(&run);
        leave_recording(at("d"), id, "00000000-1111");
        assert_int_equal(afz_run_find(at("d"), &ref), 0);
        assert_string_equal(ref.id, id);
        assert_int_equal(afz_run_recall(&ref, &known), 0);
        assert_int_equal(known.outcome.end.how, AFZ_END_LOST);
        assert_true(known.rebooted);
        assert_string_equal(known.page.cmd, "train");

        afz_boot_id(here);
        leave_recording(at("d"), id, here);
        assert_int_equal(afz_run_recall(&ref, &known), 0);
        assert_int_equal(known.outcome.end.how, AFZ_END_UNKNOWN);
        assert_false(known.rebooted);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROW(test_lost_is_collected),
                ROW(test_lost_is_told),
                ROW(test_machine_lost),
                ROW(test_other_machine),
                ROW(test_runtime_folder_vanishes),
                ROW(test_files_cannot_be_written),
                ROW(test_torn_state),
                ROW(test_nothing_but_a_recording),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
