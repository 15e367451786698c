/* antifreeze why: how a run ended, and why; for people, for scripts, for a forum. */
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "commands.h"
#include "config.h"
#include "count_of.h"
#include "operand_run.h"
#include "out.h"
#include "quantity.h"
#include "span.h"

struct why_options {
        bool json, paste;
        const char *explain;
};

/* What each verdict that exists means. */
static const struct {
        const char *id, *text;
} explanation[] = {
        {"clean", "Nothing is wrong: the program ended by itself with status 0, and stayed within "
                  "what it may use."},
        {"host-exhaustion",
         "The job needed as much memory as the machine can give it, so Antifreeze slowed it down, "
         "asked it to save, and in the end stopped it, before the machine would have begun to "
         "page. A smaller batch, data that is streamed instead of loaded, or a larger --budget "
         "(where others can spare it) lets it run."},
        {"oom-killed",
         "The kernel killed the job at the limit that Antifreeze had set: memory was taken faster "
         "than one could look. The rest of the machine was never short. The ways out are those of "
         "host-exhaustion."},
        {"fork-storm",
         "The job started processes without end, and was stopped at the limit of processes. Often "
         "a worker imports the main module and starts workers of its own."},
        {"killed-externally",
         "Somebody else ended the job with a signal: a user, a batch system, a shell that was "
         "closed. Antifreeze did not, and no limit of ours was met."},
        {"crash",
         "The program was ended by a signal that a fault raises (SIGSEGV, SIGBUS, SIGABRT, ...): a "
         "fault in native code, not a lack of memory that we saw."},
        {"exception",
         "The program ended by itself with a status other than 0: an uncaught exception, a failed "
         "assertion, a usage error. Its own last lines say more."},
        {"lost", "The guard itself was killed before the job ended, so nobody saw the end. The "
                 "kernel's limits stayed in force; the next run clears up."},
        {"machine-lost",
         "The machine went down while the job was running: it was booted anew since, and no end "
         "was recorded. Power, heat, a driver or a reset; the log of the boot before may tell "
         "(journalctl -b -1 -e)."},
        {"disk-full",
         "A disk that the job writes to is full, or nearly. Old checkpoints, logs and caches are "
         "the usual cause."},
        {"shm-full",
         "/dev/shm is full, or nearly. Loader workers hand over their batches there: fewer "
         "workers, a smaller prefetch, or a larger /dev/shm (in a container: --shm-size) helps."},
};

static int explain(const char *id)
{
        char known[256] = "";
        size_t at = 0;
        for (size_t i = 0; i < AFZ_COUNT_OF(explanation); i++) {
                if (strcmp(id, explanation[i].id) == 0)
                        return printf("%s: %s\n", id, explanation[i].text) < 0 ||
                                               fflush(stdout) != 0
                                       ? afz_fail(AFZ_EXIT_USAGE, "cannot write to stdout")
                                       : 0;
                int n = snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "",
                                 explanation[i].id);
                at += (size_t)n < sizeof known - at ? (size_t)n : 0;
        }
        return afz_fail(AFZ_EXIT_USAGE, "there is no verdict '%.48s'; there are %s", id, known);
}

/* "  command    /home/me/bin/python train.py --token 1234" is told as "  command    python": what
 * stands in arguments and folders is nobody's business. */
static void put_without_secrets(struct afz_out *out, struct afz_span text)
{
        struct afz_span line, rest, word;
        while (afz_span_take_line(&text, &line) == 0) {
                rest = line;
                if (afz_span_take_prefix(&rest, "  command ") == 0) {
                        afz_out_str(out, "  command    ");
                        line = afz_span_take_word(&rest, &word) == 0 ? afz_span_base_name(word)
                                                                     : AFZ_SPAN("");
                }
                afz_out_bytes(out, line.p, line.n);
                afz_out_char(out, '\n');
        }
}

