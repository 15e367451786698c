/* Memory at its peak by stack: for flame graphs (collapsed: one stack a line) and speedscope. */
#include <stdlib.h>
#include <string.h>

#include "export_parts.h"
#include "site_top.h"

/* A stack as frames, outermost first, in a copy of its text. */
enum { FRAMES = 128 };

struct stack {
        char *text;
        unsigned frames;
        const char *frame[FRAMES];
        uint64_t bytes;
};

/* The stacks of all sites that held something at the peak; the caller's to free. */
struct stacks {
        size_t count;
        struct stack *stack;
};

static void split(struct stack *s)
{
        const char *inner[FRAMES];
        unsigned n = 0;
        for (char *at = s->text; at && *at && n < FRAMES;) {
                char *end = strchr(at, '\n');
                if (end)
                        *end = '\0';
                inner[n++] = at;
                at = end ? end + 1 : NULL;
        }
        for (unsigned i = 0; i < n; i++)
                s->frame[i] = inner[n - 1 - i];
        s->frames = n;
}

static void add(struct stacks *all, const struct afz_flight *flight, const struct afz_track *site,
                uint32_t peak_ms)
{
        int64_t bytes;
        const char *text = afz_site_stack(flight, site->subject.id);
        if (!afz_column_last(afz_track_column(site, AFZ_SITE_LIVE), peak_ms + 1, &bytes) ||
            bytes <= 0)
                return;
        struct stack *s = &all->stack[all->count];
        s->text = strdup(text[0] ? text : site->name);
        if (!s->text)
                return;
        s->bytes = (uint64_t)bytes;
        split(s);
        all->count++;
}

static struct stacks make_stacks(const struct afz_flight *flight)
{
        struct stacks all = {0};
        const struct afz_track *site;
        uint32_t peak_ms;
        size_t n = 0;
        for (size_t at = 0; afz_flight_next(flight, AFZ_KIND_SITE, &at);)
                n++;
        if (n == 0 || !afz_site_peak(flight, &peak_ms) ||
            !(all.stack = calloc(n, sizeof *all.stack)))
                return all;
        for (size_t at = 0; (site = afz_flight_next(flight, AFZ_KIND_SITE, &at));)
                add(&all, flight, site, peak_ms);
        return all;
}

static void free_stacks(struct stacks *all)
{
        for (size_t i = 0; i < all->count; i++)
                free(all->stack[i].text);
        free(all->stack);
}

/* ---- collapsed ---- */

/* Semicolons part frames, and a space the number: neither may be in a name's way. */
static void put_frame(struct afz_out *out, const char *frame)
{
        for (; *frame; frame++) {
                unsigned char c = (unsigned char)*frame;
                afz_out_char(out, c == ';' ? ',' : c < 0x20 || c == 0x7f ? '?' : (char)c);
        }
}

void afz_export_collapsed(const struct afz_flight *flight, struct afz_out *out)
{
        struct stacks all = make_stacks(flight);
        for (size_t i = 0; i < all.count; i++) {
                const struct stack *s = &all.stack[i];
                for (unsigned f = 0; f < s->frames; f++) {
                        if (f > 0)
                                afz_out_char(out, ';');
                        put_frame(out, s->frame[f]);
                }
                afz_out_char(out, ' ');
                afz_out_i64(out, (int64_t)s->bytes);
                afz_out_char(out, '\n');
        }
        free_stacks(&all);
}

/* ---- speedscope, pprof ---- */

/* Each name once, and its number in that list. */
struct frames {
        const char **name;
        size_t count;
};

static size_t number_of(struct frames *frames, const char *name)
{
        size_t i = 0;
        while (i < frames->count && strcmp(frames->name[i], name) != 0)
                i++;
        if (i == frames->count)
                frames->name[frames->count++] = name;
        return i;
}

static void put_samples(struct afz_json *j, const struct stacks *all, struct frames *frames)
{
        afz_json_key(j, "samples");
        afz_json_open(j, '[');
        for (size_t i = 0; i < all->count; i++) {
                afz_json_open(j, '[');
                for (unsigned f = 0; f < all->stack[i].frames; f++)
                        afz_json_u64(j, number_of(frames, all->stack[i].frame[f]));
                afz_json_close(j, ']');
        }
        afz_json_close(j, ']');
        afz_json_key(j, "weights");
        afz_json_open(j, '[');
        for (size_t i = 0; i < all->count; i++)
                afz_json_u64(j, all->stack[i].bytes);
        afz_json_close(j, ']');
}

static void put_profile(struct afz_json *j, const struct stacks *all, struct frames *frames)
{
        uint64_t sum = 0;
        for (size_t i = 0; i < all->count; i++)
                sum += all->stack[i].bytes;
        afz_json_key(j, "profiles");
        afz_json_open(j, '[');
        afz_json_open(j, '{');
        afz_json_key(j, "type");
        afz_json_str(j, "sampled");
        afz_json_key(j, "name");
        afz_json_str(j, "memory at its peak");
        afz_json_key(j, "unit");
        afz_json_str(j, "bytes");
        afz_json_key(j, "startValue");
        afz_json_u64(j, 0);
        afz_json_key(j, "endValue");
        afz_json_u64(j, sum);
        put_samples(j, all, frames);
        afz_json_close(j, '}');
        afz_json_close(j, ']');
}

