/* log-growth, disk-full, shm-full: file systems that the job fills, on disks and in memory. */
#include <stdio.h>
#include <string.h>

#include "judge_words.h"
#include "judges.h"
#include "shape.h"

#define MIB (INT64_C(1) << 20)

static const struct {
        /* A disk that fills. */
        uint32_t least_ms;  /* looked at for so long, the start left out */
        double least_per_s; /* bytes: below it is a log that nobody minds */
        double own_share;   /* of the fall that the job's own writing must explain */
        double soon_s;      /* full so soon at this rate: while it runs, and when it failed */
        double took_share;  /* of what was free, that a run which ended well must have taken */
        double low_share;   /* or what is left by the whole, that makes it a danger anyway */
        double act_s;       /* the stronger word */
        /* A disk that is full. */
        double full_share;     /* left by the whole ... */
        int64_t full_bytes;    /* ... or this, whichever is less */
        int64_t nothing_bytes; /* the next write fails */
        int64_t few_files;     /* inodes left */
        int64_t fell_bytes;    /* under a run that ended well, at the least */
        double unseen_share;   /* of what was left, that it must have come to by then */
        uint32_t unseen_ms;    /* from the last look to the end of a run that failed, at most */
        uint32_t closed_ms; /* the same where it had closed its files, and its writing is known */
        /* /dev/shm. */
        double shm_full;   /* used by all of it */
        double shm_bus;    /* with a SIGBUS, this is enough */
        double shm_own;    /* of that, what must have come during the run */
        int64_t shm_small; /* a size that was not meant for training */
        double sure, told; /* by ENOSPC-like signs at the end; by the figures alone */
} rule = {
        .least_ms = 15000,       /* sizes are read once a second */
        .least_per_s = 65536,    /* 5 GiB a day */
        .own_share = 0.5,        /* else somebody else fills it */
        .soon_s = 6 * 3600,      /* within a working day's reach; longer, and much can change */
        .took_share = 0.25,      /* a quarter taken by one run: three more, and it is full */
        .low_share = 0.10,       /* where file systems become slow and people are warned */
        .act_s = 600,            /* ten minutes: time to do something, as the guard also says */
        .full_share = 0.01,      /* where the guard slows a job down that fills a disk */
        .full_bytes = 256 * MIB, /* logs, a shell, a session need that */
        .nothing_bytes = MIB,    /* less than any checkpoint */
        .few_files = 16,
        .fell_bytes = 16 * MIB, /* else it was full before, and the run did not mind */
        .unseen_share = 0.8,    /* of the rest at that look: no writer is so steady */
        .unseen_ms = 3000,      /* sizes are read once a second, later on a busy machine */
        .closed_ms = 15000, /* they are read while it has files there: not between checkpoints */
        .shm_full = 0.95,   /* the next batch finds no room */
        .shm_bus = 0.80,    /* the reading may be a batch old */
        .shm_own = 0.5,     /* half of it or more is the job's */
        .shm_small = 512 * MIB, /* containers get 64M */
        .sure = 0.95,
        .told = 0.8,
};

static bool last_of(const struct afz_track *track, enum afz_metric metric, int64_t *ret)
{
        return afz_column_last(afz_track_column(track, metric), UINT32_MAX, ret);
}

static bool is_in_memory(const struct afz_track *fs)
{
        return strncmp(fs->detail, "tmpfs", 5) == 0 || strncmp(fs->detail, "ramfs", 5) == 0;
}

static bool is_shm(const struct afz_track *fs)
{
        return strcmp(fs->name, "/dev/shm") == 0;
}

static bool is_written_to(const struct afz_track *fs)
{
        int64_t writes;
        return afz_column_most(afz_track_column(fs, AFZ_FS_JOB_WRITES), 0, UINT32_MAX, &writes) &&
               writes > 0;
}

static bool ended_well(const struct afz_case *c)
{
        return c->facts.end.how == AFZ_END_EXIT && c->facts.end.code == 0;
}

