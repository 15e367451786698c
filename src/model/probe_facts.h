#ifndef AFZ_PROBE_FACTS_H
#define AFZ_PROBE_FACTS_H
/* What a trial of the probe showed: plain data, from who tries it (engine/probe_trial.h) to who
 * tells of it (doctor). Errors are -errno; 0 is well.
 */
#include <stdbool.h>
#include <stddef.h>

enum { AFZ_TRIED_PYTHONS = 6 };

struct afz_tried_python {
        char path[160];   /* as it was found in PATH */
        char version[64]; /* "CPython 3.11", as the probe tells; "": it told nothing */
        char why[192];    /* what the probe does not see there, in its words */
        bool started;     /* it ran; false: with the probe it does not start, without it does */
        bool probed;      /* the probe was in it, and saw what it allocates */
        int stack_err;    /* of reading its stack from outside */
};

struct afz_probe_facts {
        bool found;
        char library[256];

        bool tried;    /* the rest was looked at */
        int err;       /* that kept us from trying at all */
        bool started;  /* a small program could be started, */
        bool asked;    /* had the library in it and asked for a book, */
        bool seen;     /* and what it allocates was in that */
        char why[192]; /* what the loader or the probe said */

        int memory_err; /* of reading a child's memory; -EPERM, -ENOSYS: a filter forbids it */
        int libdw_err;  /* -ENOTSUP: it is not in this build, or not on this machine */

        size_t pythons;
        struct afz_tried_python python[AFZ_TRIED_PYTHONS];
};

#endif
