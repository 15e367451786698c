#ifndef AFZ_WAIT_KIND_H
#define AFZ_WAIT_KIND_H
/* What a thread that sleeps waits for, by the kernel's function that it sleeps in ("futex_do_wait",
 * as /proc/PID/wchan has it), or by the first line of a stack, which says more ("do_poll of a
 * socket with a deadline, slept 120 times": sense/thread_wait.h). Pure. */
#include <stdbool.h>

enum afz_wait {
        AFZ_WAIT_UNKNOWN,
        AFZ_WAIT_LOCK,  /* something that only the same job can give: a lock, a semaphore */
        AFZ_WAIT_PIPE,  /* whoever has the other end of a pipe or a local socket */
        AFZ_WAIT_CHILD, /* the end of a child */
        AFZ_WAIT_ANY,   /* one of several things, perhaps with a deadline */
        AFZ_WAIT_OUT,   /* a clock, a person, the network, a debugger: nobody's fault here */
};

/* *ret_words: "a lock", "the other end of a pipe", ...: what stands behind "waits for". */
enum afz_wait afz_wait_of(const char *text, const char **ret_words);

/* Whether only somebody of the same job can end it. */
static inline bool afz_wait_is_kin(enum afz_wait wait)
{
        return wait == AFZ_WAIT_LOCK || wait == AFZ_WAIT_PIPE || wait == AFZ_WAIT_CHILD;
}

/* Whether a clock wakes it in any case. */
bool afz_wait_is_timed(const char *text);
/* Whether one may, and who looked could not tell. */
bool afz_wait_is_unclear(const char *text);

#endif
