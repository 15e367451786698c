#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *afz_level_name(enum afz_level level)
{
        static const char *const names[AFZ_LEVELS] = {
                [AFZ_LEVEL_UNKNOWN] = "unknown",
                [AFZ_LEVEL_OK] = "ok",
                [AFZ_LEVEL_WARN] = "warn",
                [AFZ_LEVEL_ACT] = "act",
        };
        return names[level];
}

void afz_verdict_set(struct afz_verdict *v, const char *id, enum afz_level level, double confidence)
{
        snprintf(v->id, sizeof v->id, "%s", id);
        v->level = level;
        v->confidence = confidence;
}

struct afz_verdict *afz_outcome_add(struct afz_outcome *outcome, const char *id,
                                    enum afz_level level, double confidence)
{
        if (outcome->verdicts == AFZ_VERDICTS_MAX)
                return NULL;
        struct afz_verdict *v = &outcome->verdict[outcome->verdicts++];
        memset(v, 0, sizeof *v);
        afz_verdict_set(v, id, level, confidence);
        return v;
}

void afz_verdict_note(struct afz_verdict *v, const char *format, ...)
{
        va_list args;
        for (int i = 0; i < AFZ_EVIDENCE_MAX; i++) {
                if (v->evidence[i][0] != '\0')
                        continue;
                va_start(args, format);
                vsnprintf(v->evidence[i], sizeof v->evidence[i], format, args);
                va_end(args);
                return;
        }
}

void afz_verdict_lost(struct afz_verdict *v, bool held)
{
        snprintf(v->summary, sizeof v->summary,
                 "the guard was killed before the job ended: how the job ended is not known");
        afz_verdict_note(v, "nobody holds the run any more, and no end was recorded");
        snprintf(v->fix, sizeof v->fix, "%s",
                 held ? "read the last lines that the job printed; its limits stayed in force, and "
                        "the next run clears up after it"
                      : "look whether the job is still running: nothing holds it now");
}

void afz_verdict_machine_lost(struct afz_verdict *v, const char *sign)
{
        snprintf(v->summary, sizeof v->summary,
                 "the machine went down while the job was running%s%s",
                 sign ? "; shortly before, " : "", sign ? sign : "");
        snprintf(v->fix, sizeof v->fix,
                 "look at the last lines of the boot before: journalctl -b -1 -e");
}

bool afz_verdict_is_of(const char *id, const char *family)
{
        size_t n = strlen(family);
        return strncmp(id, family, n) == 0 && (id[n] == '\0' || id[n] == ':');
}

const struct afz_verdict *afz_outcome_find(const struct afz_outcome *outcome, const char *family)
{
        for (unsigned i = 0; i < outcome->verdicts; i++)
                if (afz_verdict_is_of(outcome->verdict[i].id, family))
                        return &outcome->verdict[i];
        return NULL;
}

static void end_text(char *text, size_t cap)
{
        text[cap - 1] = '\0';
}

static void check_end(struct afz_end *end)
{
        if ((unsigned)end->how >= AFZ_END_COUNT)
                *end = (struct afz_end){AFZ_END_UNKNOWN, -1};
}

/* A bool with another value than 0 and 1 may not even be looked at. */
static void check_bool(bool *flag)
{
        unsigned char byte;
        memcpy(&byte, flag, 1);
        *flag = byte != 0;
}

void afz_facts_check(struct afz_facts *facts)
{
        check_end(&facts->end);
        if (facts->stop_cause >= AFZ_CAUSE_COUNT)
                facts->stop_cause = AFZ_CAUSE_NONE;
        check_bool(&facts->storm);
        check_bool(&facts->watch_only);
        check_bool(&facts->timed_out);
        end_text(facts->largest.name, sizeof facts->largest.name);
        end_text(facts->other.name, sizeof facts->other.name);
        end_text(facts->saved, sizeof facts->saved);
        end_text(facts->not_again, sizeof facts->not_again);
}

void afz_outcome_check(struct afz_outcome *outcome)
{
        check_end(&outcome->end);
        if (outcome->verdicts > AFZ_VERDICTS_MAX)
                outcome->verdicts = AFZ_VERDICTS_MAX;
        for (unsigned i = 0; i < outcome->verdicts; i++) {
                struct afz_verdict *v = &outcome->verdict[i];
                if ((unsigned)v->level >= AFZ_LEVELS)
                        v->level = AFZ_LEVEL_UNKNOWN;
                if (!(v->confidence >= 0 && v->confidence <= 1))
                        v->confidence = 0;
                end_text(v->id, sizeof v->id);
                end_text(v->caused_by, sizeof v->caused_by);
                end_text(v->summary, sizeof v->summary);
                end_text(v->fix, sizeof v->fix);
                end_text(v->where.file, sizeof v->where.file);
                end_text(v->where.function, sizeof v->where.function);
                if (v->where.line < 0)
                        v->where.line = 0;
                for (int e = 0; e < AFZ_EVIDENCE_MAX; e++)
                        end_text(v->evidence[e], sizeof v->evidence[e]);
        }
}
