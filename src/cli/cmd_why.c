/* antifreeze why: how a run ended, and why; for people, for scripts, for a forum. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "commands.h"
#include "config.h"
#include "count_of.h"
#include "explain.h"
#include "flight_file.h"
#include "operand_run.h"
#include "out.h"
#include "quantity.h"
#include "span.h"
#include "suggest.h"
#include "why_detail.h"
#include "why_meaning.h"
#include "why_sites.h"
#include "why_stacks.h"
#include "why_use.h"

struct why_options {
        bool json, paste, verbose;
        const char *explain;
};

static void list_verdicts(FILE *to)
{
        const struct afz_why_page *page;
        for (unsigned i = 0; (page = afz_why_meaning_at(i)); i++)
                fprintf(to, "%-22s  %s\n", page->id, page->line);
}

static int unknown_verdict(const char *id)
{
        struct afz_suggestion near = {.typed = id};
        const struct afz_why_page *page;
        for (unsigned i = 0; (page = afz_why_meaning_at(i)); i++)
                afz_suggestion_offer(&near, page->id);
        if (near.best)
                afz_say("there is no verdict '%.48s'; did you mean '%s'? There are:", id,
                        near.best);
        else
                afz_say("there is no verdict '%.48s'. There are:", id);
        list_verdicts(stderr);
        return AFZ_EXIT_USAGE;
}

static int explain(const char *id)
{
        const struct afz_why_page *page = afz_why_meaning(id);
        if (!page && id[0])
                return unknown_verdict(id);
        if (page)
                fputs(page->text, stdout);
        else
                list_verdicts(stdout);
        return fflush(stdout) != 0 || ferror(stdout)
                       ? afz_fail(AFZ_EXIT_USAGE, "writing to stdout: %s", strerror(errno))
                       : 0;
}

/* Folders are nobody's business: "/home/me/logs/train.log" is told as ".../train.log". Those of the
 * kernel's own file systems tell something, and nothing about anybody. */
static void put_without_folders(struct afz_out *out, struct afz_span line)
{
        static const char *const plain[] = {"/dev/", "/proc/", "/sys/"};
        size_t done = 0;
        for (size_t i = 0; i < line.n; i++) {
                struct afz_span rest = {line.p + i, line.n - i};
                bool begins = i == 0 || strchr(" \t\"'(=:", line.p[i - 1]);
                bool known = false;
                size_t n = 0;
                for (size_t k = 0; k < AFZ_COUNT_OF(plain); k++)
                        known |= afz_span_starts(rest, plain[k]);
                while (n < rest.n && !strchr(" \t\"'),;", rest.p[n]))
                        n++;
                if (line.p[i] != '/' || !begins || known || n < 2)
                        continue;
                struct afz_span name = afz_span_base_name((struct afz_span){rest.p, n});
                afz_out_bytes(out, line.p + done, i - done);
                afz_out_str(out, ".../");
                afz_out_bytes(out, name.p, name.n);
                done = i + n;
                i = done - 1;
        }
        afz_out_bytes(out, line.p + done, line.n - done);
}

/* What an error says may be a key, or a row of the data: of it only the kind and the place are
 * told.
 */
