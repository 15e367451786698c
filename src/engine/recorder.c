#include "recorder.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fds.h"
#include "recorder_state.h"

/* Where the slots of each lane begin: the guard's behind what is shared, the others' at places
 * where any page size may begin. */
static const struct {
        uint32_t at, slot_bytes;
} place[AFZ_RECORDER_LANES] = {
        [AFZ_LANE_OF_GUARD] = {UINT32_C(4096), AFZ_RECORDER_GUARD_SLOT},
        [AFZ_LANE_OF_SCOUT] = {UINT32_C(128) << 10, AFZ_RECORDER_SCOUT_SLOT},
        [AFZ_LANE_OF_KEEPER] = {UINT32_C(4) << 20, AFZ_RECORDER_KEEPER_SLOT},
};

#define NEAR_BYTES (4096 + AFZ_LANE_SLOTS * AFZ_RECORDER_GUARD_SLOT)
#define ALL_BYTES  ((UINT32_C(4) << 20) + AFZ_LANE_SLOTS * AFZ_RECORDER_KEEPER_SLOT)

_Static_assert(sizeof(struct afz_recorder_shared) <= 4096, "what is shared fits before them");
_Static_assert(NEAR_BYTES <= 128 << 10, "the parts lie apart");
_Static_assert((128 << 10) + AFZ_LANE_SLOTS * AFZ_RECORDER_SCOUT_SLOT <= 4 << 20, "these, too");

/* ---- making and ending ---- */

static void *map_part(int fd, size_t bytes, off_t at)
{
        void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
        return map == MAP_FAILED ? NULL : map;
}

static int make_memory(struct afz_recorder *r)
{
        r->memory_fd = memfd_create("antifreeze-recorder", MFD_CLOEXEC);
        if (r->memory_fd < 0 || ftruncate(r->memory_fd, ALL_BYTES) < 0)
                return -errno;
        char *map = map_part(r->memory_fd, NEAR_BYTES, 0);
        if (!map)
                return -errno;
        r->shared = (struct afz_recorder_shared *)(void *)map;
        for (unsigned i = 0; i < AFZ_RECORDER_LANES; i++)
                afz_lane_make(&r->shared->lane[i]);
        afz_lane_init(&r->lane[AFZ_LANE_OF_GUARD], &r->shared->lane[AFZ_LANE_OF_GUARD],
                      map + place[AFZ_LANE_OF_GUARD].at, AFZ_RECORDER_GUARD_SLOT, r->start_ns);
        return afz_lane_join(&r->lane[AFZ_LANE_OF_GUARD]);
}

int afz_recorder_map_far(struct afz_recorder *r, unsigned lane)
{
        uint32_t slot = place[lane].slot_bytes;
        r->far[lane] = map_part(r->memory_fd, afz_lane_bytes(slot), (off_t)place[lane].at);
        if (!r->far[lane])
                return -errno;
        afz_lane_init(&r->lane[lane], &r->shared->lane[lane], r->far[lane], slot, r->start_ns);
        return 0;
}

static int fork_writer(struct afz_recorder *r, struct afz_run *run,
                       const struct afz_flight_head *head)
{
        int pair[2];
        pid_t guard = getpid();
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0)
                afz_recorder_write(r, run, head, pair[1], guard);
        int err = pid < 0 ? -errno : 0;
        close(pair[1]);
        if (err < 0) {
                close(pair[0]);
                return err;
        }
        r->socket_fd = pair[0];
        r->pid = pid;
        return 0;
}

int afz_recorder_start(struct afz_run *run, const struct afz_flight_head *head,
                       struct afz_recorder **ret)
{
        if (run->dir_fd < 0)
                return -ENOENT;
        struct afz_recorder *r = calloc(1, sizeof *r);
        if (!r)
                return -ENOMEM;
        r->memory_fd = r->socket_fd = -1;
        r->start_ns = run->page->started_ns;
        int err = make_memory(r);
        if (err >= 0)
                err = fork_writer(r, run, head);
        if (err < 0) {
                afz_recorder_free(r);
                return err;
        }
        *ret = r;
        return 0;
}

pid_t afz_recorder_pid(const struct afz_recorder *r)
{
        return r ? r->pid : 0;
}

