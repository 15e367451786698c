#ifndef AFZ_WAIT_KIND_H
#define AFZ_WAIT_KIND_H
/* What a thread that sleeps waits for, by the kernel's function that it sleeps in ("futex_do_wait",
 * as /proc/PID/wchan has it) or by a stack that holds one. Pure. */

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

#endif
