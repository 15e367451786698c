/* demo: the built-in trainer, with one pitfall or none, guarded. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "config.h"
#include "env.h"
#include "find_probe.h"
#include "front.h"

#define MS AFZ_NS_PER_MS
#define S  AFZ_NS_PER_S

/* Small enough that a pitfall meets it in seconds, large enough for an honest run. */
#define BUDGET_BYTES (UINT64_C(1) << 30)

/* The trainer's own buffers. */
#define LEAST_BYTES (UINT64_C(64) << 20)

struct options {
        struct afz_size_or_percent budget;
        uint64_t every_ns, time_ns;
        bool list;
};

/* The pitfalls that the trainer knows; a test compares this list with its own. */
static const char *const pitfalls[] = {
        "retain-history", "whole-dataset", "large-batch",    "retain-intermediate", "leaky-layer",
        "spin",           "deadlock",      "log-everything", "slow-disk",           NULL,
};

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

static bool is_pitfall(const char *name)
{
        for (size_t i = 0; pitfalls[i]; i++)
                if (strcmp(pitfalls[i], name) == 0)
                        return true;
        return false;
}

static int run_guarded(const struct options *opt, char *trainer, const char *pitfall)
{
        char flag[64], probe[1024];
        char *argv[] = {trainer, NULL, NULL};
        if (pitfall && afz_path(flag, sizeof flag, "--%s", pitfall) > 0)
                argv[1] = flag;
        struct afz_guard_order order = {
                .argv = argv,
                .policy = AFZ_POLICY_PROTECT,
                .best_tier = AFZ_TIER_SCOPE,
                .grace_ns = 2 * S, /* one that spins or hangs never ends by itself */
                .probe = afz_find_probe(probe, sizeof probe) < 0 ? NULL : probe,
                .version = AFZ_VERSION,
        };
        struct afz_front_wish wish = {.budget = opt->budget, .budget_given = true};
        struct afz_front_style style = {.every_ns = opt->every_ns, .end_after_ns = opt->time_ns};
        return afz_front_run(&order, &wish, &style);
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
        if (!opt->budget.is_percent && opt->budget.bytes < LEAST_BYTES)
                return afz_fail(AFZ_EXIT_USAGE,
                                "demo: --budget is too small to train in (64M is the "
                                "least)");
        if (pitfall && !is_pitfall(pitfall))
                return afz_fail(AFZ_EXIT_USAGE,
                                "demo: no pitfall '%s'; `antifreeze demo --list` shows them",
                                pitfall);
        afz_say("training a 784-1024-10 network on digits it draws itself%s%s",
                pitfall ? ", with the pitfall " : "", pitfall ? pitfall : "");
        return run_guarded(opt, trainer, pitfall);
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
        {.name = "budget",
         .arg = "SIZE|%",
         .type = AFZ_OPTION_SIZE_OR_PERCENT,
         .offset = offsetof(struct options, budget),
         .default_text = "1G",
         .help = "How much RAM the trainer may use: small, so that you see what happens there."},
        {.name = "time",
         .arg = "TIME",
         .type = AFZ_OPTION_DURATION,
         .offset = offsetof(struct options, time_ns),
         .min = S,
         .max = 3600 * S,
         .default_text = "100s",
         .help = "End the trainer after this time; some pitfalls never end by themselves. That is "
                 "no "
                 "failure: the exit status is 0."},
        {0},
};

static const struct options defaults = {
        .budget = {.bytes = BUDGET_BYTES},
        .every_ns = 2 * S,
        .time_ns = 100 * S, /* a hang is called one after 60 s */
};

static const struct afz_operand operands[] = {
        {.name = "PITFALL", .choices = pitfalls, .optional = true},
        {0},
};

static const struct afz_example examples[] = {
        {"antifreeze demo", "A good run."},
        {"antifreeze demo retain-history",
         "Every step keeps its activations: memory grows, and the job is stopped in time."},
        {0},
};

const struct afz_command afz_command_demo = {
        .name = "demo",
        .summary = "train a small network with one pitfall or none, guarded",
        .description =
                "Runs the built-in trainer, a real perceptron on digits that it draws itself, as "
                "`antifreeze run` would, with a small budget. PITFALL makes it do one of the "
                "things that real training programs do "
                "wrong. Its output goes to stdout; Antifreeze's lines go to stderr.",
        .operands = operands,
        .options = rows,
        .examples = examples,
        .options_size = sizeof(struct options),
        .defaults = &defaults,
        .run = run_demo,
};
