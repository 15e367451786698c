#ifndef AFZ_DISK_TABLE_H
#define AFZ_DISK_TABLE_H
/* The block devices of /proc/diskstats, each in a place of its own that is steady while the device
 * is there, with what /sys adds to it. Partitions are known too, so that a mounted partition leads
 * to its disk; only whole disks are shown.
 *
 * Not shown: partitions, RAM disks, loop devices without a file behind them, and devices that never
 * did any I/O since boot (an empty card reader).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diskstats.h"
#include "env.h"
#include "mountinfo.h"

enum {
        AFZ_DISK_MAX = 512,      /* devices and partitions that we can hold */
        AFZ_DISK_NAME_CAP = 32,  /* as the kernel's DISK_NAME_LEN */
        AFZ_DISK_BELOW_MAX = 16, /* members of an array or volume group that we follow */
};

struct afz_disk {
        char name[AFZ_DISK_NAME_CAP]; /* "": the place is free */
        struct afz_diskstats stats;   /* of the last reading; its own name is not valid */
        struct afz_disk *whole;       /* the disk it is a part of, or itself */
        uint64_t seen;                /* number of the reading that had it */
        bool left_out;                /* no real disk */
        bool has_rotational, rotational;
        bool job_uses;
        size_t below_count; /* dm and md: the devices they are made of */
        struct afz_disk *below[AFZ_DISK_BELOW_MAX];
};

struct afz_disk_table;

/* -ENODATA where there is no diskstats. */
int afz_disk_table_new(const struct afz_env *env, struct afz_disk_table **ret);
void afz_disk_table_free(struct afz_disk_table *table);

/* Reads diskstats anew, and what /sys knows when the set of devices changed or was not looked at
 * for half a minute. Clears every job_uses. */
int afz_disk_table_read(struct afz_disk_table *table, uint64_t now_ns);

/* The shown disks, in the order of diskstats: at most cap, returns how many. */
size_t afz_disk_table_shown(const struct afz_disk_table *table, const struct afz_disk **disks,
                            size_t cap);

/* The disk under a mount: by its device number, and where that is a number without a device
 * (btrfs), by the device that it was mounted from. NULL when it cannot be told (overlay, ZFS) or
 * there is none (tmpfs). */
struct afz_disk *afz_disk_of_mount(struct afz_disk_table *table, const struct afz_mount *mount);

/* Sets job_uses on a disk and on what it is made of. */
void afz_disk_mark_used(struct afz_disk *disk);

static inline uint64_t afz_disk_id(const struct afz_disk *disk)
{
        return disk->stats.major << 20 | disk->stats.minor;
}

#endif
