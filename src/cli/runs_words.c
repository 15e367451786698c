#include "runs_words.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "quantity.h"
#include "secret.h"
#include "utf8.h"

enum { COLUMNS_MIN = 60, CMD_SHOWN = 1024 };

static const char title[] = "RUN                   STARTED           TOOK          END          "
                            "PEAK   VERDICT                ";

/* "exit 0", "signal 9", "stopped", "live": at most twelve characters. */
static const char *end_words(const struct afz_history_run *run, char buf[16])
{
        const char *how = afz_end_name(run->end.how);
        if (run->life != AFZ_HISTORY_ENDED)
                snprintf(buf, 16, "%s", afz_history_life_name(run->life));
        else if (run->end.how == AFZ_END_EXIT || run->end.how == AFZ_END_SIGNAL)
                snprintf(buf, 16, "%s %d", how, run->end.code);
        else
                snprintf(buf, 16, "%s", how ? how : "");
        return buf;
}

static const char *started_words(const struct afz_history_run *run, char buf[32])
{
        time_t s = (time_t)run->started_s;
        struct tm tm;
        if (!localtime_r(&s, &tm) || strftime(buf, 32, "%Y-%m-%d %H:%M", &tm) == 0)
                snprintf(buf, 32, "?");
        return buf;
}

/* Cuts a line to what fits the terminal, between two characters. */
static void put_line(const struct afz_runs_words *words, const char *line)
{
        size_t left = strlen(line), room = words->columns ? (size_t)words->columns : SIZE_MAX;
        if (words->columns && words->columns < COLUMNS_MIN)
                room = SIZE_MAX; /* so narrow a terminal wraps better than it cuts */
        for (size_t n; left > 0 && room > 0; line += n, left -= n, room--) {
                n = afz_utf8_length(line, left);
                n = n ? n : 1;
                afz_out_bytes(words->out, line, n);
        }
        afz_out_char(words->out, '\n');
}

static void put_row(const struct afz_runs_words *words, const struct afz_history_run *run,
                    const struct afz_changed *since)
{
        char started[32], took[AFZ_DURATION_TEXT_CAP] = "", end[16], peak[AFZ_SIZE_TEXT_CAP] = "";
        char verdict[AFZ_VERDICT_ID_CAP], git[9], revision[16] = "";
        char cmd[CMD_SHOWN], line[CMD_SHOWN + 160];
        bool known = run->life != AFZ_HISTORY_DAMAGED;

        if (known)
                afz_format_duration(took, sizeof took, run->duration_ns);
        if (run->peak_bytes != UINT64_MAX)
                afz_format_size(peak, sizeof peak, run->peak_bytes);
        afz_span_copy(afz_span_str(run->verdict), verdict, sizeof verdict);
        afz_span_copy(afz_span_str(run->git), git, sizeof git);
        if (words->revisions)
                snprintf(revision, sizeof revision, "%-8s  ", git);
        snprintf(line, sizeof line, "%-20s  %-16s  %-12s  %-11s  %-5s  %-21s  %s%s", run->id,
                 started_words(run, started), took, end_words(run, end), peak, verdict, revision,
                 known ? afz_secret_text(run->cmd, cmd, sizeof cmd) : run->summary);
        put_line(words, line);
        if (!since)
                return;
        /* This one is what one came for: it wraps rather than is cut. */
        afz_out_str(words->out, "  since ");
        afz_out_str(words->out, since->before->id);
        afz_out_str(words->out, ", which went well: ");
        afz_out_str(words->out, since->text);
        afz_out_char(words->out, '\n');
}

/* ---- JSON ---- */

static void json_end(struct afz_json *j, const struct afz_history_run *run)
{
        const char *how = afz_end_name(run->end.how);
        afz_json_key(j, "end");
        if (!how || run->life == AFZ_HISTORY_LIVE || run->life == AFZ_HISTORY_DAMAGED) {
                afz_json_null(j);
                return;
        }
        afz_json_open(j, '{');
        afz_json_key(j, "how"), afz_json_str(j, how);
        afz_json_key(j, "code");
        if (run->end.code >= 0)
                afz_json_i64(j, run->end.code);
        else
                afz_json_null(j);
        afz_json_close(j, '}');
}

static void json_verdict(struct afz_json *j, const struct afz_history_run *run)
{
        afz_json_key(j, "verdict");
        if (!run->verdict[0]) {
                afz_json_null(j);
                return;
        }
        afz_json_open(j, '{');
        afz_json_key(j, "id"), afz_json_str(j, run->verdict);
        afz_json_key(j, "level"), afz_json_str(j, afz_level_name(run->level));
        afz_json_key(j, "summary"), afz_json_str(j, run->summary);
        afz_json_close(j, '}');
}

