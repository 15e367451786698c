#ifndef AFZ_FDS_H
#define AFZ_FDS_H
/* Letting go of descriptors, for helpers that are forked and not exec'ed: what they keep open keeps
 * locks held and pipes from ending.
 */
#include <stddef.h>
#include <unistd.h>

/* Closes all but these (in any order; negative ones are passed over). */
void afz_fds_close_but(const int *keep, size_t n);

/* Closes it if it is open, and says so. */
static inline void afz_fd_close(int *fd)
{
        if (*fd >= 0)
                close(*fd);
        *fd = -1;
}

#endif
