/* demo: the built-in trainer, with one pitfall or none, guarded. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "config.h"
#include "count_of.h"
#include "env.h"
#include "find_probe.h"
#include "front.h"
#include "quantity.h"

#define MS AFZ_NS_PER_MS
#define S  AFZ_NS_PER_S

/* Small enough that a pitfall meets it in seconds, large enough for an honest run. */
#define BUDGET_BYTES (UINT64_C(256) << 20)

/* The trainer's own buffers. */
#define LEAST_BYTES (UINT64_C(64) << 20)

struct options {
        struct afz_size_or_percent budget;
        uint64_t every_ns, time_ns;
        bool list;
};

#define NO_PITFALL "none"

struct pitfall {
        const char *name;
        const char *flag; /* of the trainer */
        const char *line; /* of the menu; NULL: it is not offered there, since it takes too long */
};

/* Those that the trainer knows, in the menu's order; a test holds them against its own list. */
static const struct pitfall pitfalls[] = {
        /* An eighth of a MiB: the budget is met in 10 s where 190 steps a second are made; where
         * they are fewer, growth is seen for all of the menu's time. */
        {"retain-history", "--retain-history=128K",
         "a list keeps what every step computed: memory runs out"},
        {"whole-dataset", "--whole-dataset",
         "all data is loaded before the first step, and copied once more"},
        {"large-batch", "--large-batch", "the batch is too large for the memory that there is"},
        {"leaky-layer", "--leaky-layer", "layers hold large buffers that are no parameters"},
        {"retain-intermediate", "--retain-intermediate", NULL}, /* 16 KiB a step: a minute */
        {"slow-disk", "--slow-disk", NULL},                     /* a stall is one after 20 s */
        {"log-everything", "--log-everything", NULL},           /* it depends on the disk */
        {"spin", "--spin", NULL},                               /* a hang is one after 60 s */
        {"deadlock", "--deadlock", NULL},
};

/* Nothing goes wrong. After two rounds of the data 98 % of the digits are known, and a machine that
 * is busy with other things has come to their end before --time is over, too: it has to end as
 * clean. */
static const struct pitfall good_run = {NO_PITFALL, "--epochs=2", NULL};

static const char *const choices[] = {
        "retain-history",
        "whole-dataset",
        "large-batch",
        "leaky-layer",
        "retain-intermediate",
        "slow-disk",
        "log-everything",
        "spin",
        "deadlock",
        NO_PITFALL,
        NULL,
};

/* A pitfall of the menu is told by then, on a busy machine too. */
#define MENU_TIME_NS (25 * S)

static const struct pitfall *find_pitfall(const char *name)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(pitfalls); i++)
                if (strcmp(pitfalls[i].name, name) == 0)
                        return &pitfalls[i];
        return NULL;
}

/* ---- the menu ---- */

static void show_menu(void)
{
        size_t offered = 0;
        fputs("What shall go wrong while a small network is trained?\n\n", stderr);
        for (size_t i = 0; i < AFZ_COUNT_OF(pitfalls); i++)
                if (pitfalls[i].line)
                        fprintf(stderr, "  %zu  %-20s %s\n", ++offered, pitfalls[i].name,
                                pitfalls[i].line);
        fputs("  0  " NO_PITFALL "                 nothing: a good run\n\n"
              "Each is caught within half a minute. Others take longer, or depend on the disk:\n"
              "antifreeze demo deadlock, spin, retain-intermediate, slow-disk (100 s),\n"
              "log-everything.\n\n",
              stderr);
}

/* The answer's pitfall, by number or name; NULL: there is no such. */
static const char *chosen(const char *answer)
{
        uint64_t number;
        if (*answer == '\0')
                return pitfalls[0].name;
        if (strcmp(answer, NO_PITFALL) == 0 || strcmp(answer, "0") == 0)
                return NO_PITFALL;
        if (afz_parse_u64(answer, &number) == 0)
                return number >= 1 && number <= AFZ_COUNT_OF(pitfalls) && pitfalls[number - 1].line
                               ? pitfalls[number - 1].name
                               : NULL;
        const struct pitfall *named = find_pitfall(answer);
        return named ? named->name : NULL;
}

