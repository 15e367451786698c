#ifndef AFZ_PY_ELF_H
#define AFZ_PY_ELF_H
/* Exported symbols of an ELF64 object as it is mapped, read from the memory that it is mapped in.
 *
 * Not from its file: in a container, after an upgrade or under a deleted name that would be another
 * file, or none; and what the dynamic linker needs to find a symbol is in memory anyway. An
 * interpreter exports what is asked for here, stripped or not, or its extension modules could not
 * be loaded.
 */
#include <stdint.h>

#include "py_memory.h"

struct afz_py_elf {
        uint64_t bias; /* added to what the object calls an address */
        uint64_t symbols, strings, hash;
};

/* The object whose header is mapped at `base`. -EBADMSG: no ELF64 of this machine's byte order, or
 * none with a table of exported symbols. */
int afz_py_elf_open(const struct afz_py_memory *m, uint64_t base, struct afz_py_elf *ret);

/* The address of a symbol that this object defines; -ENOENT: it defines none of that name (at most
 * 63 characters). */
int afz_py_elf_find(const struct afz_py_memory *m, const struct afz_py_elf *elf, const char *name,
                    uint64_t *ret);

#endif
