#include "scout_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "role.h"
#include "scout_escape.h"

static const struct {
        uint64_t usual_ns, brisk_ns, young_ns;
        uint64_t disk_left_s;
        unsigned shm_part;
} pace = {
        .usual_ns = AFZ_NS_PER_S,
        .brisk_ns = AFZ_NS_PER_S / 4,
        .young_ns = 5 * AFZ_NS_PER_S, /* what leaves the tree (sbatch, docker) is mostly started by
                                       * the first lines of a script, and lives for a moment */
        .disk_left_s = 120,           /* a disk that will be full so soon */
        .shm_part = 4,                /* /dev/shm when less than one part in so many is free */
};

enum {
        MAX_PROCESSES = 512, /* whose growth is followed; a job of more has its largest among them
                              * soon, as places of the dead are given again */
        LOOKS = 11,          /* one a second: growth over 10 s */
        MAX_DEPTH = 64,      /* generations looked up from a kernel */
};
#define LOOK_NS (9 * (AFZ_NS_PER_S / 10)) /* a tick that comes a little early still counts */

struct track {
        uint64_t pid, start; /* pid 0: a free place */
        uint64_t seen_ns, count;
        struct {
                uint64_t t_ns, bytes;
        } look[LOOKS];
};

struct afz_scout_facts {
        struct track track[MAX_PROCESSES];
        struct afz_scout_disk disk;
        bool has_shm;
        uint64_t shm_first_bytes; /* in use in /dev/shm when we began */
};

int afz_scout_facts_new(struct afz_scout_facts **ret)
{
        struct afz_scout_facts *f = calloc(1, sizeof *f);
        if (!f)
                return -ENOMEM;
        *ret = f;
        return 0;
}

void afz_scout_facts_free(struct afz_scout_facts *facts)
{
        free(facts);
}

/* ---- who holds and who grows ---- */

static bool held_by(const struct afz_sample *s, uint64_t *ret)
{
        return afz_sample_get_u64(s, AFZ_PROC_NEED, ret) ||
               afz_sample_get_u64(s, AFZ_PROC_RSS, ret);
}

static struct track *track_of(struct afz_scout_facts *f, const struct afz_subject *who,
                              uint64_t now_ns)
{
        struct track *unused = NULL;
        for (size_t i = 0; i < MAX_PROCESSES; i++) {
                struct track *t = &f->track[i];
                if (t->pid == who->id && t->start == who->start)
                        return t;
                if (!unused && (t->pid == 0 || now_ns - t->seen_ns > 2 * AFZ_NS_PER_S))
                        unused = t;
        }
        if (unused)
                *unused = (struct track){.pid = who->id, .start = who->start};
        return unused;
}

/* How much more it holds than at the oldest look that is kept: at most 10 s ago. */
static uint64_t growth(struct track *t, uint64_t now_ns, uint64_t bytes)
{
        t->seen_ns = now_ns;
        if (t->count == 0 || now_ns - t->look[(t->count - 1) % LOOKS].t_ns >= LOOK_NS) {
                t->look[t->count % LOOKS].t_ns = now_ns;
                t->look[t->count % LOOKS].bytes = bytes;
                t->count++;
        }
        uint64_t then = t->look[t->count > LOOKS ? t->count % LOOKS : 0].bytes;
        return bytes > then ? bytes - then : 0;
}

static void take_processes(struct afz_scout_facts *f, const struct afz_window *w,
                           struct afz_scout_report *r)
{
        const struct afz_sample *s;
        size_t cursor = 0;
        memset(&r->largest, 0, sizeof r->largest);
        memset(&r->grower, 0, sizeof r->grower);
        while ((s = afz_window_next(w, AFZ_KIND_PROC, &cursor))) {
                uint64_t bytes;
                if (!held_by(s, &bytes))
                        continue;
                if (bytes > r->largest.bytes) {
                        r->largest.bytes = bytes;
                        r->largest.pid = s->subject.id;
                        afz_span_copy(afz_span_str(s->name), r->largest.name,
                                      sizeof r->largest.name);
                }
                struct track *t = track_of(f, &s->subject, w->t_ns);
                uint64_t grown = t ? growth(t, w->t_ns, bytes) : 0;
                if (grown > r->grower.bytes) {
                        r->grower.bytes = grown;
                        r->grower.pid = s->subject.id;
                        afz_span_copy(afz_span_str(s->name), r->grower.name, sizeof r->grower.name);
                }
        }
}

/* ---- notebooks ---- */

static enum afz_role role_of(const struct afz_sample *s)
{
        return (enum afz_role)afz_sample_or(s, AFZ_PROC_ROLE, AFZ_ROLE_OTHER);
}

static const struct afz_sample *parent_of(const struct afz_window *w, const struct afz_sample *s)
{
        uint64_t ppid;
        return afz_sample_get_u64(s, AFZ_PROC_PPID, &ppid) ? afz_window_find(w, AFZ_KIND_PROC, ppid)
                                                           : NULL;
}

/* A kernel below a server, which goes on without it. One that was started by hand, or by what runs
 * a single notebook, is the job itself; what a kernel has forked belongs to it. */
static bool is_part(const struct afz_window *w, const struct afz_sample *s)
{
        bool served = false;
        if (role_of(s) != AFZ_ROLE_KERNEL)
                return false;
        const struct afz_sample *up = parent_of(w, s);
        for (int i = 0; up && i < MAX_DEPTH; i++, up = parent_of(w, up)) {
                if (role_of(up) == AFZ_ROLE_KERNEL)
                        return false;
                served |= role_of(up) == AFZ_ROLE_SERVER;
        }
        return served;
}

