#ifndef AFZ_VERSION_H
#define AFZ_VERSION_H
/* What --version says: the version, and a line for each part, with where it lies or that it was not
 * found, and what was built in. */
#include <stdio.h>

void afz_version_print(FILE *out);

#endif
