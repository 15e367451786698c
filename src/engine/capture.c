#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "capture_write.h"
#include "dir.h"
#include "engine.h"
#include "gpu.h"

enum {
        TICKS = 20,       /* at one second each of the senses' time; none of it is waited for */
        MAX_POINTS = 256, /* mount points; the disk sense knows 64 */
};

#define TICK_NS   UINT64_C(1000000000)
#define SETTLE_NS UINT64_C(3000000000) /* for NVML to start, which takes about a second */

struct space_row {
        char *point;
        struct afz_fs_space space;
};

/* What listens while the engine runs; the ctx of its env. */
struct ear {
        struct afz_env env; /* the one that the engine is given */
        const struct afz_env *real;
        uint64_t ahead_ns;
        struct afz_seen_set seen;
        struct space_row row[MAX_POINTS];
        size_t rows;
};

/* The clock runs ahead by a second a tick, so that what senses read once a second or less is read
 * without anybody waiting. */
static uint64_t ear_now(void *ctx)
{
        const struct ear *ear = ctx;
        return afz_env_now(ear->real) + ear->ahead_ns;
}

static void ear_on_open(void *ctx, enum afz_root root, enum afz_open_kind kind, const char *path,
                        int err)
{
        struct ear *ear = ctx;
        afz_seen_add(&ear->seen, root, kind, path, err);
}

static int ear_fs_space(const struct afz_env *env, const char *point, struct afz_fs_space *ret)
{
        struct ear *ear = env->ctx;
        int r = ear->real->fs_space(ear->real, point, ret);
        if (r < 0)
                return r;
        size_t i = 0;
        while (i < ear->rows && strcmp(ear->row[i].point, point) != 0)
                i++;
        if (i == MAX_POINTS)
                return r;
        if (i == ear->rows) {
                ear->row[i].point = strdup(point);
                if (!ear->row[i].point) {
                        ear->seen.err = -ENOMEM;
                        return r;
                }
                ear->rows++;
        }
        ear->row[i].space = *ret;
        return r;
}

static struct ear *ear_new(const struct afz_env *env)
{
        struct ear *ear = calloc(1, sizeof *ear);
        if (!ear)
                return NULL;
        ear->real = env;
        ear->env = *env;
        ear->env.ctx = ear;
        ear->env.now_ns = ear_now;
        ear->env.on_open = ear_on_open;
        ear->env.fs_space = env->fs_space ? ear_fs_space : NULL;
        return ear;
}

static void ear_free(struct ear *ear)
{
        if (!ear)
                return;
        for (size_t i = 0; i < ear->rows; i++)
                free(ear->row[i].point);
        afz_seen_done(&ear->seen);
        free(ear);
}

static int put_machine(struct afz_capture_tree *t)
{
        char buf[256];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        afz_out_fmt(&out, "page_bytes %ld\nclock_ticks %ld\nself_pid %llu\n", t->env->page_bytes,
                    t->env->clock_ticks, (unsigned long long)t->env->self_pid);
        return afz_capture_put(t, "machine", (struct afz_span){buf, out.len});
}

static int put_job(struct afz_capture_tree *t, uint64_t pid)
{
        char buf[32];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        afz_out_fmt(&out, "%llu\n", (unsigned long long)pid);
        return pid ? afz_capture_put(t, "job", (struct afz_span){buf, out.len}) : 0;
}

static int put_fs_space(struct afz_capture_tree *t, const struct ear *ear)
{
        size_t cap = 1;
        for (size_t i = 0; i < ear->rows; i++)
                cap += afz_mask_room(strlen(ear->row[i].point));
        char *buf = malloc(cap);
        if (!buf)
                return -ENOMEM;
        struct afz_out out = afz_out_to(-1, buf, cap);
        for (size_t i = 0; i < ear->rows; i++) {
                const struct afz_fs_space *s = &ear->row[i].space;
                afz_out_fmt(&out, "%llu %llu %llu %llu %llu ", (unsigned long long)s->total_bytes,
                            (unsigned long long)s->free_bytes,
                            (unsigned long long)s->available_bytes, (unsigned long long)s->files,
                            (unsigned long long)s->files_free);
                afz_mask_path(t->mask, afz_span_str(ear->row[i].point), &out);
                afz_out_char(&out, '\n');
        }
        int r = afz_capture_put(t, "fs_space", (struct afz_span){buf, out.len});
        free(buf);
        return r;
}

static int put_gpu(struct afz_capture_tree *t, struct afz_engine *engine)
{
        enum { ROOM = 1 << 20 };
        char *buf = malloc(ROOM);
        if (!buf)
                return -ENOMEM;
        struct afz_out out = afz_out_to(-1, buf, ROOM);
        int r = afz_gpu_dump(afz_engine_sense(engine, "gpu"), &out);
        if (r == 0)
                r = out.err < 0 ? out.err
                                : afz_capture_put(t, "nvml.txt", (struct afz_span){buf, out.len});
        free(buf);
        return r == -ENODATA ? 0 : r;
}

