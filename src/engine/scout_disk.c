#include "scout_disk.h"

#include <string.h>

#include "clock.h"

static const struct {
        uint64_t forget_ns, stale_ns, least_ns, least_rate;
} rule = {
        .forget_ns = 60 * AFZ_NS_PER_S, /* a mount that the job has left */
        .stale_ns = 5 * AFZ_NS_PER_S,   /* a process just born or dying has no sum for a tick */
        .least_ns = 9 * (AFZ_NS_PER_S / 10), /* two looks nearer to each other give no rate */
        .least_rate = 64U << 10, /* bytes a second: below it is a log, not a filling disk */
};

/* What the job has written so far. Where one of its processes may not be read there is no sum. */
static bool written_so_far(const struct afz_window *w, uint64_t *ret)
{
        return afz_sample_get_u64(afz_window_one(w, AFZ_KIND_JOB), AFZ_JOB_WRITTEN, ret);
}

static struct afz_scout_fs *place_for(struct afz_scout_disk *disk, uint64_t id, uint64_t now_ns)
{
        struct afz_scout_fs *unused = NULL;
        for (size_t i = 0; i < AFZ_SCOUT_FS; i++) {
                struct afz_scout_fs *fs = &disk->fs[i];
                if (fs->id == id && fs->count > 0)
                        return fs;
                if (fs->count == 0 || now_ns - fs->seen_ns > rule.forget_ns)
                        unused = fs;
        }
        if (unused)
                *unused = (struct afz_scout_fs){.id = id};
        return unused;
}

static const struct afz_scout_fs_look *newest(const struct afz_scout_fs *fs)
{
        return &fs->look[(fs->count - 1) % AFZ_SCOUT_FS_LOOKS];
}

static const struct afz_scout_fs_look *oldest(const struct afz_scout_fs *fs)
{
        return &fs->look[fs->count > AFZ_SCOUT_FS_LOOKS ? fs->count % AFZ_SCOUT_FS_LOOKS : 0];
}

static void add_look(struct afz_scout_fs *fs, const struct afz_sample *s, uint64_t free_bytes,
                     uint64_t written)
{
        fs->seen_ns = s->t_ns;
        fs->wrote |= afz_sample_or(s, AFZ_FS_JOB_WRITES, 0) == 1;
        if (fs->count > 0 && newest(fs)->t_ns >= s->t_ns)
                return; /* the same reading again */
        /* Written so far fell: another root is watched. A rate over that would be none. */
        if (fs->count > 0 && written < newest(fs)->written_bytes)
                fs->count = 0;
        fs->look[fs->count++ % AFZ_SCOUT_FS_LOOKS] =
                (struct afz_scout_fs_look){s->t_ns, free_bytes, written};
}

static uint64_t per_second(uint64_t bytes, uint64_t ns)
{
        return (uint64_t)((double)bytes * (double)AFZ_NS_PER_S / (double)ns);
}

struct rates {
        uint64_t written, fallen; /* bytes a second */
};

static struct rates rates_of(const struct afz_scout_fs *fs)
{
        const struct afz_scout_fs_look *a = oldest(fs), *b = newest(fs);
        uint64_t ns = b->t_ns - a->t_ns;
        if (ns < rule.least_ns)
                return (struct rates){0};
        return (struct rates){
                .written = per_second(b->written_bytes - a->written_bytes, ns),
                .fallen = a->free_bytes > b->free_bytes
                                  ? per_second(a->free_bytes - b->free_bytes, ns)
                                  : 0,
        };
}

/* A file that is opened, written and closed between two sweeps over the job's files shows as a fall
 * that fits what was written. */
static bool is_written_to(const struct afz_scout_fs *fs, struct rates r)
{
        return fs->wrote || (r.written >= rule.least_rate && r.fallen >= r.written / 2);
}

static void fill_in(const struct afz_scout_fs *fs, const struct afz_sample *s, uint64_t size,
                    uint64_t written, struct afz_scout_report *ret)
{
        struct rates r = rates_of(fs);
        const struct afz_scout_fs_look *last = newest(fs);
        uint64_t rate = r.written < r.fallen ? r.written : r.fallen, gone = 0;
        /* Of what was written since the look, the part that has filled so far. */
        if (r.written > 0 && written > last->written_bytes)
                gone = (uint64_t)((double)(written - last->written_bytes) * (double)rate /
                                  (double)r.written);
        ret->disk.known = true;
        ret->disk.size_bytes = size;
        ret->disk.free_bytes = last->free_bytes > gone ? last->free_bytes - gone : 0;
        ret->disk.rate_bytes_per_s = rate;
        ret->disk.left_s = rate < rule.least_rate ? UINT64_MAX : ret->disk.free_bytes / rate;
        afz_span_copy(afz_span_str(s->name), ret->disk.mount, sizeof ret->disk.mount);
}

/* Sooner full; or, where none fills, fuller. */
static bool is_worse(const struct afz_scout_report *a, const struct afz_scout_report *b)
{
        if (!b->disk.known || a->disk.left_s != b->disk.left_s)
                return !b->disk.known || a->disk.left_s < b->disk.left_s;
        return (double)a->disk.free_bytes / (double)a->disk.size_bytes <
               (double)b->disk.free_bytes / (double)b->disk.size_bytes;
}

static void take_one(struct afz_scout_disk *disk, const struct afz_sample *s, uint64_t now_ns,
                     uint64_t written, struct afz_scout_report *worst)
{
        uint64_t free_bytes, size;
        struct afz_scout_report one = {0};
        bool in_memory = s->detail && strncmp(s->detail, "tmpfs", 5) == 0;
        if (in_memory || !afz_sample_get_u64(s, AFZ_FS_AVAILABLE, &free_bytes) ||
            !afz_sample_get_u64(s, AFZ_FS_TOTAL, &size) || size == 0)
                return;
        struct afz_scout_fs *fs = place_for(disk, s->subject.id, now_ns);
        if (!fs)
                return;
        add_look(fs, s, free_bytes, written);
        if (!is_written_to(fs, rates_of(fs)))
                return;
        fill_in(fs, s, size, written, &one);
        if (is_worse(&one, worst))
                *worst = one;
}

void afz_scout_disk_take(struct afz_scout_disk *disk, const struct afz_window *w,
                         struct afz_scout_report *report)
{
        uint64_t written;
        size_t cursor = 0;
        const struct afz_sample *s;
        struct afz_scout_report worst = {0};
        if (!written_so_far(w, &written)) {
                if (w->t_ns - disk->known_ns > rule.stale_ns)
                        report->disk = worst.disk;
                return;
        }
        disk->known_ns = w->t_ns;
        while ((s = afz_window_next(w, AFZ_KIND_FS, &cursor)))
                take_one(disk, s, w->t_ns, written, &worst);
        report->disk = worst.disk;
}
