#include "job_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dir.h"
#include "fs_type.h"
#include "tree.h"

enum {
        /* Processes we follow; as many as the job sense. */
        MAX_MEMBERS = 8192,
        /* Mounts in a table: a node full of containers has a few thousand. */
        MAX_MOUNTS = 4096,
        /* Text of that table, some 200 bytes a mount. */
        TEXT_BYTES = 1 << 20,
        /* Mounts that one job can use; the kernel's own (pipes, sockets) are among them. */
        MAX_USED = 64,
        /* Files looked at in a round, however fast they are. */
        ROUND_FILES = 256,
        /* Files of one process in a sweep: who has more has them on the same few mounts, and the
         * other processes must get their turn. The sweep is then not complete. */
        MEMBER_FILES = 1024,
};

/* A file costs 2 to 8 us. A round may take a thousandth of the time between two. */
#define ROUND_NS  UINT64_C(1000000000)
#define ROUND_MAX UINT64_C(1000000)
/* Until the first sweep is through we are in a hurry: a usual job is known whole after a round or
 * two, and the tick can bear as much once. */
#define FIRST_MAX UINT64_C(5000000)
/* From the start of one sweep to that of the next: which file systems a job uses changes slowly,
 * and a disk does not fill up in five seconds. */
#define SWEEP_NS UINT64_C(5000000000)
/* A mount table is read again when the kernel says that it changed, and this often anyhow: a
 * recorded tree says nothing. */
#define TABLE_NS UINT64_C(30000000000)

struct used {
        uint64_t mount_id, files;
        bool writes;
};

struct tally {
        struct used used[MAX_USED];
        size_t count;
        bool partial; /* something was not looked at */
};

struct afz_job_files {
        const struct afz_env *env;
        uint64_t pid; /* whose mounts we read */
        uint64_t target_pid;
        char root[40];
        struct afz_tree *tree;
        int mountinfo_fd;
        uint64_t next_round_ns, next_sweep_ns, next_table_ns;
        struct afz_mount_table table;
        char *text;
        struct tally now, last; /* the running sweep, and the last whole one */
        bool swept;             /* there was a whole one */
        uint64_t cwd_mount_id;
        bool has_cwd;
        /* Where the sweep stands: a member, and the place in its list of files. */
        size_t member;
        off_t place;
        size_t member_files;
};

int afz_fdinfo_parse(struct afz_span text, uint64_t *ret_mount_id, bool *ret_writes)
{
        struct afz_span line;
        uint64_t id = 0, flags = 0;
        bool has_id = false, has_flags = false;
        while (!(has_id && has_flags) && afz_span_take_line(&text, &line) == 0) {
                if (afz_span_take_prefix(&line, "mnt_id:") == 0) {
                        has_id = afz_span_u64(line, &id) == 0;
                } else if (afz_span_take_prefix(&line, "flags:") == 0) {
                        /* Octal digits read as decimal: only the last, which holds O_ACCMODE, is
                         * of interest. */
                        has_flags = afz_span_u64(line, &flags) == 0 && flags % 10 < 8;
                }
        }
        if (!has_id || !has_flags)
                return -EINVAL;
        *ret_mount_id = id;
        *ret_writes = (flags % 10 & O_ACCMODE) == O_WRONLY || (flags % 10 & O_ACCMODE) == O_RDWR;
        return 0;
}

static void tally_add(struct tally *t, uint64_t mount_id, bool writes)
{
        size_t i = 0;
        while (i < t->count && t->used[i].mount_id != mount_id)
                i++;
        if (i == MAX_USED) {
                t->partial = true;
                return;
        }
        if (i == t->count)
                t->used[t->count++] = (struct used){.mount_id = mount_id};
        t->used[i].files++;
        t->used[i].writes |= writes;
}

static const struct used *tally_find(const struct tally *t, uint64_t mount_id)
{
        for (size_t i = 0; i < t->count; i++)
                if (t->used[i].mount_id == mount_id)
                        return &t->used[i];
        return NULL;
}

static void look_at_file(struct afz_job_files *jf, uint64_t pid, const char *name)
{
        char path[64], buf[128];
        struct afz_span text;
        uint64_t mount_id;
        bool writes;
        if (afz_path(path, sizeof path, "%llu/fdinfo/%s", (unsigned long long)pid, name) < 0)
                return;
        /* One read: an epoll's fdinfo is as long as its list of files, the lines we want are the
         * first three. */
        if (afz_env_read_head(jf->env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) < 0)
                return; /* closed meanwhile */
        if (afz_fdinfo_parse(text, &mount_id, &writes) == 0)
                tally_add(&jf->now, mount_id, writes);
}

/* What a round may still cost. */
struct budget {
        size_t files;
        uint64_t until_ns;
};

static bool is_spent(const struct budget *b, const struct afz_env *env)
{
        return b->files == 0 || afz_env_now(env) >= b->until_ns;
}

