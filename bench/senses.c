/* bench-senses WHAT PID ROUNDS: processor time of our readings, and of the bare system calls
 * beneath.
 *
 *   fast         stat, statm and io of every process of the tree, as in each tick
 *   fast-floor   the same files by pread() on descriptors that stay open, nothing parsed
 *   fast-open    the same files by open, read, close
 *   slow         status, fd, wchan, cmdline, environ, oom_score_adj of every process
 *   slow-floor   the same files by open, read, close, nothing parsed
 *   threads      stat of every thread
 *   threads-floor
 *   pss          smaps_rollup
 *   pss-floor
 *   host         the senses host, vm and psi: a tick without a job
 *   tick         a whole tick of the engine
 *
 * Prints one number a round: microseconds of processor time. The caller takes medians. With `each`
 * it prints a line a sense instead: its name, microseconds a reading, and microseconds a second
 * when there are ten ticks a second. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dir.h"
#include "engine.h"
#include "job_proc.h"
#include "sense.h"
#include "tree.h"

#define MAX_PROCESSES 8192
#define SPARE_FDS     384

static struct afz_env env;
static struct afz_tree *tree;
static struct afz_proc *procs;
static struct afz_batch *batch;
static int (*floor_fds)[AFZ_PROC_FILES];
static size_t slots;

static const char *const fast_files[] = {"stat", "statm", "io", NULL};

static double cpu_us(void)
{
        struct timespec ts;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static uint64_t pid_at(size_t i)
{
        return afz_tree_at(tree, i)->pid;
}

static void fast(void)
{
        afz_tree_update(tree);
        afz_batch_start(batch, afz_env_now(&env));
        for (size_t i = 0; i < slots; i++) {
                struct afz_member *m = afz_tree_at(tree, i);
                struct afz_sample *s =
                        afz_batch_add(batch, (struct afz_subject){AFZ_KIND_PROC, m->pid, 0}, "");
                afz_proc_read_fast(&procs[i], &env, m, s);
        }
}

static void read_one(const char *path)
{
        char buf[8192];
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read(fd, buf, sizeof buf) >= 0)
                close(fd);
}

static void read_files(const char *const *name)
{
        char path[64];
        for (size_t i = 0; i < slots; i++)
                for (int f = 0; name[f]; f++) {
                        snprintf(path, sizeof path, "/proc/%llu/%s", (unsigned long long)pid_at(i),
                                 name[f]);
                        read_one(path);
                }
}

/* Where there are more processes than descriptors, the rest is opened each time, as in a tick. */
static void fast_floor(void)
{
        char buf[1024];
        for (size_t i = 0; i < slots; i++) {
                for (int f = 0; f < AFZ_PROC_FILES; f++) {
                        char path[64];
                        if (floor_fds[i][f] >= 0) {
                                if (pread(floor_fds[i][f], buf, sizeof buf, 0) < 0) {
                                        perror("bench-senses: pread");
                                        exit(1);
                                }
                                continue;
                        }
                        snprintf(path, sizeof path, "/proc/%llu/%s", (unsigned long long)pid_at(i),
                                 fast_files[f]);
                        read_one(path);
                }
        }
}

static void fast_open(void)
{
        read_files(fast_files);
}

static void slow(void)
{
        uint64_t now = afz_env_now(&env);
        for (size_t i = 0; i < slots; i++) {
                procs[i].slow_next_ns = 0;
                procs[i].command_next_ns = 0; /* all of it, as below */
                afz_proc_read_slow(&procs[i], &env, &procs[0], i == 0, now, afz_proc_slow_ns(1));
        }
}

static void slow_floor(void)
{
        static const char *const name[] = {"status",  "wchan",         "cmdline",
                                           "environ", "oom_score_adj", NULL};
        char path[64];
        struct stat st;
        read_files(name);
        for (size_t i = 0; i < slots; i++) {
                snprintf(path, sizeof path, "/proc/%llu/fd", (unsigned long long)pid_at(i));
                int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (fd >= 0 && fstat(fd, &st) == 0)
                        close(fd);
        }
}

static void threads_only(void)
{
        uint64_t now = afz_env_now(&env);
        for (size_t i = 0; i < slots; i++) {
                procs[i].threads_next_ns = 0;
                afz_proc_read_threads(&procs[i], &env, now);
        }
}

static void threads_floor(void)
{
        char path[64];
        struct afz_dir dir;
        for (size_t i = 0; i < slots; i++) {
                snprintf(path, sizeof path, "%llu/task", (unsigned long long)pid_at(i));
                int r = afz_dir_open(&dir, &env, AFZ_ROOT_PROC, path);
                while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                        char file[128];
                        snprintf(file, sizeof file, "/proc/%s/%.20s/stat", path, dir.name);
                        read_one(file);
                }
                afz_dir_close(&dir);
        }
}

static void pss(void)
{
        struct afz_pss_gate gate;
        struct afz_sample s = {.subject.kind = AFZ_KIND_PROC};
        afz_pss_gate_init(&gate, afz_env_now(&env));
        for (size_t i = 0; i < slots; i++)
                afz_proc_read_pss(&procs[i], &env, &gate, &s);
}

static void pss_floor(void)
{
        static const char *const name[] = {"smaps_rollup", NULL};
        read_files(name);
}