static void take_parts(const struct afz_window *w, struct afz_scout_report *r)
{
        const struct afz_sample *s;
        size_t cursor = 0;
        r->parts = 0;
        while ((s = afz_window_next(w, AFZ_KIND_PROC, &cursor))) {
                r->server |= role_of(s) == AFZ_ROLE_SERVER;
                if (r->parts < AFZ_SCOUT_PARTS && is_part(w, s))
                        r->part_pid[r->parts++] = s->subject.id;
        }
}

/* ---- what leaves the tree ---- */

static bool is_told(const struct afz_scout_report *r, const char *name)
{
        for (unsigned i = 0; i < r->escapes; i++)
                if (strcmp(r->escape[i].name, name) == 0)
                        return true;
        return false;
}

static void take_escapes(const struct afz_window *w, struct afz_scout_report *r)
{
        const struct afz_sample *s;
        size_t cursor = 0;
        char name[sizeof r->escape[0].name];
        while (r->escapes < AFZ_SCOUT_ESCAPES && (s = afz_window_next(w, AFZ_KIND_PROC, &cursor))) {
                const struct afz_sample *up = parent_of(w, s);
                if (!s->detail ||
                    !afz_scout_escape(s->detail, up ? up->name : NULL, name, sizeof name) ||
                    is_told(r, name))
                        continue;
                r->escape[r->escapes].pid = s->subject.id;
                memcpy(r->escape[r->escapes++].name, name, sizeof name);
        }
}

/* ---- shared memory, GPUs ---- */

/* Shared memory of the job, each page once where that is known. */
static uint64_t job_shmem(const struct afz_window *w)
{
        const struct afz_sample *s;
        uint64_t bytes, most = 0;
        size_t cursor = 0;
        if (afz_sample_get_u64(afz_window_one(w, AFZ_KIND_JOB), AFZ_JOB_PSS_SHMEM, &bytes))
                return bytes;
        while ((s = afz_window_next(w, AFZ_KIND_PROC, &cursor)))
                if (afz_sample_get_u64(s, AFZ_PROC_RSS_SHMEM, &bytes) && bytes > most)
                        most = bytes;
        return most;
}

/* What the job has there is no more than it maps, and no more than came since we began; files that
 * it wrote and does not map are seen in the second alone, where nobody else could be meant. */
static void take_shm(struct afz_scout_facts *f, const struct afz_window *w,
                     struct afz_scout_report *r)
{
        const struct afz_sample *host = afz_window_one(w, AFZ_KIND_HOST);
        uint64_t total, used;
        memset(&r->shm, 0, sizeof r->shm);
        if (!afz_sample_get_u64(host, AFZ_HOST_SHM_TOTAL, &total) ||
            !afz_sample_get_u64(host, AFZ_HOST_SHM_USED, &used) || total == 0 || used > total)
                return;
        if (!f->has_shm || used < f->shm_first_bytes)
                f->shm_first_bytes = used;
        f->has_shm = true;
        uint64_t came = used - f->shm_first_bytes, mapped = job_shmem(w);
        r->shm.known = true;
        r->shm.size_bytes = total;
        r->shm.free_bytes = total - used;
        r->shm.job_bytes = mapped < came ? mapped : came;
}

static bool is_unified(const struct afz_window *w, int64_t gpu)
{
        const struct afz_sample *s;
        size_t cursor = 0;
        while ((s = afz_window_next(w, AFZ_KIND_GPU, &cursor)))
                if (s->subject.id == (uint64_t)gpu)
                        return afz_sample_or(s, AFZ_GPU_UNIFIED, 0) == 1;
        return false;
}

/* Where a card stands beside a GPU that lives in RAM (most laptops), the card's memory is meant. */
static void take_gpus(const struct afz_window *w, struct afz_scout_report *r)
{
        const struct afz_sample *s;
        size_t cursor = 0;
        bool has_card = false;
        r->has_gpu = false;
        while ((s = afz_window_next(w, AFZ_KIND_GPU, &cursor))) {
                r->has_gpu = true;
                has_card |= afz_sample_or(s, AFZ_GPU_UNIFIED, 0) != 1;
        }
        r->gpu_is_ram = r->has_gpu && !has_card;
        r->gpu_bytes = 0;
        cursor = 0;
        while ((s = afz_window_next(w, AFZ_KIND_GPU_PROC, &cursor))) {
                uint64_t bytes;
                if (afz_sample_or(s, AFZ_GPU_PROC_IN_JOB, 0) != 1 ||
                    !afz_sample_get_u64(s, AFZ_GPU_PROC_MEM, &bytes) ||
                    (has_card && is_unified(w, afz_sample_or(s, AFZ_GPU_PROC_GPU, -1))))
                        continue;
                r->gpu_bytes += bytes;
        }
}

void afz_scout_facts_take(struct afz_scout_facts *f, const struct afz_window *w,
                          struct afz_scout_report *r)
{
        take_processes(f, w, r);
        take_parts(w, r);
        take_escapes(w, r);
        take_shm(f, w, r);
        take_gpus(w, r);
        afz_scout_disk_take(&f->disk, w, r);
        uint64_t cpu_ns;
        if (afz_sample_get_u64(afz_window_one(w, AFZ_KIND_SELF), AFZ_SELF_CPU, &cpu_ns))
                r->own_cpu_ns = cpu_ns;
        r->t_ns = w->t_ns;
}

uint64_t afz_scout_facts_pace(const struct afz_scout_report *r, uint64_t age_ns)
{
        bool disk_fills = r->disk.known && r->disk.left_s < pace.disk_left_s;
        bool shm_fills = r->shm.known && r->shm.free_bytes < r->shm.size_bytes / pace.shm_part;
        return age_ns < pace.young_ns || disk_fills || shm_fills ? pace.brisk_ns : pace.usual_ns;
}
