#include "hang_stacks.h"

#include <stdio.h>
#include <string.h>

#include "count_of.h"
#include "span.h"

/* Marks of one look carry one time; a second's play for what older recordings did to it. */
enum { ONE_LOOK_MS = 1000 };

/* ---- one text ---- */

static struct afz_span first_line(const char *text)
{
        return (struct afz_span){text, strcspn(text, "\n")};
}

/* "slept N times" of the first line. */
static bool slept_of(const char *text, uint64_t *ret)
{
        struct afz_span line = first_line(text), before;
        while (afz_span_take_until(&line, ',', &before) == 0)
                if (afz_span_take_prefix(&line, " slept") == 0)
                        return afz_span_take_u64(&line, ret) == 0;
        return false;
}

/* "and 7 more threads" of the last one. */
static unsigned threads_of(const char *text)
{
        const char *last = strrchr(text, '\n');
        struct afz_span line = afz_span_str(last ? last + 1 : "");
        uint64_t more;
        if (afz_span_take_prefix(&line, "and ") < 0 || afz_span_take_u64(&line, &more) < 0 ||
            !afz_span_starts(line, " more thread") || more > 100000)
                return 1;
        return (unsigned)more + 1;
}

/* The same wait and the same frames, however often it has slept. */
static bool is_same_place(const char *a, const char *b)
{
        struct afz_span la = first_line(a), lb = first_line(b), wait_a = la, wait_b = lb;
        (void)afz_span_take_until(&la, ',', &wait_a);
        (void)afz_span_take_until(&lb, ',', &wait_b);
        return wait_a.n == wait_b.n && memcmp(wait_a.p, wait_b.p, wait_a.n) == 0 &&
               strcmp(a + strcspn(a, "\n"), b + strcspn(b, "\n")) == 0;
}

static void read_wait(struct afz_stand *stand)
{
        char line[256];
        afz_span_copy(first_line(stand->mark->text), line, sizeof line);
        stand->wait = afz_wait_of(line, &stand->words);
        stand->timed = afz_wait_is_timed(line);
        stand->unclear = stand->wait == AFZ_WAIT_UNKNOWN || afz_wait_is_unclear(line);
        stand->threads = threads_of(stand->mark->text);
}

static void compare(struct afz_stand *stand, const struct afz_mark *before)
{
        uint64_t then, now;
        bool known = slept_of(before->text, &then) && slept_of(stand->mark->text, &now);
        bool same = is_same_place(before->text, stand->mark->text);
        stand->seen_before = true;
        stand->stood = same && (!known || then == now);
        stand->beats = stand->timed && known && then != now;
}

/* ---- one look ---- */

bool afz_mark_is_look(const struct afz_mark *mark)
{
        return mark->kind == AFZ_MARK_STACK && !afz_mark_is_picture(mark);
}

void afz_stands_of(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                   struct afz_stands *ret)
{
        const struct afz_mark *mark = flight->mark;
        size_t last = flight->marks;
        ret->count = 0;
        while (last > 0 && (!afz_mark_is_look(&mark[last - 1]) || mark[last - 1].t_ms > to_ms ||
                            mark[last - 1].t_ms < from_ms))
                last--;
        for (size_t i = last; i > 0 && mark[i - 1].t_ms >= from_ms; i--) {
                const struct afz_mark *m = &mark[i - 1];
                if (!afz_mark_is_look(m))
                        continue;
                if (mark[last - 1].t_ms - m->t_ms <= ONE_LOOK_MS) {
                        if (ret->count == AFZ_STANDS_MAX)
                                continue;
                        uint64_t code = (uint64_t)m->code;
                        ret->one[ret->count] = (struct afz_stand){
                                .mark = m, .pid = code >> 32, .tid = code & UINT32_MAX};
                        read_wait(&ret->one[ret->count++]);
                        continue;
                }
                for (size_t k = 0; k < ret->count; k++)
                        if (ret->one[k].mark->code == m->code && !ret->one[k].seen_before)
                                compare(&ret->one[k], m);
        }
}

const struct afz_stand *afz_stands_main(const struct afz_stands *stands, uint64_t pid)
{
        for (size_t i = 0; i < stands->count; i++)
                if (stands->one[i].pid == pid && stands->one[i].tid == pid)
                        return &stands->one[i];
        return NULL;
}

/* ---- the place ---- */

