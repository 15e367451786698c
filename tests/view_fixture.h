#ifndef AFZ_VIEW_FIXTURE_H
#define AFZ_VIEW_FIXTURE_H
/* Hand-made windows for the tests of the views: a machine of 16 GiB on which a training job runs,
 * with as many GPUs and processes as asked for. Two readings one second apart, so that every rate
 * is the number written here.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "role.h"
#include "window.h"

#define FIX_GIB   (INT64_C(1) << 30)
#define FIX_MIB   (INT64_C(1) << 20)
#define FIX_S     UINT64_C(1000000000)
#define FIX_T0    (UINT64_C(100000) * FIX_S)
#define FIX_START (FIX_T0 - 4321 * FIX_S)

struct fix_want {
        unsigned gpus, procs, cores;
        int no_job;                       /* watch the machine */
        int blank;                        /* the samples are there, but nothing in them is known */
        int no_before;                    /* the first reading: no rates yet */
        int unseen;                       /* some senses are not there */
        const char *name, *detail, *note; /* of every process but the root */
};

struct fix {
        struct afz_window window;
        struct afz_batch *now, *before;
};

static inline void fix_both(struct fix *f, struct afz_subject subject, const char *name,
                            struct afz_sample **now, struct afz_sample **before)
{
        *now = afz_batch_add(f->now, subject, name);
        *before = afz_batch_add(f->before, subject, name);
}

/* A counter that grows by `rate` in the second between the readings. */
static inline void fix_count(struct afz_sample *now, struct afz_sample *before, enum afz_metric m,
                             int64_t at, int64_t rate)
{
        afz_sample_set(before, m, at);
        afz_sample_set(now, m, at + rate);
}

static inline void fix_host(struct fix *f, const struct fix_want *want)
{
        struct afz_sample *n, *b;
        fix_both(f, (struct afz_subject){.kind = AFZ_KIND_HOST}, "host", &n, &b);
        if (want->blank)
                return;
        afz_sample_set(n, AFZ_HOST_MEM_TOTAL, 16 * FIX_GIB);
        afz_sample_set(n, AFZ_HOST_MEM_FREE, 2 * FIX_GIB);
        afz_sample_set(n, AFZ_HOST_MEM_AVAILABLE, 6 * FIX_GIB);
        afz_sample_set(n, AFZ_HOST_SWAP_TOTAL, 4 * FIX_GIB);
        afz_sample_set(n, AFZ_HOST_SWAP_FREE, 3 * FIX_GIB);
        afz_sample_set(n, AFZ_HOST_SHM_TOTAL, 8 * FIX_GIB);
        afz_sample_set(n, AFZ_HOST_SHM_USED, FIX_GIB / 2);
        fix_both(f, (struct afz_subject){.kind = AFZ_KIND_VM}, "vm", &n, &b);
        fix_count(n, b, AFZ_VM_SWAP_IN, 100, 3 * FIX_MIB);
        fix_count(n, b, AFZ_VM_SWAP_OUT, 100, 0);
}

static inline void fix_psi(struct fix *f, const struct fix_want *want)
{
        struct afz_sample *n, *b;
        fix_both(f, (struct afz_subject){.kind = AFZ_KIND_PSI}, "psi", &n, &b);
        if (want->blank)
                return;
        fix_count(n, b, AFZ_PSI_CPU_SOME, 5000, 120000000);
        fix_count(n, b, AFZ_PSI_MEMORY_SOME, 5000, 0);
        fix_count(n, b, AFZ_PSI_IO_SOME, 5000, 340000000);
}

static inline void fix_cpu(struct fix *f, const struct fix_want *want)
{
        for (unsigned i = 0; i <= want->cores; i++) {
                struct afz_sample *n, *b;
                uint64_t id = i == 0 ? AFZ_CPU_ALL : i - 1;
                int64_t scale = i == 0 ? (int64_t)want->cores : 1;
                int64_t busy = i == 0 ? 47 : (int64_t)((i - 1) * 13 % 101);
                fix_both(f, (struct afz_subject){.kind = AFZ_KIND_CPU, .id = id},
                         i == 0 ? "all" : "core", &n, &b);
                if (want->blank)
                        continue;
                fix_count(n, b, AFZ_CPU_USER, 7, busy * 10000000 * scale);
                fix_count(n, b, AFZ_CPU_SYSTEM, 7, 0);
                fix_count(n, b, AFZ_CPU_IRQ, 7, 0);
                fix_count(n, b, AFZ_CPU_IDLE, 7, (100 - busy) * 10000000 * scale);
                fix_count(n, b, AFZ_CPU_IOWAIT, 7, 0);
                if (i == 0) {
                        afz_sample_set(n, AFZ_CPU_CORES, want->cores);
                        afz_sample_set(n, AFZ_CPU_LOAD1, 320);
                }
        }
}

