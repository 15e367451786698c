/* demo: the built-in trainer, with one pitfall or none, watched. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "config.h"
#include "engine.h"
#include "plain.h"
#include "quantity.h"

#define MS AFZ_NS_PER_MS
#define S  AFZ_NS_PER_S

/* How often the job is looked at. Lines come less often, but peaks are not to be missed. */
#define TICK_NS (250 * MS)

/* How long the trainer may take to end and remove its files; one that spins or hangs never does. */
#define GRACE_NS (2 * S)

struct options {
        uint64_t every_ns, time_ns;
        bool list;
};

/* The pitfalls that the trainer knows; a test compares this list with its own. */
static const char *const pitfalls[] = {
        "retain-history", "whole-dataset", "large-batch",    "retain-intermediate", "leaky-layer",
        "spin",           "deadlock",      "log-everything", "slow-disk",           NULL,
};

/* What was seen of the whole run. */
struct tally {
        uint64_t start_ns, end_ns;
        int64_t peak_need_bytes; /* -1: never known */
        double self_cpu_ns;
        uint64_t limit_ticks[AFZ_LIMIT_COUNT];
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
        (void)sig;
        interrupted = 1;
}

static uint64_t now_ns(void)
{
        return afz_clock_ns(CLOCK_MONOTONIC);
}

/* Beside this binary in a build folder, else where it was installed. */
static int find_trainer(char *ret, size_t cap)
{
        char self[512];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        if (n > 0) {
                self[n] = '\0';
                char *slash = strrchr(self, '/');
                if (slash) {
                        *slash = '\0';
                        if (afz_path(ret, cap, "%s/demo/afz-trainer", self) > 0 &&
                            access(ret, X_OK) == 0)
                                return 0;
                        if (afz_path(ret, cap, "%s/../libexec/antifreeze/afz-trainer", self) > 0 &&
                            access(ret, X_OK) == 0)
                                return 0;
                }
        }
        if (afz_path(ret, cap, "%s/afz-trainer", AFZ_LIBEXEC_DIR) > 0 && access(ret, X_OK) == 0)
                return 0;
        return -ENOENT;
}

/* Starts the trainer, held back on a pipe until we watch it. */
static pid_t start_trainer(const char *path, const char *pitfall, int *ret_gate)
{
        char flag[64];
        int gate[2];
        const char *argv[] = {path, NULL, NULL};
        if (pitfall && afz_path(flag, sizeof flag, "--%s", pitfall) > 0)
                argv[1] = flag;
        if (pipe2(gate, O_CLOEXEC) < 0)
                return -1;
        pid_t pid = fork();
        if (pid == 0) {
                char go;
                signal(SIGINT, SIG_DFL);
                close(gate[1]);
                while (read(gate[0], &go, 1) < 0 && errno == EINTR)
                        ;
                execv(path, (char *const *)argv);
                _exit(127);
        }
        close(gate[0]);
        *ret_gate = gate[1];
        return pid;
}

static void count_tick(struct tally *tally, const struct afz_window *window)
{
        const struct afz_sample *job = afz_window_one(window, AFZ_KIND_JOB);
        const struct afz_sample *self = afz_window_one(window, AFZ_KIND_SELF);
        int64_t need;
        if (job && afz_sample_get(job, AFZ_JOB_NEED, &need) && need > tally->peak_need_bytes)
                tally->peak_need_bytes = need;
        tally->self_cpu_ns = (double)afz_sample_or(self, AFZ_SELF_CPU, 0);
        tally->limit_ticks[window->limit.kind]++;
}

static void print_line(const struct afz_window *window)
{
        char buf[512], clock[AFZ_TIME_OF_DAY_CAP];
        struct afz_out out = afz_out_to(STDERR_FILENO, buf, sizeof buf);
        afz_out_str(&out, "antifreeze: ");
        afz_plain_line(&out, window, afz_time_of_day(clock));
        (void)afz_out_flush(&out);
}

/* Ticks until the trainer ends; returns its wait status. */
static int watch_trainer(struct afz_engine *engine, pid_t pid, const struct options *opt,
                         struct tally *tally)
{
        int status = 0;
        uint64_t next_line = tally->start_ns + opt->every_ns;
        uint64_t asked_ns = 0;
        for (;;) {
                afz_engine_tick(engine);
                count_tick(tally, afz_engine_window(engine));
                if (waitpid(pid, &status, WNOHANG) == pid)
                        break;
                uint64_t now = now_ns();
                if (now >= next_line) {
                        print_line(afz_engine_window(engine));
                        next_line += opt->every_ns;
                }
                if (asked_ns != 0 && now - asked_ns >= GRACE_NS)
                        kill(pid, SIGKILL);
                if (asked_ns == 0 && (interrupted || now - tally->start_ns >= opt->time_ns)) {
                        kill(pid, SIGTERM);
                        asked_ns = now;
                        if (!interrupted)
                                afz_say("the demo's time is over (--time): the trainer was "
                                        "ended");
                }
                struct timespec pause = {0, (long)TICK_NS};
                nanosleep(&pause, NULL);
        }
        tally->end_ns = now_ns();
        return status;
}

