#ifndef AFZ_CHECKPOINT_H
#define AFZ_CHECKPOINT_H
/* One checkpoint request, by the best means there are:
 *
 *   agents   somebody on the control socket has said that it can save: all of those are asked, and
 *            nobody else. SAVED when one has saved and none is still at it.
 *   command  --checkpoint-cmd, run outside of the job: exit status 0 is SAVED, all else CANNOT.
 *   signal   --checkpoint-signal to CMD, sent by the caller. A signal has no answer: the request
 *            stays ASKED for the whole wait, and is CANNOT after it, because nobody has said that
 *            it was saved. With a command as well, the command's exit is the answer (it can wait
 *            for the file that the signal makes the job write).
 *
 * Every request ends after wait_ns at the latest, as CANNOT; the ladder may stop waiting sooner.
 *
 * The command is started by a small helper process that is forked by init, before the guard locks
 * its memory and raises its priority, and waits on a socket: a fork in the middle of an emergency
 * would have to find memory. It ends with the guard, and ends a command that still runs.
 *
 * After init nothing here allocates or blocks. Time is the caller's.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control.h"
#include "ladder.h"

struct afz_checkpoint_setup {
        struct afz_control *control; /* borrowed for life; NULL: none */
        int signal;                  /* 0: none */
        const char *command;         /* for /bin/sh -c; NULL: none; not needed after init */
        uint64_t wait_ns;
};

enum afz_checkpoint_means {
        AFZ_CHECKPOINT_NOBODY,
        AFZ_CHECKPOINT_AGENT,
        AFZ_CHECKPOINT_COMMAND,
        AFZ_CHECKPOINT_SIGNAL, /* the caller sends it; a command, if given, was started as well */
};

/* In place; its fields are checkpoint.c's own. */
struct afz_checkpoint {
        struct afz_checkpoint_setup setup;
        int helper_fd; /* -1: no helper */
        pid_t helper, job;
        enum afz_checkpoint_means means;
        bool commanded; /* the request's answer is the command's */
        uint32_t number;
        uint64_t asked_ns;
        enum afz_ack ack;
        char words[256];
};

/* Forks the helper when there is a command. A failure (-EAGAIN, -ENOMEM: it could not be made)
 * leaves a checkpoint that works without the command. */
int afz_checkpoint_init(struct afz_checkpoint *checkpoint,
                        const struct afz_checkpoint_setup *setup);
/* Ends the helper and what it runs; waits for it a fifth of a second at most. */
void afz_checkpoint_done(struct afz_checkpoint *checkpoint);

/* The job's root, for the command's environment (ANTIFREEZE_PID); again for each attempt: what was
 * asked of the one before is nobody's any more. */
void afz_checkpoint_job(struct afz_checkpoint *checkpoint, pid_t pid);

bool afz_checkpoint_can(const struct afz_checkpoint *checkpoint);

/* A new request; an older one is given up. */
enum afz_checkpoint_means afz_checkpoint_ask(struct afz_checkpoint *checkpoint, uint64_t now_ns);

/* How it stands: NONE before the first request. */
enum afz_ack afz_checkpoint_turn(struct afz_checkpoint *checkpoint, uint64_t now_ns);

/* For a caller that reaps all its children: one of them has ended. Others than the helper are
 * passed over. */
void afz_checkpoint_reaped(struct afz_checkpoint *checkpoint, pid_t pid);

/* What came of it, for people: "saved to /x/y.pt", "the checkpoint command failed (status 3)". ""
 * as long as nothing did. Printable. */
const char *afz_checkpoint_words(const struct afz_checkpoint *checkpoint);

#endif
