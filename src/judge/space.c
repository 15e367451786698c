#include "space.h"

#include <limits.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static const struct {
        uint64_t warn_percent, warn_bytes, warn_s, brake_percent, brake_bytes;
        unsigned warn_looks;
        uint64_t shm_warn_percent, leave_percent;
} limit = {
        .warn_percent = 5,        /* of the disk free: where ext4 keeps the rest for root */
        .warn_bytes = GIB,        /* or this, whichever is less: 5 % of 4 TB is no hurry */
        .warn_s = 600,            /* full in ten minutes at this rate: time to do something */
        .warn_looks = 10,         /* so often in a row, one a second: a burst is no rate */
        .brake_percent = 1,       /* of the disk free ... */
        .brake_bytes = 256 * MIB, /* ... or this, whichever is less: logs, a shell, a desktop's
                                   * session still need to write */
        .shm_warn_percent = 80,   /* used: at 100 % loaders die of SIGBUS without a word */
        .leave_percent = 110,     /* of a line: where it is left again */
};

static uint64_t percent(uint64_t value, uint64_t p)
{
        return value / 100 * p + value % 100 * p / 100;
}

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* A line that moves away once it was crossed. */
static uint64_t sticky(uint64_t line, bool crossed)
{
        return crossed ? percent(line, limit.leave_percent) : line;
}

static bool is_full_soon(const struct afz_space_disk *d, enum afz_space_level last)
{
        return d->known && d->size_bytes && d->left_s < sticky(limit.warn_s, last != AFZ_SPACE_OK);
}

static enum afz_space_level disk_level(const struct afz_space_disk *d, enum afz_space_level last,
                                       unsigned soon)
{
        if (!d->known || !d->size_bytes)
                return AFZ_SPACE_OK;
        uint64_t brake = least(percent(d->size_bytes, limit.brake_percent), limit.brake_bytes);
        uint64_t warn = least(percent(d->size_bytes, limit.warn_percent), limit.warn_bytes);
        bool fills = d->rate_bytes_per_s > 0;
        if (fills && d->free_bytes < sticky(brake, last == AFZ_SPACE_BRAKE))
                return AFZ_SPACE_BRAKE;
        if (fills && d->free_bytes < sticky(warn, last != AFZ_SPACE_OK))
                return AFZ_SPACE_WARN;
        if (soon >= limit.warn_looks || (soon > 0 && last != AFZ_SPACE_OK))
                return AFZ_SPACE_WARN;
        /* It has stopped writing, but the space has not come back. */
        if (last != AFZ_SPACE_OK && d->free_bytes < sticky(warn, true))
                return AFZ_SPACE_WARN;
        return AFZ_SPACE_OK;
}

static enum afz_space_level shm_level(const struct afz_space_shm *s, enum afz_space_level last)
{
        if (!s->known || !s->size_bytes || s->free_bytes > s->size_bytes)
                return AFZ_SPACE_OK;
        uint64_t used = s->size_bytes - s->free_bytes;
        uint64_t line = percent(s->size_bytes, 100 - limit.shm_warn_percent);
        bool full = s->free_bytes < sticky(line, last != AFZ_SPACE_OK);
        /* Half of it or more is the job's: else it is somebody else's business. */
        return full && s->job_bytes >= used / 2 && s->job_bytes ? AFZ_SPACE_WARN : AFZ_SPACE_OK;
}

struct afz_space_word afz_space_judge(const struct afz_space_word *last,
                                      const struct afz_space_disk *disk,
                                      const struct afz_space_shm *shm)
{
        enum afz_space_level before = last->cause == AFZ_CAUSE_DISK ? last->level : AFZ_SPACE_OK;
        unsigned soon = is_full_soon(disk, before) ? last->soon + (last->soon < UINT_MAX) : 0;
        enum afz_space_level level = disk_level(disk, before, soon);
        enum afz_space_level shm_before = last->cause == AFZ_CAUSE_SHM ? last->level : AFZ_SPACE_OK;
        enum afz_space_level other = shm_level(shm, shm_before);
        if (level == AFZ_SPACE_OK && other == AFZ_SPACE_OK)
                return (struct afz_space_word){AFZ_SPACE_OK, AFZ_CAUSE_NONE, soon};
        if (other > level)
                return (struct afz_space_word){other, AFZ_CAUSE_SHM, soon};
        return (struct afz_space_word){level, AFZ_CAUSE_DISK, soon};
}
