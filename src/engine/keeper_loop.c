#include "keeper_loop.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fds.h"
#include "keeper_hand.h"
#include "keeper_record.h"
#include "keeper_resident.h"
#include "pidfd.h"
#include "recorder.h"
#include "symbols.h"

enum { MOST_BOOKS = 64, WHY_CAP = 400 };

static const struct {
        uint64_t mean_part;         /* of RAM: so many samples stand for all of it */
        uint64_t mean_least;        /* bytes between two samples */
        uint64_t memory_part;       /* of the budget: more the books may not take, */
        unsigned least_books;       /* but so many there may always be */
        uint64_t look_ns, first_ns; /* between looks; from the first book to the first look */
        uint64_t ghost_ns;          /* a book of the dead is kept so long, for the last look */
        uint64_t together_ns;       /* who died so long before the last one died with it */
        uint64_t fill_ns;           /* a process that lives so long gets all of its book's memory */
        unsigned reads;             /* of page maps, a look: some 2 ms */
} rule = {
        .mean_part = 32768,
        .mean_least = 1 << 20,
        .memory_part = 32,
        .least_books = 6,
        .look_ns = AFZ_NS_PER_S,
        .first_ns = 200 * AFZ_NS_PER_MS,
        .ghost_ns = 3 * AFZ_NS_PER_S,
        .together_ns = AFZ_NS_PER_S,
        .fill_ns = 20 * AFZ_NS_PER_MS, /* shells and their helpers are gone by then */
        .reads = 2048,
};

/* A book that was handed over. */
struct held {
        struct afz_book *book;
        pid_t pid;
        int pidfd;
        int memory_fd;                   /* until it is filled */
        uint64_t fill_ns;                /* when it is to be */
        uint64_t dead_ns;                /* 0: it lives */
        bool told;                       /* what it held when it died was recorded */
        uint32_t number[AFZ_BOOK_SITES]; /* and one more; 0: not known yet */
        struct afz_resident resident;
};

struct keeper {
        const struct afz_keeper_order *order;
        struct afz_sites *sites;
        struct afz_keeper_record record;
        uint64_t mean_bytes;
        unsigned most;
        struct held *held[MOST_BOOKS];
        unsigned books;
        uint64_t next_ns; /* UINT64_MAX: there was no book yet */
        unsigned given, refused;
        uint64_t dropped_sites, dropped_blocks;
        char python[64], why[WHY_CAP]; /* sentences of the books, each once */
};

static uint64_t now_ns(void)
{
        return afz_clock_ns(CLOCK_BOOTTIME);
}

/* ---- a book's life ---- */

/* From here on it is looked at as one that stays. */
static void fill(struct held *h)
{
        (void)afz_book_fill(&h->memory_fd); /* without memory for it, the program pays for it */
        afz_resident_open(&h->resident, (int)h->pid);
}

/* Those whose time has come; when the next one's does. */
static uint64_t fill_due(struct keeper *k, uint64_t t_ns)
{
        uint64_t next_ns = UINT64_MAX;
        for (unsigned i = 0; i < k->books; i++) {
                struct held *h = k->held[i];
                if (h->memory_fd < 0 || h->dead_ns > 0)
                        continue;
                if (h->fill_ns <= t_ns)
                        fill(h);
                else if (h->fill_ns < next_ns)
                        next_ns = h->fill_ns;
        }
        return next_ns;
}

static void note_words(struct keeper *k, const struct afz_book *book)
{
        char why[sizeof book->why], python[sizeof book->python];
        afz_book_words(book->why, sizeof why, why);
        afz_book_words(book->python, sizeof python, python);
        size_t n = strlen(k->why);
        if (why[0] && !strstr(k->why, why) && n + strlen(why) + 3 < sizeof k->why)
                snprintf(k->why + n, sizeof k->why - n, "%s%s", n ? "; " : "", why);
        if (python[0])
                memcpy(k->python, python, sizeof k->python);
        k->dropped_sites += atomic_load(&book->dropped_sites) > 0;
        k->dropped_blocks += atomic_load(&book->dropped_blocks) > 0;
}

static void fold(struct keeper *k, unsigned at)
{
        struct held *h = k->held[at];
        struct afz_book_look look;
        note_words(k, h->book);
        for (unsigned i = 0; i < AFZ_BOOK_SITES; i++)
                if (h->number[i] > 0 && afz_book_look(h->book, i, false, &look))
                        afz_sites_gone(k->sites, h->number[i] - 1, look.total_bytes);
        afz_fd_close(&h->pidfd);
        afz_fd_close(&h->memory_fd);
        afz_resident_close(&h->resident);
        afz_book_unmap(h->book);
        free(h);
        k->held[at] = k->held[--k->books];
}

