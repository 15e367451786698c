#include "control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "control_line.h"
#include "control_socket.h"

enum {
        /* Packets and callers that one turn may take. An agent sends one or two in an hour; 64 take
         * some 250 us, well below the shortest tick (2 ms). */
        BURST = 64,
        /* And a second: at 4 us each a flood costs 0.2 % of a core. */
        RATE = 500,
        /* After a flood nobody is heard until so many may be taken at once, so that it wakes the
         * guard 16 times a second and not 500 times. */
        RESUME = 32,
        /* At the end: what all queues together can hold, and more. */
        LAST_TOKENS = 100000,
        /* Beyond the clients: those who are told that there is no room, and those set aside. */
        SPARE = 4,
        SLOTS = AFZ_CONTROL_CLIENTS + SPARE,
        RUN_ID_CAP = 64,
};

enum client_state {
        FREE,
        OPEN,
        LEAVING, /* hung up on; what it sent before is still to be looked through */
        ASIDE,   /* has sent descriptors: neither read nor closed any more */
};

struct client {
        enum client_state state;
        struct afz_peer peer;
        bool greeted;
        uint32_t abilities;
        enum afz_ack ack; /* to the present request */
};

/* The last checkpoint request. Who saved and left is counted here: its place may be another's. */
struct request {
        uint64_t number;
        int asked, saved;
        char path[AFZ_CONTROL_LINE], reason[AFZ_CONTROL_LINE];
};

struct afz_control {
        int fd;
        char path[sizeof((struct sockaddr_un *)NULL)->sun_path];
        char run_id[RUN_ID_CAP];
        struct afz_control_calls calls;
        struct client client[SLOTS];
        unsigned first; /* who is served first in the next turn */
        struct request request;

        /* A bucket of packets that may be taken. */
        unsigned tokens;
        uint64_t filled_ns;
        bool hushed;
};

int afz_control_new(const char *path, const char *run_id, const struct afz_control_calls *calls,
                    struct afz_control **ret)
{
        struct afz_control *c = calloc(1, sizeof *c);
        if (!c)
                return -ENOMEM;
        c->fd = afz_control_listen(path);
        if (c->fd < 0) {
                int r = c->fd;
                free(c);
                return r;
        }
        strcpy(c->path, path); /* listening has measured it */
        (void)afz_span_copy(afz_span_str(run_id), c->run_id, sizeof c->run_id);
        c->calls = *calls;
        c->tokens = BURST;
        *ret = c;
        return 0;
}

static unsigned count_open(const struct afz_control *c)
{
        unsigned n = 0;
        for (unsigned i = 0; i < SLOTS; i++)
                n += c->client[i].state == OPEN;
        return n;
}

static struct client *free_slot(struct afz_control *c)
{
        for (unsigned i = 0; i < SLOTS; i++)
                if (c->client[i].state == FREE)
                        return &c->client[i];
        return NULL;
}

static bool take_token(struct afz_control *c)
{
        if (c->tokens == 0)
                return false;
        c->hushed = --c->tokens == 0;
        return true;
}

static void refill(struct afz_control *c, uint64_t now_ns)
{
        const uint64_t each_ns = AFZ_NS_PER_S / RATE;
        if (c->filled_ns == 0 || now_ns < c->filled_ns)
                c->filled_ns = now_ns;
        uint64_t more = (now_ns - c->filled_ns) / each_ns;
        c->filled_ns += more * each_ns;
        c->tokens = more >= BURST - c->tokens ? BURST : c->tokens + (unsigned)more;
        if (c->tokens >= RESUME)
                c->hushed = false;
}

/* Looks through what it sent before we hung up, for descriptors: closing would let go of those. */
static void see_off(struct afz_control *c, struct client *client)
{
        char buf[1];
        pid_t sender;
        while (take_token(c)) {
                ssize_t n = afz_control_receive(client->peer.fd, buf, sizeof buf, &sender);
                if (n == -EBADF) {
                        client->state = ASIDE;
                        return;
                }
                if (n == -ENOTCONN || n == -EAGAIN) {
                        close(client->peer.fd);
                        client->state = FREE;
                        return;
                }
        }
}

static bool is_pending(enum afz_ack ack)
{
        return ack == AFZ_ACK_ASKED || ack == AFZ_ACK_SAVING;
}

