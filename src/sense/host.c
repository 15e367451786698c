/* The machine's memory: what is there, what is left, and what bounds us. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_node.h"
#include "count_of.h"
#include "dir.h"
#include "sense.h"

#define MAX_LEVELS 16
#define MAX_ZRAM   8

/* What changes seldom or costs a lot is looked at once in so many ns. */
#define SLOW_NS UINT64_C(1000000000)

struct state {
        const struct afz_env *env;
        int meminfo_fd;
        uint64_t slow_next_ns;
        struct afz_sample slow;
        size_t zrams;
        int zram_fd[MAX_ZRAM];
        int arc_fd;
        size_t levels; /* our own cgroup and those above it, if they can bound us */
        struct afz_cgroup_node level[MAX_LEVELS];
};

/* clang-format off: a table */
static const struct afz_key meminfo_keys[] = {
        {"MemTotal", AFZ_HOST_MEM_TOTAL, 0},
        {"MemFree", AFZ_HOST_MEM_FREE, 0},
        {"MemAvailable", AFZ_HOST_MEM_AVAILABLE, 0},
        {"Buffers", AFZ_HOST_BUFFERS, 0},
        {"Cached", AFZ_HOST_CACHED, 0},
        {"SwapCached", AFZ_HOST_SWAP_CACHED, 0},
        {"Mlocked", AFZ_HOST_MLOCKED, 0},
        {"SwapTotal", AFZ_HOST_SWAP_TOTAL, 0},
        {"SwapFree", AFZ_HOST_SWAP_FREE, 0},
        {"Zswap", AFZ_HOST_ZSWAP, 0},
        {"Zswapped", AFZ_HOST_ZSWAPPED, 0},
        {"Dirty", AFZ_HOST_DIRTY, 0},
        {"Writeback", AFZ_HOST_WRITEBACK, 0},
        {"AnonPages", AFZ_HOST_ANON, 0},
        {"Mapped", AFZ_HOST_MAPPED, 0},
        {"Shmem", AFZ_HOST_SHMEM, 0},
        {"SReclaimable", AFZ_HOST_SLAB_RECLAIMABLE, 0},
        {"SUnreclaim", AFZ_HOST_SLAB_UNRECLAIMABLE, 0},
        {"KernelStack", AFZ_HOST_KERNEL_STACK, 0},
        {"PageTables", AFZ_HOST_PAGE_TABLES, 0},
        {"CommitLimit", AFZ_HOST_COMMIT_LIMIT, 0},
        {"Committed_AS", AFZ_HOST_COMMITTED, 0},
        {"AnonHugePages", AFZ_HOST_ANON_HUGE, 0},
        {"HugePages_Total", AFZ_HOST_HUGE_TOTAL, 0},
        {"HugePages_Free", AFZ_HOST_HUGE_FREE, 0},
        {"Hugepagesize", AFZ_HOST_HUGE_SIZE, 0},
        {"Hugetlb", AFZ_HOST_HUGETLB, 0},
};
/* clang-format on */

static void host_close(void *p)
{
        struct state *st = p;
        if (!st)
                return;
        if (st->meminfo_fd >= 0)
                close(st->meminfo_fd);
        if (st->arc_fd >= 0)
                close(st->arc_fd);
        for (size_t i = 0; i < st->zrams; i++)
                close(st->zram_fd[i]);
        for (size_t i = 0; i < st->levels; i++)
                afz_cgroup_node_close(&st->level[i]);
        free(st);
}

static void find_zram(struct state *st)
{
        struct afz_dir dir;
        int r = afz_dir_open(&dir, st->env, AFZ_ROOT_SYS, "block");
        while (r >= 0 && st->zrams < MAX_ZRAM && (r = afz_dir_next(&dir)) > 0) {
                char path[300];
                if (strncmp(dir.name, "zram", 4) != 0 ||
                    afz_path(path, sizeof path, "block/%s/mm_stat", dir.name) < 0)
                        continue;
                int fd = afz_env_open(st->env, AFZ_ROOT_SYS, path, 0);
                if (fd >= 0)
                        st->zram_fd[st->zrams++] = fd;
        }
        afz_dir_close(&dir);
}

static void find_limits(struct state *st)
{
        struct afz_cgroup_path path;
        if (afz_cgroup_path_of(st->env, 0, &path) < 0)
                return;
        do
                afz_cgroup_node_open(&st->level[st->levels++], st->env, &path, true);
        while (st->levels < MAX_LEVELS && afz_cgroup_path_up(&path));
}

static int host_open(const struct afz_env *env, const struct afz_target *target, void **ret_state)
{
        (void)target;
        struct state *st = calloc(1, sizeof *st);
        if (!st)
                return -ENOMEM;
        st->env = env;
        st->slow.subject.kind = AFZ_KIND_HOST;
        st->meminfo_fd = afz_env_open(env, AFZ_ROOT_PROC, "meminfo", 0);
        st->arc_fd = afz_env_open(env, AFZ_ROOT_PROC, "spl/kstat/zfs/arcstats", 0);
        if (st->meminfo_fd < 0) {
                int r = afz_sense_missing(st->meminfo_fd);
                host_close(st);
                return r;
        }
        find_zram(st);
        find_limits(st);
        *ret_state = st;
        return 0;
}

