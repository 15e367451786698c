/* bench-flight HOURS [FOLDER]: what a long recording costs. With 0 hours, only that of reading the
 * one in FOLDER.
 *
 * Makes up a training job of 32 lively processes on a busy machine, tells it at 10 Hz through the
 * real recorder's functions in as little time as that takes, and prints one line of JSON: bytes on
 * disk (at the end, and the most there ever were), processor time of packing a tick, of writing and
 * of thinning (as a fraction of one core at 10 Hz), and the time to open the recording: all of it,
 * a few metrics, and with all judges asked, as at the end of `run` and as in `report`, which keeps
 * it (processor and wall clock; the median, the least and the most of some rounds).
 *
 * The job is no worst case that could be thought of, and no easy one: each process's memory,
 * faults, processor time and I/O change in every tick, by amounts with noise in them. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "explain.h"
#include "flight_file.h"
#include "pack.h"

enum { ROUNDS = 7, THIN_S = 300 }; /* the writer asks as often (recorder_writer.c) */
enum { PROCESSES = 32, HZ = 10, PAGE = 4096, SCOUT_ROOM = 256 << 10, GUARD_ROOM = 8 << 10 };

#define RUN      "bench"
#define START_NS (UINT64_C(1000) * AFZ_NS_PER_S)
#define TICK_NS  (AFZ_NS_PER_S / HZ)

static uint64_t seed = 88172645463325252;

static int64_t noise(int64_t below)
{
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return (int64_t)(seed >> 11) % below;
}

static void must(int r, const char *what)
{
        if (r >= 0)
                return;
        fprintf(stderr, "bench-flight: %s: %s\n", what, strerror(-r));
        exit(1);
}

