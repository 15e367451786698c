#include "job_fs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fs_type.h"
#include "mountstats.h"

enum {
        /* Some 6 KiB an NFS mount; a login node has a few dozen. */
        STATS_BYTES = 1 << 20,
        /* Texts of samples must outlive two more readings. */
        KEEP_READINGS = 3,
        /* A mount of a mount of a mount: more than anybody nests. */
        MAX_DEPTH = 64,
        PLACES = 2 * AFZ_JOB_FS_MAX,
};

/* The texts of one mount. */
struct place {
        uint64_t reading; /* that used it last; 0: free */
        char name[256], detail[256];
};

struct afz_job_fs {
        const struct afz_env *env;
        const struct afz_job_files *files;
        uint64_t reading;
        bool has_stats, asked_stats; /* in this reading */
        struct afz_span stats;
        char *stats_text;
        struct place place[PLACES];
};

int afz_job_fs_new(const struct afz_env *env, const struct afz_job_files *files,
                   struct afz_job_fs **ret)
{
        struct afz_job_fs *fs = calloc(1, sizeof *fs);
        char *text = malloc(STATS_BYTES);
        if (!fs || !text) {
                free(fs);
                free(text);
                return -ENOMEM;
        }
        *fs = (struct afz_job_fs){.env = env, .files = files, .stats_text = text};
        *ret = fs;
        return 0;
}

void afz_job_fs_free(struct afz_job_fs *fs)
{
        if (!fs)
                return;
        free(fs->stats_text);
        free(fs);
}

void afz_job_fs_start(struct afz_job_fs *fs)
{
        fs->reading++;
        fs->asked_stats = fs->has_stats = false;
}

/* The text up to cap, whatever of it is printable; a name that is too long is cut. */
static void copy_name(struct afz_span escaped, char *buf, size_t cap)
{
        char full[PATH_MAX];
        ssize_t n = afz_mount_unescape(escaped, full, sizeof full);
        struct afz_span name = n < 0 ? escaped : (struct afz_span){full, (size_t)n};
        afz_span_copy(name, buf, cap);
}

static struct place *place_of(struct afz_job_fs *fs, const struct afz_mount *mount)
{
        struct place want = {.reading = fs->reading}, *unused = NULL;
        copy_name(mount->point, want.name, sizeof want.name);
        size_t n = afz_span_copy(mount->type, want.detail, 64);
        if (mount->source.n > 0) {
                want.detail[n++] = ' ';
                copy_name(mount->source, want.detail + n, sizeof want.detail - n);
        }
        for (size_t i = 0; i < PLACES; i++) {
                struct place *p = &fs->place[i];
                if (p->reading > 0 && strcmp(p->name, want.name) == 0 &&
                    strcmp(p->detail, want.detail) == 0) {
                        p->reading = fs->reading;
                        return p;
                }
                if (!unused && (p->reading == 0 || p->reading + KEEP_READINGS < fs->reading))
                        unused = p;
        }
        if (unused)
                *unused = want;
        return unused;
}

/* Whether the way to the mount leads over nothing that could hold us for ever. The root is let pass
 * whatever it is: we live on it ourselves. */
static bool is_safe(const struct afz_mount_table *table, const struct afz_mount *m)
{
        for (int depth = 0; m && depth < MAX_DEPTH; depth++) {
                enum afz_fs_class class = afz_fs_type_of(m)->class;
                if (depth > 0 && m->point.n == 1)
                        return true;
                if (class == AFZ_FS_REMOTE || class == AFZ_FS_UNKNOWN)
                        return false;
                if (m->parent == m->id)
                        return true;
                m = afz_mount_by_id(table, m->parent);
        }
        return !m;
}

static void set_space(struct afz_job_fs *fs, const struct afz_mount *mount, struct afz_sample *s)
{
        const struct afz_mount_table *table = afz_job_files_table(fs->files);
        char point[PATH_MAX], path[PATH_MAX];
        struct afz_fs_space space;
        if (!is_safe(table, mount) || afz_mount_unescape(mount->point, point, sizeof point) < 0 ||
            afz_mount_of_path(table, point) != mount)
                return;
        const char *root = afz_job_files_root(fs->files);
        if (afz_path(path, sizeof path, "%s%s", root, point) < 0 ||
            fs->env->fs_space(fs->env, path, &space) < 0 || space.total_bytes == 0)
                return;
        afz_sample_set_u64(s, AFZ_FS_TOTAL, space.total_bytes);
        afz_sample_set_u64(s, AFZ_FS_FREE, space.free_bytes);
        afz_sample_set_u64(s, AFZ_FS_AVAILABLE, space.available_bytes);
        if (space.files > 0) /* btrfs counts no inodes: nothing can run out */
                afz_sample_set_u64(s, AFZ_FS_FILES_FREE, space.files_free);
}

/* Once a reading, and only when there is an NFS mount to ask for. */
static bool get_stats(struct afz_job_fs *fs)
{
        char path[40];
        if (fs->asked_stats)
                return fs->has_stats;
        fs->asked_stats = true;
        afz_path(path, sizeof path, "%llu/mountstats",
                 (unsigned long long)afz_job_files_pid(fs->files));
        fs->has_stats = afz_env_read(fs->env, AFZ_ROOT_PROC, path, fs->stats_text, STATS_BYTES,
                                     &fs->stats) >= 0;
        return fs->has_stats;
}

static void set_network(struct afz_job_fs *fs, const struct afz_mount *mount, struct afz_sample *s)
{
        struct afz_mountstats st;
        if (!afz_span_eq(mount->type, "nfs") && !afz_span_eq(mount->type, "nfs4"))
                return;
        if (!get_stats(fs) || afz_mountstats_find(fs->stats, mount->point, &st) < 0)
                return;
        if (st.has_bytes) {
                afz_sample_set_u64(s, AFZ_FS_NET_READ, st.read_bytes);
                afz_sample_set_u64(s, AFZ_FS_NET_WRITTEN, st.written_bytes);
        }
        if (!st.has_ops)
                return;
        afz_sample_set_u64(s, AFZ_FS_NET_OPS, st.ops);
        afz_sample_set_u64(s, AFZ_FS_NET_RETRANS, st.resent);
        afz_sample_set_scaled(s, AFZ_FS_NET_WAIT, st.wait_ms, AFZ_NS_PER_MS);
}

struct afz_sample *afz_job_fs_add(struct afz_job_fs *fs, const struct afz_job_mount *used,
                                  struct afz_batch *out)
{
        const struct afz_mount *mount = used->mount;
        const struct afz_fs_type *type = afz_fs_type_of(mount);
        const struct place *texts = place_of(fs, mount);
        if (!texts) {
                out->dropped++;
                return NULL;
        }
        struct afz_sample *s = afz_batch_add(
                out, (struct afz_subject){.kind = AFZ_KIND_FS, .id = mount->id}, texts->name);
        if (!s)
                return NULL;
        s->detail = texts->detail;
        s->note = type->words;
        if (type->class != AFZ_FS_UNKNOWN)
                afz_sample_set(s, AFZ_FS_NETWORK, type->class == AFZ_FS_REMOTE);
        if (used->complete)
                afz_sample_set_u64(s, AFZ_FS_JOB_FILES, used->files);
        if (used->writes || used->complete)
                afz_sample_set(s, AFZ_FS_JOB_WRITES, used->writes);
        set_space(fs, mount, s);
        set_network(fs, mount, s);
        return s;
}