static void print_summary(const struct tally *tally, int status)
{
        char need[AFZ_SIZE_TEXT_CAP] = "?", took[AFZ_DURATION_TEXT_CAP], end[32];
        uint64_t ns = tally->end_ns - tally->start_ns;
        int most = 0;
        for (int i = 0; i < AFZ_LIMIT_COUNT; i++)
                if (tally->limit_ticks[i] > tally->limit_ticks[most])
                        most = i;
        if (tally->peak_need_bytes >= 0)
                afz_format_size(need, sizeof need, (uint64_t)tally->peak_need_bytes);
        if (WIFEXITED(status))
                snprintf(end, sizeof end, "exit %d", WEXITSTATUS(status));
        else
                snprintf(end, sizeof end, "signal %d", WTERMSIG(status));
        afz_say("the trainer ended (%s) after %s: peak %s, mostly limited by: %s", end,
                afz_format_duration(took, sizeof took, ns), need,
                most == AFZ_LIMIT_NONE ? "nothing" : afz_limit_name((enum afz_limit_kind)most));
        afz_say("watching cost %.2f %% of one core",
                ns > 0 ? tally->self_cpu_ns / (double)ns * 100 : 0.0);
}

static int run_watched(const struct options *opt, const char *trainer, const char *pitfall)
{
        struct afz_env env;
        struct afz_engine *engine;
        struct tally tally = {.start_ns = now_ns(), .peak_need_bytes = -1};
        int gate;
        signal(SIGINT, on_interrupt); /* we end after the trainer, to say how it went */
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        pid_t pid = start_trainer(trainer, pitfall, &gate);
        if (pid < 0)
                return afz_fail(AFZ_EXIT_OWN, "demo: cannot start the trainer: %s",
                                strerror(errno));
        int r = afz_env_open_live(&env);
        if (r >= 0) {
                r = afz_engine_new(&env, &(struct afz_target){.pid = (uint64_t)pid}, &engine);
                if (r < 0)
                        afz_env_done(&env);
        }
        if (r < 0) {
                kill(pid, SIGKILL);
                (void)waitpid(pid, NULL, 0);
                close(gate);
                return afz_fail(AFZ_EXIT_OWN, "demo: cannot watch: %s", strerror(-r));
        }
        close(gate); /* go */
        int status = watch_trainer(engine, pid, opt, &tally);
        afz_engine_free(engine);
        afz_env_done(&env);
        print_summary(&tally, status);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool is_pitfall(const char *name)
{
        for (size_t i = 0; pitfalls[i]; i++)
                if (strcmp(pitfalls[i], name) == 0)
                        return true;
        return false;
}

static int run_demo(const struct afz_invocation *inv)
{
        const struct options *opt = inv->options;
        const char *pitfall = inv->argc > 0 ? inv->argv[0] : NULL;
        char trainer[1024];
        if (find_trainer(trainer, sizeof trainer) < 0)
                return afz_fail(AFZ_EXIT_OWN, "demo: the trainer (afz-trainer) is not installed "
                                              "beside this program or in " AFZ_LIBEXEC_DIR);
        if (opt->list) {
                execl(trainer, trainer, "--list-pitfalls", (char *)NULL);
                return afz_fail(AFZ_EXIT_OWN, "demo: %s: %s", trainer, strerror(errno));
        }
        if (pitfall && !is_pitfall(pitfall))
                return afz_fail(AFZ_EXIT_USAGE,
                                "demo: no pitfall '%s'; `antifreeze demo --list` shows them",
                                pitfall);
        afz_say("training a 784-1024-10 network on digits it draws itself%s%s",
                pitfall ? ", with the pitfall " : "", pitfall ? pitfall : "");
        return run_watched(opt, trainer, pitfall);
}

static const struct afz_option rows[] = {
        {.name = "list",
         .letter = 'l',
         .offset = offsetof(struct options, list),
         .help = "List the pitfalls and end."},
        {.name = "every",
         .arg = "TIME",
         .type = AFZ_OPTION_DURATION,
         .offset = offsetof(struct options, every_ns),
         .min = 100 * MS,
         .max = 3600 * S,
         .default_text = "2s",
         .help = "Time between two of our lines."},
        {.name = "time",
         .arg = "TIME",
         .type = AFZ_OPTION_DURATION,
         .offset = offsetof(struct options, time_ns),
         .min = S,
         .max = 3600 * S,
         .default_text = "30s",
         .help = "End the trainer after this time; some pitfalls never end by themselves."},
        {0},
};

static const struct options defaults = {.every_ns = 2 * S, .time_ns = 30 * S};

static const struct afz_operand operands[] = {
        {.name = "PITFALL", .choices = pitfalls, .optional = true},
        {0},
};

static const struct afz_example examples[] = {
        {"antifreeze demo", "A good run."},
        {"antifreeze demo retain-history", "Every step keeps its activations: memory grows."},
        {0},
};

const struct afz_command afz_command_demo = {
        .name = "demo",
        .summary = "train a small network with one pitfall or none, watched",
        .description =
                "Runs the built-in trainer, a real perceptron on digits that it draws itself, and "
                "watches it. PITFALL makes it do one of the things that real training programs do "
                "wrong. Its output goes to stdout; Antifreeze's lines go to stderr.",
        .operands = operands,
        .options = rows,
        .examples = examples,
        .options_size = sizeof(struct options),
        .defaults = &defaults,
        .run = run_demo,
};