static int put_about(struct afz_capture_tree *t, const struct afz_capture_request *request)
{
        char buf[4096], day[16] = "?";
        struct utsname u;
        struct tm tm;
        time_t now = time(NULL);
        if (uname(&u) < 0)
                return -errno;
        if (gmtime_r(&now, &tm))
                strftime(day, sizeof day, "%Y-%m-%d", &tm);
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        afz_out_fmt(&out, "Recorded by `antifreeze capture`, version %s, on %s.\nKernel ",
                    request->version, day);
        afz_mask_release(t->mask, afz_span_str(u.release), &out);
        afz_out_fmt(&out, ", %s. Job: ", u.machine);
        if (request->pid)
                afz_out_fmt(&out, "process %llu and its descendants.\n\n",
                            (unsigned long long)request->pid);
        else
                afz_out_str(&out, "every process.\n\n");
        afz_out_str(
                &out,
                "These are the files that Antifreeze's senses read, and no others. Masked, with a\n"
                "key that was thrown away (x and six digits; the same word has the same mask):\n"
                "- environment: only numbers of RANK, WORLD_SIZE and the like are here\n"
                "- command lines: all but well-known programs, modules and the names of options\n"
                "- names of processes and threads that are not well-known programs\n"
                "- paths, mount points, servers, options of file systems\n"
                "- names of cgroups, network interfaces, power supplies\n"
                "- addresses in memory, groups, serial numbers; the kernel's log is left out\n"
                "Not masked: numbers of processes and users, sizes, counters, times, kinds of\n"
                "file systems, names of block devices, sensors and GPUs.\n"
                "not-read lists what could not be read, and why.\n");
        return afz_capture_put(t, "about", (struct afz_span){buf, out.len});
}

/* The list of what could not be read can be long: it goes to its file as it is made. */
static int write_tree(struct afz_capture_tree *t, const struct ear *ear, struct afz_engine *engine,
                      const struct afz_capture_request *request)
{
        char buf[8192];
        int fd = openat(t->dir_fd, "not-read", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        struct afz_out no = afz_out_to(fd, buf, sizeof buf);
        t->no = &no;
        int r = afz_capture_write(t);
        int flushed = afz_out_flush(&no);
        if (close(fd) < 0 && flushed == 0)
                flushed = -errno;
        if (r == 0)
                r = flushed;
        if (r == 0)
                r = put_machine(t);
        if (r == 0)
                r = put_job(t, request->pid);
        if (r == 0)
                r = put_fs_space(t, ear);
        if (r == 0)
                r = put_gpu(t, engine);
        if (r == 0)
                r = put_about(t, request);
        return r;
}

/* Looks, then writes what was looked at while the engine's own processes still live. */
static int capture_into(int dir_fd, const struct afz_env *env,
                        const struct afz_capture_request *request, struct afz_capture_result *ret)
{
        struct afz_mask mask;
        struct afz_engine *engine = NULL;
        struct ear *ear = ear_new(env);
        if (!ear)
                return -ENOMEM;
        int r = getrandom(&mask, sizeof mask, 0) == sizeof mask ? 0 : -EIO;
        if (r == 0)
                r = afz_engine_new(&ear->env, &(struct afz_target){request->pid}, &engine);
        if (r == 0) {
                afz_engine_settle(engine, SETTLE_NS);
                for (int i = 0; i < TICKS; i++, ear->ahead_ns += TICK_NS)
                        afz_engine_tick(engine);
                r = afz_seen_sort(&ear->seen);
        }
        if (r == 0) {
                struct afz_capture_tree tree = {
                        .env = env, .seen = &ear->seen, .mask = &mask, .dir_fd = dir_fd};
                r = write_tree(&tree, ear, engine, request);
                if (r == 0)
                        *ret = tree.result;
        }
        afz_engine_free(engine);
        ear_free(ear);
        return r;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st, (void)type, (void)ftw;
        return remove(path);
}

/* 1 when the folder exists and is empty, 0 when it does not exist, else -errno. */
static int look_at_dir(const char *dir)
{
        int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        struct afz_dir list = {.fd = fd};
        int r = afz_dir_next(&list);
        afz_dir_close(&list);
        if (r < 0)
                return r;
        return r > 0 ? -EEXIST : 1;
}

/* Moves what is in one folder into another of the same file system. */
static int move_entries(int from, int to)
{
        int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        struct afz_dir list = {.fd = fd};
        int r;
        while ((r = afz_dir_next(&list)) > 0) {
                if (renameat(from, list.name, to, list.name) < 0) {
                        r = -errno;
                        break;
                }
                r = afz_dir_rewind(&list); /* what was moved is no longer listed */
                if (r < 0)
                        break;
        }
        afz_dir_close(&list);
        return r;
}

/* A folder that exists may be a mount point, which cannot be replaced: it is filled from a folder
 * inside it. A new one is made beside and then gets its name. */
static int finish(const char *work, int work_fd, const char *dir, bool exists)
{
        if (!exists)
                return rename(work, dir) < 0 ? -errno : 0;
        int to = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (to < 0)
                return -errno;
        int r = move_entries(work_fd, to);
        close(to);
        return r;
}

int afz_capture(const struct afz_env *env, const struct afz_capture_request *request,
                struct afz_capture_result *ret)
{
        char dir[PATH_MAX], work[PATH_MAX];
        struct afz_capture_result result;
        int n = afz_path(dir, sizeof dir, "%s", request->dir);
        while (n > 1 && dir[n - 1] == '/')
                dir[--n] = '\0';
        if (n <= 0)
                return n < 0 ? n : -ENOENT;
        int exists = look_at_dir(dir);
        if (exists < 0)
                return exists;
        n = afz_path(work, sizeof work, "%s%s.tmp-XXXXXX", dir, exists ? "/" : "");
        if (n < 0)
                return n;
        if (!mkdtemp(work))
                return -errno;
        int fd = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : capture_into(fd, env, request, &result);
        if (r == 0)
                r = finish(work, fd, dir, exists);
        if (fd >= 0)
                close(fd);
        if (r < 0 || exists)
                (void)nftw(work, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        if (r == 0)
                *ret = result;
        return r;
}
