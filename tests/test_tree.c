/* links: sense, fixture */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc_fixture.h"
#include "tree.h"

#define ROOT    100
#define KTHREAD AFZ_PF_KTHREAD

static const struct afz_fixture_row machine[] = {{"proc/loadavg", "0 0 0 1/1 1\n"}, {0}};

/* A root, its parent (the shell), and a stranger beside it. */
static void start(struct afz_watched *w)
{
        afz_watched_init(w, afz_fixture_new(machine));
        afz_watched_proc(w, (struct afz_fake_proc){.pid = 1, .start = 1});
        afz_watched_proc(w, (struct afz_fake_proc){.pid = 50, .ppid = 1, .start = 2});
        afz_watched_proc(w,
                         (struct afz_fake_proc){
                                 .pid = ROOT, .ppid = 50, .pgrp = ROOT, .session = 50, .start = 5});
        afz_watched_proc(w, (struct afz_fake_proc){
                                    .pid = 60, .ppid = 50, .pgrp = 60, .session = 50, .start = 3});
}

static struct afz_tree *tree_of(struct afz_watched *w, uint64_t root)
{
        struct afz_tree *t = NULL;
        assert_int_equal(afz_tree_new(&w->env, root, 16, &t), 0);
        return t;
}

static const struct afz_member *member(struct afz_tree *t, uint64_t pid)
{
        size_t i;
        return afz_tree_find(t, pid, &i) ? afz_tree_at(t, i) : NULL;
}

static void update(struct afz_tree *t)
{
        assert_int_equal(afz_tree_update(t), 0);
}

static void lose(struct afz_tree *t, uint64_t pid)
{
        size_t i;
        assert_true(afz_tree_find(t, pid, &i));
        afz_tree_lost(t, i);
}

/* Three generations born between two looks; the pids have wrapped, so that every child's number is
 * smaller than its parent's and is listed before it. */
static void test_chain_after_a_wrap(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        struct afz_tree *t = tree_of(&w, ROOT);
        assert_int_equal(afz_tree_count(t), 1);
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 90, .ppid = ROOT, .start = 10});
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 80, .ppid = 90, .start = 11});
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 70, .ppid = 80, .start = 12});
        update(t);
        assert_int_equal(afz_tree_count(t), 4);
        assert_int_equal(member(t, 70)->depth, 3);
        assert_true(member(t, 70)->fresh);
        assert_null(member(t, 60));
        assert_null(member(t, 50));
        update(t);
        assert_false(member(t, 70)->fresh);
        afz_tree_free(t);
        afz_watched_done(&w);
}

/* Nothing started: nothing is listed, let alone read. */
static void test_quiet_machine(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        struct afz_tree *t = tree_of(&w, ROOT);
        update(t); /* the one look more that follows each change */
        w.opens = 0;
        for (int i = 0; i < 100; i++)
                update(t);
        assert_int_equal(w.opens, 0);
        /* One is started: it is read, the known strangers are not. */
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9});
        update(t);
        update(t);
        assert_int_equal(w.opens, 1);
        assert_non_null(member(t, 110));
        afz_tree_free(t);
        afz_watched_done(&w);
}

/* The kernel counts a pid as given out before its folder is there: who looks in between sees the
 * new number and no process. */
static void test_folder_comes_late(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        struct afz_tree *t = tree_of(&w, ROOT);
        update(t);
        afz_watched_newest(&w, 777);
        update(t);
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 777, .ppid = ROOT, .start = 9});
        afz_watched_newest(&w, 777); /* and then nothing is started any more */
        update(t);
        update(t);
        assert_non_null(member(t, 777));
        afz_tree_free(t);
        afz_watched_done(&w);
}

static void test_used_again(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9});
        struct afz_tree *t = tree_of(&w, ROOT);
        assert_int_equal(afz_tree_count(t), 2);
        /* A stranger gets the number of a member that nobody has seen die. */
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 110, .ppid = 50, .start = 20});
        update(t);
        assert_null(member(t, 110));
        assert_int_equal(afz_tree_count(t), 1);
        /* A member gets the number of a stranger. */
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 60, .ppid = ROOT, .start = 21});
        update(t);
        assert_non_null(member(t, 60));
        /* And the other way round within one look: parent and child, both numbers used before. */
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 30});
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 60, .ppid = 110, .start = 31});
        update(t);
        assert_int_equal(member(t, 60)->start_ticks, 31);
        assert_int_equal(member(t, 60)->depth, 2);
        assert_int_equal(afz_tree_count(t), 3);
        afz_tree_free(t);
        afz_watched_done(&w);
}

