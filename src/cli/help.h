#ifndef AFZ_HELP_H
#define AFZ_HELP_H
/* Help text, printed from the rows.
 *
 * Lines are wrapped to width columns, which the caller finds (a terminal's, or AFZ_HELP_WIDTH);
 * widths are kept between AFZ_HELP_WIDTH_MIN and AFZ_HELP_WIDTH_MAX, since text narrower or wider
 * than that is hard to read. A word that is longer than a line stands alone and whole. Columns are
 * counted as UTF-8 code points. Hidden rows are left out.
 */
#include <stdio.h>

#include "command.h"

enum {
        AFZ_HELP_WIDTH = 80, /* where there is no terminal */
        AFZ_HELP_WIDTH_MIN = 40,
        AFZ_HELP_WIDTH_MAX = 100,
};

/* `antifreeze --help`: usage, commands with their summaries, global options. 0, or -EIO if out took
 * less than all. */
int afz_help_program(FILE *out, const struct afz_program *program, int width);

/* `antifreeze CMD --help`: usage, description, options, examples. 0 or -EIO. */
int afz_help_command(FILE *out, const struct afz_program *program,
                     const struct afz_command *command, int width);

#endif
