#ifndef AFZ_TAR_READ_H
#define AFZ_TAR_READ_H
/* The members of a tar file, one after the other: POSIX (ustar, pax) and GNU's long names.
 *
 * A member's name is only ever compared and shown; nothing is opened or written by it, so it may
 * say
 * "../../etc/passwd" as it likes. Links, folders and devices are passed over. */
#include <stdbool.h>
#include <stdint.h>

#include "format.h"

enum {
        AFZ_TAR_NAME_MAX = 1024, /* with the NUL; a longer name is cut */
        AFZ_TAR_WINDOW = 32 << 10,
};

struct afz_tar_member {
        char name[AFZ_TAR_NAME_MAX];
        uint64_t at, bytes; /* its data */
};

struct afz_tar {
        int fd;
        uint64_t bytes, at;               /* of the file; of the next header */
        uint64_t window_at, window_bytes; /* what of the file is in memory */
        bool is_passing;                  /* what was looked at need not stay in the page cache */
        uint64_t left_at;                 /* up to where it was given back */
        uint8_t window[AFZ_TAR_WINDOW];
};

/* 1: a plain file; 0: no more. -EBADMSG: no tar, or damaged; -ENODATA: cut off; -ENOTSUP: sparse.
 */
int afz_tar_next(struct afz_tar *tar, struct afz_tar_member *ret);

#endif
