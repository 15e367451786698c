#ifndef AFZ_SCOUT_H
#define AFZ_SCOUT_H
/* The scout: a helper process that looks at everything that is slow or can block (the whole table
 * of senses, file systems, other programs), some times a second, and shows the guard the few
 * facts it needs in one page of shared memory. If a file system hangs, the scout hangs and the
 * guard does not.
 *
 * It ends by itself when the guard's end of the pipe closes, and is killed when the guard dies. It
 * holds none of the guard's descriptors, blocks all signals (it lives in the caller's group, and
 * what comes from the terminal is not meant for it), and runs as any program does. In the tiers
 * with a cgroup of their own it sits beside the job, so that the cgroup outlives the job until it
 * was read a last time.
 *
 * How old a report is says t_ns (CLOCK_MONOTONIC): a scout that hangs or is gone leaves the last
 * one standing. It is a second old in usual times, a quarter when something fills.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "env.h"
#include "hold.h"
#include "shm_sweep.h"

enum { AFZ_SCOUT_PARTS = 32, AFZ_SCOUT_PART_NAME = 64, AFZ_SCOUT_ESCAPES = 4 };

/* What it tells; plain data, copied out whole. Texts are printable. */
struct afz_scout_report {
        uint64_t t_ns; /* 0: nothing yet */
        uint64_t count;

        /* The process of the job that holds most, and the one that grew most over the last 10 s
         * (bytes: by so much). pid 0: none. */
        struct {
                uint64_t pid, bytes;
                char name[32];
        } largest, grower;
        /* The program outside of the job that grew most since the scout began, added up by name;
         * pid is its largest process. pid 0: none grew by anything worth a word. */
        struct {
                uint64_t pid, bytes, grown_bytes;
                char name[32];
        } other;

        /* The file system that the job will have filled first (or, where it fills none, the fullest
         * that it writes to): free space, how fast it loses space by the job's own writing, seconds
         * left at that rate (UINT64_MAX: it does not fill). Network mounts are never asked. */
        struct {
                bool known;
                uint64_t free_bytes, size_bytes, rate_bytes_per_s, left_s;
                char mount[96];
        } disk;
        /* /dev/shm. job_bytes: what the job maps there or was seen writing; unmapped_bytes: of it,
         * what is in none of its processes (shm_sweep.h). */
        struct {
                bool known;
                uint64_t free_bytes, size_bytes, job_bytes, unmapped_bytes;
        } shm;
        /* What afz_scout_sweep() has removed there. */
        struct {
                bool done;
                unsigned files;
                uint64_t bytes;
        } swept;

        uint64_t gpu_bytes; /* held by the job on all GPUs; peak is the guard's business */
        bool has_gpu;
        bool gpu_is_ram; /* unified memory: VRAM is RAM and counted there already */

        /* Notebook kernels (role.h) below a server: sub-jobs that may be stopped alone. */
        unsigned parts;
        bool server;
        uint64_t part_pid[AFZ_SCOUT_PARTS];
        uint64_t part_named[AFZ_SCOUT_PARTS];                 /* the pid that the name is of */
        char part_name[AFZ_SCOUT_PARTS][AFZ_SCOUT_PART_NAME]; /* the notebook's; "": not known */

        /* Commands that leave the tree: "docker run", "sbatch", ...; each is told once. */
        unsigned escapes;
        struct {
                uint64_t pid;
                char name[32];
        } escape[AFZ_SCOUT_ESCAPES];

        /* The machine's fastest fill, measured once; 0: not yet, or too little memory was free. */
        uint64_t fill_bytes_per_s;
        uint64_t own_cpu_ns; /* what the scout itself has used */
};

struct afz_scout;
struct afz_recorder;

/* Forks it, which is all that the caller pays: everything is opened in the child. From a process
 * with one thread, which is to be the guard (the scout dies with the thread that forked it). */
int afz_scout_start(struct afz_scout **ret);
/* The same; what it sees is recorded, too. The recorder is borrowed, and NULL is fine. */
int afz_scout_start_with(struct afz_recorder *recorder, struct afz_scout **ret);
/* The same on another env, which open_env makes in the child: for tests. */
int afz_scout_start_on(int (*open_env)(struct afz_env *ret), struct afz_scout **ret);
pid_t afz_scout_pid(const struct afz_scout *scout);

/* Tells it the job's root; again with another when the job is started anew. Never blocks. -EPIPE:
 * the scout is gone. */
int afz_scout_watch(struct afz_scout *scout, pid_t root);

/* The job was stopped and is gone: what it left in /dev/shm is to be removed, by the rules of
 * shm_sweep.h; `swept` of a report to come says what was. Else as afz_scout_watch(). */
int afz_scout_sweep(struct afz_scout *scout, const struct afz_shm_end *end);

/* The job is held still, or is about to be: where each of its threads stands, and its memory as it
 * stands, are to be recorded, within a fifth of a second. Else as afz_scout_watch(). */
int afz_scout_picture(struct afz_scout *scout);
/* Whether the last one that was asked for is taken, as far as it could be. Never blocks. */
bool afz_scout_pictured(const struct afz_scout *scout);

/* Which step the job is in; 0: nobody knows. One that works and makes none is looked at. */
void afz_scout_step(struct afz_scout *scout, uint64_t step);

/* The newest report; false when there is none, or it is being written just now (ask again at the
 * next tick). Never blocks, makes no system call. */
bool afz_scout_read(const struct afz_scout *scout, struct afz_scout_report *ret);

/* Tells it to take a last look and to end, and does not wait; its last report can still be read.
 * NULL is fine. */
void afz_scout_dismiss(struct afz_scout *scout);
/* Waits for that, a twentieth of a second at most. */
void afz_scout_await(struct afz_scout *scout);

/* Ends it and waits for it, a tenth of a second at most; NULL is fine. */
void afz_scout_stop(struct afz_scout *scout);

#endif
