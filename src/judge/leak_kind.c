#include "leak_kind.h"

#include "count_of.h"
#include "judge_words.h"

static const struct {
        double most;       /* of what grew: what a kind must explain of it */
        double seen;       /* of the growth of lines: what must be of one memory, or in a graph */
        double node_bytes; /* growth of a graph's own nodes that is no chance of sampling */
        double node_share; /* or of the growth of lines */
        unsigned tensors;  /* so many results of operations that are kept show a graph, too */
        unsigned parts;    /* of AFZ_SITE_PARTS: in so many a line must rise to be of every step */
        double age;        /* of the time looked at: what survives is at least so old */
        double shared;     /* of what grew, holes in the heap and all: what shared memory must be */
        double flat;       /* of what grew: what the program uses may rise by */
        double holes;      /* of what grew: as much that lies unused in the heap is told */
        double seen_level; /* of the need at the start: what sites must see, to be believed */
} rule = {
        .most = 0.5,
        .seen = 0.5,
        .node_bytes = 3 << 20, /* three samples and more of the usual mean */
        .node_share = 0.3,
        .tensors = 2, /* a history keeps what the program names; a graph also what lies between */
        .parts = 7,   /* one may be lost to a look that came late */
        .age = 0.15,  /* evenly kept: the half; the rest of a burst: next to nothing */
        .shared = 0.35,
        .flat = 0.35,
        .holes = 0.2,
        .seen_level = 0.3,
};

/* ---- tests ---- */

static bool is_pinned(const struct afz_leak_seen *s)
{
        const struct afz_site_top *sites = &s->growth.sites;
        return s->growth.has_sites &&
               sites->memory_bytes[AFZ_MEMORY_PINNED] > rule.seen * sites->seen_bytes;
}

/* Of what is in use: what lies free between blocks comes on top, as tensors are made in the heap
 * before they are moved. */
static bool is_shared(const struct afz_leak_seen *s)
{
        const struct afz_leak_growth *g = &s->growth;
        double used = g->bytes - afz_leak_slack(g);
        return g->shared_bytes > rule.most * used && g->shared_bytes > rule.shared * g->bytes;
}

/* Growth that no process maps, workers that share enough to copy, and no line that holds it. */
bool afz_leak_is_copied(const struct afz_leak_seen *s)
{
        const struct afz_leak_growth *g = &s->growth;
        bool by_lines = s->has_line && s->line.bytes > rule.most * g->bytes;
        return g->copies.workers > 0 && g->copies.bytes > rule.most * g->bytes &&
               g->copies.mapped_bytes > g->copies.bytes && !by_lines;
}

static bool is_retained_graph(const struct afz_leak_seen *s)
{
        const struct afz_leak_graph *graph = &s->growth.graph;
        double all = s->growth.sites.seen_bytes;
        if (!s->has_line)
                return false;
        if (graph->node_bytes >= rule.node_share * all)
                return true;
        return graph->node_bytes + graph->tensor_bytes > rule.seen * all &&
               (graph->node_bytes >= rule.node_bytes || graph->tensors >= rule.tensors);
}

/* A line of Python that runs all the while, and of which some is kept each time. */
static bool is_retained_history(const struct afz_leak_seen *s)
{
        const struct afz_site_row *row = s->line.row;
        double time_ms = (double)(s->growth.to_ms - s->growth.from_ms);
        return s->has_line && s->line.is_python && (row->parts >= rule.parts || s->line.by_pool) &&
               (row->age_ms <= 0 || row->age_ms > rule.age * time_ms);
}

/* The same of tensors that were made while a graph was recorded: whether it is kept with them, the
 * stacks do not show. */
static bool is_retained_tensor(const struct afz_leak_seen *s)
{
        return is_retained_history(s) &&
               s->growth.graph.tensor_bytes > rule.seen * s->growth.sites.seen_bytes;
}

/* The program uses no more than before, as far as lines are seen. */
static bool is_flat(const struct afz_leak_growth *g)
{
        return g->has_sites && g->live_bytes[1] - g->live_bytes[0] < rule.flat * g->bytes;
}

static bool is_fragmented(const struct afz_leak_seen *s)
{
        const struct afz_leak_heap *heap = &s->growth.heap;
        return heap->known &&
               heap->free_bytes[1] - heap->free_bytes[0] > rule.most * s->growth.bytes &&
               (!s->growth.has_sites || is_flat(&s->growth));
}

