/* antifreeze report: the picture of a run, one HTML file that opens anywhere. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_tale.h"
#include "commands.h"
#include "config.h"
#include "explain.h"
#include "memory_ledger.h"
#include "operand_run.h"
#include "out.h"
#include "purposes.h"
#include "report.h"

#define REPORT_NAME "report.html"
#define REPORT_NEW  "report.html.new"

struct report_options {
        const char *output;
};

/* What the report is made of; large, so not on the stack. */
struct material {
        struct afz_run_known known;
        struct afz_flight flight;
        struct afz_report_ledger ledger;
        struct afz_report_uses uses;
        struct afz_report report;
};

static_assert((int)AFZ_PURPOSES <= (int)AFZ_REPORT_USES, "a purpose would be lost");
static_assert((int)AFZ_LEDGER_KINDS <= (int)AFZ_REPORT_KINDS, "a kind would be lost");

static void put_moment(struct afz_report_ledger *to, const struct afz_ledger *from)
{
        unsigned at = to->moments++;
        for (; at > 0 && to->moment[at - 1].t_ms > from->t_ms; at--)
                to->moment[at] = to->moment[at - 1];
        memset(&to->moment[at], 0, sizeof to->moment[at]);
        to->moment[at].t_ms = from->t_ms;
        for (unsigned i = 0; i < from->rows; i++) {
                const struct afz_ledger_row *row = &from->row[i];
                to->kind[row->kind].name = row->name;
                to->kind[row->kind].what = row->what;
                to->kind[row->kind].beside = !row->in_need;
                to->moment[at].bytes[row->kind] = row->bytes;
        }
}

/* Moments all over the run, and its highest one. */
static void fill_ledger(struct material *m)
{
        struct afz_ledger now;
        struct afz_report_ledger *to = &m->ledger;
        for (unsigned k = 0; k < AFZ_LEDGER_KINDS; k++)
                to->kind[k].name = to->kind[k].what = "";
        to->kinds = AFZ_LEDGER_KINDS;
        for (uint64_t i = 0; i + 1 < AFZ_REPORT_MOMENTS; i++) {
                uint32_t t_ms = (uint32_t)(m->flight.end_ms * i / (AFZ_REPORT_MOMENTS - 2));
                if (afz_ledger_at(&m->flight, t_ms, &now)) {
                        now.t_ms = t_ms;
                        put_moment(to, &now);
                }
        }
        if (afz_ledger_peak(&m->flight, &now))
                put_moment(to, &now);
        m->report.ledger = to->moments ? to : NULL;
}

static void fill_uses_of(struct afz_report_uses_of *to, const struct afz_flight *flight, bool gpu)
{
        struct afz_purposes peak = {0}, end = {0};
        to->has_peak = afz_purposes_peak(flight, gpu, &peak);
        to->has_end = afz_purposes_now(flight, gpu, &end);
        to->peak_bytes = peak.whole_bytes;
        to->end_bytes = end.whole_bytes;
        for (unsigned k = 0; k < AFZ_PURPOSES; k++) {
                if (peak.bytes[k] == 0 && end.bytes[k] == 0)
                        continue;
                to->row[to->rows].name = afz_purpose_name((enum afz_purpose)k);
                to->row[to->rows].what = afz_purpose_what((enum afz_purpose)k);
                to->row[to->rows].peak_bytes = peak.bytes[k];
                to->row[to->rows++].end_bytes = end.bytes[k];
        }
}

static void fill_uses(struct material *m)
{
        struct afz_tale tale;
        for (int gpu = 0; gpu < 2; gpu++)
                fill_uses_of(&m->uses.of[gpu], &m->flight, gpu);
        afz_tale_of(&m->flight, &m->known.outcome.end, 0, &tale);
        (void)afz_tale_words(&tale, m->uses.adapted, sizeof m->uses.adapted);
        m->report.uses = &m->uses;
}

/* What the run's page knows and the recording does not, or knows less well. */
static void take_page(struct afz_report *report, const struct afz_run_known *known)
{
        const struct afz_run_page *page = &known->page;
        report->run = page->id;
        report->version = AFZ_VERSION;
        if (!report->cmd[0])
                report->cmd = page->cmd;
        if (page->started_s)
                report->started_s = page->started_s;
        if (known->duration_ns)
                report->duration_ms = known->duration_ns / 1000000;
        report->tier = page->tier; /* the head was written before it was known */
        report->policy = page->policy;
        report->budget_bytes = page->budget_bytes;
        report->swap_bytes = page->swap_bytes;
        if (page->peak_bytes > report->peak_bytes)
                report->peak_bytes = page->peak_bytes;
        if (page->cpu_ns)
                report->own_cpu_ns = page->cpu_ns;
}

