#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "clock.h"
#include "guard_state.h"

/* What need not be in every look is done once in this time. */
#define SLOW_NS (500 * AFZ_NS_PER_MS)

/* A program that was told to end is through with its cleaning up after this time. */
#define FORGIVE_NS (10 * AFZ_NS_PER_S)

/* Parked: RAM full to so much of the slow line, need within so many bytes, half of this time stood.
 */
#define PARKED_PERCENT 97
#define PARKED_BYTES   (UINT64_C(4) << 20)
#define PARKED_NS      (8 * AFZ_NS_PER_S)

/* A report of the scout counts for so long. */
#define STALE_NS (3 * AFZ_NS_PER_S)

/* A limit is moved only for a change that matters: each move makes the kernel look for pages. */
#define BUDGET_STEP_BYTES (UINT64_C(64) << 20)
/* Short runs that come one after another would else be told each time. */
#define SHARE_SAID_NS (60 * AFZ_NS_PER_S)

/* Swap is looked at when it begins to matter: the counter costs more than all the rest. */
static bool paging_matters(const struct afz_guard *g)
{
        uint64_t available;
        return afz_pulse_get(&g->pulse, AFZ_PULSE_AVAILABLE, &available) &&
               available < 2 * g->lines.low_bytes;
}

/* Files in /dev/shm that the job wrote and does not map are in none of its processes; a cgroup is
 * charged for them already. */
static void add_unmapped(struct afz_guard *g, struct afz_pulse *pulse)
{
        uint64_t need;
        if (g->hold.row->tier != AFZ_TIER_NONE || !afz_pulse_get(pulse, AFZ_PULSE_NEED, &need))
                return;
        (void)afz_scout_read(g->scout, &g->report);
        if (g->report.t_ns + STALE_NS < pulse->t_ns) /* the scout hangs: what it saw may be gone */
                return;
        afz_pulse_set(pulse, AFZ_PULSE_NEED, need + g->report.shm.unmapped_bytes);
}

void afz_guard_look(struct afz_guard *g)
{
        struct afz_pulse pulse = {.t_ns = afz_guard_now(g)};
        struct afz_run_page *page = g->run->page;
        uint64_t need;
        (void)afz_host_pulse_read(&g->host, paging_matters(g), &pulse);
        (void)g->hold.row->look(g->hold.state, &pulse);
        add_unmapped(g, &pulse);
        g->pulse = pulse;
        afz_guard_probe_room(g);
        atomic_store_explicit(&page->tick_ns, afz_clock_ns(CLOCK_BOOTTIME), memory_order_relaxed);
        if (!afz_pulse_get(&pulse, AFZ_PULSE_NEED, &need))
                return;
        atomic_store_explicit(&page->need_bytes, need, memory_order_relaxed);
        if (need > atomic_load_explicit(&page->peak_bytes, memory_order_relaxed))
                atomic_store_explicit(&page->peak_bytes, need, memory_order_relaxed);
}

bool afz_guard_kernel_killed(const struct afz_guard *g)
{
        uint64_t kills;
        return !g->server && afz_pulse_get(&g->pulse, AFZ_PULSE_OOM_KILLS, &kills) && kills > 0;
}

/* What it may have: what it was promised at the start, or its share since others came or went. */
static struct afz_budget promised(const struct afz_guard *g)
{
        struct afz_budget budget = g->order->budget;
        uint64_t cap = atomic_load_explicit(&g->run->page->cap_bytes, memory_order_relaxed);
        if (cap != 0)
                budget.ram_bytes = cap;
        return budget;
}

void afz_guard_set_budget(struct afz_guard *g, const struct afz_budget *budget)
{
        /* Held by looking, its lines are all the limit it has. */
        int r = g->hold.row->limit(g->hold.state, budget);
        /* -EAGAIN: the kernel is still making room, and will have the lower limit soon. */
        if (r < 0 && r != -EOPNOTSUPP && r != -EAGAIN)
                return;
        struct afz_run_page *page = g->run->page;
        page->budget_given = budget->given;
        g->budget = *budget;
        g->lines = afz_lines_of(budget, g->order->ram_total_bytes);
        g->slowed = false;
        atomic_store(&page->budget_bytes, budget->ram_bytes);
        atomic_store(&page->swap_bytes, budget->swap_bytes);
        struct afz_ladder_setup setup = g->ladder.setup;
        setup.lines = g->lines;
        setup.lowered = budget->ram_bytes < promised(g).ram_bytes && !budget->given;
        afz_ladder_change(&g->ladder, &setup);
}

/* When others grow, what we may use shrinks, and grows back to what was promised. A cap lowers it
 * as far as the job's need allows. */
