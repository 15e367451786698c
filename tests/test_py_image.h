#ifndef AFZ_TEST_PY_IMAGE_H
#define AFZ_TEST_PY_IMAGE_H
/* A memory with a Python in it, made up by a test after any layout: objects are put one behind the
 * other, and what they are told to hold is at the offsets that the layout says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "py_walk.h"

#define IMAGE_BASE  UINT64_C(0x7f0000000000)
#define IMAGE_BYTES (1 << 16)
#define CODE_TYPE   (IMAGE_BASE + 8) /* an address will do */

struct image {
        struct afz_py_place place;
        size_t used;
        size_t reads, reads_left; /* reads_left: 0 for no limit; then `error` */
        int error;
        unsigned char bytes[IMAGE_BYTES];
};

static inline int image_read(void *context, uint64_t address, void *ret, size_t bytes)
{
        struct image *i = context;
        i->reads++;
        if (i->reads_left > 0 && --i->reads_left == 0)
                return i->error;
        if (address < IMAGE_BASE || bytes > i->used || address - IMAGE_BASE > i->used - bytes)
                return -EFAULT;
        memcpy(ret, i->bytes + (address - IMAGE_BASE), bytes);
        return 0;
}

/* Room for an object; what lies behind the last one can't be read. */
static inline uint64_t image_new(struct image *i, size_t bytes)
{
        size_t at = i->used;
        i->used += (bytes + 15) / 16 * 16;
        if (i->used > IMAGE_BYTES)
                abort();
        return IMAGE_BASE + at;
}

static inline void image_put(struct image *i, uint64_t at, const void *p, size_t bytes)
{
        memcpy(i->bytes + (at - IMAGE_BASE), p, bytes);
}

static inline void image_set(struct image *i, uint64_t object, enum afz_py_field f, uint64_t value)
{
        if (afz_py_has(&i->place.layout, f))
                image_put(i, object + i->place.layout.at[f], &value, sizeof value);
}

static inline void image_set_int(struct image *i, uint64_t object, enum afz_py_field f,
                                 int32_t value)
{
        if (afz_py_has(&i->place.layout, f))
                image_put(i, object + i->place.layout.at[f], &value, sizeof value);
}

static inline uint64_t image_text(struct image *i, unsigned width, const void *chars, size_t n)
{
        const struct afz_py_layout *l = &i->place.layout;
        bool ascii = width == 1;
        for (size_t k = 0; width == 1 && k < n; k++)
                ascii &= ((const unsigned char *)chars)[k] < 0x80;
        uint64_t at = image_new(i, 80 + n * width);
        image_set(i, at, AFZ_PY_TEXT_LENGTH, n);
        image_set_int(i, at, AFZ_PY_TEXT_STATE,
                      (int32_t)(width << AFZ_PY_SHIFT_KIND | 1 << AFZ_PY_SHIFT_COMPACT |
                                (ascii ? 1 << AFZ_PY_SHIFT_ASCII : 0)));
        image_put(i, at + l->at[ascii ? AFZ_PY_TEXT_NARROW : AFZ_PY_TEXT_WIDE], chars, n * width);
        return at;
}

static inline uint64_t image_bytes(struct image *i, const void *p, size_t n)
{
        uint64_t at = image_new(i, 48 + n);
        image_set(i, at, AFZ_PY_BYTES_SIZE, n);
        image_put(i, at + i->place.layout.at[AFZ_PY_BYTES_DATA], p, n);
        return at;
}

/* Code whose line at the place where image_frame() stands is the one after `first_line`; the lines
 * before and behind are others. */
static inline uint64_t image_code(struct image *i, const char *file, const char *name,
                                  int first_line)
{
        static const struct {
                const char *p;
                size_t n;
        } tables[] = {
                [AFZ_PY_LINES_LNOTAB] = {"\3\1\4\1", 4},
                [AFZ_PY_LINES_RANGES] = {"\6\0\4\1\36\1", 6},
                [AFZ_PY_LINES_LOCATIONS] = {"\xd1\1\1\xd8\1\1\xdf\1\1", 9},
        };
        const struct afz_py_layout *l = &i->place.layout;
        uint64_t at = image_new(i, 260);
        image_set(i, at, AFZ_PY_OBJECT_TYPE, CODE_TYPE);
        image_set(i, at, AFZ_PY_CODE_FILE, image_text(i, 1, file, strlen(file)));
        image_set(i, at, AFZ_PY_CODE_NAME, image_text(i, 1, name, strlen(name)));
        image_set(i, at, AFZ_PY_CODE_LINES, image_bytes(i, tables[l->lines].p, tables[l->lines].n));
        image_set_int(i, at, AFZ_PY_CODE_FIRST_LINE, first_line);
        image_set_int(i, at, AFZ_PY_CODE_FIRST_TRACEABLE, 1);
        return at;
}

