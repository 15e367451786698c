#include "bottleneck.h"

#include <stdio.h>
#include <string.h>

/* Every threshold of this judge. Rates are over the last reading, so they are set where a person at
 * the machine would agree, not where a statistic begins to differ from noise. */
static const struct {
        double swap_bytes_per_s; /* each way */
        double memory_pressure;  /* share of time in which some task waited for memory */
        double disk_pressure;    /* the same for disks */
        double disk_busy;        /* share of time with a request in flight */
        double network_wait;     /* round trips' waiting, summed, in seconds a second */
        double gpu_busy;         /* permyriad */
        double cpu_pressure;     /* share of time in which some task waited for a core */
        double runnable_factor;  /* runnable tasks a core */
        double cpu_some;         /* cores the job uses, below which it does not want any */
        double io_bytes_per_s; /* that the job moves itself, below which a disk is not its affair */
        double cpu_busy;       /* cores the job uses, below which it is not computing */
} at = {
        .swap_bytes_per_s = 4e6, /* 1000 pages a second: beyond any background ageing */
        .memory_pressure = 0.10, /* systemd-oomd warns at 20 %; a desktop stutters at 10 % */
        .disk_pressure = 0.20,   /* one step in five waits */
        .disk_busy = 0.50,       /* else the waiting is not this disk's */
        .network_wait = 0.50,    /* one request in flight half of the time */
        .gpu_busy = 8000,        /* 80 %: a well-fed GPU */
        .cpu_pressure = 0.30,    /* some task waits a third of the time */
        .runnable_factor = 1.5,  /* half as many again as can run */
        .cpu_some = 0.05,        /* a twentieth: more than a heartbeat */
        .io_bytes_per_s = 256e3, /* what the slowest disk gives in random reads */
        .cpu_busy = 0.70,        /* of one core */
};

/* All that the rules look at, worked out once. Negative: not known. */
struct facts {
        double swap_in, swap_out, memory, io, cpu_wait;
        double job_cores, runnable_per_core, cores;
        double disk_busy, net_wait, gpu_util;
        const char *disk, *mount, *gpu;
        bool all_stopped, frozen, ended, waits_for_disk, wants_disk, wants_cores, any_rate;
};

static double rate_or_unknown(const struct afz_window *w, const struct afz_sample *s,
                              enum afz_metric m)
{
        double r;
        return afz_window_rate(w, s, m, &r) ? r : -1;
}

static void find_disk(const struct afz_window *w, struct facts *f)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        while ((s = afz_window_next(w, AFZ_KIND_DISK, &cursor))) {
                double busy = rate_or_unknown(w, s, AFZ_DISK_BUSY) / 1e9;
                /* Where it is known which disk the job uses, the others are not its reason. */
                if (w->job_pid != 0 && afz_sample_or(s, AFZ_DISK_JOB_USES, 1) == 0)
                        continue;
                if (busy > f->disk_busy) {
                        f->disk_busy = busy;
                        f->disk = s->name;
                }
        }
}

static void find_mount(const struct afz_window *w, struct facts *f)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        while ((s = afz_window_next(w, AFZ_KIND_FS, &cursor))) {
                double wait = rate_or_unknown(w, s, AFZ_FS_NET_WAIT) / 1e9;
                if (wait > f->net_wait) {
                        f->net_wait = wait;
                        f->mount = s->name;
                }
        }
}

static bool job_is_on(const struct afz_window *w, uint64_t gpu)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        while ((s = afz_window_next(w, AFZ_KIND_GPU_PROC, &cursor)))
                if ((uint64_t)afz_sample_or(s, AFZ_GPU_PROC_GPU, -1) == gpu &&
                    afz_sample_or(s, AFZ_GPU_PROC_IN_JOB, 0) != 0)
                        return true;
        return false;
}

static void find_gpu(const struct afz_window *w, struct facts *f)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        while ((s = afz_window_next(w, AFZ_KIND_GPU, &cursor))) {
                int64_t util;
                if (!afz_sample_get(s, AFZ_GPU_UTIL, &util))
                        continue;
                if (w->job_pid != 0 && !job_is_on(w, s->subject.id))
                        continue;
                if ((double)util > f->gpu_util) {
                        f->gpu_util = (double)util;
                        f->gpu = s->name;
                }
        }
}

/* Time is counted in ticks of 10 ms: over a short look a single thread can seem to have had more
 * than one core. */