/* malloc's account does not show it, or there is none: an allocator of its own, above malloc or
 * beside it. Only where lines are seen of what it had before: else it is just not seen. */
static bool seems_fragmented(const struct afz_leak_seen *s)
{
        const struct afz_leak_growth *g = &s->growth;
        return is_flat(g) && g->need_bytes > 0 &&
               g->live_bytes[0] > rule.seen_level * g->need_bytes;
}

static bool is_of_workers(const struct afz_leak_seen *s)
{
        return s->growth.who.track && s->growth.who.role == AFZ_ROLE_WORKER;
}

static bool is_any(const struct afz_leak_seen *s)
{
        (void)s;
        return true;
}

/* ---- evidence ---- */

static void note_shared(const struct afz_leak_seen *s, struct afz_verdict *v)
{
        double slack = afz_leak_slack(&s->growth);
        afz_verdict_note(v, "%s of what grew is shared memory (/dev/shm)",
                         SIZE(s->growth.shared_bytes));
        if (slack > rule.holes * s->growth.bytes)
                afz_verdict_note(v,
                                 "%s more lies unused in the heap, between blocks that stay "
                                 "(mallinfo2)",
                                 SIZE(slack));
}

static void note_pinned(const struct afz_leak_seen *s, struct afz_verdict *v)
{
        afz_verdict_note(v,
                         "%s of what grew is pinned for the GPU: it can be neither swapped nor "
                         "moved",
                         SIZE(s->growth.sites.memory_bytes[AFZ_MEMORY_PINNED]));
}

static void note_copies(const struct afz_leak_seen *s, struct afz_verdict *v)
{
        const struct afz_leak_copies *copies = &s->growth.copies;
        bool one = copies->workers == 1;
        afz_verdict_note(v,
                         "%s of it are copies: no process maps more than before, but pages that %u "
                         "loader worker%s shared with %s parent are %s own now",
                         SIZE(copies->bytes), copies->workers, one ? "" : "s",
                         one ? "its" : "their", one ? "its" : "their");
}

static void note_graph(const struct afz_leak_seen *s, struct afz_verdict *v)
{
        const struct afz_leak_graph *graph = &s->growth.graph;
        if (graph->node_bytes > 0)
                afz_verdict_note(v,
                                 "what is kept belongs to graphs of gradients: %s in their nodes, "
                                 "%s in tensors that were made while a graph was recorded",
                                 SIZE(graph->node_bytes), SIZE(graph->tensor_bytes));
        else
                afz_verdict_note(v,
                                 "%s of it are results of %u operations that were recorded for the "
                                 "way back: a graph of gradients keeps them",
                                 SIZE(graph->tensor_bytes), graph->tensors);
}

static void note_heap(const struct afz_leak_seen *s, struct afz_verdict *v)
{
        const struct afz_leak_growth *g = &s->growth;
        if (g->heap.known)
                afz_verdict_note(v,
                                 "what malloc holds and the program does not use went from %s to "
                                 "%s (mallinfo2)",
                                 SIZE(g->heap.free_bytes[0]), SIZE(g->heap.free_bytes[1]));
        if (g->has_sites)
                afz_verdict_note(v, "what the program holds went from %s to %s meanwhile",
                                 SIZE(g->live_bytes[0]), SIZE(g->live_bytes[1]));
}

/* ---- the table ---- */

/* The first that holds is it: what is told by the kernel before what is told by lines, and the
 * narrower before the wider. */
