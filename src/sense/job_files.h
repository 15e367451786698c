#ifndef AFZ_JOB_FILES_H
#define AFZ_JOB_FILES_H
/* On which file systems the job has files: the working folder of its root and the open files of all
 * its processes, tallied by mount.
 *
 * An open file's mount is read from /proc/PID/fdinfo, which asks no file system anything (a stat()
 * of a file on a dead network mount never returns). A job may have 100,000 files open, so they are
 * looked at in rounds of bounded cost, one after the other through all processes (a "sweep"). What
 * a sweep has found counts at once; what it did *not* find, and how many there are, is only known
 * when a whole sweep is through, and only if no process was closed to us.
 *
 * Mounts are those of the root's mount namespace. Files of a process that sits in another namespace
 * (a container below the job) are not resolved.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "env.h"
#include "mountinfo.h"

struct afz_job_files;

/* A mount that the job uses. */
struct afz_job_mount {
        const struct afz_mount *mount; /* valid until the next update */
        uint64_t files;                /* open there in the last whole sweep */
        bool writes;                   /* one of them is open for writing */
        bool complete; /* `files` is known, and `writes` may be believed when it is false */
};

/* pid 0: every process of the machine. Looks a first time. -ESRCH: there is no such process;
 * -ENODATA or -EACCES: its mounts cannot be read. */
int afz_job_files_new(const struct afz_env *env, uint64_t pid, struct afz_job_files **ret);
void afz_job_files_free(struct afz_job_files *jf);

/* One round, if it is time for one. No allocation. */
void afz_job_files_update(struct afz_job_files *jf, uint64_t now_ns);

/* Fills at most cap mounts, pseudo file systems left out; returns how many. */
size_t afz_job_files_mounts(const struct afz_job_files *jf, struct afz_job_mount *mounts,
                            size_t cap);

/* Whether a sweep is known to have seen all there is: only then is "not among the mounts" a no. */
bool afz_job_files_complete(const struct afz_job_files *jf);

const struct afz_mount_table *afz_job_files_table(const struct afz_job_files *jf);

/* The process whose mounts these are, and the path under which *we* reach its root: "" where it
 * sees the same tree as we do, else "/proc/PID/root". */
uint64_t afz_job_files_pid(const struct afz_job_files *jf);
const char *afz_job_files_root(const struct afz_job_files *jf);

/* "flags:" and "mnt_id:" of a /proc/PID/fdinfo file, of which the first 128 bytes are enough. */
int afz_fdinfo_parse(struct afz_span text, uint64_t *ret_mount_id, bool *ret_writes);

#endif
