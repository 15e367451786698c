/*
 * A folder for what a run writes: the user's own, or a new one under $TMPDIR (else /tmp).
 *
 * Files are always new (never an old one reused, never a link followed), and are removed with the
 * handle; a folder is removed only where it was made here. A run that is killed leaves its files
 * behind, as real ones do.
 */
#ifndef AFZ_SCRATCH_H
#define AFZ_SCRATCH_H

struct afz_scratch;

/* dir NULL: a new one. -errno of what could not be made or opened. */
int afz_scratch_new(const char *dir, struct afz_scratch **ret);
struct afz_scratch *afz_scratch_free(struct afz_scratch *scratch);

/* A new empty file, open for reading and writing; the descriptor is the caller's. At most two to a
 * folder: -ENOSPC. */
int afz_scratch_create(struct afz_scratch *scratch, const char *name, int *ret_fd);

const char *afz_scratch_path(const struct afz_scratch *scratch);

#endif
