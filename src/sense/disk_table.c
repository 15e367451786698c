#include "disk_table.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dir.h"

/* No line of diskstats is longer: a name of at most 31 bytes and twenty numbers. */
#define LONGEST_LINE 480

/* Rotational or not, a loop's file, an array's members: none of them changes often. */
#define FACTS_NS UINT64_C(30000000000)

enum {
        TEXT_BYTES = AFZ_DISK_MAX * 320, /* a line with 17 counters of 20 digits fits */
        KEEP_READINGS = 3, /* a name may be shown two readings longer than its device lives */
        MAX_DEPTH = 4,     /* LUKS on LVM on RAID on a disk */
};

struct afz_disk_table {
        const struct afz_env *env;
        int fd;
        uint64_t reading, next_facts_ns;
        bool changed; /* a device came or went */
        size_t rows;
        struct afz_disk *row[AFZ_DISK_MAX]; /* in the order of the last reading */
        struct afz_disk disk[AFZ_DISK_MAX];
        char text[TEXT_BYTES];
};

int afz_disk_table_new(const struct afz_env *env, struct afz_disk_table **ret)
{
        struct afz_disk_table *t = calloc(1, sizeof *t);
        if (!t)
                return -ENOMEM;
        t->env = env;
        t->fd = afz_env_open(env, AFZ_ROOT_PROC, "diskstats", 0);
        if (t->fd < 0) {
                int r = t->fd == -ENOENT ? -ENODATA : t->fd;
                free(t);
                return r;
        }
        *ret = t;
        return 0;
}

void afz_disk_table_free(struct afz_disk_table *table)
{
        if (!table)
                return;
        close(table->fd);
        free(table);
}

static bool is_disk(const struct afz_disk *d, const struct afz_diskstats *s)
{
        return d->stats.major == s->major && d->stats.minor == s->minor &&
               afz_span_eq(s->name, d->name);
}

/* The place of the device: that at the same line last time, else wherever it is, else a free one.
 */
static struct afz_disk *place_of(struct afz_disk_table *t, const struct afz_diskstats *s,
                                 size_t line)
{
        struct afz_disk *unused = NULL;
        if (line < t->rows && is_disk(t->row[line], s))
                return t->row[line];
        for (size_t i = 0; i < AFZ_DISK_MAX; i++) {
                struct afz_disk *d = &t->disk[i];
                if (d->name[0] && is_disk(d, s))
                        return d;
                if (!unused && (!d->name[0] || d->seen + KEEP_READINGS < t->reading))
                        unused = d;
        }
        if (!unused || s->name.n >= AFZ_DISK_NAME_CAP)
                return NULL;
        *unused = (struct afz_disk){0};
        afz_span_copy(s->name, unused->name, sizeof unused->name);
        t->changed = true;
        return unused;
}

/* "cciss/c0d0" is "cciss!c0d0" in /sys. */
static int sys_path(char *buf, size_t cap, const struct afz_disk *d, const char *file)
{
        char name[AFZ_DISK_NAME_CAP];
        memcpy(name, d->name, sizeof name);
        for (char *p = name; *p; p++)
                if (*p == '/')
                        *p = '!';
        return afz_path(buf, cap, "block/%s/%s", name, file);
}

static struct afz_disk *by_name(struct afz_disk_table *t, const char *name)
{
        for (size_t i = 0; i < t->rows; i++)
                if (strcmp(t->row[i]->name, name) == 0)
                        return t->row[i]->whole;
        return NULL;
}

static void find_below(struct afz_disk_table *t, struct afz_disk *d)
{
        char path[96];
        struct afz_dir dir;
        d->below_count = 0;
        if (sys_path(path, sizeof path, d, "slaves") < 0)
                return;
        int r = afz_dir_open(&dir, t->env, AFZ_ROOT_SYS, path);
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0 && d->below_count < AFZ_DISK_BELOW_MAX) {
                struct afz_disk *below = by_name(t, dir.name);
                if (below && below != d)
                        d->below[d->below_count++] = below;
        }
        afz_dir_close(&dir);
}

static bool starts(const char *s, const char *prefix)
{
        return strncmp(s, prefix, strlen(prefix)) == 0;
}