static void hang_up(struct afz_control *c, struct client *client)
{
        (void)shutdown(client->peer.fd, SHUT_RDWR); /* from here on it cannot send */
        if (client->peer.pidfd >= 0)
                close(client->peer.pidfd);
        client->peer.pidfd = -1;
        client->ack = AFZ_ACK_NONE;
        client->abilities = 0;
        client->greeted = false;
        client->state = LEAVING;
        see_off(c, client);
}

/* Who does not take its lines is as good as gone, and must not fill memory. Who is gone may have
 * left words, which are read first. */
static bool say(struct afz_control *c, struct client *client, const char *word, const char *text)
{
        char raw[AFZ_CONTROL_LINE], line[AFZ_CONTROL_LINE];
        (void)snprintf(raw, sizeof raw, "%s%s%s", word, *text ? " " : "", text);
        size_t n = afz_span_copy(afz_span_str(raw), line, sizeof line);
        int r = afz_control_send(client->peer.fd, line, n);
        if (r >= 0 || r == -EPIPE)
                return true;
        hang_up(c, client);
        return false;
}

static void refuse(struct afz_control *c, struct client *client, const char *why)
{
        if (say(c, client, "error", why))
                hang_up(c, client);
}

static bool is_let_in(uid_t uid)
{
        return uid == geteuid() || uid == 0;
}

/* An accept that fails (no descriptors left) takes its token as well: it must not keep us awake. */
static void accept_new(struct afz_control *c)
{
        struct client *slot;
        while (c->tokens > 0 && (slot = free_slot(c))) {
                struct afz_peer peer;
                int r = afz_control_accept(c->fd, &peer);
                if (r == -EAGAIN)
                        return;
                (void)take_token(c);
                if (r < 0)
                        continue;
                bool room = count_open(c) < AFZ_CONTROL_CLIENTS;
                *slot = (struct client){.state = OPEN, .peer = peer};
                if (!is_let_in(peer.uid))
                        hang_up(c, slot);
                else if (!room)
                        refuse(c, slot, "too many clients");
        }
}

static void do_hello(struct afz_control *c, struct client *client,
                     const struct afz_control_line *line)
{
        char text[RUN_ID_CAP + 8];
        client->greeted = true;
        client->abilities = line->abilities;
        if (c->calls.hello)
                c->calls.hello(c->calls.ctx, line->abilities);
        (void)snprintf(text, sizeof text, "%d %s", AFZ_CONTROL_VERSION, c->run_id);
        (void)say(c, client, "welcome", text);
}

static void keep_first(char *kept, struct afz_span text)
{
        if (*kept == '\0')
                (void)afz_span_copy(text, kept, AFZ_CONTROL_LINE);
}

/* Where something was saved is worth knowing whoever asked for it, and whenever. */
static void note_saved(struct afz_control *c, const struct client *client, struct afz_span text)
{
        char path[AFZ_CONTROL_LINE];
        if (!client->greeted || !c->calls.saved || !afz_span_starts(text, "/"))
                return;
        (void)afz_span_copy(text, path, sizeof path);
        c->calls.saved(c->calls.ctx, path);
}

/* Late answers to older requests, and second thoughts, are nobody's fault and change nothing. What
 * was saved by itself answers no request. */
static void do_answer(struct afz_control *c, struct client *client,
                      const struct afz_control_line *line)
{
        struct request *request = &c->request;
        bool unasked = line->number == 0 && line->verb == AFZ_CONTROL_SAVED && client->greeted;
        if (!unasked && (line->number == 0 || line->number > request->number)) {
                (void)say(c, client, "error", "nothing was asked under this number");
                return;
        }
        if (line->verb == AFZ_CONTROL_SAVED)
                note_saved(c, client, line->text);
        if (unasked || line->number != request->number || !is_pending(client->ack))
                return;
        if (line->verb == AFZ_CONTROL_SAVING) {
                client->ack = AFZ_ACK_SAVING;
        } else if (line->verb == AFZ_CONTROL_SAVED) {
                client->ack = AFZ_ACK_SAVED;
                request->saved++;
                keep_first(request->path, line->text);
        } else {
                client->ack = AFZ_ACK_CANNOT;
                keep_first(request->reason, line->text);
        }
}

/* The process that connected is still there, it sent this itself, and it is not of the job. Asked
 * in this order, a pid that is used again is never taken for somebody else: the last look sees that
 * the process which was judged is the one that connected. */
