/* watch: the live view; without a terminal plain lines; with --json an object a tick. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "engine.h"
#include "json_view.h"
#include "metrics.h"
#include "operand_run.h"
#include "plain.h"
#include "term.h"
#include "watch_lines.h"
#include "watch_live.h"

#define MS AFZ_NS_PER_MS
#define S  AFZ_NS_PER_S

/* How long a command that looks once waits for the GPU's driver to answer. */
#define SETTLE_NS (3 * S)

/* A first look is taken this long before the first line, so that it has rates. */
#define FIRST_LOOK_NS (200 * MS)

/* Among plain lines, the lines of the program are told so often. */
#define LINES_NS (10 * S)

struct options {
        uint64_t interval_ns, count;
        bool json, plain, metrics;
        const char *root;
};

static void sleep_until(uint64_t deadline_ns)
{
        struct timespec ts = {(time_t)(deadline_ns / S), (long)(deadline_ns % S)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
}

/* What is watched: a job, and whoever can be asked about its lines. */
struct target {
        uint64_t pid;
        struct afz_watch_lines lines;
};

/* What is carried from one tick to the next. */
struct tick {
        struct afz_json_view json;
        uint64_t lines_ns; /* when the program's lines were last told */
};

static void write_tick(struct afz_out *out, const struct afz_window *window,
                       const struct options *opt, struct target *target, struct tick *tick)
{
        char clock[AFZ_TIME_OF_DAY_CAP];
        uint64_t now = afz_clock_ns(CLOCK_MONOTONIC);
        afz_watch_lines_look(&target->lines, now);
        if (opt->json) {
                afz_json_tick(&tick->json, out, window, afz_clock_ns(CLOCK_REALTIME));
                return;
        }
        afz_plain_line(out, window, afz_time_of_day(clock));
        if (target->lines.now.known && now - tick->lines_ns >= LINES_NS) {
                afz_plain_lines(out, &target->lines.now, clock);
                afz_plain_uses(out, &target->lines.now, clock);
                tick->lines_ns = now;
        }
}

/* One line or object a tick, until the job ends or the reader goes. */
static int watch_lines(struct afz_engine *engine, const struct options *opt, struct target *target)
{
        static char buf[65536];
        struct afz_out out = afz_out_to(STDOUT_FILENO, buf, sizeof buf);
        struct tick tick = {.json = {.lines = &target->lines.now}};
        uint64_t first = opt->interval_ns < FIRST_LOOK_NS ? opt->interval_ns : FIRST_LOOK_NS;
        uint64_t next = afz_clock_ns(CLOCK_MONOTONIC) + first;
        afz_engine_settle(engine, opt->count > 0 ? SETTLE_NS : 0);
        afz_engine_tick(engine);
        for (uint64_t n = 0; opt->count == 0 || n < opt->count; n++) {
                sleep_until(next);
                afz_engine_tick(engine);
                write_tick(&out, afz_engine_window(engine), opt, target, &tick);
                if (afz_out_flush(&out) < 0)
                        return out.err == -EPIPE
                                       ? 0
                                       : afz_fail(AFZ_EXIT_USAGE, "watch: cannot write: %s",
                                                  strerror(-out.err));
                if (!afz_engine_job_alive(engine)) {
                        if (!opt->json)
                                afz_say("process %llu has ended", (unsigned long long)target->pid);
                        return 0;
                }
                uint64_t now = afz_clock_ns(CLOCK_MONOTONIC);
                for (next += opt->interval_ns; next <= now; next += opt->interval_ns)
                        ; /* ticks that were slept through (a suspended machine) are not made up */
        }
        return 0;
}

static int print_metrics(const struct options *opt)
{
        static char buf[65536];
        struct afz_out out = afz_out_to(STDOUT_FILENO, buf, sizeof buf);
        if (opt->json)
                afz_json_metrics(&out);
        else
                afz_metrics_table(&out);
        return afz_out_flush(&out) < 0 && out.err != -EPIPE ? AFZ_EXIT_USAGE : 0;
}

/* Files of many processes are kept open: take as many descriptors as we are allowed. */
static void raise_descriptor_limit(void)
{
        struct rlimit lim;
        if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < lim.rlim_max) {
                lim.rlim_cur = lim.rlim_max;
                (void)setrlimit(RLIMIT_NOFILE, &lim);
        }
}

static int watch(const struct options *opt, const struct afz_env *env, struct target *target)
{
        struct afz_engine *engine;
        struct afz_term_looks looks = afz_term_looks_here(STDIN_FILENO, STDOUT_FILENO);
        struct afz_term_caps caps = afz_term_look(&looks);
        raise_descriptor_limit();
        int r = afz_engine_new(env, &(struct afz_target){.pid = target->pid}, &engine);
        if (r == -ESRCH)
                return afz_fail(AFZ_EXIT_USAGE, "watch: there is no process %llu to be seen",
                                (unsigned long long)target->pid);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "watch: %s", strerror(-r));
        bool live = caps.live && !opt->json && !opt->plain;
        if (live)
                r = afz_watch_live(engine, &target->lines, &caps, opt->interval_ns, opt->count);
        if (!live || r < 0)
                r = watch_lines(engine, opt, target);
        afz_engine_free(engine);
        return r;
}