static inline void fix_job(struct fix *f, const struct fix_want *want)
{
        struct afz_sample *n, *b;
        fix_both(f, (struct afz_subject){.kind = AFZ_KIND_JOB, .id = 4242}, "job", &n, &b);
        if (want->blank)
                return;
        afz_sample_set(n, AFZ_JOB_PROCESSES, want->procs);
        afz_sample_set(n, AFZ_JOB_THREADS, want->procs * 4);
        afz_sample_set(n, AFZ_JOB_NEED, 6 * FIX_GIB + 512 * FIX_MIB);
        afz_sample_set(n, AFZ_JOB_SWAP, 512 * FIX_MIB);
        fix_count(n, b, AFZ_JOB_CPU, 900, 1870000000);
}

/* Process 0 is the root; the others are its children, save that each fourth hangs below the one
 * before.
 */
static inline void fix_procs(struct fix *f, const struct fix_want *want)
{
        for (unsigned i = 0; i < want->procs; i++) {
                struct afz_sample *n, *b;
                struct afz_subject subject = {
                        .kind = AFZ_KIND_PROC, .id = 4242 + i, .start = 900 + i};
                fix_both(f, subject, i && want->name ? want->name : "python3", &n, &b);
                n->detail =
                        i && want->detail ? want->detail : "/usr/bin/python3 train.py --epochs 90";
                n->note = i && want->note ? want->note : NULL;
                if (want->blank)
                        continue;
                afz_sample_set(n, AFZ_PROC_PPID, i == 0 ? 1 : i % 4 == 0 ? 4241 + i : 4242);
                afz_sample_set(n, AFZ_PROC_STATE, i == 0 ? 'R' : i == 2 ? 'D' : 'S');
                afz_sample_set(n, AFZ_PROC_ROLE, i == 0 ? AFZ_ROLE_MAIN : AFZ_ROLE_WORKER);
                afz_sample_set(n, AFZ_PROC_THREADS, 4 + i % 3);
                afz_sample_set(n, AFZ_PROC_NEED, (i == 0 ? 4096 : 128 + 3 * i) * FIX_MIB);
                afz_sample_set(n, AFZ_PROC_RSS, (i == 0 ? 5120 : 900 + 3 * i) * FIX_MIB);
                fix_count(n, b, AFZ_PROC_USER, 5, (i == 0 ? 970 : 13 * i % 100) * 1000000);
                fix_count(n, b, AFZ_PROC_SYSTEM, 5, 10000000);
                fix_count(n, b, AFZ_PROC_READ, 5, i * FIX_MIB);
                fix_count(n, b, AFZ_PROC_WRITTEN, 5, 0);
        }
}

static inline void fix_disks(struct fix *f, const struct fix_want *want)
{
        struct afz_sample *n, *b;
        fix_both(f, (struct afz_subject){.kind = AFZ_KIND_DISK, .id = 254 << 20}, "vda", &n, &b);
        if (!want->blank) {
                fix_count(n, b, AFZ_DISK_READ, 1, 210 * FIX_MIB);
                fix_count(n, b, AFZ_DISK_WRITTEN, 1, 3 * FIX_MIB);
                fix_count(n, b, AFZ_DISK_BUSY, 1, 940000000);
                fix_count(n, b, AFZ_DISK_QUEUE_TIME, 1, 12100000000);
                afz_sample_set(n, AFZ_DISK_JOB_USES, 1);
        }
        fix_both(f, (struct afz_subject){.kind = AFZ_KIND_FS, .id = 31}, "/data", &n, &b);
        n->detail = "ext4 /dev/vda1";
        if (!want->blank) {
                afz_sample_set(n, AFZ_FS_TOTAL, 500 * FIX_GIB);
                afz_sample_set(n, AFZ_FS_AVAILABLE, 90 * FIX_GIB);
                afz_sample_set(n, AFZ_FS_JOB_FILES, 12);
        }
}

