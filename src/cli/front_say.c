#include "front_say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "json.h"
#include "run.h"
#include "span.h"

/* In one piece: the job may write to the same place at the same time. */
enum { OBJECT_CAP = 32768 };

static void open_object(struct afz_json *j, const char *event, const char *run, const char *text)
{
        afz_json_open(j, '{');
        afz_json_key(j, "antifreeze"), afz_json_str(j, event);
        afz_json_key(j, "run"), afz_json_str(j, run);
        afz_json_key(j, "text"), afz_json_str(j, text[0] ? text : NULL);
}

static void close_object(struct afz_json *j)
{
        afz_json_close(j, '}');
        afz_out_char(j->out, '\n');
        (void)afz_out_flush(j->out);
}

static void put_figures(struct afz_json *j, const struct afz_word *word)
{
        afz_json_key(j, "tier"), afz_json_str(j, afz_tier_name(word->tier));
        afz_json_key(j, "budget_bytes"), afz_json_u64(j, word->budget_bytes);
        afz_json_key(j, "swap_bytes"), afz_json_u64(j, word->swap_bytes);
        afz_json_key(j, "need_bytes"), afz_json_u64(j, word->need_bytes);
}

static void put_number(struct afz_json *j, const char *key, bool known, int number)
{
        afz_json_key(j, key);
        if (known)
                afz_json_i64(j, number);
        else
                afz_json_null(j);
}

void afz_front_say(const struct afz_front_style *style, const char *run, const char *event,
                   const char *format, ...)
{
        char text[512], buf[2048];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        if (!style->json) {
                afz_say("%s", text);
                return;
        }
        struct afz_out out = afz_out_to(STDERR_FILENO, buf, sizeof buf);
        struct afz_json j = {.out = &out};
        open_object(&j, event, run, text);
        close_object(&j);
}

static void speak_json(const char *run, const struct afz_word *word)
{
        char buf[4096];
        struct afz_out out = afz_out_to(STDERR_FILENO, buf, sizeof buf);
        struct afz_json j = {.out = &out};
        open_object(&j, word->event, run, word->text);
        put_figures(&j, word);
        if (word->kind == AFZ_WORD_ENDED || word->kind == AFZ_WORD_FAILED) {
                put_number(&j, "exit", word->sig == 0, word->code);
                put_number(&j, "signal", word->sig != 0, word->sig);
        }
        close_object(&j);
}

void afz_front_speak(const struct afz_front_style *style, const char *run,
                     const struct afz_word *word, bool always)
{
        if (style->json) {
                if (!style->quiet || word->urgent || word->kind == AFZ_WORD_ENDED)
                        speak_json(run, word);
                return;
        }
        if (word->text[0] == '\0' || (style->quiet && !word->urgent && !always))
                return;
        for (const char *line = word->text; line && *line;) {
                const char *end = strchr(line, '\n');
                afz_say("%.*s", end ? (int)(end - line) : (int)strlen(line), line);
                line = end ? end + 1 : NULL;
        }
}

/* "leak: its memory grew until .... Try: ...": all of it in a line. */
static const char *in_a_line(const struct afz_verdict *v, char *buf, size_t cap)
{
        snprintf(buf, cap, "%s: %s%s%s", v->id, v->summary, v->fix[0] ? ". Try: " : "", v->fix);
        return buf;
}

static void tell_json(const char *run, const struct afz_word *word,
                      const struct afz_outcome *outcome)
{
        char buf[OBJECT_CAP], line[640];
        struct afz_out out = afz_out_to(STDERR_FILENO, buf, sizeof buf);
        struct afz_json j = {.out = &out};
        open_object(&j, "verdict", run, in_a_line(&outcome->verdict[0], line, sizeof line));
        put_figures(&j, word);
        afz_run_put_verdicts(&j, outcome);
        close_object(&j);
}

/* What came of it at last: the steps between are told by `why`. */
static void tell_consequence(const struct afz_outcome *outcome)
{
        const struct afz_verdict *last = NULL;
        for (unsigned i = 1; i < outcome->verdicts; i++)
                if (outcome->verdict[i].caused_by[0])
                        last = &outcome->verdict[i];
        if (last)
                afz_say("  which led to: %s", last->summary);
}

/* What it needed at most stands in every end; it is evidence only where it was about that. */
static const char *best_evidence(const struct afz_verdict *v)
{
        bool about_memory = v->level == AFZ_LEVEL_ACT;
        for (int i = 0; i < AFZ_EVIDENCE_MAX; i++) {
                struct afz_span one = afz_span_str(v->evidence[i]);
                bool figure = afz_span_starts(one, "peak need") ||
                              afz_span_starts(one, "its memory was far");
                if (one.n > 0 && (about_memory || !figure))
                        return v->evidence[i];
        }
        return "";
}

void afz_front_tell(const struct afz_front_style *style, const char *run,
                    const struct afz_word *word, const struct afz_outcome *outcome, bool more)
{
        const struct afz_verdict *v = &outcome->verdict[0];
        char line[640];
        if (style->quiet && !word->urgent)
                return;
        if (style->json) {
                tell_json(run, word, outcome);
                return;
        }
        if (style->quiet || v->level == AFZ_LEVEL_OK) {
                afz_say("%s", in_a_line(v, line, sizeof line));
                return;
        }
        afz_say("%s: %s", v->id, v->summary);
        if (best_evidence(v)[0])
                afz_say("  because: %s", best_evidence(v));
        tell_consequence(outcome);
        if (v->fix[0])
                afz_say("  try: %s", v->fix);
        if (more)
                afz_say("  more: antifreeze why %s; the picture: antifreeze report %s", run, run);
}