static double cores_of_job(const struct afz_window *w, const struct afz_sample *job)
{
        double cores = rate_or_unknown(w, job, AFZ_JOB_CPU) / 1e9;
        double threads = (double)afz_sample_or(job, AFZ_JOB_THREADS, INT64_MAX);
        return cores < threads ? cores : threads;
}

/* Without a job the machine is what computes, with all that starts and ends between two looks. */
static double cores_of_machine(const struct afz_window *w, const struct afz_sample *cpu)
{
        double user, system, irq;
        if (!afz_window_rate(w, cpu, AFZ_CPU_USER, &user) ||
            !afz_window_rate(w, cpu, AFZ_CPU_SYSTEM, &system) ||
            !afz_window_rate(w, cpu, AFZ_CPU_IRQ, &irq))
                return -1;
        return (user + system + irq) / 1e9;
}

static void find_job(const struct afz_window *w, struct facts *f)
{
        const struct afz_sample *job = afz_window_one(w, AFZ_KIND_JOB);
        int64_t processes, stopped;
        if (!job || !afz_sample_get(job, AFZ_JOB_PROCESSES, &processes))
                return;
        f->ended = processes == afz_sample_or(job, AFZ_JOB_ZOMBIES, 0);
        f->all_stopped = w->job_pid != 0 && afz_sample_get(job, AFZ_JOB_STOPPED, &stopped) &&
                         stopped + afz_sample_or(job, AFZ_JOB_ZOMBIES, 0) == processes &&
                         stopped > 0;
        f->waits_for_disk = afz_sample_or(job, AFZ_JOB_DISK_WAIT, 0) > 0;
        if (w->job_pid != 0)
                f->job_cores = cores_of_job(w, job);
        if (w->job_pid == 0)
                return; /* pressure of the machine is the machine's own */
        bool moves = rate_or_unknown(w, job, AFZ_JOB_READ) >= at.io_bytes_per_s ||
                     rate_or_unknown(w, job, AFZ_JOB_WRITTEN) >= at.io_bytes_per_s;
        f->wants_disk = f->waits_for_disk || (moves && f->job_cores < at.cpu_busy);
        f->wants_cores = f->job_cores >= at.cpu_some || afz_sample_or(job, AFZ_JOB_RUNNING, 0) > 0;
}

static struct facts gather(const struct afz_window *w)
{
        const struct afz_sample *vm = afz_window_one(w, AFZ_KIND_VM);
        const struct afz_sample *psi = afz_window_one(w, AFZ_KIND_PSI);
        const struct afz_sample *cpu = afz_window_find(w, AFZ_KIND_CPU, AFZ_CPU_ALL);
        struct facts f = {
                .swap_in = rate_or_unknown(w, vm, AFZ_VM_SWAP_IN),
                .swap_out = rate_or_unknown(w, vm, AFZ_VM_SWAP_OUT),
                .memory = rate_or_unknown(w, psi, AFZ_PSI_MEMORY_SOME) / 1e9,
                .io = rate_or_unknown(w, psi, AFZ_PSI_IO_SOME) / 1e9,
                .cpu_wait = rate_or_unknown(w, psi, AFZ_PSI_CPU_SOME) / 1e9,
                .cores = (double)afz_sample_or(cpu, AFZ_CPU_CORES, -1),
                .job_cores = w->job_pid == 0 ? cores_of_machine(w, cpu) : -1,
                .wants_disk = true,
                .wants_cores = true,
                .runnable_per_core = -1,
        };
        int64_t running;
        if (cpu && f.cores > 0 && afz_sample_get(cpu, AFZ_CPU_RUNNING, &running))
                f.runnable_per_core = (double)running / f.cores;
        find_disk(w, &f);
        find_mount(w, &f);
        find_gpu(w, &f);
        find_job(w, &f);
        const struct afz_sample *own = afz_window_find(w, AFZ_KIND_CGROUP, 0);
        f.frozen = w->job_pid != 0 && afz_sample_or(own, AFZ_CGROUP_FROZEN, 0) != 0;
        f.any_rate = f.swap_in >= 0 || f.memory >= 0 || f.job_cores >= 0;
        return f;
}

static void say(struct afz_limit *l, enum afz_limit_kind kind, const char *text)
{
        l->kind = kind;
        snprintf(l->text, sizeof l->text, "%s", text);
}

