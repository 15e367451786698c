#ifndef AFZ_PROBE_PROGRAM_H
#define AFZ_PROBE_PROGRAM_H
/* What the parts of the program share. */
#include <stdio.h>

#define NOINLINE __attribute__((noinline))
#define CHECK(x)                                                                                   \
        do {                                                                                       \
                if (!(x)) {                                                                        \
                        fprintf(stderr, "line %d: %s\n", __LINE__, #x);                            \
                        return 1;                                                                  \
                }                                                                                  \
        } while (0)

void *keep(void *at);

/* program_stacks.c: stacks that are none of libc's. 0: all was as it should be. */
int coroutines(void);
int coroutine_threads(void);
int signals(void);
int deep(void);
int wild(void);

/* program_late.c: programs whose book comes late. The same. */
int late(void);
int late_steps(void);
int late_closed(void);
int late_children(void);
int late_threads(void);
int late_cancelled(void);

/* program_sealed.c: programs that lock themselves in. The same; 77: it cannot be done here. */
int locked(void);
int filtered(void);

#endif
