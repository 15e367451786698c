/* The runtime folder and the ledger: hostile neighbours, hostile pages, many starts at once. */
#include <sys/mman.h>
#include <sys/wait.h>

#include "clock.h"
#include "run_fixture.h"
#include "run_home.h"

/* Hostile neighbours: what stands where our folder should be. */
static void test_runtime_folders(void **state)
{
        (void)state;
        struct afz_run_roots roots = {
                .run_user = at("none"), .shm = at("shm"), .tmp = at("tmp"), .uid = geteuid()};
        struct afz_run_home home;
        char why[AFZ_RUN_WHY_CAP], name[64], path[128];

        snprintf(name, sizeof name, "antifreeze-%u", (unsigned)roots.uid);
        snprintf(path, sizeof path, "shm/%s", name);
        assert_int_equal(afz_run_home_open(&roots, true, &home, why), -ENOENT);
        mkdir(at("shm"), 0777);
        mkdir(at("tmp"), 0777);
        mkdir(at("theirs"), 0700);

        /* A link, a file, a folder that others may look into: passed over, the next is taken. */
        assert_int_equal(symlink(at("theirs"), at(path)), 0);
        assert_int_equal(afz_run_home_open(&roots, true, &home, why), 0);
        snprintf(path, sizeof path, "tmp/%s", name);
        assert_string_equal(home.folder[0].path, at(path));
        afz_run_home_done(&home);
}

static void test_runtime_folder_refused(void **state)
{
        (void)state;
        struct afz_run_roots roots = {.run_user = "/nonexistent",
                                      .shm = "/nonexistent",
                                      .tmp = at("tmp"),
                                      .uid = geteuid()};
        struct afz_run_home home;
        char why[AFZ_RUN_WHY_CAP], path[128];

        snprintf(path, sizeof path, "tmp/antifreeze-%u", (unsigned)roots.uid);
        mkdir(at("tmp"), 0777);
        afz_fixture_set(fixture, path, "a file");
        assert_int_equal(afz_run_home_open(&roots, true, &home, why), -ENOENT);
        assert_has(why, "is not a folder");
        unlink(at(path));
        assert_int_equal(symlink(at("run"), at(path)), 0);
        assert_int_equal(afz_run_home_open(&roots, true, &home, why), -ENOENT);
        assert_has(why, "is not a folder");
        unlink(at(path));
        mkdir(at(path), 0755);
        assert_int_equal(afz_run_home_open(&roots, true, &home, why), -ENOENT);
        assert_has(why, "has mode 0755");
        chmod(at(path), 0700);
        assert_int_equal(afz_run_home_open(&roots, true, &home, why), 0);
        afz_run_home_done(&home);

        /* A session's folder that is another's, or open to others, or no path at all. */
        roots.xdg_runtime = at("run");
        roots.uid++;
        assert_int_equal(afz_run_home_open(&roots, true, &home, why), -ENOENT);
        assert_has(why, "belongs to another user");
        roots.uid--;
        roots.tmp = "/nonexistent";
        chmod(at("run"), 0777);
        assert_int_equal(afz_run_home_open(&roots, true, &home, why), -ENOENT);
        assert_has(why, "others may write");
        roots.xdg_runtime = "run";
        assert_int_equal(afz_run_home_open(&roots, true, &home, why), -ENOENT);
        assert_has(why, "absolute");
}

/* A run from before the login is still seen after it. */
static void test_later_folders_are_looked_into(void **state)
{
        (void)state;
        struct afz_run_roots roots = {
                .run_user = at("user"), .shm = at("shm"), .tmp = "/nonexistent", .uid = geteuid()};
        struct afz_run_home home;
        char path[128];

        mkdir(at("shm"), 0777);
        assert_int_equal(afz_run_home_open(&roots, true, &home, NULL), 0);
        assert_int_equal(home.folders, 1);
        afz_run_home_done(&home);
        snprintf(path, sizeof path, "user/%u", (unsigned)roots.uid);
        mkdir(at("user"), 0755);
        mkdir(at(path), 0700);
        roots.xdg_runtime = at(path);
        assert_int_equal(afz_run_home_open(&roots, true, &home, NULL), 0);
        assert_int_equal(home.folders, 2);
        assert_has(home.folder[0].path, "/user/");
        assert_has(home.folder[1].path, "/shm/");
        assert_int_equal(afz_run_home_lock(&home, 0, NULL), 0);
        afz_run_home_done(&home);
}

