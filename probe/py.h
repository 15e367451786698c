#ifndef AFZ_PROBE_PY_H
#define AFZ_PROBE_PY_H
/* The Python frames of the calling thread, read from the interpreter's own structures. Nothing of
 * the interpreter is ever called from a hook.
 *
 * What is where comes from src/sense/py_layout.h, by version. At start it is held against what the
 * interpreter itself says: its version, the offsets that it publishes (from 3.13 on), and the sizes
 * of its code, bytes and str objects (and of frames, before 3.11). A thread's state is believed
 * when it points back to its interpreter and names this very thread. Where one of these does not
 * hold, Python stacks are left out, and the book says so.
 *
 * Structures are read through the kernel (process_vm_readv) the first times. From then on a state
 * that the thread's own key leads to (pthread_getspecific, where the interpreter keeps it for as
 * long as it lives) is read as it is: its frames are the calling thread's own, and hold their code.
 */
#include <stdint.h>

#include "probe.h"
#include "py_layout.h"

enum {
        AFZ_PY_FRAMES = AFZ_STACK_MAX,
        AFZ_PY_STATE_CAP = 512, /* bytes of a thread state up to what is asked of it */
};

/* Room for one walk; too large for small stacks. */
struct afz_py_walk {
        int is_direct; /* as it is, not through the kernel */
        unsigned char state[AFZ_PY_STATE_CAP];
        unsigned char frame[AFZ_PY_OBJECT_CAP], code[AFZ_PY_OBJECT_CAP];
        char file[256], function[96];
};

/* Once, before main(): whether there is a Python whose stacks can be read. */
void afz_py_start(void);

/* The program has a Python of a build whose objects must not be passed through by us. */
int afz_py_is_free_threaded(void);

void afz_py_new_book(
        struct afz_book *book); /* in the child of a fork: what is remembered was about another */

/* Whether an address lies in the interpreter's own code. */
int afz_py_has_code(uint64_t pc);

/* Whether the calling thread runs Python, below whatever else. */
int afz_py_runs(struct afz_py_walk *w, struct afz_book *book);

/* Innermost first; how many. 0: this thread runs no Python. */
unsigned afz_py_frames(struct afz_py_walk *w, struct afz_book *book, uint64_t *ret, unsigned cap);

#endif
