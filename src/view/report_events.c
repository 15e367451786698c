/* Marks as people read them: brakes that follow one another are one, a word of the guard's stands
 * for the deed it announces; steps and stacks are told elsewhere. */
#include <stdio.h>
#include <string.h>

#include "agent_event.h"
#include "report_parts.h"

/* Deeds of one kind that are closer together than this part of the run are told as one. */
#define TOGETHER_PART 100
/* A deed that was told within this time, and so many marks, is not told twice. */
#define TOLD_MS    250
#define TOLD_MARKS 64
/* A word before a colon is not longer than this. */
#define WORD_LONGEST 20

static const struct deed {
        enum afz_report_sort sort;
        const char *word, *text;
} deeds[AFZ_ACTION_COUNT] = {
        [AFZ_ACTION_TELL] = {AFZ_REPORT_WARN, "warning", "Antifreeze warned."},
        [AFZ_ACTION_BRAKE] = {AFZ_REPORT_WARN, "brake", "The job was held still for a moment."},
        [AFZ_ACTION_RELEASE] = {AFZ_REPORT_NOTE, "release", "The job was let go on."},
        [AFZ_ACTION_SQUEEZE] = {AFZ_REPORT_WARN, "squeeze",
                                "Memory that the job had not used for long was pushed out."},
        [AFZ_ACTION_SHRINK] = {AFZ_REPORT_WARN, "shrink", "It was asked to use less memory."},
        [AFZ_ACTION_CHECKPOINT] = {AFZ_REPORT_SAVE, "checkpoint", "The job was asked to save."},
        [AFZ_ACTION_INTERRUPT] = {AFZ_REPORT_STOP, "interrupt",
                                  "The job was asked to end (SIGINT, as with Ctrl-C)."},
        [AFZ_ACTION_TERMINATE] = {AFZ_REPORT_STOP, "terminate",
                                  "The job was told to end (SIGTERM)."},
        [AFZ_ACTION_KILL] = {AFZ_REPORT_STOP, "kill", "The job was ended at once (SIGKILL)."},
        [AFZ_ACTION_RESTART] = {AFZ_REPORT_SAVE, "restart", "The job was started again, smaller."},
};

static const struct deed kernel_events[AFZ_EVENT_COUNT] = {
        [AFZ_EVENT_OOM_KILL] = {AFZ_REPORT_STOP, "OOM kill",
                                "The kernel killed a process for lack of memory."},
        [AFZ_EVENT_XID] = {AFZ_REPORT_STOP, "GPU error", "The GPU's driver reported an error."},
        [AFZ_EVENT_MACHINE_CHECK] = {AFZ_REPORT_STOP, "machine check",
                                     "The processor reported a fault of its own."},
        [AFZ_EVENT_HUNG_TASK] = {AFZ_REPORT_WARN, "hung task", "A process hung in the kernel."},
        [AFZ_EVENT_GPU_LOST] = {AFZ_REPORT_STOP, "GPU lost", "A GPU fell off the bus."},
        [AFZ_EVENT_GPU_STUCK] = {AFZ_REPORT_WARN, "GPU stuck", "The GPU's driver did not answer."},
        [AFZ_EVENT_SEGFAULT] = {AFZ_REPORT_STOP, "segfault",
                                "A process touched memory that is not its own."},
        [AFZ_EVENT_IO_ERROR] = {AFZ_REPORT_STOP, "disk error", "A disk reported an error."},
        [AFZ_EVENT_LOST_LINES] = {AFZ_REPORT_NOTE, "log", "Lines of the kernel's log were lost."},
};

static const struct deed others[AFZ_MARK_COUNT] = {
        [AFZ_MARK_SAID] = {AFZ_REPORT_WARN, "said", ""},
        [AFZ_MARK_ATTEMPT] = {AFZ_REPORT_NOTE, "start", "The command was started."},
        [AFZ_MARK_GAP] = {AFZ_REPORT_NOTE, "gap", "The recording lacks something here."},
        [AFZ_MARK_AGENT] = {AFZ_REPORT_WARN, "out of memory", ""},
};

