#ifndef AFZ_CGROUP_NODE_H
#define AFZ_CGROUP_NODE_H
/* One cgroup, held by the descriptors of its files: a cgroup that is removed and made anew under
 * the same name is another one, and reading the old descriptors fails instead of telling of the
 * new.
 */
#include "cgroup_path.h"
#include "sample.h"

#define AFZ_CGROUP_FILES 20

struct afz_cgroup_node {
        int version;
        int fd[AFZ_CGROUP_FILES]; /* in the order of the version's file table; -1: not there */
};

/* Opens what is there of the cgroup's files; with only_memory just those that tell limit and use.
 */
void afz_cgroup_node_open(struct afz_cgroup_node *node, const struct afz_env *env,
                          const struct afz_cgroup_path *path, bool only_memory);
void afz_cgroup_node_close(struct afz_cgroup_node *node);

/* Whether it has a limit at all: a look at one or two files, before all of them are read. */
bool afz_cgroup_node_bounds(const struct afz_cgroup_node *node);

/* Fills a sample of kind CGROUP. -ENODEV when the cgroup is gone. */
int afz_cgroup_node_read(const struct afz_cgroup_node *node, struct afz_sample *s);

#endif
