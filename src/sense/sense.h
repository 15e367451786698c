#ifndef AFZ_SENSE_H
#define AFZ_SENSE_H
/* A sense looks at one part of the machine and fills samples. It knows nothing of judges or views.
 *
 * The contract of a sense:
 * - open() finds out once what is there, keeps descriptors, and may allocate. -ENODATA: this
 *   machine does not offer it (no PSI, no GPU); -EACCES: we may not look. Either way the sense is
 *   left out and the row's `absent` or `denied` text says what that means and what would help.
 * - read() fills the batch it is given. It allocates nothing, never blocks, and sets only what it
 *   really learnt. It returns 0, or -errno when nothing could be read this time (the engine then
 *   drops the batch and says so); a part that is missing is no error, it just stays absent.
 *   -EAGAIN means that nothing is new: the last batch stands.
 * - close() takes NULL.
 *
 * The tick is single-threaded; a sense needs no locks. A sense whose work can block (NVML) does
 * it in a helper process and only looks at shared memory here.
 */
#include <errno.h>
#include <stdint.h>

#include "env.h"
#include "sample.h"

/* Whom we watch. */
struct afz_target {
        uint64_t pid; /* root of the job; 0: every process of the machine */
};

struct afz_sense {
        const char *name;   /* one word, as in `watch --json` and doctor */
        const char *what;   /* what it tells, in a few words */
        uint64_t every_ns;  /* read no more often than this; 0: in every tick */
        size_t max_samples; /* room in its batches */
        const char *absent; /* said when open() gives -ENODATA: why, and what would help */
        const char *denied; /* said when it gives -EACCES or -EPERM; NULL: cannot happen */
        int (*open)(const struct afz_env *env, const struct afz_target *target, void **ret_state);
        int (*read)(void *state, struct afz_batch *out);
        void (*close)(void *state);
};

/* What open() says when the file that it lives on could not be opened: one that is not there is not
 * offered here; any other error (we may not, no descriptors are left) is what it is. */
static inline int afz_sense_missing(int error)
{
        return error == -ENOENT || error == -ENOTDIR || error == -ENXIO ? -ENODATA : error;
}

/* All senses, in the order in which they are read. */
extern const struct afz_sense *const afz_sense_table[];
extern const unsigned afz_sense_count;

extern const struct afz_sense afz_sense_host, afz_sense_vm, afz_sense_psi, afz_sense_cpu,
        afz_sense_job, afz_sense_cgroup, afz_sense_disk, afz_sense_net, afz_sense_thermal,
        afz_sense_kmsg, afz_sense_gpu;

#endif
