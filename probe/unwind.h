#ifndef AFZ_UNWIND_H
#define AFZ_UNWIND_H
/* The return addresses on the calling thread's stack, by the unwind tables that every program and
 * library carries (.eh_frame), so that no frame pointers are needed; where there is no table (code
 * made at run time), by frame pointers, if they lead back to known code.
 *
 * Made for being called often from the same places: how to step over a frame is worked out once for
 * each return address and kept in a table without locks. Of memory, only the thread's own stack is
 * touched as it is, and only where it is known to be there: from the stack pointer to the end of
 * the main thread's stack, or to the thread's own block, after the kernel has read every page in
 * between for us once. Everything else (stacks of coroutines and signal handlers, tables of
 * libraries) is read through the kernel, which says so when nothing is there. */
#include <stdint.h>
#include <sys/uio.h>

#include "cfi.h"
#include "module.h"

enum { AFZ_UNWIND_WINDOW = 4096 };

/* A walk. Too large for small stacks: the caller has a place for it elsewhere. */
struct afz_unwind {
        uint64_t pc, sp, fp; /* of the frame that was reached */
        int in_handler;      /* the walk went out of a signal's handler */
        uint64_t low, high;  /* of the stack that may be touched */
        struct afz_book *book;
        uint64_t window_at, window_size; /* a piece of another, copied */
        union {
                unsigned char window[AFZ_UNWIND_WINDOW];
                struct iovec page[AFZ_UNWIND_WINDOW / sizeof(struct iovec)];
        };
        struct afz_cfi_source source;
};

void afz_unwind_start(void); /* once, in the main thread */

/* Begins at the caller's frame. The walk is over once that function returns. 0; -1: not on this
 * machine. */
int afz_unwind_begin(struct afz_unwind *u, struct afz_book *book);

/* One frame out: 1, and u->pc is the return address. 0: this was the last that can be told. */
int afz_unwind_next(struct afz_unwind *u);

void afz_unwind_forget(void); /* after something was unloaded */

#endif
