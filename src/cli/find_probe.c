#include "find_probe.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "find_part.h"
#include "out.h"

/* Of the program as a whole (probe/inside.py); tests of parts of it have none. */
extern const char afz_probe_inside[] __attribute__((weak));
extern const char afz_probe_inside_end[] __attribute__((weak));

int afz_find_probe(char *ret, size_t cap)
{
        return afz_find_part(&afz_part_probe, ret, cap);
}

int afz_probe_from_inside(char *ret, size_t cap)
{
        if (!afz_probe_inside || !afz_probe_inside_end)
                return -ENOENT;
        size_t bytes = (size_t)(afz_probe_inside_end - afz_probe_inside);
        int fd = memfd_create("libantifreeze-probe.so", 0);
        if (fd < 0)
                return -errno;
        int r = afz_write_all(fd, afz_probe_inside, bytes);
        if (r == 0 && afz_path(ret, cap, "/proc/self/fd/%d", fd) <= 0)
                r = -ENAMETOOLONG;
        if (r < 0)
                close(fd);
        return r;
}
