#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "proc_stat.h"

/* Room for the pages that a forked antifreeze writes to, and little enough to be filled at once. */
#define BUDGET_BYTES (UINT64_C(32) << 20)
/* Who gets this far is not limited. */
#define GROW_MAX_BYTES (UINT64_C(96) << 20)
/* The growing one takes a bite each millisecond: 2 GB/s, the pace that the guard must be up to. */
#define BITE_BYTES (UINT64_C(2) << 20)
/* What may stay of the job's memory when it is gone: the kernel counts in batches for each core. */
#define LEFT_BYTES (UINT64_C(4) << 20)
/* A stage that takes longer has failed; what works takes a hundredth of that on an idle machine. */
#define STAGE_NS (2 * AFZ_NS_PER_S)
/* A count that stands this long stands: it goes on each 0.2 ms, or waits for a core. */
#define STILL_NS (10 * AFZ_NS_PER_MS)
/* How often we look. */
#define LOOK_NS (1 * AFZ_NS_PER_MS)
/* The child counts so often. */
#define BEAT_NS (200 * AFZ_NS_PER_US)
/* Should all else fail, the children end by themselves. */
#define ALARM_S 10

/* Shared with the children. */
struct page {
        _Atomic uint64_t beats;
        _Atomic uint64_t grown_bytes;
        _Atomic bool grow; /* our word: grow */
        _Atomic bool over; /* our word: end */
};

/* One hold with one child in it. */
struct stage {
        const struct afz_env *env;
        const struct afz_hold_tier *row;
        void *hold;
        struct page *page;
        struct afz_trial *trial;
        pid_t pid, keeper;
        int status; /* of the child, once pid is 0 */
};

static void nap(uint64_t ns)
{
        struct timespec t = {.tv_sec = (time_t)(ns / AFZ_NS_PER_S),
                             .tv_nsec = (long)(ns % AFZ_NS_PER_S)};
        (void)nanosleep(&t, NULL);
}

static uint64_t now(void)
{
        return afz_clock_ns(CLOCK_MONOTONIC);
}

/* The first thing that was not so is the one that is told. */
static bool fail(struct stage *s, const char *what, int err)
{
        if (s->trial->why[0] == '\0')
                snprintf(s->trial->why, sizeof s->trial->why, "%s%s%s", what, err < 0 ? ": " : "",
                         err < 0 ? strerror(-err) : "");
        return false;
}

