/* capture: records what the senses read, as a fixture for tests and reports of bugs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "commands.h"
#include "config.h"

/* One line for what went wrong. */
static int explain(int err, const char *dir, uint64_t pid)
{
        switch (err) {
        case -EEXIST:
                return afz_fail(AFZ_EXIT_USAGE, "capture: %s is not empty; name a new folder", dir);
        case -ENOTDIR:
                return afz_fail(AFZ_EXIT_USAGE, "capture: %s is no folder; name a new one", dir);
        case -ESRCH:
                return afz_fail(AFZ_EXIT_USAGE, "capture: there is no process %llu",
                                (unsigned long long)pid);
        default:
                return afz_fail(AFZ_EXIT_USAGE, "capture: cannot write %s: %s", dir,
                                strerror(-err));
        }
}

static int run_capture(const struct afz_invocation *inv)
{
        struct afz_capture_request request = {.dir = inv->argv[0], .version = AFZ_VERSION};
        struct afz_capture_result result;
        struct afz_env env;
        if (inv->argc > 1 && afz_operand_pid(inv->argv[1], &request.pid) < 0)
                return afz_fail(AFZ_EXIT_USAGE, "capture: '%s' is no process number", inv->argv[1]);
        int r = afz_env_open_live(&env);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "capture: cannot open /proc: %s", strerror(-r));
        r = afz_capture(&env, &request, &result);
        afz_env_done(&env);
        if (r < 0)
                return explain(r, request.dir, request.pid);
        fprintf(stderr,
                "captured %zu files of %zu processes in %s (%.2f MB); private data masked: look at "
                "%s/about\n",
                result.files, result.processes, request.dir, (double)result.bytes / 1e6,
                request.dir);
        return 0;
}

static const struct afz_operand operands[] = {
        {.name = "DIR", .complete = AFZ_COMPLETE_DIR},
        {.name = "PID", .complete = AFZ_COMPLETE_PID, .optional = true},
        {0},
};

static const struct afz_example examples[] = {
        {"antifreeze capture ./machine 4242",
         "Record the machine and the job whose root is process 4242."},
        {0},
};

const struct afz_command afz_command_capture = {
        .name = "capture",
        .summary = "record what the senses read, private data masked",
        .description =
                "Records the files of /proc, /sys and the cgroups that Antifreeze's senses read as "
                "a small tree of files, for a report of a bug or a test: on it every sense gives "
                "the same values.\n\n"
                "Command lines, environments, names of files, servers, programs and cgroups are "
                "masked unless they are well known; the file about in the folder says what else. "
                "Look through it before you hand it on.\n\n"
                "DIR must not exist yet, or be empty.",
        .operands = operands,
        .examples = examples,
        .run = run_capture,
};
