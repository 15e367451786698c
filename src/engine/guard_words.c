#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "guard_state.h"

/* A front that is stopped, or whose terminal is (Ctrl-S), may take so long to hear the end. */
#define LAST_WORD_MS 5000

#define GB(bytes)    ((double)(bytes) / (1 << 30))
void afz_guard_send(struct afz_guard *g, const struct afz_word *word)
{
        struct afz_word w = *word;
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
        if (g->stop_asked)
                return (struct afz_end){AFZ_END_STOPPED, g->root_signaled ? g->root_status : -1};
        if (g->order->attach)
                return (struct afz_end){AFZ_END_UNKNOWN, -1};
        if (g->root_signaled)
                return (struct afz_end){AFZ_END_SIGNAL, g->root_status};
        return (struct afz_end){AFZ_END_EXIT, g->root_status};
}

static bool is_crash(int sig)
{
        return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE ||
               sig == SIGABRT || sig == SIGSYS || sig == SIGTRAP;
}

static void evidence(const struct afz_guard *g, struct afz_verdict *v)
{
        const struct afz_run_page *page = g->run->page;
        int n = 0;
        if (g->order->policy == AFZ_POLICY_WATCH)
                snprintf(v->evidence[n++], sizeof *v->evidence, "peak need %s",
                         SIZE(page->peak_bytes));
        else
                snprintf(v->evidence[n++], sizeof *v->evidence,
                         "peak need %s; %s of RAM and %s of swap were allowed",
                         SIZE(page->peak_bytes), SIZE(g->budget.ram_bytes),
                         SIZE(g->budget.swap_bytes));
        if (g->report.largest.pid > 0)
                snprintf(v->evidence[n++], sizeof *v->evidence, "%s (pid %llu) held most: %s",
                         g->report.largest.name, (unsigned long long)g->report.largest.pid,
                         SIZE(g->report.largest.bytes));
        if (g->stop_asked && g->decision.slope_bytes_per_s > 0)
                snprintf(v->evidence[n++], sizeof *v->evidence, "it grew by %.0f MB/s at the end",
                         (double)g->decision.slope_bytes_per_s / (1 << 20));
        const char *saved = afz_checkpoint_words(&g->checkpoint);
        if (saved[0] != '\0')
                snprintf(v->evidence[n++], sizeof *v->evidence, "checkpoint: %.140s", saved);
        if (n < 4 && g->stop_asked && g->report.other.grown_bytes > (UINT64_C(64) << 20))
                snprintf(v->evidence[n++], sizeof *v->evidence,
                         "outside of the job, %s grew by %s meanwhile", g->report.other.name,
                         SIZE(g->report.other.grown_bytes));
}

static void stopped_verdict(const struct afz_guard *g, struct afz_verdict *v)
{
        v->level = AFZ_LEVEL_ACT;
        if (g->stop_storm) {
                afz_verdict_set(v, "fork-storm", v->level, v->confidence);
                v->confidence = 0.95;
                snprintf(v->summary, sizeof v->summary,
                         "stopped: it started processes without end");
                snprintf(v->fix, sizeof v->fix,
                         "look for a worker that starts workers; on spawn platforms, guard the "
                         "main module with if __name__ == \"__main__\"");
        } else if (g->stop_cause == AFZ_CAUSE_PRESSURE) {
                afz_verdict_set(v, "host-exhaustion", v->level, v->confidence);
                v->confidence = 0.7;
                snprintf(v->summary, sizeof v->summary,
                         "stopped to protect the machine, which stayed short of memory while the "
                         "job was slowed down: it held %s%s%s",
                         SIZE(g->stop_need_bytes),
                         g->report.other.grown_bytes > 0 ? "; most growth was by " : "",
                         g->report.other.grown_bytes > 0 ? g->report.other.name : "");
                snprintf(v->fix, sizeof v->fix,
                         "close other programs, or give the job less: "
                         "--budget with a smaller batch");
        } else {
                afz_verdict_set(v, "host-exhaustion", v->level, v->confidence);
                v->confidence = 0.95;
                snprintf(v->summary, sizeof v->summary,
                         "stopped to protect the machine: the job needed %s and grew, of the %s it "
                         "may use",
                         SIZE(g->stop_need_bytes), SIZE(g->lines.hard_bytes));
                snprintf(v->fix, sizeof v->fix,
                         "a smaller batch, streaming the data, or freeing what is kept between "
                         "steps; if the RAM is there, --budget raises the limit");
        }
}

static void oom_verdict(const struct afz_guard *g, struct afz_verdict *v)
{
        afz_verdict_set(v, "oom-killed", v->level, v->confidence);
        v->level = AFZ_LEVEL_ACT;
        v->confidence = 0.98;
        snprintf(v->summary, sizeof v->summary,
                 "the kernel stopped the job at the limit that protects the machine (%s): it grew "
                 "faster than it could be stopped gently",
                 SIZE(g->budget.ram_bytes));
        snprintf(v->fix, sizeof v->fix,
                 "a smaller batch, or streaming the data; if the RAM is "
                 "there, --budget raises the limit");
}

