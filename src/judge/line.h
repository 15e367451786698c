#ifndef AFZ_LINE_H
#define AFZ_LINE_H
/* The line that must not be crossed: how much of the machine's RAM may be in use (total less
 * available) before everything on it begins to suffer. Pure. */
#include <stdbool.h>
#include <stdint.h>

#include "window.h"

/* False while the machine's memory is not known. */
bool afz_line(const struct afz_window *window, uint64_t *ret_bytes);

#endif
