#include "scout_others.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dir.h"
#include "map.h"
#include "proc_stat.h"

static const struct {
        uint64_t quiet_ns, usual_ns, soon_ns;
        uint64_t usual_bytes, soon_bytes, least_bytes;
} when = {
        .quiet_ns = 30 * AFZ_NS_PER_S, /* in any case: what grows slowly is seen too */
        .usual_ns = 5 * AFZ_NS_PER_S,  /* 300 processes cost 2 ms: 0.04 % of a core */
        .soon_ns = 1 * AFZ_NS_PER_S,
        .usual_bytes = 64U << 20, /* of MemAvailable gone since the last walk */
        .soon_bytes = 512U << 20, /* the same */
        .least_bytes = 16U << 20, /* growth below this is any program's breathing */
};

enum {
        MAX_PROGRAMS = 1024,   /* names; a desktop has some 150 */
        MAX_PROCESSES = 32768, /* remembered by pid, so that a name need not be read each time */
        /* A process may run another program without getting another folder: one in so many is asked
         * for its name again in each walk. */
        NAME_TURNS = 8,
};

struct program {
        char name[20];
        uint64_t first_bytes; /* at the first walk */
        uint64_t bytes, largest_bytes, largest_pid;
};

struct afz_scout_others {
        const struct afz_env *env;
        uint64_t walks, walked_ns, available_bytes;
        bool moving;           /* memory was going at the last walk: what it saw was half of it */
        struct afz_map *known; /* pid: inode of its folder << 16 | program */
        size_t programs;
        struct program program[MAX_PROGRAMS];
};

int afz_scout_others_new(const struct afz_env *env, struct afz_scout_others **ret)
{
        struct afz_scout_others *o = calloc(1, sizeof *o);
        if (!o)
                return -ENOMEM;
        o->env = env;
        int r = afz_map_new(MAX_PROCESSES, &o->known);
        if (r < 0) {
                free(o);
                return r;
        }
        *ret = o;
        return 0;
}

void afz_scout_others_free(struct afz_scout_others *o)
{
        if (!o)
                return;
        afz_map_free(o->known);
        free(o);
}

bool afz_scout_others_due(const struct afz_scout_others *o, uint64_t now_ns, bool has_available,
                          uint64_t available_bytes)
{
        if (o->walks == 0 || now_ns < o->walked_ns)
                return true;
        uint64_t age_ns = now_ns - o->walked_ns, gone = 0;
        if (has_available && available_bytes < o->available_bytes)
                gone = o->available_bytes - available_bytes;
        return age_ns >= when.quiet_ns ||
               (age_ns >= when.usual_ns && (o->moving || gone >= when.usual_bytes)) ||
               (age_ns >= when.soon_ns && gone >= when.soon_bytes);
}

static int read_file(const struct afz_env *env, uint64_t pid, const char *file, char *buf,
                     size_t cap, struct afz_span *ret)
{
        char path[40];
        int r = afz_path(path, sizeof path, "%llu/%s", (unsigned long long)pid, file);
        return r < 0 ? r : afz_env_read_head(env, AFZ_ROOT_PROC, path, buf, cap, ret);
}

/* The index of a program by name, made where it is new; -ENOSPC when there are too many. */
static int program_index(struct afz_scout_others *o, struct afz_span comm)
{
        char name[sizeof o->program[0].name];
        afz_span_copy(comm, name, sizeof name);
        for (size_t i = 0; i < o->programs; i++)
                if (strcmp(o->program[i].name, name) == 0)
                        return (int)i;
        if (o->programs == MAX_PROGRAMS)
                return -ENOSPC;
        struct program *p = &o->program[o->programs];
        *p = (struct program){0};
        memcpy(p->name, name, sizeof name);
        return (int)o->programs++;
}

static struct program *program_of(struct afz_scout_others *o, uint64_t pid, uint64_t inode)
{
        uint64_t known;
        bool again = (pid + o->walks) % NAME_TURNS == 0;
        if (!again && afz_map_get(o->known, pid, &known) &&
            known >> 16 == (inode & UINT64_MAX >> 16))
                return &o->program[known & 0xffff];
        char buf[64];
        struct afz_span comm;
        if (read_file(o->env, pid, "comm", buf, sizeof buf, &comm) < 0)
                return NULL;
        while (comm.n > 0 && comm.p[comm.n - 1] == '\n')
                comm.n--;
        int i = program_index(o, comm);
        if (i < 0)
                return NULL;
        (void)afz_map_put(o->known, pid, inode << 16 | (uint64_t)i); /* full: read it each time */
        return &o->program[i];
}

static void add_process(struct afz_scout_others *o, uint64_t pid, uint64_t inode)
{
        char buf[128];
        struct afz_span text;
        struct afz_proc_statm m;
        if (read_file(o->env, pid, "statm", buf, sizeof buf, &text) < 0 ||
            afz_proc_statm_parse(text, &m) < 0 || m.size_pages == 0)
                return; /* gone, not ours to see, or a kernel thread */
        struct program *p = program_of(o, pid, inode);
        uint64_t bytes = 0;
        if (!p || (m.resident_pages > m.shared_pages &&
                   __builtin_mul_overflow(m.resident_pages - m.shared_pages,
                                          (uint64_t)o->env->page_bytes, &bytes)))
                return;
        p->bytes += bytes;
        if (bytes >= p->largest_bytes) {
                p->largest_bytes = bytes;
                p->largest_pid = pid;
        }
}

/* Processes come and go for ever, the map does not forget: now and then it is begun anew. */
static void make_room(struct afz_scout_others *o)
{
        if (afz_map_count(o->known) > MAX_PROCESSES / 2)
                afz_map_clear(o->known);
}

void afz_scout_others_walk(struct afz_scout_others *o, uint64_t now_ns, uint64_t available_bytes,
                           bool (*is_ours)(void *ctx, uint64_t pid), void *ctx)
{
        struct afz_dir dir;
        uint64_t pid;
        for (size_t i = 0; i < o->programs; i++)
                o->program[i].bytes = o->program[i].largest_bytes = o->program[i].largest_pid = 0;
        make_room(o);
        int r = afz_dir_open(&dir, o->env, AFZ_ROOT_PROC, ".");
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0)
                if (afz_dir_name_u64(&dir, &pid) == 0 && !is_ours(ctx, pid))
                        add_process(o, pid, dir.inode);
        afz_dir_close(&dir);
        for (size_t i = 0; o->walks == 0 && i < o->programs; i++)
                o->program[i].first_bytes = o->program[i].bytes;
        o->moving = o->walks > 0 && available_bytes + when.usual_bytes <= o->available_bytes;
        o->walks++;
        o->walked_ns = now_ns;
        o->available_bytes = available_bytes;
}

void afz_scout_others_tell(const struct afz_scout_others *o, struct afz_scout_report *report)
{
        const struct program *most = NULL;
        uint64_t grown = when.least_bytes - 1;
        for (size_t i = 0; i < o->programs; i++) {
                const struct program *p = &o->program[i];
                if (p->bytes > p->first_bytes && p->bytes - p->first_bytes > grown) {
                        grown = p->bytes - p->first_bytes;
                        most = p;
                }
        }
        memset(&report->other, 0, sizeof report->other);
        if (!most)
                return;
        report->other.pid = most->largest_pid;
        report->other.bytes = most->bytes;
        report->other.grown_bytes = grown;
        memcpy(report->other.name, most->name, sizeof most->name);
}
