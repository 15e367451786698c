/* Memory that is refused. Linux grants every allocation and kills whoever touches too much; under
 * --policy adapt large ones that would take the job over its line fail instead, so that the
 * framework raises and the agent can go on with less (docs/agent.md).
 *
 * How much is left the guard writes into a page that we can only read, some milliseconds old. What
 * was granted and is not touched yet is not in its figure: so there is a short list of large
 * blocks, and for each how much of it is not there yet (mincore). What is measured holds for looks
 * after that moment alone: what was touched between a look and the measurement is in neither.
 *
 * If a request fits by what is known, that is all; where it takes much of the room, blocks are
 * measured for the next one. If it does not, they are measured and the next look is waited for,
 * which also knows what was freed meanwhile; then it is decided. A guard that looks no more refuses
 * nothing.
 *
 * Processes of one job (ranks of a training) ask for memory at the same moment. So each says beside
 * the guard's page what it was just granted, before it looks whether that fits with what the others
 * say: of two that ask at once at least one sees the other. What is said holds for as long as it
 * takes to touch it; who would be refused for it alone waits until it is over. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "antifreeze/step.h"
#include "hooks.h"

#define MS        UINT64_C(1000000)
#define STALE_NS  (1000 * MS)  /* a guard looks ten times in this, at least */
#define WAIT_NS   (250 * MS)   /* for a look: two of a guard that has nothing to do, and late */
#define TURN_NS   (1 * MS)     /* and every so often it is seen whether it has come */
#define AGAIN_NS  (100 * MS)   /* who only asks how much is left has blocks measured so often */
#define FRESH_NS  (300 * MS)   /* what was granted is touched in this, and 2 ns a byte: 0.5 GB/s */
#define OTHERS_NS (3000 * MS)  /* for what others are granted meanwhile, at most */
#define LEFT_NS   (10000 * MS) /* a promise that is over for so long is another process's to take */
/* What nobody touched for so long is not about to be: sparse tables, what libraries keep. */
#define UNUSED_NS (10000 * MS)

enum {
        LISTED = 1024, /* blocks; more are not reckoned with */
        WINDOW = 64,   /* pages that are asked for at once, a byte of the stack each */
        WINDOWS = 256, /* of a block; of one that is larger than all these, so many all over it:
                          some 0.1 ms, and right to a 256th of it */
        MUCH = 2,      /* of the room, one part in so many */
};

static struct {
        const struct afz_room *_Atomic page; /* NULL: nothing is refused */
        uint64_t page_bytes;                 /* of this machine */
        _Atomic int armed;
        _Atomic unsigned listed;      /* the highest that ever was, + 1 */
        struct afz_promise *promises; /* of all processes; NULL: none */
        struct afz_promise *_Atomic mine;
        _Atomic uint64_t owner; /* our number */
        _Atomic int claiming;   /* a thread of ours looks for one */
} room;

static struct block {
        _Atomic uint64_t at; /* 0: free, 1: in work */
        _Atomic uint64_t size;
        _Atomic uint64_t untouched;             /* at most, for looks up to measured_ns, */
        _Atomic uint64_t measured, measured_ns; /* and for those after it */
        _Atomic uint64_t used_ns;               /* when some of it was last seen to be touched */
        _Atomic uint64_t born_ns;
} list[LISTED];

#define LOAD(member)       atomic_load_explicit(&(member), memory_order_relaxed)
#define STORE(member, val) atomic_store_explicit(&(member), (val), memory_order_relaxed)

/* ---- the page ---- */

static void open_promises(int fd)
{
        size_t size = AFZ_ROOM_FILE_BYTES - AFZ_ROOM_PROMISES_AT;
        void *at = (void *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                                   (off_t)AFZ_ROOM_PROMISES_AT);
        room.promises = at == MAP_FAILED ? NULL : at;
}

/* By the system call: our own mmap() counts. A file that can shrink under us is refused. */
void afz_room_open(int fd)
{
        struct stat about;
        int seals = fcntl(fd, F_GET_SEALS);
        if (atomic_load(&room.page) || seals < 0 || !(seals & F_SEAL_SHRINK) ||
            fstat(fd, &about) < 0 || about.st_size < AFZ_ROOM_BYTES)
                return;
        const struct afz_room *page = (const struct afz_room *)syscall(
                SYS_mmap, NULL, (size_t)AFZ_ROOM_BYTES, PROT_READ, MAP_SHARED, fd, (off_t)0);
        if (page == MAP_FAILED)
                return;
        room.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        if (page->magic != AFZ_ROOM_MAGIC) {
                (void)syscall(SYS_munmap, page, (size_t)AFZ_ROOM_BYTES);
                return;
        }
        if ((uint64_t)about.st_size >= AFZ_ROOM_FILE_BYTES)
                open_promises(fd);
        atomic_store(&room.page, page);
}