static int collect(const struct afz_run_ref *ref, struct material *m)
{
        char why[AFZ_RUN_WHY_CAP] = "";
        int r = afz_run_recall(ref, &m->known);
        if (r < 0)
                return afz_fail_unreadable(ref, r);
        int dir_fd = ref->dir[0] ? open(ref->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        (void)afz_explain_known(&m->known, dir_fd, &m->flight, why);
        if (dir_fd >= 0)
                close(dir_fd);
        if (why[0])
                afz_say("without its recording: %s", why);
        afz_report_from_flight(&m->report, &m->flight, &m->known.outcome);
        take_page(&m->report, &m->known);
        fill_ledger(m);
        fill_uses(m);
        return 0;
}

static int write_page(int fd, const struct afz_report *report)
{
        char buf[1 << 16];
        struct afz_out out = afz_out_to(fd, buf, sizeof buf);
        int r = afz_report_put(&out, report);
        return r < 0 ? r : afz_out_flush(&out);
}

/* A new file that is renamed over the old: who looks at the old one meanwhile sees all of it. */
static int write_in_folder(const char *dir, const struct afz_report *report)
{
        int r, dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0)
                return -errno;
        unlinkat(dir_fd, REPORT_NEW, 0);
        int fd = openat(dir_fd, REPORT_NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_page(fd, report);
        if (fd >= 0 && close(fd) < 0 && r == 0)
                r = -errno;
        if (r == 0 && renameat(dir_fd, REPORT_NEW, dir_fd, REPORT_NAME) < 0)
                r = -errno;
        if (r < 0)
                unlinkat(dir_fd, REPORT_NEW, 0);
        close(dir_fd);
        return r;
}

static int write_file(const char *path, const struct afz_report *report)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        int r = fd < 0 ? -errno : write_page(fd, report);
        if (fd >= 0 && close(fd) < 0 && r == 0)
                r = -errno;
        return r;
}

static int put_report(const struct afz_run_ref *ref, const struct afz_report *report,
                      const char *output)
{
        char path[AFZ_RUN_PATH_CAP + sizeof REPORT_NAME + 1];
        int r;
        if (!output && !ref->dir[0])
                return afz_fail(AFZ_EXIT_USAGE, "run %s has no folder: say where with -o FILE",
                                ref->id);
        if (output)
                snprintf(path, sizeof path, "%s", output);
        else
                snprintf(path, sizeof path, "%s/" REPORT_NAME, ref->dir);
        if (output && strcmp(output, "-") == 0)
                r = write_page(STDOUT_FILENO, report);
        else
                r = output ? write_file(output, report) : write_in_folder(ref->dir, report);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "writing %.300s: %s", path, strerror(-r));
        if (output && strcmp(output, "-") == 0)
                return 0;
        return printf("%s\n", path) < 0 || fflush(stdout) != 0
                       ? afz_fail(AFZ_EXIT_USAGE, "cannot write to stdout")
                       : 0;
}

static int run_report(const struct afz_invocation *invocation)
{
        const struct report_options *options = invocation->options;
        const char *text = invocation->argc > 0 ? invocation->argv[0] : NULL;
        struct afz_run_ref ref;

        if (options->output && !options->output[0])
                return afz_fail(AFZ_EXIT_USAGE, "report: -o wants a file's name, or -");
        int status = afz_operand_run(text, &ref);
        if (status != 0)
                return status;
        struct material *m = calloc(1, sizeof *m);
        if (!m)
                return afz_fail(AFZ_EXIT_USAGE, "report: %s", strerror(ENOMEM));
        status = collect(&ref, m);
        if (status == 0)
                status = put_report(&ref, &m->report, options->output);
        afz_flight_done(&m->flight);
        free(m);
        return status;
}

static const struct afz_operand report_operands[] = {
        {.name = "RUN", .complete = AFZ_COMPLETE_RUN | AFZ_COMPLETE_DIR, .optional = true},
        {0},
};

static const struct afz_option report_rows[] = {
        {.name = "output",
         .letter = 'o',
         .arg = "FILE",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct report_options, output),
         .complete = AFZ_COMPLETE_FILE,
         .default_text = "report.html in the run's folder",
         .help = "Where to write it; - is stdout."},
        {0},
};

static const struct afz_example report_examples[] = {
        {"antifreeze report", "The last run as a page; prints where it is."},
        {"xdg-open \"$(antifreeze report)\"", "And look at it."},
        {"antifreeze report -o - > page.html", "Somewhere else."},
        {0},
};

const struct afz_command afz_command_report = {
        .name = "report",
        .summary = "make one HTML page of a run",
        .description =
                "Makes a page of a run, the newest by default, and prints where it is: the verdict "
                "with its evidence, the time line of memory, swap, GPU memory and pressure with "
                "all that happened, where the memory went, who lived when, the machine, and what "
                "Antifreeze itself cost.\n\n"
                "It is one file that needs nothing else, opens without a network, prints, and can "
                "be read without JavaScript (which adds a cursor, a zoom and switches). The "
                "command line and the names of processes are in it: look at it before you give it "
                "away. A run that goes on is shown as it stands. RUN is as in antifreeze why.",
        .operands = report_operands,
        .options = report_rows,
        .examples = report_examples,
        .options_size = sizeof(struct report_options),
        .run = run_report,
};
