#ifndef AFZ_GLYPH_H
#define AFZ_GLYPH_H
/* Characters as a terminal's cells hold them. Names of processes, disks and mounts may hold
 * anything (escape sequences, half a UTF-8 sequence, emoji, text that runs from right to left);
 * what leaves here is printable, and its width is one that all terminals agree on.
 *
 * Pure: no locale and no tables of libc, so a view looks the same wherever it was built.
 */
#include <stdbool.h>
#include <stddef.h>

enum { AFZ_GLYPH_BYTES = 4 };

/* Takes one character off the front of [*text, end) and gives what to draw for it, filled up with
 * NULs. Returns its columns: 1, 2 (East Asian), or 0 for what has no width of its own (combining
 * marks, joiners, marks of direction), which is best left out. What is no character, or has a width
 * that terminals disagree about (emoji, private use, right-to-left scripts), becomes '?'.
 * *text must not be at end. */
int afz_glyph_take(const char **text, const char *end, char ret[AFZ_GLYPH_BYTES]);

/* Columns of a whole text. */
int afz_glyph_columns(const char *text);

/* What to write for a glyph where only ASCII can be shown. */
char afz_glyph_ascii(const char glyph[AFZ_GLYPH_BYTES]);

/* Every terminal moves its cursor by exactly one column for this glyph. For the others, the cursor
 * is placed anew behind them. */
bool afz_glyph_is_steady(const char glyph[AFZ_GLYPH_BYTES]);

#endif