static void test_ledger_is_held(void **state)
{
        (void)state;
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_home home, second;
        char why[AFZ_RUN_WHY_CAP];
        assert_int_equal(afz_run_home_open(&roots, true, &home, why), 0);
        assert_int_equal(afz_run_home_lock(&home, 0, why), 0);
        assert_int_equal(afz_run_home_open(&roots, true, &second, why), 0);
        assert_int_equal(afz_run_home_lock(&second, 10000000, why), -ETIMEDOUT);
        assert_has(why, "ledger.lock for too long");
        afz_run_home_done(&home);
        assert_int_equal(afz_run_home_lock(&second, 0, why), 0);
        afz_run_home_done(&second);
}

enum { STARTERS = 20 };
#define AVAILABLE (10 * GIB)

/* Shared by the starters: what each was promised. */
struct shared {
        _Atomic unsigned ready, done;
        uint64_t budget[STARTERS], seen[STARTERS];
};

struct starter {
        struct shared *shared;
        unsigned number;
        struct afz_run run;
};

static int promise_half(void *ctx, uint64_t promised_bytes)
{
        struct starter *s = ctx;
        struct afz_run_page first = first_page();
        uint64_t left = promised_bytes < AVAILABLE ? AVAILABLE - promised_bytes : 0;
        first.budget_bytes = left / 2;
        first.budget_given = s->number % 3 == 0;
        s->shared->budget[s->number] = left / 2;
        s->shared->seen[s->number] = promised_bytes;
        return afz_run_new(NULL, &first, &s->run, NULL);
}

/* Starts at the same instant as all others, and stays until all have started. */
static void start_at_once(struct shared *shared, unsigned number)
{
        struct starter s = {.shared = shared, .number = number};
        alarm(30); /* one that fails must not keep the others waiting for ever */
        shared->ready++;
        while (shared->ready < STARTERS)
                usleep(100);
        int r = afz_run_collect(NULL, NULL, NULL);
        if (r == 0)
                r = afz_run_ledger("", promise_half, &s, NULL);
        shared->done++;
        while (shared->done < STARTERS)
                usleep(100);
        _exit(r == 0 ? 0 : 1);
}

static void test_never_promised_twice(void **state)
{
        (void)state;
        struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(shared != MAP_FAILED);
        for (unsigned i = 0; i < STARTERS; i++) {
                pid_t pid = fork();
                assert_true(pid >= 0);
                if (pid == 0)
                        start_at_once(shared, i);
        }
        int status, bad = 0;
        while (wait(&status) > 0)
                bad += status != 0;
        uint64_t sum = 0;
        unsigned first = 0;
        for (unsigned i = 0; i < STARTERS; i++) {
                sum += shared->budget[i];
                first += shared->seen[i] == 0;
        }
        munmap(shared, sizeof *shared);
        assert_int_equal(bad, 0);
        assert_int_equal(first, 1);
        assert_true(sum <= AVAILABLE);
        assert_true(sum > AVAILABLE - AVAILABLE / 1024);
        assert_int_equal(afz_run_collect(NULL, NULL, NULL), STARTERS);
        assert_int_equal(promised(), 0);
}

/* Pages that are none. Each is written in place of a good one, held and not held. */
static void spoil(struct afz_run_page *page, int how)
{
        switch (how) {
        case 0:
                memset(page, 0xff, sizeof *page);
                break;
        case 1:
                memset(page, 0, sizeof *page);
                break;
        case 2:
                memset(page->id, 'a', sizeof page->id);
                break;
        case 3:
                page->tier = 1000000;
                break;
        case 4:
                page->policy = AFZ_POLICY_COUNT;
                break;
        case 5:
                memset(page->dir, 'x', sizeof page->dir);
                break;
        case 6:
                page->magic++;
                break;
        default:
                break;
        }
}