static void test_root_used_again(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9});
        struct afz_tree *t = tree_of(&w, ROOT);
        lose(t, ROOT);
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = ROOT, .ppid = 50, .start = 40});
        update(t);
        assert_null(member(t, ROOT)); /* a stranger, whatever its number */
        assert_non_null(member(t, 110));
        /* Unless it is of the job by its birth. */
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = ROOT, .ppid = 110, .start = 41});
        update(t);
        assert_int_equal(member(t, ROOT)->depth, 2);
        afz_tree_free(t);
        afz_watched_done(&w);
}

/* The same process in another folder: memory was short and the kernel forgot the inode. */
static void test_inode_forgotten(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9});
        struct afz_tree *t = tree_of(&w, ROOT);
        size_t before, after;
        assert_true(afz_tree_find(t, 110, &before));
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9});
        update(t);
        assert_true(afz_tree_find(t, 110, &after));
        assert_int_equal(before, after);
        assert_false(afz_tree_at(t, after)->fresh);
        /* Not to be able to read it is not to know it dead. */
        afz_watched_bury(&w, 110);
        afz_fixture_break(w.fixture, "proc/110/stat");
        afz_watched_newest(&w, 778);
        update(t);
        assert_true(afz_tree_find(t, 110, &after));
        assert_int_equal(before, after);
        afz_tree_free(t);
        afz_watched_done(&w);
}

static void test_unreadable_newcomer(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        struct afz_tree *t = tree_of(&w, ROOT);
        afz_fixture_break(w.fixture, "proc/110/stat");
        afz_fixture_set(w.fixture, "proc/111/stat", "111 (x) R 100 1 1");
        afz_watched_newest(&w, 111);
        update(t);
        assert_int_equal(afz_tree_count(t), 1);
        /* It was not put down as a stranger: asked again at the next look. */
        afz_watched_stat(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9});
        afz_watched_stat(&w, (struct afz_fake_proc){.pid = 111, .ppid = 110, .start = 9});
        afz_watched_newest(&w, 112);
        update(t);
        assert_int_equal(afz_tree_count(t), 3);
        afz_tree_free(t);
        afz_watched_done(&w);
}

static void test_orphans_stay(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9});
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 120, .ppid = 110, .start = 10});
        struct afz_tree *t = tree_of(&w, ROOT);
        lose(t, 110);
        lose(t, ROOT);
        afz_watched_bury(&w, 110);
        afz_watched_bury(&w, ROOT);
        afz_watched_stat(&w, (struct afz_fake_proc){.pid = 120, .ppid = 1, .start = 10});
        afz_watched_newest(&w, 500);
        update(t);
        assert_int_equal(afz_tree_count(t), 1);
        assert_non_null(member(t, 120));
        /* And so do the children it has from now on. */
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 130, .ppid = 120, .start = 30});
        update(t);
        assert_non_null(member(t, 130));
        afz_tree_free(t);
        afz_watched_done(&w);
}

/* A daemon's child: forked and abandoned between two looks, in the session of a member. */
static void test_orphan_by_session(void **state)
{
        struct afz_watched w;
        size_t i;
        (void)state;
        start(&w);
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9});
        struct afz_tree *t = tree_of(&w, ROOT);
        /* It is only after we met it that it leaves for a session of its own. */
        assert_true(afz_tree_find(t, 110, &i));
        afz_tree_at(t, i)->session = afz_tree_at(t, i)->pgrp = 110;
        update(t);
        lose(t, 110);
        afz_watched_bury(&w, 110);
        afz_watched_proc(&w,
                         (struct afz_fake_proc){
                                 .pid = 130, .ppid = 1, .pgrp = 110, .session = 110, .start = 30});
        update(t);
        assert_non_null(member(t, 130));
        assert_true(member(t, 130)->orphan);
        /* The number is given out again, so the session is over: what a stranger founds under it
         * is the stranger's. */
        lose(t, 130);
        afz_watched_bury(&w, 130);
        afz_watched_proc(&w,
                         (struct afz_fake_proc){
                                 .pid = 110, .ppid = 50, .pgrp = 110, .session = 110, .start = 50});
        afz_watched_proc(
                &w, (struct afz_fake_proc){
                            .pid = 140, .ppid = 110, .pgrp = 110, .session = 110, .start = 51});
        update(t);
        update(t);
        assert_null(member(t, 110));
        assert_null(member(t, 140));
        afz_tree_free(t);
        afz_watched_done(&w);
}

