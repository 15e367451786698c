/* The disk sense: block devices (disk_table.h), and the file systems that the job has files on
 * (job_files.h, job_fs.h), remote ones too. */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "disk_table.h"
#include "fs_type.h"
#include "job_files.h"
#include "job_fs.h"
#include "sense.h"

enum { MAX_DISKS = 64 }; /* disks that are shown; a storage server has some dozens */

struct disk_sense {
        const struct afz_env *env;
        struct afz_disk_table *disks;
        struct afz_job_files *files; /* NULL: the job's mounts cannot be seen */
        struct afz_job_fs *fs;
};

static void disk_close(void *state)
{
        struct disk_sense *d = state;
        if (!d)
                return;
        afz_job_fs_free(d->fs);
        afz_job_files_free(d->files);
        afz_disk_table_free(d->disks);
        free(d);
}

static int disk_open(const struct afz_env *env, const struct afz_target *target, void **ret_state)
{
        struct disk_sense *d = calloc(1, sizeof *d);
        if (!d)
                return -ENOMEM;
        d->env = env;
        /* The disks are worth seeing without the job's files, and the other way round. */
        int disks = afz_disk_table_new(env, &d->disks);
        int files = afz_job_files_new(env, target->pid, &d->files);
        if (files >= 0)
                files = afz_job_fs_new(env, d->files, &d->fs);
        if (disks == -ENOMEM || files == -ENOMEM || (disks < 0 && files < 0)) {
                disk_close(d);
                return disks == -ENOMEM || files == -ENOMEM ? -ENOMEM : disks;
        }
        *ret_state = d;
        return 0;
}

static void add_disk(const struct afz_disk *d, bool all_known, struct afz_batch *out)
{
        const struct afz_diskstats *st = &d->stats;
        struct afz_sample *s = afz_batch_add(
                out, (struct afz_subject){.kind = AFZ_KIND_DISK, .id = afz_disk_id(d)}, d->name);
        if (!s)
                return;
        afz_sample_set_scaled(s, AFZ_DISK_READ, st->read_sectors, AFZ_SECTOR_BYTES);
        afz_sample_set_scaled(s, AFZ_DISK_WRITTEN, st->written_sectors, AFZ_SECTOR_BYTES);
        afz_sample_set_u64(s, AFZ_DISK_READS, st->reads);
        afz_sample_set_u64(s, AFZ_DISK_WRITES, st->writes);
        afz_sample_set_scaled(s, AFZ_DISK_READ_TIME, st->read_ms, AFZ_NS_PER_MS);
        afz_sample_set_scaled(s, AFZ_DISK_WRITE_TIME, st->write_ms, AFZ_NS_PER_MS);
        afz_sample_set_scaled(s, AFZ_DISK_BUSY, st->busy_ms, AFZ_NS_PER_MS);
        afz_sample_set_scaled(s, AFZ_DISK_QUEUE_TIME, st->queue_ms, AFZ_NS_PER_MS);
        /* Some drivers have let it fall below zero, which is printed as 4 billion. */
        if (st->in_flight <= INT32_MAX)
                afz_sample_set_u64(s, AFZ_DISK_IN_FLIGHT, st->in_flight);
        if (d->has_rotational)
                afz_sample_set(s, AFZ_DISK_ROTATIONAL, d->rotational);
        if (d->job_uses || all_known)
                afz_sample_set(s, AFZ_DISK_JOB_USES, d->job_uses);
}

/* Adds the file systems and marks their disks. Returns whether every disk that the job uses is
 * known, so that one which is not marked is truly not used. */
static bool add_file_systems(struct disk_sense *d, struct afz_batch *out)
{
        struct afz_job_mount used[AFZ_JOB_FS_MAX];
        if (!d->fs)
                return false;
        afz_job_files_update(d->files, out->t_ns);
        afz_job_fs_start(d->fs);
        size_t count = afz_job_files_mounts(d->files, used, AFZ_JOB_FS_MAX);
        bool all_known = afz_job_files_complete(d->files) && count < AFZ_JOB_FS_MAX;
        for (size_t i = 0; i < count; i++) {
                const struct afz_mount *mount = used[i].mount;
                struct afz_sample *s = afz_job_fs_add(d->fs, &used[i], out);
                struct afz_disk *disk = d->disks ? afz_disk_of_mount(d->disks, mount) : NULL;
                if (disk) {
                        afz_disk_mark_used(disk);
                        if (s)
                                afz_sample_set_u64(s, AFZ_FS_DEVICE, afz_disk_id(disk));
                } else if (!afz_fs_type_has_no_disk(mount)) {
                        all_known = false;
                }
        }
        return all_known;
}

static int disk_read(void *state, struct afz_batch *out)
{
        struct disk_sense *d = state;
        const struct afz_disk *shown[MAX_DISKS];
        int r = d->disks ? afz_disk_table_read(d->disks, out->t_ns) : -ENODATA;
        bool all_known = add_file_systems(d, out);
        size_t count = r >= 0 ? afz_disk_table_shown(d->disks, shown, MAX_DISKS) : 0;
        for (size_t i = 0; i < count; i++)
                add_disk(shown[i], all_known, out);
        return r < 0 && out->count == 0 ? r : 0;
}

const struct afz_sense afz_sense_disk = {
        .name = "disk",
        .what = "disks, and the file systems that the job has files on",
        /* The kernel counts in whole milliseconds and disks work in bursts: a rate over less than
         * a second says little. */
        .every_ns = UINT64_C(1000000000),
        .max_samples = MAX_DISKS + AFZ_JOB_FS_MAX,
        .absent =
                "neither /proc/diskstats nor the job's mounts are there; disk rates and free space "
                "are not seen (is /proc mounted, and does the process still live?)",
        .denied = "the job's mounts and /proc/diskstats may not be read; run antifreeze as the "
                  "job's user or as root",
        .open = disk_open,
        .read = disk_read,
        .close = disk_close,
};
