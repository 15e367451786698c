#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "guard_state.h"
#include "judges.h"
#include "scout_escape.h"

/* A front that is stopped, or whose terminal is (Ctrl-S), may take so long to hear the end. */
#define LAST_WORD_MS 5000

#define GB(bytes)    ((double)(bytes) / (1 << 30))
void afz_guard_send(struct afz_guard *g, const struct afz_word *word)
{
        struct afz_word w = *word;
        afz_guard_record_said(g, word);
        if (g->front_fd < 0)
                return;
        if (g->hold.row)
                w.tier = g->hold.row->tier;
        w.budget_bytes = g->budget.ram_bytes;
        w.swap_bytes = g->budget.swap_bytes;
        (void)afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &w.need_bytes);
        /* Nobody is to be held any more when the last word is said, so it may wait a little. */
        if (w.kind == AFZ_WORD_ENDED || w.kind == AFZ_WORD_FAILED)
                (void)poll(&(struct pollfd){.fd = g->front_fd, .events = POLLOUT}, 1, LAST_WORD_MS);
        (void)send(g->front_fd, &w, sizeof w, MSG_DONTWAIT | MSG_NOSIGNAL);
}

__attribute__((format(printf, 2, 0))) static void send_text(struct afz_guard *g, const char *format,
                                                            va_list args, struct afz_word *word)
{
        vsnprintf(word->text, sizeof word->text, format, args);
        afz_guard_send(g, word);
}

void afz_guard_say(struct afz_guard *g, const char *event, bool urgent, const char *format, ...)
{
        struct afz_word word = {.kind = AFZ_WORD_SAY, .urgent = urgent};
        va_list args;
        snprintf(word.event, sizeof word.event, "%s", event);
        va_start(args, format);
        send_text(g, format, args, &word);
        va_end(args);
}

void afz_guard_fail(struct afz_guard *g, int code, const char *format, ...)
{
        struct afz_word word = {
                .kind = AFZ_WORD_FAILED, .code = code, .urgent = true, .event = "failed"};
        va_list args;
        va_start(args, format);
        send_text(g, format, args, &word);
        va_end(args);
}

static const char *tier_words(enum afz_tier tier)
{
        static const char *const words[AFZ_TIER_COUNT] = {
                [AFZ_TIER_NONE] = "held by looking and signals alone",
                [AFZ_TIER_CGROUP1] = "held in a cgroup (v1)",
                [AFZ_TIER_CGROUP2] = "held in a cgroup",
                [AFZ_TIER_SCOPE] = "held in a systemd scope",
        };
        return words[tier];
}

void afz_guard_say_escape(struct afz_guard *g, const char *name)
{
        afz_guard_say(g, "escape", false,
                      "what `%s` starts is not in our tree, and is not held: put antifreeze inside "
                      "it",
                      name);
}

/* `lacking` has a line for each better tier that could not be had; the first says it best. */
void afz_guard_say_started(struct afz_guard *g, const char *lacking)
{
        struct afz_word word = {.kind = AFZ_WORD_STARTED, .event = "start"};
        const struct afz_guard_order *order = g->order;
        enum afz_tier tier = g->hold.row->tier;
        uint64_t available = 0, total = order->ram_total_bytes;
        struct afz_pulse pulse = {0};
        char *text = word.text;
        size_t cap = sizeof word.text;
        (void)afz_host_pulse_read(&g->host, false, &pulse);
        (void)afz_pulse_get(&pulse, AFZ_PULSE_AVAILABLE, &available);
        if (order->policy == AFZ_POLICY_WATCH) {
                snprintf(text, cap, "%s, watched only (--policy watch): no limits are set",
                         g->run->page->id);
        } else {
                int n = snprintf(text, cap, "%s, %s: may use %.*f of %.1f GB (others use %.1f)%s",
                                 g->run->page->id, tier_words(tier),
                                 g->budget.ram_bytes < (UINT64_C(1) << 30) ? 2 : 1,
                                 GB(g->budget.ram_bytes), GB(total),
                                 GB(total > available ? total - available : 0),
                                 order->budget.given ? "" : "; --budget changes it");
                if (tier == AFZ_TIER_NONE && n > 0 && (size_t)n < cap)
                        snprintf(text + n, cap - (size_t)n,
                                 "; `antifreeze doctor` tells how to hold it better");
        }
        if (order->dry_run && order->policy != AFZ_POLICY_WATCH) {
                size_t n = strlen(text);
                snprintf(text + n, cap - n,
                         "\nswap: %s more; braked and asked to save from %s on, stopped at %s",
                         SIZE(g->budget.swap_bytes), SIZE(g->lines.act_bytes),
                         SIZE(g->lines.stop_bytes));
                n = strlen(text);
                if (lacking[0] != '\0')
                        snprintf(text + n, cap - n, "\nnot to be had: %s", lacking);
        }
        afz_guard_send(g, &word);
        char name[32];
        if (afz_scout_escape(g->run->page->cmd, NULL, name, sizeof name)) /* it may end at once */
                afz_guard_say_escape(g, name);
}

