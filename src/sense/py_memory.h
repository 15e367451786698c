#ifndef AFZ_PY_MEMORY_H
#define AFZ_PY_MEMORY_H
/* The memory that the Python readers look into: another process's, our own, or one that a test made
 * up. Everything they know comes through this one callback, so nothing in it is to be trusted: not
 * a pointer, not a length.
 */
#include <stddef.h>
#include <stdint.h>

struct afz_py_memory {
        /* Reads all of `bytes` at `address`, or fails and leaves `ret` as it may be: -EFAULT
         * nothing is there, else whatever keeps it from reading at all (-ESRCH, -EPERM), which ends
         * a walk. */
        int (*read)(void *context, uint64_t address, void *ret, size_t bytes);
        void *context;
};

static inline int afz_py_read(const struct afz_py_memory *m, uint64_t address, void *ret,
                              size_t bytes)
{
        return m->read(m->context, address, ret, bytes);
}

static inline int afz_py_read_u32(const struct afz_py_memory *m, uint64_t address, uint32_t *ret)
{
        return afz_py_read(m, address, ret, sizeof *ret);
}

static inline int afz_py_read_u64(const struct afz_py_memory *m, uint64_t address, uint64_t *ret)
{
        return afz_py_read(m, address, ret, sizeof *ret);
}

#endif
