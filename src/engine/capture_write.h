#ifndef AFZ_CAPTURE_WRITE_H
#define AFZ_CAPTURE_WRITE_H
/* Writes the seen paths as a tree of files. Part of capture. */
#include "capture.h"
#include "capture_mask.h"
#include "capture_seen.h"

struct afz_capture_tree {
        const struct afz_env *env; /* where to read */
        const struct afz_seen_set *seen;
        const struct afz_mask *mask;
        int dir_fd;         /* where to write: an empty folder */
        struct afz_out *no; /* the list of what could not be read */
        struct afz_capture_result result;
};

/* Writes every seen path below dir_fd. A path that cannot be read any more is listed; only what
 * cannot be written is an error. */
int afz_capture_write(struct afz_capture_tree *tree);

/* One file of the capture's own, below dir_fd. */
int afz_capture_put(struct afz_capture_tree *tree, const char *path, struct afz_span text);

#endif
