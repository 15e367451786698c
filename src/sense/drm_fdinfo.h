#ifndef AFZ_DRM_FDINFO_H
#define AFZ_DRM_FDINFO_H
/* Parses /proc/PID/fdinfo/FD of a file that belongs to a graphics driver: lines "drm-KEY: value" as
 * the kernel's "DRM client usage stats" lay down. Pure, strict, fuzzed.
 *
 * One process may hold the same client several times (a descriptor duplicated, a library loaded
 * twice), and so may two processes: client_id is what tells them apart, and memory must be counted
 * once for each.
 */
#include <stdbool.h>
#include <stdint.h>

#include "span.h"

struct afz_drm_fdinfo {
        struct afz_span driver; /* "amdgpu", "i915", "xe"; points into the text, like pdev */
        struct afz_span pdev;   /* "0000:03:00.0"; n is 0 when it is not said */
        bool has_client_id;
        uint64_t client_id;
        bool has_vram, has_system;
        uint64_t vram_bytes;   /* memory of the device that it holds now */
        uint64_t system_bytes; /* RAM that the device uses for it */
};

/* -ENODATA: not a file of a graphics driver. -EINVAL: a number there is garbage, or driver, device
 * or client is named twice. A last line without its end is not taken. */
int afz_drm_fdinfo_parse(struct afz_span text, struct afz_drm_fdinfo *ret);

#endif