/* ---- log-growth ---- */

struct filling {
        const struct afz_track *fs; /* NULL: none */
        struct afz_steady fall;
        int64_t left, total, taken;
        double left_s;
        bool in_memory;
};

/* What goes to disks, and what is written at all: memory is no disk. */
static bool writing_rate(const struct afz_flight *f, const struct afz_steady *over, bool in_memory,
                         double *ret)
{
        const struct afz_column *column = afz_track_column(
                afz_flight_one(f, AFZ_KIND_JOB), in_memory ? AFZ_JOB_WRITE_CALLS : AFZ_JOB_WRITTEN);
        return afz_column_rate(column, over->from_ms, over->to_ms, ret);
}

static bool is_filling(const struct afz_flight *f, const struct afz_track *fs, struct filling *ret)
{
        const struct afz_column *available = afz_track_column(fs, AFZ_FS_AVAILABLE);
        struct filling one = {.fs = fs, .in_memory = is_in_memory(fs)};
        double written, rate;
        if (!is_written_to(fs) || !last_of(fs, AFZ_FS_TOTAL, &one.total) || one.total <= 0 ||
            !afz_shape_steady(available, AFZ_WAY_DOWN, rule.least_ms, &one.fall))
                return false;
        rate = -one.fall.per_s;
        if (rate < rule.least_per_s || !writing_rate(f, &one.fall, one.in_memory, &written) ||
            written < rate * rule.own_share)
                return false;
        one.left = available->point[available->count - 1].mean;
        if (one.left < 0 ||
            __builtin_sub_overflow(available->point[0].mean, one.left, &one.taken) ||
            one.taken <= 0)
                return false;
        one.left_s = (double)one.left / rate;
        *ret = one;
        return true;
}

/* Whether that is worth a word: a run that writes its results, and is done, is no danger. */
static bool is_danger(const struct afz_case *c, const struct filling *f)
{
        if ((double)f->left < (double)f->total * rule.low_share && f->left_s < rule.soon_s)
                return true;
        if (ended_well(c))
                return f->left_s < rule.act_s &&
                       (double)f->taken >= ((double)f->taken + (double)f->left) * rule.took_share;
        return f->left_s < (c->facts.end.how == AFZ_END_RUNNING ? rule.soon_s : rule.act_s);
}

/* The process that has written most. */
static void note_writer(const struct afz_flight *f, enum afz_metric metric, struct afz_verdict *v)
{
        const struct afz_track *track, *who = NULL;
        int64_t grown, most = 0;
        for (size_t cursor = 0; (track = afz_flight_next(f, AFZ_KIND_PROC, &cursor));)
                if (afz_shape_grown(afz_track_column(track, metric), &grown) && grown > most) {
                        most = grown;
                        who = track;
                }
        if (who)
                afz_verdict_note(v, "%.60s (pid %llu) wrote most: %s",
                                 who->name[0] ? who->name : "a process",
                                 (unsigned long long)who->subject.id, SIZE(most));
}

static void say_growth(const struct afz_case *c, const struct filling *f, struct afz_outcome *ret)
{
        bool act = f->left_s < rule.act_s && !ended_well(c);
        struct afz_verdict *v =
                afz_outcome_add(ret, "log-growth", act ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN, rule.told);
        if (!v)
                return;
        v->from_ms = f->fall.from_ms;
        v->to_ms = f->fall.to_ms;
        const char *where = f->in_memory ? ", which lies in memory" : "";
        if (f->left < rule.nothing_bytes)
                snprintf(v->summary, sizeof v->summary,
                         "what it wrote has filled %.60s%s: it took %s/s until nothing was left",
                         f->fs->name, where, SIZE(-f->fall.per_s));
        else
                snprintf(v->summary, sizeof v->summary,
                         "what it writes fills %.60s%s, by %s/s: %s %s left, enough for %s",
                         f->fs->name, where, SIZE(-f->fall.per_s), SIZE(f->left),
                         c->facts.end.how == AFZ_END_RUNNING ? "is" : "was",
                         LASTS(f->left_s * 1000));
        snprintf(v->fix, sizeof v->fix, "%s",
                 f->in_memory
                         ? "write it to a disk instead: a file in memory takes RAM until it is "
                           "removed"
                         : "keep fewer checkpoints and rotate logs, or write to a larger "
                           "disk; `du -xh --max-depth=2` there shows what has grown");
        afz_verdict_note(v, "%s of %s taken over %s, without ever going back", SIZE(f->taken),
                         SIZE(f->total), LASTS(c->flight->end_ms));
        note_writer(c->flight, f->in_memory ? AFZ_PROC_WRITE_CALLS : AFZ_PROC_WRITTEN, v);
}

