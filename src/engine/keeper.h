#ifndef AFZ_KEEPER_H
#define AFZ_KEEPER_H
/* The keeper: a helper process that hands books (wire.h) to the probes in the job's processes,
 * reads all of them once a second, adds up what each line of the program holds, and puts the
 * largest into the recording (AFZ_KIND_SITE), with what processes tell of themselves
 * (AFZ_KIND_INSIDE). What is in a book when its process is killed is read after that. Who asks is
 * told how it stands (keeper_ask.h).
 *
 * Books are memory of the keeper's: made before they are asked for, so that a program need not wait
 * and the job is not charged. It believes nothing that is in them, gives them only to processes of
 * its own user, and to so many at a time; others go without, and are counted.
 *
 * It ends by itself when the guard lets go of it or is gone, after a last look. It holds none of
 * the guard's descriptors, hears no signals and sits in no cgroup of the job's.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct afz_keeper;
struct afz_recorder;
struct afz_room;

/* Makes the socket, so that who is started next finds it, and forks the keeper. From a process with
 * one thread, which is to be the guard. The recorder is borrowed, and must be there (-ENOENT).
 * -ENAMETOOLONG, -EADDRINUSE: of the path. */
struct afz_keeper_plan {
        uint64_t ram_bytes;    /* of the machine: how fine the samples are */
        uint64_t budget_bytes; /* of the job: how many books there may be. In a container they take
                                  from what it may use */
        bool refuses;          /* with each book goes the room (keeper_room.h) */
};
int afz_keeper_start(const char *path, const struct afz_keeper_plan *plan,
                     struct afz_recorder *recorder, struct afz_keeper **ret);
pid_t afz_keeper_pid(const struct afz_keeper *keeper); /* 0: there is none */

/* The page to be written at each look; it stays the keeper's. NULL: nothing is refused in this run,
 * or the system does not let us make one. */
struct afz_room *afz_keeper_room(const struct afz_keeper *keeper);

/* A look at once, for who is about to stop the job: asks for it, and does not wait. From when
 * afz_keeper_looked() is true, what each line held since this was asked is where it outlives job,
 * keeper and guard: some milliseconds later, more where names are new. True also where there is no
 * keeper (any more): nobody need wait for it. Neither blocks nor allocates. */
void afz_keeper_look_now(struct afz_keeper *keeper);
bool afz_keeper_looked(const struct afz_keeper *keeper);

/* Which step the furthest process of the present attempt is in, and the last one that any of them
 * has told to have saved (AFZ_TOLD_NOT of wire.h: none has told), both of the last look. False: no
 * step was seen. A new attempt begins with forgetting. */
bool afz_keeper_steps(const struct afz_keeper *keeper, uint64_t *ret_step, uint64_t *ret_saved);
void afz_keeper_forget_steps(struct afz_keeper *keeper);

/* Tells it to take a last look and to end; does not wait. NULL is fine in all of these. */
void afz_keeper_dismiss(struct afz_keeper *keeper);
/* Waits for that, a third of a second at most. */
void afz_keeper_await(struct afz_keeper *keeper);

/* Whether a process was in the middle of the probe when it ended; 0: any. If it died of a fault, it
 * may have been the probe's. */
bool afz_keeper_died_inside(const struct afz_keeper *keeper, pid_t pid);

void afz_keeper_free(struct afz_keeper *keeper); /* ends it */

#endif
