#include "why_stacks.h"

#include <stdio.h>
#include <string.h>

#include "hang_stacks.h"
#include "quantity.h"
#include "run.h"

/* So many are told; `antifreeze export` has all of them. */
enum { MOST_STACKS = 16, STACK_CAP = 400 };

/* Marks of one picture carry one time. */
struct picture {
        const struct afz_mark *begin, *end; /* there may be others in between */
        uint32_t t_ms, stop_ms;
};

static bool is_stop(const struct afz_mark *mark)
{
        return mark->kind == AFZ_MARK_ACTION &&
               (mark->code == AFZ_ACTION_INTERRUPT || mark->code == AFZ_ACTION_TERMINATE ||
                mark->code == AFZ_ACTION_KILL);
}

static bool is_of(const struct picture *picture, const struct afz_mark *mark)
{
        return mark->t_ms == picture->t_ms && afz_mark_is_picture(mark);
}

/* The last one before the first word that it is to end; false: there is none. */
static bool find_picture(const struct afz_flight *flight, struct picture *ret)
{
        size_t at = flight->marks;
        for (size_t i = 0; i < flight->marks; i++)
                if (afz_mark_is_picture(&flight->mark[i])) {
                        if (at == flight->marks || flight->mark[i].t_ms != flight->mark[at].t_ms)
                                at = i;
                } else if (is_stop(&flight->mark[i]) && at < flight->marks) {
                        *ret = (struct picture){
                                .begin = &flight->mark[at],
                                .end = flight->mark + flight->marks,
                                .t_ms = flight->mark[at].t_ms,
                                .stop_ms = flight->mark[i].t_ms,
                        };
                        return true;
                }
        return false;
}

static const char *process_of(const struct afz_flight *flight, const struct afz_mark *mark)
{
        const struct afz_track *track =
                afz_flight_find(flight, AFZ_KIND_PROC, (uint64_t)mark->code >> 32);
        return track && track->name[0] ? track->name : "process";
}

static bool is_main(const struct afz_mark *mark)
{
        return (uint64_t)mark->code >> 32 == ((uint64_t)mark->code & UINT32_MAX);
}

/* "0.3 s before it was stopped" */
static const char *put_before(const struct picture *p, char *buf, size_t cap)
{
        char time[AFZ_DURATION_TEXT_CAP];
        uint64_t ms = p->stop_ms > p->t_ms ? p->stop_ms - p->t_ms : 0;
        if (ms == 0)
                snprintf(buf, cap, "just before it was stopped");
        else
                snprintf(buf, cap, "%s before it was stopped",
                         afz_format_duration(time, sizeof time, ms * 1000000));
        return buf;
}

/* The first main thread that is in a line of the user's. */
static void put_place(struct afz_out *out, const struct afz_flight *flight, const struct picture *p)
{
        struct afz_where where;
        char text[320], before[64];
        for (const struct afz_mark *m = p->begin; m < p->end; m++) {
                if (!is_of(p, m) || !is_main(m) || !afz_stand_where(m->text, &where))
                        continue;
                snprintf(text, sizeof text, "%.80s:%d in %.80s%s (%.32s, %s)",
                         afz_where_file(&where), where.line, where.function,
                         where.function[0] == '<' ? "" : "()", process_of(flight, m),
                         put_before(p, before, sizeof before));
                afz_run_put_row(out, "stood at", text);
                return;
        }
}

/* "it ran < train.py:33 in load < train.py:50 in main, and 2 more threads" */
static void put_stack(struct afz_out *out, const struct afz_flight *flight,
                      const struct afz_mark *mark)
{
        char text[4096], stack[STACK_CAP], row[STACK_CAP + 128], title[24];
        snprintf(text, sizeof text, "%s", mark->text + strlen(AFZ_STACK_FROZEN));
        char *more = strrchr(text, '\n');
        if (more && strncmp(more, "\nand ", 5) == 0)
                *more++ = '\0';
        else
                more = NULL;
        char *none = strstr(text, "\n("); /* that frames are not known is no frame */
        if (none)
                *none = '\0';
        afz_stand_tell(text, stack, sizeof stack);
        snprintf(title, sizeof title, "%llu", (unsigned long long)mark->code & UINT32_MAX);
        snprintf(row, sizeof row, "%.32s%s: %s%s%.40s", process_of(flight, mark),
                 is_main(mark) ? "" : ", a thread", stack, more ? ", " : "", more ? more : "");
        afz_run_put_row(out, title, row);
}

void afz_why_stacks(struct afz_out *out, const struct afz_flight *flight, bool full)
{
        struct picture picture;
        char before[64];
        unsigned told = 0, all = 0;
        if (!find_picture(flight, &picture))
                return;
        if (!full) {
                put_place(out, flight, &picture);
                return;
        }
        afz_out_fmt(out, "where it stood %s, innermost first\n",
                    put_before(&picture, before, sizeof before));
        for (const struct afz_mark *m = picture.begin; m < picture.end; m++) {
                if (!is_of(&picture, m))
                        continue;
                if (all++ < MOST_STACKS) {
                        put_stack(out, flight, m);
                        told++;
                }
        }
        if (all > told)
                afz_out_fmt(out, "  ...        %u more; antifreeze export has them all\n",
                            all - told);
}
