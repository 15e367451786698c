/* A book's life: handed over, filled, its process's death, folded into the sums. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fds.h"
#include "keeper_hand.h"
#include "keeper_state.h"
#include "pidfd.h"

/* A process that lives so long gets all of its book's memory: shells and their helpers are gone by
 * then. */
#define FILL_NS (20 * AFZ_NS_PER_MS)

/* From here on it is looked at as one that stays. */
static void fill(struct afz_held *h)
{
        (void)afz_book_fill(&h->memory_fd); /* without memory for it, the program pays for it */
        afz_resident_open(&h->resident, (int)h->pid);
}

uint64_t afz_keeper_fill(struct afz_keeping *k, uint64_t t_ns)
{
        uint64_t next_ns = UINT64_MAX;
        bool filled = false;
        for (unsigned i = 0; i < k->books; i++) {
                struct afz_held *h = k->held[i];
                if (h->memory_fd < 0 || h->dead_ns > 0)
                        continue;
                if (h->fill_ns <= t_ns && !filled) {
                        fill(h);
                        filled = true;
                } else if (h->fill_ns < next_ns) {
                        next_ns = h->fill_ns;
                }
        }
        return next_ns;
}

void afz_keeper_note(struct afz_keeping *k, const struct afz_book *book)
{
        char why[sizeof book->why], python[sizeof book->python];
        afz_book_words(book->why, sizeof why, why);
        afz_book_words(book->python, sizeof python, python);
        size_t n = strlen(k->why);
        if (why[0] && !strstr(k->why, why) && n + strlen(why) + 3 < sizeof k->why)
                snprintf(k->why + n, sizeof k->why - n, "%s%s", n ? "; " : "", why);
        if (python[0])
                memcpy(k->python, python, sizeof k->python);
}

bool afz_keeper_was_full(const struct afz_book *book)
{
        return atomic_load(&book->dropped_sites) > 0 || atomic_load(&book->dropped_blocks) > 0;
}

void afz_keeper_fold(struct afz_keeping *k, unsigned at)
{
        struct afz_held *h = k->held[at];
        struct afz_book_look look;
        afz_keeper_note(k, h->book);
        k->full += afz_keeper_was_full(h->book);
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

void afz_keeper_bury(struct afz_keeping *k, struct afz_held *h)
{
        struct afz_keeper_shared *shared = k->order->shared;
        h->dead_ns = afz_clock_ns(CLOCK_BOOTTIME);
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
static bool make_room(struct afz_keeping *k)
{
        unsigned oldest = AFZ_KEEPER_BOOKS;
        if (k->books < k->most)
                return true;
        for (unsigned i = 0; i < k->books; i++)
                if (k->held[i]->dead_ns > 0 &&
                    (oldest == AFZ_KEEPER_BOOKS || k->held[i]->dead_ns < k->held[oldest]->dead_ns))
                        oldest = i;
        if (oldest == AFZ_KEEPER_BOOKS)
                return false;
        afz_keeper_fold(k, oldest);
        return true;
}

/* A program that was replaced by another in the same process has left its memory. */
static void fold_before(struct afz_keeping *k, pid_t pid)
{
        for (unsigned i = k->books; i-- > 0;)
                if (k->held[i]->pid == pid && k->held[i]->dead_ns == 0)
                        afz_keeper_fold(k, i);
}

static int hold(struct afz_keeping *k, int fd, pid_t pid, const char *program)
{
        int pidfd = afz_pidfd_open(pid);
        struct afz_held *h = pidfd >= 0 ? calloc(1, sizeof *h) : NULL;
        if (!h) {
                if (pidfd >= 0)
                        close(pidfd);
                return -ENOMEM;
        }
        const struct afz_hand hand = {pid, k->mean_bytes, k->order->room_fd};
        int r = afz_hand_over(fd, &hand, &h->book, &h->memory_fd);
        if (r < 0) {
                close(pidfd);
                free(h);
                return r;
        }
        h->pid = pid;
        h->pidfd = pidfd;
        h->resident.fd = -1;
        h->given_ns = afz_clock_ns(CLOCK_BOOTTIME);
        h->fill_ns = h->given_ns + FILL_NS;
        afz_book_words(program, sizeof h->inside.name, h->inside.name);
        k->held[k->books++] = h;
        k->given++;
        return 0;
}

void afz_keeper_give(struct afz_keeping *k, int fd, pid_t pid, const char *program)
{
        fold_before(k, pid);
        if (!make_room(k) || hold(k, fd, pid, program) < 0)
                k->refused++;
}