/* mm_stat: orig_data_size compr_data_size mem_used_total ... */
static void read_zram(struct state *st, struct afz_sample *s)
{
        for (size_t i = 0; i < st->zrams; i++) {
                char buf[256];
                uint64_t stored, compressed, used;
                ssize_t n = afz_fd_read_record(st->zram_fd[i], buf, sizeof buf);
                struct afz_span text = {buf, n > 0 ? (size_t)n : 0};
                if (afz_span_take_u64(&text, &stored) < 0 ||
                    afz_span_take_u64(&text, &compressed) < 0 ||
                    afz_span_take_u64(&text, &used) < 0)
                        continue;
                afz_sample_add_key(s, AFZ_HOST_ZRAM_STORED, stored);
                afz_sample_add_key(s, AFZ_HOST_ZRAM_USED, used);
        }
}

/* Lines of "name type data". */
static void read_arc(struct state *st, struct afz_sample *s)
{
        char buf[16384];
        struct afz_span line, name, type;
        uint64_t v;
        ssize_t n = st->arc_fd >= 0 ? afz_fd_read(st->arc_fd, buf, sizeof buf) : -1;
        struct afz_span text = {buf, n > 0 ? (size_t)n : 0};
        while (afz_span_take_line(&text, &line) == 0) {
                if (afz_span_take_word(&line, &name) < 0 || afz_span_take_word(&line, &type) < 0 ||
                    afz_span_u64(line, &v) < 0)
                        continue;
                if (afz_span_eq(name, "size"))
                        afz_sample_set_u64(s, AFZ_HOST_ARC, v);
                else if (afz_span_eq(name, "c_min"))
                        afz_sample_set_u64(s, AFZ_HOST_ARC_MIN, v);
        }
}

/* The smallest limit above us counts; page cache that can go at once is not "used". A limit beyond
 * the machine's RAM bounds nothing. */
static void read_limit(struct state *st, struct afz_sample *s, int64_t mem_total)
{
        int64_t max, current, least = mem_total;
        for (size_t i = 0; i < st->levels; i++) {
                struct afz_sample cg = {.subject.kind = AFZ_KIND_CGROUP};
                if (!afz_cgroup_node_bounds(&st->level[i]) ||
                    afz_cgroup_node_read(&st->level[i], &cg) < 0 ||
                    !afz_sample_get(&cg, AFZ_CGROUP_MAX, &max) || max >= least)
                        continue;
                least = max;
                afz_sample_set(s, AFZ_HOST_LIMIT, max);
                afz_sample_forget(s, AFZ_HOST_LIMIT_USED);
                if (!afz_sample_get(&cg, AFZ_CGROUP_CURRENT, &current))
                        continue;
                int64_t cache = afz_sample_or(&cg, AFZ_CGROUP_INACTIVE_FILE, 0);
                afz_sample_set(s, AFZ_HOST_LIMIT_USED, current > cache ? current - cache : 0);
        }
}

static void read_slow(struct state *st, int64_t mem_total)
{
        struct afz_sample *s = &st->slow;
        struct afz_fs_space shm;
        uint64_t mode;
        s->present = 0;
        if (afz_env_read_u64(st->env, AFZ_ROOT_PROC, "sys/vm/overcommit_memory", &mode) == 0)
                afz_sample_set_u64(s, AFZ_HOST_OVERCOMMIT, mode);
        read_zram(st, s);
        read_arc(st, s);
        read_limit(st, s, mem_total);
        if (st->env->fs_space(st->env, "/dev/shm", &shm) == 0) {
                afz_sample_set_u64(s, AFZ_HOST_SHM_TOTAL, shm.total_bytes);
                afz_sample_set_u64(s, AFZ_HOST_SHM_USED, shm.total_bytes - shm.free_bytes);
        }
}

static int host_read(void *p, struct afz_batch *out)
{
        struct state *st = p;
        char buf[8192];
        ssize_t n = afz_fd_read_record(st->meminfo_fd, buf, sizeof buf);
        if (n < 0)
                return (int)n;
        struct afz_sample *s =
                afz_batch_add(out, (struct afz_subject){AFZ_KIND_HOST, 0, 0}, "host");
        if (!s)
                return -ENOSPC;
        afz_span_each_key((struct afz_span){buf, (size_t)n}, meminfo_keys,
                          AFZ_COUNT_OF(meminfo_keys), afz_sample_set_key, s);
        if (out->t_ns >= st->slow_next_ns) {
                st->slow_next_ns = out->t_ns + SLOW_NS;
                read_slow(st, afz_sample_or(s, AFZ_HOST_MEM_TOTAL, INT64_MAX));
        }
        afz_sample_merge(s, &st->slow);
        return 0;
}

const struct afz_sense afz_sense_host = {
        .name = "host",
        .what = "the machine's memory, swap and limits",
        .max_samples = 1,
        .absent = "/proc/meminfo is not there: the machine's memory cannot be seen",
        .denied = "/proc/meminfo may not be read",
        .open = host_open,
        .read = host_read,
        .close = host_close,
};
