/* links: engine */
/* What the scout looks at beside the senses: commands, other programs, /dev/shm; its measure of the
 * machine, and the lock that its report lies under. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc_fixture.h"
#include "scout_escape.h"
#include "scout_fill.h"
#include "scout_others.h"
#include "scout_shared.h"
#include "scout_shm.h"

#define S   UINT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static void test_escapes(void **state)
{
        static const struct {
                const char *command, *parent, *name;
        } cases[] = {
                {"docker run --gpus all img python train.py", NULL, "docker run"},
                {"/usr/bin/docker --context far exec -it box bash", NULL, "docker exec"},
                {"docker compose up -d", NULL, "docker up"},
                {"docker ps", NULL, NULL},
                {"docker build -t run .", NULL, NULL},
                {"podman run --rm img", NULL, "podman run"},
                {"sbatch job.sh", NULL, "sbatch"},
                {"srun -n 4 python t.py", NULL, "srun"},
                {"srun --version", NULL, NULL},
                {"ssh node7 python t.py", "bash", "ssh"},
                {"ssh git@host git-upload-pack 'x'", NULL, NULL},
                {"ssh -o X host", "git", NULL},
                {"ssh host", "rsync", NULL},
                {"ssh -N -L 8888:localhost:8888 host", NULL, NULL},
                {"sshd: u", NULL, NULL},
                {"tmux new -d -s train python t.py", NULL, "tmux new"},
                {"tmux -L s new-session -d", NULL, "tmux new-session"},
                {"tmux attach", NULL, NULL},
                {"screen -dmS train python t.py", NULL, "screen"},
                {"screen -ls", NULL, NULL},
                {"systemd-run --user python t.py", NULL, "systemd-run"},
                {"systemd-run --user --scope python t.py", NULL, NULL},
                {"kubectl -n ml exec pod -- python t.py", NULL, "kubectl exec"},
                {"kubectl get pods", NULL, NULL},
                {"kubectl apply -f x.yaml --dry-run=client", NULL, NULL},
                {"python train.py docker run", NULL, NULL},
                {"dockerx run", NULL, NULL},
                {"docker", NULL, NULL},
                {"", NULL, NULL},
                {"   ", NULL, NULL},
                {"/", NULL, NULL},
        };
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char name[32] = "untouched";
                bool hit = afz_scout_escape(cases[i].command, cases[i].parent, name, sizeof name);
                if (hit != (cases[i].name != NULL))
                        fail_msg("%s: %s", cases[i].command, hit ? name : "not seen");
                assert_string_equal(name, hit ? cases[i].name : "untouched");
        }
}

static bool is_ours(void *ctx, uint64_t pid)
{
        (void)ctx;
        return pid == 100;
}

static void other(struct afz_watched *w, uint64_t pid, const char *comm, unsigned pages)
{
        char text[64];
        snprintf(text, sizeof text, "90000000 %u 10 1 0 50 0\n", pages + 10);
        afz_watched_set(w, pid, "statm", text);
        snprintf(text, sizeof text, "%s\n", comm);
        afz_watched_set(w, pid, "comm", text);
}

static void test_other_programs(void **state)
{
        static const struct afz_fixture_row rows[] = {
                {"machine", "page_bytes 4096\nclock_ticks 100\n"}, {"proc/loadavg", "x\n"}, {0}};
        const unsigned mib = 256; /* pages */
        struct afz_watched w;
        struct afz_scout_others *o;
        struct afz_scout_report r = {0};
        (void)state;
        afz_watched_init(&w, afz_fixture_new(rows));
        assert_int_equal(afz_scout_others_new(&w.env, &o), 0);
        other(&w, 100, "job", 100 * mib);
        other(&w, 200, "browser", 300 * mib);
        other(&w, 201, "browser", 100 * mib);
        other(&w, 202, "editor", 500 * mib);
        afz_watched_set(&w, 203, "statm", "0 0 0 0 0 0 0\n"); /* a kernel thread */
        afz_watched_set(&w, 204, "statm", "nonsense\n");
        assert_true(afz_scout_others_due(o, 10 * S, true, 8 * GIB));
        afz_scout_others_walk(o, 10 * S, 8 * GIB, is_ours, NULL);
        afz_scout_others_tell(o, &r);
        assert_int_equal(r.other.pid, 0); /* what was there has not grown */

        other(&w, 100, "job", 5000 * mib);
        other(&w, 201, "browser", 700 * mib);
        other(&w, 202, "editor", 400 * mib);
        other(&w, 205, "ne\033w", 590 * mib);
        afz_scout_others_walk(o, 20 * S, 8 * GIB, is_ours, NULL);
        afz_scout_others_tell(o, &r);
        assert_string_equal(r.other.name, "browser");
        assert_int_equal(r.other.pid, 201);
        assert_int_equal(r.other.bytes, 1000 * MIB);
        assert_int_equal(r.other.grown_bytes, 600 * MIB);

        afz_watched_bury(&w, 200); /* a part of it ended: less, and the newcomer is first */
        afz_scout_others_walk(o, 30 * S, 8 * GIB, is_ours, NULL);
        afz_scout_others_tell(o, &r);
        assert_string_equal(r.other.name, "ne?w");
        assert_int_equal(r.other.grown_bytes, 590 * MIB);
        afz_scout_others_free(o);
        afz_scout_others_free(NULL);
        afz_watched_done(&w);
}

