/* Memory at its peak by stack: for flame graphs (collapsed: one stack a line) and speedscope. */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "export_parts.h"
#include "map.h"
#include "stacks.h"

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
        struct afz_stacks all = {0};
        (void)afz_stacks_at_peak(flight, &all);
        for (size_t i = 0; i < all.count; i++) {
                const struct afz_stack *s = &all.stack[i];
                for (unsigned f = 0; f < s->frames; f++) {
                        if (f > 0)
                                afz_out_char(out, ';');
                        put_frame(out, s->frame[f]);
                }
                afz_out_char(out, ' ');
                afz_out_i64(out, (int64_t)s->bytes);
                afz_out_char(out, '\n');
        }
        afz_stacks_free(&all);
}

/* ---- speedscope, pprof ---- */

/* Each name once, and its number in that list. */
struct frames {
        const char **name;
        struct afz_map *known; /* numbers by a hash of the name */
        size_t count;
};

static size_t number_of(struct frames *frames, const char *name)
{
        uint64_t key = UINT64_C(14695981039346656037), number = frames->count;
        for (const char *c = name; *c; c++)
                key = (key ^ (unsigned char)*c) * UINT64_C(1099511628211);
        if (afz_map_get(frames->known, key, &number))
                return (size_t)number;
        (void)afz_map_put(frames->known, key, number);
        frames->name[frames->count++] = name;
        return (size_t)number;
}

static void free_frames(struct frames *frames)
{
        free(frames->name);
        afz_map_free(frames->known);
}

/* Room for the names of all; without it there are no stacks. */
static struct frames make_frames(struct afz_stacks *all)
{
        size_t most = 1;
        struct frames frames = {0};
        for (size_t i = 0; i < all->count; i++)
                most += all->stack[i].frames;
        frames.name = calloc(most, sizeof *frames.name);
        if (!frames.name || afz_map_new(most, &frames.known) < 0)
                all->count = 0;
        return frames;
}

static void put_samples(struct afz_json *j, const struct afz_stacks *all, struct frames *frames)
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

static void put_profile(struct afz_json *j, const struct afz_stacks *all, struct frames *frames)
{
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
        afz_json_u64(j, all->bytes);
        put_samples(j, all, frames);
        afz_json_close(j, '}');
        afz_json_close(j, ']');
}

/* Where the viewer may look it up. */
static void put_place_json(struct afz_json *j, const char *frame)
{
        char file[256];
        size_t n;
        uint32_t line;
        if (!afz_stack_place(frame, &n, &line) || n >= sizeof file)
                return;
        memcpy(file, frame, n);
        file[n] = '\0';
        afz_json_key(j, "file");
        afz_json_str(j, file);
        afz_json_key(j, "line");
        afz_json_u64(j, line);
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
                put_place_json(j, frames->name[i]);
                afz_json_close(j, '}');
        }
        afz_json_close(j, ']');
        afz_json_close(j, '}');
}

void afz_export_speedscope(const struct afz_flight *flight, struct afz_out *out)
{
        struct afz_stacks all = {0};
        (void)afz_stacks_at_peak(flight, &all);
        struct frames frames = make_frames(&all);
        struct afz_json j = {.out = out};
        afz_json_open(&j, '{');
        afz_json_key(&j, "$schema");
        afz_json_str(&j, "https://www.speedscope.app/file-format-schema.json");
        afz_json_key(&j, "exporter");
        afz_json_str(&j, "antifreeze");
        afz_json_key(&j, "name");
        afz_json_str(&j, flight->head.run[0] ? flight->head.run : "run");
        put_profile(&j, &all, &frames);
        put_shared(&j, &frames);
        afz_json_close(&j, '}');
        afz_out_char(out, '\n');
        free_frames(&frames);
        afz_stacks_free(&all);
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

static void put_text(struct afz_out *out, const char *text, size_t n)
{
        put_start(out, 6, n); /* Profile.string_table */
        afz_out_bytes(out, text, n);
}

static void put_string(struct afz_out *out, const char *text)
{
        put_text(out, text, strlen(text));
}

/* ValueType {type, unit}, by their places among the strings. */
static void put_type(struct afz_out *out, unsigned field, unsigned type, unsigned unit)
{
        put_start(out, field, 4);
        put_number(out, 1, type);
        put_number(out, 2, unit);
}

/* Sample {location_id, value}: innermost first. */
static void put_sample(struct afz_out *out, const struct afz_stack *s, struct frames *frames)
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

/* Location {id, line {function_id, line}} and Function {id, name, filename}, with the same
 * numbers. Its name is the whole line, so that what is told of functions is told of lines. */
static void put_place(struct afz_out *out, size_t number, const char *frame, size_t name,
                      size_t file)
{
        uint32_t at = 0;
        size_t n;
        (void)afz_stack_place(frame, &n, &at);
        size_t line = 1 + varint_bytes(number) + 1 + varint_bytes(at);
        put_start(out, 4, 1 + varint_bytes(number) + 1 + varint_bytes(line) + line);
        put_number(out, 1, number);
        put_start(out, 4, line);
        put_number(out, 1, number);
        put_number(out, 2, at);
        put_start(out, 5,
                  1 + varint_bytes(number) + 1 + varint_bytes(name) + 1 + varint_bytes(file));
        put_number(out, 1, number);
        put_number(out, 2, name);
        put_number(out, 4, file);
}

static void put_file(struct afz_out *out, const char *frame)
{
        uint32_t line;
        size_t n;
        put_text(out, frame, afz_stack_place(frame, &n, &line) ? n : 0);
}

void afz_export_pprof(const struct afz_flight *flight, struct afz_out *out)
{
        static const char *const words[] = {"", "inuse_space", "bytes"};
        enum { WORDS = sizeof words / sizeof *words };
        struct afz_stacks all = {0};
        (void)afz_stacks_at_peak(flight, &all);
        struct frames frames = make_frames(&all);
        put_type(out, 1, 1, 2);
        for (size_t i = 0; i < all.count; i++)
                put_sample(out, &all.stack[i], &frames);
        for (size_t i = 0; i < frames.count; i++)
                put_place(out, i + 1, frames.name[i], WORDS + 2 * i, WORDS + 2 * i + 1);
        for (size_t i = 0; i < WORDS; i++)
                put_string(out, words[i]);
        for (size_t i = 0; i < frames.count; i++) {
                put_string(out, frames.name[i]);
                put_file(out, frames.name[i]);
        }
        if (flight->head.started_s > 0) /* time_nanos */
                put_number(out, 9,
                           (uint64_t)flight->head.started_s * AFZ_NS_PER_S +
                                   all.t_ms * AFZ_NS_PER_MS);
        free_frames(&frames);
        afz_stacks_free(&all);
}
