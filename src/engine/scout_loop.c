#include "scout_loop.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "engine.h"
#include "recorder.h"
#include "scout_facts.h"
#include "scout_fill.h"
#include "scout_others.h"
#include "scout_parts.h"
#include "scout_shm.h"
#include "scout_witness.h"

/* From the word that a job is there to the first look at it: one that is over by then costs us
 * nothing, and a thing that wants to be told takes longer to come. */
#define FIRST_LOOK_NS (50 * AFZ_NS_PER_MS)

/* We keep still while the job is being started: the start is not to be held up by our measuring,
 * and a command that is over at once is not measured for. */
#define STILL_MS 30

/* Between looks, whether /dev/shm fills is asked so often: it costs 1 us, and what is written there
 * is counted by our look alone where there is no cgroup. */
#define PEEK_MS 200

/* While a picture is taken, whether it is: the job stands still for it. */
#define PICTURE_MS 3
/* One that was asked for so long ago is not of the moment any more: it runs again, or soon will. */
#define PICTURE_LATE_NS (150 * AFZ_NS_PER_MS)
/* A tick that costs no more than this is not in its way. */
#define PICTURE_TICK_NS (8 * AFZ_NS_PER_MS)

/* Between looks, what is seen is only recorded, and beside the guard's own ten looks a second that
 * may cost one part in so many of a core: a job of many processes is looked at more seldom. */
static const struct {
        uint64_t fast_ns; /* costs 0.05 % of a core for a job of one process; 10 Hz would be 0.12 */
        uint64_t slow_ns; /* what is looked at in any case */
        unsigned part;    /* 0.2 %: all of us together stay below half a percent */
        unsigned calm; /* one reading in so many counts: what is slow now and then is no reason */
} record = {
        .fast_ns = AFZ_NS_PER_S / 5,
        .slow_ns = AFZ_NS_PER_S,
        .part = 500,
        .calm = 8,
};

struct scout {
        const struct afz_env *env;
        int root_fd;
        struct afz_scout_shared *shared;
        struct afz_recorder *recorder;
        struct afz_scout_report report;
        struct afz_scout_others *others;
        struct afz_scout_shm *shm;
        struct afz_scout_facts *facts;
        struct afz_scout_witness witness;
        struct afz_engine *engine; /* NULL: no job, or it is gone */
        pid_t root;
        uint64_t root_ns;              /* since when */
        uint64_t looked_ns, ticked_ns; /* the last time */
        uint64_t tick_cost_ns;         /* processor time, of late */
};

/* False when the guard has left, whatever it may have said before; waits for that so long. */
static bool is_wanted_for(const struct scout *s, int timeout_ms)
{
        struct pollfd p = {.fd = s->root_fd, .events = 0};
        return poll(&p, 1, timeout_ms) <= 0 || !(p.revents & (POLLHUP | POLLERR));
}

static bool is_wanted(void *ctx)
{
        return is_wanted_for(ctx, 0);
}

static void publish(struct scout *s)
{
        s->report.count++;
        afz_scout_publish(s->shared, &s->report);
}

static uint64_t available_bytes(const struct afz_env *env)
{
        struct afz_span text, line;
        char buf[8192];
        uint64_t kib = 0;
        if (afz_env_read(env, AFZ_ROOT_PROC, "meminfo", buf, sizeof buf, &text) < 0)
                return 0;
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_span_take_prefix(&line, "MemAvailable:") == 0 &&
                    afz_span_take_u64(&line, &kib) == 0)
                        return kib * 1024;
        return 0;
}

/* The job's processes, ourselves and our parent. */
static bool is_ours(void *ctx, uint64_t pid)
{
        const struct scout *s = ctx;
        return pid == s->env->self_pid || pid == (uint64_t)getppid() || pid == (uint64_t)s->root ||
               (s->engine && afz_window_find(afz_engine_window(s->engine), AFZ_KIND_PROC, pid));
}

static void look_at_others(struct scout *s)
{
        const struct afz_window *w = afz_engine_window(s->engine);
        uint64_t available = 0;
        bool known = afz_sample_get_u64(afz_window_one(w, AFZ_KIND_HOST), AFZ_HOST_MEM_AVAILABLE,
                                        &available);
        if (!afz_scout_others_due(s->others, w->t_ns, known, available))
                return;
        afz_scout_others_walk(s->others, w->t_ns, available, is_ours, s);
        afz_scout_others_tell(s->others, &s->report);
}