static double cpu_s(void)
{
        return (double)afz_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

static double wall_s(void)
{
        return (double)afz_clock_ns(CLOCK_MONOTONIC) / 1e9;
}

/* ---- the job ---- */

struct process {
        struct afz_sample sample;
        char detail[160];
        int64_t anon_pages, file_pages;
};

struct world {
        struct process process[PROCESSES];
        struct afz_sample host, vm, psi, cpu, job, cgroup, disk, fs, gpu, heat, self, hold;
        uint64_t tick;
};

static void set(struct afz_sample *s, enum afz_metric m, int64_t v)
{
        afz_sample_set(s, m, v);
}

static void add(struct afz_sample *s, enum afz_metric m, int64_t v)
{
        afz_sample_set(s, m, afz_sample_or(s, m, 0) + v);
}

static struct afz_sample made(enum afz_kind kind, uint64_t id, const char *name)
{
        return (struct afz_sample){.subject = {kind, id, 0}, .name = name};
}

static void make_process(struct process *p, unsigned i)
{
        p->sample = made(AFZ_KIND_PROC, 4000 + i, "python3");
        p->sample.subject.start = 123456 + i;
        snprintf(p->detail, sizeof p->detail,
                 "/opt/venv/bin/python3 train.py --model resnet50 --data /data/imagenet --batch 64 "
                 "--workers 31 --rank %u",
                 i);
        p->sample.detail = p->detail;
        p->sample.note = i ? "loader worker" : "main";
        p->anon_pages = i ? 40000 : 1000000;
        p->file_pages = 30000;
        set(&p->sample, AFZ_PROC_PPID, i ? 4000 : 3999);
        set(&p->sample, AFZ_PROC_ROLE, i ? 5 : 1);
        set(&p->sample, AFZ_PROC_THREADS, i ? 3 : 40);
        set(&p->sample, AFZ_PROC_FDS_LIMIT, 1024);
        set(&p->sample, AFZ_PROC_SWAP, 0);
        set(&p->sample, AFZ_PROC_PINNED, 0);
        set(&p->sample, AFZ_PROC_IO_WAIT, 0);
}

static void make_world(struct world *w)
{
        memset(w, 0, sizeof *w);
        for (unsigned i = 0; i < PROCESSES; i++)
                make_process(&w->process[i], i);
        w->host = made(AFZ_KIND_HOST, 0, "host");
        w->vm = made(AFZ_KIND_VM, 0, "vm");
        w->psi = made(AFZ_KIND_PSI, 0, "psi");
        w->cpu = made(AFZ_KIND_CPU, AFZ_CPU_ALL, "cpu");
        w->job = made(AFZ_KIND_JOB, 0, "job");
        w->cgroup = made(AFZ_KIND_CGROUP, 77, "/antifreeze.slice/run.scope");
        w->disk = made(AFZ_KIND_DISK, 259 << 20, "nvme0n1");
        w->fs = made(AFZ_KIND_FS, 31, "/data");
        w->gpu = made(AFZ_KIND_GPU, 0, "NVIDIA H200");
        w->heat = made(AFZ_KIND_THERMAL, 3, "x86_pkg_temp");
        w->self = made(AFZ_KIND_SELF, 0, "antifreeze");
        w->hold = made(AFZ_KIND_HOLD, 0, "hold");
}

/* What the fast files tell, in every tick; the slow ones, now and then. */
static void move_process(struct process *p, uint64_t tick)
{
        struct afz_sample *s = &p->sample;
        int64_t busy = noise(11);
        p->anon_pages += noise(401) - 200;
        p->file_pages += noise(9) - 4;
        set(s, AFZ_PROC_STATE, "RSSD"[noise(4)]);
        add(s, AFZ_PROC_USER, busy * 10000000);
        add(s, AFZ_PROC_SYSTEM, noise(3) * 10000000);
        add(s, AFZ_PROC_MINOR_FAULTS, noise(500));
        add(s, AFZ_PROC_MAJOR_FAULTS, noise(50) == 0);
        set(s, AFZ_PROC_RSS, (p->anon_pages + p->file_pages) * PAGE);
        set(s, AFZ_PROC_RSS_ANON, p->anon_pages * PAGE);
        set(s, AFZ_PROC_RSS_SHARED, p->file_pages * PAGE);
        set(s, AFZ_PROC_NEED, (p->anon_pages + 100) * PAGE);
        add(s, AFZ_PROC_READ, noise(20) * PAGE);
        add(s, AFZ_PROC_WRITTEN, noise(10) == 0 ? PAGE : 0);
        add(s, AFZ_PROC_READ_CALLS, noise(200000));
        add(s, AFZ_PROC_WRITE_CALLS, noise(1000));
        if (tick % 10 == 0) { /* status, fd, task */
                set(s, AFZ_PROC_RSS_FILE, p->file_pages * PAGE);
                set(s, AFZ_PROC_RSS_SHMEM, 1 << 20);
                set(s, AFZ_PROC_RSS_PEAK,
                    (p->anon_pages + p->file_pages + 3000) / 4096 * 4096 * PAGE);
                set(s, AFZ_PROC_THREADS_RUNNING, noise(3));
                set(s, AFZ_PROC_THREADS_DISK, noise(2));
                set(s, AFZ_PROC_FDS, 60 + noise(3));
        }
        if (tick % 50 == 0) { /* smaps_rollup, gated */
                set(s, AFZ_PROC_PSS, (p->anon_pages + p->file_pages / 8) * PAGE);
                set(s, AFZ_PROC_PSS_ANON, p->anon_pages * PAGE);
                set(s, AFZ_PROC_PSS_FILE, p->file_pages / 8 * PAGE);
                set(s, AFZ_PROC_PSS_SHMEM, 0);
                set(s, AFZ_PROC_SWAP_PSS, 0);
        }
}

static void move_job(struct world *w)
{
        int64_t anon = 0, file = 0;
        for (unsigned i = 0; i < PROCESSES; i++) {
                anon += w->process[i].anon_pages;
                file += w->process[i].file_pages;
        }
        set(&w->job, AFZ_JOB_PROCESSES, PROCESSES);
        set(&w->job, AFZ_JOB_RUNNING, noise(PROCESSES));
        set(&w->job, AFZ_JOB_DISK_WAIT, noise(4));
        set(&w->job, AFZ_JOB_THREADS, 133);
        set(&w->job, AFZ_JOB_NEED, anon * PAGE);
        set(&w->job, AFZ_JOB_ANON, anon * PAGE);
        set(&w->job, AFZ_JOB_RSS, (anon + file) * PAGE);
        set(&w->job, AFZ_JOB_PSS, (anon + file / 8) * PAGE);
        add(&w->job, AFZ_JOB_CPU, noise(300) * 10000000);
        add(&w->job, AFZ_JOB_READ, noise(600) * PAGE);
        add(&w->job, AFZ_JOB_WRITTEN, noise(60) * PAGE);
        add(&w->job, AFZ_JOB_READ_CALLS, noise(6000000));
        add(&w->job, AFZ_JOB_MINOR_FAULTS, noise(16000));
        set(&w->hold, AFZ_HOLD_NEED, anon * PAGE);
        set(&w->hold, AFZ_HOLD_AWAY, 0);
        set(&w->hold, AFZ_HOLD_BUDGET, INT64_C(48) << 30);
        set(&w->hold, AFZ_HOLD_HARD, INT64_C(50) << 30);
        set(&w->hold, AFZ_HOLD_AVAILABLE, ((INT64_C(64) << 18) - anon - noise(3000)) * PAGE);
        add(&w->hold, AFZ_HOLD_STALL, noise(20) == 0 ? noise(1000) * 1000 : 0);
        set(&w->hold, AFZ_HOLD_PROCESSES, PROCESSES);
        set(&w->hold, AFZ_HOLD_STAGE, 0);
}

static void move_machine(struct world *w)
{
        static const enum afz_metric moving[] = {
                AFZ_HOST_MEM_FREE,     AFZ_HOST_MEM_AVAILABLE,
                AFZ_HOST_CACHED,       AFZ_HOST_BUFFERS,
                AFZ_HOST_DIRTY,        AFZ_HOST_WRITEBACK,
                AFZ_HOST_ANON,         AFZ_HOST_MAPPED,
                AFZ_HOST_SHMEM,        AFZ_HOST_SLAB_RECLAIMABLE,
                AFZ_HOST_PAGE_TABLES,  AFZ_HOST_COMMITTED,
                AFZ_HOST_KERNEL_STACK,
        };
        static const enum afz_metric still[] = {AFZ_HOST_MEM_TOTAL,  AFZ_HOST_SWAP_TOTAL,
                                                AFZ_HOST_SWAP_FREE,  AFZ_HOST_MLOCKED,
                                                AFZ_HOST_HUGE_TOTAL, AFZ_HOST_COMMIT_LIMIT};
        for (size_t i = 0; i < sizeof moving / sizeof moving[0]; i++)
                set(&w->host, moving[i], (1000000 + noise(2000)) * PAGE);
        for (size_t i = 0; i < sizeof still / sizeof still[0]; i++)
                set(&w->host, still[i], INT64_C(1) << 36);
        add(&w->psi, AFZ_PSI_CPU_SOME, noise(20000) * 1000);
        add(&w->psi, AFZ_PSI_IO_SOME, noise(9000) * 1000);
        add(&w->psi, AFZ_PSI_MEMORY_SOME, noise(9) == 0 ? noise(900) * 1000 : 0);
        set(&w->psi, AFZ_PSI_CPU_SOME_AVG10, 900 + noise(30));
        set(&w->psi, AFZ_PSI_IO_SOME_AVG10, 300 + noise(30));
        set(&w->self, AFZ_SELF_TICK, 900000 + noise(300000));
        add(&w->self, AFZ_SELF_CPU, 900000 + noise(300000));
        set(&w->self, AFZ_SELF_RSS, 6 << 20);
        add(&w->self, AFZ_SELF_TICKS, 1);
}

static void move_slow(struct world *w)
{
        static const enum afz_metric cores[] = {AFZ_CPU_USER, AFZ_CPU_SYSTEM, AFZ_CPU_IDLE,
                                                AFZ_CPU_IOWAIT, AFZ_CPU_IRQ};
        for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++)
                add(&w->cpu, cores[i], noise(400) * 10000000);
        add(&w->cpu, AFZ_CPU_SWITCHES, noise(90000));
        set(&w->cpu, AFZ_CPU_RUNNING, noise(40));
        set(&w->cpu, AFZ_CPU_LOAD1, 2000 + noise(50));
        add(&w->vm, AFZ_VM_MAJOR_FAULTS, noise(9));
        add(&w->vm, AFZ_VM_REFAULT_FILE, noise(900));
        set(&w->cgroup, AFZ_CGROUP_LEVEL, 0);
        set(&w->cgroup, AFZ_CGROUP_CURRENT, (9000000 + noise(9000)) * PAGE);
        set(&w->cgroup, AFZ_CGROUP_ANON, (2000000 + noise(9000)) * PAGE);
        set(&w->cgroup, AFZ_CGROUP_FILE, (7000000 + noise(9000)) * PAGE);
        set(&w->cgroup, AFZ_CGROUP_NEED, (2000000 + noise(9000)) * PAGE);
        add(&w->cgroup, AFZ_CGROUP_CPU, noise(INT64_C(16000000000)));
        add(&w->disk, AFZ_DISK_READ, noise(90000) * 512);
        add(&w->disk, AFZ_DISK_READS, noise(9000));
        add(&w->disk, AFZ_DISK_BUSY, noise(1000) * 1000000);
        add(&w->disk, AFZ_DISK_READ_TIME, noise(9000) * 1000000);
        set(&w->disk, AFZ_DISK_JOB_USES, 1);
        set(&w->fs, AFZ_FS_TOTAL, INT64_C(1) << 40);
        set(&w->fs, AFZ_FS_AVAILABLE, (INT64_C(1) << 39) - noise(9000) * PAGE);
        set(&w->gpu, AFZ_GPU_MEM_USED, (INT64_C(60) << 30) + noise(900) * (2 << 20));
        set(&w->gpu, AFZ_GPU_UTIL, noise(101) * 100);
        set(&w->gpu, AFZ_GPU_TEMP, (60 + noise(9)) * 1000);
        set(&w->gpu, AFZ_GPU_POWER, 400000 + noise(90000));
        set(&w->gpu, AFZ_GPU_CLOCK, (1700 + noise(20) * 15) * INT64_C(1000000));
        set(&w->heat, AFZ_THERMAL_TEMP, (70 + noise(9)) * 1000);
}

