#include "flight_marks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "clock.h"
#include "pack.h"

enum { PACK_ROOM = 1 << 18 };

/* Steps come numbered in even strides (1, 2, 3 or 100, 200, 300), from any number on. */
struct stride {
        int64_t first;
        uint64_t width; /* 0: their numbers say nothing */
        size_t steps;
};

static struct stride find_stride(const struct afz_flight *flight)
{
        struct stride s = {0};
        int64_t last = 0;
        for (size_t i = 0; i < flight->marks; i++) {
                const struct afz_mark *mark = &flight->mark[i];
                if (mark->kind != AFZ_MARK_STEP)
                        continue;
                if (s.steps++ == 0)
                        s.first = mark->code;
                else if (mark->code > last &&
                         (s.width == 0 || (uint64_t)mark->code - (uint64_t)last < s.width))
                        s.width = (uint64_t)mark->code - (uint64_t)last;
                last = mark->code;
        }
        return s;
}

/* Whether a step is one of each so many; by its place where numbers say nothing. */
static bool stays(const struct stride *s, const struct afz_mark *mark, size_t place, uint64_t each)
{
        uint64_t number = s->width ? ((uint64_t)mark->code - (uint64_t)s->first) / s->width : place;
        return number % each == 0;
}

static size_t count_steps(const struct afz_flight *flight, const struct stride *s, uint64_t each)
{
        size_t n = 0, place = 0;
        for (size_t i = 0; i < flight->marks; i++)
                if (flight->mark[i].kind == AFZ_MARK_STEP)
                        n += stays(s, &flight->mark[i], place++, each);
        return n;
}

void afz_marks_thin(struct afz_flight *flight)
{
        if (flight->marks <= AFZ_MARKS_MANY)
                return;
        struct stride s = find_stride(flight);
        uint64_t each = 1;
        /* To half of what is many, so that not every new one begins it again. */
        while (each < UINT64_C(1) << 32 && count_steps(flight, &s, each) > AFZ_MARKS_MANY / 2)
                each *= 2;
        size_t kept = 0, place = 0;
        for (size_t i = 0; i < flight->marks; i++) {
                struct afz_mark *mark = &flight->mark[i];
                if (mark->kind != AFZ_MARK_STEP || stays(&s, mark, place++, each))
                        flight->mark[kept++] = *mark;
                else
                        free(mark->text);
        }
        flight->marks = kept;
}

int afz_marks_write(const struct afz_flight *flight,
                    int (*put)(void *ctx, const unsigned char *bytes, size_t len), void *ctx)
{
        struct afz_pack pack = {.cap = PACK_ROOM};
        int r = 0;
        if (flight->marks == 0)
                return 0;
        if (!(pack.buf = malloc(pack.cap)))
                return -ENOMEM;
        afz_pack_start(&pack, 0, flight->mark[0].t_ms * AFZ_NS_PER_MS);
        for (size_t i = 0; i < flight->marks && r >= 0; i++) {
                const struct afz_mark *mark = &flight->mark[i];
                uint64_t t_ns = mark->t_ms * AFZ_NS_PER_MS;
                if (afz_pack_mark(&pack, t_ns, mark->kind, mark->code, mark->text) == 0)
                        continue;
                r = put(ctx, pack.buf, pack.len);
                afz_pack_start(&pack, 0, t_ns);
                (void)afz_pack_mark(&pack, t_ns, mark->kind, mark->code, mark->text);
        }
        if (r >= 0)
                r = put(ctx, pack.buf, pack.len);
        free(pack.buf);
        return r;
}
