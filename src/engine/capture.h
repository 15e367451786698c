#ifndef AFZ_CAPTURE_H
#define AFZ_CAPTURE_H
/* Records what the senses read on this machine as a fixture that afz_env_open_fixture() opens.
 *
 * The real engine runs over an env that tells of every path that is opened; each such path is then
 * written once, masked (capture_mask.h). So a capture has exactly what the senses look at, and a
 * sense that is added later needs nothing here but rows in the tables of masks.
 *
 * In the folder:
 *   proc/ sys/ cgroup/ dev/   files, folders and links below the env's roots
 *   machine, fs_space         what no file tells (env.h)
 *   job                       the pid that was asked for, for whoever wants to look at it again
 *   not-read                  "EACCES proc/1/io": what could not be read, and why
 *   nvml.txt                  what NVML said, where there is an NVIDIA GPU
 *   about                     kernel, date, version, and what was masked
 */
#include <stddef.h>
#include <stdint.h>

#include "env.h"

struct afz_capture_request {
        const char *dir;     /* does not exist yet, or is an empty folder */
        uint64_t pid;        /* root of the job; 0: every process of the machine */
        const char *version; /* of Antifreeze, for `about` */
};

struct afz_capture_result {
        size_t files, processes;
        uint64_t bytes;
};

/* Captures the machine that env shows; the env is not changed. Either the folder is complete at the
 * end or nothing was changed. -EEXIST: dir is there and not empty; -ENOTDIR: it is no folder;
 * -ESRCH: no such process; -ENOENT: the folder that it would be in is not there; else what writing
 * failed with. */
int afz_capture(const struct afz_env *env, const struct afz_capture_request *request,
                struct afz_capture_result *ret);

#endif
