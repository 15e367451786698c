#ifndef AFZ_ROLE_H
#define AFZ_ROLE_H
/* What a process of a training job seems to be, guessed from its command line, its parent's and its
 * environment. Pure: texts in, role out. A guess is for words and for grouping. It decides on one
 * action only, and on a smaller one than without: which kernel below a server is ended alone.
 */
#include <stdint.h>

#include "span.h"

enum afz_role {
        AFZ_ROLE_OTHER,
        AFZ_ROLE_MAIN,     /* the root of the job, or the trainer below a shell or launcher */
        AFZ_ROLE_SHELL,    /* sh, bash, a wrapper script */
        AFZ_ROLE_LAUNCHER, /* torchrun, accelerate, mpirun, ... */
        AFZ_ROLE_RANK,     /* one of several ranks of a distributed job */
        AFZ_ROLE_WORKER,   /* a data-loading worker: forked or spawned by multiprocessing */
        AFZ_ROLE_TRACKER,  /* multiprocessing's resource tracker or fork server */
        AFZ_ROLE_SERVER,   /* Jupyter, an editor that runs notebooks: it starts kernels */
        AFZ_ROLE_KERNEL,   /* a notebook's kernel */
        AFZ_ROLE_COUNT
};

struct afz_role_clues {
        struct afz_span comm;    /* may hold anything, parentheses and newlines too */
        struct afz_span cmdline; /* arguments with a NUL behind each, as the kernel gives it */
        struct afz_span environ; /* the same form; empty when it may not be read */
        struct afz_span parent_cmdline; /* empty at the root */
        enum afz_role parent_role;
        int is_root; /* the process that was asked for */
};

struct afz_role_guess {
        enum afz_role role;
        int64_t rank;       /* RANK of the environment; -1 when there is none */
        int64_t local_rank; /* LOCAL_RANK; -1 when there is none */
};

struct afz_role_guess afz_role_guess(const struct afz_role_clues *clues);

/* "main", "loader worker", "launcher", ... */
const char *afz_role_name(enum afz_role role);

#endif
