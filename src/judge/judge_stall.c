/* data-stall: the job waited for a disk or a network mount while cores and GPU stood idle. Looks at
 * the run slot by slot and speaks of what held for most of its life. */
#include <stdio.h>

#include "judge_words.h"
#include "judges.h"
#include "stall_feed.h"
#include "stall_wait.h"
#include "stretch.h"

/* Every threshold. Where bottleneck.c judges the same thing live, it has the same number. */
static const struct {
        double swap_bytes_per_s;    /* read back */
        double swap_share;          /* of what the job reads: then it waits for its own memory */
        double memory_pressure;     /* share of time in which some task waited for memory */
        double busy_process;        /* cores one process uses, from which on it computes */
        double busy_share;          /* of all cores, from which on the job computes */
        double gpu_busy;            /* share of time */
        double network_wait;        /* round trips' waiting, summed, in seconds a second */
        double disk_wait;           /* processes in disk wait, on the mean; or seconds a second */
        double disk_pressure;       /* share of time in which some task waited for a disk */
        double disk_busy;           /* share of time with a request in flight */
        double io_bytes_per_s;      /* that the job reads itself */
        double trickle_bytes_per_s; /* the same, where we see it wait */
        double idle_reader;         /* cores used by a job that reads all the time, */
        double free_cores;          /* while so many stood idle */
        double share;               /* of its life, from which on it is worth a verdict */
        uint32_t stall_ms;          /* and in all */
        double queue_one;           /* requests in flight: nobody asked for more at once */
        double seek_ns;             /* that a read takes */
        double small_read_bytes;    /* mean size of a read */
        double feed_share;          /* of an epoch that was waited for a loader, to ask that one */
} at = {
        .swap_bytes_per_s = 4e6,     /* as live: then the disk's work is swap's */
        .swap_share = 0.5,           /* most of it */
        .memory_pressure = 0.10,     /* as live: then pages of the program itself come back */
        .busy_process = 0.70,        /* as live */
        .busy_share = 0.50,          /* half of the machine at work is no stall */
        .gpu_busy = 0.50,            /* a GPU that computes half of the time is fed */
        .network_wait = 0.50,        /* as live: one request in flight half of the time */
        .disk_wait = 0.50,           /* half of the time somebody of the job waits */
        .disk_pressure = 0.20,       /* as live */
        .disk_busy = 0.50,           /* as live */
        .io_bytes_per_s = 256e3,     /* as live: what the slowest disk gives in random reads */
        .trickle_bytes_per_s = 16e3, /* four pages a second: it does read */
        .idle_reader = 0.50,         /* it computes for less than half of the time that it reads */
        .free_cores = 0.50,          /* else it may just have got none: as stall_wait.c has it */
        .share = 0.50,               /* most of it: a slow start alone is none */
        .stall_ms = 20000,           /* importing a framework from a cold disk takes ten seconds */
        .queue_one = 1.5,            /* read-ahead alone keeps one in flight */
        .seek_ns = 2e6, /* 2 ms: virtual disks call themselves spinning, and are faster */
        .small_read_bytes = 64 * 1024, /* half of the kernel's read-ahead */
        .feed_share = 0.25,            /* one that was waited for less is another one */
};

/* The machine's and the job's columns, found once. */
struct sources {
        const struct afz_flight *flight;
        struct afz_slots slots;
        const struct afz_column *cpu, *read, *written, *disk_wait;
        const struct afz_column *swap_in, *memory, *io;
        double cores;                   /* negative: not known */
        float busiest[AFZ_SLOTS_MAX];   /* cores that one process used; negative: not known */
        float io_waited[AFZ_SLOTS_MAX]; /* seconds a second, the most of one process */
};

static void raise_to(float *slot, double value)
{
        if (value > (double)*slot)
                *slot = (float)value;
}

static void add_process(struct sources *src, const struct afz_track *proc)
{
        const struct afz_column *user = afz_track_column(proc, AFZ_PROC_USER);
        const struct afz_column *system = afz_track_column(proc, AFZ_PROC_SYSTEM);
        const struct afz_column *wait = afz_track_column(proc, AFZ_PROC_IO_WAIT);
        unsigned end;
        for (unsigned i = afz_slots_of_track(&src->slots, proc, &end); i < end; i++) {
                uint32_t from = afz_slot_start(&src->slots, i), to = from + src->slots.slot_ms;
                double u = afz_rate_or(user, from, to, 1e-9);
                double s = afz_rate_or(system, from, to, 1e-9);
                if (u >= 0 && s >= 0)
                        raise_to(&src->busiest[i], u + s);
                raise_to(&src->io_waited[i], afz_rate_or(wait, from, to, 1e-9));
        }
}

