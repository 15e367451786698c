#ifndef AFZ_FRONT_GRANT_H
#define AFZ_FRONT_GRANT_H
/* What a batch system has granted a job on this node, by the words that it leaves in the
 * environment; tasks beside each other share it. Not every site enforces it; who is above it takes
 * what another job was granted. */
#include <stdint.h>

/* UINT64_MAX: nothing is known, or all of the node. `get` is getenv(). */
uint64_t afz_grant_bytes(char *(*get)(const char *name));

#endif
