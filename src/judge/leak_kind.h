#ifndef AFZ_LEAK_KIND_H
#define AFZ_LEAK_KIND_H
/* Which kind of leak it is, where that can be told: a table of kinds, each with its test, its
 * evidence, its words and what to change. Pure; docs/verdicts.md has the reasons.
 */
#include "leak_growth.h"
#include "leak_line.h"
#include "verdict.h"

struct afz_leak_seen {
        struct afz_leak_growth growth;
        bool has_line;
        struct afz_leak_line line;
};

struct afz_leak_kind {
        const char *id; /* "leak:retained-history"; "leak" where the kind is not known */
        double sure;    /* the kind is known no better than this */
        bool (*is)(const struct afz_leak_seen *seen);
        void (*note)(const struct afz_leak_seen *seen, struct afz_verdict *v); /* or NULL */
        /* The line to look at, where that is not the one that grew, and the words before its name
         * in the summary and in the evidence (there behind its bytes); or NULL. */
        bool (*place)(const struct afz_leak_growth *growth, struct afz_site_row *ret);
        const char *place_words, *place_note;
        bool no_data;      /* data that are loaded or built up do not look so */
        const char *words; /* of the summary, behind the figures; the line comes after it */
        const char *fix;
};

void afz_leak_see(const struct afz_flight *flight, const struct afz_trend *trend,
                  struct afz_leak_seen *ret);

/* Workers copy what they shared: more than half of it. */
bool afz_leak_is_copied(const struct afz_leak_seen *seen);

/* Never NULL: the last row is the leak of which no more is known. */
const struct afz_leak_kind *afz_leak_kind_of(const struct afz_leak_seen *seen);

/* The rows of the table, by number; NULL behind the last. */
const struct afz_leak_kind *afz_leak_kind_at(unsigned i);

#endif