static void next_member(struct afz_job_files *jf)
{
        jf->member++;
        jf->place = 0;
        jf->member_files = 0;
}

/* Where a list goes on behind the entry that was just read. In /proc the place is made of the
 * descriptor's number, so it holds for another open of the same list too. */
static off_t place_after(const struct afz_dir *dir)
{
        const struct dirent64 *e = (const void *)(dir->name - offsetof(struct dirent64, d_name));
        return e->d_off;
}

/* Goes on with the files of one member, and to the next member when it is through. */
static void look_at_member(struct afz_job_files *jf, struct budget *budget)
{
        struct afz_member *m = afz_tree_at(jf->tree, jf->member);
        struct afz_dir dir;
        char path[40];
        afz_path(path, sizeof path, "%llu/fdinfo", (unsigned long long)m->pid);
        int r = afz_dir_open(&dir, jf->env, AFZ_ROOT_PROC, path);
        if (r == -ENOENT || r == -ESRCH)
                afz_tree_lost(jf->tree, jf->member);
        else if (r < 0)
                jf->now.partial = true;
        if (r >= 0 && jf->place > 0)
                r = lseek(dir.fd, jf->place, SEEK_SET) < 0 ? -errno : 0;
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                look_at_file(jf, m->pid, dir.name);
                jf->place = place_after(&dir);
                budget->files--;
                if (++jf->member_files >= MEMBER_FILES || is_spent(budget, jf->env))
                        break;
        }
        afz_dir_close(&dir);
        if (r > 0 && jf->member_files < MEMBER_FILES)
                return;
        if (r > 0)
                jf->now.partial = true;
        next_member(jf);
}

static void sweep(struct afz_job_files *jf, struct budget budget)
{
        while (jf->member < afz_tree_slots(jf->tree)) {
                const struct afz_member *m = afz_tree_at(jf->tree, jf->member);
                if (is_spent(&budget, jf->env))
                        return;
                if (m->pid != 0 && !m->gone)
                        look_at_member(jf, &budget);
                else
                        next_member(jf);
        }
        if (afz_tree_dropped(jf->tree) > 0)
                jf->now.partial = true;
        jf->last = jf->now;
        jf->swept = true;
        jf->member = 0;
        jf->now.count = 0;
        jf->now.partial = false;
}

static void find_cwd(struct afz_job_files *jf)
{
        char path[40], cwd[PATH_MAX];
        jf->has_cwd = false;
        if (jf->target_pid == 0)
                return;
        afz_path(path, sizeof path, "%llu/cwd", (unsigned long long)jf->target_pid);
        if (afz_env_readlink(jf->env, AFZ_ROOT_PROC, path, cwd, sizeof cwd) < 0)
                return;
        const struct afz_mount *m = afz_mount_of_path(&jf->table, cwd);
        if (!m)
                return;
        jf->has_cwd = true;
        jf->cwd_mount_id = m->id;
}

static int read_table(struct afz_job_files *jf)
{
        ssize_t n = afz_fd_read(jf->mountinfo_fd, jf->text, TEXT_BYTES);
        if (n < 0) {
                jf->table.count = 0; /* its spans point into what was just overwritten */
                return (int)n;
        }
        afz_mount_table_fill(&jf->table, (struct afz_span){jf->text, (size_t)n});
        return 0;
}

static bool table_changed(const struct afz_job_files *jf)
{
        struct pollfd p = {.fd = jf->mountinfo_fd, .events = POLLPRI};
        return poll(&p, 1, 0) > 0 && (p.revents & POLLPRI);
}

void afz_job_files_update(struct afz_job_files *jf, uint64_t now_ns)
{
        if (table_changed(jf) || now_ns >= jf->next_table_ns) {
                (void)read_table(jf);
                jf->next_table_ns = now_ns + TABLE_NS;
        }
        bool at_start = jf->member == 0 && jf->place == 0;
        if (now_ns < (at_start ? jf->next_sweep_ns : jf->next_round_ns))
                return;
        jf->next_round_ns = now_ns + ROUND_NS;
        if (at_start)
                jf->next_sweep_ns = now_ns + SWEEP_NS;
        find_cwd(jf);
        /* New members join while a sweep is under way: they stand behind those already seen, or in
         * a hole that the next sweep meets. */
        if (afz_tree_update(jf->tree) < 0)
                jf->now.partial = true;
        sweep(jf, (struct budget){
                          .files = ROUND_FILES * (jf->swept ? 1 : FIRST_MAX / ROUND_MAX),
                          .until_ns = afz_env_now(jf->env) + (jf->swept ? ROUND_MAX : FIRST_MAX),
                  });
}