static void find_facts(struct afz_disk_table *t, struct afz_disk *d)
{
        char path[96];
        uint64_t value;
        d->has_rotational = sys_path(path, sizeof path, d, "queue/rotational") >= 0 &&
                            afz_env_read_u64(t->env, AFZ_ROOT_SYS, path, &value) >= 0 && value <= 1;
        if (d->has_rotational)
                d->rotational = value == 1;
        d->left_out = starts(d->name, "ram");
        if (starts(d->name, "loop") && sys_path(path, sizeof path, d, "size") >= 0 &&
            afz_env_read_u64(t->env, AFZ_ROOT_SYS, path, &value) >= 0)
                d->left_out = value == 0;
        if (starts(d->name, "dm-") || starts(d->name, "md") || starts(d->name, "bcache"))
                find_below(t, d);
}

/* Partitions follow their disk. */
static void take_row(struct afz_disk_table *t, const struct afz_diskstats *s, size_t *line,
                     struct afz_disk **whole)
{
        struct afz_disk *d = place_of(t, s, *line);
        if (!d || d->seen == t->reading) /* no room, or the same device twice */
                return;
        d->stats = *s;
        d->stats.name = (struct afz_span){0};
        d->seen = t->reading;
        d->job_uses = false;
        if (!*whole || !afz_diskstats_is_partition(afz_span_str((*whole)->name), s->name))
                *whole = d;
        d->whole = *whole;
        t->row[(*line)++] = d;
}

int afz_disk_table_read(struct afz_disk_table *t, uint64_t now_ns)
{
        ssize_t n = afz_fd_read_lines(t->fd, t->text, sizeof t->text, LONGEST_LINE);
        if (n < 0)
                return (int)n;
        struct afz_span text = {t->text, (size_t)n}, line;
        struct afz_diskstats s;
        struct afz_disk *whole = NULL;
        size_t rows = 0;
        t->reading++;
        while (rows < AFZ_DISK_MAX && afz_span_take_line(&text, &line) == 0)
                if (afz_diskstats_parse(line, &s) == 0)
                        take_row(t, &s, &rows, &whole);
        t->changed |= rows != t->rows;
        t->rows = rows;
        if (t->changed || now_ns >= t->next_facts_ns) {
                for (size_t i = 0; i < rows; i++)
                        if (t->row[i]->whole == t->row[i])
                                find_facts(t, t->row[i]);
                t->changed = false;
                t->next_facts_ns = now_ns + FACTS_NS;
        }
        return 0;
}

size_t afz_disk_table_shown(const struct afz_disk_table *t, const struct afz_disk **disks,
                            size_t cap)
{
        size_t count = 0;
        for (size_t i = 0; i < t->rows && count < cap; i++) {
                const struct afz_disk *d = t->row[i];
                bool never_used = d->stats.reads == 0 && d->stats.writes == 0;
                if (d->whole == d && !d->left_out && !never_used)
                        disks[count++] = d;
        }
        return count;
}

struct afz_disk *afz_disk_of_mount(struct afz_disk_table *t, const struct afz_mount *mount)
{
        char source[PATH_MAX], link[PATH_MAX];
        for (size_t i = 0; mount->major > 0 && i < t->rows; i++)
                if (t->row[i]->stats.major == mount->major &&
                    t->row[i]->stats.minor == mount->minor)
                        return t->row[i]->whole;
        if (afz_mount_unescape(mount->source, source, sizeof source) < 0 ||
            !starts(source, "/dev/"))
                return NULL;
        const char *name = source + strlen("/dev/");
        struct afz_disk *d = by_name(t, name);
        /* "/dev/mapper/vg-data" is a link to "../dm-0". */
        if (!d && name[0] && afz_env_readlink(t->env, AFZ_ROOT_DEV, name, link, sizeof link) >= 0) {
                const char *slash = strrchr(link, '/');
                d = by_name(t, slash ? slash + 1 : link);
        }
        return d;
}

static void mark(struct afz_disk *disk, int depth)
{
        disk->job_uses = true;
        for (size_t i = 0; depth < MAX_DEPTH && i < disk->below_count; i++)
                mark(disk->below[i], depth + 1);
}

void afz_disk_mark_used(struct afz_disk *disk)
{
        mark(disk, 0);
}