void afz_guard_say_survivor(struct afz_guard *g, bool ends)
{
        char name[32] = "?", path[32];
        struct afz_span text;
        char buf[64];
        pid_t pid = g->hold.row->other(g->hold.state, g->spawn.pid);
        if (pid <= 0)
                return;
        snprintf(path, sizeof path, "%d/comm", (int)pid);
        if (afz_env_read_head(&g->env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) == 0)
                afz_span_copy(afz_span_trim(text), name, sizeof name);
        if (ends)
                afz_guard_say(g, "survivors", true,
                              "%s (pid %d) outlives the command: it is ended in %.0f s unless it "
                              "ends by itself (--grace)",
                              name, (int)pid, (double)g->order->grace_ns / (double)AFZ_NS_PER_S);
        else
                afz_guard_say(g, "survivors", true, "%s (pid %d) outlives the command", name,
                              (int)pid);
}

void afz_guard_say_swept(struct afz_guard *g)
{
        unsigned files = g->report.swept.files;
        uint64_t bytes = g->report.swept.bytes;
        bool large = bytes >= 1 << 30;
        afz_guard_say(g, "swept", false, "removed %u file%s (%.*f %s) that it left in /dev/shm",
                      files, files == 1 ? "" : "s", large ? 1 : 0,
                      (double)bytes / (large ? 1 << 30 : 1 << 20), large ? "GB" : "MB");
}

/* How it ended, as the contract names it. */
static struct afz_end end_of(const struct afz_guard *g)
{
        if (g->detach)
                return (struct afz_end){AFZ_END_UNKNOWN, -1};
        if (afz_guard_kernel_killed(g) &&
            (g->order->attach || g->root_signaled || g->root_status != 0))
                return (struct afz_end){AFZ_END_OOM_KILLED, SIGKILL};
        if (g->agent.gave_up) /* as the one ended that the others waited for */
                return (struct afz_end){AFZ_END_EXIT, 1};
        if (g->stop_asked)
                return (struct afz_end){AFZ_END_STOPPED, g->root_signaled ? g->root_status : -1};
        if (g->order->attach)
                return (struct afz_end){AFZ_END_UNKNOWN, -1};
        if (g->root_signaled)
                return (struct afz_end){AFZ_END_SIGNAL, g->root_status};
        return (struct afz_end){AFZ_END_EXIT, g->root_status};
}

/* What only the guard knows of the end, for whoever explains it: itself now, others later. */
static void fill_facts(const struct afz_guard *g, struct afz_facts *ret)
{
        *ret = (struct afz_facts){
                .end = end_of(g),
                .watch_only = g->order->policy == AFZ_POLICY_WATCH,
                .timed_out = g->timed_out,
                .checkpoint_signal = g->order->checkpoint_signal,
                .parts_stopped = g->parts_stopped,
                .attempt = g->plan.attempt,
                .batch = g->plan.batch,
                .accum = g->plan.accum,
                .hard_bytes = g->lines.hard_bytes,
                .largest.pid = g->report.largest.pid,
                .largest.bytes = g->report.largest.bytes,
                .other.grown_bytes = g->report.other.grown_bytes,
        };
        snprintf(ret->largest.name, sizeof ret->largest.name, "%s", g->report.largest.name);
        snprintf(ret->other.name, sizeof ret->other.name, "%s", g->report.other.name);
        snprintf(ret->saved, sizeof ret->saved, "%s", afz_checkpoint_words(&g->checkpoint));
        snprintf(ret->not_again, sizeof ret->not_again, "%s", g->not_again);
        if (!g->stop_asked)
                return;
        ret->stop_cause = g->stop_cause;
        ret->storm = g->stop_storm;
        ret->stop_need_bytes = g->stop_need_bytes;
        ret->slope_bytes_per_s = g->decision.slope_bytes_per_s;
}

/* How it ended, without the recording, which the guard does not read. */
void afz_guard_outcome(const struct afz_guard *g, struct afz_outcome *ret)
{
        static const struct afz_flight nothing;
        struct afz_run_page *page = g->run->page;
        struct afz_case c = {
                .flight = &nothing,
                .peak_bytes = page->peak_bytes,
                .budget_bytes = g->budget.ram_bytes,
                .swap_bytes = g->budget.swap_bytes,
        };
        fill_facts(g, &c.facts);
        for (int i = 0; i < AFZ_ACTION_COUNT; i++)
                c.did[i] = page->did[i];
        page->facts = c.facts;
        *ret = (struct afz_outcome){.end = c.facts.end};
        afz_judge_end(&c, ret);
        if (g->detach)
                snprintf(ret->verdict[0].summary, sizeof ret->verdict[0].summary,
                         "it was let go and runs on");
}

void afz_guard_say_ended(struct afz_guard *g, const struct afz_outcome *outcome)
{
        const struct afz_verdict *v = &outcome->verdict[0];
        bool ours = outcome->end.how == AFZ_END_STOPPED || outcome->end.how == AFZ_END_OOM_KILLED;
        uint64_t back_ns = g->gone_ns > 0 ? g->gone_ns : afz_guard_now(g);
        afz_guard_say(g, "verdict", ours, "%s: %s%s%s", v->id, v->summary,
                      v->fix[0] != '\0' ? ". Try: " : "", v->fix);
        if (g->stop_asked && g->stop_ns != 0)
                afz_guard_say(g, "confirm", false, "its memory was back after %.0f ms",
                              (double)(back_ns - g->stop_ns) / (double)AFZ_NS_PER_MS);
        struct afz_word word = {.kind = AFZ_WORD_ENDED, .event = "end"};
        if (ours)
                word.code = 75;
        else if (outcome->end.how == AFZ_END_SIGNAL)
                word.sig = outcome->end.code;
        else if (outcome->end.how == AFZ_END_EXIT)
                word.code = outcome->end.code;
        afz_guard_send(g, &word);
}
