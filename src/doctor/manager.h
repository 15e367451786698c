#ifndef AFZ_MANAGER_H
#define AFZ_MANAGER_H
/* The systemd manager that would make a scope for us: the user's own, or the system's for root.
 *
 * Its sockets are looked at first; only where they are there is it really asked, over D-Bus, by a
 * child process that is killed when it takes too long.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "doctor.h"

enum afz_manager_state {
        AFZ_MANAGER_UNKNOWN, /* we may not look */
        AFZ_MANAGER_ABSENT,
        AFZ_MANAGER_SEEN,   /* its sockets are there; this build cannot ask it */
        AFZ_MANAGER_SILENT, /* there, but it did not answer: err says why */
        AFZ_MANAGER_ANSWERS
};

struct afz_manager {
        enum afz_manager_state state;
        bool system; /* root: the system's manager */
        bool bus;    /* the D-Bus socket is there */
        int err;
        char version[32];
        int controllers; /* bits that it passes on to its units, or -errno */
};

struct afz_doctor_ctx;

/* Needs ctx->cgroup. */
void afz_manager_look(const struct afz_doctor_ctx *ctx, struct afz_manager *ret);

#endif
