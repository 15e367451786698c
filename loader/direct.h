#ifndef AFZ_DIRECT_H
#define AFZ_DIRECT_H
/* A file of which large runs are read from all over, once each: past the page cache, straight from
 * the disk, where that is the better way; through the page cache where the run lies there already,
 * where the file is small beside what memory is free (the next epoch finds it there then), where
 * several ranks read the same, and where the file system knows no other way. */
#include <stdbool.h>
#include <stdint.h>

#include "format.h"

enum { AFZ_DIRECT_SLACK = 2 * 4096 }; /* that scratch has beyond a run: disks read whole blocks */

struct afz_direct {
        int fd, past_fd; /* past_fd -1: only through the page cache */
        uint64_t bytes;
};

int afz_direct_open(struct afz_direct *ret, const char *path, bool is_shared);
void afz_direct_close(struct afz_direct *file);

/* As afz_dataset_read(). What scratch->raw does not hold goes through the page cache. */
int afz_direct_read(const struct afz_direct *file, void *to, uint64_t bytes, uint64_t at,
                    struct afz_scratch *scratch);

#endif