static void reckon_again(struct afz_guard *g)
{
        uint64_t available, need, swap = 0;
        if (g->budget.given || g->order->policy == AFZ_POLICY_WATCH || g->stop_asked ||
            !afz_pulse_get(&g->pulse, AFZ_PULSE_AVAILABLE, &available) ||
            !afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &need))
                return;
        (void)afz_pulse_get(&g->pulse, AFZ_PULSE_SWAP, &swap);
        struct afz_budget most = promised(g);
        g->promised_bytes = most.ram_bytes;
        struct afz_budget next =
                afz_budget_again(&most, g->order->ram_total_bytes, available, 0, need, swap);
        uint64_t old = g->budget.ram_bytes, keep = afz_budget_least(need);
        if (keep > old)
                keep = old;
        if (next.ram_bytes < keep)
                next.ram_bytes = keep;
        next.swap_bytes = g->budget.swap_bytes;
        uint64_t now = next.ram_bytes;
        bool asked = old > most.ram_bytes; /* by another run, which waits for it */
        if (now == old || (!asked && (old > now ? old - now : now - old) < BUDGET_STEP_BYTES))
                return;
        afz_guard_set_budget(g, &next);
        if (asked && g->budget.ram_bytes == now && afz_guard_now(g) >= g->share_next_ns) {
                g->share_next_ns = afz_guard_now(g) + SHARE_SAID_NS;
                afz_guard_say(g, "share", false,
                              "shares the machine with another run: may use %.1f GB now",
                              (double)now / (1 << 30));
        }
}

static void tell_escapes(struct afz_guard *g, const struct afz_scout_report *report)
{
        for (; g->escapes_told < report->escapes && g->escapes_told < AFZ_SCOUT_ESCAPES;
             g->escapes_told++)
                if (report->escape[g->escapes_told].pid !=
                    (uint64_t)g->spawn.pid) /* told at once */
                        afz_guard_say_escape(g, report->escape[g->escapes_told].name);
}

/* Disks and /dev/shm that the job fills: a word, and the brake is the ladder's. */
static void look_at_space(struct afz_guard *g, const struct afz_scout_report *report)
{
        struct afz_space_disk disk = {
                .known = report->disk.known,
                .free_bytes = report->disk.free_bytes,
                .size_bytes = report->disk.size_bytes,
                .rate_bytes_per_s = report->disk.rate_bytes_per_s,
                .left_s = report->disk.left_s,
        };
        struct afz_space_shm shm = {
                .known = report->shm.known,
                .free_bytes = report->shm.free_bytes,
                .size_bytes = report->shm.size_bytes,
                .job_bytes = report->shm.job_bytes,
        };
        g->space = afz_space_judge(&g->space, &disk, &shm);
        afz_ladder_space(&g->ladder, &g->space);
}

static void count_cost(struct afz_guard *g)
{
        struct rusage own;
        getrusage(RUSAGE_SELF, &own);
        uint64_t ns = (uint64_t)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) * AFZ_NS_PER_S +
                      (uint64_t)(own.ru_utime.tv_usec + own.ru_stime.tv_usec) * AFZ_NS_PER_US;
        ns += g->report.own_cpu_ns + afz_recorder_cpu_ns(g->recorder);
        atomic_store_explicit(&g->run->page->cpu_ns, ns, memory_order_relaxed);
}

/* Who listens may come and go. What an agent in the job can make smaller, the probe may refuse; who
 * only uses less (a data loader) makes nobody get over that. */
static void change_ladder(struct afz_guard *g)
{
        const struct afz_ladder_setup *now = &g->ladder.setup;
        struct afz_ladder_setup setup = *now;
        setup.can_checkpoint = afz_checkpoint_can(&g->checkpoint);
        setup.can_ask_early = g->control && afz_control_can_checkpoint(g->control);
        setup.can_shrink = g->control && afz_control_can_shrink(g->control);
        setup.refuses =
                g->control && afz_control_can_split(g->control) && afz_keeper_room(g->keeper);
        setup.parts_alone = g->server;
        if (setup.can_checkpoint != now->can_checkpoint || setup.can_shrink != now->can_shrink ||
            setup.can_ask_early != now->can_ask_early || setup.refuses != now->refuses ||
            setup.parts_alone != now->parts_alone)
                afz_ladder_change(&g->ladder, &setup);
}

static void tell_step(struct afz_guard *g)
{
        uint64_t step = 0, saved;
        (void)afz_keeper_steps(g->keeper, &step, &saved);
        afz_scout_step(g->scout, step);
}

/* What the scout saw, and what is due now and then. */
static void slow_turn(struct afz_guard *g)
{
        struct afz_run_page *page = g->run->page;
        g->slow_next_ns = g->pulse.t_ns + SLOW_NS;
        count_cost(g);
        afz_guard_record_trouble(g);
        change_ladder(g);
        afz_guard_agent_turn(g);
        reckon_again(g);
        tell_step(g);
        if (!afz_scout_read(g->scout, &g->report) || g->report.count == g->report_count)
                return;
        g->report_count = g->report.count;
        if (g->report.has_gpu && g->report.gpu_bytes > atomic_load(&page->gpu_peak_bytes))
                atomic_store(&page->gpu_peak_bytes, g->report.gpu_bytes);
        afz_guard_split_parts(g, &g->report);
        tell_escapes(g, &g->report);
        look_at_space(g, &g->report);
}

