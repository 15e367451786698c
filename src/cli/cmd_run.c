/* run, attach: a job contained, watched, and ended before it takes the machine along. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "config.h"
#include "count_of.h"
#include "find_agent.h"
#include "find_probe.h"
#include "front.h"
#include "front_say.h"
#include "probe_note.h"
#include "restart_plan.h"

#define S AFZ_NS_PER_S

const char *const afz_policy_choices[] = {"watch", "protect", "adapt", NULL};

struct options {
        struct afz_size_or_percent budget;
        uint64_t swap_bytes, gpu_budget_bytes, grace_ns, restarts, batch, checkpoint_wait_ns;
        int policy;
        const char *run_dir, *checkpoint_signal, *checkpoint_cmd;
        bool dry_run, quiet, json;
        bool no_probe;
        bool no_agent;
        bool amp, allow_inexact;
};

/* "USR1", "SIGUSR1" or a number; 0 when it is no signal that can be handled. */
static int signal_of(const char *text)
{
        static const struct {
                const char *name;
                int number;
        } names[] = {
                {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},
                {"USR2", SIGUSR2}, {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"URG", SIGURG},
        };
        uint64_t number;
        if (afz_parse_u64(text, &number) == 0)
                return number > 0 && number < 65 && number != SIGKILL && number != SIGSTOP
                               ? (int)number
                               : 0;
        if (strncasecmp(text, "SIG", 3) == 0)
                text += 3;
        for (size_t i = 0; i < AFZ_COUNT_OF(names); i++)
                if (strcasecmp(names[i].name, text) == 0)
                        return names[i].number;
        return 0;
}

/* Which tier to stop at, for tests and the lab: not a promise to users. */
static int best_tier(enum afz_tier *ret)
{
        const char *wish = getenv("ANTIFREEZE_TIER");
        *ret = AFZ_TIER_SCOPE;
        if (!wish || wish[0] == '\0')
                return 0;
        for (int t = 0; t < AFZ_TIER_COUNT; t++)
                if (strcmp(afz_tier_name((enum afz_tier)t), wish) == 0) {
                        *ret = (enum afz_tier)t;
                        return 0;
                }
        return -EINVAL;
}

static int make_order(const struct afz_invocation *inv, const struct options *opt,
                      struct afz_guard_order *ret)
{
        const char *name = inv->command->name;
        *ret = (struct afz_guard_order){
                .policy = (enum afz_policy)opt->policy,
                .grace_ns = opt->grace_ns,
                .checkpoint_cmd = opt->checkpoint_cmd,
                .checkpoint_wait_ns = opt->checkpoint_wait_ns,
                .gpu_budget_bytes = opt->gpu_budget_bytes,
                .amp = opt->amp,
                .allow_inexact = opt->allow_inexact,
                .dry_run = opt->dry_run,
        };
        if (best_tier(&ret->best_tier) < 0)
                return afz_fail(AFZ_EXIT_OWN,
                                "%s: ANTIFREEZE_TIER is '%s', which is no tier; there are scope, "
                                "cgroup2, cgroup1 and none",
                                name, getenv("ANTIFREEZE_TIER"));
        if (opt->checkpoint_signal &&
            (ret->checkpoint_signal = signal_of(opt->checkpoint_signal)) == 0)
                return afz_fail(AFZ_EXIT_OWN,
                                "%s: --checkpoint-signal '%s' is no signal a program can handle; "
                                "USR1 is the usual one",
                                name, opt->checkpoint_signal);
        return 0;
}

static struct afz_front_wish make_wish(const struct afz_invocation *inv, const struct options *opt)
{
        return (struct afz_front_wish){
                .budget = opt->budget,
                .budget_given = afz_invocation_given(inv, "budget"),
                .swap_bytes = opt->swap_bytes,
                .swap_given = afz_invocation_given(inv, "swap"),
                .run_dir = opt->run_dir,
        };
}

/* A budget that no program could start in is a slip of the pen. */
static bool budget_is_sane(const struct afz_front_wish *wish)
{
        return !wish->budget_given ||
               (wish->budget.is_percent ? wish->budget.permyriad > 0
                                        : wish->budget.bytes >= (UINT64_C(4) << 20));
}