/* What the last look said. The guard writes the time last, so what is read after it is of that look
 * or a later one. */
struct look {
        uint64_t t_ns, room_bytes;
};

/* 0: nothing is refused. */
static int last_look(uint64_t now_ns, struct look *ret)
{
        const struct afz_room *page = atomic_load_explicit(&room.page, memory_order_relaxed);
        if (!page)
                return 0;
        ret->t_ns = atomic_load_explicit(&page->looked_ns, memory_order_acquire);
        ret->room_bytes = LOAD(page->room_bytes);
        return ret->room_bytes != AFZ_ROOM_ALL && now_ns < ret->t_ns + STALE_NS;
}

/* ---- what is not touched yet ---- */

static uint64_t absent_pages(uint64_t from, uint64_t pages)
{
        unsigned char there[WINDOW];
        uint64_t absent = 0;
        if (syscall(SYS_mincore, from, pages * room.page_bytes, there) < 0)
                return 0; /* not mapped any more */
        for (uint64_t i = 0; i < pages; i++)
                absent += !(there[i] & 1);
        return absent;
}

uint64_t afz_room_untouched(const void *at, uint64_t size)
{
        uint64_t page = room.page_bytes, from = (uint64_t)(uintptr_t)at / page * page;
        if (page == 0 || size == 0)
                return 0;
        uint64_t pages = ((uint64_t)(uintptr_t)at + size - from + page - 1) / page;
        uint64_t windows = (pages + WINDOW - 1) / WINDOW, asked = 0, absent = 0;
        uint64_t step = windows > WINDOWS ? windows / WINDOWS : 1;
        for (uint64_t w = 0; w < windows; w += step) {
                uint64_t n = pages - w * WINDOW < WINDOW ? pages - w * WINDOW : WINDOW;
                absent += absent_pages(from + w * WINDOW * page, n);
                asked += n;
        }
        double share = (double)absent / (double)asked;
        return (uint64_t)((double)size * share);
}

static uint64_t untouched_of(const struct block *b, uint64_t look_ns)
{
        return look_ns > LOAD(b->measured_ns) ? LOAD(b->measured) : LOAD(b->untouched);
}

static uint64_t untouched_of_all(uint64_t look_ns)
{
        unsigned n = LOAD(room.listed);
        uint64_t sum = 0;
        for (unsigned i = 0; i < n; i++)
                if (LOAD(list[i].at) > 1)
                        sum += untouched_of(&list[i], look_ns);
        return sum;
}

static void measure(struct block *b, uint64_t look_ns, uint64_t now_ns)
{
        uint64_t before = untouched_of(b, look_ns);
        uint64_t now = afz_room_untouched((const void *)(uintptr_t)LOAD(b->at), /* NOLINT */
                                          LOAD(b->size));
        if (now < before)
                STORE(b->used_ns, now_ns);
        else if (now_ns > LOAD(b->used_ns) + UNUSED_NS)
                now = 0;
        STORE(b->untouched, before);
        STORE(b->measured, now);
        STORE(b->measured_ns, now_ns);
}

/* Those that were last measured before this time. What is all there stays so. */
static void measure_all(uint64_t before_ns, uint64_t look_ns, uint64_t now_ns)
{
        unsigned n = LOAD(room.listed);
        for (unsigned i = 0; i < n; i++)
                if (LOAD(list[i].at) > 1 && LOAD(list[i].measured_ns) < before_ns &&
                    untouched_of(&list[i], look_ns) > 0)
                        measure(&list[i], look_ns, now_ns);
}

/* ---- what other processes were granted ---- */

static uint64_t fresh_ns(uint64_t bytes)
{
        return FRESH_NS + (bytes < LEFT_NS / 2 ? bytes * 2 : LEFT_NS);
}

static uint64_t promised_to_others(uint64_t now_ns)
{
        const struct afz_promise *mine = LOAD(room.mine);
        uint64_t sum = 0;
        if (!room.promises)
                return 0;
        for (unsigned i = 0; i < AFZ_ROOM_PROMISES; i++) {
                const struct afz_promise *p = &room.promises[i];
                if (p != mine && atomic_load(&p->until_ns) > now_ns)
                        sum += atomic_load(&p->bytes);
        }
        return sum;
}

/* When all that others are promised now is over; no promise is for longer than the longest. */
static uint64_t others_end_ns(uint64_t now_ns)
{
        const struct afz_promise *mine = LOAD(room.mine);
        uint64_t end = now_ns, longest = now_ns + FRESH_NS + LEFT_NS;
        for (unsigned i = 0; room.promises && i < AFZ_ROOM_PROMISES; i++) {
                uint64_t until = LOAD(room.promises[i].until_ns);
                if (&room.promises[i] != mine && until > end)
                        end = until;
        }
        return end < longest ? end : longest;
}

