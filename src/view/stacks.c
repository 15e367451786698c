#include "stacks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"

/* How often the keeper reads what lines hold. */
enum { LOOK_MS = 1000 };

static size_t sites_of(const struct afz_flight *flight)
{
        size_t n = 0;
        for (size_t at = 0; afz_flight_next(flight, AFZ_KIND_SITE, &at);)
                n++;
        return n;
}

/* The text of each site's stack by its id: the last that was told. NULL: no memory. */
static struct afz_map *texts_of(const struct afz_flight *flight, size_t sites)
{
        struct afz_map *map;
        if (afz_map_new(sites + 1, &map) < 0)
                return NULL;
        for (size_t i = 0; i < flight->marks; i++)
                if (flight->mark[i].kind == AFZ_MARK_SITE && flight->mark[i].code != 0 &&
                    afz_flight_find(flight, AFZ_KIND_SITE, (uint64_t)flight->mark[i].code))
                        (void)afz_map_put(map, (uint64_t)flight->mark[i].code, i);
        return map;
}

static const char *text_of(const struct afz_flight *flight, const struct afz_map *texts,
                           const struct afz_track *site)
{
        uint64_t mark;
        if (site->subject.id != 0 && afz_map_get(texts, site->subject.id, &mark) &&
            flight->mark[mark].text[0])
                return flight->mark[mark].text;
        return site->name[0] ? site->name : "?";
}

static unsigned lines_of(const char *text)
{
        unsigned n = 1;
        for (; *text; text++)
                n += *text == '\n' && text[1] != '\0';
        return n < AFZ_STACK_FRAMES ? n : AFZ_STACK_FRAMES;
}

/* Of the text, innermost first, to frames, outermost first. */
static void split(struct afz_stack *s, char *text)
{
        for (unsigned i = s->frames; i-- > 0;) {
                char *end = strchr(text, '\n');
                if (end)
                        *end = '\0';
                s->frame[i] = text[0] ? text : "?";
                text = end ? end + 1 : text + strlen(text);
        }
}

static uint64_t held(const struct afz_track *site, uint32_t t_ms)
{
        int64_t bytes;
        uint32_t to_ms = t_ms < UINT32_MAX ? t_ms + 1 : t_ms;
        return afz_column_last(afz_track_column(site, AFZ_SITE_LIVE), to_ms, &bytes) && bytes > 0
                       ? (uint64_t)bytes
                       : 0;
}

static bool make_room(const struct afz_flight *flight, const struct afz_map *texts, size_t sites,
                      struct afz_stacks *ret)
{
        const struct afz_track *site;
        size_t frames = 0, bytes = 0;
        for (size_t at = 0; (site = afz_flight_next(flight, AFZ_KIND_SITE, &at));) {
                const char *text = text_of(flight, texts, site);
                frames += lines_of(text);
                bytes += strlen(text) + 1;
        }
        ret->stack = calloc(sites, sizeof *ret->stack);
        ret->frame = calloc(frames, sizeof *ret->frame);
        ret->text = malloc(bytes);
        return ret->stack && ret->frame && ret->text;
}

static void fill(const struct afz_flight *flight, const struct afz_map *texts,
                 struct afz_stacks *ret)
{
        const struct afz_track *site;
        const char **frame = ret->frame;
        char *to = ret->text;
        for (size_t at = 0; (site = afz_flight_next(flight, AFZ_KIND_SITE, &at));) {
                uint64_t bytes = held(site, ret->t_ms);
                const char *text = text_of(flight, texts, site);
                if (bytes == 0 || __builtin_add_overflow(ret->bytes, bytes, &ret->bytes))
                        continue;
                struct afz_stack *s = &ret->stack[ret->count++];
                *s = (struct afz_stack){site, bytes, lines_of(text), frame};
                frame += s->frames;
                memcpy(to, text, strlen(text) + 1);
                split(s, to);
                to += strlen(text) + 1;
        }
}

bool afz_stacks_at_peak(const struct afz_flight *flight, struct afz_stacks *ret)
{
        struct afz_stacks all = {0};
        size_t sites = sites_of(flight);
        if (sites == 0 || !afz_site_peak(flight, &all.t_ms))
                return false;
        struct afz_map *texts = texts_of(flight, sites);
        if (texts && make_room(flight, texts, sites, &all))
                fill(flight, texts, &all);
        afz_map_free(texts);
        if (all.count == 0) {
                afz_stacks_free(&all);
                return false;
        }
        *ret = all;
        return true;
}

void afz_stacks_free(struct afz_stacks *stacks)
{
        free(stacks->stack);
        free(stacks->frame);
        free(stacks->text);
        *stacks = (struct afz_stacks){0};
}

double afz_line_off(const struct afz_flight *flight, const struct afz_site_row *row)
{
        /* Between two samples: 1 MiB, or a 32768th of RAM where that is more. */
        double mean = fmax(1048576, (double)flight->head.ram_total_bytes / 32768);
        double guessed = fmax(row->bytes - row->counted_bytes, 0);
        return row->bytes > 0 ? fmin(sqrt(mean * guessed) / row->bytes, 1) : 0;
}

int64_t afz_stacks_need(const struct afz_flight *flight, uint32_t t_ms, double seen_bytes)
{
        const struct afz_column *column = afz_flight_need(flight);
        uint32_t to_ms = t_ms < UINT32_MAX ? t_ms + 1 : t_ms;
        int64_t need = 0, before = 0;
        (void)afz_column_last(column, to_ms, &need);
        if ((double)need < seen_bytes &&
            afz_column_most(column, t_ms > LOOK_MS ? t_ms - LOOK_MS : 0, to_ms, &before) &&
            before > need)
                need = before;
        return need;
}

/* ---- whose code ---- */

/* "train.py" of "train.py:33 in load()"; without a line, all of it. */
static size_t file_length(const char *frame, size_t n)
{
        for (size_t i = 1; i + 1 < n; i++)
                if (frame[i] == ':' && frame[i + 1] >= '0' && frame[i + 1] <= '9')
                        return i;
        return n;
}

bool afz_stack_place(const char *frame, size_t *ret_file_length, uint32_t *ret_line)
{
        size_t n = strlen(frame), file = file_length(frame, n);
        unsigned long line = file < n ? strtoul(frame + file + 1, NULL, 10) : 0;
        if (line == 0 || line > INT32_MAX)
                return false;
        *ret_file_length = file;
        *ret_line = (uint32_t)line;
        return true;
}

/* "python3.11+0x1f3a": native code without a name. */
static bool is_unnamed(const char *frame)
{
        const char *plus = strstr(frame, "+0x");
        return plus && plus[3 + strspn(plus + 3, "0123456789abcdef")] == '\0';
}

enum afz_stack_owner afz_stack_owner(const char *frame)
{
        size_t n = strlen(frame), file = file_length(frame, n);
        if (is_unnamed(frame) || strncmp(frame, "<frozen ", strlen("<frozen ")) == 0)
                return AFZ_STACK_RUNTIME;
        if (file < n)
                return memchr(frame, '/', file) ? AFZ_STACK_LIBRARY : AFZ_STACK_USER;
        if (!strchr(frame, '('))
                return AFZ_STACK_REST;
        return strstr(frame, ".so") ? AFZ_STACK_LIBRARY : AFZ_STACK_USER;
}
