/*
 * The training run: load, forward, score, backward, update, and a line now and then on stdout.
 *
 * Each step allocates what its batch needs and frees it, as frameworks do, so a large batch shows
 * as a peak that comes and goes. Failures are told in one line on stderr.
 */
#ifndef AFZ_TRAINER_H
#define AFZ_TRAINER_H

#include <signal.h>

#include "options.h"

/*
 * Runs until the epochs or steps are done or *stop is not 0 (looked at after each step and while
 * waiting for data). Returns the exit status: 0, 1 after a failure, 128 + *stop.
 */
int afz_trainer_run(const struct afz_options *options, const volatile sig_atomic_t *stop);

#endif
