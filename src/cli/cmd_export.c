/* antifreeze export: a recording in the forms that other programs read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "export.h"
#include "flight_file.h"
#include "operand_run.h"

/* The exporters in their order. */
static const char *const formats[] = {"csv",       "jsonl",      "openmetrics", "chrome-trace",
                                      "collapsed", "speedscope", "pprof",       NULL};

struct export_options {
        int format;
        const char *output;
};

/* Reads the recording in a folder, or the file itself; says what is wrong with it. */
static int read_path(const char *path, struct afz_flight *ret)
{
        char why[256] = "";
        struct stat st;
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return afz_fail(AFZ_EXIT_USAGE, "%.200s: %s", path, strerror(errno));
        bool folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
        int r = folder ? afz_flight_read(fd, NULL, ret, why)
                       : afz_flight_read_fd(fd, NULL, ret, why);
        close(fd);
        if (r == -ENOENT && folder)
                return afz_fail(AFZ_EXIT_USAGE, "there is no recording in %.200s", path);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "%.200s: %s", path, why[0] ? why : strerror(-r));
        if (!ret->head.run[0] && ret->tracks == 0)
                return afz_fail(AFZ_EXIT_USAGE,
                                "%.200s: the recording is cut off: nothing can be "
                                "read of it",
                                path);
        return 0;
}

/* RUN is a run, or a recording that came from elsewhere: a file, a folder with one in it. */
static int read_operand(const char *text, struct afz_flight *ret)
{
        struct afz_run_ref ref;
        struct stat st, inside;
        char path[AFZ_RUN_PATH_CAP];
        bool there = text && stat(text, &st) == 0;
        if (there && S_ISREG(st.st_mode))
                return read_path(text, ret);
        if (there && S_ISDIR(st.st_mode) &&
            (size_t)snprintf(path, sizeof path, "%s/%s", text, AFZ_FLIGHT_NAME) < sizeof path &&
            stat(path, &inside) == 0)
                return read_path(text, ret);
        int status = afz_operand_run(text, &ref);
        if (status != 0)
                return status;
        if (!ref.dir[0])
                return afz_fail(AFZ_EXIT_USAGE, "run %s has no folder, and so no recording",
                                ref.id);
        return read_path(ref.dir, ret);
}

static bool has_sites(const struct afz_flight *flight)
{
        for (size_t i = 0; i < flight->tracks; i++)
                if (flight->track[i].subject.kind == AFZ_KIND_SITE)
                        return true;
        return false;
}

static int write_flight(const struct afz_flight *flight, const struct export_options *options)
{
        char buf[1 << 16];
        if (afz_exporters[options->format].of_sites && !has_sites(flight))
                return afz_fail(AFZ_EXIT_USAGE,
                                "no line of the program is in this recording: it ran without the "
                                "probe, or held too little (`antifreeze why -v` says which)");
        bool to_file = options->output && strcmp(options->output, "-") != 0;
        int fd = STDOUT_FILENO;
        if (to_file)
                fd = open(options->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
                return afz_fail(AFZ_EXIT_USAGE, "%.200s: %s", options->output, strerror(errno));
        struct afz_out out = afz_out_to(fd, buf, sizeof buf);
        afz_exporters[options->format].put(flight, &out);
        int r = afz_out_flush(&out);
        if (to_file && close(fd) < 0 && r == 0)
                r = -errno;
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "writing%s%.200s: %s", to_file ? " " : "",
                                to_file ? options->output : "", strerror(-r));
        return 0;
}

static int run_export(const struct afz_invocation *invocation)
{
        const struct export_options *options = invocation->options;
        const char *text = invocation->argc > 0 ? invocation->argv[0] : NULL;
        struct afz_flight flight;

        afz_flight_init(&flight);
        int status = read_operand(text, &flight);
        if (status == 0)
                status = write_flight(&flight, options);
        if (status == 0 && flight.holes > 0)
                afz_say("%u damaged part%s of the recording left out", flight.holes,
                        flight.holes == 1 ? " was" : "s were");
        afz_flight_done(&flight);
        return status;
}

static const struct afz_operand export_operands[] = {
        {.name = "RUN", .complete = AFZ_COMPLETE_RUN | AFZ_COMPLETE_FILE, .optional = true},
        {0},
};

static const struct afz_option export_rows[] = {
        {.name = "format",
         .letter = 'f',
         .arg = "FORMAT",
         .type = AFZ_OPTION_CHOICE,
         .offset = offsetof(struct export_options, format),
         .choices = formats,
         .default_text = "csv",
         .help = "What to write."},
        {.name = "output",
         .letter = 'o',
         .arg = "FILE",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct export_options, output),
         .complete = AFZ_COMPLETE_FILE,
         .help = "Write to FILE (0600), replacing it, instead of to stdout."},
        {0},
};

static const struct afz_example export_examples[] = {
        {"antifreeze export > run.csv", "The last run, one reading a line."},
        {"antifreeze export --format chrome-trace -o run.json",
         "A time line for ui.perfetto.dev or chrome://tracing."},
        {"antifreeze export --format jsonl | jq 'select(.type == \"mark\")'",
         "Only what happened."},
        {"antifreeze export --format pprof -o run.pb && go tool pprof -top -cum run.pb",
         "Which lines held the memory at its peak."},
        {0},
};

const struct afz_command afz_command_export = {
        .name = "export",
        .summary = "write a run's recording for other tools",
        .description =
                "Writes what was recorded of a run, the newest by default, in a form that other "
                "programs read: csv (one reading of one metric a line, for a spreadsheet or "
                "pandas), jsonl (one JSON object for what was known of one subject at one "
                "instant), "
                "openmetrics (text for Prometheus and its kin, with the times of the readings), "
                "chrome-trace (JSON that ui.perfetto.dev opens); and of the lines that held its "
                "memory at the peak: collapsed (one stack a line, for flame graphs), speedscope "
                "(JSON for speedscope.app) and pprof (for `go tool pprof`).\n\n"
                "RUN is a run's ID, its beginning or its last four letters, the path of a run's "
                "folder or of a recording (flight.afz), or the process number of a living run. A "
                "run that still "
                "goes on is written up to now. Values of old readings are means over a span, with "
                "the least and the most beside them. Passwords and tokens in command lines are "
                "written as ***.",
        .operands = export_operands,
        .options = export_rows,
        .examples = export_examples,
        .options_size = sizeof(struct export_options),
        .run = run_export,
};
