#ifndef AFZ_LEAK_GROWTH_H
#define AFZ_LEAK_GROWTH_H
/* What a leak is made of: the growth of a job's need over a stretch, set beside all that is known
 * of where it went. For judge_leak.c and leak_kind.c. Pure; absent is not zero: where nothing is
 * known of a part, its flag says so.
 */
#include "flight.h"
#include "leak.h"
#include "role.h"
#include "site_top.h"

/* Of one role the processes that grew most, and of these the largest. */
struct afz_leak_who {
        double bytes, role_bytes; /* of the process, and of all with its role */
        unsigned in_role;
        enum afz_role role;
        const struct afz_track *track; /* NULL: none is known */
};

/* Loader workers begin with pages that they share with their parent. A page that one of them writes
 * to is copied: the job needs more, though no process maps more than before. */
struct afz_leak_copies {
        unsigned workers;    /* that live at the end; 0: none, or nothing is known of them */
        double mapped_bytes; /* by these, shared or not */
        double bytes;        /* the growth that no process's own mapping explains */
};

/* malloc's own account: what it holds beyond what the program uses. */
struct afz_leak_heap {
        bool known;
        double free_bytes[2]; /* at the beginning and at the end */
};

/* What the stacks of sites tell of a graph of gradients (leak_graph.c). */
struct afz_leak_graph {
        double node_bytes;   /* of growth: its own nodes */
        double tensor_bytes; /* results of operations that were recorded for the way back */
        unsigned tensors;    /* different ones of these */
};

struct afz_leak_growth {
        const struct afz_flight *flight;
        uint32_t from_ms, to_ms;
        double bytes;      /* of the valley floor */
        double need_bytes; /* where that began */
        double steps;      /* that were begun meanwhile; 0: no step clock */
        bool has_sites;
        struct afz_site_top sites;
        double live_bytes[2]; /* of all sites, at the beginning and at the end */
        double shared_bytes;  /* shared memory grew by so much; 0: not, or not known */
        struct afz_leak_who who;
        struct afz_leak_copies copies;
        struct afz_leak_heap heap;
        struct afz_leak_graph graph;
};

void afz_leak_growth_of(const struct afz_flight *flight, const struct afz_trend *trend,
                        struct afz_leak_growth *ret);

/* By how much what malloc holds and the program does not use grew; 0: not, or not known. */
double afz_leak_slack(const struct afz_leak_growth *growth);

/* Whether the line asked for memory a few times in all, by whatever stacks. What grows then are the
 * pages of large blocks as they are written to: a table, a model, one large step, on a machine that
 * is slow. */
bool afz_leak_fills(const struct afz_leak_growth *growth, const struct afz_site_row *row);

/* What a process of the job needs over time; NULL: not known. */
const struct afz_column *afz_leak_need_of(const struct afz_track *process);
enum afz_role afz_leak_role_of(const struct afz_track *process);

/* How much a column rose over what was looked at; 0 where it is not known. */
double afz_leak_rose(const struct afz_column *column, const struct afz_trend *trend);

/* sites: what grew, a row at least. */
void afz_leak_graph_of(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                       const struct afz_site_top *sites, struct afz_leak_graph *ret);

#endif
