/* What the guard puts into the recording: its looks, its deeds, its words. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "clock.h"
#include "guard_state.h"

/* Looks come up to 500 times a second; so much is enough to see a step in them. */
#define LOOK_NS (100 * AFZ_NS_PER_MS)

/* A look that needs by one part in so many more than the next one that is recorded is a peak. */
#define PEAK_PART 64

#define CMD_CAP   8192
#define PATH_CAP  4096

/* ---- the head ---- */

static size_t join_arguments(const char *const *argv, char *buf, size_t cap)
{
        size_t n = 0;
        for (int i = 0; argv[i] && n + 1 < cap; i++) {
                if (i > 0)
                        buf[n++] = ' ';
                n += afz_span_copy(afz_span_str(argv[i]), buf + n, cap - n);
        }
        buf[n] = '\0';
        return n;
}

/* Of a process that runs already: its arguments as the kernel has them, each with its NUL. */
static size_t read_arguments(pid_t pid, char *buf, size_t cap)
{
        char path[32], text[CMD_CAP];
        snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
        if (fd >= 0)
                close(fd);
        if (n <= 0)
                return 0;
        for (ssize_t i = 0; i + 1 < n; i++)
                if (text[i] == '\0')
                        text[i] = ' ';
        if (text[n - 1] == '\0')
                n--;
        return afz_span_copy((struct afz_span){text, (size_t)n}, buf, cap);
}

static void set_command(const struct afz_guard *g, char *buf, size_t cap)
{
        size_t n = g->order->argv ? join_arguments((const char *const *)g->order->argv, buf, cap)
                                  : read_arguments(g->order->attach, buf, cap);
        if (n == 0)
                snprintf(buf, cap, "%s", g->run->page->cmd);
}

static void set_folder(const struct afz_guard *g, char *buf, size_t cap)
{
        char path[32] = "/proc/self/cwd";
        if (g->order->attach)
                snprintf(path, sizeof path, "/proc/%d/cwd", (int)g->order->attach);
        ssize_t n = readlink(path, buf, cap - 1);
        buf[n > 0 ? n : 0] = '\0';
}

void afz_guard_record_open(struct afz_guard *g)
{
        const struct afz_run_page *page = g->run->page;
        char cmd[CMD_CAP], cwd[PATH_CAP], git[] = ""; /* the writer looks it up */
        struct sysinfo machine;
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        if (g->order->dry_run)
                return;
        set_command(g, cmd, sizeof cmd);
        set_folder(g, cwd, sizeof cwd);
        struct afz_flight_head head = {
                .cmd = cmd,
                .cwd = cwd,
                .git = git,
                .started_s = page->started_s,
                .ram_total_bytes = g->order->ram_total_bytes,
                .budget_bytes = g->budget.ram_bytes,
                .swap_bytes = g->budget.swap_bytes,
                .cores = cores > 0 ? (uint32_t)cores : 1,
                .policy = page->policy,
        };
        if (g->order->policy == AFZ_POLICY_WATCH)
                head.budget_bytes = head.swap_bytes = 0;
        if (sysinfo(&machine) == 0)
                head.swap_total_bytes = (uint64_t)machine.totalswap * machine.mem_unit;
        memcpy(head.run, page->id, sizeof head.run);
        memcpy(head.boot_id, page->boot_id, sizeof head.boot_id);
        (void)gethostname(head.host, sizeof head.host - 1);
        int r = afz_recorder_start(g->run, &head, &g->recorder);
        if (r < 0 && r != -ENOENT) /* without a folder the front has said it */
                afz_guard_say(g, "recording", false, "this run is not recorded: %s", strerror(-r));
}

/* ---- looks, deeds, words ---- */

/* Words may be said before there is an env. */
static uint64_t now_ns(void)
{
        return afz_clock_ns(CLOCK_MONOTONIC);
}

static void put(struct afz_guard *g, const struct afz_pulse *pulse)
{
        static const enum afz_metric of_figure[AFZ_PULSE_COUNT] = {
                [AFZ_PULSE_NEED] = AFZ_HOLD_NEED,
                [AFZ_PULSE_SWAP] = AFZ_HOLD_AWAY,
                [AFZ_PULSE_AVAILABLE] = AFZ_HOLD_AVAILABLE,
                [AFZ_PULSE_SWAP_FREE] = AFZ_HOLD_SWAP_FREE,
                [AFZ_PULSE_STALL] = AFZ_HOLD_STALL,
                [AFZ_PULSE_JOB_STALL] = AFZ_HOLD_JOB_STALL,
                [AFZ_PULSE_OOM_KILLS] = AFZ_HOLD_OOM_KILLS,
                [AFZ_PULSE_PROCESSES] = AFZ_HOLD_PROCESSES,
        };
        struct afz_sample s = {
                .t_ns = pulse->t_ns, .subject = {.kind = AFZ_KIND_HOLD}, .name = "job"};
        uint64_t value;
        for (unsigned i = 0; i < AFZ_PULSE_COUNT; i++)
                if (i != AFZ_PULSE_SWAP_INS &&
                    afz_pulse_get(pulse, (enum afz_pulse_figure)i, &value))
                        afz_sample_set_u64(&s, of_figure[i], value);
        if (g->order->policy != AFZ_POLICY_WATCH) {
                afz_sample_set_u64(&s, AFZ_HOLD_BUDGET, g->budget.ram_bytes);
                afz_sample_set_u64(&s, AFZ_HOLD_HARD, g->lines.hard_bytes);
        }
        afz_sample_set(&s, AFZ_HOLD_BRAKED, g->braked);
        afz_sample_set(&s, AFZ_HOLD_STAGE, (int64_t)g->ladder.stage);
        afz_recorder_pulse(g->recorder, &s);
}

