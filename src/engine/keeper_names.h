#ifndef AFZ_KEEPER_NAMES_H
#define AFZ_KEEPER_NAMES_H
/* Words for a site: the line of the user's own code, and the whole stack behind it. */
#include "keeper_sites.h"

struct afz_symbols;

enum { AFZ_SITE_STACK_CAP = 4096 }; /* of the text of a stack */

/* Sets name, where and function, and writes the stack ("train.py:33 in load()" a line, innermost
 * first) into `stack`. Symbols NULL: native code is told by module and address. */
void afz_site_set_name(const struct afz_sites *sites, struct afz_site *site,
                       struct afz_symbols *symbols, char stack[AFZ_SITE_STACK_CAP]);

/* The number of the line that a stack belongs to: of the user's own, or of a library that nobody of
 * the user's called. 0: it has no Python frame, and its names would have to be looked up first. */
uint32_t afz_site_find_line(struct afz_sites *sites, const struct afz_site *site);

#endif
