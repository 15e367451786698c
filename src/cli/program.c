#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "config.h"
#include "help.h"
#include "quantity.h"

static const struct afz_command *const commands[] = {
        &afz_command_run,        &afz_command_attach,  &afz_command_watch,
        &afz_command_why,        &afz_command_report,  &afz_command_runs,
        &afz_command_export,     &afz_command_set,     &afz_command_doctor,
        &afz_command_convert,    &afz_command_demo,    &afz_command_python,
        &afz_command_kernel,     &afz_command_capture, &afz_command_help,
        &afz_command_completion, &afz_command_man,     NULL,
};

static const struct afz_note exit_status[] = {
        {"0", "It could answer. run: CMD ended with 0."},
        {"2", "A usage error, or something that was asked for is not there. One line says what."},
        {"75", "run, attach: Antifreeze, or a limit that it set, stopped the job to protect the "
               "machine."},
        {"125",
         "run, attach: a usage error, or a failure of our own. convert: the disk, or memory."},
        {"126, 127", "run: CMD cannot be run; CMD was not found."},
        {"other", "run: CMD's own. When a signal ended CMD, the same signal ends us."},
        {0},
};

static const struct afz_note environment[] = {
        {"NO_COLOR", "Set and not empty: no colours."},
        {"ANTIFREEZE_SOCKET, ANTIFREEZE_RUN",
         "Set for CMD by run: the control socket's path and the run's ID."},
        {"ANTIFREEZE_PROBE, LD_PRELOAD, ASAN_OPTIONS",
         "Set for CMD by run, unless --no-probe: the socket and the library of the probe, which "
         "comes before what LD_PRELOAD has already; and that the address sanitizer is not to mind "
         "it (verify_asan_link_order=0)."},
        {"PYTHONPATH, ANTIFREEZE_AGENT",
         "Set for CMD by run, unless --no-agent: the folder by which the agent comes into Python "
         "programs; on PYTHONPATH it stands ahead of what is there already."},
        {"ANTIFREEZE_TIER",
         "The best tier to try (scope, cgroup2, cgroup1, none): cgroup2 keeps a job in the cgroup "
         "that a batch system made for it; the weaker ones are for tests."},
        {"ANTIFREEZE_PYTHON, ANTIFREEZE_OPTIONS",
         "The interpreter that python and kernel use, and options of run for what python runs."},
        {"ANTIFREEZE_RESUME, ANTIFREEZE_ATTEMPT",
         "Set for CMD when run starts it again: the checkpoint that it last told of, and which "
         "attempt it is."},
        {"ANTIFREEZE_NVML", "The file to load instead of libnvidia-ml.so.1."},
        {"ANTIFREEZE_PROGRAM", "For antifreeze.guard() in Python: this program, if not on PATH."},
        {"XDG_STATE_HOME, XDG_RUNTIME_DIR", "Where runs are kept, and where they live; see FILES."},
        {0},
};

static const struct afz_note files[] = {
        {"$XDG_STATE_HOME/antifreeze/runs/ID/",
         "A run, else in ~/.local/state; with --run-dir it is that folder, and this a link to it. "
         "verdict.json and verdict.txt are what why prints, flight.afz is the recording, "
         "report.html what report made. Only yours to read (0700, 0600)."},
        {"$XDG_STATE_HOME/antifreeze/probe-left-out",
         "Commands that run without the probe because it failed in them; remove a line to try "
         "again."},
        {"$XDG_RUNTIME_DIR/antifreeze/",
         "Runs that live: a page (ID.run), the control socket (ID.sock). Else in /run/user/UID, "
         "/dev/shm/antifreeze-UID or /tmp/antifreeze-UID."},
        {"~/.local/share/jupyter/kernels/antifreeze/", "What kernel install made."},
        {0},
};

static const struct afz_example examples[] = {
        {"antifreeze run -- python train.py", "Train; the machine stays usable, whatever happens."},
        {"antifreeze why", "How the last run ended, and why."},
        {"antifreeze watch 4242", "Watch the job whose root is process 4242."},
        {"antifreeze doctor", "See what this machine can tell and what is risky on it."},
        {"antifreeze demo", "Train a small network, watched."},
        {0},
};

static const char *const see_also[] = {"proc(5)", "cgroups(7)", "free(1)", NULL};

const struct afz_program afz_program = {
        .name = "antifreeze",
        .version = AFZ_VERSION,
        .date = "2026-11-15",
        .summary = "keep a training job from freezing the machine, and say why",
        .description =
                "Antifreeze holds a training job to what the machine can give, and watches both: "
                "memory, swap, shared memory, GPU memory, pressure, cores, disks, network mounts, "
                "heat and the kernel's log. When the job would take the machine down, it is "
                "slowed, asked to save, and ended in time; nothing else is ever touched. It needs "
                "no root, no daemon and no change to the program.\n\n"
                "What it cannot see somewhere, it says; a value that is not known is never shown "
                "as 0.",
        .commands = commands,
        .exit_status = exit_status,
        .environment = environment,
        .files = files,
        .examples = examples,
        .see_also = see_also,
};

__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list args)
{
        /* In one piece: the job may write to the same place at the same time. */
        char line[BUFSIZ];
        int n = snprintf(line, sizeof line, "antifreeze: ");
        int more = vsnprintf(line + n, sizeof line - (size_t)n, format, args);
        size_t length = (size_t)n + (more > 0 ? (size_t)more : 0);
        if (length > sizeof line - 2)
                length = sizeof line - 2;
        line[length++] = '\n';
        (void)fflush(stderr);
        (void)!write(STDERR_FILENO, line, length);
}

void afz_say(const char *format, ...)
{
        va_list args;
        va_start(args, format);
        say(format, args);
        va_end(args);
}

int afz_fail(int status, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        say(format, args);
        va_end(args);
        return status;
}

int afz_columns(void)
{
        struct winsize size;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
                return AFZ_HELP_WIDTH;
        return size.ws_col;
}

char *afz_time_of_day(char buf[AFZ_TIME_OF_DAY_CAP])
{
        time_t now = time(NULL);
        struct tm tm;
        buf[0] = '\0';
        if (localtime_r(&now, &tm))
                strftime(buf, AFZ_TIME_OF_DAY_CAP, "%H:%M:%S", &tm);
        return buf;
}

int afz_operand_pid(const char *text, uint64_t *ret)
{
        uint64_t pid;
        if (afz_parse_u64(text, &pid) < 0 || pid == 0 || pid > INT32_MAX)
                return -EINVAL;
        *ret = pid;
        return 0;
}