static uint64_t need_of(const struct afz_pulse *pulse)
{
        uint64_t need = 0;
        (void)afz_pulse_get(pulse, AFZ_PULSE_NEED, &need);
        return need;
}

/* A peak between two looks that are recorded is what most people ask for: it is recorded, too. */
static void put_with_peak(struct afz_guard *g)
{
        const struct afz_pulse *top = &g->recorded.top;
        uint64_t need = need_of(&g->pulse);
        if (top->t_ns < g->pulse.t_ns && need_of(top) > need + need / PEAK_PART)
                put(g, top);
        put(g, &g->pulse);
        g->recorded.top = (struct afz_pulse){0};
}

void afz_guard_record(struct afz_guard *g)
{
        uint64_t t_ns = g->pulse.t_ns;
        if (!g->recorder || t_ns == 0)
                return;
        if (need_of(&g->pulse) > need_of(&g->recorded.top))
                g->recorded.top = g->pulse;
        if (t_ns < g->recorded.next_ns && g->braked == g->recorded.braked &&
            g->ladder.stage == g->recorded.stage)
                return;
        g->recorded.next_ns = t_ns + LOOK_NS;
        g->recorded.braked = g->braked;
        g->recorded.stage = g->ladder.stage;
        put_with_peak(g);
}

void afz_guard_record_action(struct afz_guard *g, enum afz_action action)
{
        afz_recorder_mark(g->recorder, now_ns(), AFZ_MARK_ACTION, (int64_t)action,
                          afz_action_name(action));
}

void afz_guard_record_attempt(struct afz_guard *g)
{
        char text[64 + AFZ_CONTROL_LINE] = "";
        if (g->plan.batch > 0)
                snprintf(text, sizeof text, "batch %llu, accumulation %llu",
                         (unsigned long long)g->plan.batch, (unsigned long long)g->plan.accum);
        else if (g->plan.lean > 0)
                snprintf(text, sizeof text, "each batch in %u parts", 1U << g->plan.lean);
        size_t n = strlen(text);
        if (g->plan.attempt > 0 && g->agent.saved[0] != '\0')
                snprintf(text + n, sizeof text - n, "%sfrom %s", n > 0 ? ", " : "", g->agent.saved);
        afz_recorder_go(g->recorder, g->hold.row->tier);
        afz_recorder_mark(g->recorder, now_ns(), AFZ_MARK_ATTEMPT, g->plan.attempt + 1, text);
        g->recorded.next_ns = 0;
}

void afz_guard_record_agent(struct afz_guard *g, enum afz_agent_event event, const char *text)
{
        afz_recorder_mark(g->recorder, now_ns(), AFZ_MARK_AGENT, (int64_t)event, text);
}

void afz_guard_record_said(struct afz_guard *g, const struct afz_word *word)
{
        char text[sizeof word->event + sizeof word->text + 2];
        if (!g->recorder || word->text[0] == '\0')
                return;
        snprintf(text, sizeof text, "%s: %s", word->event, word->text);
        afz_recorder_mark(g->recorder, now_ns(), AFZ_MARK_SAID, 0, text);
}

/* Said once: the job is none the worse for it. */
void afz_guard_record_trouble(struct afz_guard *g)
{
        int err = g->recorded.writer_gone ? -ESRCH : afz_recorder_trouble(g->recorder);
        if (!g->recorder || g->recorded.told || err == 0)
                return;
        g->recorded.told = true;
        const char *dir = g->run->page->dir;
        if (err == -ESRCH)
                afz_guard_say(g, "recording", false,
                              "the recording stops: the process that writes it was ended; the job "
                              "goes on");
        else if (err == -ENOSPC || err == -EDQUOT)
                afz_guard_say(g, "recording", false,
                              "the recording stops: no space left for %s; the job goes on, and so "
                              "does the recording as soon as there is room",
                              dir);
        else
                afz_guard_say(g, "recording", false, "the recording stops: %s: %s; the job goes on",
                              dir, strerror(-err));
}
