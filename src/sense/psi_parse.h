#ifndef AFZ_PSI_PARSE_H
#define AFZ_PSI_PARSE_H
/* Parser of PSI files (/proc/pressure/X, memory.pressure):
 *      some avg10=0.00 avg60=0.00 avg300=0.00 total=1234
 *      full avg10=0.00 avg60=0.00 avg300=0.00 total=1234
 * Kernels before 5.13 have no "full" line for cpu: then has_full is false. */
#include <stdbool.h>
#include <stdint.h>

#include "span.h"

struct afz_psi_line {
        uint64_t avg10_permyriad;
        uint64_t total_ns;
};

struct afz_psi {
        struct afz_psi_line some, full;
        bool has_full;
};

int afz_psi_parse(struct afz_span text, struct afz_psi *ret);

#endif