/* Memory first: a machine that swaps also waits for its disk, and that is not the disk's fault. */
static bool judge_memory(const struct facts *f, struct afz_limit *l)
{
        if (f->swap_in >= at.swap_bytes_per_s && f->swap_out >= at.swap_bytes_per_s) {
                l->kind = AFZ_LIMIT_SWAPPING;
                snprintf(l->text, sizeof l->text, "swapping: %.0f MB/s in, %.0f MB/s out",
                         f->swap_in / 1e6, f->swap_out / 1e6);
                return true;
        }
        if (f->memory < at.memory_pressure)
                return false;
        l->kind = f->swap_in >= at.swap_bytes_per_s ? AFZ_LIMIT_SWAPPING : AFZ_LIMIT_MEMORY;
        snprintf(l->text, sizeof l->text, "%s: tasks wait for memory %.0f %% of the time",
                 l->kind == AFZ_LIMIT_SWAPPING ? "swapping" : "short of memory", f->memory * 100);
        return true;
}

static bool judge_data(const struct facts *f, struct afz_limit *l)
{
        if (f->mount && f->net_wait >= at.network_wait) {
                l->kind = AFZ_LIMIT_NETWORK;
                snprintf(l->text, sizeof l->text, "waiting for the network mount %.48s", f->mount);
                return true;
        }
        if (f->io < 0 && !f->disk && f->waits_for_disk) { /* no PSI, no diskstats: only the D's */
                say(l, AFZ_LIMIT_DISK, "waiting for a disk");
                return true;
        }
        /* Pressure is the whole machine's: a job that computes all the time does not wait for a
         * disk that others keep busy. */
        bool waits = f->io < 0 ? f->waits_for_disk : f->io >= at.disk_pressure && f->wants_disk;
        if (!waits || !f->disk || f->disk_busy < at.disk_busy)
                return false;
        l->kind = AFZ_LIMIT_DISK;
        snprintf(l->text, sizeof l->text, "waiting for disk %.32s (%.0f %% busy)", f->disk,
                 f->disk_busy > 1 ? 100 : f->disk_busy * 100);
        return true;
}

static bool judge_compute(const struct facts *f, struct afz_limit *l)
{
        if (f->gpu && f->gpu_util >= at.gpu_busy) {
                l->kind = AFZ_LIMIT_GPU;
                snprintf(l->text, sizeof l->text, "GPU-bound: %.40s is %.0f %% busy", f->gpu,
                         f->gpu_util / 100);
                return true;
        }
        if (f->wants_cores && f->cpu_wait >= at.cpu_pressure &&
            f->runnable_per_core >= at.runnable_factor) {
                l->kind = AFZ_LIMIT_CPU_SHARE;
                snprintf(l->text, sizeof l->text, "too many tasks: %.1f want each core",
                         f->runnable_per_core);
                return true;
        }
        if (f->job_cores < at.cpu_busy)
                return false;
        l->kind = AFZ_LIMIT_CPU;
        if (f->cores > 0)
                snprintf(l->text, sizeof l->text, "CPU-bound: computing on %.1f of %.0f cores",
                         f->job_cores, f->cores);
        else
                snprintf(l->text, sizeof l->text, "CPU-bound: computing on %.1f cores",
                         f->job_cores);
        return true;
}

/* None of the known reasons: it has none, or we cannot see it. */
static void judge_rest(const struct afz_window *window, const struct facts *f, struct afz_limit *l)
{
        bool job = window->job_pid != 0;
        if (f->job_cores < 0)
                say(l, AFZ_LIMIT_UNKNOWN,
                    job ? "the job's own figures are missing" : "too early to tell");
        else
                say(l, AFZ_LIMIT_NONE,
                    job ? "nothing: it waits for something of its own"
                        : "nothing: the machine has room");
}

void afz_bottleneck_judge(const struct afz_window *window, struct afz_limit *ret)
{
        struct facts f = gather(window);
        if (window->job_pid != 0 && f.ended)
                say(ret, AFZ_LIMIT_NONE, "nothing: the job has ended");
        else if (f.all_stopped)
                say(ret, AFZ_LIMIT_STOPPED, "stopped (by a signal or a debugger)");
        else if (f.frozen)
                say(ret, AFZ_LIMIT_STOPPED, "frozen (by its cgroup)");
        else if (!f.any_rate)
                say(ret, AFZ_LIMIT_UNKNOWN, "too early to tell");
        else if (!judge_memory(&f, ret) && !judge_data(&f, ret) && !judge_compute(&f, ret))
                judge_rest(window, &f, ret);
}