/* Whether the probe goes into the job, and if not, why. */
static void choose_probe(const struct options *opt, char *path, size_t cap, char *why,
                         size_t why_cap, struct afz_guard_order *order)
{
        char cwd[1024], notes[256];
        order->version = AFZ_VERSION;
        if (opt->no_probe)
                order->no_probe = "--no-probe";
        else if (afz_find_probe(path, cap) < 0)
                order->no_probe = "its library was not found";
        else if (afz_probe_note_has(AFZ_VERSION, getcwd(cwd, sizeof cwd) ? cwd : "", order->argv)) {
                snprintf(why, why_cap,
                         "a process of this command died inside it in an earlier run; to try "
                         "again, remove its line from %s",
                         afz_probe_note_path(notes, sizeof notes));
                order->no_probe = why;
                order->tell_no_probe = true;
        } else {
                order->probe = path;
        }
}

/* The agent comes into the job's Python programs by PYTHONPATH, and is silent where there is no
 * probe. CMD inherits our environment; of our own processes none is Python. */
static void choose_agent(const struct options *opt, const struct afz_front_style *style,
                         const struct afz_guard_order *order)
{
        char folder[1024], path[16384];
        const char *by = afz_agent_kept_out((const char *const *)order->argv);
        if (opt->no_agent || !order->probe || afz_find_agent(folder, sizeof folder) < 0 ||
            afz_agent_path(folder, getenv("PYTHONPATH"), path, sizeof path) < 0) {
                bool needed = opt->gpu_budget_bytes > 0 || opt->amp ||
                              (opt->policy == AFZ_POLICY_ADAPT && opt->batch == 0);
                if (needed && !style->quiet && !order->dry_run)
                        afz_front_say(style, NULL, "agent",
                                      "without the agent no step of it can be made smaller, and no "
                                      "GPU budget be set");
                return;
        }
        if (by && !style->quiet && !order->dry_run)
                afz_front_say(style, NULL, "agent",
                              "python %s keeps the agent out: training steps are not counted", by);
        (void)setenv("PYTHONPATH", path, 1);
        (void)setenv("ANTIFREEZE_AGENT", folder, 1); /* for the wheel's .pth */
}

/* Restarts under adapt if nobody says how many: an eighth of the batch fits nearly everywhere. */
enum { ADAPT_RESTARTS = 3 };

/* How often, and how: a usage error where it would be the same again, or what nobody may do. */
static int plan_restarts(const struct afz_invocation *inv, struct afz_guard_order *order)
{
        const struct options *opt = inv->options;
        bool adapt = opt->policy == AFZ_POLICY_ADAPT;
        bool templated = afz_restart_usable((const char *const *)inv->argv);
        if ((opt->amp || opt->allow_inexact) && !adapt)
                return afz_fail(AFZ_EXIT_OWN,
                                "run: --%s changes how the job computes: it needs --policy adapt",
                                opt->amp ? "amp" : "allow-inexact");
        if (opt->batch > 0 && !templated)
                return afz_fail(AFZ_EXIT_OWN, "run: --batch needs {batch} in the command, such as "
                                              "python train.py --batch-size {batch}");
        if (opt->restarts > 0 && !adapt && (!templated || opt->batch == 0))
                return afz_fail(AFZ_EXIT_OWN,
                                "run: --restarts needs {batch} in the command and --batch N, or "
                                "--policy adapt: the same plan would end in the same way");
        order->restarts_given = afz_invocation_given(inv, "restarts");
        order->restarts =
                adapt && !order->restarts_given ? ADAPT_RESTARTS : (unsigned)opt->restarts;
        order->batch = opt->batch;
        return 0;
}

static int run_run(const struct afz_invocation *inv)
{
        char probe[1024], why[384];
        const struct options *opt = inv->options;
        struct afz_front_style style = {.quiet = opt->quiet, .json = opt->json};
        struct afz_front_wish wish = make_wish(inv, opt);
        struct afz_guard_order order;
        int status = make_order(inv, opt, &order);
        if (status != 0)
                return status;
        if (!budget_is_sane(&wish))
                return afz_fail(AFZ_EXIT_OWN,
                                "run: --budget is too small for any program (4M is the least)");
        order.argv = inv->argv;
        status = plan_restarts(inv, &order);
        if (status != 0)
                return status;
        choose_probe(opt, probe, sizeof probe, why, sizeof why, &order);
        choose_agent(opt, &style, &order);
        return afz_front_run(&order, &wish, &style);
}

