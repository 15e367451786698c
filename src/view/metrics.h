#ifndef AFZ_METRICS_H
#define AFZ_METRICS_H
/* Every metric there is, as a table for people: docs/metrics.md is made of it. */
#include "out.h"

void afz_metrics_table(struct afz_out *out);

#endif