/* NULL: none, or it is another process's by now. */
static struct afz_promise *own_promise(void)
{
        struct afz_promise *mine = LOAD(room.mine);
        return mine && LOAD(mine->owner) == LOAD(room.owner) ? mine : NULL;
}

static struct afz_promise *claim_promise(uint64_t now_ns)
{
        for (unsigned i = 0; i < AFZ_ROOM_PROMISES; i++) {
                struct afz_promise *p = &room.promises[i];
                uint64_t owner = LOAD(p->owner);
                if ((owner != 0 && LOAD(p->until_ns) + LEFT_NS > now_ns) ||
                    !atomic_compare_exchange_strong(&p->owner, &owner, now_ns))
                        continue;
                STORE(p->bytes, 0);
                STORE(p->until_ns, now_ns);
                STORE(room.owner, now_ns);
                STORE(room.mine, p);
                return p;
        }
        return NULL;
}

/* Ours, or one that nobody has; NULL: there is none. Others may take it when it is long over. Two
 * threads must not take one each: the one would think that the other's is another process's. */
static struct afz_promise *promise(uint64_t now_ns)
{
        struct afz_promise *p = own_promise();
        if (p || !room.promises || atomic_exchange(&room.claiming, 1))
                return p;
        p = own_promise(); /* of a thread that was quicker */
        if (!p)
                p = claim_promise(now_ns);
        atomic_store(&room.claiming, 0);
        return p;
}

/* Said before it is looked at what others say, and in one order for all. */
static void promise_more(struct afz_promise *p, uint64_t bytes, uint64_t now_ns)
{
        uint64_t until = now_ns + fresh_ns(bytes);
        if (LOAD(p->until_ns) <= now_ns)
                STORE(p->bytes, 0);
        if (until > LOAD(p->until_ns))
                atomic_store(&p->until_ns, until);
        (void)atomic_fetch_add(&p->bytes, bytes);
}

/* Anew, by what is in the list. */
static void promise_listed(uint64_t look_ns, uint64_t now_ns)
{
        struct afz_promise *p = promise(now_ns);
        unsigned n = LOAD(room.listed);
        uint64_t sum = 0, until = now_ns;
        for (unsigned i = 0; p && i < n; i++) {
                uint64_t ends = LOAD(list[i].born_ns) + fresh_ns(LOAD(list[i].size));
                if (LOAD(list[i].at) <= 1 || ends <= now_ns)
                        continue;
                sum += untouched_of(&list[i], look_ns);
                until = ends > until ? ends : until;
        }
        if (p) {
                STORE(p->bytes, sum);
                STORE(p->until_ns, until);
        }
}

/* ---- the list ---- */

/* Empty, or of a block that is all there. */
static int claim(struct block *b, uint64_t look_ns)
{
        uint64_t at = LOAD(b->at);
        if (at == 1 || (at > 1 && untouched_of(b, look_ns) > 0))
                return 0;
        return atomic_compare_exchange_strong(&b->at, &at, 1);
}

void afz_room_add(const void *at, uint64_t size, uint64_t untouched)
{
        uint64_t now = afz_now_ns();
        struct look look;
        if (!at || !last_look(now, &look))
                return;
        (void)afz_room_gone((uint64_t)(uintptr_t)at); /* freed where we did not see it */
        for (unsigned i = 0; i < LISTED; i++) {
                struct block *b = &list[i];
                if (!claim(b, look.t_ns))
                        continue;
                STORE(b->size, size);
                STORE(b->untouched, untouched);
                STORE(b->measured, untouched);
                STORE(b->measured_ns, now);
                STORE(b->used_ns, now);
                STORE(b->born_ns, now);
                unsigned n = LOAD(room.listed);
                while (n <= i && !atomic_compare_exchange_weak(&room.listed, &n, i + 1))
                        ;
                atomic_store_explicit(&b->at, (uint64_t)(uintptr_t)at, memory_order_release);
                break;
        }
        promise_listed(look.t_ns, now);
}

uint64_t afz_room_gone(uint64_t at)
{
        unsigned n = LOAD(room.listed);
        uint64_t untouched = 0;
        struct look look = {0};
        (void)last_look(0, &look); /* however old it is */
        for (unsigned i = 0; i < n; i++) {
                uint64_t there = at;
                if (LOAD(list[i].at) != at)
                        continue;
                uint64_t of_it = untouched_of(&list[i], look.t_ns);
                if (atomic_compare_exchange_strong(&list[i].at, &there, 0))
                        untouched = of_it;
        }
        if (untouched > 0)
                promise_listed(look.t_ns, afz_now_ns());
        return untouched;
}