static int run_attach(const struct afz_invocation *inv)
{
        const struct options *opt = inv->options;
        struct afz_front_style style = {.quiet = opt->quiet, .json = opt->json};
        struct afz_front_wish wish = make_wish(inv, opt);
        struct afz_guard_order order;
        uint64_t pid;
        if (afz_operand_pid(inv->argv[0], &pid) < 0)
                return afz_fail(
                        AFZ_EXIT_OWN,
                        "attach: '%s' is no process number; ps and `antifreeze watch` show them",
                        inv->argv[0]);
        int status = make_order(inv, opt, &order);
        if (status != 0)
                return status;
        if (!budget_is_sane(&wish))
                return afz_fail(AFZ_EXIT_OWN,
                                "attach: --budget is too small for any program (4M is the least)");
        struct afz_run_ref held;
        if (afz_run_find(inv->argv[0], &held) == 0 && held.live)
                return afz_fail(
                        AFZ_EXIT_OWN,
                        "attach: run %s holds process %s already; antifreeze set changes it",
                        held.id, inv->argv[0]);
        order.attach = (pid_t)pid;
        return afz_front_run(&order, &wish, &style);
}

/* attach has all but the first five: they are for who starts a job. */
enum { RUN_ONLY_ROWS = 5 };
static const struct afz_option rows[] = {
        {.name = "restarts",
         .arg = "N",
         .type = AFZ_OPTION_U64,
         .offset = offsetof(struct options, restarts),
         .max = 16,
         .default_text = "0; with --policy adapt, 3",
         .help = "Start a job that ended for want of memory again, at most N times, each time with "
                 "half the batch and twice the accumulation. With --policy adapt also one without "
                 "{batch}: in smaller steps where the agent can make them, and from its last "
                 "checkpoint where it has told of one. Without this option it is not started "
                 "again where that is known to be in vain: a leak of which nothing is saved, "
                 "a model or data that do not fit."},
        {.name = "batch",
         .arg = "N",
         .type = AFZ_OPTION_U64,
         .offset = offsetof(struct options, batch),
         .min = 1,
         .max = UINT64_C(1) << 32,
         .help = "The batch size to begin with; put in for {batch} in the command. {accum} is how "
                 "many batches make one step."},
        {.name = "gpu-budget",
         .arg = "SIZE",
         .type = AFZ_OPTION_SIZE,
         .offset = offsetof(struct options, gpu_budget_bytes),
         .min = UINT64_C(64) << 20,
         .help = "How much memory of each GPU a Python program may use. Its framework refuses what "
                 "goes beyond, as if the GPU were that small."},
        {.name = "amp",
         .offset = offsetof(struct options, amp),
         .help = "With --policy adapt: compute in mixed precision where the framework can be told "
                 "to and the hardware gains by it. Losses differ in their last digits."},
        {.name = "allow-inexact",
         .offset = offsetof(struct options, allow_inexact),
         .help = "With --policy adapt: make steps smaller also where that changes the result, as "
                 "with batch normalization."},
        {.name = "budget",
         .arg = "SIZE|%",
         .type = AFZ_OPTION_SIZE_OR_PERCENT,
         .offset = offsetof(struct options, budget),
         .default_text = "what is available, less a reserve for everything else",
         .help = "How much RAM the job may use. A percentage is of all RAM."},
        {.name = "swap",
         .arg = "SIZE",
         .type = AFZ_OPTION_SIZE,
         .offset = offsetof(struct options, swap_bytes),
         .default_text = "half of what is free, at most a quarter of the budget",
         .help = "How much swap it may use beyond that."},
        {.name = "policy",
         .arg = "POLICY",
         .type = AFZ_OPTION_CHOICE,
         .offset = offsetof(struct options, policy),
         .choices = afz_policy_choices,
         .default_text = "protect",
         .help = "watch sets no limits and never acts; protect slows, asks to save and stops the "
                 "job before the machine suffers; adapt also makes the steps of a training smaller "
                 "when "
                 "memory runs short, with the same result, and starts it again where that is not "
                 "enough."},
        {.name = "grace",
         .arg = "TIME",
         .type = AFZ_OPTION_DURATION,
         .offset = offsetof(struct options, grace_ns),
         .max = 3600 * S,
         .default_text = "30s",
         .help = "How long it may take to save and end, where memory leaves the time."},
        {.name = "checkpoint-signal",
         .arg = "SIGNAL",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct options, checkpoint_signal),
         .help = "Sent to the job when it should save a checkpoint, such as USR1."},
        {.name = "checkpoint-cmd",
         .arg = "COMMAND",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct options, checkpoint_cmd),
         .help = "Run by sh when the job should save; exit status 0 says that it has."},
        {.name = "checkpoint-wait",
         .arg = "TIME",
         .type = AFZ_OPTION_DURATION,
         .offset = offsetof(struct options, checkpoint_wait_ns),
         .max = 3600 * S,
         .default_text = "10s",
         .help = "How long to wait for a checkpoint that nobody acknowledges."},
        {.name = "run-dir",
         .arg = "DIR",
         .type = AFZ_OPTION_STRING,
         .complete = AFZ_COMPLETE_DIR,
         .offset = offsetof(struct options, run_dir),
         .help = "The run's own folder, instead of one in the history of runs. The record of an "
                 "ended run in it is replaced, and a line says so; a folder with anything else in "
                 "it is refused."},
        {.name = "no-probe",
         .offset = offsetof(struct options, no_probe),
         .help = "Preload nothing into the job: which of its lines hold memory is not seen then."},
        {.name = "no-agent",
         .offset = offsetof(struct options, no_agent),
         .help = "Do not enter Python programs: their training steps are not counted then."},
        {.name = "dry-run",
         .offset = offsetof(struct options, dry_run),
         .help = "Print tier, budget and limits; start nothing."},
        {.name = "quiet",
         .letter = 'q',
         .offset = offsetof(struct options, quiet),
         .help = "Say only what was done to the job."},
        {.name = "json",
         .offset = offsetof(struct options, json),
         .help = "Our own lines are JSON objects on stderr."},
        {0},
};