/* In a server's tree the kernel may have killed one sub-job at the limit; all others go on. */
static void tell_part_killed(struct afz_guard *g)
{
        uint64_t kills;
        if (!g->server || !afz_pulse_get(&g->pulse, AFZ_PULSE_OOM_KILLS, &kills))
                return;
        if (kills > g->oom_kills_seen)
                afz_guard_part_killed(g);
        g->oom_kills_seen = kills;
}

/* Whether the kernel has parked it at the slow line: its RAM is full to there, it neither grows nor
 * shrinks, and most of its time it stands. Looked at over whole windows. */
static bool is_parked(struct afz_guard *g)
{
        uint64_t need, swap, stall, now = g->pulse.t_ns;
        if (!afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &need) ||
            !afz_pulse_get(&g->pulse, AFZ_PULSE_SWAP, &swap) ||
            !afz_pulse_get(&g->pulse, AFZ_PULSE_JOB_STALL, &stall))
                return false;
        bool full =
                need - (swap < need ? swap : need) >= g->lines.slow_bytes / 100 * PARKED_PERCENT;
        bool moves = need > g->park_need + PARKED_BYTES || need + PARKED_BYTES < g->park_need;
        bool whole = now - g->park_ns >= PARKED_NS;
        bool stands = whole && stall - g->park_stall_ns >= PARKED_NS / 2;
        if (!full || moves || whole) {
                g->park_ns = now;
                g->park_need = need;
                g->park_stall_ns = stall;
        }
        return full && !moves && stands;
}

static void forget_slow_line(struct afz_guard *g)
{
        struct afz_ladder_setup setup = g->ladder.setup;
        setup.lines.slow_bytes = g->lines.slow_bytes = UINT64_MAX;
        afz_ladder_change(&g->ladder, &setup);
}

/* Growth beyond the slow line goes at the pace of swap. A job that was asked to save, or to end,
 * gets the rest of its RAM for that; so does one that got no further for too long. */
static void hold_to_swap(struct afz_guard *g)
{
        if (g->lines.slow_bytes == UINT64_MAX || g->order->policy == AFZ_POLICY_WATCH)
                return;
        if (g->slowed && is_parked(g))
                g->unparked = true;
        bool slow = !g->unparked && g->ladder.stage < AFZ_STAGE_ASKED;
        if (slow == g->slowed)
                return;
        int r = g->hold.row->slow(g->hold.state, slow ? g->lines.slow_bytes : UINT64_MAX);
        if (r == -EOPNOTSUPP)
                forget_slow_line(g);
        else if (r >= 0)
                g->slowed = slow;
}

static enum afz_ack hear_checkpoint(struct afz_guard *g)
{
        enum afz_ack ack = afz_checkpoint_turn(&g->checkpoint, g->pulse.t_ns);
        const char *words = afz_checkpoint_words(&g->checkpoint);
        bool news = ack != g->ack && (ack == AFZ_ACK_SAVED || ack == AFZ_ACK_CANNOT);
        g->ack = ack;
        if (news)
                afz_guard_say(g, "checkpoint", false, "checkpoint: %s",
                              words[0] != '\0'       ? words
                              : ack == AFZ_ACK_SAVED ? "saved"
                                                     : "not saved");
        return ack;
}

/* A job that was asked to end, freed what it had to and goes on is as if it had not been asked. One
 * that is about to end frees its memory as well: hence the wait. */
static void forgive(struct afz_guard *g)
{
        if (!g->stop_asked || g->killed || g->ladder.stage != AFZ_STAGE_CALM) {
                g->calm_ns = 0;
                return;
        }
        if (g->calm_ns == 0)
                g->calm_ns = g->pulse.t_ns;
        if (g->pulse.t_ns - g->calm_ns < FORGIVE_NS)
                return;
        g->stop_asked = false;
        g->stop_ns = 0;
        g->stop_cause = AFZ_CAUSE_NONE;
}

static void look_and_act(struct afz_guard *g)
{
        afz_guard_look(g);
        if (g->pulse.t_ns >= g->slow_next_ns)
                slow_turn(g);
        else if (promised(g).ram_bytes != g->promised_bytes)
                reckon_again(g); /* somebody waits for it */
        const struct afz_pulse *pulse = &g->pulse;
        tell_part_killed(g);
        afz_guard_picture_turn(g);
        if (afz_guard_part_turn(g))
                return;
        hold_to_swap(g);
        afz_ladder_step(&g->ladder, pulse, hear_checkpoint(g), &g->decision);
        forgive(g);
        uint64_t pace = afz_pace_ns(&g->lines, pulse, g->report.fill_bytes_per_s);
        g->wake_ns = pulse->t_ns + pace;
        if (g->decision.wake_ns != 0 && g->decision.wake_ns < g->wake_ns)
                g->wake_ns = g->decision.wake_ns;
        if (g->decision.actions != 0)
                afz_guard_do(g, &g->decision);
        afz_guard_picture(g, g->decision.picture);
}

void afz_guard_tick(struct afz_guard *g)
{
        look_and_act(g);
        afz_guard_record(g);
}
