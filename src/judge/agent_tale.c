#include "agent_tale.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "end_clues.h"
#include "inside.h"
#include "out.h"
#include "quantity.h"
#include "step_clock.h"

/* Steps and figures are looked at once a second: of one that is told as begun within this time it
 * is not known whether it began before or after. */
#define LOOK_MS 1500

/* Who ends for a request that was refused has ended by then: a traceback and the way out take
 * seconds. */
#define LEAVE_MS 15000

/* Who started the program that failed has ended by then: torchrun gives the others 30 s. */
#define FAILS_MS 45000

/* The lines that hold memory are looked for every 10 s at most: what was seen so shortly before is
 * still so. */
#define SITES_MS 20000

/* ---- one event ---- */

static uint64_t number(struct afz_span text, const char *key)
{
        uint64_t value = 0;
        (void)afz_agent_event_number(text, key, &value);
        return value;
}

static struct afz_oom read_oom(const struct afz_mark *mark)
{
        struct afz_span text = afz_span_str(mark->text), device = {0};
        struct afz_oom oom = {
                .t_ms = mark->t_ms,
                .swallowed = number(text, "swallowed") != 0,
                .trains = number(text, "trains") != 0,
                .step = number(text, "step"),
                .batch = number(text, "batch"),
                .micro = number(text, "micro"),
                .asked_bytes = number(text, "asked_bytes"),
                .allocated_bytes = number(text, "allocated_bytes"),
                .reserved_bytes = number(text, "reserved_bytes"),
        };
        oom.gpu = afz_agent_event_value(text, "device", &device) && afz_span_eq(device, "gpu");
        if (!afz_agent_event_value(text, "at", &oom.at))
                oom.at = (struct afz_span){"", 0};
        return oom;
}

static uint32_t next_look(uint32_t t_ms)
{
        return t_ms < UINT32_MAX - LOOK_MS ? t_ms + LOOK_MS : t_ms;
}

/* By the clock of whoever trains then; a run that was started anew has another. */
static bool steps_follow(const struct afz_flight *flight, uint32_t t_ms)
{
        const struct afz_track *track;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));)
                if (track->first_ms <= t_ms &&
                    afz_step_count(afz_track_column(track, AFZ_INSIDE_STEP), next_look(t_ms),
                                   UINT32_MAX) > 0)
                        return true;
        return false;
}

/* ---- all of them ---- */

/* Of those that came just before the end, the first: who started the program that failed fails of
 * that, too (torchrun). One long before was somebody else's, and came to nothing. */
static void add_error(const struct afz_flight *flight, const struct afz_mark *mark,
                      struct afz_tale *t)
{
        if (t->error.n == 0 && (uint64_t)mark->t_ms + FAILS_MS >= flight->end_ms)
                t->error = afz_span_str(mark->text);
}

static void add_oom(const struct afz_flight *flight, const struct afz_end *end,
                    const struct afz_mark *mark, struct afz_tale *t)
{
        struct afz_oom oom = read_oom(mark);
        const struct afz_oom *before = &t->last[oom.gpu];
        bool well = end->how == AFZ_END_EXIT && end->code == 0;
        oom.stepped_on = steps_follow(flight, mark->t_ms);
        oom.gone_on = well || oom.stepped_on;
        if (oom.gpu && before->sites.n > 0 && mark->t_ms - before->sites_ms < SITES_MS) {
                oom.sites = before->sites;
                oom.sites_ms = before->sites_ms;
        }
        t->gone_on += oom.gone_on;
        if (oom.swallowed) {
                t->swallowed[oom.gpu]++;
                /* Another size each time is a search for one. */
                t->swallowed_steps += oom.gpu && oom.step > 0 &&
                                      (t->swallowed[1] == 1 ||
                                       (before->step != oom.step && before->batch == oom.batch));
        }
        t->ooms[oom.gpu]++;
        t->last[oom.gpu] = oom;
}

