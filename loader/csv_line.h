#ifndef AFZ_CSV_LINE_H
#define AFZ_CSV_LINE_H
/* A line of numbers: pure functions on text. */
#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct afz_cell {
        const char *text; /* without spaces and quotes around it */
        size_t length;
};

/* The next cell; *at moves behind its separator. False behind the last. */
bool afz_csv_cell(const char **at, const char *end, char separator, struct afz_cell *ret);

/* A number as every program writes it, nan and inf among them; nothing at all is a nan. point: a
 * locale with a decimal point, whatever the program's is. -EINVAL: something else. */
int afz_csv_number(const struct afz_cell *cell, locale_t point, double *ret);

/* The next line that is not empty, without its end; false if there is none. *at moves behind it. */
bool afz_csv_line(const char **at, const char *end, const char **ret, const char **ret_end);

/* Whichever of , ; tab comes most often in a line. */
char afz_csv_separator(const char *line, const char *end);

#endif
