#ifndef AFZ_PROBE_H
#define AFZ_PROBE_H
/* The probe: a library that is loaded ahead of a program (LD_PRELOAD), sees its allocations pass,
 * and writes down one of many (wire.h). It uses libc alone, allocates nothing, takes no lock, and
 * when a table is full it drops and counts.
 *
 *   hooks*.c   the functions that it stands in for; each passes on, and counts bytes down
 *   count.c    a block that is due, and its end
 *   sample.c   which allocation is looked at, and for how much it stands
 *   keeper.c   whose book it is: each process has its own
 *   ask.c      gets it from the keeper
 *   book.c     sites, blocks and names in it
 *   module.c   what is loaded
 *   stack.c    where the program stands: native frames (unwind.c, cfi.c) and Python's (py.c)
 *   heap.c     how full malloc's heaps are
 *   room.c     what is refused, because the job has no room for it
 *   refuse.c   and to whom
 *
 * Everything that a hook calls may run in a signal handler's way, on a small stack, before main(),
 * after fork() and while any lock of libc is held: no stdio, no malloc, no dlsym, no large arrays.
 */
#include <stddef.h>
#include <stdint.h>

#include "antifreeze/wire.h"

/* What is not exported is reached without a detour. */
#pragma GCC visibility push(hidden)

#define AFZ_HOT       __attribute__((hot))
#define AFZ_COLD      __attribute__((cold, noinline))
#define AFZ_EXPORT    __attribute__((visibility("default")))
#define AFZ_RARELY(x) ((int)__builtin_expect(!!(x), 0))
/* In the static block of each thread: reading it is one instruction and never allocates. */
#define AFZ_TLS __thread __attribute__((tls_model("initial-exec")))

/* ---- sample.c ---- */

enum { AFZ_LARGE_BYTES = 1 << 20 }; /* from here on every block is written down */

/* What a thread knows. Bytes until the next sample are left_bytes + later_bytes, of which
 * left_bytes is at least 0 and always less than AFZ_LARGE_BYTES: so that one comparison with a
 * block's size finds both a sample that is due and a large block. */
struct afz_sampler {
        int64_t left_bytes, later_bytes;
        uint64_t seed;   /* 0: not begun */
        uint32_t inside; /* the probe is at work in this thread */
};

/* Draws the first distance. */
void afz_sample_begin(struct afz_sampler *sampler, uint64_t seed, uint64_t mean_bytes);

/* A block that is larger than left_bytes: takes it off. Whether it is a sample; then its weight. Of
 * a sampler that has begun. */
struct afz_draw {
        int sampled;
        uint64_t weight_bytes;
};
struct afz_draw afz_sample_draw(struct afz_sampler *sampler, uint64_t size_bytes,
                                uint64_t mean_bytes);

/* ---- ask.c ---- */

/* What the keeper gives: the book, and perhaps the room. */
enum { AFZ_GIVEN_BOOK, AFZ_GIVEN_ROOM, AFZ_GIVEN };

/* Where it is to be asked. 0: that may be. */
int afz_ask_start(const char *path);

/* Asks, or looks for the answer to a question that is open. How many descriptors came, 0: nothing
 * is given; -EAGAIN: the question stays open; other errors: there is nobody. `waits`: up to 1 s,
 * and less where others have just waited in vain. By one thread at a time. */
int afz_ask(int waits, int ret[AFZ_GIVEN]);
void afz_ask_forget(void); /* in the child: an open question is its parent's */
int afz_ask_peer(void);    /* the process that was asked, as this one sees it; 0: not known */

/* ---- keeper.c ---- */

/* Once, before main(): asks for a book if there is a keeper. on_new is called with each book of
 * this process and its children, before it is seen. */
void afz_keeper_start(void (*on_new)(struct afz_book *book));

/* The book of this very process, or NULL: there is none, or not yet. Asks for one in the child of a
 * fork, and looks now and then for one that has not come in time; *ret_new is set with a new one.
 */
struct afz_book *afz_book_mine(int *ret_new);

/* 1: there is a book, or one may still come. */
int afz_book_hoped(void);
/* 1: it was asked for, and has not come in time. */
int afz_book_asked(void);

/* The book if there is one, whosever it is (a child that was cloned without fork() may still have
 * its parent's): for the first look of free(). */
extern struct afz_book *_Atomic afz_book_now;
static inline struct afz_book *afz_book_seen(void)
{
        return atomic_load_explicit(&afz_book_now, memory_order_acquire);
}

/* 1: the book that is seen is this process's own. */
int afz_book_is_mine(void);

int afz_pid(void); /* getpid(), remembered */
uint64_t afz_now_ns(void);
void afz_keeper_end(void); /* the process ends by itself */

/* The program is about to lock itself in, and a system call that it does not make itself may be its
 * end: from here on, in it and all that it starts, we make none. What is freed is seen all the
 * same, what is allocated is not. 0: it could not. Whether it was sealed before. */
int afz_seal(int on);
int afz_is_sealed(void);

/* ---- book.c ---- */

