#ifndef AFZ_PROC_MEMORY_H
#define AFZ_PROC_MEMORY_H
/* Memory of another process, copied while it runs on. Whatever comes out was written by that
 * process: a pointer or a length in it may be anything.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* All of it, or -EFAULT: it is not all there; -ESRCH, -EPERM: nobody is there, or we may not look.
 */
static inline int afz_proc_memory_read(pid_t pid, uint64_t from, void *to, size_t bytes)
{
        struct iovec here = {.iov_base = to, .iov_len = bytes};
        struct iovec there = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};
        ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (n < 0)
                return errno == EIO || errno == EINVAL ? -EFAULT : -errno;
        return (size_t)n == bytes ? 0 : -EFAULT;
}

#endif