static void move(struct world *w)
{
        for (unsigned i = 0; i < PROCESSES; i++)
                move_process(&w->process[i], w->tick + i);
        move_job(w);
        move_machine(w);
        if (w->tick % 10 == 0)
                move_slow(w);
        w->tick++;
}

/* ---- telling it ---- */

static struct afz_pack scout, guard;
static uint64_t packed, dropped;
static double pack_s, write_s, thin_s, thin_most_s;
static int64_t most_bytes;
static unsigned thinned;

static void make_pack(struct afz_pack *pack, size_t cap)
{
        *pack = (struct afz_pack){.buf = malloc(cap), .cap = cap};
        pack->seen = calloc(AFZ_PACK_SUBJECTS, sizeof *pack->seen);
        if (!pack->buf || !pack->seen)
                must(-ENOMEM, "pack");
}

static void tell(const struct world *w, uint64_t t_ns)
{
        const struct afz_sample *fast[] = {&w->host, &w->psi, &w->job, &w->self};
        const struct afz_sample *slow[] = {&w->cpu, &w->vm,  &w->cgroup, &w->disk,
                                           &w->fs,  &w->gpu, &w->heat};
        for (size_t i = 0; i < sizeof fast / sizeof fast[0]; i++)
                (void)afz_pack_sample(&scout, t_ns, fast[i]);
        for (unsigned i = 0; i < PROCESSES; i++)
                (void)afz_pack_sample(&scout, t_ns, &w->process[i].sample);
        for (size_t i = 0; w->tick % 10 == 1 && i < sizeof slow / sizeof slow[0]; i++)
                (void)afz_pack_sample(&scout, t_ns, slow[i]);
        (void)afz_pack_sample(&guard, t_ns, &w->hold);
        if (w->tick % HZ == 0)
                (void)afz_pack_mark(&guard, t_ns, AFZ_MARK_UNUSED, (int64_t)(w->tick / HZ), "");
}

