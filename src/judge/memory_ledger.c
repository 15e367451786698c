#include "memory_ledger.h"

#include <string.h>

#include "role.h"
#include "stretch.h"

static const struct {
        uint32_t fresh_ms; /* how old a reading may be */
        double sharer;     /* share of a process's anonymous memory that it does not have alone */
} at = {
        .fresh_ms = 3000, /* the slowest of these senses looks each second */
        .sharer = 0.05,   /* below that, PSS is merely older than RSS */
};

static const struct {
        const char *name, *what;
} words[AFZ_LEDGER_KINDS] = {
        [AFZ_LEDGER_PRIVATE] = {"its own data", "what the program allocated: tensors, lists, "
                                                "buffers, of one process alone"},
        [AFZ_LEDGER_SHARED] = {"inherited data",
                               "what a parent allocated and its workers see too, until they write "
                               "to it; counted once"},
        [AFZ_LEDGER_SHM] = {"shared memory",
                            "/dev/shm and the like: how workers hand over batches; counted once"},
        [AFZ_LEDGER_PINNED] = {"pinned memory",
                               "held in place for a device to read, so it can never be swapped"},
        [AFZ_LEDGER_KERNEL] = {"the kernel's part",
                               "page tables, thread stacks and network buffers that the kernel "
                               "keeps for the job"},
        [AFZ_LEDGER_SWAP] = {"in swap", "moved out to disk to make room; slow to get back"},
        [AFZ_LEDGER_UNEXPLAINED] = {"unexplained",
                                    "part of the need, but no source says what it is"},
        [AFZ_LEDGER_FILES] = {"files in memory",
                              "copies of what is on disk (programs, data): given back at once "
                              "when memory is short, so not part of the need"},
        [AFZ_LEDGER_VRAM] = {"GPU memory", "on the GPU's own chips, not part of the need"},
};

/* ---- one figure at one moment ---- */

/* The last reading that is not too old. A thinned point stands for its span: at the need's peak the
 * parts were at theirs. */
static bool value_at(const struct afz_column *column, uint32_t t_ms, uint64_t *ret)
{
        size_t i = column ? afz_column_at(column, t_ms == UINT32_MAX ? t_ms : t_ms + 1) : 0;
        if (i == 0)
                return false;
        const struct afz_point *p = &column->point[i - 1];
        if (t_ms - p->t_ms > at.fresh_ms && t_ms - p->t_ms > p->span_ms)
                return false;
        int64_t value = p->span_ms ? p->most : p->mean;
        if (value < 0)
                return false;
        *ret = (uint64_t)value;
        return true;
}

static bool of(const struct afz_track *track, enum afz_metric metric, uint32_t t_ms, uint64_t *ret)
{
        return value_at(afz_track_column(track, metric), t_ms, ret);
}

