#ifndef AFZ_AIDE_H
#define AFZ_AIDE_H
/* The aide of tier none: a small process of ours that does what could make the guard wait.
 *
 * Reading PSS waits for the process's memory map, freeing a dead process's memory and paging out
 * take as long as there is memory. The guard asks through a shared page, goes on, and finds the
 * answer there at a later tick; one question at a time. The aide is also tier none's deadman: the
 * guard notes in the page whom it stops, and if it dies the aide lets exactly those go on.
 *
 * It ends with the guard. On a fixture there is no process: questions are answered at once.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "env.h"
#include "tree_need.h"

enum afz_aide_task {
        AFZ_AIDE_PSS,     /* read each one's PSS */
        AFZ_AIDE_RELEASE, /* free the memory of processes that were killed */
        AFZ_AIDE_SQUEEZE, /* push so many bytes of them out to swap */
};

/* One process of a question. pid, start_ticks and place are the guard's, the rest is the answer. */
struct afz_aide_row {
        uint64_t pid, start_ticks;
        uint32_t place;
        int32_t result;           /* 0 or -errno */
        uint64_t cost_ns, faults; /* minor, so far */
        bool inherits;            /* a fork that has run no program */
        struct afz_need_pss pss;
};

struct afz_aide;

/* max: processes in a question, and that can be stopped at a time. */
int afz_aide_start(const struct afz_env *env, size_t max, struct afz_aide **ret);
void afz_aide_stop(struct afz_aide *aide);       /* NULL is fine; lets those that are noted go on */
pid_t afz_aide_pid(const struct afz_aide *aide); /* 0: there is none */

/* True when the last question was answered: the rows are the guard's again. */
bool afz_aide_idle(const struct afz_aide *aide);
struct afz_aide_row *afz_aide_rows(struct afz_aide *aide);
/* -EBUSY: the last question is not answered yet. */
int afz_aide_ask(struct afz_aide *aide, enum afz_aide_task task, size_t rows, uint64_t bytes);

/* Whom the guard is about to stop, before it does; all of them go on, after they do. */
void afz_aide_note_stop(struct afz_aide *aide, uint64_t pid, uint64_t start_ticks);
void afz_aide_forget_stops(struct afz_aide *aide);

#endif
