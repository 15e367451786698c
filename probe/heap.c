/* How full malloc's heaps are: what it took from the kernel, and how much of that is in blocks that
 * are in use. The rest is either to be used again or lost between blocks (leak:fragmentation).
 *
 * Only libc knows (mallinfo2, glibc 2.33), and it has to walk all free blocks to tell, under the
 * lock of each heap. So it is asked rarely, and the longer it took the later again. */
#include <dlfcn.h>
#include <string.h>

#include "module.h"
#include "probe.h"

#define EVERY_NS UINT64_C(2000000000) /* the keeper looks once a second; heaps change slowly */
#define BUSY     UINT64_MAX           /* a thread is asking just now */
enum { REST = 1000 };                 /* times what it took: a thousandth of the time at most */

/* As <malloc.h> has it; not in all that we are built with. */
struct heap_info {
        size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks;
        size_t keepcost;
};

static struct {
        struct heap_info (*ask)(void); /* NULL: cannot be told */
        _Atomic uint64_t due_ns;
        _Atomic int left_out;
} heap;

static uint64_t module_of(const void *code)
{
        struct afz_module m;
        return code && afz_module_find(NULL, (uint64_t)(uintptr_t)code, &m) == 0 ? m.base : 0;
}

/* Another allocator behind malloc has nothing in libc's heaps, or knows better. */
void afz_heap_start(void)
{
        void *found = dlsym(RTLD_NEXT, "mallinfo2");
        uint64_t libc = module_of(dlsym(RTLD_NEXT, "gnu_get_libc_version"));
        if (libc != 0 && module_of(found) == libc && module_of(dlsym(RTLD_NEXT, "malloc")) == libc)
                memcpy(&heap.ask, &found, sizeof found);
}

void afz_heap_forget(void)
{
        atomic_store(&heap.due_ns, 0);
}

void afz_heap_leave_out(void)
{
        atomic_store(&heap.left_out, 1);
}

void afz_heap_look(struct afz_book *book)
{
        uint64_t began = afz_now_ns(), due = atomic_load(&heap.due_ns);
        if (!heap.ask || began < due || atomic_load(&heap.left_out) ||
            !atomic_compare_exchange_strong(&heap.due_ns, &due, BUSY))
                return;
        struct heap_info info = heap.ask();
        uint64_t now = afz_now_ns(), rest = (now - began) * REST;
        atomic_store_explicit(&book->heap_taken_bytes, info.arena + info.hblkhd,
                              memory_order_relaxed);
        atomic_store_explicit(&book->heap_used_bytes, info.uordblks + info.hblkhd,
                              memory_order_relaxed);
        atomic_store_explicit(&book->heap_ns, now, memory_order_release);
        atomic_store(&heap.due_ns, now + (rest > EVERY_NS ? rest : EVERY_NS));
}
