#ifndef AFZ_CAPTURE_SEEN_H
#define AFZ_CAPTURE_SEEN_H
/* What the senses looked at: a set of paths in order, filled by the env's on_open. Part of capture.
 */
#include "env.h"

struct afz_seen {
        enum afz_root root;
        enum afz_open_kind kind;
        int err; /* 0 when it could be opened at least once */
        char path[];
};

/* All zero at birth. */
struct afz_seen_set {
        void *tree;
        int err; /* -ENOMEM: something is missing */
        size_t count;
        struct afz_seen **list; /* by root and path, set by _sort */
};

/* Adds a path, or notes that it could be opened after all. */
void afz_seen_add(struct afz_seen_set *set, enum afz_root root, enum afz_open_kind kind,
                  const char *path, int err);

/* Makes the list; nothing is added afterwards. */
int afz_seen_sort(struct afz_seen_set *set);

/* Whether something below this folder could be opened. */
bool afz_seen_below(const struct afz_seen_set *set, enum afz_root root, const char *folder);

void afz_seen_done(struct afz_seen_set *set);

#endif
