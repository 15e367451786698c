#include "cgroup_node.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "count_of.h"
#include "psi_parse.h"

enum form {
        ONE_NUMBER, /* the metric itself; "max" and v1's "none" stay absent */
        KEYS,       /* lines of "key number" */
        PRESSURE,
        IO_V2,  /* "8:0 rbytes=1 wbytes=2 ..." a device */
        IO_V1,  /* "8:0 Read 123" */
        FREEZER /* v1's freezer.state */
};

struct file {
        const char *name;
        enum afz_controller controller;
        enum form form;
        enum afz_metric metric;     /* of ONE_NUMBER */
        const struct afz_key *keys; /* of KEYS */
        size_t key_count;
};

#define KEY_TABLE(t) .keys = (t), .key_count = AFZ_COUNT_OF(t)

static const struct afz_key stat_v2[] = {
        {"anon", AFZ_CGROUP_ANON, 0},
        {"file", AFZ_CGROUP_FILE, 0},
        {"kernel", AFZ_CGROUP_KERNEL, 0},
        {"shmem", AFZ_CGROUP_SHMEM, 0},
        {"file_dirty", AFZ_CGROUP_DIRTY, 0},
        {"inactive_file", AFZ_CGROUP_INACTIVE_FILE, 0},
        {"slab_reclaimable", AFZ_CGROUP_SLAB_RECLAIMABLE, 0},
        {"slab_unreclaimable", AFZ_CGROUP_SLAB_UNRECLAIMABLE, 0},
        {"workingset_refault_anon", AFZ_CGROUP_REFAULT_ANON, 0},
        {"workingset_refault_file", AFZ_CGROUP_REFAULT_FILE, 0},
        {"pgmajfault", AFZ_CGROUP_MAJOR_FAULTS, 0},
};
static const struct afz_key events_v2[] = {
        {"high", AFZ_CGROUP_EVENT_HIGH, 0},
        {"max", AFZ_CGROUP_EVENT_MAX, 0},
        {"oom", AFZ_CGROUP_EVENT_OOM, 0},
        {"oom_kill", AFZ_CGROUP_OOM_KILLS, 0},
};
static const struct afz_key cpu_v2[] = {
        {"usage_usec", AFZ_CGROUP_CPU, 1000},
        {"throttled_usec", AFZ_CGROUP_CPU_THROTTLED, 1000},
};
static const struct afz_key frozen_v2[] = {{"frozen", AFZ_CGROUP_FROZEN, 0}};

/* The total_ rows hold the cgroups below too, as all of v2's figures do. rss is anonymous memory.
 */
static const struct afz_key stat_v1[] = {
        {"total_cache", AFZ_CGROUP_FILE, 0},
        {"total_rss", AFZ_CGROUP_ANON, 0},
        {"total_shmem", AFZ_CGROUP_SHMEM, 0},
        {"total_dirty", AFZ_CGROUP_DIRTY, 0},
        {"total_swap", AFZ_CGROUP_SWAP, 0},
        {"total_pgmajfault", AFZ_CGROUP_MAJOR_FAULTS, 0},
        {"total_inactive_file", AFZ_CGROUP_INACTIVE_FILE, 0},
};
static const struct afz_key oom_v1[] = {{"oom_kill", AFZ_CGROUP_OOM_KILLS, 0}};
static const struct afz_key cpu_v1[] = {{"throttled_time", AFZ_CGROUP_CPU_THROTTLED, 0}};

/* What afz_cgroup_node_open(only_memory) opens: the limits first, then what is used. */
#define MEMORY_FILES 4
#define LIMIT_FILES  2

static const struct file files_v2[] = {
        {"memory.max", AFZ_CG_MEMORY, ONE_NUMBER, AFZ_CGROUP_MAX},
        {"memory.high", AFZ_CG_MEMORY, ONE_NUMBER, AFZ_CGROUP_HIGH},
        {"memory.current", AFZ_CG_MEMORY, ONE_NUMBER, AFZ_CGROUP_CURRENT},
        {"memory.stat", AFZ_CG_MEMORY, KEYS, KEY_TABLE(stat_v2)},
        {"memory.peak", AFZ_CG_MEMORY, ONE_NUMBER, AFZ_CGROUP_PEAK},
        {"memory.swap.current", AFZ_CG_MEMORY, ONE_NUMBER, AFZ_CGROUP_SWAP},
        {"memory.swap.max", AFZ_CG_MEMORY, ONE_NUMBER, AFZ_CGROUP_SWAP_MAX},
        {"memory.events", AFZ_CG_MEMORY, KEYS, KEY_TABLE(events_v2)},
        {"memory.pressure", AFZ_CG_MEMORY, PRESSURE, 0},
        {"io.stat", AFZ_CG_IO, IO_V2, 0},
        {"cpu.stat", AFZ_CG_CPU, KEYS, KEY_TABLE(cpu_v2)},
        {"pids.current", AFZ_CG_PIDS, ONE_NUMBER, AFZ_CGROUP_PIDS},
        {"pids.max", AFZ_CG_PIDS, ONE_NUMBER, AFZ_CGROUP_PIDS_MAX},
        {"cgroup.events", AFZ_CG_MEMORY, KEYS, KEY_TABLE(frozen_v2)},
};