/* Ended by a signal that was not ours. */
static void signal_verdict(const struct afz_guard *g, int sig, struct afz_verdict *v)
{
        afz_verdict_set(v, "killed-externally", v->level, v->confidence);
        v->confidence = 0.8;
        if (is_crash(sig)) {
                afz_verdict_set(v, "crash", v->level, v->confidence);
                snprintf(v->summary, sizeof v->summary, "it crashed (%s)", strsignal(sig));
                snprintf(v->fix, sizeof v->fix,
                         "look at its last lines; python -X faulthandler shows where");
        } else if (sig == g->order->checkpoint_signal && g->run->page->did[AFZ_ACTION_CHECKPOINT]) {
                afz_verdict_set(v, "checkpoint-signal", v->level, v->confidence);
                snprintf(v->summary, sizeof v->summary,
                         "our --checkpoint-signal (%s) ended it: it does not handle that signal",
                         strsignal(sig));
                snprintf(v->fix, sizeof v->fix,
                         "let the program handle it, or save by --checkpoint-cmd");
        } else if (sig == SIGINT) {
                v->level = AFZ_LEVEL_OK;
                snprintf(v->summary, sizeof v->summary, "it was interrupted (Ctrl-C or SIGINT)");
        } else if (sig == SIGPIPE) {
                v->level = AFZ_LEVEL_OK;
                snprintf(v->summary, sizeof v->summary, "who read its output went away (SIGPIPE)");
        } else {
                snprintf(v->summary, sizeof v->summary, "somebody ended it (%s), not Antifreeze",
                         strsignal(sig));
        }
}

static void clean_verdict(const struct afz_guard *g, struct afz_verdict *v)
{
        uint64_t peak = g->run->page->peak_bytes;
        afz_verdict_set(v, "clean", v->level, v->confidence);
        v->level = AFZ_LEVEL_OK;
        if (g->order->policy == AFZ_POLICY_WATCH)
                snprintf(v->summary, sizeof v->summary, "it ended well; it needed %s", SIZE(peak));
        else if (g->plan.attempt > 0)
                snprintf(v->summary, sizeof v->summary,
                         "it ended well with batch %llu and accumulation %llu, after larger ones "
                         "did not fit; it needed %s of %s",
                         (unsigned long long)g->plan.batch, (unsigned long long)g->plan.accum,
                         SIZE(peak), SIZE(g->lines.hard_bytes));
        else
                snprintf(v->summary, sizeof v->summary,
                         "nothing was wrong: it needed %s of the %s it may use", SIZE(peak),
                         SIZE(g->lines.hard_bytes));
}

static void own_verdict(const struct afz_guard *g, const struct afz_end *end, struct afz_verdict *v)
{
        v->level = AFZ_LEVEL_WARN;
        v->confidence = 0.9;
        if (end->how == AFZ_END_SIGNAL) {
                signal_verdict(g, end->code, v);
        } else if (end->how == AFZ_END_UNKNOWN) {
                afz_verdict_set(v, "not-known", v->level, v->confidence);
                v->level = AFZ_LEVEL_UNKNOWN;
                v->confidence = 1;
                snprintf(v->summary, sizeof v->summary, "%s",
                         g->detach ? "it was let go and runs on"
                                   : "it ended; only its parent knows how");
        } else if (end->how == AFZ_END_EXIT && end->code != 0) {
                afz_verdict_set(v, "exception", v->level, v->confidence);
                v->confidence = 0.6;
                snprintf(v->summary, sizeof v->summary, "it ended by itself with exit status %d",
                         end->code);
                snprintf(v->fix, sizeof v->fix, "look at its last lines");
        } else if (g->parts_stopped > 0) {
                afz_verdict_set(v, "host-exhaustion", v->level, v->confidence);
                v->level = AFZ_LEVEL_ACT;
                v->confidence = 0.95;
                snprintf(v->summary, sizeof v->summary,
                         "%u of the server's kernels %s stopped alone to protect the machine; the "
                         "server went on",
                         g->parts_stopped, g->parts_stopped == 1 ? "was" : "were");
                snprintf(v->fix, sizeof v->fix,
                         "fewer notebooks at once, or less data in one; if the RAM is there, "
                         "--budget raises the limit");
        } else {
                clean_verdict(g, v);
        }
}

void afz_guard_outcome(const struct afz_guard *g, struct afz_outcome *ret)
{
        *ret = (struct afz_outcome){.end = end_of(g), .verdicts = 1};
        struct afz_verdict *v = &ret->verdict[0];
        if (ret->end.how == AFZ_END_STOPPED)
                stopped_verdict(g, v);
        else if (ret->end.how == AFZ_END_OOM_KILLED)
                oom_verdict(g, v);
        else
                own_verdict(g, &ret->end, v);
        evidence(g, v);
}

void afz_guard_say_ended(struct afz_guard *g, const struct afz_outcome *outcome)
{
        const struct afz_verdict *v = &outcome->verdict[0];
        bool ours = outcome->end.how == AFZ_END_STOPPED || outcome->end.how == AFZ_END_OOM_KILLED;
        uint64_t now = afz_guard_now(g);
        afz_guard_say(g, "verdict", ours, "%s: %s%s%s", v->id, v->summary,
                      v->fix[0] != '\0' ? ". Try: " : "", v->fix);
        if (g->stop_asked && g->stop_ns != 0)
                afz_guard_say(g, "confirm", false, "its memory was back after %.0f ms",
                              (double)(now - g->stop_ns) / (double)AFZ_NS_PER_MS);
        struct afz_word word = {.kind = AFZ_WORD_ENDED, .event = "end"};
        if (ours)
                word.code = 75;
        else if (outcome->end.how == AFZ_END_SIGNAL)
                word.sig = outcome->end.code;
        else if (outcome->end.how == AFZ_END_EXIT)
                word.code = outcome->end.code;
        afz_guard_send(g, &word);
}