static const struct deed *deed_of(const struct afz_mark *mark)
{
        uint64_t upper = (uint64_t)mark->code >> 32;
        switch (mark->kind) {
        case AFZ_MARK_ACTION:
                return mark->code >= 0 && mark->code < AFZ_ACTION_COUNT ? &deeds[mark->code] : NULL;
        case AFZ_MARK_EVENT:
                return upper < AFZ_EVENT_COUNT ? &kernel_events[upper] : NULL;
        case AFZ_MARK_SAID:
        case AFZ_MARK_ATTEMPT:
        case AFZ_MARK_GAP:
                return &others[mark->kind];
        case AFZ_MARK_AGENT: /* all else was said in words */
                return mark->code == AFZ_AGENT_OOM ? &others[mark->kind] : NULL;
        default:
                return NULL;
        }
}

/* The kernel's log is the machine's: what it tells of another program is no part of this run. */
static bool is_of_another(const struct afz_flight *flight, const struct afz_mark *mark)
{
        uint64_t event = (uint64_t)mark->code >> 32, pid = (uint64_t)mark->code & UINT32_MAX;
        return mark->kind == AFZ_MARK_EVENT && pid != 0 &&
               (event == AFZ_EVENT_OOM_KILL || event == AFZ_EVENT_SEGFAULT) &&
               !afz_flight_find(flight, AFZ_KIND_PROC, pid);
}

/* "stop: the job ..." is loud, whatever else is said there. */
static enum afz_report_sort sort_of_words(const char *text)
{
        static const struct {
                const char *begins;
                enum afz_report_sort sort;
        } words[] = {{"stop", AFZ_REPORT_STOP},  {"kill", AFZ_REPORT_STOP},
                     {"end", AFZ_REPORT_STOP},   {"checkpoint", AFZ_REPORT_SAVE},
                     {"saved", AFZ_REPORT_SAVE}, {"restart", AFZ_REPORT_SAVE},
                     {"warn", AFZ_REPORT_WARN},  {"brake", AFZ_REPORT_WARN},
                     {"note", AFZ_REPORT_NOTE},  {"start", AFZ_REPORT_NOTE}};
        for (int i = 0; i < AFZ_ACTION_COUNT; i++)
                if (strncmp(text, deeds[i].word, strlen(deeds[i].word)) == 0)
                        return deeds[i].sort;
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                if (strncmp(text, words[i].begins, strlen(words[i].begins)) == 0)
                        return words[i].sort;
        return AFZ_REPORT_WARN;
}

/* "warn: it needs ...": the word, and what is said. */
static void take_words(struct afz_report_event *e, const char *text)
{
        const char *colon = strstr(text, ": ");
        e->sort = sort_of_words(text);
        if (!colon || colon - text > WORD_LONGEST)
                return;
        e->word = text;
        e->text = colon + 2;
}

/* Makes one more event, or counts it where there is no room. The list keeps the latest. */
static struct afz_report_event *add(struct afz_report_events *ret)
{
        if (ret->count == AFZ_REPORT_EVENTS) {
                memmove(&ret->event[1], &ret->event[2],
                        (AFZ_REPORT_EVENTS - 2) * sizeof ret->event[0]);
                ret->left_out++;
                return &ret->event[AFZ_REPORT_EVENTS - 1];
        }
        return &ret->event[ret->count++];
}

static bool joins(const struct afz_report_event *last, const struct afz_report_event *e,
                  uint32_t together_ms)
{
        return last->sort == e->sort && strcmp(last->word, e->word) == 0 &&
               strcmp(last->text, e->text) == 0 && strcmp(last->own, e->own) == 0 &&
               e->t_ms - last->to_ms <= together_ms;
}