void afz_judge_log_growth(const struct afz_case *c, struct afz_outcome *ret)
{
        const struct afz_track *fs;
        struct filling worst = {0}, one;
        for (size_t cursor = 0; (fs = afz_flight_next(c->flight, AFZ_KIND_FS, &cursor));)
                if (is_filling(c->flight, fs, &one) && is_danger(c, &one) &&
                    (!worst.fs || one.left_s < worst.left_s))
                        worst = one;
        if (worst.fs)
                say_growth(c, &worst, ret);
}

/* ---- disk-full ---- */

struct fullness {
        const struct afz_track *fs;
        int64_t left, total;
        bool files;  /* it is inodes that ran out */
        bool unseen; /* by how it fell until the last look, which was before the end */
        uint32_t t_ms;
};

static uint32_t time_of_least(const struct afz_column *column, int64_t least)
{
        for (size_t i = 0; i < column->count; i++)
                if (column->point[i].least == least)
                        return column->point[i].t_ms;
        return 0;
}

/* Whether what was left at the last look was gone by the end of a run that failed, at the rate of
 * the two steps before: a fast writer fills the rest between two looks. */
static bool fell_to_nothing(const struct afz_case *c, const struct afz_column *available)
{
        size_t n = available->count;
        /* What fails for want of space often removes its file: the last look then sees more. */
        if (n > 1 && available->point[n - 1].mean > available->point[n - 2].mean)
                n--;
        if (ended_well(c) || c->facts.end.how != AFZ_END_EXIT || n < 3)
                return false;
        const struct afz_point *p = &available->point[n - 3];
        uint32_t end = c->flight->end_ms;
        if (end <= p[2].t_ms || end - p[2].t_ms > rule.unseen_ms || p[1].t_ms <= p[0].t_ms ||
            p[2].t_ms <= p[1].t_ms || p[1].mean >= p[0].mean || p[2].mean >= p[1].mean)
                return false;
        double per_ms = ((double)p[0].mean - (double)p[2].mean) / (double)(p[2].t_ms - p[0].t_ms);
        return (double)p[2].mean * rule.unseen_share <= per_ms * (double)(end - p[2].t_ms);
}

/* The same of one that writes piece by piece and closes its file after each: no look finds it there
 * at the end. Whether the next piece would have had room, by what it wrote since the last look. */
static bool next_had_no_room(const struct afz_case *c, const struct afz_track *fs, int64_t total)
{
        const struct afz_column *available = afz_track_column(fs, AFZ_FS_AVAILABLE);
        const struct afz_column *written =
                afz_track_column(afz_flight_one(c->flight, AFZ_KIND_JOB),
                                 is_in_memory(fs) ? AFZ_JOB_WRITE_CALLS : AFZ_JOB_WRITTEN);
        size_t n = available->count;
        int64_t before, after;
        double piece = 0;
        if (ended_well(c) || c->facts.end.how != AFZ_END_EXIT || n < 3)
                return false;
        const struct afz_point *last = &available->point[n - 1];
        if (c->flight->end_ms > (uint64_t)last->t_ms + rule.closed_ms ||
            !afz_column_last(written, last->t_ms + 1, &before) ||
            !afz_column_last(written, UINT32_MAX, &after))
                return false;
        for (size_t i = 1; i < n; i++) {
                double fell =
                        (double)available->point[i - 1].mean - (double)available->point[i].mean;
                piece = fell > piece ? fell : piece;
        }
        double left = (double)last->mean - ((double)after - (double)before);
        return left < piece / rule.unseen_share && left < rule.low_share * (double)total;
}

