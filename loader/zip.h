#ifndef AFZ_ZIP_H
#define AFZ_ZIP_H
/* The directory of a zip file, also of one over 4 GiB. Names are only compared and shown. */
#include <stdint.h>

#include "format.h"

enum {
        AFZ_ZIP_NAME_MAX = 64,
        AFZ_ZIP_DIRECTORY_MAX = 1 << 20, /* bytes; ours have some hundred */
};

struct afz_zip_member {
        char name[AFZ_ZIP_NAME_MAX]; /* cut if it is longer */
        bool is_stored;              /* as it is: neither compressed nor encrypted */
        uint64_t at, bytes;          /* its data in the file */
};

/* Calls `each` for every member, in the directory's order, until it returns other than 0; that is
 * returned. -EBADMSG: no zip, or damaged; -ENODATA: cut off; -ENOMEM. */
int afz_zip_walk(int fd, uint64_t file_bytes,
                 int (*each)(void *user, const struct afz_zip_member *member), void *user);

#endif
