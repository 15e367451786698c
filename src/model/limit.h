#ifndef AFZ_LIMIT_H
#define AFZ_LIMIT_H
/* What holds the job (or, without one, the machine) back right now, in one word and one sentence.
 */

enum afz_limit_kind {
        AFZ_LIMIT_UNKNOWN,   /* too little is known yet */
        AFZ_LIMIT_NONE,      /* nothing: it is idle, or waits for something of its own */
        AFZ_LIMIT_SWAPPING,  /* pages come back from swap as fast as they go out */
        AFZ_LIMIT_MEMORY,    /* the kernel makes tasks wait for memory */
        AFZ_LIMIT_DISK,      /* waits for a disk */
        AFZ_LIMIT_NETWORK,   /* waits for a network mount */
        AFZ_LIMIT_CPU,       /* computes on its cores */
        AFZ_LIMIT_CPU_SHARE, /* wants more cores than it is given */
        AFZ_LIMIT_GPU,       /* the GPU is busy, the job waits for it */
        AFZ_LIMIT_STOPPED,   /* stopped by a signal, a debugger or the freezer */
        AFZ_LIMIT_COUNT
};

struct afz_limit {
        enum afz_limit_kind kind;
        char text[96]; /* "waiting for disk vda (94 % busy)" */
};

/* "unknown", "idle", "swapping", "memory", "disk", "network", "cpu", "cpu-share", "gpu", "stopped"
 */
const char *afz_limit_name(enum afz_limit_kind kind);

#endif