static int64_t file_bytes(int dir_fd)
{
        struct stat st;
        return fstatat(dir_fd, AFZ_FLIGHT_NAME, &st, 0) == 0 ? st.st_size : -1;
}

static void write_packs(struct afz_flight_writer *writer, int dir_fd, uint64_t t_ns, bool thin)
{
        double before = cpu_s();
        packed += scout.len + guard.len;
        dropped += scout.dropped + guard.dropped;
        must(afz_flight_write(writer, guard.buf, guard.len), "write");
        must(afz_flight_write(writer, scout.buf, scout.len), "write");
        double between = cpu_s();
        write_s += between - before;
        int64_t bytes = thin ? file_bytes(dir_fd) : 0;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
        int r = thin ? afz_flight_thin(writer, t_ns) : 0;
        must(r, "thin");
        double took = cpu_s() - between;
        thin_s += took;
        thin_most_s = took > thin_most_s ? took : thin_most_s;
        thinned += r > 0;
}

static void record(int dir_fd, uint64_t ticks)
{
        static struct world w;
        static char cmd[] = "python3 train.py", none[] = "";
        struct afz_flight_head head = {.run = RUN, .cmd = cmd, .cwd = none, .git = none};
        struct afz_flight_writer *writer;
        make_world(&w);
        make_pack(&scout, SCOUT_ROOM);
        make_pack(&guard, GUARD_ROOM);
        must(afz_flight_create(dir_fd, &head, START_NS, &writer), "create");
        for (uint64_t i = 0; i < ticks; i++) {
                uint64_t t_ns = START_NS + i * TICK_NS;
                if (i % 5 == 0) {
                        afz_pack_start(&scout, START_NS, t_ns);
                        afz_pack_start(&guard, START_NS, t_ns);
                }
                move(&w);
                double before = cpu_s();
                tell(&w, t_ns);
                pack_s += cpu_s() - before;
                if (i % 5 == 4)
                        write_packs(writer, dir_fd, t_ns, i % (THIN_S * HZ) == 4);
        }
        must(afz_flight_close(writer), "close");
}