static void *host_state, *vm_state, *psi_state;

static void host(void)
{
        afz_batch_start(batch, afz_env_now(&env));
        afz_sense_host.read(host_state, batch);
        afz_sense_vm.read(vm_state, batch);
        afz_sense_psi.read(psi_state, batch);
}

static struct afz_engine *engine;

static void tick(void)
{
        afz_engine_tick(engine);
}

static const struct what {
        const char *name;
        void (*run)(void);
        long pause_us; /* between rounds: a tick has a pace */
} whats[] = {
        {"fast", fast, 0},
        {"fast-floor", fast_floor, 0},
        {"fast-open", fast_open, 0},
        {"slow", slow, 0},
        {"slow-floor", slow_floor, 0},
        {"threads", threads_only, 0},
        {"threads-floor", threads_floor, 0},
        {"pss", pss, 0},
        {"pss-floor", pss_floor, 0},
        {"host", host, 0},
        {"tick", tick, 100000},
};

/* Descriptors are either ours or the floor's: together they would not do for 5,000 processes. */
static void open_all(uint64_t pid, bool floor_only)
{
        struct rlimit lim;
        struct afz_target target = {.pid = pid};
        if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
                lim.rlim_cur = lim.rlim_max;
                setrlimit(RLIMIT_NOFILE, &lim);
        }
        size_t keep = ((size_t)lim.rlim_cur - SPARE_FDS) / AFZ_PROC_FILES;
        if (afz_env_open_live(&env) < 0 || afz_tree_new(&env, pid, MAX_PROCESSES, &tree) < 0 ||
            afz_batch_new(MAX_PROCESSES, &batch) < 0 ||
            afz_sense_host.open(&env, &target, &host_state) < 0 ||
            afz_sense_vm.open(&env, &target, &vm_state) < 0 ||
            afz_sense_psi.open(&env, &target, &psi_state) < 0) {
                fprintf(stderr, "bench-senses: cannot look at %llu\n", (unsigned long long)pid);
                exit(1);
        }
        slots = afz_tree_slots(tree);
        procs = calloc(slots, sizeof *procs);
        floor_fds = calloc(slots, sizeof *floor_fds);
        for (size_t i = 0; i < slots; i++) {
                afz_proc_enter(&procs[i], &env, afz_tree_at(tree, i), !floor_only && i < keep, 0);
                for (int f = 0; f < AFZ_PROC_FILES; f++) {
                        char path[64];
                        snprintf(path, sizeof path, "/proc/%llu/%s", (unsigned long long)pid_at(i),
                                 fast_files[f]);
                        floor_fds[i][f] =
                                floor_only && i < keep ? open(path, O_RDONLY | O_CLOEXEC) : -1;
                }
        }
}

/* Ten ticks a second, as a watch has them: between two of them the machine forgets us. */
static void each(uint64_t pid, long rounds)
{
        struct afz_target target = {.pid = pid};
        for (unsigned i = 0; i < afz_sense_count; i++) {
                const struct afz_sense *sense = afz_sense_table[i];
                struct afz_batch *out;
                void *state;
                if (sense->open(&env, &target, &state) < 0)
                        continue;
                if (afz_batch_new(sense->max_samples, &out) < 0)
                        exit(1);
                double sum = 0;
                long reads = 0;
                uint64_t next_ns = 0;
                for (long k = -1; k < rounds; k++) {
                        struct timespec pause = {0, 100000000};
                        nanosleep(&pause, NULL);
                        uint64_t now_ns = afz_env_now(&env);
                        if (now_ns < next_ns)
                                continue;
                        next_ns = now_ns + sense->every_ns;
                        double t = cpu_us();
                        afz_batch_start(out, now_ns);
                        sense->read(state, out);
                        if (k >= 0) {
                                sum += cpu_us() - t;
                                reads++;
                        }
                }
                printf("%s %.1f %.1f\n", sense->name, reads ? sum / (double)reads : 0,
                       sum / (double)rounds * 10);
                afz_batch_free(out);
                sense->close(state);
        }
}

int main(int argc, char **argv)
{
        if (argc != 4) {
                fputs("usage: bench-senses WHAT PID ROUNDS\n", stderr);
                return 2;
        }
        uint64_t pid = strtoull(argv[2], NULL, 10);
        open_all(pid, strcmp(argv[1], "fast-floor") == 0);
        if (strcmp(argv[1], "each") == 0) {
                each(pid, strtol(argv[3], NULL, 10));
                return 0;
        }
        for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++) {
                if (strcmp(whats[i].name, argv[1]) != 0)
                        continue;
                if (whats[i].run == tick &&
                    afz_engine_new(&env, &(struct afz_target){.pid = pid}, &engine) < 0)
                        return 1;
                whats[i].run();
                for (long k = strtol(argv[3], NULL, 10); k > 0; k--) {
                        struct timespec pause = {0, whats[i].pause_us * 1000};
                        nanosleep(&pause, NULL);
                        double t = cpu_us();
                        whats[i].run();
                        printf("%.2f\n", cpu_us() - t);
                }
                afz_engine_free(engine);
                return 0;
        }
        fprintf(stderr, "bench-senses: no '%s'\n", argv[1]);
        return 2;
}