static void put_without_words(struct afz_out *out, struct afz_span line)
{
        static const char before[] = "that nobody caught: ", at[] = ", at ";
        const char *found = memmem(line.p, line.n, before, sizeof before - 1);
        if (found) {
                size_t place = line.n, n = (size_t)(found - line.p) + sizeof before - 1;
                while (n < line.n && !strchr(": ,", line.p[n]))
                        n++;
                for (size_t i = n; i + sizeof at - 1 <= line.n; i++)
                        if (memcmp(line.p + i, at, sizeof at - 1) == 0)
                                place = i;
                afz_out_bytes(out, line.p, n);
                line = (struct afz_span){line.p + place, line.n - place};
        }
        put_without_folders(out, line);
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
                put_without_words(out, line);
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

/* What is asked for, and what is known of it. */
struct question {
        struct afz_run_ref ref;
        struct afz_run_known known;
        struct afz_flight flight;
        char lacking[AFZ_RUN_WHY_CAP]; /* of the recording */
};

static bool same_words(const struct afz_outcome *a, const struct afz_outcome *b)
{
        bool same = a->verdicts == b->verdicts;
        for (unsigned i = 0; same && i < a->verdicts; i++) {
                const struct afz_verdict *v = &a->verdict[i], *w = &b->verdict[i];
                same = strcmp(v->id, w->id) == 0 && strcmp(v->summary, w->summary) == 0;
                for (int e = 0; same && e < AFZ_EVIDENCE_MAX; e++)
                        same = strcmp(v->evidence[e], w->evidence[e]) == 0;
        }
        return same;
}

/* Looks into it. What was not recorded, or without a look at the recording, is on the way. */
static void look_into(struct question *q)
{
        struct afz_outcome before = q->known.outcome;
        int dir_fd = q->ref.dir[0] ? open(q->ref.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        (void)afz_explain_known(&q->known, dir_fd, &q->flight, q->lacking);
        if (dir_fd >= 0)
                close(dir_fd);
        if (q->known.outcome.end.how != AFZ_END_RUNNING && !q->known.only_recording &&
            (!q->known.recorded || !same_words(&before, &q->known.outcome)))
                (void)afz_run_retell(&q->ref, &q->known); /* what is told does not depend on it */
}

static void paste(const struct question *q, struct afz_out *out)
{
        char text[32768];
        struct afz_out memory = afz_out_to(-1, text, sizeof text);
        afz_why_put(&memory, &q->known, &q->flight, true);
        afz_out_str(out, "```text\n");
        put_machine(out);
        put_without_secrets(out, (struct afz_span){text, memory.len});
        afz_out_str(out, "```\n");
}

/* As it stands in the files; and which lines held the memory, if the recording knows. */
static int tell_file(const struct why_options *options, struct question *q, struct afz_out *out)
{
        int r = afz_run_tell_file(&q->ref, options->json, out);
        int dir_fd = r == 0 && !options->json && q->ref.dir[0]
                             ? open(q->ref.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                             : -1;
        if (dir_fd < 0)
                return r;
        afz_flight_init(&q->flight);
        if (afz_flight_read(dir_fd, afz_why_use_wanted, &q->flight, q->lacking) >= 0) {
                afz_why_adapted(out, &q->flight, &q->known.outcome.end);
                afz_why_use(out, &q->flight, false, false);
                afz_why_sites(out, &q->flight, false);
                afz_why_stacks(out, &q->flight, false);
        }
        close(dir_fd);
        afz_flight_done(&q->flight);
        return r;
}

static int answer(const struct why_options *options, struct question *q, struct afz_out *out)
{
        struct afz_run_known *known = &q->known;
        bool plain = !options->verbose && !options->paste;
        int r = afz_run_recall(&q->ref, known);
        bool ended = r == 0 && known->outcome.end.how != AFZ_END_RUNNING;
        /* What stands in the files is the answer, also when another version has written more than
         * we can read; a run on another machine is told as that one left it. */
        if ((r < 0 && plain && !(options->json && r == -EBADMSG)) ||
            (r == 0 && known->elsewhere && !ended) ||
            (plain && ended && known->recorded && known->outcome.end.how != AFZ_END_LOST)) {
                int told = tell_file(options, q, out);
                if (told != -ENOENT || r < 0)
                        return told;
        } /* without its verdict.txt: made anew */
        if (r < 0)
                return r;
        look_into(q);
        if (options->json)
                afz_run_put_json(out, &known->page, &known->outcome, known->duration_ns);
        else if (options->paste)
                paste(q, out);
        else if (options->verbose)
                afz_why_detail(out, known, &q->flight, q->lacking);
        else {
                afz_why_put(out, known, &q->flight, false);
                afz_why_adapted(out, &q->flight, &known->outcome.end);
                afz_why_use(out, &q->flight, known->outcome.end.how == AFZ_END_RUNNING, false);
                afz_why_sites(out, &q->flight, false);
                afz_why_stacks(out, &q->flight, false);
        }
        afz_flight_done(&q->flight);
        return 0;
}

static int run_why(const struct afz_invocation *invocation)
{
        const struct why_options *options = invocation->options;
        const char *text = invocation->argc > 0 ? invocation->argv[0] : NULL;
        struct question q = {0};
        char buf[4096];

        if ((options->json + options->paste + options->verbose + (options->explain != NULL)) > 1)
                return afz_fail(AFZ_EXIT_USAGE,
                                "why: --json, --paste, --verbose and --explain exclude one "
                                "another; keep one of them");
        if (options->explain)
                return explain(options->explain);
        int status = afz_operand_run(text, &q.ref);
        if (status != 0)
                return status;
        struct afz_out out = afz_out_to(STDOUT_FILENO, buf, sizeof buf);
        int r = answer(options, &q, &out);
        if (r < 0)
                return afz_fail_unreadable(&q.ref, r);
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
        {.name = "verbose",
         .letter = 'v',
         .offset = offsetof(struct why_options, verbose),
         .help = "All of it: every verdict with all its evidence and how sure it is, what led to "
                 "what, what was done when, and of a run that goes on, when its memory is full."},
        {.name = "explain",
         .arg = "ID",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct why_options, explain),
         .alone = "",
         .help = "What a verdict means, such as host-exhaustion, and what to do. Without ID, all "
                 "that there are. No run is looked at."},
        {0},
};

static const struct afz_example why_examples[] = {
        {"antifreeze why", "How the last run ended, and why."},
        {"antifreeze why --json | jq -r '.verdicts[0].id'", "Only the strongest verdict."},
        {"antifreeze why --verbose", "With all the evidence, and what happened when."},
        {"antifreeze why runs/today", "The same for the run in that folder (run --run-dir)."},
        {"antifreeze why --explain host-exhaustion", "What that verdict means, and what to do."},
        {0},
};

const struct afz_command afz_command_why = {
        .name = "why",
        .summary = "say how a run ended, and why",
        .description =
                "Prints the verdict of a run, the newest by default: what happened, in one "
                "sentence; because of what we believe it; what to try; how sure we are; and what "
                "it led to. Then how it ended, its peak and its budget, and what Antifreeze did. "
                "Of a run that still goes on, first what it does just now, and then what can be "
                "said so far.\n\n"
                "RUN is a run's ID, its beginning or its last four letters, the path of a run's "
                "folder, or the process number of a living run. A run whose guard was killed, or "
                "whose machine "
                "went down, is told as lost, with what its recording shows until then. Of a folder "
                "with nothing but a recording (flight.afz) in it, what that shows. The exit "
                "status is 0 whenever there is an answer.",
        .operands = why_operands,
        .options = why_rows,
        .examples = why_examples,
        .options_size = sizeof(struct why_options),
        .run = run_why,
};