static void put_machine(struct afz_out *out)
{
        char ram[AFZ_SIZE_TEXT_CAP], swap[AFZ_SIZE_TEXT_CAP];
        struct sysinfo memory;
        struct utsname name;

        afz_out_str(out, "antifreeze " AFZ_VERSION);
        if (uname(&name) == 0)
                afz_out_fmt(out, ", %s %s %s", name.sysname, name.release, name.machine);
        if (sysinfo(&memory) == 0)
                afz_out_fmt(out, ", RAM %s, swap %s",
                            afz_format_size(ram, sizeof ram,
                                            (uint64_t)memory.totalram * memory.mem_unit),
                            afz_format_size(swap, sizeof swap,
                                            (uint64_t)memory.totalswap * memory.mem_unit));
        afz_out_char(out, '\n');
}

static int paste(const struct afz_run_ref *ref, struct afz_out *out)
{
        char text[16384];
        struct afz_out memory = afz_out_to(-1, text, sizeof text);
        int r = afz_run_tell(ref, false, &memory);
        if (r < 0)
                return r;
        afz_out_str(out, "```text\n");
        put_machine(out);
        put_without_secrets(out, (struct afz_span){text, memory.len});
        afz_out_str(out, "```\n");
        return 0;
}

static int run_why(const struct afz_invocation *invocation)
{
        const struct why_options *options = invocation->options;
        const char *text = invocation->argc > 0 ? invocation->argv[0] : NULL;
        struct afz_run_ref ref;
        char buf[4096];

        if ((options->json + options->paste + (options->explain != NULL)) > 1)
                return afz_fail(AFZ_EXIT_USAGE,
                                "why: --json, --paste and --explain exclude one another");
        if (options->explain)
                return explain(options->explain);
        int status = afz_operand_run(text, &ref);
        if (status != 0)
                return status;
        struct afz_out out = afz_out_to(STDOUT_FILENO, buf, sizeof buf);
        int r = options->paste ? paste(&ref, &out) : afz_run_tell(&ref, options->json, &out);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "nothing can be read of run %s%s%s: %s", ref.id,
                                ref.dir[0] ? " in " : "", ref.dir, strerror(-r));
        r = afz_out_flush(&out);
        return r < 0 ? afz_fail(AFZ_EXIT_USAGE, "writing: %s", strerror(-r)) : 0;
}

static const struct afz_operand why_operands[] = {
        {.name = "RUN", .complete = AFZ_COMPLETE_RUN | AFZ_COMPLETE_DIR, .optional = true},
        {0},
};

static const struct afz_option why_rows[] = {
        {.name = "json",
         .offset = offsetof(struct why_options, json),
         .help = "The run's verdict.json: schema 1, one object on one line."},
        {.name = "paste",
         .offset = offsetof(struct why_options, paste),
         .help = "A block to paste into a forum or an issue: the verdict, with version, kernel, "
                 "tier and RAM. Of the command only its name is shown."},
        {.name = "explain",
         .arg = "ID",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct why_options, explain),
         .help = "What a verdict means, such as host-exhaustion. No run is looked at."},
        {0},
};

static const struct afz_example why_examples[] = {
        {"antifreeze why", "How the last run ended, and why."},
        {"antifreeze why --json | jq -r '.verdicts[0].id'", "Only the strongest verdict."},
        {"antifreeze why runs/today", "The same for the run in that folder (run --run-dir)."},
        {"antifreeze why --explain host-exhaustion", "What that verdict means."},
        {0},
};

const struct afz_command afz_command_why = {
        .name = "why",
        .summary = "say how a run ended, and why",
        .description =
                "Prints the verdict of a run, the newest by default: one sentence, the evidence, "
                "one fix, how it ended, what held it, its peak and its budget, and what Antifreeze "
                "did. A run that still goes on is told as it stands.\n\n"
                "RUN is a run's ID, the beginning of one, the path of a run's folder, or the "
                "process number of a living run. A run whose guard was killed, or whose machine "
                "went down, is told as lost. The exit status is 0 whenever there is an answer.",
        .operands = why_operands,
        .options = why_rows,
        .examples = why_examples,
        .options_size = sizeof(struct why_options),
        .run = run_why,
};
