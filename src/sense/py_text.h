#ifndef AFZ_PY_TEXT_H
#define AFZ_PY_TEXT_H
/* A str of another memory as text that may be shown: UTF-8, with '?' for what is no character or
 * would speak to a terminal (controls, lone surrogates, marks that turn the direction of writing).
 */
#include <stddef.h>
#include <stdint.h>

#include "py_layout.h"
#include "py_memory.h"

/* What to keep when it is too long: the start of a name, the end of a path. What is left out shows
 * as "...". */
enum afz_py_keep { AFZ_PY_KEEP_START, AFZ_PY_KEEP_END };

/* At most cap - 1 bytes and a NUL; cap at least 8. Whatever length the str claims, no more is read
 * than fits. -EBADMSG: not a compact str, or
 * one of over 65536 characters. */
int afz_py_text(const struct afz_py_memory *m, const struct afz_py_layout *l, uint64_t str,
                enum afz_py_keep keep, char *ret, size_t cap);

#endif