static void add_sites(const struct afz_mark *mark, struct afz_tale *t)
{
        if (t->ooms[true] == 0)
                return;
        t->last[true].sites = afz_span_str(mark->text);
        t->last[true].sites_ms = mark->t_ms;
}

static void add_split(const struct afz_mark *mark, bool smaller, struct afz_tale *t)
{
        struct afz_span text = afz_span_str(mark->text);
        uint64_t batch = number(text, "batch"), micro = number(text, "micro");
        if (micro == 0 || batch < micro)
                return;
        if (smaller && t->splits++ == 0) {
                t->split_ms = mark->t_ms;
                t->split_step = number(text, "step");
        }
        t->grows += !smaller;
        t->batch = batch;
        t->micro = micro;
}

static void add_refusal(const struct afz_mark *mark, struct afz_tale *t)
{
        struct afz_span sentence = afz_agent_event_sentence(afz_span_str(mark->text));
        if (sentence.n == 0)
                return;
        t->refusal = sentence.p;
        t->refusal_len = sentence.n;
}

/* Counters of each process begin anew: what each came to is added up. */
static uint64_t counted(const struct afz_flight *flight, enum afz_metric metric, uint32_t from_ms)
{
        const struct afz_track *track;
        uint64_t sum = 0;
        int64_t last;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));)
                if (track->last_ms >= from_ms &&
                    afz_column_last(afz_track_column(track, metric), UINT32_MAX, &last) && last > 0)
                        sum += (uint64_t)last;
        return sum;
}

/* When a counter last rose, in any process; 0: it never did. */
static uint32_t rose_ms(const struct afz_flight *flight, enum afz_metric metric, uint32_t from_ms)
{
        const struct afz_track *track;
        uint32_t rose = 0;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));) {
                const struct afz_column *column = afz_track_column(track, metric);
                int64_t most = 0;
                for (size_t i = 0; column && i < column->count; i++) {
                        const struct afz_point *p = &column->point[i];
                        if (p->most > most && p->t_ms >= from_ms && p->t_ms > rose)
                                rose = p->t_ms;
                        most = p->most > most ? p->most : most;
                }
        }
        return rose;
}

static void add_refused(const struct afz_flight *flight, uint32_t from_ms, struct afz_tale *t)
{
        uint64_t refused = counted(flight, AFZ_INSIDE_REFUSED, from_ms);
        uint32_t rose = rose_ms(flight, AFZ_INSIDE_REFUSED, from_ms);
        t->refused = refused < UINT32_MAX ? (unsigned)refused : UINT32_MAX;
        t->refused_bytes = counted(flight, AFZ_INSIDE_REFUSED_BYTES, from_ms);
        t->refused_last = rose > 0 && (uint64_t)rose + LEAVE_MS >= flight->end_ms &&
                          !steps_follow(flight, rose);
}

/* A run that was started anew may make its steps in parts from the first on: no event tells that,
 * but its figures do. */
static void add_told_parts(const struct afz_flight *flight, uint32_t split_ms, struct afz_tale *t)
{
        uint32_t start_ms = afz_end_last_start(flight);
        const struct afz_track *trainer = afz_inside_trainer(flight, start_ms);
        int64_t splits, batch, micro;
        if (!trainer || split_ms >= trainer->first_ms ||
            !afz_column_last(afz_track_column(trainer, AFZ_INSIDE_SPLITS), UINT32_MAX, &splits) ||
            !afz_column_most(afz_track_column(trainer, AFZ_INSIDE_BATCH), 0, UINT32_MAX, &batch) ||
            !afz_column_last(afz_track_column(trainer, AFZ_INSIDE_MICRO), UINT32_MAX, &micro) ||
            splits <= 0 || micro <= 0 || batch <= micro)
                return;
        if (t->splits == 0)
                t->split_ms = trainer->first_ms;
        t->batch = (uint64_t)batch;
        t->micro = (uint64_t)micro;
}

