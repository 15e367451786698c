#ifndef AFZ_MOUNTINFO_H
#define AFZ_MOUNTINFO_H
/* /proc/PID/mountinfo: a strict parser of its lines and a table of them. Pure, fuzzed.
 *
 *      27 1 254:0 / /mnt/my\040data rw,relatime shared:1 - ext4 /dev/vda rw
 *
 * Blanks, tabs, newlines and backslashes in names are written as octal (\040); the spans below are
 * as they stand in the text and afz_mount_unescape() turns them into the true name.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "span.h"

struct afz_mount {
        uint64_t id, parent;
        uint64_t major, minor; /* 0:N for a file system without a block device of its own */
        struct afz_span point, type, source; /* escaped; point into the text */
};

int afz_mountinfo_parse(struct afz_span line, struct afz_mount *ret);

/* The true name, NUL-terminated, and its length. -EINVAL: a backslash without three octal digits,
 * or a NUL among them; -ENAMETOOLONG. */
ssize_t afz_mount_unescape(struct afz_span escaped, char *buf, size_t cap);

/* The lines of one mountinfo. The caller owns the text (which must live as long as the table is
 * used) and the array. */
struct afz_mount_table {
        size_t count, cap;
        uint64_t dropped; /* lines that were broken or found no room */
        struct afz_mount *mount;
};

/* Fills the table anew. Returns the number of mounts; broken lines are left out and counted. */
size_t afz_mount_table_fill(struct afz_mount_table *table, struct afz_span text);

/* By mount id; NULL when it is not there (another mount namespace, or newer than the table). */
const struct afz_mount *afz_mount_by_id(const struct afz_mount_table *table, uint64_t id);

/* The mount that an absolute, unescaped path leads to, found as the kernel finds it: from the root,
 * crossing each mount that stands on the way. A mount that is hidden below another is never the
 * answer. NULL when the path is not absolute, or on no mount that the table shows: in a chroot its
 * root may not be one. */
const struct afz_mount *afz_mount_of_path(const struct afz_mount_table *table, const char *path);

#endif
