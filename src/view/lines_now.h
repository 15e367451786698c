#ifndef AFZ_LINES_NOW_H
#define AFZ_LINES_NOW_H
/* Which lines of a job's program hold its memory just now, and what it is for, for the views: plain
 * data, filled by who can ask the run (src/cli/watch_lines.h). Estimates (docs/sampling.md). Names
 * are anyone's. */
#include <stdbool.h>
#include <stdint.h>

enum { AFZ_LINES_NOW_ROWS = 16, AFZ_LINES_NOW_NAME_CAP = 96, AFZ_LINES_NOW_WORDS_CAP = 320 };

struct afz_line_now {
        char name[AFZ_LINES_NOW_NAME_CAP]; /* "train.py:33 in load()" */
        uint64_t live_bytes;               /* allocated there and not freed */
        int64_t growth_bytes;              /* over the last growth_s seconds */
        const char *memory;                /* "heap", "mapped", ...; a constant */
        uint32_t processes;                /* that hold some of it */
};

/* What memory is for, as frameworks tell it: "parameters", "activations", ... */
enum { AFZ_USES_NOW = 10 };
struct afz_use_now {
        const char *name; /* a constant */
        uint64_t bytes;
};

struct afz_lines_now {
        bool known;          /* else there is no probe in it, or it does not answer */
        uint64_t live_bytes; /* of all lines, told or not */
        uint64_t step;       /* training steps begun; 0: not known */
        uint32_t growth_s;   /* 0: not known yet */
        uint32_t processes;  /* in which the probe is */
        uint32_t rows;       /* largest first */
        uint32_t uses[2];    /* of the host, of GPU memory; 0: nobody tells */
        struct afz_use_now use[2][AFZ_USES_NOW];
        uint64_t gpu_peak_bytes;             /* the most in tensors; 0: not known */
        uint64_t batch, micro;               /* samples of a step, and at once; 0: not known */
        uint64_t ooms;                       /* errors for want of memory */
        char words[AFZ_LINES_NOW_WORDS_CAP]; /* on the probe itself */
        struct afz_line_now row[AFZ_LINES_NOW_ROWS];
};

#endif