/* Where others' Python code lies; "<" is code without a file. */
static bool is_users(struct afz_span file)
{
        static const char *const others[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                             "/lib64/python", ".zip/"};
        if (file.n == 0 || file.p[0] == '<' || file.p[0] == '?')
                return false;
        for (size_t i = 0; i < AFZ_COUNT_OF(others); i++)
                if (afz_span_has(file, others[i]))
                        return false;
        return true;
}

/* "python: FILE:LINE in FUNCTION"; a file may have any name, so its end is looked for from behind.
 */
static bool take_place(struct afz_span line, struct afz_span *ret_file, uint64_t *ret_line,
                       struct afz_span *ret_function)
{
        if (afz_span_take_prefix(&line, "python: ") < 0)
                return false;
        for (size_t i = line.n; i > 0; i--) {
                struct afz_span rest = {line.p + i, line.n - i};
                if (line.p[i - 1] != ':' || !rest.n || !afz_is_digit(rest.p[0]))
                        continue;
                if (afz_span_take_u64(&rest, ret_line) < 0 || *ret_line > INT32_MAX ||
                    afz_span_take_prefix(&rest, " in ") < 0)
                        continue;
                *ret_file = (struct afz_span){line.p, i - 1};
                *ret_function = rest;
                return true;
        }
        return false;
}

bool afz_stand_next(const char **rest, struct afz_where *ret)
{
        struct afz_span file, function;
        uint64_t number;
        while (**rest) {
                struct afz_span line = first_line(*rest);
                *rest += line.n;
                *rest += strspn(*rest, "\n");
                if (!take_place(line, &file, &number, &function) || !is_users(file))
                        continue;
                if (file.n >= sizeof ret->file) /* its name stands at the end */
                        file = (struct afz_span){file.p + file.n - sizeof ret->file + 1,
                                                 sizeof ret->file - 1};
                afz_span_copy(file, ret->file, sizeof ret->file);
                afz_span_copy(function, ret->function, sizeof ret->function);
                ret->line = (int32_t)number;
                return true;
        }
        return false;
}

bool afz_stand_where(const char *text, struct afz_where *ret)
{
        return afz_stand_next(&text, ret);
}

bool afz_stand_is_own(const char *text)
{
        struct afz_span file, function;
        uint64_t number;
        for (const char *p = text; *p; p += strspn(p, "\n")) {
                struct afz_span line = first_line(p);
                p += line.n;
                if (afz_span_starts(line, "python: "))
                        return take_place(line, &file, &number, &function) && is_users(file);
        }
        return false;
}

const char *afz_where_file(const struct afz_where *where)
{
        const char *slash = strrchr(where->file, '/');
        return slash && slash[1] ? slash + 1 : where->file;
}

/* ---- in words ---- */

/* A frame as people say it: "train.py:33 in worker", "pthread_mutex_lock". */
static struct afz_span short_frame(struct afz_span line)
{
        struct afz_span before;
        if (afz_span_take_prefix(&line, "python: ") == 0)
                return afz_span_base_name(line);
        return afz_span_take_until(&line, '(', &before) == 0 ? afz_span_trim(before) : line;
}

/* Of a Python program, the interpreter's own frames say nothing; nor do those without a name. */
static bool is_telling(struct afz_span line, bool python)
{
        if (afz_span_starts(line, "python: "))
                return true;
        return !python && !afz_span_starts(line, "? (");
}

void afz_stand_tell(const char *text, char *buf, size_t cap)
{
        bool python = strstr(text, "\npython: ") != NULL;
        struct afz_span line = first_line(text), wait = line;
        (void)afz_span_take_until(&line, ',', &wait);
        size_t n = afz_span_copy(wait, buf, cap);
        for (const char *p = text + strcspn(text, "\n"); *p;) {
                p += strspn(p, "\n");
                line = first_line(p);
                p += line.n;
                struct afz_span frame = short_frame(line);
                if (!is_telling(line, python) || line.n == 0)
                        continue;
                if (n + 3 + frame.n >= cap) /* a whole one or none */
                        return;
                memcpy(buf + n, " < ", 3);
                n += 3 + afz_span_copy(frame, buf + n + 3, cap - n - 3);
        }
}

const char *afz_where_words(const struct afz_where *where, char *buf, size_t cap)
{
        buf[0] = '\0';
        if (where->file[0])
                snprintf(buf, cap, ", at %.60s:%d in %.40s%s", afz_where_file(where), where->line,
                         where->function, where->function[0] == '<' ? "" : "()");
        return buf;
}