/* In `train | tee log` the root founded the group, and tee is in it. */
static void test_pipeline_is_not_the_job(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        struct afz_tree *t = tree_of(&w, ROOT);
        afz_watched_proc(&w,
                         (struct afz_fake_proc){
                                 .pid = 101, .ppid = 50, .pgrp = ROOT, .session = 50, .start = 6});
        update(t);
        assert_null(member(t, 101));
        afz_tree_free(t);
        /* But a session of its own holds nobody else. */
        afz_watched_proc(
                &w, (struct afz_fake_proc){
                            .pid = ROOT, .ppid = 50, .pgrp = ROOT, .session = ROOT, .start = 7});
        t = tree_of(&w, ROOT);
        afz_watched_proc(&w,
                         (struct afz_fake_proc){
                                 .pid = 102, .ppid = 1, .pgrp = 102, .session = ROOT, .start = 8});
        update(t);
        assert_non_null(member(t, 102));
        afz_tree_free(t);
        afz_watched_done(&w);
}

/* Founders that died are forgotten only when there is no room for the living. */
static void test_many_founders(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        struct afz_tree *t = tree_of(&w, ROOT);
        for (uint64_t i = 0; i < 40; i++) { /* the tree holds 16 */
                uint64_t pid = 200 + i;
                afz_watched_proc(&w, (struct afz_fake_proc){.pid = pid,
                                                            .ppid = ROOT,
                                                            .pgrp = pid,
                                                            .session = pid,
                                                            .start = 10 + i});
                update(t);
                assert_non_null(member(t, pid));
                lose(t, pid);
                afz_watched_bury(&w, pid);
        }
        afz_watched_proc(
                &w, (struct afz_fake_proc){.pid = 300, .ppid = 1, .session = 239, .start = 90});
        update(t);
        assert_non_null(member(t, 300));
        afz_tree_free(t);
        afz_watched_done(&w);
}

static void test_whole_machine(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 2, .flags = KTHREAD, .start = 1});
        afz_watched_proc(&w,
                         (struct afz_fake_proc){.pid = 3, .ppid = 2, .flags = KTHREAD, .start = 1});
        struct afz_tree *t = tree_of(&w, 0);
        assert_int_equal(afz_tree_count(t), 4);
        assert_null(member(t, 2));
        assert_null(member(t, 3));
        afz_tree_free(t);
        /* In a container 2 is a process like any other. */
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 2, .ppid = 1, .start = 1});
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = 3, .ppid = 2, .start = 1});
        t = tree_of(&w, 0);
        assert_int_equal(afz_tree_count(t), 6);
        afz_tree_free(t);
        afz_watched_done(&w);
}

static void test_more_than_fit(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        struct afz_tree *t = tree_of(&w, ROOT);
        for (uint64_t i = 0; i < 20; i++)
                afz_watched_proc(&w,
                                 (struct afz_fake_proc){.pid = 200 + i, .ppid = ROOT, .start = 9});
        update(t);
        assert_int_equal(afz_tree_count(t), 16);
        assert_int_equal(afz_tree_slots(t), 16);
        assert_int_equal(afz_tree_dropped(t), 5);
        /* Places become free and are used again; those that hold keep theirs. */
        size_t place, i;
        assert_true(afz_tree_find(t, 203, &place));
        lose(t, 200);
        lose(t, 201);
        afz_watched_bury(&w, 200);
        afz_watched_bury(&w, 201);
        afz_watched_newest(&w, 901);
        update(t);
        assert_int_equal(afz_tree_count(t), 16);
        assert_true(afz_tree_find(t, 203, &i) && i == place);
        afz_tree_free(t);
        afz_watched_done(&w);
}

static void test_missing(void **state)
{
        static const struct afz_fixture_row no_proc[] = {{"sys/block/", NULL}, {0}};
        static const struct afz_fixture_row no_loadavg[] = {{"proc/x", ""}, {0}};
        struct afz_watched w;
        struct afz_tree *t = (struct afz_tree *)&w;
        (void)state;
        start(&w);
        size_t fds = afz_fixture_open_fds();
        assert_int_equal(afz_tree_new(&w.env, 12345, 16, &t), -ESRCH);
        assert_ptr_equal(t, &w);
        assert_int_equal(afz_fixture_open_fds(), fds);
        afz_watched_done(&w);
        afz_watched_init(&w, afz_fixture_new(no_proc));
        assert_int_equal(afz_tree_new(&w.env, 1, 16, &t), -ENODATA);
        afz_watched_done(&w);
        /* Without loadavg it looks every time. */
        afz_watched_init(&w, afz_fixture_new(no_loadavg));
        afz_watched_stat(&w, (struct afz_fake_proc){.pid = ROOT, .ppid = 1, .start = 5});
        t = tree_of(&w, ROOT);
        afz_watched_stat(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 6});
        update(t);
        assert_int_equal(afz_tree_count(t), 2);
        afz_fixture_set(w.fixture, "proc/loadavg", "garbage\n");
        afz_tree_free(t);
        afz_tree_free(NULL);
        afz_watched_done(&w);
}