/* A frame that stands at byte 4 of its code, or (3.10) unit 4. */
static inline uint64_t image_frame(struct image *i, uint64_t code, uint64_t back)
{
        const struct afz_py_layout *l = &i->place.layout;
        uint64_t at = image_new(i, 128);
        image_set(i, at, AFZ_PY_FRAME_BACK, back);
        image_set(i, at, AFZ_PY_FRAME_CODE, code);
        if (afz_py_has(l, AFZ_PY_CODE_INSTRUCTIONS))
                image_set(i, at, AFZ_PY_FRAME_INSTRUCTION,
                          code + l->at[AFZ_PY_CODE_INSTRUCTIONS] + 4);
        else
                image_set_int(i, at, AFZ_PY_FRAME_INSTRUCTION, 4);
        return at;
}

/* A thread of the interpreter, put first in its list. */
static inline uint64_t image_thread(struct image *i, uint64_t interpreter, uint64_t frame,
                                    uint64_t ident, uint32_t native_id)
{
        const struct afz_py_layout *l = &i->place.layout;
        uint64_t at = image_new(i, 256), first;
        memcpy(&first, i->bytes + (interpreter - IMAGE_BASE) + l->at[AFZ_PY_INTERPRETER_THREADS],
               8);
        image_set(i, at, AFZ_PY_THREAD_NEXT, first);
        image_set(i, at, AFZ_PY_THREAD_INTERPRETER, interpreter);
        image_set(i, at, AFZ_PY_THREAD_IDENT, ident);
        image_set(i, at, AFZ_PY_THREAD_NATIVE_ID, native_id);
        if (afz_py_has(l, AFZ_PY_CFRAME_CURRENT)) {
                uint64_t cframe = image_new(i, 32);
                image_set(i, cframe, AFZ_PY_CFRAME_CURRENT, frame);
                image_set(i, at, AFZ_PY_THREAD_FRAME, cframe);
        } else {
                image_set(i, at, AFZ_PY_THREAD_FRAME, frame);
        }
        image_set(i, interpreter, AFZ_PY_INTERPRETER_THREADS, at);
        return at;
}

/* An empty memory with a runtime and an interpreter without threads, which is returned. */
static inline uint64_t image_start(struct image *i, const struct afz_py_layout *l)
{
        memset(i->bytes, 0, i->used); /* all that an earlier one wrote */
        i->used = i->reads = i->reads_left = 0;
        i->place.memory = (struct afz_py_memory){.read = image_read, .context = i};
        i->place.layout = *l;
        i->place.code_type = CODE_TYPE;
        image_new(i, 64);
        i->place.runtime = image_new(i, 2048);
        uint64_t interpreter = image_new(i, 8192);
        image_set(i, i->place.runtime, AFZ_PY_RUNTIME_INTERPRETERS, interpreter);
        return interpreter;
}

/* What an interpreter of 3.13 or 3.14 publishes: the offsets of 3.12 with some room, and sizes that
 * hold them. */
static inline void image_publish(unsigned minor, unsigned char published[AFZ_PY_PUBLISHED_BYTES])
{
        struct afz_py_layout l;
        uint64_t version = UINT64_C(0x03000000) | minor << 16 | 0xf0, size = 4096;
        if (afz_py_layout_table(12, &l) < 0)
                abort();
        /* Sizes stand between the offsets: whatever isn't an offset may be one. */
        for (size_t at = 24; at + 8 <= AFZ_PY_PUBLISHED_BYTES; at += 8)
                memcpy(published + at, &size, 8);
        memcpy(published, "xdebugpy", 8);
        memcpy(published + 8, &version, 8);
        memset(published + 16, 0, 8);
        for (enum afz_py_field f = 0; f < AFZ_PY_FIELD_COUNT; f++) {
                uint32_t at = afz_py_field_position(minor, f);
                uint64_t offset = l.at[f];
                if (at != AFZ_PY_ABSENT)
                        memcpy(published + at, &offset, 8);
        }
}

#endif
