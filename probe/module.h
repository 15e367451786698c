#ifndef AFZ_MODULE_H
#define AFZ_MODULE_H
/* What is loaded in this process: programs and libraries by address.
 *
 * All are noted at start, and one that an address is met in later is asked for and noted then.
 * Where libc has _dl_find_object() (glibc 2.35) that takes no lock; before, it takes the loader's
 * short one, which after a fork may be held for ever by a thread that is no more: there, in
 * children, only what the parent knew is known. */
#include <stdint.h>

#include "antifreeze/wire.h"

struct afz_module {
        uint64_t base, end; /* its segments lie in [base, end) */
        uint64_t shift;     /* address - shift is the file's own address */
        uint64_t unwind;    /* .eh_frame_hdr; 0: none */
        uint64_t dynamic;   /* .dynamic; 0: none */
        const char *path;   /* the loader's; may vanish with the module. "": the program itself */
};

void afz_module_start(void);      /* once, before main() */
void afz_module_after_fork(void); /* in the child */

/* The module that an address lies in. 0 or -1. A new one goes into the book, too (which may be
 * NULL). */
int afz_module_find(struct afz_book *book, uint64_t pc, struct afz_module *ret);

/* The function that an address lies in, by what the module exports; NULL: not known. Reads the
 * module's own tables, all of its symbols, and takes no lock, as dladdr() does: so only for one
 * that cannot be unloaded meanwhile (it is on the calling thread's stack). */
const char *afz_module_function(const struct afz_module *module, uint64_t pc);

/* Writes all that are known into a new book. */
void afz_module_fill(struct afz_book *book);

/* After a dlclose(). 1: something was unloaded, and what was remembered of addresses is void. */
int afz_module_closed(void);

/* Copies memory of this process that may not be there. How many bytes could be read, from the
 * front. */
uint64_t afz_read_self(uint64_t at, void *buf, uint64_t size);

#endif
