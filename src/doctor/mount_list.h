#ifndef AFZ_MOUNT_LIST_H
#define AFZ_MOUNT_LIST_H
/* Our own mountinfo, read once: what is mounted where, and which mount holds a path.
 *
 * A mount that is answered over a network can hang whoever asks it anything, for ever: such mounts
 * are known by their type alone and never touched.
 */
#include <stdbool.h>
#include <stddef.h>

#include "env.h"
#include "mountinfo.h"

struct afz_mount_list {
        int err;    /* why there is no list, or 0 */
        char *text; /* owned, as the table's array is */
        struct afz_mount_table table;
};

/* A list that cannot be read is empty, with err set. Only -ENOMEM is returned. */
int afz_mount_list_read(const struct afz_env *env, struct afz_mount_list *ret);
void afz_mount_list_done(struct afz_mount_list *list);

/* The mount at exactly this point (of several, the one that is seen), or NULL. */
const struct afz_mount *afz_mount_at(const struct afz_mount_list *list, const char *point);

/* The mount that an absolute path lies on, following links as far as that is possible without
 * touching a mount that may not answer. `link` is readlink(): the length or -errno. Parts that do
 * not exist are taken as names. NULL: not told by the list. */
typedef ssize_t afz_link_fn(void *ctx, const char *path, char *buf, size_t cap);
const struct afz_mount *afz_mount_of_linked(const struct afz_mount_list *list, const char *path,
                                            afz_link_fn *link, void *ctx);

/* Whether it answers at once, and may be asked for its space. */
bool afz_mount_answers(const struct afz_mount *mount);

/* The value of an option of the mount's file system ("hidepid=" finds "2"); false: not set. */
bool afz_mount_option(const struct afz_mount *mount, const char *name, struct afz_span *ret_value);

#endif
