#ifndef AFZ_LINES_NOW_H
#define AFZ_LINES_NOW_H
/* Which lines of a job's program hold its memory just now, for the views: plain data, filled by who
 * can ask the run (src/cli/watch_lines.h). Estimates (docs/sampling.md). Names are anyone's. */
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

struct afz_lines_now {
        bool known;          /* else there is no probe in it, or it does not answer */
        uint64_t live_bytes; /* of all lines, told or not */
        uint64_t step;       /* training steps begun; 0: not known */
        uint32_t growth_s;   /* 0: not known yet */
        uint32_t processes;  /* in which the probe is */
        uint32_t rows;       /* largest first */
        char words[AFZ_LINES_NOW_WORDS_CAP]; /* on the probe itself */
        struct afz_line_now row[AFZ_LINES_NOW_ROWS];
};

#endif