static bool find_sources(const struct afz_flight *flight, struct sources *src)
{
        const struct afz_track *job = afz_flight_job(flight), *proc;
        const struct afz_track *vm = afz_flight_one(flight, AFZ_KIND_VM);
        const struct afz_track *psi = afz_flight_one(flight, AFZ_KIND_PSI);
        src->flight = flight;
        src->slots = afz_slots_of(flight);
        src->cpu = afz_track_column(job, AFZ_JOB_CPU);
        src->read = afz_track_column(job, AFZ_JOB_READ);
        src->written = afz_track_column(job, AFZ_JOB_WRITTEN);
        src->disk_wait = afz_track_column(job, AFZ_JOB_DISK_WAIT);
        src->swap_in = afz_track_column(vm, AFZ_VM_SWAP_IN);
        src->memory = afz_track_column(psi, AFZ_PSI_MEMORY_SOME);
        src->io = afz_track_column(psi, AFZ_PSI_IO_SOME);
        src->cores = afz_flight_cores(flight);
        if (src->slots.count == 0 || !src->cpu || src->cores < 0)
                return false;
        for (unsigned i = 0; i < src->slots.count; i++)
                src->busiest[i] = src->io_waited[i] = -1;
        for (size_t cursor = 0; (proc = afz_flight_next(flight, AFZ_KIND_PROC, &cursor));)
                add_process(src, proc);
        return true;
}

/* What one slot says. */
enum slot_is { NOT_KNOWN, WORKS, WAITS_DISK, WAITS_MOUNT, READS_IDLY };

static bool computes(const struct sources *src, unsigned slot, double job_cores, uint32_t from,
                     uint32_t to)
{
        double one = (double)src->busiest[slot];
        return (one >= 0 ? one : job_cores) >= at.busy_process ||
               job_cores >= at.busy_share * src->cores ||
               afz_job_gpu_util(src->flight, from, to) >= at.gpu_busy;
}

/* The network mount that was waited for most: requests' time, in seconds a second. */
static const struct afz_track *slowest_mount(const struct afz_flight *flight, uint32_t from,
                                             uint32_t to, double *ret_wait)
{
        const struct afz_track *fs, *found = NULL;
        *ret_wait = -1;
        for (size_t cursor = 0; (fs = afz_flight_next(flight, AFZ_KIND_FS, &cursor));) {
                double wait = afz_rate_or(afz_track_column(fs, AFZ_FS_NET_WAIT), from, to, 1e-9);
                double got = afz_rate_or(afz_track_column(fs, AFZ_FS_NET_READ), from, to, 1);
                double sent = afz_rate_or(afz_track_column(fs, AFZ_FS_NET_WRITTEN), from, to, 1);
                if (wait > *ret_wait && got >= 0 && got >= sent) {
                        *ret_wait = wait;
                        found = fs;
                }
        }
        return found;
}

/* The disk of the job that the most was read from. */
static const struct afz_track *most_read_disk(const struct afz_flight *flight, uint32_t from,
                                              uint32_t to)
{
        const struct afz_track *disk, *found = NULL;
        double most = 0;
        for (size_t cursor = 0; (disk = afz_flight_next(flight, AFZ_KIND_DISK, &cursor));) {
                int64_t uses = 1; /* where it is not known, it may be the one */
                (void)afz_column_most(afz_track_column(disk, AFZ_DISK_JOB_USES), from, to, &uses);
                double rate = afz_rate_or(afz_track_column(disk, AFZ_DISK_READ), from, to, 1);
                if (uses == 0 || rate <= most)
                        continue;
                most = rate;
                found = disk;
        }
        return found;
}

