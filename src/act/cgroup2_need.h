#ifndef AFZ_CGROUP2_NEED_H
#define AFZ_CGROUP2_NEED_H
/* What a job needs, from the memory.stat of its cgroup (v2). Pure.
 *
 * need = anon + shmem + swap + the kernel memory that cannot be given back. Page cache is not in
 * it: the kernel takes that away before anybody suffers.
 *
 * A page that came back from swap may keep its place there; it is then in anon and in swap. Where
 * the kernel tells how much is in both (swapcached, 5.13), it counts once: a job that was swapped
 * out and read back would else seem to need half as much again.
 */
#include <stdint.h>

#include "span.h"

/* -EINVAL: there is no anon in the text, which is no memory.stat then. */
struct afz_cgroup2_need {
        uint64_t bytes;
        uint64_t away_bytes; /* of it, in swap alone: a page on its way there is still in RAM */
};
int afz_cgroup2_need(struct afz_span stat, uint64_t swap_bytes, struct afz_cgroup2_need *ret);

#endif
