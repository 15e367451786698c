#ifndef ANTIFREEZE_STEP_H
#define ANTIFREEZE_STEP_H
/* The step clock: a training loop in C or C++ calls this at the start of each step, so that
 * Antifreeze can tell what a step keeps from what was there before the first.
 *
 *      if (antifreeze_step)
 *              antifreeze_step();
 *
 * The symbol is weak: nothing has to be linked, and without the probe it is NULL. */
#ifdef __cplusplus
extern "C" {
#endif

__attribute__((weak)) void antifreeze_step(void);

#ifdef __cplusplus
}
#endif
#endif