/* The root of a run's job, and its keeper. */
static int find_root(const char *run, struct target *ret)
{
        struct afz_run_ref ref;
        struct afz_run_page page;
        int status = afz_operand_run(run, &ref);
        if (status != 0)
                return status;
        if (!ref.live || afz_run_peek(&ref, &page) < 0)
                return afz_fail(AFZ_EXIT_USAGE,
                                "watch: run %s is over; 'antifreeze why %s' tells how it ended, "
                                "'antifreeze report %s' shows it",
                                ref.id, ref.id, ref.id);
        if (page.root_pid <= 0)
                return afz_fail(AFZ_EXIT_USAGE, "watch: run %s has not started its command yet",
                                ref.id);
        ret->pid = (uint64_t)page.root_pid;
        afz_watch_lines_init(&ret->lines, ref.socket);
        return 0;
}

/* A process may be the root of a run, though it was named by its number. */
static void find_keeper(const char *pid, struct target *target)
{
        struct afz_run_ref ref;
        struct afz_run_page page;
        if (afz_run_find(pid, &ref) == 0 && ref.live && afz_run_peek(&ref, &page) == 0 &&
            page.root_pid > 0 && (uint64_t)page.root_pid == target->pid)
                afz_watch_lines_init(&target->lines, ref.socket);
}

static int run_watch(const struct afz_invocation *inv)
{
        const struct options *opt = inv->options;
        struct afz_env env;
        struct target target = {0};
        const char *job = inv->argc > 0 ? inv->argv[0] : NULL;
        if (opt->metrics)
                return print_metrics(opt);
        if (job && job[0] && strspn(job, "0123456789") == strlen(job)) {
                if (afz_operand_pid(job, &target.pid) < 0)
                        return afz_fail(AFZ_EXIT_USAGE, "watch: '%s' is no process number", job);
                find_keeper(job, &target);
        } else if (job) {
                int status = find_root(job, &target);
                if (status != 0)
                        return status;
        }
        setlocale(LC_CTYPE, "");
        signal(SIGPIPE, SIG_IGN); /* a reader that goes is an end, not a death */
        int r = opt->root ? afz_env_open_fixture(opt->root, &env) : afz_env_open_live(&env);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "watch: %s: %s", opt->root ? opt->root : "/proc",
                                strerror(-r));
        r = watch(opt, &env, &target);
        afz_env_done(&env);
        return r;
}

static const struct afz_option rows[] = {
        {.name = "interval",
         .letter = 'i',
         .arg = "TIME",
         .type = AFZ_OPTION_DURATION,
         .offset = offsetof(struct options, interval_ns),
         .min = 10 * MS,
         .max = 3600 * S,
         .default_text = "1s",
         .help = "Time between two looks at the machine, such as 100ms or 5s."},
        {.name = "count",
         .letter = 'n',
         .arg = "N",
         .type = AFZ_OPTION_U64,
         .offset = offsetof(struct options, count),
         .min = 1,
         .help = "End after N ticks."},
        {.name = "json",
         .letter = 'j',
         .offset = offsetof(struct options, json),
         .help = "Print one JSON object a tick: every metric, with its unit in its name."},
        {.name = "plain",
         .offset = offsetof(struct options, plain),
         .help = "Print one line a tick, also on a terminal."},
        {.name = "metrics",
         .offset = offsetof(struct options, metrics),
         .help = "List every metric with its unit, meaning and source, and end."},
        {.name = "root",
         .arg = "DIR",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct options, root),
         .complete = AFZ_COMPLETE_DIR,
         .hidden = true,
         .help = "Look at a recorded tree (see capture) instead of this machine."},
        {0},
};

static const struct options defaults = {.interval_ns = S};

static const struct afz_operand operands[] = {
        {.name = "RUN|PID",
         .complete = AFZ_COMPLETE_RUN | AFZ_COMPLETE_PID | AFZ_COMPLETE_DIR,
         .optional = true},
        {0},
};

static const struct afz_example examples[] = {
        {"antifreeze watch", "The machine and its heaviest processes, live."},
        {"antifreeze watch $(pgrep -n python)", "The newest Python job and all that it started."},
        {"antifreeze watch --json -i 100ms 4242 > job.jsonl",
         "Ten objects a second, for a script."},
        {0},
};

const struct afz_command afz_command_watch = {
        .name = "watch",
        .summary = "show the machine and a job on it, live",
        .description =
                "Shows memory, swap, shared memory and GPU memory with the line that must not be "
                "crossed, pressure, cores, disks, the job's whole process tree with the role of "
                "each process, and what limits the job now.\n\n"
                "PID is the root of the job: its children and theirs belong to it, also those that "
                "were re-parented away. RUN is a run that goes on: its ID, its beginning or its "
                "last four "
                "letters, "
                "or "
                "its folder. Without either the machine's heaviest processes are shown.\n\n"
                "Of a run that has the probe, the lines of its program that hold most memory are "
                "shown, too, and how fast they grow.\n\n"
                "On a terminal it is a live view (press h for its keys); without one it prints one "
                "plain line a tick, and every 10 s one with the program's lines.",
        .operands = operands,
        .options = rows,
        .examples = examples,
        .options_size = sizeof(struct options),
        .defaults = &defaults,
        .run = run_watch,
};