/* ---- reading it ---- */

static bool a_few(enum afz_metric metric)
{
        return metric == AFZ_HOLD_NEED || metric == AFZ_JOB_NEED || metric == AFZ_PROC_NEED ||
               metric == AFZ_PROC_STATE || afz_metric_kind(metric) == AFZ_KIND_PSI ||
               metric == AFZ_HOST_MEM_AVAILABLE;
}

struct times {
        double cpu[ROUNDS], wall[ROUNDS];
        size_t points;
};

static size_t count_points(const struct afz_flight *f)
{
        size_t points = 0;
        for (size_t i = 0; i < f->tracks; i++)
                for (size_t c = 0; c < f->track[i].columns; c++)
                        points += f->track[i].column[c].count;
        return points;
}

static void read_round(int dir_fd, bool (*wanted)(enum afz_metric), struct afz_flight *ret)
{
        char why[256] = "";
        must(afz_flight_read(dir_fd, wanted, ret, why), why);
}

/* Nobody saw its end, so everything is asked. */
static void explain(int dir_fd, struct afz_flight *ret)
{
        static struct afz_run_known known;
        char why[256] = "";
        known = (struct afz_run_known){.outcome.end.how = AFZ_END_LOST, .page.id = RUN};
        must(afz_explain_known(&known, dir_fd, ret, why), why);
        if (known.outcome.verdicts == 0)
                must(-ENODATA, "no verdict");
}

