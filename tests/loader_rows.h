#ifndef AFZ_LOADER_ROWS_H
#define AFZ_LOADER_ROWS_H
/* The rows that several tests go through. Included behind cmocka.h. */
#include "loader_fixture.h"

enum { SAMPLES = 20011, WIDTH = 16 }; /* of 128 bytes: 2.5 MB */

static inline int make_rows(void **state)
{
        fixture_make(state);
        write_rows(fixture_path, SAMPLES, WIDTH);
        return 0;
}

#endif