/* The release ends the brake that is the last of its kind. */
static void release(struct afz_report_events *ret, const struct afz_mark *mark)
{
        for (size_t i = ret->count; i-- > 0;) {
                struct afz_report_event *e = &ret->event[i];
                if (e->text != deeds[AFZ_ACTION_BRAKE].text)
                        continue;
                e->braked_ms += mark->t_ms > e->to_ms ? mark->t_ms - e->to_ms : 0;
                e->to_ms = mark->t_ms;
                return;
        }
}

/* Whether the guard said it in words at about this time: "interrupt: its memory is ...". */
static bool is_word_for(const struct afz_mark *said, const char *word)
{
        return said->kind == AFZ_MARK_SAID && strncmp(said->text, word, strlen(word)) == 0;
}

static bool was_told(const struct afz_flight *flight, size_t at)
{
        const struct afz_mark *mark = &flight->mark[at];
        const char *word = mark->kind == AFZ_MARK_ATTEMPT  ? "start"
                           : mark->code == AFZ_ACTION_TELL ? "warn"
                                                           : deed_of(mark)->word;
        for (size_t i = at;
             i-- > 0 && at - i <= TOLD_MARKS && mark->t_ms - flight->mark[i].t_ms <= TOLD_MS;)
                if (is_word_for(&flight->mark[i], word))
                        return true;
        for (size_t i = at + 1; i < flight->marks && i - at <= TOLD_MARKS &&
                                flight->mark[i].t_ms - mark->t_ms <= TOLD_MS;
             i++)
                if (is_word_for(&flight->mark[i], word))
                        return true;
        return false;
}

static void take(struct afz_report_events *ret, const struct afz_flight *flight, size_t at)
{
        const struct afz_mark *mark = &flight->mark[at];
        const struct deed *deed = deed_of(mark);
        bool action = mark->kind == AFZ_MARK_ACTION;
        if (!deed)
                return;
        if (action && mark->code == AFZ_ACTION_RELEASE) {
                release(ret, mark);
                return;
        }
        if ((action || mark->kind == AFZ_MARK_ATTEMPT) && was_told(flight, at))
                return;
        struct afz_report_event e = {.t_ms = mark->t_ms,
                                     .to_ms = mark->t_ms,
                                     .times = 1,
                                     .sort = deed->sort,
                                     .word = deed->word,
                                     .text = mark->text[0] && !action ? mark->text : deed->text};
        if (mark->kind == AFZ_MARK_SAID)
                take_words(&e, mark->text);
        if (mark->kind == AFZ_MARK_AGENT)
                afz_agent_event_oom_words(afz_span_str(mark->text), e.own, sizeof e.own);
        if (is_of_another(flight, mark)) {
                e.sort = AFZ_REPORT_NOTE;
                e.word = "elsewhere";
        }
        struct afz_report_event *last = ret->count ? &ret->event[ret->count - 1] : NULL;
        if (last && joins(last, &e, flight->end_ms / TOGETHER_PART)) {
                last->to_ms = e.to_ms;
                last->times++;
                return;
        }
        *add(ret) = e;
}

void afz_report_events_find(struct afz_report_events *ret, const struct afz_flight *flight)
{
        memset(ret, 0, sizeof *ret);
        for (size_t i = 0; i < flight->marks; i++)
                take(ret, flight, i);
}

/* ---- drawing ---- */

static const char *const sort_class[AFZ_REPORT_SORTS] = {
        [AFZ_REPORT_NOTE] = "note",
        [AFZ_REPORT_SAVE] = "save",
        [AFZ_REPORT_WARN] = "warn",
        [AFZ_REPORT_STOP] = "stop",
};

static double percent(uint32_t t_ms, uint32_t end_ms)
{
        double p = 100.0 * t_ms / (end_ms ? end_ms : 1);
        return p > 100 ? 100 : p;
}

/* A number needs so much of the width, in per cent: on a phone they may touch. */
#define NUMBER_WIDTH 2.6