static const struct file files_v1[] = {
        {"memory.limit_in_bytes", AFZ_CG_MEMORY, ONE_NUMBER, AFZ_CGROUP_MAX},
        {"memory.usage_in_bytes", AFZ_CG_MEMORY, ONE_NUMBER, AFZ_CGROUP_CURRENT},
        {"memory.stat", AFZ_CG_MEMORY, KEYS, KEY_TABLE(stat_v1)},
        {"memory.max_usage_in_bytes", AFZ_CG_MEMORY, ONE_NUMBER, AFZ_CGROUP_PEAK},
        {"memory.failcnt", AFZ_CG_MEMORY, ONE_NUMBER, AFZ_CGROUP_EVENT_MAX},
        {"memory.kmem.usage_in_bytes", AFZ_CG_MEMORY, ONE_NUMBER, AFZ_CGROUP_KERNEL},
        {"memory.oom_control", AFZ_CG_MEMORY, KEYS, KEY_TABLE(oom_v1)},
        {"blkio.throttle.io_service_bytes_recursive", AFZ_CG_IO, IO_V1, 0},
        {"cpuacct.usage", AFZ_CG_CPUACCT, ONE_NUMBER, AFZ_CGROUP_CPU},
        {"cpu.stat", AFZ_CG_CPU, KEYS, KEY_TABLE(cpu_v1)},
        {"pids.current", AFZ_CG_PIDS, ONE_NUMBER, AFZ_CGROUP_PIDS},
        {"pids.max", AFZ_CG_PIDS, ONE_NUMBER, AFZ_CGROUP_PIDS_MAX},
        {"freezer.state", AFZ_CG_FREEZER, FREEZER, 0},
};

_Static_assert(AFZ_COUNT_OF(files_v2) <= AFZ_CGROUP_FILES, "too many files");
_Static_assert(AFZ_COUNT_OF(files_v1) <= AFZ_CGROUP_FILES, "too many files");

static const struct file *file_table(int version, size_t *ret_count)
{
        *ret_count = version == 2 ? AFZ_COUNT_OF(files_v2) : AFZ_COUNT_OF(files_v1);
        return version == 2 ? files_v2 : files_v1;
}

void afz_cgroup_node_open(struct afz_cgroup_node *node, const struct afz_env *env,
                          const struct afz_cgroup_path *path, bool only_memory)
{
        size_t count;
        const struct file *file = file_table(path->version, &count);
        node->version = path->version;
        for (size_t i = 0; i < AFZ_CGROUP_FILES; i++)
                node->fd[i] = -1;
        for (size_t i = 0; i < count && (!only_memory || i < MEMORY_FILES); i++) {
                char name[AFZ_CGROUP_PATH_MAX + 64];
                const char *dir = path->dir[file[i].controller];
                if (!dir[0] || afz_path(name, sizeof name, "%s/%s", dir, file[i].name) < 0)
                        continue;
                int fd = afz_env_open(env, AFZ_ROOT_CGROUP, name, 0);
                node->fd[i] = fd >= 0 ? fd : -1;
        }
}

void afz_cgroup_node_close(struct afz_cgroup_node *node)
{
        for (size_t i = 0; i < AFZ_CGROUP_FILES; i++) {
                if (node->fd[i] >= 0)
                        close(node->fd[i]);
                node->fd[i] = -1;
        }
}

static void set_number(struct afz_sample *s, enum afz_metric metric, struct afz_span text)
{
        uint64_t v;
        if (afz_span_u64(text, &v) == 0 && (metric != AFZ_CGROUP_MAX || v < AFZ_CGROUP_V1_NO_LIMIT))
                afz_sample_set_u64(s, metric, v);
}

static void set_pressure(struct afz_sample *s, struct afz_span text)
{
        struct afz_psi psi;
        if (afz_psi_parse(text, &psi) < 0)
                return;
        afz_sample_set_u64(s, AFZ_CGROUP_PRESSURE_SOME, psi.some.total_ns);
        if (psi.has_full)
                afz_sample_set_u64(s, AFZ_CGROUP_PRESSURE_FULL, psi.full.total_ns);
}

