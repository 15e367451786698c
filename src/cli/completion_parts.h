#ifndef AFZ_COMPLETION_PARTS_H
#define AFZ_COMPLETION_PARTS_H
/* What the three completion writers share; not for others. */
#include <stdio.h>

#include "command.h"

/* One writer a shell; errors are looked for once, by the caller. */
void afz_completion_bash(FILE *out, const struct afz_program *program);
void afz_completion_zsh(FILE *out, const struct afz_program *program);
void afz_completion_fish(FILE *out, const struct afz_program *program);

/* Writes a fixed part of a script, with every ^ replaced by the program's name. */
void afz_completion_put_script(FILE *out, const struct afz_program *program, const char *script);

/* The first sentence of a help text without its full stop: what fits beside a word on offer. */
size_t afz_completion_brief(const char *help);

/* Writes text with a backslash before each of the characters in special. */
void afz_completion_put_escaped(FILE *out, const char *text, size_t len, const char *special);

/* A bit of enum afz_complete and its word in the scripts. Ends with {0}. */
struct afz_completion_kind {
        unsigned bit;
        const char *word;
};
extern const struct afz_completion_kind afz_completion_kinds[];

#endif
