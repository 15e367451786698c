#ifndef AFZ_JOB_PROC_H
#define AFZ_JOB_PROC_H
/* One process of the job: its descriptors, texts and last figures. Used by job.c alone.
 *
 * Figures come at three paces. In every tick: stat, statm, io (cheap, and their descriptors stay
 * open, which also makes them immune to a pid that is used again: the kernel answers -ESRCH).
 * About once a second, spread over the ticks and more seldom where there are many processes:
 * status, open files, wait channel. Every few seconds: the states of single threads. PSS comes when
 * its gate allows.
 *
 * The command line and the environment lie in the process's own memory: to read them takes its map,
 * and brings pages back from swap. They are read at birth, again when the name changes, and in
 * between less and less often.
 */
#include <stdbool.h>
#include <stdint.h>

#include "env.h"
#include "proc_stat.h"
#include "pss_gate.h"
#include "role.h"
#include "sample.h"
#include "tree.h"

enum afz_proc_file { AFZ_PROC_STAT, AFZ_PROC_STATM, AFZ_PROC_IO, AFZ_PROC_FILES };

/* What is added up over the tree as counters. */
enum afz_proc_counter {
        AFZ_TALLY_CPU_NS,
        AFZ_TALLY_MINOR,
        AFZ_TALLY_MAJOR,
        AFZ_TALLY_READ,
        AFZ_TALLY_WRITTEN,
        AFZ_TALLY_READ_CALLS,
        AFZ_TALLY_WRITE_CALLS,
        AFZ_TALLIES
};

struct afz_proc {
        uint64_t pid;           /* 0: this slot is empty */
        int fd[AFZ_PROC_FILES]; /* -1: not kept open */
        uint64_t slow_next_ns, threads_next_ns, command_next_ns, command_step_ns;
        uint64_t tally[AFZ_TALLIES]; /* as last seen; what has grown since goes to the job's sum */
        /* Its memory was read in this tick, or it has none any more. False: it is missing from any
         * sum. */
        bool memory_known;
        struct afz_pss_record pss;
        uint64_t pss_births;       /* of the job at that reading: a fork divides the pages anew */
        int64_t held_at_pss_bytes; /* anonymous memory, in RAM and in swap, at that reading */
        uint64_t shared_at_pss_bytes; /* shared RSS then */
        /* The slow facts as a sample of their own, copied into each tick's. */
        struct afz_sample slow;
        struct afz_role_guess role;
        char comm[20], command[160], wait[40];
        uint16_t cmdline_len;
        char cmdline[256];
};

/* Takes a member into an empty slot; opens its files while keep_open, or not at all. */
void afz_proc_enter(struct afz_proc *proc, const struct afz_env *env,
                    const struct afz_member *member, bool keep_open, uint64_t now_ns);
void afz_proc_leave(struct afz_proc *proc);

/* Every tick: stat, statm, io into s. -ESRCH: it is gone. */
int afz_proc_read_fast(struct afz_proc *proc, const struct afz_env *env, struct afz_member *member,
                       struct afz_sample *s);

/* How often the slow facts are read in a tree of so many processes. */
uint64_t afz_proc_slow_ns(size_t processes);

/* The slow facts, where they are due, and again after every_ns. Not for a zombie: it has lost them,
 * and keeps its name and role here. parent may be NULL. */
void afz_proc_read_slow(struct afz_proc *proc, const struct afz_env *env,
                        const struct afz_proc *parent, bool is_root, uint64_t now_ns,
                        uint64_t every_ns);

/* The states of its threads, where they are due. */
void afz_proc_read_threads(struct afz_proc *proc, const struct afz_env *env, uint64_t now_ns);

/* Reads smaps_rollup now and keeps the figures; the gate was asked before. */
void afz_proc_read_pss(struct afz_proc *proc, const struct afz_env *env, struct afz_pss_gate *gate,
                       const struct afz_sample *fast);

/* Copies the slow facts and the texts into s, and sets what follows from all of them (need). */
void afz_proc_finish(struct afz_proc *proc, struct afz_sample *s, uint64_t now_ns);

#endif