static inline void fix_gpus(struct fix *f, const struct fix_want *want)
{
        struct afz_sample *n, *b;
        for (unsigned i = 0; i < want->gpus; i++) {
                fix_both(f, (struct afz_subject){.kind = AFZ_KIND_GPU, .id = i}, "NVIDIA H200", &n,
                         &b);
                n->detail = "GPU-00000000-0000-0000-0000-000000000000";
                if (want->blank)
                        continue;
                afz_sample_set(n, AFZ_GPU_MEM_TOTAL, 140 * FIX_GIB);
                afz_sample_set(n, AFZ_GPU_MEM_USED, (int64_t)(80 + 5 * i) * FIX_GIB);
                afz_sample_set(n, AFZ_GPU_UTIL, 9700 - 100 * (int64_t)i);
                afz_sample_set(n, AFZ_GPU_TEMP, 71000);
                afz_sample_set(n, AFZ_GPU_TEMP_SLOWDOWN, 90000);
                afz_sample_set(n, AFZ_GPU_POWER, 610000);
                afz_sample_set(n, AFZ_GPU_POWER_LIMIT, 700000);
        }
        for (unsigned i = 0; i < want->gpus; i++) {
                fix_both(f,
                         (struct afz_subject){.kind = AFZ_KIND_GPU_PROC,
                                              .id = (uint64_t)i << 32 | 4242},
                         "python3", &n, &b);
                if (want->blank)
                        continue;
                afz_sample_set(n, AFZ_GPU_PROC_PID, 4242);
                afz_sample_set(n, AFZ_GPU_PROC_GPU, i);
                afz_sample_set(n, AFZ_GPU_PROC_MEM, 60 * FIX_GIB);
                afz_sample_set(n, AFZ_GPU_PROC_IN_JOB, 1);
        }
}

static inline void fix_self(struct fix *f, const struct fix_want *want)
{
        struct afz_sample *n, *b;
        fix_both(f, (struct afz_subject){.kind = AFZ_KIND_SELF, .id = 77}, "antifreeze", &n, &b);
        if (want->blank)
                return;
        fix_count(n, b, AFZ_SELF_CPU, 1, 1200000);
        afz_sample_set(n, AFZ_SELF_RSS, 5 * FIX_MIB);
}

static inline void fix_strips(struct fix *f)
{
        for (unsigned i = 0; i < 60; i++) {
                uint64_t t = FIX_T0 - (59 - i) * FIX_S;
                if (i >= 30 && i < 36)
                        continue; /* a gap */
                for (int k = 0; k < AFZ_STRIP_COUNT; k++) {
                        int bytes = k <= AFZ_STRIP_JOB_NEED || k == AFZ_STRIP_GPU_MEM;
                        int64_t full = k == AFZ_STRIP_GPU_MEM     ? 140 * FIX_GIB
                                       : k == AFZ_STRIP_SWAP_USED ? 4 * FIX_GIB
                                       : bytes                    ? 16 * FIX_GIB
                                                                  : 10000;
                        afz_series_add(&f->window.strip[k], t,
                                       full / 100 * ((int64_t)i % 20 + (k * 7 + 13) % 61));
                }
        }
}

static inline struct fix *fix_new(const struct fix_want *want)
{
        struct fix *f = calloc(1, sizeof *f);
        size_t cap = 64 + want->procs + 2 * want->gpus + want->cores;
        if (!f || afz_batch_new(cap, &f->now) < 0 || afz_batch_new(cap, &f->before) < 0)
                abort();
        afz_window_init(&f->window, FIX_S);
        afz_batch_start(f->before, FIX_T0 - FIX_S);
        afz_batch_start(f->now, FIX_T0);
        fix_host(f, want);
        fix_psi(f, want);
        fix_cpu(f, want);
        if (!want->no_job)
                fix_job(f, want);
        fix_procs(f, want);
        fix_disks(f, want);
        fix_gpus(f, want);
        fix_self(f, want);
        f->window.t_ns = FIX_T0;
        f->window.ticks = 2;
        f->window.job_pid = want->no_job ? 0 : 4242;
        f->window.limit.kind = AFZ_LIMIT_DISK;
        strcpy(f->window.limit.text, "waiting for disk vda (94 % busy)");
        f->window.source[0] = (struct afz_source){
                .name = "all", .now = f->now, .before = want->no_before ? NULL : f->before};
        f->window.sources = 1;
        if (want->unseen) {
                f->window.source[1] = (struct afz_source){
                        .name = "gpu", .error = -61, .why = "no driver is loaded"};
                f->window.source[2] = (struct afz_source){.name = "kmsg", .error = -13};
                f->window.sources = 3;
        }
        if (!want->blank)
                fix_strips(f);
        return f;
}

static inline void fix_free(struct fix *f)
{
        afz_batch_free(f->now);
        afz_batch_free(f->before);
        free(f);
}

#endif