static void set_io_v2(struct afz_sample *s, struct afz_span text)
{
        struct afz_span line, word;
        uint64_t v;
        afz_sample_add_key(s, AFZ_CGROUP_IO_READ, 0);
        afz_sample_add_key(s, AFZ_CGROUP_IO_WRITTEN, 0);
        while (afz_span_take_line(&text, &line) == 0) {
                while (afz_span_take_word(&line, &word) == 0) {
                        if (afz_span_take_prefix(&word, "rbytes=") == 0 &&
                            afz_span_u64(word, &v) == 0)
                                afz_sample_add_key(s, AFZ_CGROUP_IO_READ, v);
                        else if (afz_span_take_prefix(&word, "wbytes=") == 0 &&
                                 afz_span_u64(word, &v) == 0)
                                afz_sample_add_key(s, AFZ_CGROUP_IO_WRITTEN, v);
                }
        }
}

static void set_io_v1(struct afz_sample *s, struct afz_span text)
{
        struct afz_span line, device, op;
        uint64_t v;
        afz_sample_add_key(s, AFZ_CGROUP_IO_READ, 0);
        afz_sample_add_key(s, AFZ_CGROUP_IO_WRITTEN, 0);
        while (afz_span_take_line(&text, &line) == 0) {
                if (afz_span_take_word(&line, &device) < 0 || afz_span_take_word(&line, &op) < 0 ||
                    afz_span_u64(line, &v) < 0)
                        continue; /* the last line is "Total N" */
                if (afz_span_eq(op, "Read"))
                        afz_sample_add_key(s, AFZ_CGROUP_IO_READ, v);
                else if (afz_span_eq(op, "Write"))
                        afz_sample_add_key(s, AFZ_CGROUP_IO_WRITTEN, v);
        }
}

static void set_file(struct afz_sample *s, const struct file *file, struct afz_span text)
{
        switch (file->form) {
        case ONE_NUMBER:
                set_number(s, file->metric, text);
                break;
        case KEYS:
                afz_span_each_key(text, file->keys, file->key_count, afz_sample_set_key, s);
                break;
        case PRESSURE:
                set_pressure(s, text);
                break;
        case IO_V2:
                set_io_v2(s, text);
                break;
        case IO_V1:
                set_io_v1(s, text);
                break;
        case FREEZER:
                text = afz_span_trim(text);
                if (afz_span_eq(text, "THAWED") || afz_span_eq(text, "FREEZING") ||
                    afz_span_eq(text, "FROZEN"))
                        afz_sample_set(s, AFZ_CGROUP_FROZEN, !afz_span_eq(text, "THAWED"));
                break;
        }
}

/* anon + shmem + swap + kernel memory that cannot shrink. v1 does not tell the reclaimable part of
 * kernel memory, so there it is left out: a little too low rather than far too high. */
static void set_need(struct afz_sample *s, int version)
{
        int64_t anon, shmem, kernel, reclaimable;
        if (!afz_sample_get(s, AFZ_CGROUP_ANON, &anon) ||
            !afz_sample_get(s, AFZ_CGROUP_SHMEM, &shmem))
                return;
        int64_t need = anon + shmem + afz_sample_or(s, AFZ_CGROUP_SWAP, 0);
        if (version == 2 && afz_sample_get(s, AFZ_CGROUP_KERNEL, &kernel) &&
            afz_sample_get(s, AFZ_CGROUP_SLAB_RECLAIMABLE, &reclaimable) && kernel > reclaimable)
                need += kernel - reclaimable;
        else if (version == 2) /* before 5.18 there is no "kernel" row */
                need += afz_sample_or(s, AFZ_CGROUP_SLAB_UNRECLAIMABLE, 0);
        afz_sample_set(s, AFZ_CGROUP_NEED, need);
}

bool afz_cgroup_node_bounds(const struct afz_cgroup_node *node)
{
        size_t count;
        const struct file *file = file_table(node->version, &count);
        struct afz_sample s = {.subject.kind = AFZ_KIND_CGROUP};
        for (size_t i = 0; i < LIMIT_FILES; i++) {
                char buf[64];
                ssize_t n =
                        node->fd[i] >= 0 ? afz_fd_read_record(node->fd[i], buf, sizeof buf) : -1;
                bool limit = file[i].metric == AFZ_CGROUP_MAX || file[i].metric == AFZ_CGROUP_HIGH;
                if (n > 0 && limit)
                        set_file(&s, &file[i], (struct afz_span){buf, (size_t)n});
        }
        return s.present != 0;
}

int afz_cgroup_node_read(const struct afz_cgroup_node *node, struct afz_sample *s)
{
        char buf[16384];
        size_t count;
        const struct file *file = file_table(node->version, &count);
        for (size_t i = 0; i < count; i++) {
                if (node->fd[i] < 0)
                        continue;
                ssize_t n = afz_fd_read_record(node->fd[i], buf, sizeof buf);
                if (n == -ENODEV)
                        return -ENODEV;
                /* An empty file tells something too: io.stat of a cgroup that never did any. */
                if (n >= 0)
                        set_file(s, &file[i], (struct afz_span){buf, (size_t)n});
        }
        afz_sample_set(s, AFZ_CGROUP_VERSION, node->version);
        set_need(s, node->version);
        return 0;
}