static void note_death(struct keeper *k, struct held *h)
{
        struct afz_keeper_shared *shared = k->order->shared;
        h->dead_ns = now_ns();
        afz_fd_close(&h->pidfd);
        if (atomic_load(&h->book->inside) == 0 || atomic_load(&h->book->state) == AFZ_BOOK_CLOSED)
                return;
        uint32_t n = atomic_load(&shared->deaths);
        if (n >= AFZ_KEEPER_DEATHS)
                return;
        atomic_store(&shared->inside[n], (int32_t)h->pid);
        atomic_store(&shared->deaths, n + 1);
}

/* Room for one more: of the dead, the one that is dead for longest goes. */
static bool make_room(struct keeper *k)
{
        unsigned oldest = MOST_BOOKS;
        if (k->books < k->most)
                return true;
        for (unsigned i = 0; i < k->books; i++)
                if (k->held[i]->dead_ns > 0 &&
                    (oldest == MOST_BOOKS || k->held[i]->dead_ns < k->held[oldest]->dead_ns))
                        oldest = i;
        if (oldest == MOST_BOOKS)
                return false;
        fold(k, oldest);
        return true;
}

/* A program that was replaced by another in the same process has left its memory. */
static void fold_before(struct keeper *k, pid_t pid)
{
        for (unsigned i = k->books; i-- > 0;)
                if (k->held[i]->pid == pid && k->held[i]->dead_ns == 0)
                        fold(k, i);
}

static int hold(struct keeper *k, int fd, pid_t pid)
{
        int pidfd = afz_pidfd_open(pid);
        struct held *h = pidfd >= 0 ? calloc(1, sizeof *h) : NULL;
        if (!h) {
                if (pidfd >= 0)
                        close(pidfd);
                return -ENOMEM;
        }
        int r = afz_hand_over(fd, pid, k->mean_bytes, &h->book, &h->memory_fd);
        if (r < 0) {
                close(pidfd);
                free(h);
                return r;
        }
        h->pid = pid;
        h->pidfd = pidfd;
        h->resident.fd = -1;
        h->fill_ns = now_ns() + rule.fill_ns;
        k->held[k->books++] = h;
        k->given++;
        return 0;
}

static void serve(struct keeper *k)
{
        struct afz_book_wish wish;
        pid_t pid;
        int fd;
        while ((fd = afz_hand_accept(k->order->listen_fd, &pid, &wish)) != -EAGAIN) {
                if (fd < 0)
                        continue;
                fold_before(k, pid);
                if (!make_room(k) || hold(k, fd, pid) < 0)
                        k->refused++;
                close(fd);
                if (k->next_ns == UINT64_MAX)
                        k->next_ns = now_ns() + rule.first_ns;
        }
}

/* ---- a look ---- */

static void add_site(struct keeper *k, struct held *h, unsigned place, bool counts)
{
        struct afz_book_look look;
        if (!afz_book_look(h->book, place, h->number[place] == 0, &look) || look.total_bytes == 0)
                return;
        if (h->number[place] == 0)
                h->number[place] = 1 + afz_sites_number(k->sites, h->book, &look);
        struct afz_site_count count = {.total_bytes = look.total_bytes};
        if (counts && look.live_bytes > 0) {
                double share = h->resident.known ? (double)h->resident.share[place] : 1;
                count.counted_bytes = (uint64_t)((double)look.large_bytes * share);
                count.live_bytes = look.live_bytes - look.large_bytes + count.counted_bytes;
                count.blocks = look.live_blocks;
                count.early_bytes = (uint64_t)((double)look.early_bytes * (double)count.live_bytes /
                                               (double)look.live_bytes);
        }
        afz_sites_add(k->sites, h->number[place] - 1, &count);
}

static void add_book(struct keeper *k, struct held *h, bool counts, unsigned *reads)
{
        if (atomic_load(&h->book->samples) == 0)
                return;
        if (h->dead_ns == 0)
                afz_resident_look(&h->resident, h->book, reads);
        for (unsigned i = 0; i < AFZ_BOOK_SITES; i++)
                add_site(k, h, i, counts);
}

static uint64_t last_death(const struct keeper *k)
{
        uint64_t last = 0;
        for (unsigned i = 0; i < k->books; i++)
                if (k->held[i]->dead_ns > last)
                        last = k->held[i]->dead_ns;
        return last;
}

/* What a process held when it died is told once; at the end, of all that died with the last. */
static bool counts(const struct keeper *k, const struct held *h, bool last)
{
        if (h->dead_ns == 0 || !h->told)
                return true;
        return last && h->dead_ns + rule.together_ns >= last_death(k);
}

