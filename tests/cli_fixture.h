/* A small program made of rows, with one of everything; the tests of the command line share it. */
#ifndef AFZ_CLI_FIXTURE_H
#define AFZ_CLI_FIXTURE_H

#include <stddef.h>

#include "command.h"
#include "completion.h"
#include "quantity.h"

static const char *const fixture_policies[] = {"watch", "protect", "adapt", NULL};

struct fixture_options {
        struct afz_size_or_percent budget;
        uint64_t swap_bytes;
        uint64_t interval_ns;
        uint64_t restarts;
        int policy;
        const char *run_dir;
        const char *output;
        bool json;
        bool quiet;
        bool color;
        bool secret;
};

#define FIXTURE_FIELD(field) .offset = offsetof(struct fixture_options, field)

static const struct afz_option fixture_run_rows[] = {
        {.name = "budget",
         .letter = 'b',
         .arg = "SIZE",
         .type = AFZ_OPTION_SIZE_OR_PERCENT,
         FIXTURE_FIELD(budget),
         .default_text = "what is free, less a reserve",
         .help = "How much memory the job may need. A share is of all RAM: [75%] isn't 'all'."},
        {.name = "swap",
         .arg = "SIZE",
         .type = AFZ_OPTION_SIZE,
         FIXTURE_FIELD(swap_bytes),
         .max = UINT64_C(1) << 40,
         .help = "How much it may swap."},
        {.name = "policy",
         .letter = 'p',
         .arg = "POLICY",
         .type = AFZ_OPTION_CHOICE,
         FIXTURE_FIELD(policy),
         .choices = fixture_policies,
         .default_text = "protect",
         .help = "What may be done to the job."},
        {.name = "restarts",
         .arg = "N",
         .type = AFZ_OPTION_U64,
         FIXTURE_FIELD(restarts),
         .max = 100,
         .help = "How often it is started again."},
        {.name = "run-dir",
         .arg = "DIR",
         .type = AFZ_OPTION_STRING,
         FIXTURE_FIELD(run_dir),
         .complete = AFZ_COMPLETE_DIR,
         .help = "Where the recording goes."},
        {.name = "quiet", .letter = 'q', FIXTURE_FIELD(quiet), .help = "Say nothing."},
        {.name = "json", .letter = 'j', FIXTURE_FIELD(json), .help = "Speak JSON."},
        {.name = "color", FIXTURE_FIELD(color), .negatable = true, .help = "Use colours."},
        {.name = "secret", FIXTURE_FIELD(secret), .hidden = true, .help = "For tests."},
        {0},
};

static const struct afz_option fixture_watch_rows[] = {
        {.name = "interval",
         .letter = 'i',
         .arg = "TIME",
         .type = AFZ_OPTION_DURATION,
         FIXTURE_FIELD(interval_ns),
         .min = 10000000,
         .max = UINT64_C(3600000000000),
         .default_text = "1s",
         .help = "Time between two looks at the machine."},
        {.name = "output",
         .letter = 'o',
         .arg = "FILE",
         .type = AFZ_OPTION_STRING,
         FIXTURE_FIELD(output),
         .alone = "-",
         .complete = AFZ_COMPLETE_FILE,
         .help = "Write there."},
        {.name = "json", FIXTURE_FIELD(json), .help = "One JSON object a tick."},
        {0},
};

static const struct fixture_options fixture_run_defaults = {.policy = 1, .color = true};
static const struct fixture_options fixture_watch_defaults = {.interval_ns = 1000000000};

static const struct afz_operand fixture_run_operands[] = {
        {.name = "CMD", .complete = AFZ_COMPLETE_PROGRAM, .repeats = true},
        {0},
};
static const struct afz_operand fixture_watch_operands[] = {
        {.name = "RUN|PID", .complete = AFZ_COMPLETE_RUN | AFZ_COMPLETE_PID, .optional = true},
        {0},
};
static const struct afz_operand fixture_capture_operands[] = {
        {.name = "DIR", .complete = AFZ_COMPLETE_DIR},
        {.name = "PID", .complete = AFZ_COMPLETE_PID, .optional = true},
        {0},
};
static const struct afz_operand fixture_completion_operands[] = {
        {.name = "SHELL", .choices = afz_completion_shells},
        {0},
};
static const struct afz_operand fixture_help_operands[] = {
        {.name = "COMMAND", .complete = AFZ_COMPLETE_COMMAND, .optional = true},
        {0},
};