static enum slot_is judge_slot(const struct sources *src, unsigned i)
{
        uint32_t from = afz_slot_start(&src->slots, i), to = from + src->slots.slot_ms;
        double job_cores = afz_rate_or(src->cpu, from, to, 1e-9), wait;
        if (job_cores < 0 || !afz_job_lived(src->flight, from, to))
                return NOT_KNOWN;
        if (computes(src, i, job_cores, from, to) ||
            afz_rate_or(src->swap_in, from, to, 1) >= at.swap_bytes_per_s ||
            afz_rate_or(src->memory, from, to, 1e-9) >= at.memory_pressure)
                return WORKS;
        if (slowest_mount(src->flight, from, to, &wait) && wait >= at.network_wait)
                return WAITS_MOUNT;
        double read = afz_rate_or(src->read, from, to, 1);
        double written = afz_rate_or(src->written, from, to, 1);
        if (read < 0 || written < 0)
                return NOT_KNOWN;
        if (afz_rate_or(src->swap_in, from, to, 1) > at.swap_share * read)
                return WORKS;
        if (read < written || read < at.trickle_bytes_per_s)
                return WORKS; /* it saves, or it waits for something of its own */
        if (afz_mean_or(src->disk_wait, from, to, 1) >= at.disk_wait ||
            (double)src->io_waited[i] >= at.disk_wait)
                return WAITS_DISK;
        if (read < at.io_bytes_per_s)
                return WORKS;
        const struct afz_track *disk = most_read_disk(src->flight, from, to);
        if (afz_rate_or(src->io, from, to, 1e-9) >= at.disk_pressure && disk &&
            afz_rate_or(afz_track_column(disk, AFZ_DISK_BUSY), from, to, 1e-9) >= at.disk_busy)
                return WAITS_DISK;
        double idle = afz_flight_idle_cores(src->flight, from, to);
        if (idle >= 0 && idle < at.free_cores)
                return WORKS; /* or would: others have all cores */
        return job_cores < at.idle_reader ? READS_IDLY : WORKS;
}

struct stall {
        unsigned known, waits, mount, idly;
        uint32_t from_ms, to_ms;
};

static struct stall count_slots(const struct sources *src)
{
        struct stall st = {0};
        for (unsigned i = 0; i < src->slots.count; i++) {
                enum slot_is is = judge_slot(src, i);
                st.known += is != NOT_KNOWN;
                if (is == NOT_KNOWN || is == WORKS)
                        continue;
                if (st.waits++ == 0)
                        st.from_ms = afz_slot_start(&src->slots, i);
                st.to_ms = afz_slot_start(&src->slots, i) + src->slots.slot_ms;
                st.mount += is == WAITS_MOUNT;
                st.idly += is == READS_IDLY;
        }
        return st;
}

static void say_mount(const struct sources *src, const struct stall *st, struct afz_verdict *v)
{
        double wait;
        const struct afz_track *fs = slowest_mount(src->flight, st->from_ms, st->to_ms, &wait);
        double got = afz_rate_or(afz_track_column(fs, AFZ_FS_NET_READ), st->from_ms, st->to_ms, 1);
        double ops = afz_rate_or(afz_track_column(fs, AFZ_FS_NET_OPS), st->from_ms, st->to_ms, 1);
        const char *name = fs && fs->name[0] ? fs->name : "a network mount";
        snprintf(v->summary, sizeof v->summary,
                 "it waited for data from the network mount %.80s for most of its time", name);
        snprintf(v->fix, sizeof v->fix,
                 "copy the data to a local disk before the run, or pack many small files into a "
                 "few large ones; more loader workers help only while the server can give more");
        if (got >= 0)
                afz_verdict_note(v, "%.80s gave %s/s", name, SIZE(got));
        if (ops > 0)
                afz_verdict_note(v, "%.0f requests a second, each answered after %.1f ms", ops,
                                 wait / ops * 1e3);
}