static void look(struct keeper *k, bool last)
{
        uint64_t t_ns = now_ns();
        unsigned reads = rule.reads;
        afz_sites_begin(k->sites);
        for (unsigned i = 0; i < k->books; i++)
                add_book(k, k->held[i], counts(k, k->held[i], last), &reads);
        afz_keeper_record(&k->record, t_ns, last);
        for (unsigned i = k->books; i-- > 0;) {
                struct held *h = k->held[i];
                h->told = h->dead_ns > 0;
                if (!last && h->dead_ns > 0 && h->dead_ns + rule.ghost_ns < t_ns)
                        fold(k, i);
        }
}

/* Whether the probe was there, for who asks why nothing is known. */
static void say(struct keeper *k)
{
        char text[WHY_CAP + 320];
        uint64_t t_ns = now_ns();
        for (unsigned i = 0; i < k->books; i++)
                note_words(k, k->held[i]->book);
        int n = snprintf(text, sizeof text, "the probe was in %u process%s", k->given,
                         k->given == 1 ? "" : "es");
        if (k->python[0])
                n += snprintf(text + n, sizeof text - (size_t)n, ", %s", k->python);
        if (k->refused > 0)
                n += snprintf(text + n, sizeof text - (size_t)n,
                              "; %u more went without (%u at a time have one)", k->refused,
                              k->most);
        if (k->dropped_sites + k->dropped_blocks > 0)
                n += snprintf(text + n, sizeof text - (size_t)n,
                              "; tables were full in %llu of them",
                              (unsigned long long)(k->dropped_sites > k->dropped_blocks
                                                           ? k->dropped_sites
                                                           : k->dropped_blocks));
        snprintf(text + n, sizeof text - (size_t)n, "%s%s", k->why[0] ? "; " : "", k->why);
        afz_recorder_sites_begin(k->order->recorder, t_ns);
        afz_recorder_sites_say(k->order->recorder, t_ns, text);
        afz_recorder_sites_end(k->order->recorder);
}

/* ---- the process ---- */

/* Waits; false when it is over. */
static bool turn(struct keeper *k, int guard_fd)
{
        struct pollfd fds[3 + MOST_BOOKS] = {
                {.fd = k->order->listen_fd, .events = POLLIN},
                {.fd = k->order->word_fd, .events = POLLIN},
                {.fd = guard_fd, .events = POLLIN},
        };
        unsigned books = k->books;
        struct held *held[MOST_BOOKS];
        for (unsigned i = 0; i < books; i++) {
                held[i] = k->held[i];
                fds[3 + i] = (struct pollfd){.fd = held[i]->pidfd, .events = POLLIN};
        }
        uint64_t t_ns = now_ns(), next_ns = fill_due(k, t_ns);
        if (k->next_ns < next_ns)
                next_ns = k->next_ns;
        uint64_t left_ms = next_ns > t_ns ? (next_ns - t_ns) / AFZ_NS_PER_MS + 1 : 0;
        (void)poll(fds, 3 + books, left_ms < 1000 ? (int)left_ms : 1000);
        for (unsigned i = 0; i < books; i++)
                if (fds[3 + i].revents)
                        note_death(k, held[i]);
        if (fds[1].revents || fds[2].revents || getppid() != k->order->guard)
                return false;
        if (fds[0].revents)
                serve(k);
        if (now_ns() >= k->next_ns) {
                look(k, false);
                k->next_ns = now_ns() + rule.look_ns;
        }
        return true;
}

static bool begin(struct keeper *k)
{
        const struct afz_keeper_size *size = &k->order->size;
        uint64_t most = size->budget_bytes / rule.memory_part / AFZ_BOOK_BYTES;
        k->mean_bytes = size->ram_bytes / rule.mean_part;
        if (k->mean_bytes < rule.mean_least)
                k->mean_bytes = rule.mean_least;
        k->most = most > MOST_BOOKS ? MOST_BOOKS : (unsigned)most;
        if (k->most < rule.least_books)
                k->most = rule.least_books;
        if (afz_sites_new(&k->sites) < 0)
                return false;
        k->record = (struct afz_keeper_record){.recorder = k->order->recorder, .sites = k->sites};
        return true;
}

void afz_keeper_loop(const struct afz_keeper_order *order)
{
        struct keeper *k = calloc(1, sizeof *k);
        if (!k)
                return;
        k->order = order;
        k->next_ns = UINT64_MAX;
        int guard_fd = afz_pidfd_open(order->guard);
        if (!begin(k))
                return; /* the process ends, and with it what it has */
        while (turn(k, guard_fd >= 0 ? guard_fd : -1))
                ;
        look(k, true);
        say(k);
}