static const struct afz_example fixture_watch_examples[] = {
        {"antifreeze watch 4242", "Watch the job whose root is process 4242."},
        {"antifreeze watch --json | jq -r '.ram\\n'",
         "Feed a tool; backslashes and 'quotes' stay."},
        {0},
};

static int fixture_nothing(const struct afz_invocation *invocation)
{
        return invocation->argc;
}

static const struct afz_command fixture_run = {
        .name = "run",
        .summary = "run a program guarded",
        .operands = fixture_run_operands,
        .description = "Runs CMD contained and watched.\n\n.TH is no macro here. 'Nor is this.'",
        .options = fixture_run_rows,
        .options_size = sizeof(struct fixture_options),
        .defaults = &fixture_run_defaults,
        .usage_status = AFZ_EXIT_OWN,
        .run = fixture_nothing,
};
static const struct afz_command fixture_watch = {
        .name = "watch",
        .summary = "show the machine and a job live",
        .operands = fixture_watch_operands,
        .options = fixture_watch_rows,
        .examples = fixture_watch_examples,
        .options_size = sizeof(struct fixture_options),
        .defaults = &fixture_watch_defaults,
        .run = fixture_nothing,
};
static const struct afz_command fixture_capture = {
        .name = "capture",
        .summary = "record a fixture: files, with what is private masked",
        .operands = fixture_capture_operands,
        .run = fixture_nothing,
};
static const struct afz_command fixture_doctor = {
        .name = "doctor",
        .summary = "say what's possible here",
        .run = fixture_nothing,
};
static const struct afz_command fixture_completion = {
        .name = "completion",
        .summary = "print the completion script of a shell",
        .operands = fixture_completion_operands,
        .run = fixture_nothing,
};
static const struct afz_command fixture_help = {
        .name = "help",
        .summary = "tell about a command",
        .operands = fixture_help_operands,
        .run = fixture_nothing,
};
static const struct afz_command fixture_hidden = {
        .name = "helper-internal",
        .summary = "never shown",
        .hidden = true,
        .run = fixture_nothing,
};

static const struct afz_command *const fixture_commands[] = {
        &fixture_run,        &fixture_watch, &fixture_capture, &fixture_doctor,
        &fixture_completion, &fixture_help,  &fixture_hidden,  NULL,
};

static const struct afz_option fixture_program_rows[] = {
        {.name = "version", .letter = 'V', .help = "Print the version and exit."},
        {0},
};
static const struct afz_note fixture_exit_status[] = {
        {"75", "The job was stopped to protect the machine."},
        {"125", "Antifreeze itself failed, or run was used wrongly."},
        {0},
};
static const struct afz_note fixture_environment[] = {
        {"NO_COLOR", "If set and not empty, no colours are used."},
        {0},
};
static const struct afz_note fixture_files[] = {
        {"~/.local/state/antifreeze/runs/", "The recorded runs."},
        {0},
};
static const char *const fixture_see_also[] = {"free(1)", "systemd-oomd(8)", NULL};

static const struct afz_program fixture_program = {
        .name = "antifreeze",
        .version = "0.1.0",
        .date = "2025-01-31",
        .summary = "keep a training job from freezing the machine",
        .description = "Watches a job and the machine under it.\n\nNeeds no root.",
        .commands = fixture_commands,
        .options = fixture_program_rows,
        .exit_status = fixture_exit_status,
        .environment = fixture_environment,
        .files = fixture_files,
        .examples = fixture_watch_examples,
        .see_also = fixture_see_also,
};

#endif
