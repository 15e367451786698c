#ifndef AFZ_MANPAGE_H
#define AFZ_MANPAGE_H
/* The manual page of the whole program, in man(7), made from the rows. It is meant to be clean
 * under `mandoc -Tlint` and to read well in both mandoc and groff. Every text is escaped, so that
 * no row can become a macro.
 */
#include <stdio.h>

#include "command.h"

/* Writes NAME(1). 0, or -EIO if out took less than all. */
int afz_manpage_write(FILE *out, const struct afz_program *program);

#endif