static void test_hostile_pages(void **state)
{
        (void)state;
        struct afz_run_page good, page;
        struct afz_run run;
        struct afz_run_ref ref;

        start(NULL, &run);
        good = *run.page;
        for (int how = 0; how <= 6; how++) {
                page = good;
                spoil(&page, how);
                assert_int_equal(pwrite(run.page_fd, &page, sizeof page, 0), sizeof page);
                assert_int_equal(promised(), 0);
                assert_int_equal(afz_run_collect(NULL, NULL, NULL), 0); /* held: left alone */
                assert_int_equal(afz_run_find(NULL, &ref), 0);
                (void)told(&ref, true);
                (void)told(&ref, false);
        }

        /* Texts without an end, and numbers beyond all bounds, but a page. */
        page = good;
        memset(page.cmd, '\x1b', sizeof page.cmd);
        memset(page.place, 'p', sizeof page.place);
        memset(page.boot_id, 'b', sizeof page.boot_id);
        memset(page.dir + 1, 'd', sizeof page.dir - 1);
        memset(&page.budget_given, 0x7f, 1);
        page.budget_bytes = UINT64_MAX;
        page.started_s = INT64_MIN;
        page.started_ns = UINT64_MAX;
        assert_int_equal(pwrite(run.page_fd, &page, sizeof page, 0), sizeof page);
        assert_int_equal(afz_run_find(good.id, &ref), 0);
        assert_int_equal(afz_run_peek(&ref, &page), 0);
        assert_int_equal(strlen(page.cmd), sizeof page.cmd - 1);
        assert_true(page.budget_given);
        assert_null(strchr(told(&ref, false), '\x1b'));
        (void)told(&ref, true);
        assert_int_equal(promised(), 0); /* of another boot */

        assert_int_equal(ftruncate(run.page_fd, sizeof page + 1), 0);
        assert_int_equal(promised(), 0);
        assert_int_equal(ftruncate(run.page_fd, sizeof page), 0);
        *run.page = good;
        assert_int_equal(promised(), 4 * GIB);
        finish(&run, 0);
}

static void test_budgets_do_not_wrap(void **state)
{
        (void)state;
        struct afz_run one, two;
        start(NULL, &one);
        start(NULL, &two);
        one.page->budget_bytes = UINT64_MAX - 5;
        assert_int_equal(promised(), UINT64_MAX);
        one.page->need_bytes = UINT64_MAX;
        assert_int_equal(promised(), 4 * GIB);
        finish(&one, 0);
        finish(&two, 0);
}

/* The ledger's lines: who can be asked to make room, and who cannot. */
static void test_stakes(void **state)
{
        (void)state;
        struct afz_stake s[2];
        struct afz_run run, other;
        assert_int_equal(afz_run_stakes(s, 2), 0);
        start(NULL, &run);
        run.page->need_bytes = GIB;
        assert_int_equal(afz_run_stakes(s, 2), 1);
        assert_string_equal(s[0].id, run.page->id);
        assert_int_equal(s[0].budget_bytes, 4 * GIB);
        assert_int_equal(s[0].need_bytes, GIB);
        assert_true(!s[0].fixed && !s[0].over_cap);

        /* Before its job runs it needs not be waited for. */
        assert_int_equal(afz_run_set_cap(run.page->id, 2 * GIB), 0);
        run.page->tick_ns = 1;
        assert_int_equal(afz_run_stakes(s, 2), 1);
        assert_int_equal(s[0].budget_bytes, 2 * GIB);
        assert_true(!s[0].fixed && !s[0].over_cap);
        run.page->root_pid = 1;
        run.page->budget_bytes = 4 * GIB;
        run.page->tick_ns = afz_clock_ns(CLOCK_BOOTTIME);

        /* Asked for less: it counts until it was given. Allowed more: so does what it may take. */
        assert_int_equal(afz_run_set_cap(run.page->id, 3 * GIB), 0);
        assert_int_equal(run.page->cap_bytes, 3 * GIB);
        assert_int_equal(afz_run_stakes(s, 2), 1);
        assert_int_equal(s[0].budget_bytes, 4 * GIB);
        assert_true(s[0].over_cap);
        run.page->budget_bytes = 3 * GIB;
        assert_int_equal(afz_run_stakes(s, 2), 1);
        assert_false(s[0].over_cap);
        assert_int_equal(afz_run_set_cap(run.page->id, 6 * GIB), 0);
        assert_int_equal(afz_run_stakes(s, 2), 1);
        assert_int_equal(s[0].budget_bytes, 6 * GIB);
        assert_int_equal(promised(), 5 * GIB);
        assert_int_equal(afz_run_set_cap("20200101-000000-aaaa", GIB), -ENOENT);

        run.page->budget_given = true;
        assert_int_equal(afz_run_stakes(s, 2), 1);
        assert_true(s[0].fixed);
        assert_int_equal(s[0].budget_bytes, 3 * GIB);
        run.page->budget_given = false;
        run.page->tick_ns = 1;
        assert_int_equal(afz_run_stakes(s, 2), 1);
        assert_true(s[0].fixed);

        start(NULL, &other);
        assert_int_equal(afz_run_stakes(s, 2), 2);
        assert_int_equal(afz_run_stakes(s, 1), -E2BIG);
        other.page->policy = AFZ_POLICY_WATCH;
        assert_int_equal(afz_run_stakes(s, 1), 1);
        other.page->policy = AFZ_POLICY_PROTECT;
        memcpy(other.page->inside, run.page->id, sizeof other.page->inside);
        assert_int_equal(afz_run_stakes(s, 1), 1);
        finish(&other, 0);
        lose(&run);
        assert_int_equal(afz_run_stakes(s, 1), 0);
}