static void tick(struct scout *s, uint64_t now_ns)
{
        uint64_t begin_ns = afz_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        s->ticked_ns = now_ns;
        afz_engine_tick(s->engine);
        afz_recorder_window(s->recorder, afz_engine_window(s->engine));
        afz_scout_witness_take(&s->witness, s->env, s->recorder, afz_engine_window(s->engine),
                               atomic_load_explicit(&s->shared->step, memory_order_relaxed));
        uint64_t cost_ns = afz_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
        s->tick_cost_ns = (s->tick_cost_ns * (record.calm - 1) + cost_ns) / record.calm;
}

static void look(struct scout *s, uint64_t now_ns)
{
        s->looked_ns = now_ns;
        tick(s, now_ns);
        afz_scout_facts_take(s->facts, afz_engine_window(s->engine), &s->report);
        afz_scout_parts_name(s->env, &s->report);
        afz_scout_shm_take(s->shm, afz_engine_window(s->engine), &s->report);
        look_at_others(s);
        publish(s);
}

static void leave(struct scout *s)
{
        afz_engine_free(s->engine);
        afz_scout_facts_free(s->facts);
        s->engine = NULL;
        s->facts = NULL;
}

/* Another root (a restarted job): nothing of the old one is carried over but what is the machine's.
 */
static void turn_to(struct scout *s, pid_t root)
{
        leave(s);
        afz_scout_witness_done(&s->witness);
        s->root = root;
        s->root_ns = afz_env_now(s->env);
        s->report = (struct afz_scout_report){
                .t_ns = s->report.t_ns,
                .count = s->report.count,
                .other = s->report.other,
                .fill_bytes_per_s = s->report.fill_bytes_per_s,
                .own_cpu_ns = s->report.own_cpu_ns,
        };
}

static void meet(struct scout *s)
{
        const struct afz_target target = {.pid = (uint64_t)s->root};
        if (afz_scout_facts_new(&s->facts) < 0 || afz_engine_new(s->env, &target, &s->engine) < 0)
                leave(s); /* gone already: another may come */
}

static void pictured(struct scout *s, uint32_t number)
{
        atomic_store_explicit(&s->shared->pictured, number, memory_order_release);
}

static void look_for_picture(struct scout *s, bool last)
{
        uint32_t number = s->witness.picture;
        if (afz_scout_witness_pictured(&s->witness, s->recorder, afz_env_now(s->env), last))
                pictured(s, number);
}

/* The stacks, which are gone with the job, and its memory as it stands; whatever takes less comes
 * first, so that who was born last is seen, too. */
static void take_picture(struct scout *s, const struct afz_scout_order *order)
{
        uint64_t now_ns = afz_env_now(s->env);
        bool late = now_ns - order->t_ns > PICTURE_LATE_NS, first = !s->engine;
        if (first && s->root != 0 && !late)
                meet(s);
        bool quick = first || s->tick_cost_ns <= PICTURE_TICK_NS;
        if (s->engine && quick)
                tick(s, now_ns);
        if (late || !s->engine || !s->recorder ||
            !afz_scout_witness_picture(&s->witness, s->env, afz_engine_window(s->engine),
                                       order->t_ns, order->picture))
                pictured(s, order->picture); /* as far as it could be */
        if (s->engine && !quick)
                tick(s, now_ns);
}

