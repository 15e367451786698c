#ifndef ANTIFREEZE_STEP_H
#define ANTIFREEZE_STEP_H
/* The step clock: a training loop in C or C++ calls this at the start of each step, so that
 * Antifreeze can tell what a step keeps from what was there before the first.
 *
 *      if (antifreeze_step)
 *              antifreeze_step();
 *
 * And, if it knows, for how long it has just waited for data. The symbols are weak: nothing has to
 * be linked, and without the probe they are NULL. Programs in Python have the same from the agent
 * (docs/agent.md). */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((weak)) void antifreeze_step(void);
__attribute__((weak)) void antifreeze_wait(uint64_t ns);

#ifdef __cplusplus
}
#endif
#endif
