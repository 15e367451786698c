#ifndef AFZ_STACKS_H
#define AFZ_STACKS_H
/* The stacks that held memory when all lines of a program together held most (site_top.h), frame by
 * frame: what flame graphs and profiles are made of. Texts are anyone's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flight.h"
#include "site_top.h"

/* A recording has 64 a stack (wire.h) and inlined ones; of a longer one the innermost are kept. */
enum { AFZ_STACK_FRAMES = 128 };

struct afz_stack {
        const struct afz_track *site;
        uint64_t bytes;
        unsigned frames;    /* at least one: without a stack, the site's own name */
        const char **frame; /* outermost first: "train.py:33 in load()" */
};

struct afz_stacks {
        uint32_t t_ms;
        uint64_t bytes; /* of all of them */
        size_t count;
        struct afz_stack *stack;
        char *text; /* where the frames lie */
        const char **frame;
};

/* False: nobody held anything, or there is no memory; then nothing has to be freed. Borrows the
 * flight's tracks. */
bool afz_stacks_at_peak(const struct afz_flight *flight, struct afz_stacks *ret);
void afz_stacks_free(struct afz_stacks *stacks);

/* How far the figure of a line may be off, as a part of it, once in three cases more
 * (docs/sampling.md): what was counted is not off at all. At most 1. */
double afz_line_off(const struct afz_flight *flight, const struct afz_site_row *row);

/* What the job needed when its lines held `seen_bytes`, at t; 0: not known. Lines are read once a
 * second, and of a job that was ended a last time afterwards, when it needs nothing any more: what
 * is less than they held is looked for in the second before. */
int64_t afz_stacks_need(const struct afz_flight *flight, uint32_t t_ms, double seen_bytes);

/* ---- whose code a frame is ---- */

enum afz_stack_owner {
        AFZ_STACK_USER,    /* who reads this can change it */
        AFZ_STACK_LIBRARY, /* code that others wrote */
        AFZ_STACK_RUNTIME, /* native code without names: the interpreter, libc, what is stripped */
        AFZ_STACK_REST,    /* no frame at all: lines too small to be told apart */
        AFZ_STACK_OWNERS
};

/* By how the keeper writes it (keeper_names.c): the user's own files go by their name, those of
 * libraries by a path within the package, native code by its module. */
enum afz_stack_owner afz_stack_owner(const char *frame);

/* The file and line of "train.py:33 in load()"; false: it has none. */
bool afz_stack_place(const char *frame, size_t *ret_file_length, uint32_t *ret_line);

#endif
