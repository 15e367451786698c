#ifndef AFZ_SHM_FILES_H
#define AFZ_SHM_FILES_H
/* What shm_sweep.c knows of each file, and shm_holders.c finds out: of them alone. */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "env.h"
#include "map.h"

enum {
        /* More files than this are not kept count of: then nothing new is taken for the job's. A
         * look costs 1 us for each. */
        AFZ_SHM_FILES = 4096,
        AFZ_SHM_NAME = 320, /* relative to the folder; longer ones are left alone */
};

enum afz_shm_owner { AFZ_SHM_NOBODY, AFZ_SHM_STRANGER, AFZ_SHM_JOB };

struct afz_shm_file {
        uint64_t inode;
        uint64_t bytes, base_bytes; /* now; when it was last seen without the job */
        uint64_t born_ns;           /* the look that saw it first */
        uint64_t closed_ns;         /* the look that saw no member hold it any more; 0: they do */
        enum afz_shm_owner owner;
        bool counts;
        bool segment; /* was mapped shared and writable by a member */
        /* In this look: */
        bool named, grew, held, mapped;
        char name[AFZ_SHM_NAME]; /* "": it has none any more */
};

struct afz_shm {
        char folder[PATH_MAX];
        int fd;
        dev_t device;
        bool full;
        uint64_t used_bytes;   /* of the file system, at the last look */
        uint64_t mapped_bytes; /* shared memory in the members that map the job's files, each */
        bool maps;             /* the one that is noted now does */
        struct afz_map *at;    /* inode: its place */
        size_t files;
        struct afz_shm_file file[AFZ_SHM_FILES];
};

/* One way in which a process holds a file. */
struct afz_shm_grip {
        uint64_t inode, bytes; /* bytes: 0 where a mapping tells nothing of them */
        bool writes, maps;
        bool nameless; /* it was unlinked, or never had a name */
};

struct afz_shm_file *afz_shm_find(struct afz_shm *shm, uint64_t inode);

/* Each mapping or open file of a process that is in our folder goes to `each`; of open files at
 * most so many are looked at, else -E2BIG. -ESRCH: gone. */
typedef void (*afz_shm_each)(struct afz_shm *shm, const struct afz_shm_grip *grip);
int afz_shm_each_mapping(struct afz_shm *shm, const struct afz_env *env, uint64_t pid,
                         afz_shm_each each);
int afz_shm_each_open(struct afz_shm *shm, const struct afz_env *env, uint64_t pid, int most,
                      afz_shm_each each);
/* Shared memory in the process's RSS; 0 where it cannot be told. */
uint64_t afz_shm_resident(const struct afz_env *env, uint64_t pid);

#endif
