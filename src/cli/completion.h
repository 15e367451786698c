#ifndef AFZ_COMPLETION_H
#define AFZ_COMPLETION_H
/* Completion scripts for shells, made from the rows: commands, options, choices, processes, runs,
 * directories. A script holds everything it needs and does not start the program when a key is
 * pressed.
 */
#include <stdio.h>

#include "command.h"

/* The shells there are scripts for, ending with NULL; an AFZ_OPTION_CHOICE or an operand can point
 * here. */
extern const char *const afz_completion_shells[];

/* Writes the script for that shell. 0; -ENOENT: no such shell; -EIO: out took less than all. */
int afz_completion_write(FILE *out, const struct afz_program *program, const char *shell);

#endif
