#ifndef AFZ_GPU_HELPER_H
#define AFZ_GPU_HELPER_H
/* The process that talks to a GPU library on our behalf. Such calls can block for ever inside the
 * kernel; a process that does so cannot even be killed. It must therefore not be us, nor anything
 * we wait for.
 *
 * The helper is forked before anything heavy is loaded, lives in a session of its own (a Ctrl-C
 * meant for the job does not reach it), has no descriptors but the two it needs, and dies with us.
 * It is started again when it dies, a few times and ever later, and then no more.
 *
 * Our side never blocks and never allocates, except in _start, _wait (which says for how long) and
 * _stop (at most AFZ_GPU_STOP_NS).
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "env.h"
#include "gpu_shared.h"

#define AFZ_GPU_POLL_NS  UINT64_C(500000000)  /* NVML's own figures are means over 1/6 s to 1 s */
#define AFZ_GPU_STUCK_NS UINT64_C(2000000000) /* the slowest honest call seen takes 1 s: init */
#define AFZ_GPU_STALE_NS UINT64_C(3000000000) /* older values are not shown: they mislead */
#define AFZ_GPU_STOP_NS  UINT64_C(50000000)   /* what our own exit may wait for the helper's */
#define AFZ_GPU_RESTARTS 3
/* The wait before restart 1, 2, 3: a driver that is being reloaded takes some seconds. */
#define AFZ_GPU_BACKOFF_NS UINT64_C(1000000000), UINT64_C(5000000000), UINT64_C(25000000000)

/* What the helper's own code gets: the child's end. */
struct afz_gpu_link {
        struct afz_gpu_shared *shared;
        uint64_t (*now_ns)(void *ctx);
        void *ctx;
        uint64_t poll_ns;
        uint64_t asking; /* the request that the poll under way will have met */
        int news_fd, kick_fd;
        pid_t parent;
};

/* Runs in the child; returning ends the helper. 0: all that can be said has been published (also
 * that there is no library), so it is not started again. Else it is taken as a death. */
typedef int afz_gpu_helper_main(struct afz_gpu_link *link);

enum afz_gpu_life {
        AFZ_GPU_LIFE_RUNNING,
        AFZ_GPU_LIFE_FINISHED, /* by itself */
        AFZ_GPU_LIFE_DEAD,     /* to be started again */
        AFZ_GPU_LIFE_GAVE_UP,  /* died too often */
};

struct afz_gpu_helper {
        const struct afz_env *env;
        afz_gpu_helper_main *main;
        uint64_t poll_ns;
        struct afz_gpu_shared *shared;
        enum afz_gpu_life life;
        pid_t pid;
        int pidfd; /* -1: this kernel has none */
        int news_fd, kick_fd;
        unsigned restarts;
        uint64_t restart_at_ns, past_cpu_ns;
        /* Watching for a call that does not return. */
        uint64_t watched_call, waited_ns, last_look_ns;
};

/* Starts it. -errno, and then nothing is left behind. */
int afz_gpu_helper_start(struct afz_gpu_helper *helper, const struct afz_env *env,
                         afz_gpu_helper_main *main, uint64_t poll_ns);

/* Looks after it: notices its end and starts it again when it is time. */
enum afz_gpu_life afz_gpu_helper_tend(struct afz_gpu_helper *helper, uint64_t now_ns);

/* How long it has been in one and the same call, in time that we have seen go by: a jump of the
 * clock (a paused virtual machine) counts as one second at most. 0: in none. */
uint64_t afz_gpu_helper_stuck_ns(struct afz_gpu_helper *helper, uint64_t now_ns,
                                 uint32_t *ret_call);

/* Asks for a report that is begun after this call and waits for it. 0: it is there, or the helper
 * has ended. -ETIMEDOUT. */
int afz_gpu_helper_wait(struct afz_gpu_helper *helper, uint64_t timeout_ns);

uint64_t afz_gpu_helper_cpu(const struct afz_gpu_helper *helper);

/* Kills it and frees all. A helper that even SIGKILL does not end at once is left to init. */
void afz_gpu_helper_stop(struct afz_gpu_helper *helper);

/* The child's side. _wait sleeps until the next poll is due; false: the parent is gone. */
void afz_gpu_link_enter(struct afz_gpu_link *link, uint32_t call);
void afz_gpu_link_leave(struct afz_gpu_link *link);
void afz_gpu_link_publish(struct afz_gpu_link *link, const struct afz_gpu_report *report);
bool afz_gpu_link_wait(struct afz_gpu_link *link);

#endif
