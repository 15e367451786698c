#ifndef AFZ_SHM_SWEEP_H
#define AFZ_SHM_SWEEP_H
/* The job's files in /dev/shm: they count as RAM, are in no process's memory unless they are
 * mapped, and outlive their makers.
 *
 * Whose a file is, is told by evidence alone: a member of the job was seen with it open for writing
 * or mapped, shared and writable. From then on it counts, as long as it exists, with what it has
 * grown since it was last seen without the job: all of it when it was new. A file that has lost its
 * name counts as long as a member holds it open.
 *
 * Nobody else's file may ever be unlinked, so a file is swept only when all of this holds:
 *  - it is a regular file of our own user, with one name, directly in the folder;
 *  - it was not there when we began;
 *  - at the first look that saw it, a member had it as above. A file that was first seen without
 *    that is a stranger's for ever;
 *  - where it was only written to, it may be somebody's data (a log, a checkpoint): it is swept
 * only when it was there before the job was first asked to save or to end, was still open then, so
 * that nobody has finished it, and is large enough to be worth it;
 *  - it is still the same inode under the same name;
 *  - no process that we may ask has it mapped or open. Where one may not be asked (an ordinary user
 *    may ask few), no file is swept that everybody can write to. (Who reads it all the same keeps
 *    it; only its name is gone.)
 * Semaphores (sem.*) stay: 32 bytes are not worth a doubt.
 *
 * Not for the tick: it reads the maps of processes. A helper that looks some times a second calls
 *
 *      if (afz_shm_look(shm) > 0)
 *              afz_shm_note(shm, env, pid) for each member;
 *      afz_shm_settle(shm, now_ns);
 *
 * and, when the guard has stopped the job and it is gone, afz_shm_sweep().
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "env.h"

struct afz_shm;

struct afz_shm_held {
        uint64_t bytes;          /* in the job's files */
        uint64_t unmapped_bytes; /* of it, what is in no member's memory: rather too little */
};

struct afz_shm_swept {
        unsigned files;
        uint64_t bytes;
};

/* The job's end, of which only written files are judged by. */
struct afz_shm_end {
        uint64_t asked_ns;  /* it was asked to save or to end; UINT64_MAX: never */
        uint64_t closed_ns; /* what it was seen to have closed before this was finished */
};

/* folder: "/dev/shm". What is in it now is never touched. -ENODATA: there is none. */
int afz_shm_new(const char *folder, struct afz_shm **ret);
void afz_shm_free(struct afz_shm *shm);

/* Whether the file system has grown since the last look by something worth a look; costs nothing.
 */
bool afz_shm_has_grown(const struct afz_shm *shm);

/* Lists the folder: what is new is nobody's yet. 1: there is something to ask members about. */
int afz_shm_look(struct afz_shm *shm);
/* A member of the job: what it holds. -ESRCH: gone. */
int afz_shm_note(struct afz_shm *shm, const struct afz_env *env, pid_t pid);
/* All members were noted: what is nobody's still is a stranger's. */
void afz_shm_settle(struct afz_shm *shm, uint64_t now_ns);

/* As of the last look. */
struct afz_shm_held afz_shm_held(const struct afz_shm *shm);

/* The job is gone: unlinks what it made and nobody holds. */
int afz_shm_sweep(struct afz_shm *shm, const struct afz_env *env, const struct afz_shm_end *end,
                  struct afz_shm_swept *ret);

#endif
