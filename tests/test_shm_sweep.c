/* Real files and real processes, in a folder of the test's own in /dev/shm. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm_sweep.h"

#define BYTES 65536
#define LARGE (32 << 20) /* what is written and less than 16 MiB may be a log */

struct place {
        char dir[64];
        struct afz_env env;
        struct afz_shm *shm;
        uint64_t now; /* looks, one apart */
};

static void path_of(const struct place *p, const char *name, char *buf, size_t cap)
{
        assert_true(snprintf(buf, cap, "%s/%s", p->dir, name) < (int)cap);
}

static void make(const struct place *p, const char *name)
{
        char path[128];
        path_of(p, name, path, sizeof path);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, BYTES), 0);
        close(fd);
}

static void fill(const struct place *p, const char *name, off_t bytes)
{
        char path[128];
        path_of(p, name, path, sizeof path);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(posix_fallocate(fd, 0, bytes), 0);
        close(fd);
}

static bool is_there(const struct place *p, const char *name)
{
        char path[128];
        path_of(p, name, path, sizeof path);
        return access(path, F_OK) == 0;
}

enum how { MAPPED, MAPPED_READ_ONLY, MAPPED_PRIVATE, OPENED, OPENED_READ_ONLY };

static bool hold(const char *path, enum how how)
{
        int fd = open(path, (how == OPENED_READ_ONLY ? O_RDONLY : O_RDWR) | O_CLOEXEC);
        if (fd < 0 || how >= OPENED)
                return fd >= 0;
        char *m = mmap(NULL, BYTES, how == MAPPED_READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE,
                       how == MAPPED_PRIVATE ? MAP_PRIVATE : MAP_SHARED, fd, 0);
        if (m == MAP_FAILED)
                return false;
        if (how == MAPPED)
                memset(m, 1, BYTES);
        close(fd);
        return true;
}

/* A process that holds the file until it is killed. */
static pid_t holder(const struct place *p, const char *name, enum how how)
{
        char path[128], c;
        int ready[2];
        path_of(p, name, path, sizeof path);
        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (hold(path, how) && write(ready[1], "r", 1) == 1)
                        pause();
                _exit(1);
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &c, 1), 1);
        close(ready[0]);
        return pid;
}

static void end(pid_t pid)
{
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void look(struct place *p, pid_t member)
{
        assert_true(afz_shm_look(p->shm) >= 0);
        if (member > 0)
                assert_int_equal(afz_shm_note(p->shm, &p->env, member), 0);
        afz_shm_settle(p->shm, ++p->now);
}

/* It was asked to end right after that look. */
static unsigned sweep_at(struct place *p, uint64_t asked_ns)
{
        struct afz_shm_swept swept;
        const struct afz_shm_end end = {asked_ns, asked_ns};
        assert_int_equal(afz_shm_sweep(p->shm, &p->env, &end, &swept), 0);
        return swept.files;
}

static unsigned sweep(struct place *p)
{
        return sweep_at(p, p->now);
}

static uint64_t unmapped(const struct place *p)
{
        return afz_shm_held(p->shm).unmapped_bytes;
}

static int set_up(void **state)
{
        struct place *p = calloc(1, sizeof *p);
        strcpy(p->dir, "/dev/shm/afz-test-XXXXXX");
        if (!mkdtemp(p->dir))
                return -1;
        assert_int_equal(afz_env_open_live(&p->env), 0);
        make(p, "before");
        assert_int_equal(afz_shm_new(p->dir, &p->shm), 0);
        *state = p;
        return 0;
}

static int tear_down(void **state)
{
        struct place *p = *state;
        char line[128];
        afz_shm_free(p->shm);
        afz_env_done(&p->env);
        snprintf(line, sizeof line, "rm -r %s", p->dir);
        int r = system(line);
        free(p);
        return r;
}

static void test_left_behind(void **state)
{
        struct place *p = *state;
        make(p, "segment");
        pid_t member = holder(p, "segment", MAPPED);
        look(p, member);
        assert_int_equal(afz_shm_held(p->shm).bytes, BYTES);
        assert_int_equal(unmapped(p), 0);
        assert_int_equal(sweep(p), 0); /* it is held */
        assert_true(is_there(p, "segment"));
        end(member);
        assert_int_equal(sweep(p), 1);
        assert_false(is_there(p, "segment"));
        assert_true(is_there(p, "before"));
        assert_int_equal(sweep(p), 0);
}

/* What is not certainly the job's stays. */
static void test_not_ours(void **state)
{
        static const struct {
                const char *name;
                enum how how;
        } table[] = {
                {"before", MAPPED}, /* was there when we began */
                {"read-only", MAPPED_READ_ONLY},
                {"private", MAPPED_PRIVATE},
                {"data", OPENED},
                {"sem.x", MAPPED},
        };
        struct place *p = *state;
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                if (!is_there(p, table[i].name))
                        make(p, table[i].name);
                pid_t member = holder(p, table[i].name, table[i].how);
                look(p, member);
                end(member);
                assert_int_equal(sweep(p), 0);
                assert_true(is_there(p, table[i].name));
        }
}

