#ifndef AFZ_SHM_SWEEP_H
#define AFZ_SHM_SWEEP_H
/* Shared memory files that a stopped job leaves behind: /dev/shm counts as RAM and outlives its
 * makers, so a job that was killed would go on costing memory.
 *
 * Nobody else's file may ever be unlinked, so a file is swept only when all of this holds:
 *  - it is a regular file of our own user, with one name, directly in the folder;
 *  - it was not there when we began;
 *  - at the first look that saw it, a process of the job had it mapped, shared and writable. A file
 *    that was first seen without that is a stranger's for ever, and so is one that is only written
 *    to: that is somebody's data, not a segment;
 *  - it is still the same inode under the same name;
 *  - no process that we may ask has it mapped or open. Where one may not be asked, no file is swept
 *    that other users can open. (Whoever holds it all the same keeps it; only its name is gone.)
 * Semaphores (sem.*) stay: 32 bytes are not worth a doubt.
 *
 * Not for the tick: it reads the maps of processes. A helper that looks once a second calls
 *
 *      afz_shm_look(shm);  afz_shm_note(shm, env, pid) for each member;  afz_shm_settle(shm);
 *
 * and, when the guard has stopped the job and it is gone, afz_shm_sweep().
 */
#include <stdint.h>
#include <sys/types.h>

#include "env.h"

struct afz_shm;

struct afz_shm_swept {
        unsigned files;
        uint64_t bytes;
};

/* folder: "/dev/shm". What is in it now is never touched. -ENODATA: there is none. */
int afz_shm_new(const char *folder, struct afz_shm **ret);
void afz_shm_free(struct afz_shm *shm);

/* Lists the folder: what is new is nobody's yet. */
int afz_shm_look(struct afz_shm *shm);
/* A member of the job: what it has mapped is the job's, if it was nobody's. -ESRCH: gone. */
int afz_shm_note(struct afz_shm *shm, const struct afz_env *env, pid_t pid);
/* All members were noted: what is nobody's still is a stranger's. */
void afz_shm_settle(struct afz_shm *shm);

/* RAM in the files that are the job's, as far as they still have a name. */
uint64_t afz_shm_bytes(const struct afz_shm *shm);

/* The job is gone: unlinks what it made and nobody holds. */
int afz_shm_sweep(struct afz_shm *shm, const struct afz_env *env, struct afz_shm_swept *ret);

#endif