static uint64_t add(uint64_t a, uint64_t b)
{
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

/* ---- the processes ---- */

/* The tree's sums at one moment, from its processes. */
struct tree {
        uint64_t anon, shmem; /* shared pages once */
        uint64_t pss_anon, pss_file, swap, pinned, page_tables;
        uint64_t private_dirty; /* anonymous and written by one process alone */
        uint64_t saved;         /* anonymous RSS beyond PSS: what plain sums count too often */
        unsigned processes, sharers, with_pss, with_private;
        bool has_swap;
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* The anonymous memory of one process, its part of shared pages only. Its share of the need is
 * newer than its PSS: what came since is its own. */
static uint64_t anon_of(const struct afz_track *proc, uint32_t t_ms, uint64_t pss_anon)
{
        uint64_t need, shmem = 0, swap = 0;
        (void)of(proc, AFZ_PROC_PSS_SHMEM, t_ms, &shmem);
        (void)of(proc, AFZ_PROC_SWAP_PSS, t_ms, &swap);
        return of(proc, AFZ_PROC_NEED, t_ms, &need) ? less(less(need, shmem), swap) : pss_anon;
}

static void add_pss(struct tree *tree, const struct afz_track *proc, uint32_t t_ms)
{
        uint64_t anon, rss, v;
        if (!of(proc, AFZ_PROC_PSS_ANON, t_ms, &anon))
                return;
        tree->with_pss++;
        tree->pss_anon = add(tree->pss_anon, anon);
        tree->anon = add(tree->anon, anon_of(proc, t_ms, anon));
        if (of(proc, AFZ_PROC_PSS_SHMEM, t_ms, &v))
                tree->shmem = add(tree->shmem, v);
        if (of(proc, AFZ_PROC_PSS_FILE, t_ms, &v))
                tree->pss_file = add(tree->pss_file, v);
        if (of(proc, AFZ_PROC_PRIVATE_DIRTY, t_ms, &v)) {
                tree->with_private++;
                tree->private_dirty = add(tree->private_dirty, smaller(v, anon));
        }
        if (of(proc, AFZ_PROC_RSS_ANON, t_ms, &rss) && rss > anon &&
            (double)(rss - anon) >= at.sharer * (double)rss) {
                tree->sharers++;
                tree->saved = add(tree->saved, rss - anon);
        }
}

/* One process alone shares with nobody of the job: its RSS will do. */
static void add_rss(struct tree *tree, const struct afz_track *proc, uint32_t t_ms)
{
        uint64_t v;
        if (of(proc, AFZ_PROC_RSS_ANON, t_ms, &v))
                tree->anon = v;
        if (of(proc, AFZ_PROC_RSS_SHMEM, t_ms, &v))
                tree->shmem = v;
        if (of(proc, AFZ_PROC_RSS_FILE, t_ms, &v))
                tree->pss_file = v;
}

static void add_process(struct tree *tree, const struct afz_track *proc, uint32_t t_ms)
{
        uint64_t v;
        tree->processes++;
        add_pss(tree, proc, t_ms);
        if (of(proc, AFZ_PROC_SWAP_PSS, t_ms, &v) || of(proc, AFZ_PROC_SWAP, t_ms, &v)) {
                tree->has_swap = true;
                tree->swap = add(tree->swap, v);
        }
        if (of(proc, AFZ_PROC_PINNED, t_ms, &v))
                tree->pinned = add(tree->pinned, v);
        if (of(proc, AFZ_PROC_PAGE_TABLES, t_ms, &v))
                tree->page_tables = add(tree->page_tables, v);
}

/* Its share of the need; of one of which that is not known, its anonymous memory. */
static bool weight_of(const struct afz_track *proc, uint32_t t_ms, uint64_t *ret)
{
        return of(proc, AFZ_PROC_NEED, t_ms, ret) || of(proc, AFZ_PROC_RSS_ANON, t_ms, ret);
}

static void place_process(struct afz_ledger *ledger, const struct afz_track *proc, uint32_t t_ms)
{
        struct afz_ledger_process one = {.pid = proc->subject.id, .name = proc->name};
        uint64_t role = AFZ_ROLE_OTHER;
        if (!weight_of(proc, t_ms, &one.bytes))
                return;
        (void)of(proc, AFZ_PROC_ROLE, t_ms, &role);
        one.role = role < AFZ_ROLE_COUNT ? afz_role_name((enum afz_role)role) : "";
        unsigned i = ledger->processes;
        while (i > 0 && ledger->process[i - 1].bytes < one.bytes)
                i--;
        if (ledger->processes == AFZ_LEDGER_PROCESSES) {
                const struct afz_ledger_process *last = &ledger->process[AFZ_LEDGER_PROCESSES - 1];
                ledger->more_processes++;
                ledger->more_bytes = add(ledger->more_bytes,
                                         i == AFZ_LEDGER_PROCESSES ? one.bytes : last->bytes);
                if (i == AFZ_LEDGER_PROCESSES)
                        return;
        } else {
                ledger->processes++;
        }
        memmove(&ledger->process[i + 1], &ledger->process[i],
                (ledger->processes - i - 1) * sizeof one);
        ledger->process[i] = one;
}

static void look_at_processes(const struct afz_flight *flight, uint32_t t_ms, struct tree *tree,
                              struct afz_ledger *ledger)
{
        const struct afz_track *proc, *last = NULL;
        for (size_t cursor = 0; (proc = afz_flight_next(flight, AFZ_KIND_PROC, &cursor));) {
                uint64_t rss;
                if (!of(proc, AFZ_PROC_RSS, t_ms, &rss) && !of(proc, AFZ_PROC_RSS_ANON, t_ms, &rss))
                        continue; /* not yet, no more, or a zombie */
                add_process(tree, proc, t_ms);
                place_process(ledger, proc, t_ms);
                last = proc;
        }
        if (tree->processes == 1 && tree->with_pss == 0)
                add_rss(tree, last, t_ms);
}

/* ---- the kinds ---- */

static void put(struct afz_ledger *ledger, enum afz_ledger_kind kind, uint64_t bytes, bool in_need)
{
        if (bytes == 0)
                return;
        ledger->row[ledger->rows++] = (struct afz_ledger_row){
                .kind = kind,
                .name = words[kind].name,
                .what = words[kind].what,
                .bytes = bytes,
                .in_need = in_need,
        };
}

/* The parts of the anonymous memory. Where the kernel tells which pages one process has alone, that
 * is it. Else: n processes that share S bytes save (n - 1) S against the plain sum. */
static uint64_t shared_part(const struct tree *tree, uint64_t anon)
{
        uint64_t shared = 0;
        if (tree->processes < 2 || tree->with_pss < 2)
                return 0;
        if (tree->with_private == tree->with_pss)
                shared = less(tree->pss_anon, tree->private_dirty);
        else if (tree->sharers > 1)
                shared = tree->saved / (tree->sharers - 1);
        return smaller(shared, smaller(anon, tree->pss_anon));
}

/* The job's own cgroup, as far as the need was reckoned from one; NULL: it was not. */
static const struct afz_track *group_of(const struct afz_flight *flight, uint32_t t_ms)
{
        const struct afz_track *group;
        uint64_t anon;
        if (flight->head.tier == AFZ_TIER_NONE)
                return NULL;
        /* It may have been moved: the one that it is in at that time. */
        for (size_t cursor = 0; (group = afz_flight_next(flight, AFZ_KIND_CGROUP, &cursor));)
                if (group->subject.id == 0 && of(group, AFZ_CGROUP_ANON, t_ms, &anon))
                        return group;
        return NULL;
}

/* A cgroup is read once a second, and a job can grow by gigabytes in that time: what its processes
 * got since then. */
static uint64_t grown_since_reading(const struct afz_flight *flight, const struct afz_track *group,
                                    uint32_t t_ms)
{
        const struct afz_column *anon = afz_track_column(group, AFZ_CGROUP_ANON);
        const struct afz_track *job = afz_flight_job(flight);
        size_t i = afz_column_at(anon, t_ms == UINT32_MAX ? t_ms : t_ms + 1);
        uint64_t now, then;
        if (i == 0 || anon->point[i - 1].span_ms > 0 || !of(job, AFZ_JOB_ANON, t_ms, &now) ||
            !of(job, AFZ_JOB_ANON, anon->point[i - 1].t_ms, &then))
                return 0;
        return less(now, then);
}

static uint64_t kernel_of(const struct afz_track *group, uint32_t t_ms)
{
        uint64_t kernel, reclaimable, slab;
        if (of(group, AFZ_CGROUP_KERNEL, t_ms, &kernel) &&
            of(group, AFZ_CGROUP_SLAB_RECLAIMABLE, t_ms, &reclaimable))
                return less(kernel, reclaimable);
        return of(group, AFZ_CGROUP_SLAB_UNRECLAIMABLE, t_ms, &slab) ? slab : 0;
}

static uint64_t swap_of(const struct afz_flight *flight, const struct afz_track *group,
                        const struct tree *tree, uint32_t t_ms)
{
        uint64_t away;
        if (of(afz_flight_one(flight, AFZ_KIND_HOLD), AFZ_HOLD_AWAY, t_ms, &away) ||
            of(group, AFZ_CGROUP_SWAP, t_ms, &away) ||
            of(afz_flight_job(flight), AFZ_JOB_SWAP, t_ms, &away))
                return away;
        return tree->has_swap ? tree->swap : 0;
}

static uint64_t vram_of(const struct afz_flight *flight, uint32_t t_ms)
{
        const struct afz_track *proc;
        uint64_t sum = 0, bytes;
        for (size_t cursor = 0; (proc = afz_flight_next(flight, AFZ_KIND_GPU_PROC, &cursor));)
                if (afz_gpu_proc_is_ours(proc) && of(proc, AFZ_GPU_PROC_MEM, t_ms, &bytes))
                        sum = add(sum, bytes);
        return sum;
}

/* Pinned pages are anonymous or shared: they are taken out of those, so that nothing is twice. */
static void put_memory(struct afz_ledger *ledger, const struct tree *tree, uint64_t anon,
                       uint64_t shm)
{
        uint64_t shared = shared_part(tree, anon);
        uint64_t alone = anon - shared;
        uint64_t pinned = smaller(tree->pinned, add(alone, shm));
        put(ledger, AFZ_LEDGER_PRIVATE, less(alone, pinned), true);
        put(ledger, AFZ_LEDGER_SHARED, shared, true);
        put(ledger, AFZ_LEDGER_SHM, less(shm, less(pinned, alone)), true);
        put(ledger, AFZ_LEDGER_PINNED, pinned, true);
}

static void put_need(const struct afz_flight *flight, const struct tree *tree,
                     struct afz_ledger *ledger)
{
        uint32_t t_ms = ledger->t_ms;
        const struct afz_track *group = group_of(flight, t_ms);
        uint64_t anon = tree->anon, shm = tree->shmem, kernel = 0, version = 0;
        uint64_t swap = swap_of(flight, group, tree, t_ms);
        if (group) {
                (void)of(group, AFZ_CGROUP_ANON, t_ms, &anon);
                (void)of(group, AFZ_CGROUP_SHMEM, t_ms, &shm);
                (void)of(group, AFZ_CGROUP_VERSION, t_ms, &version);
                /* Need has the kernel's part on v2 only: elsewhere it cannot be told apart. */
                kernel = version == 2 ? kernel_of(group, t_ms) : 0;
                uint64_t known = add(add(anon, shm), add(kernel, swap));
                anon = add(anon, smaller(less(ledger->need_bytes, known),
                                         grown_since_reading(flight, group, t_ms)));
        }
        put_memory(ledger, tree, anon, shm);
        put(ledger, AFZ_LEDGER_KERNEL, kernel, true);
        put(ledger, AFZ_LEDGER_SWAP, swap, true);
        if (kernel == 0)
                put(ledger, AFZ_LEDGER_KERNEL, tree->page_tables, false);
}

static void put_beside(const struct afz_flight *flight, const struct tree *tree,
                       struct afz_ledger *ledger)
{
        uint64_t file, shmem;
        const struct afz_track *group = group_of(flight, ledger->t_ms);
        if (of(group, AFZ_CGROUP_FILE, ledger->t_ms, &file) &&
            of(group, AFZ_CGROUP_SHMEM, ledger->t_ms, &shmem))
                file = less(file, shmem); /* the kernel counts shared memory as file there */
        else
                file = tree->pss_file;
        put(ledger, AFZ_LEDGER_FILES, file, false);
        put(ledger, AFZ_LEDGER_VRAM, vram_of(flight, ledger->t_ms), false);
}

static void close_ledger(struct afz_ledger *ledger, uint64_t sum)
{
        if (sum > ledger->need_bytes)
                ledger->over_bytes = sum - ledger->need_bytes;
        ledger->whole_bytes = add(ledger->need_bytes, ledger->over_bytes);
        double whole = ledger->whole_bytes ? (double)ledger->whole_bytes : 1;
        for (unsigned i = 0; i < ledger->rows; i++)
                if (ledger->row[i].in_need)
                        ledger->row[i].share = (double)ledger->row[i].bytes / whole;
        for (unsigned i = 0; i < ledger->processes; i++)
                ledger->process[i].share = (double)ledger->process[i].bytes / whole;
}

bool afz_ledger_at(const struct afz_flight *flight, uint32_t t_ms, struct afz_ledger *ret)
{
        struct afz_ledger ledger = {.t_ms = t_ms};
        struct tree tree = {0};
        uint64_t sum = 0, bound = 0;
        if (!value_at(afz_flight_need(flight), t_ms, &ledger.need_bytes))
                return false;
        (void)of(afz_flight_job(flight), AFZ_JOB_NEED_BOUND, t_ms, &bound);
        ledger.bound = bound != 0 && !group_of(flight, t_ms);
        look_at_processes(flight, t_ms, &tree, &ledger);
        put_need(flight, &tree, &ledger);
        for (unsigned i = 0; i < ledger.rows; i++)
                if (ledger.row[i].in_need)
                        sum = add(sum, ledger.row[i].bytes);
        put(&ledger, AFZ_LEDGER_UNEXPLAINED, less(ledger.need_bytes, sum), true);
        put_beside(flight, &tree, &ledger);
        close_ledger(&ledger, sum);
        *ret = ledger;
        return true;
}

bool afz_ledger_peak(const struct afz_flight *flight, struct afz_ledger *ret)
{
        const struct afz_column *need = afz_flight_need(flight);
        const struct afz_point *most = NULL;
        for (size_t i = 0; need && i < need->count; i++)
                if (!most || need->point[i].most > most->most)
                        most = &need->point[i];
        return most && afz_ledger_at(flight, most->t_ms, ret);
}

bool afz_ledger_now(const struct afz_flight *flight, struct afz_ledger *ret)
{
        const struct afz_column *need = afz_flight_need(flight);
        for (size_t i = need ? need->count : 0; i-- > 0;)
                if (need->point[i].mean > 0)
                        return afz_ledger_at(flight, need->point[i].t_ms, ret);
        return false;
}
