#include "mountinfo.h"

#include <errno.h>
#include <stdbool.h>

/* "254:0" */
static int take_device(struct afz_span *s, uint64_t *ret_major, uint64_t *ret_minor)
{
        struct afz_span word, left;
        uint64_t major, minor;
        if (afz_span_take_word(s, &word) < 0 || afz_span_take_until(&word, ':', &left) < 0 ||
            afz_span_u64(left, &major) < 0 || afz_span_u64(word, &minor) < 0)
                return -EINVAL;
        if (major >= 1U << 12 || minor >= 1U << 20)
                return -EINVAL;
        *ret_major = major;
        *ret_minor = minor;
        return 0;
}

int afz_mountinfo_parse(struct afz_span line, struct afz_mount *ret)
{
        struct afz_mount m = {0};
        struct afz_span word;
        if (afz_span_take_u64(&line, &m.id) < 0 || afz_span_take_u64(&line, &m.parent) < 0 ||
            take_device(&line, &m.major, &m.minor) < 0)
                return -EINVAL;
        if (afz_span_take_word(&line, &word) < 0 || /* the root inside the file system */
            afz_span_take_word(&line, &m.point) < 0 || !afz_span_starts(m.point, "/") ||
            afz_span_take_word(&line, &word) < 0) /* options of the mount */
                return -EINVAL;
        do /* any number of "shared:N" and the like, then a lone dash */
                if (afz_span_take_word(&line, &word) < 0)
                        return -EINVAL;
        while (!afz_span_eq(word, "-"));
        if (afz_span_take_word(&line, &m.type) < 0)
                return -EINVAL;
        /* An empty source is written as nothing at all: then one word is left, the options of the
         * file system, and not two. */
        struct afz_span first, second;
        if (afz_span_take_word(&line, &first) < 0)
                return -EINVAL;
        m.source = afz_span_take_word(&line, &second) < 0 ? (struct afz_span){first.p, 0} : first;
        *ret = m;
        return 0;
}

static bool is_octal(char c)
{
        return c >= '0' && c <= '7';
}

ssize_t afz_mount_unescape(struct afz_span escaped, char *buf, size_t cap)
{
        size_t out = 0;
        for (size_t i = 0; i < escaped.n; i++, out++) {
                char c = escaped.p[i];
                if (c == '\\') {
                        const char *o = escaped.p + i + 1;
                        if (escaped.n - i < 4 || !is_octal(o[0]) || !is_octal(o[1]) ||
                            !is_octal(o[2]) || o[0] > '3')
                                return -EINVAL;
                        c = (char)((o[0] - '0') << 6 | (o[1] - '0') << 3 | (o[2] - '0'));
                        i += 3;
                }
                if (c == '\0')
                        return -EINVAL;
                if (out + 1 >= cap)
                        return -ENAMETOOLONG;
                buf[out] = c;
        }
        if (cap == 0)
                return -ENAMETOOLONG;
        buf[out] = '\0';
        return (ssize_t)out;
}

size_t afz_mount_table_fill(struct afz_mount_table *table, struct afz_span text)
{
        struct afz_span line;
        table->count = 0;
        table->dropped = 0;
        while (afz_span_take_line(&text, &line) == 0) {
                if (table->count == table->cap ||
                    afz_mountinfo_parse(line, &table->mount[table->count]) < 0)
                        table->dropped++;
                else
                        table->count++;
        }
        return table->count;
}

const struct afz_mount *afz_mount_by_id(const struct afz_mount_table *table, uint64_t id)
{
        for (size_t i = 0; i < table->count; i++)
                if (table->mount[i].id == id)
                        return &table->mount[i];
        return NULL;
}

/* Whether the escaped mount point is the path or a folder above it. */
static bool is_above(struct afz_span point, const char *path)
{
        size_t i = 0, at = 0;
        if (point.n == 1)
                return path[0] == '/';
        while (i < point.n) {
                char c = point.p[i++];
                if (c == '\\' && point.n - i >= 3) {
                        const char *o = point.p + i;
                        c = (char)((o[0] - '0') << 6 | (o[1] - '0') << 3 | (o[2] - '0'));
                        i += 3;
                }
                if (path[at] == '\0' || path[at] != c)
                        return false;
                at++;
        }
        return path[at] == '\0' || path[at] == '/';
}

/* Whether the mount stands on `parent`; NULL: on one that the table does not show. */
static bool stands_on(const struct afz_mount_table *table, const struct afz_mount *m,
                      const struct afz_mount *parent)
{
        if (parent)
                return m != parent && m->parent == parent->id;
        return m->parent == m->id || !afz_mount_by_id(table, m->parent);
}

/* The child of `parent` that a walk along the path meets first: of those on the way, the one with
 * the shortest mount point. */
static const struct afz_mount *first_crossing(const struct afz_mount_table *table,
                                              const struct afz_mount *parent, const char *path)
{
        const struct afz_mount *best = NULL;
        for (size_t i = 0; i < table->count; i++) {
                const struct afz_mount *m = &table->mount[i];
                if (!is_above(m->point, path) || !stands_on(table, m, parent))
                        continue;
                if (!best || m->point.n < best->point.n)
                        best = m;
        }
        return best;
}

const struct afz_mount *afz_mount_of_path(const struct afz_mount_table *table, const char *path)
{
        const struct afz_mount *at = NULL;
        if (path[0] != '/')
                return NULL;
        /* The root of a namespace stands on a mount that the table does not show; in a chroot into
         * a mere folder, so do all mounts in it. The bound ends a walk through a table that is a
         * ring; no kernel writes one. */
        for (size_t steps = 0; steps <= table->count; steps++) {
                const struct afz_mount *next = first_crossing(table, at, path);
                if (!next)
                        return at;
                at = next;
        }
        return NULL;
}
