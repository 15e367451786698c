#ifndef AFZ_FRONT_SAY_H
#define AFZ_FRONT_SAY_H
/* How the front speaks: lines for people, or objects for programs, on stderr. */
#include "guard.h"
#include "verdict.h"

struct afz_front_style {
        bool quiet;            /* only what was done to the job */
        bool json;             /* our lines are JSON objects */
        uint64_t every_ns;     /* a line on how it stands, so often; 0: none */
        uint64_t end_after_ns; /* SIGTERM to CMD after this time; 0: never */
};

/* What the front itself has to say, also under --quiet. run: its ID; NULL: there is none yet. */
void afz_front_say(const struct afz_front_style *style, const char *run, const char *event,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A word of the guard's; `always`: also under --quiet. */
void afz_front_speak(const struct afz_front_style *style, const char *run,
                     const struct afz_word *word, bool always);

/* The verdict in at most five lines: what happened, the best evidence, what it led to, what to
 * change, where there is more (where `more` says so). One line when nothing was wrong, and under
 * --quiet. `word` is the guard's own, which says how it stood. */
void afz_front_tell(const struct afz_front_style *style, const char *run,
                    const struct afz_word *word, const struct afz_outcome *outcome, bool more);

#endif