static void judge_round(int dir_fd, bool (*wanted)(enum afz_metric), struct afz_flight *ret)
{
        (void)wanted;
        afz_flight_init(ret);
        explain(dir_fd, NULL);
}

static void show_round(int dir_fd, bool (*wanted)(enum afz_metric), struct afz_flight *ret)
{
        (void)wanted;
        explain(dir_fd, ret);
}

static int compare(const void *a, const void *b)
{
        const double *x = a, *y = b;
        return (*x > *y) - (*x < *y);
}

static struct times timed(int dir_fd,
                          void (*round)(int, bool (*)(enum afz_metric), struct afz_flight *),
                          bool (*wanted)(enum afz_metric))
{
        struct times t = {0};
        for (int i = 0; i < ROUNDS; i++) {
                struct afz_flight f;
                double cpu = cpu_s(), wall = wall_s();
                round(dir_fd, wanted, &f);
                t.points = count_points(&f);
                afz_flight_done(&f);
                t.cpu[i] = cpu_s() - cpu;
                t.wall[i] = wall_s() - wall;
        }
        qsort(t.cpu, ROUNDS, sizeof t.cpu[0], compare);
        qsort(t.wall, ROUNDS, sizeof t.wall[0], compare);
        return t;
}

static void put_times(const char *name, const struct times *t)
{
        printf(",\"%s\":{\"cpu_s\":[%.3f,%.3f,%.3f],\"wall_s\":[%.3f,%.3f,%.3f],\"points\":%zu}",
               name, t->cpu[ROUNDS / 2], t->cpu[0], t->cpu[ROUNDS - 1], t->wall[ROUNDS / 2],
               t->wall[0], t->wall[ROUNDS - 1], t->points);
}

static void put_making(double hours, uint64_t ticks, double made_s)
{
        double real_s = (double)ticks / HZ;
        printf("\"hours\":%.2f,\"made_s\":%.1f,\"most_bytes\":%jd,\"packed_bytes\":%ju,"
               "\"dropped\":%ju,\"pack_us_per_tick\":%.1f,\"pack_core_fraction\":%.6f,"
               "\"write_core_fraction\":%.6f,\"thin_core_fraction\":%.6f,\"thinned\":%u,"
               "\"thin_most_s\":%.3f,",
               hours, made_s, (intmax_t)most_bytes, (uintmax_t)packed, (uintmax_t)dropped,
               pack_s / (double)ticks * 1e6, pack_s / real_s, write_s / real_s, thin_s / real_s,
               thinned, thin_most_s);
}

int main(int argc, char **argv)
{
        double hours = argc > 1 ? strtod(argv[1], NULL) : 24;
        char temporary[] = "/tmp/bench-flight-XXXXXX";
        const char *folder = argc > 2 ? argv[2] : mkdtemp(temporary);
        int dir_fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (dir_fd < 0 || !(hours >= 0 && hours < 1000) || (hours <= 0 && argc <= 2))
                must(-EINVAL, "usage: bench-flight HOURS [FOLDER]");
        uint64_t ticks = (uint64_t)(hours * 3600 * HZ);
        double begun = wall_s();
        printf("{");
        if (ticks > 0) {
                record(dir_fd, ticks);
                put_making(hours, ticks, wall_s() - begun);
        }
        printf("\"bytes\":%jd", (intmax_t)file_bytes(dir_fd));
        struct times all = timed(dir_fd, read_round, NULL), few = timed(dir_fd, read_round, a_few);
        struct times judge = timed(dir_fd, judge_round, NULL);
        struct times show = timed(dir_fd, show_round, NULL);
        put_times("read_all", &all);
        put_times("read_few", &few);
        put_times("open_and_judge", &judge);
        put_times("open_judge_and_show", &show);
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        printf(",\"rss_most_bytes\":%jd}\n", (intmax_t)usage.ru_maxrss * 1024);
        if (argc <= 2) {
                unlinkat(dir_fd, AFZ_FLIGHT_NAME, 0);
                rmdir(folder);
        }
        close(dir_fd);
        return 0;
}
