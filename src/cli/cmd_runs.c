/* antifreeze runs: what was run, how it ended, and what changed since it last went well. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "history.h"
#include "json.h"
#include "out.h"
#include "quantity.h"
#include "run_id.h"
#include "runs_words.h"

/* More do not fit a screen. */
#define SHOWN_AT_ONCE 20

struct runs_options {
        bool json;
        uint64_t count;
        const char *prune, *same;
};

/* ---- which ---- */

/* A run's ID, its beginning or its last letters stand for that run's command; else it is a command.
 * NULL and a line on stderr: no such thing. */
static const char *command_wanted(struct afz_history *history, const char *text)
{
        const struct afz_history_run *found = NULL;
        for (size_t i = 0; text[0] && i < afz_history_count(history); i++) {
                if (!afz_run_id_fits(afz_history_id(history, i), text))
                        continue;
                const struct afz_history_run *run = afz_history_get(history, i);
                if (!run)
                        continue;
                if (found) {
                        afz_say("several runs %s with '%.48s'",
                                afz_is_digit(text[0]) ? "begin" : "end", text);
                        return NULL;
                }
                found = run;
        }
        return found ? found->cmd : text;
}

/* Walks the runs to be shown: start with *cursor = 0; NULL at the end. */
static const struct afz_history_run *next_run(struct afz_history *history, const char *wanted,
                                              size_t *cursor)
{
        while (*cursor < afz_history_count(history)) {
                const struct afz_history_run *run = afz_history_get(history, (*cursor)++);
                if (run && (!wanted || afz_history_same(run->cmd, wanted) ||
                            afz_history_matches(run->cmd, wanted)))
                        return run;
        }
        return NULL;
}

/* Since which run the newest differs, and in what; false: there is nothing to say. */
static bool changed(struct afz_history *history, size_t i, struct afz_changed *ret)
{
        size_t good = afz_history_last_good(history, i);
        if (good == SIZE_MAX)
                return false;
        ret->before = afz_history_get(history, good);
        return afz_history_diff(ret->before, afz_history_get(history, i), ret->text) > 0;
}

static bool any_revision(struct afz_history *history, const char *wanted, uint64_t most)
{
        const struct afz_history_run *run;
        for (size_t cursor = 0; most > 0 && (run = next_run(history, wanted, &cursor)); most--)
                if (run->git[0])
                        return true;
        return false;
}

static int show(struct afz_history *history, const struct runs_options *options)
{
        char buf[1 << 14];
        struct afz_out out = afz_out_to(STDOUT_FILENO, buf, sizeof buf);
        const char *wanted = options->same ? command_wanted(history, options->same) : NULL;
        uint64_t most = options->count  ? options->count
                        : options->json ? UINT64_MAX
                                        : SHOWN_AT_ONCE;
        const struct afz_history_run *run;
        struct afz_runs_words words = {.out = &out,
                                       .json = options->json,
                                       .columns = isatty(STDOUT_FILENO) ? afz_columns() : 0};
        uint64_t shown = 0;

        if (options->same && !wanted)
                return AFZ_EXIT_USAGE;
        words.revisions = !options->json && any_revision(history, wanted, most);
        afz_runs_begin(&words);
        for (size_t cursor = 0; shown < most && (run = next_run(history, wanted, &cursor));
             shown++) {
                struct afz_changed since;
                bool first = shown == 0 && changed(history, cursor - 1, &since);
                afz_runs_put(&words, run, first ? &since : NULL);
        }
        afz_runs_end(&words);
        int r = afz_out_flush(&out);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "writing: %s", strerror(-r));
        if (shown == 0 && !options->json)
                afz_say(options->same ? "no run of that command"
                                      : "there is no run yet: 'antifreeze run -- CMD' makes one");
        else if (shown == most && !options->count && shown < afz_history_count(history))
                afz_say("the newest %d; -n N shows more", SHOWN_AT_ONCE);
        return 0;
}

/* ---- making room ---- */