/* Whatever bytes a page and a state hold, nothing is read beyond them (a sanitizer looks on). */
static void test_random_bytes(void **state)
{
        (void)state;
        unsigned seed = 1;
        struct afz_run run;
        struct afz_run_ref ref;
        char buf[16384];

        start(NULL, &run);
        struct afz_run_page good = *run.page;
        int fd = open_state(&run);
        for (int round = 0; round < 400; round++) {
                struct afz_run_page page = good;
                struct afz_run_state s;
                unsigned char *bytes = (unsigned char *)&page;
                for (int i = 0; i < 40; i++)
                        bytes[(size_t)rand_r(&seed) % sizeof page] = (unsigned char)rand_r(&seed);
                page.magic = good.magic;
                memcpy(page.id, good.id, sizeof page.id);
                assert_int_equal(pwrite(run.page_fd, &page, sizeof page, 0), sizeof page);
                assert_int_equal(afz_run_state_read(fd, &s), 0);
                bytes = (unsigned char *)&s;
                for (int i = 0; i < 40; i++) /* with a good sum: a file that was made so */
                        bytes[(size_t)rand_r(&seed) % offsetof(struct afz_run_state, page)] =
                                (unsigned char)rand_r(&seed);
                s.outcome.verdicts = (unsigned)(rand_r(&seed) % 12);
                s.outcome.end.how = (enum afz_end_how)(rand_r(&seed) % 9);
                (void)afz_run_state_write(fd, &s);
                (void)promised();
                struct afz_out out = afz_out_to(-1, buf, sizeof buf);
                if (afz_run_find(good.id, &ref) == 0) {
                        (void)afz_run_tell(&ref, round % 2, &out);
                        ref.live = false;
                        ref.dir[0] = '\0';
                        (void)afz_run_tell(&ref, round % 2, &out);
                }
                assert_int_equal(afz_run_state_read(fd, &s), 0);
                out = afz_out_to(-1, buf, sizeof buf);
                afz_run_put_text(&out, &s.page, &s.outcome, s.duration_ns);
                afz_run_put_json(&out, &s.page, &s.outcome, s.duration_ns);
        }
        close(fd);
        *run.page = good;
        afz_run_done(&run);
}

static void test_strays_are_removed(void **state)
{
        (void)state;
        struct afz_run run;
        start(NULL, &run);
        afz_fixture_set(fixture, "run/antifreeze/20200101-000000-aaaa.run", "garbage");
        afz_fixture_set(fixture, "run/antifreeze/20200101-000001-aaaa.sock", "");
        afz_fixture_set(fixture, "run/antifreeze/20200101-000002-aaaa.new", "half");
        afz_fixture_set(fixture, "run/antifreeze/notes.sock", "not ours to touch");
        assert_int_equal(symlink("/etc/passwd", at("run/antifreeze/20200101-000003-aaaa.run")), 0);
        assert_int_equal(mkfifo(at("run/antifreeze/20200101-000004-aaaa.run"), 0600), 0);
        assert_int_equal(afz_run_collect(NULL, NULL, NULL), 2);
        assert_false(is_there(at("run/antifreeze/20200101-000000-aaaa.run")));
        assert_false(is_there(at("run/antifreeze/20200101-000001-aaaa.sock")));
        assert_false(is_there(at("run/antifreeze/20200101-000002-aaaa.new")));
        assert_true(is_there(at("run/antifreeze/notes.sock")));
        assert_true(is_there(run.page_path));
        finish(&run, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROW(test_runtime_folders),
                ROW(test_runtime_folder_refused),
                ROW(test_later_folders_are_looked_into),
                ROW(test_ledger_is_held),
                ROW(test_never_promised_twice),
                ROW(test_hostile_pages),
                ROW(test_budgets_do_not_wrap),
                ROW(test_stakes),
                ROW(test_random_bytes),
                ROW(test_strays_are_removed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