static void json_changed(struct afz_json *j, const struct afz_changed *since)
{
        afz_json_key(j, "changed");
        if (!since) {
                afz_json_null(j);
                return;
        }
        afz_json_open(j, '{');
        afz_json_key(j, "since"), afz_json_str(j, since->before->id);
        afz_json_key(j, "text"), afz_json_str(j, since->text);
        afz_json_close(j, '}');
}

static void put_object(struct afz_json *j, const struct afz_history_run *run,
                       const struct afz_changed *since)
{
        char started[32] = "", cmd[CMD_SHOWN];
        time_t s = (time_t)run->started_s;
        struct tm tm;
        bool known = run->life != AFZ_HISTORY_DAMAGED;

        if (gmtime_r(&s, &tm))
                strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &tm);
        afz_json_open(j, '{');
        afz_json_key(j, "run"), afz_json_str(j, run->id);
        afz_json_key(j, "state"), afz_json_str(j, afz_history_life_name(run->life));
        afz_json_key(j, "started"), afz_json_str(j, started[0] ? started : NULL);
        afz_json_key(j, "duration_s");
        if (known)
                afz_json_double(j, (double)run->duration_ns / (double)AFZ_NS_PER_S, 3);
        else
                afz_json_null(j);
        json_end(j, run);
        afz_json_key(j, "peak"), afz_json_open(j, '{');
        afz_json_key(j, "ram_bytes"), afz_json_known_u64(j, run->peak_bytes);
        afz_json_key(j, "gpu_bytes"), afz_json_known_u64(j, run->gpu_peak_bytes);
        afz_json_close(j, '}');
        afz_json_key(j, "budget_bytes"), afz_json_known_u64(j, run->budget_bytes);
        json_verdict(j, run);
        afz_json_key(j, "cmd");
        afz_json_str(j, known ? afz_secret_text(run->cmd, cmd, sizeof cmd) : NULL);
        afz_json_key(j, "git"), afz_json_str(j, run->git[0] ? run->git : NULL);
        json_changed(j, since);
        afz_json_close(j, '}');
}

void afz_runs_begin(struct afz_runs_words *words)
{
        words->j = (struct afz_json){.out = words->out};
        if (!words->json)
                return;
        afz_json_open(&words->j, '{');
        afz_json_key(&words->j, "schema"), afz_json_u64(&words->j, 1);
        afz_json_key(&words->j, "runs"), afz_json_open(&words->j, '[');
}

void afz_runs_put(struct afz_runs_words *words, const struct afz_history_run *run,
                  const struct afz_changed *since)
{
        if (words->json) {
                put_object(&words->j, run, since);
                return;
        }
        if (!words->any) {
                char line[160];
                snprintf(line, sizeof line, "%s%sCOMMAND", title,
                         words->revisions ? "REVISION  " : "");
                put_line(words, line);
        }
        words->any = true;
        put_row(words, run, since);
}

void afz_runs_end(struct afz_runs_words *words)
{
        if (!words->json)
                return;
        afz_json_close(&words->j, ']');
        afz_json_close(&words->j, '}');
        afz_out_char(words->out, '\n');
}

void afz_runs_put_pruned(struct afz_out *out, const struct afz_pruned *done, bool json)
{
        char size[AFZ_SIZE_TEXT_CAP];
        if (json) {
                struct afz_json j = {.out = out};
                afz_json_open(&j, '{');
                afz_json_key(&j, "schema"), afz_json_u64(&j, 1);
                afz_json_key(&j, "removed"), afz_json_u64(&j, done->runs);
                afz_json_key(&j, "links"), afz_json_u64(&j, done->links);
                afz_json_key(&j, "left_alone"), afz_json_u64(&j, done->refused);
                afz_json_key(&j, "freed_bytes"), afz_json_u64(&j, done->bytes);
                afz_json_close(&j, '}');
                afz_out_char(out, '\n');
                return;
        }
        afz_out_fmt(out, "%zu run%s removed, %s freed", done->runs, done->runs == 1 ? "" : "s",
                    afz_format_size(size, sizeof size, done->bytes));
        if (done->links)
                afz_out_fmt(out,
                            "; %zu of them stood in a folder of their own (--run-dir), which "
                            "stays",
                            done->links);
        afz_out_char(out, '\n');
}
