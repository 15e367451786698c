#ifndef AFZ_OPERAND_RUN_H
#define AFZ_OPERAND_RUN_H
/* A run given as an operand: an ID, the beginning or the last four letters of one, a folder, a pid;
 * NULL: the newest. */
#include "run.h"

/* 0, or the exit status after one line on stderr. */
int afz_operand_run(const char *text, struct afz_run_ref *ret);

/* Says that the files of a run cannot be read, for the reason -error. Returns the exit status. */
int afz_fail_unreadable(const struct afz_run_ref *ref, int error);

#endif
