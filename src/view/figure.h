#ifndef AFZ_FIGURE_H
#define AFZ_FIGURE_H
/* Numbers as the views show them: few characters, always the same width of unit, and a dash where
 * nothing is known. A size has tenths up to 99.9 (quantity.h rounds "15.5G" to "16G", which hides
 * the last gigabyte before a line). All of them return buf, and none uses stdio: a frame has
 * hundreds of them.
 */
#include <stdbool.h>
#include <stdint.h>

enum { AFZ_FIGURE_CAP = 24 };

#define AFZ_ABSENT "–"

/* "0B", "512K", "9.8G", "15.5G", "128G": at most five characters. */
char *afz_figure_size(char buf[AFZ_FIGURE_CAP], uint64_t bytes);

/* "210M/s" */
char *afz_figure_rate(char buf[AFZ_FIGURE_CAP], double bytes_per_s);

/* "97 %"; tenths below 1 ("0.3 %") so that little is not nothing; "0 %" is zero itself. */
char *afz_figure_percent(char buf[AFZ_FIGURE_CAP], double fraction);

char *afz_figure_count(char buf[AFZ_FIGURE_CAP], uint64_t count);

/* One decimal: "12.1". */
char *afz_figure_tenths(char buf[AFZ_FIGURE_CAP], double value);

#endif