/* NULL: they left. */
static const char *ask(void)
{
        char line[64];
        show_menu();
        for (;;) {
                fputs("A number, Enter for 1, q to leave: ", stderr);
                if (!fgets(line, sizeof line, stdin)) {
                        fputc('\n', stderr);
                        return NULL;
                }
                char *answer = line + strspn(line, " \t");
                answer[strcspn(answer, " \t\n")] = '\0';
                if (strcmp(answer, "q") == 0 || strcmp(answer, "quit") == 0)
                        return NULL;
                const char *name = chosen(answer);
                if (name)
                        return name;
                fprintf(stderr, "There is no '%s' in the list.\n", answer);
        }
}

/* ---- the run ---- */

/* This very file, by its own name where that is known: it is what the run is called. */
static void find_self(char *ret, size_t cap)
{
        ssize_t n = readlink("/proc/self/exe", ret, cap - 1);
        ret[n > 0 ? n : 0] = '\0';
        if (n <= 0 || access(ret, X_OK) < 0)
                (void)afz_path(ret, cap, "/proc/self/exe");
}

static int run_guarded(const struct options *opt, uint64_t time_ns, const struct pitfall *pitfall)
{
        char self[1024], flag[64], probe[1024], trainer[] = AFZ_TRAINER_NAME;
        char *argv[] = {self, trainer, flag, NULL};
        find_self(self, sizeof self);
        (void)afz_path(flag, sizeof flag, "%s", pitfall->flag);
        bool has_probe = afz_find_probe(probe, sizeof probe) == 0 ||
                         afz_probe_from_inside(probe, sizeof probe) == 0;
        struct afz_guard_order order = {
                .argv = argv,
                .policy = AFZ_POLICY_PROTECT,
                .best_tier = AFZ_TIER_SCOPE,
                .grace_ns = 2 * S, /* one that spins or hangs never ends by itself */
                .probe = has_probe ? probe : NULL,
                .version = AFZ_VERSION,
        };
        struct afz_front_wish wish = {.budget = opt->budget, .budget_given = true};
        struct afz_front_style style = {.every_ns = opt->every_ns, .end_after_ns = time_ns};
        return afz_front_run(&order, &wish, &style);
}

static int list(void)
{
        char self[1024];
        find_self(self, sizeof self);
        execl(self, self, AFZ_TRAINER_NAME, "--list-pitfalls", (char *)NULL);
        return afz_fail(AFZ_EXIT_OWN, "demo: %s: %s", self, strerror(errno));
}

static int run_demo(const struct afz_invocation *inv)
{
        const struct options *opt = inv->options;
        const char *name = inv->argc > 0 ? inv->argv[0] : NO_PITFALL;
        bool asks = inv->argc == 0 && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
        if (opt->list)
                return list();
        if (!opt->budget.is_percent && opt->budget.bytes < LEAST_BYTES)
                return afz_fail(AFZ_EXIT_USAGE,
                                "demo: --budget is too small to train in (64M is the "
                                "least)");
        if (asks && !(name = ask()))
                return 0;
        const struct pitfall *pitfall = find_pitfall(name);
        if (!pitfall && strcmp(name, NO_PITFALL) != 0)
                return afz_fail(AFZ_EXIT_USAGE,
                                "demo: no pitfall '%s'; `antifreeze demo --list` shows them", name);
        bool brief = asks && pitfall && pitfall->line && !afz_invocation_given(inv, "time");
        afz_say("training a 784-1024-10 network on digits it draws itself%s%s",
                pitfall ? ", with the pitfall " : "", pitfall ? name : "");
        return run_guarded(opt, brief ? MENU_TIME_NS : opt->time_ns, pitfall ? pitfall : &good_run);
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
         .default_text = "256M",
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
        {.name = "PITFALL", .choices = choices, .optional = true},
        {0},
};

static const struct afz_example examples[] = {
        {"antifreeze demo", "Asks what shall go wrong; without a terminal, a good run."},
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
                "wrong; `none` is a good run. Without PITFALL it asks, on a terminal, and else it "
                "is a "
                "good run. Nothing is needed but this program. Its output goes to stdout; "
                "Antifreeze's lines go to stderr.",
        .operands = operands,
        .options = rows,
        .examples = examples,
        .options_size = sizeof(struct options),
        .defaults = &defaults,
        .run = run_demo,
};
