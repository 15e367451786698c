#ifndef AFZ_CGROUP_LAYOUT_H
#define AFZ_CGROUP_LAYOUT_H
/* Which cgroup layout this is and what our own cgroup can do. Where a cgroup is comes from the
 * senses (cgroup_path.h); here is only what matters for protection. Paths are relative to
 * AFZ_ROOT_CGROUP.
 */
#include <stdbool.h>
#include <stdint.h>

#include "cgroup_path.h"
#include "env.h"

enum afz_cgroup_kind {
        AFZ_CGROUP_UNKNOWN, /* our own place could not be read */
        AFZ_CGROUP_NONE,
        AFZ_CGROUP_V1,
        AFZ_CGROUP_HYBRID,       /* v2 is mounted, but memory is v1's: not tier cgroup2 */
        AFZ_CGROUP_V2,           /* v2 with the memory controller */
        AFZ_CGROUP_V2_NO_MEMORY, /* v2, and nobody has the memory controller */
};

struct afz_cgroup_layout {
        enum afz_cgroup_kind kind;
        int err; /* why it is unknown */
        struct afz_cgroup_path own;
};

void afz_cgroup_layout_read(const struct afz_env *env, struct afz_cgroup_layout *ret);

/* The controllers that cgroup.controllers of this folder lists: bit 1 << AFZ_CG_X for memory, cpu,
 * io and pids; or -errno. */
int afz_cgroup_controllers(const struct afz_env *env, const char *folder);

/* "memory, pids", or "none"; returns buf, or a literal. */
const char *afz_cgroup_controllers_text(int bits, char *buf, size_t cap);

/* The lowest memory limit from our own cgroup upwards: bytes, UINT64_MAX for none. -ENODATA where
 * there is no memory controller, -errno when a limit could not be read. */
int afz_cgroup_memory_limit(const struct afz_env *env, const struct afz_cgroup_layout *layout,
                            uint64_t *ret_bytes);

#endif