/* Made by somebody else while the job ran, and only then mapped by the job. */
static void test_first_seen_without_the_job(void **state)
{
        struct place *p = *state;
        make(p, "theirs");
        look(p, 0);
        pid_t member = holder(p, "theirs", MAPPED);
        look(p, member);
        end(member);
        assert_int_equal(sweep(p), 0);
        assert_true(is_there(p, "theirs"));
}

static void test_held_by_another(void **state)
{
        struct place *p = *state;
        for (enum how how = MAPPED; how <= OPENED; how++) {
                char name[16];
                snprintf(name, sizeof name, "both%d", (int)how);
                make(p, name);
                pid_t member = holder(p, name, MAPPED), other = holder(p, name, how);
                look(p, member);
                end(member);
                assert_int_equal(sweep(p), 0);
                assert_true(is_there(p, name));
                end(other);
                assert_int_equal(sweep(p), 1);
        }
}

/* Another file under the same name, a second name, another name: each is a doubt. */
static void test_not_the_same_any_more(void **state)
{
        struct place *p = *state;
        char from[128], to[128];
        make(p, "one");
        pid_t member = holder(p, "one", MAPPED);
        look(p, member);
        path_of(p, "one", from, sizeof from);
        path_of(p, "two", to, sizeof to);
        end(member);
        assert_int_equal(link(from, to), 0);
        assert_int_equal(sweep(p), 0);
        assert_int_equal(unlink(from), 0);
        make(p, "one");
        assert_int_equal(sweep(p), 0);
        assert_true(is_there(p, "one"));
        look(p, 0);
        assert_int_equal(sweep(p), 0);
        assert_true(is_there(p, "two"));
}

static void test_gone_by_itself(void **state)
{
        struct place *p = *state;
        char path[128];
        make(p, "short");
        pid_t member = holder(p, "short", MAPPED);
        look(p, member);
        path_of(p, "short", path, sizeof path);
        unlink(path); /* as a well-behaved program does: it stays mapped */
        look(p, member);
        assert_int_equal(afz_shm_held(p->shm).bytes, BYTES);
        assert_int_equal(unmapped(p), 0);
        end(member);
        assert_int_equal(sweep(p), 0);
        assert_int_equal(afz_shm_note(p->shm, &p->env, member), -ESRCH);
        look(p, 0);
        look(p, 0);
        assert_int_equal(afz_shm_held(p->shm).bytes, 0);
}

/* What is written and not mapped: counted as long as it exists, whoever holds it. */
static void test_written_counts(void **state)
{
        struct place *p = *state;
        char path[128];
        fill(p, "written", LARGE);
        pid_t member = holder(p, "written", OPENED);
        look(p, member);
        assert_int_equal(unmapped(p), LARGE);
        end(member);
        look(p, 0);
        assert_int_equal(unmapped(p), LARGE);
        path_of(p, "written", path, sizeof path);
        unlink(path);
        look(p, 0);
        assert_int_equal(unmapped(p), 0);
}

