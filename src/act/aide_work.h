#ifndef AFZ_AIDE_WORK_H
#define AFZ_AIDE_WORK_H
/* What the aide does, as plain functions that may take their time. Used by aide.c alone.
 */
#include "aide.h"

void afz_aide_read_pss(const struct afz_env *env, struct afz_aide_row *row);
void afz_aide_release(const struct afz_env *env, struct afz_aide_row *row);

/* Pages out up to so many bytes of its own anonymous memory; returns how many were asked for. */
uint64_t afz_aide_squeeze(const struct afz_env *env, struct afz_aide_row *row, uint64_t bytes);

#endif