/* Waits for a word from the guard, or until it is time for a look. False: it has left. */
static bool wait_for(struct scout *s, int timeout_ms)
{
        struct pollfd p = {.fd = s->root_fd, .events = POLLIN};
        struct afz_scout_order order;
        if (poll(&p, 1, timeout_ms) <= 0)
                return true;
        ssize_t n = read(s->root_fd, &order, sizeof order);
        if (n == (ssize_t)sizeof order && order.root > 0) {
                turn_to(s, order.root);
        } else if (n == (ssize_t)sizeof order && order.picture != 0) {
                take_picture(s, &order);
        } else if (n == (ssize_t)sizeof order) {
                afz_scout_shm_sweep(s->shm, &order.end, &s->report);
                publish(s);
        }
        return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static uint64_t left_of(uint64_t every_ns, uint64_t since_ns, uint64_t now_ns)
{
        return now_ns - since_ns < every_ns ? every_ns - (now_ns - since_ns) : 0;
}

static uint64_t until_look_ns(const struct scout *s, uint64_t now_ns)
{
        uint64_t pace_ns = afz_scout_facts_pace(&s->report, now_ns - s->root_ns);
        return left_of(pace_ns, s->looked_ns, now_ns);
}

/* Without somebody who records it, what is between two looks is nobody's business. A look is a
 * tick, too: one that is near is waited for. */
static uint64_t until_tick_ns(const struct scout *s, uint64_t now_ns)
{
        uint64_t every_ns = s->tick_cost_ns * record.part;
        every_ns = every_ns < record.fast_ns   ? record.fast_ns
                   : every_ns > record.slow_ns ? record.slow_ns
                                               : every_ns;
        if (!s->recorder)
                return UINT64_MAX;
        uint64_t left_ns = left_of(every_ns, s->ticked_ns, now_ns);
        uint64_t look_ns = until_look_ns(s, now_ns);
        return look_ns <= left_ns + every_ns * 2 / 3 ? look_ns : left_ns;
}

/* Milliseconds until there is something to do; -1: there is nothing to look at. */
static int next_ms(const struct scout *s)
{
        uint64_t now_ns = afz_env_now(s->env), age_ns = now_ns - s->root_ns, wait_ns;
        if (s->root == 0)
                return -1;
        if (!s->engine) {
                if (age_ns >= FIRST_LOOK_NS)
                        return -1;
                wait_ns = FIRST_LOOK_NS - age_ns;
        } else {
                uint64_t tick_ns = until_tick_ns(s, now_ns);
                wait_ns = until_look_ns(s, now_ns);
                wait_ns = tick_ns < wait_ns ? tick_ns : wait_ns;
        }
        return (int)((wait_ns + AFZ_NS_PER_MS - 1) / AFZ_NS_PER_MS);
}

static int most_ms(const struct scout *s, int ms)
{
        int most = s->witness.picture != 0 ? PICTURE_MS : PEEK_MS;
        return ms > most || (ms < 0 && s->witness.picture != 0) ? most : ms;
}

static void begin(struct scout *s)
{
        afz_scout_shm_begin(s->shm);
        if (!is_wanted_for(s, STILL_MS))
                return;
        uint64_t available = available_bytes(s->env);
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        s->report.fill_bytes_per_s =
                afz_scout_fill_measure(available, cores > 0 ? (unsigned)cores : 1, is_wanted, s);
        s->report.t_ns = afz_env_now(s->env);
        publish(s);
        if (is_wanted(s))
                afz_scout_others_walk(s->others, s->report.t_ns, available, is_ours, s);
}

static void turn(struct scout *s)
{
        uint64_t now_ns = afz_env_now(s->env);
        look_for_picture(s, false);
        if (s->root == 0 || now_ns - s->root_ns < FIRST_LOOK_NS)
                return;
        bool first = !s->engine;
        if (first)
                meet(s);
        if (!s->engine)
                return;
        if (first || until_look_ns(s, now_ns) == 0 || afz_scout_shm_fills(s->shm))
                look(s, now_ns);
        else if (until_tick_ns(s, now_ns) == 0)
                tick(s, now_ns);
}

void afz_scout_loop(const struct afz_env *env, int root_fd, struct afz_scout_shared *shared,
                    struct afz_recorder *recorder)
{
        struct scout s = {.env = env, .root_fd = root_fd, .shared = shared, .recorder = recorder};
        if (afz_scout_others_new(env, &s.others) < 0 || afz_scout_shm_new(env, &s.shm) < 0)
                return;
        begin(&s);
        while (wait_for(&s, most_ms(&s, next_ms(&s))))
                turn(&s);
        look_for_picture(&s, true);
        if (s.engine && s.recorder) { /* what the kernel logged of its end stands there by now */
                afz_engine_hurry(s.engine);
                tick(&s, afz_env_now(env));
        }
        leave(&s);
        afz_scout_witness_done(&s.witness);
        afz_scout_shm_free(s.shm);
        afz_scout_others_free(s.others);
}
