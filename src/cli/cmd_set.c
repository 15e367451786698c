/* antifreeze set: changes a run that goes on, over its control socket. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "commands.h"
#include "control.h"
#include "operand_run.h"
#include "quantity.h"

/* The guard answers within a tick (0.1 s); a machine under water is slower. */
#define ANSWER_MS 5000

struct set_options {
        struct afz_size_or_percent budget;
        uint64_t swap_bytes;
};

static int request(const struct afz_run_ref *ref, const char *what, uint64_t bytes)
{
        char line[64], answer[AFZ_CONTROL_LINE] = "";
        snprintf(line, sizeof line, "set %s %" PRIu64, what, bytes);
        int r = afz_control_request(ref->socket, line, answer, sizeof answer, ANSWER_MS);
        if (r >= 0)
                return 0;
        switch (r) {
        case -EPROTO:
                return afz_fail(AFZ_EXIT_USAGE, "run %s: %s is not changed: %s", ref->id, what,
                                answer);
        case -ENOENT:
        case -ECONNREFUSED:
        case -ECONNRESET:
                return afz_fail(AFZ_EXIT_USAGE, "run %s has just ended", ref->id);
        case -ETIMEDOUT:
                return afz_fail(AFZ_EXIT_USAGE, "run %s does not answer", ref->id);
        default:
                return afz_fail(AFZ_EXIT_USAGE, "run %s: %s", ref->id, strerror(-r));
        }
}

static int total_ram(uint64_t *ret)
{
        struct sysinfo memory;
        if (sysinfo(&memory) < 0)
                return -errno;
        *ret = (uint64_t)memory.totalram * memory.mem_unit;
        return 0;
}

/* One line a change, so that a second one that is refused does not hide the first. */
static int change(const struct afz_run_ref *ref, const char *what, uint64_t bytes)
{
        char size[AFZ_SIZE_TEXT_CAP];
        int status = request(ref, what, bytes);
        if (status != 0)
                return status;
        if (printf("run %s: %s %s\n", ref->id, what, afz_format_size(size, sizeof size, bytes)) <
                    0 ||
            fflush(stdout) != 0)
                return afz_fail(AFZ_EXIT_USAGE, "cannot write to stdout");
        return 0;
}

static int run_set(const struct afz_invocation *invocation)
{
        const struct set_options *options = invocation->options;
        bool budget = afz_invocation_given(invocation, "budget"),
             swap = afz_invocation_given(invocation, "swap");
        struct afz_run_ref ref;
        uint64_t ram = 0;

        if (!budget && !swap)
                return afz_fail(AFZ_EXIT_USAGE, "set wants --budget or --swap");
        int status = afz_operand_run(invocation->argv[0], &ref);
        if (status != 0)
                return status;
        if (!ref.live)
                return afz_fail(AFZ_EXIT_USAGE, "run %s is over: nothing can be set any more",
                                ref.id);
        if (!ref.socket[0])
                return afz_fail(AFZ_EXIT_USAGE,
                                "run %s goes on, but its runtime folder was removed (at a logout): "
                                "it cannot be spoken to",
                                ref.id);
        if (budget && total_ram(&ram) < 0)
                return afz_fail(AFZ_EXIT_USAGE, "the machine's RAM is not known");
        if (budget)
                status = change(&ref, "budget", afz_size_or_percent_of(options->budget, ram));
        if (status == 0 && swap)
                status = change(&ref, "swap", options->swap_bytes);
        return status;
}

static const struct afz_operand set_operands[] = {
        {.name = "RUN", .complete = AFZ_COMPLETE_RUN},
        {0},
};

static const struct afz_option set_rows[] = {
        {.name = "budget",
         .arg = "SIZE",
         .type = AFZ_OPTION_SIZE_OR_PERCENT,
         .offset = offsetof(struct set_options, budget),
         .help = "What the job may use from now on: 12G, or 75% of the machine's RAM."},
        {.name = "swap",
         .arg = "SIZE",
         .type = AFZ_OPTION_SIZE,
         .offset = offsetof(struct set_options, swap_bytes),
         .help = "How much swap it may use beyond that."},
        {0},
};

static const struct afz_example set_examples[] = {
        {"antifreeze set 20261115-0637 --budget 12G", "The run that began then may use 12 GiB."},
        {"antifreeze set 4242 --budget 75% --swap 2G", "The run whose process is 4242."},
        {0},
};

const struct afz_command afz_command_set = {
        .name = "set",
        .summary = "change the budget of a run that goes on",
        .description = "Tells the guard of a living run what its job may use from now on. A budget "
                       "that is set so is never reckoned anew. The limit is not lowered below what "
                       "the job holds already.\n\n"
                       "RUN is a run's ID, its beginning or its last four letters, the path of its "
                       "folder, or a "
                       "process number of it.",
        .operands = set_operands,
        .options = set_rows,
        .examples = set_examples,
        .options_size = sizeof(struct set_options),
        .run = run_set,
};
