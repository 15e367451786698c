#include "keeper_loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "keeper_hand.h"
#include "keeper_state.h"
#include "out.h"
#include "pidfd.h"
#include "recorder.h"

static const struct {
        uint64_t mean_part;         /* of RAM: so many samples stand for all of it */
        uint64_t mean_least;        /* bytes between two samples */
        uint64_t memory_part;       /* of the budget: more the books may not take, */
        unsigned least_books;       /* but so many there may always be */
        uint64_t look_ns, first_ns; /* between looks; from the first book to the first look */
        unsigned at_once;           /* who are served before anything else is done */
        int no_room_ms;             /* who cannot be let in is not tried again for so long */
} rule = {
        .mean_part = 32768,
        .mean_least = 1 << 20,
        .memory_part = 32,
        .least_books = 6,
        .look_ns = AFZ_NS_PER_S,
        .first_ns = 200 * AFZ_NS_PER_MS,
        .at_once = 64,
        .no_room_ms = 10,
};

static uint64_t now_ns(void)
{
        return afz_clock_ns(CLOCK_BOOTTIME);
}

/* ---- words ---- */

/* Whether the probe is there, for who asks why nothing is known; `all`: of the whole run, at its
 * end. */
static void describe(struct afz_keeping *k, bool all, char *buf, size_t cap)
{
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        unsigned in = 0, full = k->full;
        for (unsigned i = 0; i < k->books; i++) {
                afz_keeper_note(k, k->held[i]->book);
                full += afz_keeper_was_full(k->held[i]->book);
                in += k->held[i]->dead_ns == 0;
        }
        if (all)
                in = k->given;
        afz_out_fmt(&out, "the probe %s in %u process%s", all ? "was" : "is", in,
                    in == 1 ? "" : "es");
        if (k->python[0])
                afz_out_fmt(&out, ", %s", k->python);
        if (k->refused > 0)
                afz_out_fmt(&out, "; %u more went without (%u at a time have one)", k->refused,
                            k->most);
        if (full > 0)
                afz_out_fmt(&out, "; tables were full in %u of them", full);
        afz_out_fmt(&out, "%s%s", k->why[0] ? "; " : "", k->why);
        buf[out.len] = '\0';
}

static void say(struct afz_keeping *k)
{
        char text[AFZ_KEEPER_WHY_CAP + 320];
        uint64_t t_ns = now_ns();
        describe(k, true, text, sizeof text);
        afz_recorder_sites_begin(k->order->recorder, t_ns);
        afz_recorder_sites_say(k->order->recorder, t_ns, text);
        afz_recorder_sites_end(k->order->recorder);
}

/* ---- who comes ---- */