void afz_report_events_lane(struct afz_out *out, const struct afz_report_events *events,
                            uint32_t end_ms)
{
        if (events->count == 0)
                return;
        afz_out_str(out, "<svg class=\"lane\" width=\"100%\" height=\"26\" aria-hidden=\"true\">");
        for (size_t i = 0, next; i < events->count; i = next) {
                const struct afz_report_event *e = &events->event[i];
                enum afz_report_sort sort = e->sort;
                double at = percent(e->t_ms, end_ms);
                for (next = i + 1; next < events->count; next++) {
                        if (percent(events->event[next].t_ms, end_ms) - at > NUMBER_WIDTH)
                                break;
                        if (events->event[next].sort > sort)
                                sort = events->event[next].sort;
                }
                afz_out_fmt(out,
                            "<svg class=\"at\" data-t=\"%u\" x=\"%.2f%%\" y=\"13\" "
                            "overflow=\"visible\"><g class=\"dot %s\"><circle r=\"9\"/>"
                            "<text dy=\".36em\">%zu%s</text></g></svg>",
                            e->t_ms, at, sort_class[sort], i + 1, next > i + 1 ? "+" : "");
        }
        afz_out_str(out, "</svg>\n");
}

void afz_report_events_lines(struct afz_out *out, const struct afz_report_events *events,
                             uint32_t end_ms, unsigned top, unsigned height)
{
        for (size_t i = 0; i < events->count; i++) {
                const struct afz_report_event *e = &events->event[i];
                double at = percent(e->t_ms, end_ms);
                if (e->to_ms > e->t_ms)
                        afz_out_fmt(
                                out,
                                "<rect class=\"span %s\" data-t=\"%u\" data-to=\"%u\" x=\"%.3f%%\" "
                                "width=\"%.3f%%\" y=\"%u\" height=\"%u\"/>",
                                sort_class[e->sort], e->t_ms, e->to_ms, at,
                                percent(e->to_ms, end_ms) - at, top, height);
                afz_out_fmt(out,
                            "<line class=\"ev %s\" data-t=\"%u\" x1=\"%.3f%%\" x2=\"%.3f%%\" "
                            "y1=\"%u\" y2=\"%u\"/>",
                            sort_class[e->sort], e->t_ms, at, at, top, top + height);
        }
}

static void list_row(struct afz_out *out, const struct afz_report_event *e, size_t number)
{
        char time[AFZ_REPORT_TEXT_CAP], braked[AFZ_REPORT_TEXT_CAP], word[WORD_LONGEST + 1];
        afz_out_fmt(out,
                    "<tr class=\"%s\" data-t=\"%u\"><td class=\"n\"><b>%zu</b></td>"
                    "<td class=\"t\">%s</td><td class=\"w\">",
                    sort_class[e->sort], e->t_ms, number, afz_report_time(time, e->t_ms));
        snprintf(word, sizeof word, "%.*s", (int)strcspn(e->word, ":"), e->word);
        afz_report_text(out, word, sizeof word);
        afz_out_str(out, "</td><td>");
        afz_report_text(out, e->own[0] ? e->own : e->text, 300);
        if (e->times > 1)
                afz_out_fmt(out, " <span class=\"dim\">%u times</span>", e->times);
        if (e->braked_ms)
                afz_out_fmt(out, " <span class=\"dim\">%s in all</span>",
                            afz_report_time(braked, e->braked_ms));
        afz_out_str(out, "</td></tr>\n");
}

void afz_report_events_list(struct afz_out *out, const struct afz_report_events *events)
{
        if (events->count == 0)
                return;
        afz_out_str(out, "<h3>What happened</h3>\n<div class=\"scroll\"><table "
                         "class=\"events\"><thead><tr><th>No.</th>"
                         "<th>after</th><th>what</th><th></th></tr></thead><tbody>\n");
        for (size_t i = 0; i < events->count; i++)
                list_row(out, &events->event[i], i + 1);
        afz_out_str(out, "</tbody></table></div>\n");
        if (events->left_out)
                afz_out_fmt(out,
                            "<p class=\"dim\">%zu more are in the recording (the first and the "
                            "last are shown).</p>\n",
                            events->left_out);
}
