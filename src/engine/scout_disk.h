#ifndef AFZ_SCOUT_DISK_H
#define AFZ_SCOUT_DISK_H
/* Whether the job is filling a disk. Pure: windows in, the report's `disk` out.
 *
 * What the job writes is known for all file systems together (its processes' write_bytes: pages
 * made dirty, those of tmpfs and overwritten ones too); how much each file system has lost is known
 * by itself. A file system fills by the job's doing at the smaller of both rates. Rewriting a file
 * in place, or another program's download, therefore fill nothing.
 *
 * Space is asked for once a second; in between, what the job has written since is taken off.
 */
#include "scout.h"
#include "window.h"

enum { AFZ_SCOUT_FS = 32, AFZ_SCOUT_FS_LOOKS = 12 };

struct afz_scout_fs {
        uint64_t id;      /* of the mount; 0: a free place */
        bool wrote;       /* the job had a file open for writing there, at any time */
        uint64_t seen_ns; /* last reading that had it */
        uint64_t count;   /* looks so far; look i stands at i % AFZ_SCOUT_FS_LOOKS */
        struct afz_scout_fs_look {
                uint64_t t_ns, free_bytes, written_bytes;
        } look[AFZ_SCOUT_FS_LOOKS];
};

/* In place; all zeros is a new one. */
struct afz_scout_disk {
        uint64_t known_ns; /* when the job's sum was last there */
        struct afz_scout_fs fs[AFZ_SCOUT_FS];
};

void afz_scout_disk_take(struct afz_scout_disk *disk, const struct afz_window *window,
                         struct afz_scout_report *report);

#endif
