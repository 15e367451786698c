#ifndef AFZ_FS_TYPE_H
#define AFZ_FS_TYPE_H
/* What is known of a file system by its type. One table; a type that has no row is judged by its
 * device: with a block device it is LOCAL, without one it is UNKNOWN and is not touched.
 */
#include <stdbool.h>

#include "mountinfo.h"

enum afz_fs_class {
        AFZ_FS_UNKNOWN, /* may block; we cannot say whether it is remote */
        AFZ_FS_LOCAL,   /* answers at once: its space may be asked for */
        AFZ_FS_MEMORY,  /* the same, and its files are in memory */
        AFZ_FS_REMOTE,  /* over a network, or by a program that may be dead: never to be asked */
        AFZ_FS_KERNEL,  /* windows into the kernel (proc, sysfs): files there are none */
};

struct afz_fs_type {
        const char *type; /* ends in '.': every type that begins so ("fuse.sshfs") */
        enum afz_fs_class class;
        const char *words; /* how it is reached, for people; NULL where there is nothing to say */
};

/* The row of a mount's type, never NULL. */
const struct afz_fs_type *afz_fs_type_of(const struct afz_mount *mount);

/* Whether it surely lies on no disk of this machine: in memory, or far away. */
bool afz_fs_type_has_no_disk(const struct afz_mount *mount);

#endif