/* Once, after it was handed over. */
void afz_book_prepare(struct afz_book *book);

/* Adds one sentence to what is not seen here. */
void afz_book_say(struct afz_book *book, const char *sentence);
void afz_say(const char *sentence); /* before main(): to this book and all that come */

/* The site of a stack with a block of this size. Never fails: with little room, that of the stack
 * from the program's own innermost line on; without, the kind's site without a stack. */
unsigned afz_book_site(struct afz_book *book, enum afz_site_kind kind, const uint64_t *frame,
                       unsigned frames, uint64_t size_bytes);

/* A text of at most 255 bytes; where it lies in units of 4 bytes, each text once. 0 ("?"): no room.
 */
uint32_t afz_book_name(struct afz_book *book, const char *text);

/* A sampled block. site < 0: none. */
struct afz_taken {
        int site;
        int large; /* counted, not estimated */
        uint64_t size_bytes, weight_bytes, born;
};

void afz_book_add(struct afz_book *book, unsigned site, uint64_t at, uint64_t size_bytes,
                  uint64_t weight_bytes);
/* Takes a block out that may be there, so that it can be put back. */
struct afz_taken afz_book_take(struct afz_book *book, uint64_t at);
void afz_book_put_back(struct afz_book *book, uint64_t at, const struct afz_taken *taken);

/* Where the filter has an address. As it is, without a hash: it is asked at every free, and so
 * neighbours in the heap are neighbours in a cache line. */
static inline unsigned afz_filter_at(uint64_t at)
{
        return (uint16_t)(at >> 4);
}
_Static_assert(AFZ_BOOK_FILTER == 1 << 16, "as many as a uint16_t has");

/* The filter of the book that is seen, or one that is empty. */
extern _Atomic uint8_t *_Atomic afz_filter_now;

/* Whether a block may be there: two loads. */
static inline int afz_book_may_have(uint64_t at)
{
        const _Atomic uint8_t *filter = atomic_load_explicit(&afz_filter_now, memory_order_relaxed);
        return atomic_load_explicit(&filter[afz_filter_at(at)], memory_order_relaxed) != 0;
}

/* ---- stack.c ---- */

void afz_stack_start(void);                     /* once, before main(), in the main thread */
void afz_stack_new_book(struct afz_book *book); /* in the child, before the book is seen */

/* An allocator whose blocks are counted by a hook: what the code around this address maps is not
 * counted again. Only before main(). */
void afz_stack_add_allocator(const void *code);

/* Where the calling thread stands, innermost first, without the probe's own frames. */
struct afz_stack {
        uint64_t frame[AFZ_STACK_MAX];
        int frames;     /* -1: an allocator that maps memory for blocks which are counted */
        int in_handler; /* a signal's, as far as could be seen */
};
void afz_stack_take(struct afz_book *book, enum afz_site_kind kind, struct afz_stack *ret);

/* Whether it runs Python, below whatever else. */
int afz_stack_has_python(struct afz_book *book);

/* ---- step.c ---- */

/* Before it is seen: what this process has told before it had a book. */
void afz_step_new_book(struct afz_book *book);

/* ---- heap.c ---- */

void afz_heap_start(void);     /* once, before main(), where malloc is what the program calls */
void afz_heap_forget(void);    /* in the child of a fork */
void afz_heap_leave_out(void); /* from here on, in this process and its children */

/* Asks libc how full malloc's heaps are, now and then, and writes it down. Waits for malloc's
 * locks, so not from where the calling thread may hold one. */
void afz_heap_look(struct afz_book *book);

/* ---- room.c ---- */

enum {
        AFZ_ROOM_LEAST = 16 << 20
}; /* smaller ones are neither refused nor reckoned with: a library
      may not be ready for a no, and they cost nothing this way */

void afz_room_open(int fd); /* with the first book; the descriptor stays the caller's */

/* How memory is asked for: malloc and realloc, or with an alignment. */
enum afz_ask { AFZ_ASK_PLAIN, AFZ_ASK_ALIGNED };

/* Whether so many bytes that are not there yet may be had by who stands on the stack. Before a no
 * it waits for the guard's next look, some milliseconds mostly. */
int afz_room_grants(uint64_t bytes, enum afz_ask how);
int afz_room_fits(uint64_t bytes);     /* the same, whoever asks, by what is known now */
void afz_room_refused(uint64_t bytes); /* counts it */

/* How much of a range is not there yet. */
uint64_t afz_room_untouched(const void *at, uint64_t size);

/* A block that was granted and of which so much is not touched yet; and its end. */
void afz_room_add(const void *at, uint64_t size, uint64_t untouched);
uint64_t afz_room_gone(uint64_t at); /* how much of it was not touched, as far as is known */
void afz_room_forget(void);          /* in the child of a fork: these are its parent's */

/* ---- refuse.c ---- */

/* Whether who asks can be told no. armed: by any thread. */
int afz_refuse_may(struct afz_book *book, int armed, enum afz_ask how);

#pragma GCC visibility pop

#endif