void afz_tale_of(const struct afz_flight *flight, const struct afz_end *end, uint32_t from_ms,
                 struct afz_tale *ret)
{
        struct afz_tale t = {0};
        uint32_t split_ms = 0; /* the last change */
        for (size_t i = 0; i < flight->marks; i++) {
                const struct afz_mark *mark = &flight->mark[i];
                if (mark->kind != AFZ_MARK_AGENT || mark->t_ms < from_ms)
                        continue;
                switch (mark->code) {
                case AFZ_AGENT_OOM:
                        add_oom(flight, end, mark, &t);
                        break;
                case AFZ_AGENT_SITES:
                        add_sites(mark, &t);
                        break;
                case AFZ_AGENT_ERROR:
                        add_error(flight, mark, &t);
                        break;
                case AFZ_AGENT_NOTE:
                        afz_agent_event_value(afz_span_str(mark->text), "zeroed_at", &t.zeroed_at);
                        break;
                case AFZ_AGENT_SPLIT:
                case AFZ_AGENT_GROW:
                        add_split(mark, mark->code == AFZ_AGENT_SPLIT, &t);
                        split_ms = mark->t_ms;
                        break;
                case AFZ_AGENT_RESUME:
                        t.resumes++;
                        t.resume_step = number(afz_span_str(mark->text), "step");
                        break;
                case AFZ_AGENT_REFUSE:
                        add_refusal(mark, &t);
                        break;
                default:
                        break;
                }
        }
        add_told_parts(flight, split_ms, &t);
        t.split_steps = counted(flight, AFZ_INSIDE_SPLITS, from_ms);
        t.counted_ooms = counted(flight, AFZ_INSIDE_OOMS, from_ms);
        add_refused(flight, from_ms, &t);
        *ret = t;
}

bool afz_oom_is_fatal(const struct afz_oom *oom, const struct afz_end *end)
{
        /* TensorFlow aborts where others raise; any other signal is somebody's. */
        bool failed = (end->how == AFZ_END_EXIT && end->code > 0 && end->code <= 128) ||
                      (end->how == AFZ_END_SIGNAL && end->code == SIGABRT);
        return failed && !oom->gone_on && !oom->swallowed;
}

/* ---- in words ---- */

bool afz_oom_in_pieces(const struct afz_oom *oom)
{
        return oom->asked_bytes > 0 && oom->reserved_bytes > oom->allocated_bytes &&
               oom->reserved_bytes - oom->allocated_bytes >= oom->asked_bytes;
}

bool afz_oom_model(const struct afz_flight *flight, const struct afz_oom *oom,
                   struct afz_inside_model *ret)
{
        return afz_inside_model_at(flight, oom->gpu, next_look(oom->t_ms), ret);
}

uint64_t afz_tale_parts(const struct afz_tale *tale)
{
        return tale->micro > 0 ? (tale->batch + tale->micro - 1) / tale->micro : 1;
}

static void say_ooms(const struct afz_tale *t, struct afz_out *out)
{
        unsigned all = t->ooms[0] + t->ooms[1];
        if (t->gone_on == 0)
                return;
        afz_out_fmt(out, "memory ran out ");
        if (all == 1)
                afz_out_str(out, "once");
        else
                afz_out_fmt(out, "%u times", all);
        if (t->ooms[1] > 0)
                afz_out_str(out,
                            t->ooms[0] > 0 ? " (of the GPU and of the machine)" : " (of the GPU)");
        if (t->gone_on < all)
                afz_out_fmt(out, ", and it went on after %u of them", t->gone_on);
        else
                afz_out_str(out, all == 1 ? ", and it went on" : ", and it went on each time");
}

/* By the probe's count, where nobody told of the error: the program took it for what it is. */
static void say_refused(const struct afz_tale *t, struct afz_out *out)
{
        char size[AFZ_SIZE_TEXT_CAP];
        if (t->refused == 0 || t->ooms[0] > 0)
                return;
        afz_out_fmt(out, "%s%u large request%s for memory (%s) %s refused",
                    out->len > 0 ? "; " : "", t->refused, t->refused == 1 ? "" : "s",
                    afz_format_size(size, sizeof size, t->refused_bytes),
                    t->refused == 1 ? "was" : "were");
}

