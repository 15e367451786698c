#ifndef AFZ_TALK_H
#define AFZ_TALK_H
/* How a copy stands, in words: a bar that stays in its place on a terminal, else a line now and
 * then. */
#include <stdbool.h>
#include <stdint.h>

#include "convert.h"

struct afz_talk {
        bool is_terminal, is_quiet;
        uint64_t began_ns, said_ns; /* 0: not yet */
        bool is_shown;              /* a bar, which has to go before anything else is said */
};

struct afz_talk afz_talk_new(bool is_quiet);

/* An afz_show(). */
void afz_talk_show(const struct afz_outcome *outcome, void *talk);
/* The bar away. */
void afz_talk_clear(struct afz_talk *talk);

/* "[#####     ] 42 %, 3.1G of 7.4G, 210M/s, 21 s left", as many columns as there are; columns 0:
 * without the bar. spent_ns: on what was not there before. Returns ret. */
enum { AFZ_TALK_CAP = 256 };
char *afz_talk_line(const struct afz_outcome *outcome, uint64_t spent_ns, int columns,
                    char ret[AFZ_TALK_CAP]);

#endif
