#ifndef AFZ_RECORDER_STATE_H
#define AFZ_RECORDER_STATE_H
/* The recorder's own state, shared by recorder.c (guard and scout) and recorder_writer.c. */
#include <stdatomic.h>

#include "recorder.h"
#include "recorder_lane.h"

/* Each who puts has a lane. The guard's is always mapped, the others' in their own processes and in
 * the writer's. */
enum { AFZ_LANE_OF_GUARD, AFZ_LANE_OF_SCOUT, AFZ_LANE_OF_KEEPER, AFZ_RECORDER_LANES };

#define AFZ_RECORDER_GUARD_SLOT  (UINT32_C(8) << 10)
#define AFZ_RECORDER_SCOUT_SLOT  (UINT32_C(256) << 10)
#define AFZ_RECORDER_KEEPER_SLOT (UINT32_C(256) << 10)

/* At the beginning of the shared memory. */
struct afz_recorder_shared {
        struct afz_lane_shared lane[AFZ_RECORDER_LANES];
        _Atomic int32_t keeper; /* its pid, as long as it has something to say; 0: it has not */
        _Atomic uint32_t tier;
        _Atomic int32_t trouble; /* of the writer: 0 or -errno */
        _Atomic uint64_t cpu_ns; /* the writer's */
};

struct afz_recorder {
        struct afz_recorder_shared *shared;
        void *far[AFZ_RECORDER_LANES]; /* their slots; NULL where they are not mapped */
        int memory_fd;                 /* of all shared memory */
        int socket_fd;                 /* our end; -1: the writer was told to end, and has */
        bool ending;
        pid_t pid;
        uint64_t start_ns;
        struct afz_lane lane[AFZ_RECORDER_LANES];

        /* What of the window is recorded already; the scout's. */
        uint64_t ticks, seen_ns[AFZ_WINDOW_SOURCES];
        size_t events;
};

/* Maps the slots of one that is not the guard: who only guards does without, and has less memory to
 * lock. */
int afz_recorder_map_far(struct afz_recorder *recorder, unsigned lane);

/* The writer's whole life, in its process. `fd` is its end of the socket pair: a byte there says
 * that the job runs, the end of it that all is in. */
_Noreturn void afz_recorder_write(struct afz_recorder *recorder, struct afz_run *run,
                                  const struct afz_flight_head *head, int fd, pid_t guard);

#endif