static bool is_full(const struct afz_case *c, const struct afz_track *fs, struct fullness *ret)
{
        const struct afz_column *available = afz_track_column(fs, AFZ_FS_AVAILABLE);
        const struct afz_column *inodes = afz_track_column(fs, AFZ_FS_FILES_FREE);
        struct fullness one = {.fs = fs};
        int64_t files, most;
        if (is_shm(fs) || !is_written_to(fs) || !last_of(fs, AFZ_FS_TOTAL, &one.total) ||
            one.total <= 0 || !afz_column_least(available, 0, UINT32_MAX, &one.left) ||
            !afz_column_most(available, 0, UINT32_MAX, &most) || one.left < 0)
                return false;
        double line = (double)one.total * rule.full_share;
        if (line > (double)rule.full_bytes)
                line = (double)rule.full_bytes;
        one.files = afz_column_least(inodes, 0, UINT32_MAX, &files) && files < rule.few_files;
        one.unseen = (double)one.left >= line && !one.files &&
                     (fell_to_nothing(c, available) || next_had_no_room(c, fs, one.total));
        if ((double)one.left >= line && !one.files && !one.unseen)
                return false;
        if (!one.files && ended_well(c) &&
            (double)most - (double)one.left < (double)rule.fell_bytes)
                return false;
        one.t_ms = time_of_least(one.files ? inodes : available, one.files ? files : one.left);
        *ret = one;
        return true;
}

static void say_full(const struct afz_case *c, const struct fullness *f, bool fails,
                     struct afz_verdict *v)
{
        if (f->files)
                snprintf(v->summary, sizeof v->summary,
                         "%.80s, where it writes, has no room for more files (inodes), whatever "
                         "space is left",
                         f->fs->name);
        else if (f->unseen)
                snprintf(v->summary, sizeof v->summary,
                         "%.80s, where it writes, ran full: %s of %s were left %s before the end, "
                         "and it was filling faster than that",
                         f->fs->name, SIZE(f->left), SIZE(f->total),
                         LASTS(c->flight->end_ms - f->t_ms));
        else
                snprintf(v->summary, sizeof v->summary,
                         "%.80s, where it writes, %s full: %s of %s left", f->fs->name,
                         fails ? "is" : "is nearly", SIZE(f->left), SIZE(f->total));
        snprintf(v->fix, sizeof v->fix, "%s",
                 f->files ? "remove folders of many small files (`du --inodes -x`), or write them "
                            "elsewhere"
                 : is_in_memory(f->fs)
                         ? "write to a disk instead: this file system lies in memory, and is small"
                         : "remove old checkpoints, logs and caches (`du -xh --max-depth=2` shows "
                           "the large ones), or write to a larger disk");
}

void afz_judge_disk_full(const struct afz_case *c, struct afz_outcome *ret)
{
        const struct afz_track *fs;
        struct fullness worst = {0}, one;
        for (size_t cursor = 0; (fs = afz_flight_next(c->flight, AFZ_KIND_FS, &cursor));)
                if (is_full(c, fs, &one) &&
                    (!worst.fs || one.files || (!worst.files && one.left < worst.left)))
                        worst = one;
        if (!worst.fs)
                return;
        bool in_memory = is_in_memory(worst.fs);
        bool fails = worst.files || worst.unseen || worst.left < rule.nothing_bytes;
        struct afz_verdict *v = afz_outcome_add(
                ret, "disk-full", ended_well(c) || !fails ? AFZ_LEVEL_WARN : AFZ_LEVEL_ACT,
                fails && !worst.unseen ? rule.sure : rule.told);
        if (!v)
                return;
        v->from_ms = worst.t_ms;
        v->to_ms = c->flight->end_ms;
        say_full(c, &worst, fails, v);
        note_writer(c->flight, in_memory ? AFZ_PROC_WRITE_CALLS : AFZ_PROC_WRITTEN, v);
}

