#ifndef AFZ_SYMBOL_LINES_H
#define AFZ_SYMBOL_LINES_H
/* Lines of a file that has them, and what was inlined where: elfutils' work (libdw), loaded when it
 * is first needed and only where the build had its header.
 */
#include "symbols.h"

struct afz_symbol_lines;

/* Writes a function as it is written in its language. */
struct afz_symbol_namer {
        void (*call)(void *ctx, const char *name, char *ret, size_t cap);
        void *ctx;
};

/* Takes the descriptor over. NULL: there are none to be had. */
struct afz_symbol_lines *afz_symbol_lines_new(const char *path, int fd,
                                              const struct afz_symbol_namer *namer);
void afz_symbol_lines_free(struct afz_symbol_lines *lines); /* NULL is fine */

/* As afz_symbols_find(). Where the function is not known, ret[0] may still have a line: 0. */
size_t afz_symbol_lines_find(const struct afz_symbol_lines *lines, uint64_t address,
                             struct afz_symbol *ret, size_t cap);

#endif
