/* Where the program stands. Native frames from the allocation outwards, up to the first that lies
 * in the Python interpreter's own code; from there on Python's frames, which say more. A thread
 * that runs no Python has native frames alone.
 *
 * All that is large lies in a few places that threads borrow for the time of a sample, as the
 * stack below us may be a signal handler's or a coroutine's of a few KiB. */
#include <sched.h>
#include <stdatomic.h>

#include "probe.h"
#include "py.h"
#include "unwind.h"

enum {
        PLACES = 16,     /* threads that take a stack at the same time */
        PATIENCE = 1000, /* turns of waiting for one, some microseconds each */
};

static struct place {
        _Atomic int taken;
        struct afz_unwind unwind;
        struct afz_py_walk py;
} places[PLACES];

static struct afz_module own;

static struct {
        struct afz_module module[2];
        unsigned count;
} allocators;

void afz_stack_start(void)
{
        afz_module_start();
        afz_unwind_start();
        (void)afz_module_find(NULL, (uint64_t)(uintptr_t)&afz_stack_start, &own);
}

void afz_stack_add_allocator(const void *code)
{
        if (allocators.count < 2 && afz_module_find(NULL, (uint64_t)(uintptr_t)code,
                                                    &allocators.module[allocators.count]) == 0)
                allocators.count++;
}

/* Whoever held a place is not in the child. */
void afz_stack_new_book(struct afz_book *book)
{
        for (unsigned i = 0; i < PLACES; i++)
                atomic_store(&places[i].taken, 0);
        afz_py_new_book(book);
}

static struct place *borrow(void)
{
        for (unsigned turn = 0; turn < PATIENCE; turn++) {
                struct place *p = &places[turn % PLACES];
                if (atomic_load_explicit(&p->taken, memory_order_relaxed) == 0 &&
                    atomic_exchange(&p->taken, 1) == 0)
                        return p;
                if (turn % PLACES == PLACES - 1)
                        (void)sched_yield();
        }
        return NULL;
}

static int is_in(const struct afz_module *m, uint64_t pc)
{
        return pc >= m->base && pc < m->end;
}

static int is_allocator(uint64_t pc)
{
        for (unsigned i = 0; i < allocators.count; i++)
                if (is_in(&allocators.module[i], pc))
                        return 1;
        return 0;
}

/* Out of the probe itself. */
static int leave_own(struct afz_unwind *u)
{
        while (afz_unwind_next(u))
                if (!is_in(&own, u->pc))
                        return 1;
        return 0;
}

static int take(struct place *p, struct afz_book *book, enum afz_site_kind kind,
                uint64_t ret[AFZ_STACK_MAX])
{
        struct afz_unwind *u = &p->unwind;
        unsigned n = 0, tried = 0, cap = AFZ_STACK_MAX;
        if (afz_unwind_begin(u, book) < 0 || !leave_own(u))
                return 0;
        if (kind == AFZ_SITE_MAP && is_allocator(u->pc))
                return -1;
        do {
                if (!tried && afz_py_has_code(u->pc)) {
                        unsigned m = afz_py_frames(&p->py, book, ret + n, cap - n);
                        if (m > 0)
                                return (int)(n + m);
                        tried = 1; /* the interpreter without a program: native after all */
                }
                if (!is_in(&own, u->pc))
                        ret[n++] = u->pc;
        } while (n < cap && afz_unwind_next(u));
        return (int)n;
}

__attribute__((noinline)) void afz_stack_take(struct afz_book *book, enum afz_site_kind kind,
                                              struct afz_stack *ret)
{
        struct place *p = borrow();
        ret->frames = ret->in_handler = 0;
        if (!p)
                return;
        ret->frames = take(p, book, kind, ret->frame);
        ret->in_handler = p->unwind.in_handler;
        atomic_store_explicit(&p->taken, 0, memory_order_release);
}

int afz_stack_has_python(struct afz_book *book)
{
        struct place *p = borrow();
        if (!p)
                return 0;
        int has = afz_py_runs(&p->py, book);
        atomic_store_explicit(&p->taken, 0, memory_order_release);
        return has;
}