/* ---- shm-full ---- */

struct shm {
        int64_t first, most, total;
        bool has_files; /* the job was seen with files there */
        bool unseen;    /* it was not full yet at the last look, which was before the end */
};

/* Whether the next piece found no room, in a run that failed: by the largest between two looks. */
static bool shm_ran_full(const struct afz_case *c, const struct afz_column *used, int64_t total)
{
        size_t n = used->count;
        double piece = 0;
        if (ended_well(c) || c->facts.end.how != AFZ_END_EXIT || n < 2 ||
            c->flight->end_ms > (uint64_t)used->point[n - 1].t_ms + rule.unseen_ms)
                return false;
        for (size_t i = 1; i < n; i++) {
                double rise = (double)used->point[i].mean - (double)used->point[i - 1].mean;
                piece = rise > piece ? rise : piece;
        }
        return (double)used->point[n - 1].mean + piece >= (double)total;
}

static bool shm_of(const struct afz_case *c, struct shm *ret)
{
        const struct afz_flight *f = c->flight;
        const struct afz_track *fs, *host = afz_flight_one(f, AFZ_KIND_HOST);
        const struct afz_column *used = afz_track_column(host, AFZ_HOST_SHM_USED);
        struct shm s = {0};
        if (!last_of(host, AFZ_HOST_SHM_TOTAL, &s.total) || s.total <= 0 ||
            !afz_column_most(used, 0, UINT32_MAX, &s.most))
                return false;
        s.first = used->point[0].least;
        s.unseen = shm_ran_full(c, used, s.total);
        for (size_t cursor = 0; (fs = afz_flight_next(f, AFZ_KIND_FS, &cursor));)
                s.has_files |= is_shm(fs);
        *ret = s;
        return true;
}

void afz_judge_shm_full(const struct afz_case *c, struct afz_outcome *ret)
{
        const struct afz_end *end = &c->facts.end;
        /* SIGBUS, 7 everywhere that we run; a worker's is told by the exit status of the rest. */
        bool bus = end->how == AFZ_END_SIGNAL && end->code == 7;
        struct shm s;
        if (!shm_of(c, &s))
                return;
        double share = (double)s.most / (double)s.total;
        bool own = (double)s.most - (double)s.first >= (double)s.most * rule.shm_own;
        if (share < (bus || s.unseen ? rule.shm_bus : rule.shm_full) ||
            !(own || (bus && s.has_files)))
                return;
        struct afz_verdict *v =
                afz_outcome_add(ret, "shm-full", ended_well(c) ? AFZ_LEVEL_WARN : AFZ_LEVEL_ACT,
                                bus ? rule.sure : rule.told);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "/dev/shm, through which loader workers hand over their batches, ran full: %s of "
                 "%s%s",
                 SIZE(s.most), SIZE(s.total), bus ? "; who writes there then dies of SIGBUS" : "");
        snprintf(v->fix, sizeof v->fix, "fewer loader workers or a smaller prefetch_factor; %s",
                 s.total < rule.shm_small
                         ? "or a larger /dev/shm (docker run --shm-size=8g, or --ipc=host)"
                         : "or a larger one: mount -o remount,size=... /dev/shm");
        if (own)
                afz_verdict_note(v, "%s of it came while the job ran",
                                 SIZE((double)s.most - (double)s.first));
        if (s.total == 64 * MIB)
                afz_verdict_note(v, "%s is what a container gets when nobody asks for more",
                                 SIZE(s.total));
}