static bool may_set(const struct afz_control *c, const struct client *client, pid_t sender)
{
        const struct afz_peer *peer = &client->peer;
        if (peer->pid <= 0 || sender != peer->pid || !c->calls.is_job ||
            c->calls.is_job(c->calls.ctx, peer->pid))
                return false;
        if (peer->pidfd < 0)
                return kill(peer->pid, 0) == 0 || errno == EPERM;
        return poll(&(struct pollfd){.fd = peer->pidfd, .events = POLLIN}, 1, 0) == 0;
}

static void do_set(struct afz_control *c, struct client *client,
                   const struct afz_control_line *line, pid_t sender)
{
        char text[AFZ_CONTROL_LINE] = "";
        if (!may_set(c, client, sender)) {
                (void)say(c, client, "error", "the job may not change its own limits");
                return;
        }
        int r = c->calls.set
                        ? c->calls.set(c->calls.ctx, line->which, line->number, text, sizeof text)
                        : -EOPNOTSUPP;
        if (r < 0 && *text == '\0')
                (void)snprintf(text, sizeof text, "not offered here");
        (void)say(c, client, r < 0 ? "error" : "ok", text);
}

static void do_status(struct afz_control *c, struct client *client)
{
        char text[AFZ_CONTROL_LINE] = "";
        int r = c->calls.status ? c->calls.status(c->calls.ctx, text, sizeof text - sizeof "status")
                                : -EOPNOTSUPP;
        if (r < 0 && *text == '\0')
                (void)snprintf(text, sizeof text, "not offered here");
        (void)say(c, client, r < 0 ? "error" : "status", text);
}

static void do_event(struct afz_control *c, struct client *client,
                     const struct afz_control_line *line)
{
        char text[AFZ_CONTROL_LINE];
        if (!client->greeted) {
                refuse(c, client, "say hello first");
                return;
        }
        (void)afz_span_copy(line->text, text, sizeof text);
        if (c->calls.event)
                c->calls.event(c->calls.ctx, line->event, text);
}

static void obey(struct afz_control *c, struct client *client, struct afz_span packet, pid_t sender)
{
        struct afz_control_line line;
        const char *why;
        if (afz_control_line_parse(packet, &line, &why) < 0) {
                refuse(c, client, why);
                return;
        }
        switch (line.verb) {
        case AFZ_CONTROL_HELLO:
                do_hello(c, client, &line);
                break;
        case AFZ_CONTROL_SET:
                do_set(c, client, &line, sender);
                break;
        case AFZ_CONTROL_STATUS:
                do_status(c, client);
                break;
        case AFZ_CONTROL_EVENT:
                do_event(c, client, &line);
                break;
        default:
                do_answer(c, client, &line);
                break;
        }
}

/* False: nothing waits. */
static bool serve_one(struct afz_control *c, struct client *client)
{
        char buf[AFZ_CONTROL_LINE - 1];
        pid_t sender = 0;
        ssize_t n = afz_control_receive(client->peer.fd, buf, sizeof buf, &sender);
        if (n == -EAGAIN)
                return false;
        if (n == -EMSGSIZE)
                refuse(c, client, "a line has at most 1023 bytes");
        else if (n == -EBADF)
                refuse(c, client, "descriptors are not taken");
        else if (n < 0)
                hang_up(c, client);
        else
                obey(c, client, (struct afz_span){buf, (size_t)n}, sender);
        return true;
}

/* One packet each in turn, so that a client that floods does not silence the others. */
static void serve_all(struct afz_control *c)
{
        bool any = true;
        c->first = (c->first + 1) % SLOTS;
        while (any) {
                any = false;
                for (unsigned i = 0; i < SLOTS && c->tokens > 0; i++) {
                        struct client *client = &c->client[(c->first + i) % SLOTS];
                        if (client->state != OPEN || !serve_one(c, client))
                                continue;
                        (void)take_token(c);
                        any = true;
                }
        }
}

size_t afz_control_poll(const struct afz_control *c, struct pollfd *ret, size_t cap)
{
        size_t n = 0;
        bool room = false;
        for (unsigned i = 0; i < SLOTS; i++)
                room |= c->client[i].state == FREE;
        if (c->hushed)
                return 0;
        if (room && n < cap)
                ret[n++] = (struct pollfd){.fd = c->fd, .events = POLLIN};
        for (unsigned i = 0; i < SLOTS && n < cap; i++)
                if (c->client[i].state == OPEN)
                        ret[n++] = (struct pollfd){.fd = c->client[i].peer.fd, .events = POLLIN};
        return n;
}

