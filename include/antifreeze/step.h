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
 * (docs/agent.md).
 *
 * For an interpreter, which would spend more on the call than on all else, antifreeze_clock() gives
 * the address of the two numbers that these functions add to: steps, and nanoseconds of waiting.
 * They stay there as long as the process lives. NULL: there is nobody to tell, or not yet. The
 * child of a fork must ask again before it writes. It is also to be called between two steps some
 * times a second: then the probe looks at malloc, as antifreeze_step() does by itself.
 *
 * A program may also tell figures of itself, which go into the recording: antifreeze_told() finds
 * the number of a name ("batch_count", "parameters_bytes": docs/agent.md), or -1; telling costs a
 * few nanoseconds. UINT64_MAX: it is not known any more.
 *
 * Under --policy adapt large allocations that would take the job over its budget fail (ENOMEM)
 * instead of ending it, in threads that run Python. antifreeze_arm(1) asks for that in all threads
 * of the process, antifreeze_arm(-1) takes it back; antifreeze_room() is how much is left,
 * UINT64_MAX where nothing is refused. */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((weak)) void antifreeze_step(void);
__attribute__((weak)) void antifreeze_wait(uint64_t ns);
__attribute__((weak)) uint64_t *antifreeze_clock(void);

__attribute__((weak)) int antifreeze_told(const char *name);
__attribute__((weak)) void antifreeze_tell(int which, uint64_t value);

__attribute__((weak)) void antifreeze_arm(int by);
__attribute__((weak)) uint64_t antifreeze_room(void);

#ifdef __cplusplus
}
#endif
#endif