void afz_recorder_go(struct afz_recorder *r, enum afz_tier tier)
{
        if (!r || r->ending)
                return;
        atomic_store(&r->shared->tier, (uint32_t)tier);
        (void)send(r->socket_fd, "g", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int afz_recorder_trouble(const struct afz_recorder *r)
{
        return r ? atomic_load_explicit(&r->shared->trouble, memory_order_relaxed) : 0;
}

uint64_t afz_recorder_cpu_ns(const struct afz_recorder *r)
{
        return r ? atomic_load_explicit(&r->shared->cpu_ns, memory_order_relaxed) : 0;
}

/* The end of our stream, even where a fork of ours still holds the descriptor. */
void afz_recorder_stop(struct afz_recorder *r, uint64_t timeout_ns)
{
        if (!r || r->socket_fd < 0)
                return;
        if (!r->ending)
                (void)shutdown(r->socket_fd, SHUT_WR);
        r->ending = true;
        struct pollfd p = {.fd = r->socket_fd, .events = POLLIN};
        if (timeout_ns > 0 && poll(&p, 1, (int)(timeout_ns / AFZ_NS_PER_MS)) != 0)
                afz_fd_close(&r->socket_fd); /* it has closed the file, or is gone */
}

void afz_recorder_free(struct afz_recorder *r)
{
        if (!r)
                return;
        afz_recorder_stop(r, 0);
        afz_fd_close(&r->socket_fd);
        afz_fd_close(&r->memory_fd);
        for (unsigned i = 0; i < AFZ_RECORDER_LANES; i++) {
                afz_lane_leave(&r->lane[i]);
                if (r->far[i])
                        munmap(r->far[i], afz_lane_bytes(place[i].slot_bytes));
        }
        if (r->shared)
                munmap(r->shared, NEAR_BYTES);
        free(r);
}

/* ---- recording ---- */

/* From CLOCK_MONOTONIC to CLOCK_BOOTTIME, which goes on while the machine sleeps. */
static uint64_t boot_lead_ns(void)
{
        uint64_t now_ns = afz_clock_ns(CLOCK_MONOTONIC), boot_ns = afz_clock_ns(CLOCK_BOOTTIME);
        return boot_ns > now_ns ? boot_ns - now_ns : 0;
}

void afz_recorder_pulse(struct afz_recorder *r, const struct afz_sample *hold)
{
        if (!r || r->ending)
                return;
        uint64_t t_ns = hold->t_ns + boot_lead_ns();
        afz_lane_begin(&r->lane[AFZ_LANE_OF_GUARD], t_ns);
        afz_lane_sample(&r->lane[AFZ_LANE_OF_GUARD], t_ns, hold);
        afz_lane_end(&r->lane[AFZ_LANE_OF_GUARD]);
}

void afz_recorder_mark(struct afz_recorder *r, uint64_t t_ns, enum afz_mark_kind kind, int64_t code,
                       const char *text)
{
        if (!r || r->ending)
                return;
        t_ns += boot_lead_ns();
        afz_lane_begin(&r->lane[AFZ_LANE_OF_GUARD], t_ns);
        afz_lane_mark(&r->lane[AFZ_LANE_OF_GUARD], t_ns, kind, code, text);
        afz_lane_end(&r->lane[AFZ_LANE_OF_GUARD]);
}

static int join(struct afz_recorder *r, unsigned lane)
{
        int err = afz_recorder_map_far(r, lane);
        if (err >= 0)
                err = afz_lane_join(&r->lane[lane]);
        if (err >= 0) { /* what it forks has no business there */
                (void)madvise(r->shared, NEAR_BYTES, MADV_DONTFORK);
                (void)madvise(r->far[lane], afz_lane_bytes(place[lane].slot_bytes), MADV_DONTFORK);
        }
        return err;
}

int afz_recorder_join(struct afz_recorder *r)
{
        if (!r)
                return 0;
        return join(r, AFZ_LANE_OF_SCOUT);
}

static void put_events(struct afz_recorder *r, const struct afz_window *w, uint64_t lead_ns)
{
        if (w->events - r->events > AFZ_WINDOW_EVENTS)
                r->events = w->events - AFZ_WINDOW_EVENTS;
        for (; r->events < w->events; r->events++) {
                const struct afz_event *e = &w->event[r->events % AFZ_WINDOW_EVENTS];
                int64_t code = (int64_t)((uint64_t)e->kind << 32 | (uint32_t)e->code);
                afz_lane_mark(&r->lane[AFZ_LANE_OF_SCOUT], e->t_ns + lead_ns, AFZ_MARK_EVENT, code,
                              e->text);
        }
}

static void put_batch(struct afz_recorder *r, const struct afz_batch *b, uint64_t lead_ns)
{
        for (size_t i = 0; i < b->count; i++)
                afz_lane_sample(&r->lane[AFZ_LANE_OF_SCOUT], b->sample[i].t_ns + lead_ns,
                                &b->sample[i]);
}

void afz_recorder_window(struct afz_recorder *r, const struct afz_window *w)
{
        if (!r || !r->lane[AFZ_LANE_OF_SCOUT].joined)
                return;
        if (w->ticks < r->ticks) { /* another window: that of the next attempt */
                r->events = 0;
                for (size_t i = 0; i < AFZ_WINDOW_SOURCES; i++)
                        r->seen_ns[i] = 0;
        }
        r->ticks = w->ticks;
        uint64_t lead_ns = boot_lead_ns();
        afz_lane_begin(&r->lane[AFZ_LANE_OF_SCOUT], w->t_ns + lead_ns);
        for (size_t i = 0; i < w->sources; i++) {
                const struct afz_batch *b = w->source[i].now;
                if (!b || b->t_ns == r->seen_ns[i])
                        continue;
                r->seen_ns[i] = b->t_ns;
                put_batch(r, b, lead_ns);
        }
        put_events(r, w, lead_ns);
        afz_lane_end(&r->lane[AFZ_LANE_OF_SCOUT]);
}

void afz_recorder_stack(struct afz_recorder *r, uint64_t t_ns, int64_t code, const char *text)
{
        if (!r || !r->lane[AFZ_LANE_OF_SCOUT].joined)
                return;
        t_ns += boot_lead_ns();
        afz_lane_begin(&r->lane[AFZ_LANE_OF_SCOUT], t_ns);
        afz_lane_mark(&r->lane[AFZ_LANE_OF_SCOUT], t_ns, AFZ_MARK_STACK, code, text);
        afz_lane_end(&r->lane[AFZ_LANE_OF_SCOUT]);
}

/* ---- sites ---- */

int afz_recorder_join_sites(struct afz_recorder *r)
{
        if (!r)
                return -ENOENT;
        int err = join(r, AFZ_LANE_OF_KEEPER);
        if (err >= 0)
                atomic_store(&r->shared->keeper, (int32_t)getpid());
        return err;
}

void afz_recorder_sites_begin(struct afz_recorder *r, uint64_t t_ns)
{
        if (r && r->lane[AFZ_LANE_OF_KEEPER].joined)
                afz_lane_begin(&r->lane[AFZ_LANE_OF_KEEPER], t_ns);
}

void afz_recorder_site(struct afz_recorder *r, const struct afz_sample *site, const char *stack)
{
        struct afz_lane *lane = r ? &r->lane[AFZ_LANE_OF_KEEPER] : NULL;
        if (!lane || !lane->joined)
                return;
        if (stack)
                afz_lane_mark(lane, site->t_ns, AFZ_MARK_SITE, (int64_t)site->subject.id, stack);
        afz_lane_sample(lane, site->t_ns, site);
}

void afz_recorder_sites_say(struct afz_recorder *r, uint64_t t_ns, const char *text)
{
        if (r && r->lane[AFZ_LANE_OF_KEEPER].joined)
                afz_lane_mark(&r->lane[AFZ_LANE_OF_KEEPER], t_ns, AFZ_MARK_SITE, 0, text);
}

void afz_recorder_sites_end(struct afz_recorder *r)
{
        if (r && r->lane[AFZ_LANE_OF_KEEPER].joined)
                afz_lane_end(&r->lane[AFZ_LANE_OF_KEEPER]);
}

void afz_recorder_leave_sites(struct afz_recorder *r)
{
        if (r)
                atomic_store(&r->shared->keeper, 0);
}