static void answer(struct afz_keeping *k, int fd)
{
        struct afz_keeper_answer a = {.magic = afz_keeper_ask_magic, .looked_ns = k->looked_ns};
        for (unsigned i = 0; i < k->books; i++) {
                const struct afz_held *h = k->held[i];
                a.processes += h->dead_ns == 0;
                if (h->dead_ns == 0 && h->inside.now.step > a.step)
                        a.step = h->inside.now.step;
                if (h->dead_ns == 0)
                        afz_keeper_answer_told(h->inside.now.told, &a);
        }
        if (k->looked_ns > 0)
                afz_keeper_answer(k->sites, &k->past, k->looked_ns, &a);
        describe(k, false, a.words, sizeof a.words);
        (void)send(fd, &a, sizeof a, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* False: nobody could be let in, though somebody waits: there is no descriptor left for it. */
static bool serve(struct afz_keeping *k)
{
        struct afz_book_wish wish;
        pid_t pid;
        for (unsigned i = 0; i < rule.at_once; i++) {
                int fd = afz_hand_accept(k->order->listen_fd, &pid, &wish);
                if (fd == -EAGAIN)
                        return i > 0;
                if (fd < 0)
                        continue;
                if (wish.magic == afz_keeper_ask_magic)
                        answer(k, fd);
                else
                        afz_keeper_give(k, fd, pid, wish.program);
                close(fd);
                if (k->books > 0 && k->next_ns == UINT64_MAX)
                        k->next_ns = now_ns() + rule.first_ns;
        }
        return true;
}

/* Words of the guard's: each byte asks for a look. False: it has let go, or is gone. */
static bool hear(struct afz_keeping *k)
{
        struct afz_keeper_shared *shared = k->order->shared;
        char words[64];
        ssize_t n = recv(k->order->word_fd, words, sizeof words, MSG_DONTWAIT);
        uint32_t asked = atomic_load(&shared->asked); /* each was counted before it was sent */
        if (n <= 0)
                return n < 0 && (errno == EAGAIN || errno == EINTR);
        afz_keeper_look(k, now_ns(), false);
        atomic_store(&shared->looked, asked);
        return true;
}

/* ---- the process ---- */

/* Waits; false when it is over. */
static bool turn(struct afz_keeping *k, int guard_fd)
{
        struct pollfd fds[3 + AFZ_KEEPER_BOOKS] = {
                {.fd = k->order->listen_fd, .events = POLLIN},
                {.fd = k->order->word_fd, .events = POLLIN},
                {.fd = guard_fd, .events = POLLIN},
        };
        unsigned books = k->books;
        struct afz_held *held[AFZ_KEEPER_BOOKS];
        for (unsigned i = 0; i < books; i++) {
                held[i] = k->held[i];
                fds[3 + i] = (struct pollfd){.fd = held[i]->pidfd, .events = POLLIN};
        }
        uint64_t t_ns = now_ns(), next_ns = afz_keeper_fill(k, t_ns);
        if (k->next_ns < next_ns)
                next_ns = k->next_ns;
        uint64_t left_ms = next_ns > t_ns ? (next_ns - t_ns) / AFZ_NS_PER_MS + 1 : 0;
        (void)poll(fds, 3 + books, left_ms < 1000 ? (int)left_ms : 1000);
        for (unsigned i = 0; i < books; i++)
                if (fds[3 + i].revents)
                        afz_keeper_bury(k, held[i]);
        if (fds[2].revents || getppid() != k->order->guard || (fds[1].revents && !hear(k)))
                return false;
        if (fds[0].revents && !serve(k))
                (void)poll(NULL, 0, rule.no_room_ms);
        if (now_ns() >= k->next_ns) {
                afz_keeper_look(k, now_ns(), false);
                k->next_ns = now_ns() + rule.look_ns;
        }
        return true;
}

static bool begin(struct afz_keeping *k)
{
        const struct afz_keeper_plan *plan = &k->order->plan;
        uint64_t most = plan->budget_bytes / rule.memory_part / AFZ_BOOK_BYTES;
        k->mean_bytes = plan->ram_bytes / rule.mean_part;
        if (k->mean_bytes < rule.mean_least)
                k->mean_bytes = rule.mean_least;
        k->most = most > AFZ_KEEPER_BOOKS ? AFZ_KEEPER_BOOKS : (unsigned)most;
        if (k->most < rule.least_books)
                k->most = rule.least_books;
        if (afz_sites_new(&k->sites) < 0)
                return false;
        k->record = (struct afz_keeper_record){.recorder = k->order->recorder, .sites = k->sites};
        return true;
}

void afz_keeper_loop(const struct afz_keeper_order *order)
{
        struct afz_keeping *k = calloc(1, sizeof *k);
        if (!k)
                return;
        k->order = order;
        k->next_ns = UINT64_MAX;
        int guard_fd = afz_pidfd_open(order->guard);
        if (!begin(k))
                return; /* the process ends, and with it what it has */
        while (turn(k, guard_fd >= 0 ? guard_fd : -1))
                ;
        afz_keeper_look(k, now_ns(), true);
        say(k);
}
