#include "live_rows.h"

#include <errno.h>
#include <stdlib.h>

/* More processes than this are not listed; the job's own figures have them all the same. */
enum { MAX_ROWS = 8192, MAX_SLOTS = 2 * MAX_ROWS, NONE = -1 };

struct afz_live_rows {
        int count;
        uint32_t mask;       /* slots in use, less one; as few as the processes need */
        int slot[MAX_SLOTS]; /* a hash of pids: places in row[], or NONE */
        int order[MAX_ROWS]; /* what is drawn: from the front as a tree, from the back if sorted */
        bool backwards;
        struct afz_live_row row[MAX_ROWS];
};

int afz_live_init(struct afz_live_state *state)
{
        /* Pages of it that no process needs are never touched. */
        struct afz_live_rows *rows = calloc(1, sizeof *rows);
        if (!rows)
                return -ENOMEM;
        state->rows = rows;
        return 0;
}

void afz_live_done(struct afz_live_state *state)
{
        free(state->rows);
        state->rows = NULL;
}

bool afz_live_cpu_of(const struct afz_frame *frame, const struct afz_sample *proc, double *ret)
{
        double user, system;
        if (!afz_live_share(frame, proc, AFZ_PROC_USER, &user) ||
            !afz_live_share(frame, proc, AFZ_PROC_SYSTEM, &system))
                return false;
        *ret = user + system;
        return true;
}

enum afz_live_sort afz_live_sort_of(const struct afz_frame *frame)
{
        if (frame->state->sort == AFZ_LIVE_BY_TREE && !frame->window->job_pid)
                return AFZ_LIVE_BY_NEED;
        return frame->state->sort;
}

static double key_of(const struct afz_frame *frame, enum afz_live_sort sort,
                     const struct afz_sample *proc)
{
        double cpu;
        uint64_t bytes;
        if (sort == AFZ_LIVE_BY_CPU)
                return afz_live_cpu_of(frame, proc, &cpu) ? cpu : -1;
        if (sort == AFZ_LIVE_BY_NEED && (afz_sample_get_u64(proc, AFZ_PROC_NEED, &bytes) ||
                                         afz_sample_get_u64(proc, AFZ_PROC_RSS, &bytes)))
                return (double)bytes;
        return -1;
}

static void collect(const struct afz_frame *frame, struct afz_live_rows *rows)
{
        enum afz_live_sort sort = afz_live_sort_of(frame);
        size_t cursor = 0;
        const struct afz_sample *s;

        rows->count = 0;
        while (rows->count < MAX_ROWS &&
               (s = afz_window_next(frame->window, AFZ_KIND_PROC, &cursor)))
                rows->row[rows->count++] = (struct afz_live_row){.proc = s,
                                                                 .key = key_of(frame, sort, s),
                                                                 .parent = NONE,
                                                                 .child = NONE,
                                                                 .next = NONE};
}

/* The slot that holds a pid, or the free one where it belongs. */
static int *slot_of(struct afz_live_rows *rows, uint64_t pid)
{
        uint32_t at = (uint32_t)(pid * UINT64_C(0x9e3779b97f4a7c15) >> 40);
        while (rows->slot[at & rows->mask] != NONE &&
               rows->row[rows->slot[at & rows->mask]].proc->subject.id != pid)
                at++;
        return &rows->slot[at & rows->mask];
}

static void hash_pids(struct afz_live_rows *rows)
{
        uint32_t slots = 16;
        while (slots < 2 * (uint32_t)rows->count)
                slots *= 2;
        rows->mask = slots - 1;
        for (uint32_t i = 0; i < slots; i++)
                rows->slot[i] = NONE;
        for (int i = 0; i < rows->count; i++)
                *slot_of(rows, rows->row[i].proc->subject.id) = i;
}

static void link_children(struct afz_live_rows *rows)
{
        hash_pids(rows);
        /* From the end, as each child is put in front of its siblings. */
        for (int i = rows->count - 1; i >= 0; i--) {
                struct afz_live_row *row = &rows->row[i];
                int64_t ppid;
                if (!afz_sample_get(row->proc, AFZ_PROC_PPID, &ppid) || ppid <= 0)
                        continue;
                int place = *slot_of(rows, (uint64_t)ppid);
                if (place == NONE || place == i)
                        continue;
                row->parent = place;
                row->next = rows->row[place].child;
                rows->row[place].child = i;
        }
}

static int list_row(struct afz_live_rows *rows, int at, int n)
{
        struct afz_live_row *row = &rows->row[at];
        if (row->parent != NONE) {
                const struct afz_live_row *parent = &rows->row[row->parent];
                row->depth = parent->depth + 1;
                row->more = parent->more;
                if (row->next != NONE && row->depth < 32)
                        row->more |= UINT32_C(1) << row->depth;
        }
        rows->order[n] = at;
        return n + 1;
}

/* From a root down, parents before children. */
static int list_below(struct afz_live_rows *rows, int root, int n)
{
        int at = root;
        for (;;) {
                n = list_row(rows, at, n);
                if (rows->row[at].child != NONE) {
                        at = rows->row[at].child;
                        continue;
                }
                while (at != root && rows->row[at].next == NONE)
                        at = rows->row[at].parent;
                if (at == root)
                        return n;
                at = rows->row[at].next;
        }
}

/* Processes whose parents are not in the list are roots. A circle of parents, which a pid that is
 * used again between two readings can make, has no root and is left out. */
static void order_as_tree(struct afz_live_rows *rows)
{
        int n = 0;
        link_children(rows);
        for (int i = 0; i < rows->count; i++)
                if (rows->row[i].parent == NONE)
                        n = list_below(rows, i, n);
        rows->count = n;
}

static bool is_before(const struct afz_live_rows *rows, int a, int b)
{
        const struct afz_live_row *x = &rows->row[a], *y = &rows->row[b];
        if (x->key != y->key)
                return x->key > y->key;
        return x->proc->subject.id < y->proc->subject.id;
}

static void sift_down(struct afz_live_rows *rows, int at, int n)
{
        int *order = rows->order;
        for (int child; (child = 2 * at + 1) < n; at = child) {
                if (child + 1 < n && is_before(rows, order[child + 1], order[child]))
                        child++;
                if (!is_before(rows, order[child], order[at]))
                        return;
                int held = order[at];
                order[at] = order[child];
                order[child] = held;
        }
}

/* A heap of which only the rows that are wanted are taken: they end up at the back of order[]. Of
 * thousands of processes a screen shows fifty; and qsort_r() may allocate. */
static void order_by_key(struct afz_live_rows *rows, int wanted)
{
        int n = rows->count;
        for (int i = 0; i < n; i++)
                rows->order[i] = i;
        for (int i = n / 2; i >= 0; i--)
                sift_down(rows, i, n);
        for (int i = 0; i < wanted && n > 1; i++) {
                int first = rows->order[0];
                rows->order[0] = rows->order[--n];
                rows->order[n] = first;
                sift_down(rows, 0, n);
        }
}

int afz_live_order(const struct afz_frame *frame, int wanted)
{
        struct afz_live_rows *rows = frame->state->rows;
        if (!rows)
                return 0;
        collect(frame, rows);
        rows->backwards = afz_live_sort_of(frame) != AFZ_LIVE_BY_TREE;
        if (rows->backwards)
                order_by_key(rows, wanted);
        else
                order_as_tree(rows);
        return rows->count;
}

const struct afz_live_row *afz_live_row(const struct afz_frame *frame, int place)
{
        const struct afz_live_rows *rows = frame->state->rows;
        return &rows->row[rows->order[rows->backwards ? rows->count - 1 - place : place]];
}