static void put_shared(struct afz_json *j, const struct frames *frames)
{
        afz_json_key(j, "shared");
        afz_json_open(j, '{');
        afz_json_key(j, "frames");
        afz_json_open(j, '[');
        for (size_t i = 0; i < frames->count; i++) {
                afz_json_open(j, '{');
                afz_json_key(j, "name");
                afz_json_str(j, frames->name[i]);
                afz_json_close(j, '}');
        }
        afz_json_close(j, ']');
        afz_json_close(j, '}');
}

/* Room for the names of all; without it there are no stacks. */
static struct frames make_frames(struct stacks *all)
{
        size_t most = 1;
        for (size_t i = 0; i < all->count; i++)
                most += all->stack[i].frames;
        struct frames frames = {.name = calloc(most, sizeof *frames.name)};
        if (!frames.name)
                all->count = 0;
        return frames;
}

void afz_export_speedscope(const struct afz_flight *flight, struct afz_out *out)
{
        struct stacks all = make_stacks(flight);
        struct frames frames = make_frames(&all);
        struct afz_json j = {.out = out};
        afz_json_open(&j, '{');
        afz_json_key(&j, "$schema");
        afz_json_str(&j, "https://www.speedscope.app/file-format-schema.json");
        afz_json_key(&j, "exporter");
        afz_json_str(&j, "antifreeze");
        put_profile(&j, &all, &frames);
        put_shared(&j, &frames);
        afz_json_close(&j, '}');
        afz_out_char(out, '\n');
        free(frames.name);
        free_stacks(&all);
}

/* ---- pprof: a message of protocol buffers, field by field ---- */

enum { VARINT, BYTES = 2 }; /* wire types */

static size_t varint(uint64_t v, unsigned char ret[10])
{
        size_t n = 0;
        for (; v >= 0x80; v >>= 7)
                ret[n++] = (unsigned char)(v | 0x80);
        ret[n++] = (unsigned char)v;
        return n;
}

static size_t varint_bytes(uint64_t v)
{
        unsigned char buf[10];
        return varint(v, buf);
}

static void put_varint(struct afz_out *out, uint64_t v)
{
        unsigned char buf[10];
        afz_out_bytes(out, (const char *)buf, varint(v, buf));
}

static void put_number(struct afz_out *out, unsigned field, uint64_t v)
{
        put_varint(out, field << 3 | VARINT);
        put_varint(out, v);
}

static void put_start(struct afz_out *out, unsigned field, size_t bytes)
{
        put_varint(out, field << 3 | BYTES);
        put_varint(out, bytes);
}

static void put_string(struct afz_out *out, const char *text)
{
        put_start(out, 6, strlen(text)); /* Profile.string_table */
        afz_out_bytes(out, text, strlen(text));
}

/* ValueType {type, unit}, by their places among the strings. */
static void put_type(struct afz_out *out, unsigned field, unsigned type, unsigned unit)
{
        put_start(out, field, 4);
        put_number(out, 1, type);
        put_number(out, 2, unit);
}

/* Sample {location_id, value}: innermost first. */
static void put_sample(struct afz_out *out, const struct stack *s, struct frames *frames)
{
        size_t ids = 0;
        for (unsigned f = 0; f < s->frames; f++)
                ids += varint_bytes(number_of(frames, s->frame[f]) + 1);
        size_t value = varint_bytes(s->bytes);
        put_start(out, 2, 1 + varint_bytes(ids) + ids + 1 + varint_bytes(value) + value);
        put_start(out, 1, ids);
        for (unsigned f = s->frames; f-- > 0;)
                put_varint(out, number_of(frames, s->frame[f]) + 1);
        put_start(out, 2, value);
        put_varint(out, s->bytes);
}

/* Location {id, line {function_id}} and Function {id, name}, with the same numbers. */
static void put_place(struct afz_out *out, size_t number, size_t name)
{
        size_t line = 1 + varint_bytes(number);
        put_start(out, 4, 1 + varint_bytes(number) + 1 + varint_bytes(line) + line);
        put_number(out, 1, number);
        put_start(out, 4, line);
        put_number(out, 1, number);
        put_start(out, 5, 1 + varint_bytes(number) + 1 + varint_bytes(name));
        put_number(out, 1, number);
        put_number(out, 2, name);
}

void afz_export_pprof(const struct afz_flight *flight, struct afz_out *out)
{
        static const char *const words[] = {"", "inuse_space", "bytes"};
        enum { WORDS = sizeof words / sizeof *words };
        struct stacks all = make_stacks(flight);
        struct frames frames = make_frames(&all);
        put_type(out, 1, 1, 2);
        for (size_t i = 0; i < all.count; i++)
                put_sample(out, &all.stack[i], &frames);
        for (size_t i = 0; i < frames.count; i++)
                put_place(out, i + 1, WORDS + i);
        for (size_t i = 0; i < WORDS; i++)
                put_string(out, words[i]);
        for (size_t i = 0; i < frames.count; i++)
                put_string(out, frames.name[i]);
        free(frames.name);
        free_stacks(&all);
}
