/* The verdict card: what, why we believe it, what to change, how sure; and what else was found. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "report_parts.h"

static const struct {
        const char *class, *word;
} levels[AFZ_LEVELS] = {
        [AFZ_LEVEL_UNKNOWN] = {"unknown", "not known"},
        [AFZ_LEVEL_OK] = {"ok", "all is well"},
        [AFZ_LEVEL_WARN] = {"warn", "worth a look"},
        [AFZ_LEVEL_ACT] = {"act", "needs a change"},
};

/* How sure, in words: of those said at 0.9, nine in ten are right. */
static const struct {
        double from;
        const char *word;
} sureness[] = {
        {0.95, "very sure"}, {0.8, "sure"},  {0.6, "fairly sure"},
        {0.4, "it may be"},  {0, "a guess"},
};

static const char *sure_word(double confidence)
{
        unsigned i = 0;
        while (confidence < sureness[i].from)
                i++;
        return sureness[i].word;
}

static double clamp(double confidence)
{
        return confidence >= 0 && confidence <= 1 ? confidence : 0;
}

/* A sentence: a capital letter and a full stop, whoever wrote it. */
static void sentence(struct afz_out *out, const char *text)
{
        char copy[300];
        size_t n = strnlen(text, sizeof copy - 2);
        memcpy(copy, text, n);
        copy[n] = '\0';
        copy[0] = (char)toupper((unsigned char)copy[0]);
        if (n > 0 && !strchr(".!?", copy[n - 1]))
                memcpy(copy + n, ".", 2);
        afz_report_text(out, copy, sizeof copy);
}

static void put_sure(struct afz_out *out, double confidence)
{
        int percent = (int)(clamp(confidence) * 100 + 0.5);
        afz_out_fmt(out,
                    "<p class=\"sure\" title=\"of what is said with this confidence, %d in 100 are "
                    "right\">"
                    "<svg class=\"meter\" width=\"72\" height=\"6\" aria-hidden=\"true\"><rect "
                    "class=\"all\" "
                    "width=\"72\" height=\"6\" rx=\"3\"/><rect class=\"part\" width=\"%d\" "
                    "height=\"6\" rx=\"3\"/></svg> "
                    "%s <span class=\"dim\">%d&#8239;%%</span></p>",
                    percent, 72 * percent / 100, sure_word(clamp(confidence)), percent);
}

static void put_evidence(struct afz_out *out, const struct afz_verdict *v)
{
        if (!v->evidence[0][0])
                return;
        afz_out_str(out, "<div class=\"because\"><h3>Why we believe it</h3><ul>\n");
        for (int i = 0; i < AFZ_EVIDENCE_MAX; i++) {
                if (!v->evidence[i][0])
                        continue;
                afz_out_str(out, "<li>");
                sentence(out, v->evidence[i]);
                afz_out_str(out, "</li>\n");
        }
        afz_out_str(out, "</ul></div>\n");
}

static void put_fix(struct afz_out *out, const struct afz_verdict *v)
{
        if (!v->fix[0])
                return;
        afz_out_str(out, "<div class=\"fix\"><h3>What to change</h3><p>");
        sentence(out, v->fix);
        afz_out_str(out, "</p></div>\n");
}

/* "leak → swap-thrash → oom-killed": each is explained by one before it. */
static void put_chain(struct afz_out *out, const struct afz_outcome *outcome)
{
        bool in[AFZ_VERDICTS_MAX] = {true};
        unsigned links = 0;
        for (unsigned i = 1; i < outcome->verdicts; i++)
                for (unsigned k = 0; k < i && !in[i]; k++)
                        in[i] = in[k] &&
                                strcmp(outcome->verdict[i].caused_by, outcome->verdict[k].id) == 0;
        for (unsigned i = 1; i < outcome->verdicts; i++)
                links += in[i];
        if (links == 0)
                return;
        afz_out_str(out, "<p class=\"chain\"><span class=\"dim\">How it went:</span> ");
        for (unsigned i = 0; i < outcome->verdicts; i++) {
                if (!in[i])
                        continue;
                afz_out_str(out, i ? " <span class=\"dim\">→</span> <code>" : "<code>");
                afz_report_text(out, outcome->verdict[i].id, AFZ_VERDICT_ID_CAP);
                afz_out_str(out, "</code>");
        }
        afz_out_str(out, "</p>\n");
}

static void put_other(struct afz_out *out, const struct afz_verdict *v)
{
        afz_out_fmt(out, "<article class=\"other %s\"><h3><code>", levels[v->level].class);
        afz_report_text(out, v->id, AFZ_VERDICT_ID_CAP);
        afz_out_str(out, "</code> ");
        sentence(out, v->summary);
        afz_out_str(out, "</h3>\n");
        if (v->caused_by[0]) {
                afz_out_str(out, "<p class=\"dim\">Explained by <code>");
                afz_report_text(out, v->caused_by, AFZ_VERDICT_ID_CAP);
                afz_out_str(out, "</code>.</p>\n");
        }
        put_sure(out, v->confidence);
        put_evidence(out, v);
        put_fix(out, v);
        afz_out_str(out, "</article>\n");
}

static void put_others(struct afz_out *out, const struct afz_outcome *outcome)
{
        if (outcome->verdicts < 2)
                return;
        afz_out_fmt(out, "<details><summary>%s</summary>\n",
                    outcome->verdicts == 2 ? "One more finding" : "More findings");
        for (unsigned i = 1; i < outcome->verdicts && i < AFZ_VERDICTS_MAX; i++)
                put_other(out, &outcome->verdict[i]);
        afz_out_str(out, "</details>\n");
}

void afz_report_verdicts(struct afz_out *out, const struct afz_report *report)
{
        const struct afz_outcome *outcome = report->outcome;
        const struct afz_verdict *v = &outcome->verdict[0];
        uint32_t from_ms, to_ms;
        if (outcome->verdicts == 0) {
                afz_out_fmt(out, "<section class=\"card verdict unknown\"><h2>%s</h2></section>\n",
                            outcome->end.how == AFZ_END_RUNNING
                                    ? "It still runs, and nothing is wrong so far."
                                    : "Nothing can be said of this run.");
                return;
        }
        afz_out_fmt(out,
                    "<section class=\"card verdict %s\" aria-labelledby=\"verdict\">\n<div "
                    "class=\"bar\">"
                    "<p class=\"pill\">%s</p><p><code>",
                    levels[v->level].class, levels[v->level].word);
        afz_report_text(out, v->id, AFZ_VERDICT_ID_CAP);
        afz_out_str(out, "</code></p>");
        put_sure(out, v->confidence);
        afz_out_str(out, "</div>\n<h2 id=\"verdict\">");
        sentence(out, v->summary);
        afz_out_str(out, "</h2>\n<div class=\"two\">\n");
        put_evidence(out, v);
        put_fix(out, v);
        afz_out_str(out, "</div>\n");
        put_chain(out, outcome);
        if (afz_report_range(report, &from_ms, &to_ms))
                afz_out_fmt(out,
                            "<p class=\"needs-js\" hidden><button type=\"button\" id=\"look\" "
                            "data-t=\"%u\" "
                            "data-to=\"%u\">Show it in the time line</button></p>\n",
                            from_ms, to_ms);
        put_others(out, outcome);
        afz_out_str(out, "</section>\n");
}
