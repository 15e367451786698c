#ifndef AFZ_JOB_FIXTURE_H
#define AFZ_JOB_FIXTURE_H
/* The job sense on a fake machine with one process, ROOT, and what the tests ask of its readings.
 */
#include <stdio.h>

#include "proc_fixture.h"
#include "reading.h"

#define MS   UINT64_C(1000000)
#define S    UINT64_C(1000000000)
#define ROOT 100
#define PAGE INT64_C(4096)
#define KIB  INT64_C(1024)

static const struct afz_fixture_row job_machine[] = {
        {"machine", "page_bytes 4096\nclock_ticks 100\n"}, {"proc/loadavg", "0 0 0 1/1 1\n"}, {0}};

#define JOB_IO                                                                                     \
        "rchar: 1000\nwchar: 2000\nsyscr: 1\nsyscw: 1\nread_bytes: 300\nwrite_bytes: 400\n"        \
        "cancelled_write_bytes: 50\n"

/* A process with all its files; 100 pages resident, 60 of them anonymous. */
static inline void add_process(struct afz_watched *w, struct afz_fake_proc p)
{
        afz_watched_proc(w, p);
        afz_watched_set(w, p.pid, "statm", "1000 100 40 1 0 50 0\n");
        afz_watched_set(w, p.pid, "io", JOB_IO);
        afz_watched_set(
                w, p.pid, "status",
                "Name:\tx\nVmLck:\t 1 kB\nVmPin:\t 2 kB\nVmHWM:\t 500 kB\nRssFile:\t 100 kB\n"
                "RssShmem:\t 60 kB\nVmPTE:\t 3 kB\nVmSwap:\t 7 kB\n"
                "voluntary_ctxt_switches:\t11\nnonvoluntary_ctxt_switches:\t12\n");
        afz_watched_set(
                w, p.pid, "limits",
                "Limit  Soft Limit  Hard Limit  Units\n"
                "Max open files            1024                 524288               files\n");
        afz_watched_set(w, p.pid, "oom_score_adj", "-500\n");
        afz_watched_set(w, p.pid, "wchan", "futex_wait_queue");
        afz_watched_set(w, p.pid, "fd/0", "");
        afz_watched_set(w, p.pid, "fd/1", "");
        char path[64];
        snprintf(path, sizeof path, "proc/%d/cmdline", (int)p.pid);
        afz_fixture_set_bytes(w->fixture, path, "python3\0train.py", 17);
        snprintf(path, sizeof path, "proc/%d/environ", (int)p.pid);
        afz_fixture_set_bytes(w->fixture, path, "HOME=/\0RANK=3", 14);
}

static inline void start(struct afz_watched *w, struct afz_reading *r)
{
        afz_watched_init(w, afz_fixture_new(job_machine));
        add_process(w, (struct afz_fake_proc){.pid = ROOT,
                                              .ppid = 1,
                                              .start = 5,
                                              .utime = 10,
                                              .stime = 20,
                                              .minflt = 7,
                                              .majflt = 8,
                                              .threads = 3,
                                              .comm = "python3"});
        assert_int_equal(afz_reading_open(r, &afz_sense_job, &w->env, ROOT), 0);
}

static inline void finish(struct afz_watched *w, struct afz_reading *r)
{
        afz_reading_done(r);
        afz_watched_done(w);
}

static inline const struct afz_sample *job_of(const struct afz_reading *r)
{
        return afz_reading_of(r, AFZ_KIND_JOB, r->batch->sample[0].subject.id);
}

static inline const struct afz_sample *proc_of(const struct afz_reading *r, uint64_t pid)
{
        return afz_reading_of(r, AFZ_KIND_PROC, pid);
}

static inline void take(struct afz_watched *w, struct afz_reading *r, uint64_t later_ns)
{
        w->now_ns += later_ns;
        assert_int_equal(afz_reading_take(r), 0);
}

#endif