void afz_control_turn(struct afz_control *c, uint64_t now_ns)
{
        refill(c, now_ns);
        if (c->hushed)
                return;
        for (unsigned i = 0; i < SLOTS; i++)
                if (c->client[i].state == LEAVING)
                        see_off(c, &c->client[i]);
        /* Nearly always nobody has anything to say, and the tick is short: one call tells. */
        struct pollfd fds[AFZ_CONTROL_POLLS];
        if (poll(fds, afz_control_poll(c, fds, AFZ_CONTROL_POLLS), 0) == 0)
                return;
        /* Who is here already is heard before who knocks. */
        serve_all(c);
        accept_new(c);
        serve_all(c);
}

static bool can(const struct afz_control *c, uint32_t ability)
{
        for (unsigned i = 0; i < SLOTS; i++)
                if (c->client[i].abilities & ability)
                        return true;
        return false;
}

bool afz_control_can_checkpoint(const struct afz_control *c)
{
        return can(c, AFZ_ABILITY_CHECKPOINT);
}

bool afz_control_can_shrink(const struct afz_control *c)
{
        return can(c, AFZ_ABILITY_SHRINK | AFZ_ABILITY_LESS);
}

bool afz_control_can_split(const struct afz_control *c)
{
        return can(c, AFZ_ABILITY_SHRINK);
}

int afz_control_ask_checkpoint(struct afz_control *c, uint64_t timeout_ms)
{
        char text[48];
        uint64_t number = c->request.number + 1;
        c->request = (struct request){.number = number};
        (void)snprintf(text, sizeof text, "%llu %llu", (unsigned long long)number,
                       (unsigned long long)timeout_ms);
        for (unsigned i = 0; i < SLOTS; i++) {
                struct client *client = &c->client[i];
                bool asked = client->state == OPEN &&
                             (client->abilities & AFZ_ABILITY_CHECKPOINT) &&
                             say(c, client, "checkpoint", text);
                client->ack = asked ? AFZ_ACK_ASKED : AFZ_ACK_NONE;
                c->request.asked += asked;
        }
        return c->request.asked;
}

enum afz_ack afz_control_ack(const struct afz_control *c)
{
        enum afz_ack waiting = AFZ_ACK_NONE;
        if (c->request.asked == 0)
                return AFZ_ACK_NONE;
        for (unsigned i = 0; i < SLOTS; i++)
                if (is_pending(c->client[i].ack) && c->client[i].ack > waiting)
                        waiting = c->client[i].ack;
        if (waiting != AFZ_ACK_NONE)
                return waiting;
        return c->request.saved > 0 ? AFZ_ACK_SAVED : AFZ_ACK_CANNOT;
}

const char *afz_control_saved_path(const struct afz_control *c)
{
        return c->request.path;
}

const char *afz_control_refusal(const struct afz_control *c)
{
        return c->request.reason;
}

int afz_control_ask_shrink(struct afz_control *c)
{
        int asked = 0;
        for (unsigned i = 0; i < SLOTS; i++)
                asked += c->client[i].state == OPEN &&
                         (c->client[i].abilities & (AFZ_ABILITY_SHRINK | AFZ_ABILITY_LESS)) &&
                         say(c, &c->client[i], "shrink", "");
        return asked;
}

void afz_control_tell(struct afz_control *c, const char *line)
{
        for (unsigned i = 0; i < SLOTS; i++)
                if (c->client[i].state == OPEN && c->client[i].greeted)
                        (void)say(c, &c->client[i], line, "");
}

/* Whoever still knocks is looked through as well. Those set aside end with the process, where the
 * kernel does not wait for anything. */
void afz_control_free(struct afz_control *c)
{
        if (!c)
                return;
        (void)unlink(c->path);
        (void)shutdown(c->fd, SHUT_RDWR);
        c->tokens = LAST_TOKENS;
        for (unsigned i = 0; i < SLOTS; i++) {
                if (c->client[i].state == OPEN)
                        hang_up(c, &c->client[i]);
                else if (c->client[i].state == LEAVING)
                        see_off(c, &c->client[i]);
        }
        struct client late = {.state = OPEN};
        while (afz_control_accept(c->fd, &late.peer) >= 0)
                hang_up(c, &late);
        close(c->fd);
        free(c);
}
