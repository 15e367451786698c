#ifndef AFZ_PY_WALK_H
#define AFZ_PY_WALK_H
/* From _PyRuntime to the lines that a thread stands at, in any memory. Every loop is bounded and
 * every pointer may be garbage: a walk over nonsense ends with few frames or none, never with a
 * crash or without an end.
 */
#include <stddef.h>
#include <stdint.h>

#include "py_layout.h"
#include "py_memory.h"
#include "py_stack.h"

struct afz_py_place {
        struct afz_py_memory memory;
        struct afz_py_layout layout;
        uint64_t runtime;   /* where _PyRuntime is */
        uint64_t code_type; /* where PyCode_Type is: what says that an object is code */
};

/* Does the layout fit this memory? The first thread state must point back to its interpreter.
 * -ENOTSUP: it does not. -EAGAIN: there is no interpreter, or no thread in it (yet, or any more).
 */
int afz_py_walk_check(const struct afz_py_place *place);

/*
 * The state of the thread with the kernel id `tid`, of the process whose main thread has the id
 * `main_tid`, both as the process itself sees them (in a container not as we do). -ENOENT: that
 * thread has none, or one without a frame: it runs no Python.
 *
 * From 3.11 on the state has the id. Before (and in children of fork() in some releases of 3.11,
 * where it is the parent's) it has pthread_self() alone, a pointer to the C library's own note of
 * the thread, which holds the id somewhere: where, is learnt from the main thread (both are known:
 * _PyRuntime's main_thread and main_tid), and believed only when in that same place exactly one
 * thread has `tid`. -ENOTSUP: that can't be told. -EFAULT: a list changed while it was walked; try
 * again.
 */
int afz_py_walk_find(const struct afz_py_place *place, uint32_t tid, uint32_t main_tid,
                     uint64_t *ret_state);

/* The frames of a thread state, innermost first, at most `cap`; how many. What C code put there for
 * itself, and what is still being set up, is passed over, as Python's own traceback does. An
 * unreadable frame ends the stack. */
int afz_py_walk_frames(const struct afz_py_place *place, uint64_t state, struct afz_py_frame *ret,
                       size_t cap);

#endif
