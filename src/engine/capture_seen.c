#include "capture_seen.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
        const struct afz_seen *x = a, *y = b;
        if (x->root != y->root)
                return x->root < y->root ? -1 : 1;
        int r = strcmp(x->path, y->path);
        if (r != 0 || x->kind == y->kind)
                return r;
        return x->kind < y->kind ? -1 : 1;
}

static struct afz_seen *make(enum afz_root root, enum afz_open_kind kind, const char *path, int err)
{
        size_t n = strlen(path) + 1;
        struct afz_seen *s = malloc(sizeof *s + n);
        if (!s)
                return NULL;
        s->root = root;
        s->kind = kind;
        s->err = err;
        memcpy(s->path, path, n);
        return s;
}

void afz_seen_add(struct afz_seen_set *set, enum afz_root root, enum afz_open_kind kind,
                  const char *path, int err)
{
        while (strncmp(path, "./", 2) == 0)
                path += 2;
        struct afz_seen *s = make(root, kind, path, err);
        struct afz_seen **place = s ? tsearch(s, &set->tree, compare) : NULL;
        if (!place) {
                free(s);
                set->err = -ENOMEM;
                return;
        }
        if (*place == s) {
                set->count++;
                return;
        }
        if (err == 0)
                (*place)->err = 0;
        free(s);
}

struct walk {
        struct afz_seen **list;
        size_t count;
};

static void put(const void *node, VISIT visit, void *ctx)
{
        struct walk *w = ctx;
        if (visit == postorder || visit == leaf) /* which is the sorted order */
                w->list[w->count++] = *(struct afz_seen *const *)node;
}

int afz_seen_sort(struct afz_seen_set *set)
{
        struct walk w = {calloc(set->count + 1, sizeof *w.list), 0};
        if (!w.list)
                set->err = -ENOMEM;
        if (set->err == 0)
                twalk_r(set->tree, put, &w);
        set->list = w.list;
        return set->err;
}

bool afz_seen_below(const struct afz_seen_set *set, enum afz_root root, const char *folder)
{
        size_t n = strlen(folder), low = 0, high = set->count;
        struct afz_seen *key = make(root, AFZ_OPEN_FILE, folder, 0);
        if (!key)
                return false;
        while (low < high) {
                size_t mid = low + (high - low) / 2;
                if (compare(set->list[mid], key) < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        free(key);
        /* "a-b" stands between "a" and "a/b". */
        for (; low < set->count; low++) {
                const struct afz_seen *s = set->list[low];
                if (s->root != root || strncmp(s->path, folder, n) != 0)
                        return false;
                if (s->path[n] == '/' && s->err == 0)
                        return true;
        }
        return false;
}

void afz_seen_done(struct afz_seen_set *set)
{
        tdestroy(set->tree, free);
        free(set->list);
        *set = (struct afz_seen_set){0};
}