/* ---- real processes ---- */

static uint64_t still(void *ctx)
{
        (void)ctx;
        return UINT64_C(1000000000);
}

/* Tells its pid and waits to be killed, or for us to end. */
static _Noreturn void settle(int told)
{
        pid_t pid = getpid();
        if (write(told, &pid, sizeof pid) != sizeof pid)
                _exit(1);
        for (;;)
                pause();
}

static pid_t next_pid(int fd)
{
        pid_t pid;
        assert_int_equal(read(fd, &pid, sizeof pid), sizeof pid);
        return pid;
}

/* child -> grandchild -> great-grandchild, all before we look; and a daemon: forked twice, with a
 * session of its own, whose parent is gone. */
static void test_live(void **state)
{
        struct afz_env env;
        struct afz_tree *t;
        int told[2];
        (void)state;
        assert_int_equal(afz_env_open_live(&env), 0);
        env.now_ns = still;
        assert_int_equal(pipe(told), 0);
        assert_int_equal(afz_tree_new(&env, (uint64_t)getpid(), 64, &t), 0);
        size_t before = afz_tree_count(t);
        pid_t child = fork();
        if (child == 0) {
                if (fork() == 0) {
                        (void)fork();
                        settle(told[1]);
                }
                settle(told[1]);
        }
        pid_t pids[3] = {next_pid(told[0]), next_pid(told[0]), next_pid(told[0])};
        update(t);
        assert_int_equal(afz_tree_count(t), before + 3);
        for (int i = 0; i < 3; i++)
                assert_non_null(member(t, (uint64_t)pids[i]));

        pid_t middle = fork();
        if (middle == 0) {
                setsid();
                settle(told[1]);
        }
        assert_int_equal(next_pid(told[0]), middle);
        update(t); /* now the session is known to be of the job */
        assert_true(member(t, (uint64_t)middle)->session == (uint64_t)middle);
        pid_t helper = fork();
        if (helper == 0) { /* a child of ours, not of its: only the session can tell */
                if (fork() == 0) {
                        setsid();
                        if (fork() == 0)
                                settle(told[1]);
                        _exit(0);
                }
                _exit(0);
        }
        assert_int_equal(waitpid(helper, NULL, 0), helper);
        pid_t daemon_pid = next_pid(told[0]);
        update(t);
        /* Born and abandoned between two looks in a session that we never saw founded: this is
         * what the header says is lost. */
        assert_null(member(t, (uint64_t)daemon_pid));

        for (int i = 0; i < 3; i++)
                kill(pids[i], SIGKILL);
        kill(middle, SIGKILL);
        kill(daemon_pid, SIGKILL);
        waitpid(child, NULL, 0);
        waitpid(middle, NULL, 0);
        close(told[0]);
        close(told[1]);
        afz_tree_free(t);
        afz_env_done(&env);
}

/* Seen once, it stays ours when its parent dies and it gets another. */
static void test_live_orphan(void **state)
{
        struct afz_env env;
        struct afz_tree *t;
        int told[2];
        (void)state;
        assert_int_equal(afz_env_open_live(&env), 0);
        env.now_ns = still;
        assert_int_equal(pipe(told), 0);
        pid_t child = fork();
        if (child == 0) {
                if (fork() == 0)
                        settle(told[1]);
                settle(told[1]);
        }
        pid_t a = next_pid(told[0]), b = next_pid(told[0]);
        pid_t grandchild = a == child ? b : a;
        assert_int_equal(afz_tree_new(&env, (uint64_t)child, 64, &t), 0);
        assert_int_equal(afz_tree_count(t), 2);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        lose(t, (uint64_t)child);
        update(t);
        assert_int_equal(afz_tree_count(t), 1);
        assert_non_null(member(t, (uint64_t)grandchild));
        kill(grandchild, SIGKILL);
        close(told[0]);
        close(told[1]);
        afz_tree_free(t);
        afz_env_done(&env);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_chain_after_a_wrap),
                cmocka_unit_test(test_quiet_machine),
                cmocka_unit_test(test_folder_comes_late),
                cmocka_unit_test(test_used_again),
                cmocka_unit_test(test_root_used_again),
                cmocka_unit_test(test_inode_forgotten),
                cmocka_unit_test(test_unreadable_newcomer),
                cmocka_unit_test(test_orphans_stay),
                cmocka_unit_test(test_orphan_by_session),
                cmocka_unit_test(test_pipeline_is_not_the_job),
                cmocka_unit_test(test_many_founders),
                cmocka_unit_test(test_whole_machine),
                cmocka_unit_test(test_more_than_fit),
                cmocka_unit_test(test_missing),
                cmocka_unit_test(test_live),
                cmocka_unit_test(test_live_orphan),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
