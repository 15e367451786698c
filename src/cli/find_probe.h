#ifndef AFZ_FIND_PROBE_H
#define AFZ_FIND_PROBE_H
/* Where the probe's library lies: beside this program in a build folder, in the lib folder of where
 * it was installed, or where it was to be installed. -ENOENT: nowhere. */
#include <stddef.h>

int afz_find_probe(char *ret, size_t cap);

/* The one that is in this program, as a file in memory: for LD_PRELOAD of what inherits our
 * descriptors, which is why `run` has no use for it. -ENOENT: there is none in it. */
int afz_probe_from_inside(char *ret, size_t cap);

#endif