/* Which change helps depends on what the disk was asked for. */
static void say_disk_fix(const struct afz_track *disk, const struct stall *st,
                         struct afz_verdict *v)
{
        int64_t spins = 0;
        uint32_t from = st->from_ms, to = st->to_ms;
        double bytes = afz_rate_or(afz_track_column(disk, AFZ_DISK_READ), from, to, 1);
        double reads = afz_rate_or(afz_track_column(disk, AFZ_DISK_READS), from, to, 1);
        double queue = afz_rate_or(afz_track_column(disk, AFZ_DISK_QUEUE_TIME), from, to, 1e-9);
        double wait = afz_rate_or(afz_track_column(disk, AFZ_DISK_READ_TIME), from, to, 1);
        bool small = reads > 0 && bytes / reads < at.small_read_bytes;
        (void)afz_column_last(afz_track_column(disk, AFZ_DISK_ROTATIONAL), to, &spins);
        const char *fix;
        if (spins && small && wait >= at.seek_ns * reads)
                fix = "this is a spinning disk, and it is asked for many small pieces: pack the "
                      "samples into a few large files (tar, HDF5, LMDB), or copy them to an SSD";
        else if (queue >= 0 && queue < at.queue_one)
                fix = "the disk was asked for one piece at a time: let more loader workers read at "
                      "once (num_workers=4) and ahead of the step (prefetch)";
        else if (small)
                fix = "many small reads: pack the samples into a few large files (tar, HDF5, "
                      "LMDB), so that each read brings more";
        else
                fix = "the disk gives no more: keep the data smaller (compressed, narrower types), "
                      "copy it to a faster disk, or keep what fits in RAM";
        snprintf(v->fix, sizeof v->fix, "%s", fix);
        if (reads > 0)
                afz_verdict_note(v, "%.0f reads a second of %.0f kB each", reads,
                                 bytes / reads / 1e3);
}

static void say_disk(const struct sources *src, const struct stall *st, struct afz_verdict *v)
{
        uint32_t from = st->from_ms, to = st->to_ms;
        const struct afz_track *disk = most_read_disk(src->flight, from, to);
        double busy = afz_rate_or(afz_track_column(disk, AFZ_DISK_BUSY), from, to, 1e-9);
        double read = afz_rate_or(src->read, from, to, 1);
        char name[64] = "a disk";
        if (disk && disk->name[0])
                snprintf(name, sizeof name, "disk %.40s", disk->name);
        snprintf(v->summary, sizeof v->summary,
                 "it waited for data from %s for most of its time: %s/s came in", name, SIZE(read));
        if (busy >= 0)
                afz_verdict_note(v, "%s was busy %.0f %% of the time%s", name,
                                 busy > 1 ? 100 : busy * 100,
                                 busy < at.disk_busy ? ": something holds the rate down, or reads "
                                                       "come one by one"
                                                     : "");
        say_disk_fix(disk, st, v);
}

/* The loader knows better what to change. */
static void say_feed(const struct sources *src, const struct stall *st, struct afz_verdict *v)
{
        double used = afz_rate_or(src->cpu, st->from_ms, st->to_ms, 1e-9);
        struct afz_feed feed;
        if (!afz_feed_of(src->flight, st->from_ms, at.feed_share, &feed))
                return;
        afz_verdict_note(v, "what holds the loader up is %.*s", (int)feed.rate.n, feed.rate.p);
        afz_feed_say(&feed, used >= 0 ? src->cores - used : -1, v);
}

/* By disks and mounts; false: they are not to blame. */
static bool judge_sources(const struct afz_case *c, struct afz_outcome *ret)
{
        struct sources src;
        if (!find_sources(c->flight, &src))
                return false;
        struct stall st = count_slots(&src);
        uint64_t waited_ms = (uint64_t)st.waits * src.slots.slot_ms;
        if (st.waits == 0 || (double)st.waits < at.share * st.known || waited_ms < at.stall_ms)
                return false;
        /* That it waits was seen in the one case; in the other we know only that it does nothing
         * else. */
        double share = (double)st.waits / st.known;
        bool seen = st.idly * 2 < st.waits;
        struct afz_verdict *v = afz_outcome_add(ret, "data-stall", AFZ_LEVEL_WARN,
                                                (seen ? 0.80 : 0.70) + 0.15 * (share - at.share));
        if (!v)
                return true;
        v->from_ms = st.from_ms;
        v->to_ms = st.to_ms;
        afz_verdict_note(v, "%s (%.0f %% of the time) with idle cores%s%s", LASTS(waited_ms),
                         share * 100,
                         afz_job_gpu_util(src.flight, st.from_ms, st.to_ms) >= 0 ? " and GPU" : "",
                         seen ? ", waiting for input" : ", reading all the while");
        if (st.mount * 2 > st.waits)
                say_mount(&src, &st, v);
        else
                say_disk(&src, &st, v);
        say_feed(&src, &st, v);
        struct afz_stall_wait w;
        if (afz_stall_wait_of(c->flight, &w))
                afz_verdict_note(v, "its %lld steps waited for data %.0f %% of their time",
                                 (long long)w.steps, 100 * w.share);
        return true;
}

AFZ_JUDGE(data_stall)
{
        if (!judge_sources(c, ret))
                afz_stall_wait_say(c, ret);
}
