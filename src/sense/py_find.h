#ifndef AFZ_PY_FIND_H
#define AFZ_PY_FIND_H
/* Is there a Python in this memory, which one, and where is what in it?
 */
#include <stdint.h>

#include "py_walk.h"
#include "span.h"

/* Of one line of /proc/PID/maps: may an interpreter begin here? Only where a file's first byte is
 * mapped, and the file is a libpython or python by name, or `exe` (what /proc/PID/exe says: a
 * program may have it built in). */
bool afz_py_find_line(struct afz_span line, struct afz_span exe, uint64_t *ret_base);

/*
 * Fills all of `place` but its memory, which it reads: what is mapped at `base`. -ENOENT: no
 * interpreter there. -ENOTSUP: one that can't be read. -EAGAIN: one that isn't up.
 */
int afz_py_find_in(struct afz_py_place *place, uint64_t base);

#endif