static void test_when_others_are_looked_at(void **state)
{
        static const struct afz_fixture_row rows[] = {{"proc/loadavg", "x\n"}, {0}};
        struct afz_watched w;
        struct afz_scout_others *o;
        (void)state;
        afz_watched_init(&w, afz_fixture_new(rows));
        assert_int_equal(afz_scout_others_new(&w.env, &o), 0);
        afz_scout_others_walk(o, 10 * S, 8 * GIB, is_ours, NULL);
        assert_false(afz_scout_others_due(o, 16 * S, true, 8 * GIB));
        assert_false(afz_scout_others_due(o, 16 * S, false, 0));
        assert_true(afz_scout_others_due(o, 40 * S, false, 0));
        assert_false(afz_scout_others_due(o, 14 * S, true, 8 * GIB - 100 * MIB));
        assert_true(afz_scout_others_due(o, 15 * S, true, 8 * GIB - 100 * MIB));
        assert_true(afz_scout_others_due(o, 11 * S, true, 7 * GIB));
        assert_true(afz_scout_others_due(o, 9 * S, true, 8 * GIB)); /* the clock went back */
        /* What was seen while memory went is looked at once more. */
        afz_scout_others_walk(o, 20 * S, 7 * GIB, is_ours, NULL);
        assert_true(afz_scout_others_due(o, 25 * S, true, 7 * GIB));
        afz_scout_others_walk(o, 25 * S, 7 * GIB, is_ours, NULL);
        assert_false(afz_scout_others_due(o, 30 * S, true, 7 * GIB));
        afz_scout_others_free(o);
        afz_watched_done(&w);
}

static uint64_t taken_bytes(struct afz_scout_shm *shm, struct afz_window *w, uint64_t after_ns)
{
        struct afz_scout_report r = {.shm = {.known = true, .size_bytes = GIB}};
        w->t_ns += after_ns;
        afz_scout_shm_take(shm, w, &r);
        return r.shm.unmapped_bytes;
}

/* Asking every process is dear, so it is done seldom where little happens, and at once where much
 * does or a file that is worth it may have been finished. */
static void test_pace_in_shm(void **state)
{
        struct afz_env env;
        struct afz_scout_shm *shm;
        struct afz_window w;
        struct afz_batch *batch;
        char path[64];
        (void)state;
        afz_window_init(&w, S);
        assert_int_equal(afz_batch_new(4, &batch), 0);
        w.sources = 1;
        w.source[0] = (struct afz_source){.name = "all", .now = batch};
        afz_batch_start(batch, S);
        assert_non_null(afz_batch_add(
                batch, (struct afz_subject){AFZ_KIND_PROC, (uint64_t)getpid(), 1}, "test"));
        assert_int_equal(afz_env_open_live(&env), 0);
        assert_int_equal(afz_scout_shm_new(&env, &shm), 0);
        afz_scout_shm_begin(shm);
        snprintf(path, sizeof path, "/dev/shm/afz-test-pace-%d", (int)getpid());
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        unlink(path); /* it counts as long as we hold it */
        assert_int_equal(posix_fallocate(fd, 0, 2 * MIB), 0);
        assert_int_equal(taken_bytes(shm, &w, S), 2 * MIB);
        assert_int_equal(posix_fallocate(fd, 0, 3 * MIB), 0);
        bool others = afz_scout_shm_fills(shm); /* somebody else may fill it, too */
        uint64_t bytes = taken_bytes(shm, &w, 1);
        if (!others && !afz_scout_shm_fills(shm))
                assert_int_equal(bytes, 2 * MIB);
        assert_int_equal(taken_bytes(shm, &w, 5 * S), 3 * MIB);
        assert_int_equal(posix_fallocate(fd, 0, 20 * MIB), 0);
        assert_int_equal(taken_bytes(shm, &w, 1), 20 * MIB);
        assert_int_equal(posix_fallocate(fd, 0, 21 * MIB), 0);
        assert_int_equal(taken_bytes(shm, &w, 1), 21 * MIB);
        close(fd);
        afz_scout_shm_free(shm);
        afz_env_done(&env);
        afz_batch_free(batch);
}