static const struct options defaults = {
        .policy = AFZ_POLICY_PROTECT,
        .grace_ns = 30 * S,
        .checkpoint_wait_ns = 10 * S,
};

static const struct afz_operand run_operands[] = {
        {.name = "CMD", .complete = AFZ_COMPLETE_PROGRAM, .repeats = true},
        {0},
};

static const struct afz_operand attach_operands[] = {
        {.name = "PID", .complete = AFZ_COMPLETE_PID},
        {0},
};

static const struct afz_example run_examples[] = {
        {"antifreeze run -- python train.py", "Train, held to what the machine can give."},
        {"antifreeze run --budget 12G -- python train.py", "With a budget of your own."},
        {"antifreeze run --policy adapt -- python train.py",
         "If a batch does not fit, it is put through in parts, and the training goes on."},
        {"antifreeze run --restarts 3 --batch 64 -- python train.py --bs {batch} --accum {accum}",
         "If 64 does not fit: 32 with two accumulation steps, then 16 with four."},
        {"antifreeze run --checkpoint-signal USR1 -- python train.py",
         "A program that saves when it gets SIGUSR1."},
        {"antifreeze run --dry-run -- true", "See what it would be held to."},
        {0},
};

static const struct afz_example attach_examples[] = {
        {"antifreeze attach 4242", "Protect the machine from a job that already runs."},
        {0},
};

const struct afz_command afz_command_run = {
        .name = "run",
        .summary = "run a job so that it cannot take the machine down",
        .description =
                "Runs CMD contained in the best way this machine offers (a systemd scope, a "
                "cgroup, or fast looking alone), looks at its memory up to 500 times a second, and "
                "when it comes near its budget says so, slows it down, asks it to save, and ends "
                "it before anything else suffers. Only the job is ever touched.\n\n"
                "CMD is run as without us: its input, output, terminal, signals and exit status "
                "are its own. Exit status 75 says that the job was stopped to protect the machine; "
                "`antifreeze why` tells more. A usage error is 125.\n\n"
                "run ends when CMD ends. Processes that CMD leaves behind are held on, named, and "
                "ended after the grace; --policy watch leaves them alone.",
        .operands = run_operands,
        .options = rows,
        .examples = run_examples,
        .options_size = sizeof(struct options),
        .defaults = &defaults,
        .usage_status = AFZ_EXIT_OWN,
        .run = run_run,
};

const struct afz_command afz_command_attach = {
        .name = "attach",
        .summary = "protect the machine from a job that already runs",
        .description =
                "The same protection as run for the process PID and all below it. It is moved into "
                "a cgroup of its own where that is allowed. Ctrl-C lets it go again and puts it "
                "back. Memory that it took before is counted, but not in the kernel's limit.\n\n"
                "Ends when the job ends: with 75 if it was stopped to protect the machine, else "
                "with 0, because only a parent learns an exit status.",
        .operands = attach_operands,
        .options = rows + RUN_ONLY_ROWS,
        .examples = attach_examples,
        .options_size = sizeof(struct options),
        .defaults = &defaults,
        .usage_status = AFZ_EXIT_OWN,
        .run = run_attach,
};