/* Where the job's root directory is another than ours, our paths do not lead to its mounts. */
static void find_root(struct afz_job_files *jf)
{
        char path[40], theirs[PATH_MAX], ours[PATH_MAX];
        unsigned long long pid = jf->pid, self = jf->env->self_pid;
        bool differs = false;
        afz_path(path, sizeof path, "%llu/root", pid);
        if (afz_env_readlink(jf->env, AFZ_ROOT_PROC, path, theirs, sizeof theirs) >= 0)
                differs = strcmp(theirs, "/") != 0;
        afz_path(path, sizeof path, "%llu/ns/mnt", pid);
        if (afz_env_readlink(jf->env, AFZ_ROOT_PROC, path, theirs, sizeof theirs) >= 0) {
                afz_path(path, sizeof path, "%llu/ns/mnt", self);
                if (afz_env_readlink(jf->env, AFZ_ROOT_PROC, path, ours, sizeof ours) >= 0)
                        differs |= strcmp(theirs, ours) != 0;
        }
        if (differs)
                afz_path(jf->root, sizeof jf->root, "/proc/%llu/root", pid);
}

static int open_mountinfo(struct afz_job_files *jf)
{
        char path[40];
        jf->pid = jf->target_pid ? jf->target_pid : jf->env->self_pid;
        afz_path(path, sizeof path, "%llu/mountinfo", (unsigned long long)jf->pid);
        jf->mountinfo_fd = afz_env_open(jf->env, AFZ_ROOT_PROC, path, 0);
        if (jf->mountinfo_fd < 0)
                return jf->mountinfo_fd == -ENOENT ? -ENODATA : jf->mountinfo_fd;
        return read_table(jf);
}

int afz_job_files_new(const struct afz_env *env, uint64_t pid, struct afz_job_files **ret)
{
        struct afz_job_files *jf = calloc(1, sizeof *jf);
        if (!jf)
                return -ENOMEM;
        jf->env = env;
        jf->target_pid = pid;
        jf->mountinfo_fd = -1;
        jf->table.cap = MAX_MOUNTS;
        jf->table.mount = calloc(MAX_MOUNTS, sizeof jf->table.mount[0]);
        jf->text = malloc(TEXT_BYTES);
        int r = jf->table.mount && jf->text ? 0 : -ENOMEM;
        if (r >= 0)
                r = afz_tree_new(env, pid, MAX_MEMBERS, &jf->tree);
        if (r >= 0)
                r = open_mountinfo(jf);
        if (r < 0) {
                afz_job_files_free(jf);
                return r;
        }
        find_root(jf);
        *ret = jf;
        return 0;
}

void afz_job_files_free(struct afz_job_files *jf)
{
        if (!jf)
                return;
        if (jf->mountinfo_fd >= 0)
                close(jf->mountinfo_fd);
        afz_tree_free(jf->tree);
        free(jf->table.mount);
        free(jf->text);
        free(jf);
}

/* A file whose mount is not in the table counts for none: with a table that lacks a line, or could
 * not be read, nobody knows what was missed. */
bool afz_job_files_complete(const struct afz_job_files *jf)
{
        return jf->swept && !jf->last.partial && jf->table.count > 0 && jf->table.dropped == 0;
}

/* Adds the mount unless it is there already or no place for files. */
static size_t add_mount(const struct afz_job_files *jf, uint64_t id, struct afz_job_mount *mounts,
                        size_t count, size_t cap)
{
        const struct afz_mount *mount = afz_mount_by_id(&jf->table, id);
        if (count == cap || !mount || afz_fs_type_of(mount)->class == AFZ_FS_KERNEL)
                return count;
        for (size_t i = 0; i < count; i++)
                if (mounts[i].mount == mount)
                        return count;
        const struct used *last = tally_find(&jf->last, id), *now = tally_find(&jf->now, id);
        mounts[count] = (struct afz_job_mount){
                .mount = mount,
                .files = last ? last->files : 0,
                .writes = (last && last->writes) || (now && now->writes),
                .complete = afz_job_files_complete(jf),
        };
        return count + 1;
}

size_t afz_job_files_mounts(const struct afz_job_files *jf, struct afz_job_mount *mounts,
                            size_t cap)
{
        size_t count = 0;
        if (jf->has_cwd)
                count = add_mount(jf, jf->cwd_mount_id, mounts, count, cap);
        for (size_t i = 0; i < jf->last.count; i++)
                count = add_mount(jf, jf->last.used[i].mount_id, mounts, count, cap);
        for (size_t i = 0; i < jf->now.count; i++)
                count = add_mount(jf, jf->now.used[i].mount_id, mounts, count, cap);
        return count;
}

const struct afz_mount_table *afz_job_files_table(const struct afz_job_files *jf)
{
        return &jf->table;
}

uint64_t afz_job_files_pid(const struct afz_job_files *jf)
{
        return jf->pid;
}

const char *afz_job_files_root(const struct afz_job_files *jf)
{
        return jf->root;
}