void afz_room_forget(void)
{
        unsigned n = LOAD(room.listed);
        for (unsigned i = 0; i < n; i++)
                STORE(list[i].at, 0);
        STORE(room.mine, NULL);
        STORE(room.claiming, 0);
}

/* ---- refusing ---- */

static int fits(uint64_t bytes, uint64_t room_bytes, uint64_t taken_bytes)
{
        return bytes <= room_bytes && taken_bytes <= room_bytes - bytes;
}

int afz_room_fits(uint64_t bytes)
{
        struct look look;
        uint64_t now = afz_now_ns();
        return !last_look(now, &look) ||
               fits(bytes, look.room_bytes, untouched_of_all(look.t_ns) + promised_to_others(now));
}

/* The same, and what fits is promised. */
static int fits_with_others(uint64_t bytes)
{
        struct look look;
        uint64_t now = afz_now_ns();
        if (!last_look(now, &look))
                return 1;
        if (!fits(bytes, look.room_bytes, untouched_of_all(look.t_ns)))
                return 0;
        struct afz_promise *p = promise(now);
        if (p)
                promise_more(p, bytes, now);
        int fit = afz_room_fits(bytes);
        if (p && !fit)
                promise_listed(look.t_ns, now);
        return fit;
}

/* So that the next request is decided by what is there then, and need not wait. */
static int fits_well(uint64_t bytes)
{
        struct look look;
        uint64_t now = afz_now_ns();
        if (!last_look(now, &look))
                return 1;
        if (!fits_with_others(bytes))
                return 0;
        uint64_t taken = untouched_of_all(look.t_ns);
        if (taken > 0 && !fits(bytes, look.room_bytes / MUCH, taken))
                measure_all(look.t_ns, look.t_ns, now);
        return 1;
}

/* One that began after this moment. 0: none came. Who was frozen meanwhile finds one at its end. */
static int wait_for_look(uint64_t after_ns)
{
        const struct timespec turn = {.tv_nsec = TURN_NS};
        struct look look;
        for (uint64_t now = after_ns; last_look(now, &look); now = afz_now_ns()) {
                if (look.t_ns > after_ns)
                        return 1;
                if (now >= after_ns + WAIT_NS)
                        return 0;
                (void)syscall(SYS_nanosleep, &turn, NULL);
        }
        return 0;
}

static int decide(uint64_t bytes, enum afz_ask how)
{
        struct look look;
        int is_new = 0;
        struct afz_book *book = afz_book_mine(&is_new);
        if (is_new) /* as in count.c */
                afz_sampler.seed = 0;
        if (!book || !afz_refuse_may(book, LOAD(room.armed) > 0, how))
                return 1;
        uint64_t now = afz_now_ns();
        if (!last_look(now, &look))
                return 1;
        measure_all(now, look.t_ns, now);
        uint64_t others = others_end_ns(now), end = now + OTHERS_NS;
        end = others > end ? others : end;
        while (wait_for_look(now = afz_now_ns())) {
                if (fits_with_others(bytes))
                        return 1;
                if (now >= end || !last_look(now, &look) ||
                    !fits(bytes, look.room_bytes, untouched_of_all(look.t_ns)))
                        return 0; /* not for others' sake */
        }
        return 1;
}

int afz_room_grants(uint64_t bytes, enum afz_ask how)
{
        if (bytes < AFZ_ROOM_LEAST || !LOAD(room.page) || afz_sampler.inside || afz_is_sealed())
                return 1;
        int saved = errno;
        afz_sampler.inside++;
        int granted = fits_well(bytes) || decide(bytes, how);
        afz_sampler.inside--;
        errno = saved;
        return granted;
}

void afz_room_refused(uint64_t bytes)
{
        struct afz_book *book = afz_book_seen();
        if (!book || !afz_book_is_mine())
                return;
        atomic_fetch_add(&book->refused, 1);
        atomic_fetch_add(&book->refused_bytes, bytes);
}

/* ---- for the program ---- */

AFZ_EXPORT void antifreeze_arm(int by)
{
        atomic_fetch_add(&room.armed, by);
}

/* As it is measured now, though what was touched since the last look is in neither figure: nobody
 * is refused by it. */
AFZ_EXPORT uint64_t antifreeze_room(void)
{
        struct look look;
        uint64_t now = afz_now_ns();
        if (!last_look(now, &look) || afz_is_sealed())
                return AFZ_ROOM_ALL;
        int saved = errno;
        measure_all(now - AGAIN_NS, look.t_ns, now);
        errno = saved;
        uint64_t taken = untouched_of_all(UINT64_MAX) + promised_to_others(now);
        return look.room_bytes > taken ? look.room_bytes - taken : 0;
}