static int read_rule(const char *text, struct afz_prune_rule *ret)
{
        uint64_t count, age_ns;
        if (afz_parse_u64(text, &count) == 0) {
                *ret = (struct afz_prune_rule){.keep = (size_t)count};
                return 0;
        }
        if (afz_parse_duration(text, &age_ns) < 0)
                return afz_fail(AFZ_EXIT_USAGE,
                                "runs: '%.48s' is neither an age (30d, 12h) nor a number of runs",
                                text);
        *ret = (struct afz_prune_rule){
                .by_age = true, .before_s = (int64_t)time(NULL) - (int64_t)(age_ns / AFZ_NS_PER_S)};
        return 0;
}

static int prune(struct afz_history *history, const struct runs_options *options)
{
        char buf[1024];
        struct afz_out out = afz_out_to(STDOUT_FILENO, buf, sizeof buf);
        struct afz_prune_rule rule;
        struct afz_pruned done;
        int r = read_rule(options->prune, &rule);
        if (r != 0)
                return r;
        r = afz_history_prune(history, &rule, &done);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "runs: %s", strerror(-r));
        afz_runs_put_pruned(&out, &done, options->json);
        r = afz_out_flush(&out);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "writing: %s", strerror(-r));
        if (done.refused > 0)
                return afz_fail(AFZ_EXIT_USAGE, "%zu left alone; run %s: %s", done.refused,
                                done.first_refused, done.why);
        return 0;
}

static int run_runs(const struct afz_invocation *invocation)
{
        const struct runs_options *options = invocation->options;
        struct afz_history *history;
        if (options->prune && (options->same || options->count))
                return afz_fail(AFZ_EXIT_USAGE, "runs: --prune goes with no other choice of runs");
        int r = afz_history_new(&history);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "the runs cannot be listed: %s", strerror(-r));
        int status = options->prune ? prune(history, options) : show(history, options);
        afz_history_free(history);
        return status;
}

static const struct afz_option runs_rows[] = {
        {.name = "json",
         .offset = offsetof(struct runs_options, json),
         .help = "One JSON object with all runs, the newest first."},
        {.name = "number",
         .letter = 'n',
         .arg = "N",
         .type = AFZ_OPTION_U64,
         .offset = offsetof(struct runs_options, count),
         .min = 1,
         .help = "Show at most the N newest. Without it: 20, or all with --json."},
        {.name = "same",
         .arg = "CMD|RUN",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct runs_options, same),
         .complete = AFZ_COMPLETE_RUN,
         .help = "Only runs of the same command: a script ('train.py'), a program, or whatever RUN "
                 "ran. Arguments may differ."},
        {.name = "prune",
         .arg = "AGE|COUNT",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct runs_options, prune),
         .help = "Remove the records of runs that ended longer ago than AGE (30d, 12h), or all but "
                 "the newest COUNT. Runs that go on stay, and so do folders given by --run-dir: "
                 "only our link to them goes. Nothing is asked."},
        {0},
};

static const struct afz_example runs_examples[] = {
        {"antifreeze runs", "The last runs, and what changed since it last went well."},
        {"antifreeze runs --same train.py", "All runs of that script."},
        {"antifreeze runs --json | jq '.runs[] | select(.end.how == \"stopped\") | .run'",
         "The IDs of those that had to be stopped."},
        {"antifreeze runs --prune 30d", "Forget what is older than a month."},
        {0},
};

const struct afz_command afz_command_runs = {
        .name = "runs",
        .summary = "list the runs, how they ended, and what changed",
        .description =
                "Lists the runs, newest first: when each started, how long it took, how it ended, "
                "its peak of memory, the verdict and the command (passwords and tokens are shown "
                "as ***). Below the newest stands what is other than in the last good run of the "
                "same command: arguments, git revision, budget, peak.\n\n"
                "Everything is read from the runs' own folders. A folder that cannot be read is "
                "listed as damaged.",
        .options = runs_rows,
        .examples = runs_examples,
        .options_size = sizeof(struct runs_options),
        .run = run_runs,
};