/* The test itself is the job: what it has open in /dev/shm is, and what is merely new is not. */
static void test_files_in_shm(void **state)
{
        struct afz_env env;
        struct afz_scout_shm *shm;
        struct afz_window w;
        struct afz_batch *batch;
        struct afz_scout_report r = {.shm = {.known = true, .size_bytes = GIB}};
        char path[64];
        (void)state;
        afz_window_init(&w, S);
        assert_int_equal(afz_batch_new(4, &batch), 0);
        w.sources = 1;
        w.source[0] = (struct afz_source){.name = "all", .now = batch};
        assert_int_equal(afz_env_open_live(&env), 0);
        assert_int_equal(afz_scout_shm_new(&env, &shm), 0);
        afz_scout_shm_take(shm, &w, &r); /* not begun: nothing can be told */
        assert_false(afz_scout_shm_fills(shm));
        afz_scout_shm_begin(shm);
        snprintf(path, sizeof path, "/dev/shm/afz-test-scout-%d", (int)getpid());
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(posix_fallocate(fd, 0, 32 * MIB), 0);
        assert_true(afz_scout_shm_fills(shm));
        afz_batch_start(batch, S);
        assert_non_null(afz_batch_add(
                batch, (struct afz_subject){AFZ_KIND_PROC, (uint64_t)getpid(), 1}, "test"));
        w.t_ns = S;
        afz_scout_shm_take(shm, &w, &r);
        assert_false(afz_scout_shm_fills(shm));
        assert_int_equal(r.shm.unmapped_bytes, 32 * MIB);
        assert_int_equal(r.shm.job_bytes, 32 * MIB);
        close(fd);
        const struct afz_shm_end end = {.asked_ns = S, .closed_ns = S};
        afz_scout_shm_sweep(shm, &end, &r);
        assert_true(r.swept.done);
        assert_int_equal(r.swept.files, 1);
        assert_int_equal(r.swept.bytes, 32 * MIB);
        assert_int_equal(access(path, F_OK), -1);
        afz_scout_shm_free(shm);
        afz_scout_shm_free(NULL);
        afz_env_done(&env);
        afz_batch_free(batch);
}

static void test_shared(void **state)
{
        static struct afz_scout_shared shared;
        struct afz_scout_report in = {.t_ns = 5, .count = 7, .own_cpu_ns = 11}, out = {.t_ns = 99};
        (void)state;
        assert_false(afz_scout_take(&shared, &out));
        assert_int_equal(out.t_ns, 99);
        strcpy(in.disk.mount, "/data");
        afz_scout_publish(&shared, &in);
        assert_true(afz_scout_take(&shared, &out));
        assert_memory_equal(&in, &out, sizeof in);

        atomic_fetch_add(&shared.seq, 1); /* it died in mid-write */
        out.t_ns = 99;
        assert_false(afz_scout_take(&shared, &out));
        assert_int_equal(out.t_ns, 99);

        atomic_store(&shared.seq, UINT32_MAX - 1); /* after four thousand million reports */
        afz_scout_publish(&shared, &in);
        assert_true(afz_scout_take(&shared, &out));
        assert_int_equal(out.count, 7);
}

static bool count_down(void *ctx)
{
        int *left = ctx;
        return (*left)-- > 0;
}

static void test_fill(void **state)
{
        int never = 0, forever = 1 << 30;
        (void)state;
        assert_int_equal(afz_scout_fill_measure(100 * MIB, 4, count_down, &forever), 0);
        assert_int_equal(afz_scout_fill_measure(8 * GIB, 4, count_down, &never), 0);
        uint64_t rate = afz_scout_fill_measure(8 * GIB, 1, count_down, &forever);
        assert_in_range(rate, GIB, 1024 * GIB);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_escapes),
                cmocka_unit_test(test_other_programs),
                cmocka_unit_test(test_when_others_are_looked_at),
                cmocka_unit_test(test_pace_in_shm),
                cmocka_unit_test(test_files_in_shm),
                cmocka_unit_test(test_shared),
                cmocka_unit_test(test_fill),
        };
        return cmocka_run_group_tests_name("scout_look", tests, NULL, NULL);
}