static void grow(struct page *page)
{
        uint64_t grown = atomic_load(&page->grown_bytes);
        if (!atomic_load(&page->grow) || grown >= GROW_MAX_BYTES)
                return;
        void *p =
                mmap(NULL, BITE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                return;
        memset(p, 1, BITE_BYTES);
        atomic_store(&page->grown_bytes, grown + BITE_BYTES);
        nap(LOOK_NS);
}

/* The one that counts, and grows when it is told to; and its own child, which only has to be killed
 * along with it and does not leave for another reason than our word. */
static _Noreturn void child(struct page *page, pid_t parent)
{
        signal(SIGALRM, SIG_DFL);
        if (fork() == 0) {
                alarm(ALARM_S);
                while (!atomic_load(&page->over))
                        nap(LOOK_NS);
                _exit(0);
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(ALARM_S);
        while (getppid() == parent && !atomic_load(&page->over)) {
                atomic_fetch_add(&page->beats, 1);
                grow(page);
                nap(BEAT_NS);
        }
        _exit(0);
}

static _Noreturn void keeper(pid_t parent)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(ALARM_S);
        while (getppid() == parent)
                pause();
        _exit(0);
}

static bool beats(const struct stage *s)
{
        uint64_t first = atomic_load(&s->page->beats), end = now() + STAGE_NS;
        while (now() < end) {
                if (atomic_load(&s->page->beats) != first)
                        return true;
                nap(BEAT_NS);
        }
        return false;
}

/* On a busy machine it may only wait for its turn. */
static bool wants_to_run(const struct stage *s)
{
        char path[32], buf[1024];
        struct afz_span text;
        struct afz_proc_stat stat;
        snprintf(path, sizeof path, "%d/stat", (int)s->pid);
        return afz_env_read(s->env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) == 0 &&
               afz_proc_stat_parse(text, &stat) == 0 && stat.state == 'R';
}

static bool stands_still(const struct stage *s)
{
        uint64_t last = atomic_load(&s->page->beats), end = now() + STAGE_NS, since = now();
        while (now() < end) {
                uint64_t beat = atomic_load(&s->page->beats);
                if (beat != last || wants_to_run(s))
                        since = now();
                else if (now() - since >= STILL_NS)
                        return true;
                last = beat;
                nap(LOOK_NS);
        }
        return false;
}

static bool try_brake(struct stage *s)
{
        if (!beats(s))
                return fail(s, "the trial's child does not run", 0);
        int r = s->row->brake(s->hold);
        if (r < 0)
                return fail(s, "it cannot be braked", r);
        bool still = stands_still(s);
        r = s->row->release(s->hold);
        if (!still)
                return fail(s, "the brake does not stop it", 0);
        if (r < 0 || !beats(s))
                return fail(s, "it does not go on when released", r);
        return true;
}

static bool is_gone(struct stage *s)
{
        pid_t r = s->pid > 0 ? waitpid(s->pid, &s->status, WNOHANG) : 0;
        if (r == s->pid || (r < 0 && errno == ECHILD)) /* reaped, if not by us */
                s->pid = 0;
        return s->pid == 0;
}

/* Nobody else sends it SIGKILL before we do; and the cgroup tells of it, as long as it is there. */
static bool was_killed_by_kernel(struct stage *s)
{
        struct afz_pulse pulse = {0};
        uint64_t kills = 0;
        if (!WIFSIGNALED(s->status) || WTERMSIG(s->status) != SIGKILL)
                return false;
        int r = s->row->look(s->hold, &pulse);
        return r == -ENODEV ||
               (r >= 0 && afz_pulse_get(&pulse, AFZ_PULSE_OOM_KILLS, &kills) && kills > 0);
}

static bool limited_by_kernel(struct stage *s)
{
        uint64_t end = now() + STAGE_NS;
        while (now() < end && atomic_load(&s->page->grown_bytes) < GROW_MAX_BYTES) {
                if (is_gone(s))
                        return was_killed_by_kernel(s) ||
                               fail(s, "it ended, but not by the limit", 0);
                nap(LOOK_NS);
        }
        return fail(s, now() < end ? "the limit does not stop it" : "it does not get to its limit",
                    0);
}

/* As the guard does it: the look sees need cross the line, and the brake stops the growth. */
static bool limited_by_looking(struct stage *s)
{
        uint64_t end = now() + STAGE_NS, need = 0;
        while (need < BUDGET_BYTES) {
                struct afz_pulse pulse = {0};
                int r = s->row->look(s->hold, &pulse);
                if (r < 0 || now() >= end)
                        return fail(s, "its need is not seen", r);
                if (!afz_pulse_get(&pulse, AFZ_PULSE_NEED, &need))
                        need = 0;
                nap(LOOK_NS);
        }
        int r = s->row->brake(s->hold);
        if (r < 0 || !stands_still(s))
                return fail(s, "the brake does not stop it", r);
        return atomic_load(&s->page->grown_bytes) < GROW_MAX_BYTES ||
               fail(s, "it was seen too late", 0);
}

static bool try_limit(struct stage *s)
{
        if (!beats(s))
                return fail(s, "the trial's child does not run", 0);
        atomic_store(&s->page->grow, true);
        return s->row->tier == AFZ_TIER_NONE ? limited_by_looking(s) : limited_by_kernel(s);
}

/* A container that has vanished has nobody in it. */
static bool is_empty(struct stage *s)
{
        struct afz_pulse pulse = {0};
        uint64_t alive = 0, need = 0;
        int r = s->row->look(s->hold, &pulse);
        if (r == -ENODEV || r == -ESRCH)
                return true;
        if (r < 0 || !afz_pulse_get(&pulse, AFZ_PULSE_PROCESSES, &alive) || alive > 0)
                return false;
        return !afz_pulse_get(&pulse, AFZ_PULSE_NEED, &need) || need <= LEFT_BYTES;
}

static bool try_kill(struct stage *s)
{
        uint64_t end = now() + STAGE_NS;
        int r = s->row->kill(s->hold);
        if (r < 0 && r != -ENODEV && r != -ESRCH)
                return fail(s, "it cannot be killed", r);
        while (now() < end) {
                if (is_gone(s) && is_empty(s))
                        return true;
                nap(LOOK_NS);
        }
        return fail(s, s->pid ? "it does not die" : "it is gone, but something of it is not", 0);
}

/* Our own children, not reaped: the pids are surely theirs. One that is still frozen by a tier that
 * does not do what it says is not waited for: it ends when it is thawed. */
static void end_children(struct stage *s)
{
        pid_t *const all[] = {&s->pid, &s->keeper};
        uint64_t end = now() + STAGE_NS;
        atomic_store(&s->page->over, true);
        for (int i = 0; i < 2; i++) {
                if (*all[i] > 0)
                        kill(*all[i], SIGKILL);
                while (*all[i] > 0 && waitpid(*all[i], NULL, WNOHANG) == 0 && now() < end)
                        nap(BEAT_NS);
                *all[i] = 0;
        }
}

static int start_children(struct stage *s)
{
        pid_t self = getpid();
        *s->page = (struct page){0}; /* charged to us, not to the child */
        s->pid = fork();
        if (s->pid == 0)
                child(s->page, self);
        s->keeper = s->pid > 0 ? fork() : 0;
        if (s->keeper == 0 && s->pid > 0)
                keeper(self);
        return s->pid < 0 || s->keeper < 0 ? -errno : 0;
}

static int open_hold(struct stage *s, bool limits)
{
        char id[48], why[AFZ_HOLD_WHY_CAP] = "";
        snprintf(id, sizeof id, "trial-%d-%s-%d", (int)getpid(), afz_tier_name(s->row->tier),
                 limits);
        struct afz_hold_plan plan = {.id = id,
                                     .what = "a trial of antifreeze doctor",
                                     .budget = {.ram_bytes = BUDGET_BYTES, .given = true},
                                     .processes = 64,
                                     .weight = 100,
                                     .whole = true};
        int r = s->row->open(s->env, &plan, s->pid, s->keeper, &s->hold, why);
        if (r < 0)
                fail(s, why[0] ? why : "not offered here", why[0] ? 0 : r);
        return r;
}

/* A place of v1 is empty and ours to remove. One of v2 is gone by itself: at once, or soon when the
 * manager takes a scope away; to remove it before the manager has seen it empty would leave it with
 * a scope that never ends. */
static int wait_until_clean(const struct stage *s, const char *place)
{
        char path[AFZ_HOLD_PLACE_CAP + 2];
        uint64_t end = now() + STAGE_NS;
        if (place[0] != '/')
                return place[0] ? afz_hold_collect(s->env, place) : 0;
        snprintf(path, sizeof path, ".%s", place);
        while (now() < end) {
                int fd = afz_env_open(s->env, AFZ_ROOT_CGROUP, path, O_DIRECTORY | O_PATH);
                if (fd < 0)
                        return fd == -ENOENT ? 0 : fd;
                close(fd);
                nap(LOOK_NS);
        }
        return -EBUSY;
}

/* Brake and kill on one child, the limit on another: at the limit the kernel may end all of it. */
static int try_once(struct stage *s, bool limits)
{
        char place[AFZ_HOLD_PLACE_CAP] = "";
        struct afz_trial *t = s->trial;
        int r = start_children(s);
        if (r == 0 && open_hold(s, limits) >= 0) {
                t->opened = true;
                s->row->place(s->hold, place);
                if (limits)
                        t->limited = try_limit(s);
                else
                        t->braked = try_brake(s);
                t->killed = try_kill(s); /* in any case: whatever else failed, it must go */
                if (!t->killed)
                        (void)s->row->release(s->hold);
                end_children(s);
                s->row->close(s->hold);
                int left = wait_until_clean(s, place);
                t->clean = left >= 0 || fail(s, "something is left of it", left);
        }
        end_children(s);
        return r;
}

int afz_trial_run(const struct afz_env *env, const struct afz_hold_tier *row, struct afz_trial *ret)
{
        struct afz_trial trial = {.tier = row->tier};
        struct page *page =
                mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
                return -errno;
        uint64_t start = now();
        struct stage stage = {.env = env, .row = row, .page = page, .trial = &trial};
        int r = try_once(&stage, false);
        if (r == 0 && trial.braked && trial.killed && trial.clean)
                r = try_once(&stage, true);
        munmap(page, sizeof *page);
        trial.took_ns = now() - start;
        if (r == 0)
                *ret = trial;
        return r;
}
