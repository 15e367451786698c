#ifndef AFZ_WATCH_LINES_H
#define AFZ_WATCH_LINES_H
/* Asks a run which lines of its program hold the memory, while it is watched: once a second at
 * most, for a moment only. A run that does not answer is asked ever more seldom, and what it said
 * last is shown for a while; one that has no keeper is as a process that has none. */
#include <stdint.h>

#include "lines_now.h"

struct afz_watch_lines {
        char socket[128];  /* of the keeper; "": nobody can be asked */
        uint64_t next_ns;  /* CLOCK_MONOTONIC: not to be asked before */
        uint64_t heard_ns; /* of the last answer */
        unsigned silent;   /* times in a row without one */
        struct afz_lines_now now;
};

/* `control_socket` is the run's (afz_run_ref.socket); "": of none. */
void afz_watch_lines_init(struct afz_watch_lines *w, const char *control_socket);

/* Asks, if it is time. Takes 60 ms at most. */
void afz_watch_lines_look(struct afz_watch_lines *w, uint64_t now_ns);

#endif
