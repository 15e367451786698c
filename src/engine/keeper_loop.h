#ifndef AFZ_KEEPER_LOOP_H
#define AFZ_KEEPER_LOOP_H
/* The keeper's life in its own process, shared by keeper.c (the guard's side) and keeper_loop.c. */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper.h"

struct afz_recorder;

enum { AFZ_KEEPER_DEATHS = 16 };

/* What the guard can see. */
struct afz_keeper_shared {
        _Atomic int32_t inside[AFZ_KEEPER_DEATHS]; /* pids that died in the middle of the probe */
        _Atomic uint32_t deaths;
        _Atomic uint64_t step, saved_step; /* afz_keeper_steps() */
        _Atomic uint32_t asked, looked;    /* looks that were asked for, and the last one taken */
};

struct afz_keeper_order {
        int listen_fd, word_fd; /* of the second: a byte asks for a look, and it ends when
                                   the guard lets go */
        pid_t guard;
        int room_fd; /* handed out with each book; -1: there is none */
        struct afz_keeper_plan plan;
        struct afz_keeper_shared *shared;
        struct afz_recorder *recorder; /* joined */
};

void afz_keeper_loop(const struct afz_keeper_order *order);

#endif