/* As TemporaryFile() does, and others who unlink early. */
static void test_without_a_name_counts(void **state)
{
        struct place *p = *state;
        char path[128];
        fill(p, "short", LARGE);
        pid_t member = holder(p, "short", OPENED);
        path_of(p, "short", path, sizeof path);
        unlink(path);
        for (int i = 0; i < 3; i++) {
                look(p, member);
                assert_int_equal(unmapped(p), LARGE);
        }
        end(member);
        look(p, 0);
        look(p, 0);
        assert_int_equal(unmapped(p), 0);
}

/* Files of others count with what they grow in the job's hands, and not for being read. */
static void test_of_others_counts_growth(void **state)
{
        struct place *p = *state;
        fill(p, "theirs", LARGE);
        fill(p, "data", LARGE);
        look(p, 0);
        pid_t reader = holder(p, "data", OPENED_READ_ONLY);
        look(p, reader);
        end(reader);
        assert_int_equal(unmapped(p), 0);
        pid_t writer = holder(p, "theirs", OPENED);
        look(p, writer);
        assert_int_equal(unmapped(p), 0);
        fill(p, "theirs", LARGE + BYTES);
        look(p, writer);
        assert_int_equal(unmapped(p), BYTES);
        end(writer);
        assert_int_equal(sweep(p), 0);
}

static void test_in_a_folder(void **state)
{
        struct place *p = *state;
        char path[128];
        path_of(p, "sub", path, sizeof path);
        assert_int_equal(mkdir(path, 0700), 0);
        fill(p, "sub/x", LARGE);
        pid_t member = holder(p, "sub/x", OPENED);
        look(p, member);
        end(member);
        assert_int_equal(unmapped(p), LARGE);
        assert_int_equal(sweep(p), 0);
        assert_true(is_there(p, "sub/x"));
}

/* Unfinished when the job was ended: nobody wants it. Anything else that was written may be data.
 */
static void test_written_is_swept(void **state)
{
        struct place *p = *state;
        fill(p, "theirs", LARGE);
        fill(p, "unfinished", LARGE);
        pid_t member = holder(p, "unfinished", OPENED);
        look(p, member);
        end(member);
        look(p, 0);                          /* dead, and seen so */
        assert_int_equal(sweep_at(p, 0), 0); /* it came after the job was asked to save */
        assert_int_equal(sweep_at(p, 1), 1);
        assert_false(is_there(p, "unfinished"));
        assert_true(is_there(p, "theirs"));
}

static void test_log_stays(void **state)
{
        struct place *p = *state;
        fill(p, "log", BYTES);
        pid_t member = holder(p, "log", OPENED);
        look(p, member);
        end(member);
        assert_int_equal(sweep(p), 0);
        assert_true(is_there(p, "log"));
}

static void test_finished_stays(void **state)
{
        struct place *p = *state;
        fill(p, "checkpoint", LARGE);
        pid_t member = holder(p, "checkpoint", OPENED);
        look(p, member);
        end(member); /* closed, and the job goes on */
        look(p, 0);
        look(p, 0);
        assert_int_equal(sweep(p), 0);
        assert_true(is_there(p, "checkpoint"));
}

static void test_no_folder(void **state)
{
        struct afz_shm *shm;
        (void)state;
        assert_int_equal(afz_shm_new("/dev/shm/afz-no-such", &shm), -ENODATA);
        afz_shm_free(NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_left_behind, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_not_ours, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_first_seen_without_the_job, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_held_by_another, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_not_the_same_any_more, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_gone_by_itself, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_written_counts, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_without_a_name_counts, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_of_others_counts_growth, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_in_a_folder, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_written_is_swept, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_log_stays, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_finished_stays, set_up, tear_down),
                cmocka_unit_test(test_no_folder),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