static const struct afz_leak_kind kinds[] = {
        {.id = "leak:pinned",
         .sure = 0.9,
         .is = is_pinned,
         .note = note_pinned,
         .words = ", pinned for the GPU",
         .fix = "pinned memory is kept until its tensor is gone: pin batches, not the data set, "
                "drop them after they are copied (.to(device, non_blocking=True)), and do not "
                "keep what a loader with pin_memory=True gave you"},
        {.id = "leak:shm",
         .sure = 0.9,
         .is = is_shared,
         .note = note_shared,
         .words = ", in shared memory",
         .fix = "what is put in shared memory stays until the last one lets go: keep a copy "
                "(.clone()) of what loader workers hand over and drop the batch; of your own "
                "shared memory, call close() and unlink()"},
        {.id = "leak:worker-copy",
         .sure = 0.85,
         .is = afz_leak_is_copied,
         .no_data = true,
         .note = note_copies,
         .place = afz_leak_shared_line,
         .place_words = ", allocated at",
         .place_note = "of what they shared was there before they began, allocated at",
         .words = ", as the workers copy what they shared",
         .fix = "each look at a Python object counts a reference in it, and so copies its page in "
                "every worker: let the data set hold NumPy arrays or tensors, not lists or dicts "
                "of Python objects, or use fewer workers"},
        {.id = "leak:retained-graph",
         .sure = 0.8,
         .is = is_retained_graph,
         .note = note_graph,
         .words = ", kept all the while with its graph",
         .fix = "something keeps a loss, an output or a tape together with its graph: store "
                "loss.item() "
                "(Keras: float(loss)), x.detach() of what you keep, add up total += loss.item(), "
                "and "
                "evaluate under torch.no_grad()"},
        {.id = "leak:retained-history",
         .sure = 0.8, /* a graph may be behind it */
         .is = is_retained_tensor,
         .words = ", kept all the while",
         .fix = "the tensors that this line, or one beside it, makes are kept by something that "
                "nothing empties: keep the last few only, or numbers (loss.item(), in Keras "
                "float(loss)); of what you "
                "keep in torch x.detach(), or its graph is kept, too"},
        {.id = "leak:retained-history",
         .sure = 0.9,
         .is = is_retained_history,
         .words = ", kept all the while",
         .fix = "what this line makes is kept by a list, a dict, a cache or an attribute that "
                "nothing empties: keep the last few only (deque(maxlen=...), lru_cache(maxsize="
                "...)), keep numbers instead of arrays, or write it to disk"},
        {.id = "leak:fragmentation",
         .sure = 0.85,
         .is = is_fragmented,
         .no_data = true,
         .note = note_heap,
         .words = ", most of it unused: its heap is in pieces",
         .place = afz_leak_pin_line,
         .place_words = "; what holds it is kept at",
         .place_note = "in small blocks stays for good and lies between, allocated at",
         .fix = "run it with MALLOC_MMAP_THRESHOLD_=65536 in the environment (each larger block "
                "then goes back by itself), call malloc_trim(0) now and then, or preload jemalloc; "
                "and keep less of what is small: copies of it in one array, or numbers"},
        {.id = "leak:fragmentation",
         .sure = 0.55,
         .is = seems_fragmented,
         .note = note_heap,
         .words = ", though the program seems to use no more of it",
         .place = afz_leak_pin_line,
         .place_words = "; what may hold it is kept at",
         .place_note = "in small blocks stays for good and may lie between, allocated at",
         .fix = "its allocator may hold what lies between objects in use: make large things once "
                "and use them again, try MALLOC_ARENA_MAX=2, call malloc_trim(0) now and then, or "
                "do such work in a process that ends"},
        {.id = "leak",
         .sure = 0.9,
         .is = is_of_workers,
         .words = "",
         .fix = "the loader workers grow: let the data set hold NumPy arrays, not lists of Python "
                "objects (each look at one copies its page), and cache nothing in __getitem__; "
                "persistent_workers=False starts them anew each epoch"},
        {.id = "leak",
         .sure = 0.9,
         .is = is_any,
         .words = "",
         .fix = "look for what every step adds to and nothing empties: a list that keeps tensors "
                "(store loss.item(), not loss; .detach() what you keep), a cache without a limit, "
                "a history of outputs"},
};

const struct afz_leak_kind *afz_leak_kind_of(const struct afz_leak_seen *seen)
{
        const struct afz_leak_kind *kind = kinds;
        while (!kind->is(seen))
                kind++;
        return kind;
}

const struct afz_leak_kind *afz_leak_kind_at(unsigned i)
{
        return i < AFZ_COUNT_OF(kinds) ? &kinds[i] : NULL;
}

void afz_leak_see(const struct afz_flight *flight, const struct afz_trend *trend,
                  struct afz_leak_seen *ret)
{
        *ret = (struct afz_leak_seen){0};
        afz_leak_growth_of(flight, trend, &ret->growth);
        ret->has_line = afz_leak_line_of(&ret->growth, &ret->line);
}