static void say_parts(const struct afz_tale *t, struct afz_out *out)
{
        uint64_t parts = afz_tale_parts(t);
        if (t->splits == 0 && t->grows == 0 && t->split_steps == 0)
                return;
        if (out->len > 0)
                afz_out_str(out, "; ");
        if (t->split_step > 0)
                afz_out_fmt(out, "from step %llu on ", (unsigned long long)t->split_step);
        if (parts > 1)
                afz_out_fmt(out,
                            "each step was made in %llu parts, %llu of its %llu samples at once",
                            (unsigned long long)parts, (unsigned long long)t->micro,
                            (unsigned long long)t->batch);
        else
                afz_out_str(out, t->batch ? "steps were made in parts, and whole again in the end"
                                          : "steps were made in parts");
        if (t->split_steps > 0)
                afz_out_fmt(out, " (%llu step%s so)", (unsigned long long)t->split_steps,
                            t->split_steps == 1 ? "" : "s");
}

static void say_resumes(const struct afz_tale *t, struct afz_out *out)
{
        if (t->resumes == 0)
                return;
        if (out->len > 0)
                afz_out_str(out, "; ");
        afz_out_str(out, "it went on from a checkpoint");
        if (t->resumes > 1)
                afz_out_fmt(out, " %u times", t->resumes);
        if (t->resume_step > 0)
                afz_out_fmt(out, ", at step %llu%s", (unsigned long long)t->resume_step,
                            t->resumes > 1 ? " the last time" : "");
}

bool afz_tale_words(const struct afz_tale *tale, char *buf, size_t cap)
{
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        say_ooms(tale, &out);
        say_refused(tale, &out);
        say_parts(tale, &out);
        say_resumes(tale, &out);
        buf[out.len] = '\0';
        return out.len > 0;
}

/* The last two colons part it: a path may have some of its own. */
static void read_place(struct afz_span at, struct afz_where *ret)
{
        size_t function = at.n, line;
        uint64_t number_of;
        while (function > 0 && at.p[function - 1] != ':')
                function--;
        line = function > 0 ? function - 1 : 0;
        while (line > 0 && at.p[line - 1] != ':')
                line--;
        if (line < 2 ||
            afz_span_u64((struct afz_span){at.p + line, function - 1 - line}, &number_of) < 0 ||
            number_of > INT32_MAX)
                return;
        afz_span_copy((struct afz_span){at.p, line - 1}, ret->file, sizeof ret->file);
        afz_span_copy((struct afz_span){at.p + function, at.n - function}, ret->function,
                      sizeof ret->function);
        ret->line = (int32_t)number_of;
}

void afz_oom_where(const struct afz_oom *oom, struct afz_where *ret)
{
        read_place(oom->at, ret);
}

void afz_tale_zeroed_where(const struct afz_tale *tale, struct afz_where *ret)
{
        read_place(tale->zeroed_at, ret);
}

bool afz_tale_error(const struct afz_tale *tale, struct afz_where *ret, struct afz_span *ret_words)
{
        struct afz_span at;
        struct afz_span words = afz_agent_event_sentence(tale->error);
        if (words.n == 0)
                return false;
        if (afz_agent_event_value(tale->error, "at", &at))
                read_place(at, ret);
        *ret_words = words;
        return true;
}

bool afz_oom_site(const struct afz_oom *oom, unsigned nth, struct afz_where *ret,
                  uint64_t *ret_bytes)
{
        struct afz_where where = {0};
        struct afz_span at;
        char name[] = "a_bytes";
        uint64_t bytes;
        if (nth >= 26)
                return false;
        name[0] = (char)('a' + nth);
        if (!afz_agent_event_number(oom->sites, name, &bytes))
                return false;
        strcpy(name + 2, "at");
        if (!afz_agent_event_value(oom->sites, name, &at))
                return false;
        read_place(at, &where);
        if (where.line == 0)
                return false;
        *ret = where;
        *ret_bytes = bytes;
        return true;
}
