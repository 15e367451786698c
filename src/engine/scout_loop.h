#ifndef AFZ_SCOUT_LOOP_H
#define AFZ_SCOUT_LOOP_H
/* The scout's own life, in its process. */
#include "scout_shared.h"

/* What comes over root_fd. */
struct afz_scout_order {
        pid_t root;       /* the job's from now on; 0: sweep what it left, it ended so */
        uint32_t picture; /* not 0: neither; a picture of this number, */
        uint64_t t_ns;    /* of this moment */
        struct afz_shm_end end;
};

struct afz_recorder;

/* Looks until the other end of root_fd closes; without a recorder (NULL) nothing is recorded. */
void afz_scout_loop(const struct afz_env *env, int root_fd, struct afz_scout_shared *shared,
                    struct afz_recorder *recorder);

#endif
