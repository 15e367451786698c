/* Any bytes as the memory of a process with a Python in it, of any version: walks end, and what
 * they say is text. Some inputs are a memory as it stands, some one in which every address is
 * somewhere, so that garbage leads on, and some are changes to a memory in which all is right. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../test_py_image.h"
#include "py_find.h"
#include "utf8.h"

#define MOST_READS 400000 /* beyond that, something goes round and round */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
        const uint8_t *p;
        size_t n, reads;
        int everywhere;
};

static void require(int holds)
{
        if (!holds)
                abort();
}

static int read_bytes(void *context, uint64_t address, void *ret, size_t bytes)
{
        struct bytes *b = context;
        require(++b->reads < MOST_READS);
        if (b->everywhere)
                address %= b->n;
        if (bytes > b->n || address > b->n - bytes)
                return -EFAULT;
        memcpy(ret, b->p + address, bytes);
        return 0;
}

static void check_text(const char *text, size_t cap)
{
        size_t n = strnlen(text, cap);
        require(n < cap);
        for (size_t i = 0, length; i < n; i += length) {
                length = afz_utf8_length(text + i, n - i);
                require(length > 0 && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
        }
}

static void check_walk(const struct afz_py_place *place)
{
        enum { CAP = 40 };
        static struct afz_py_frame frames[CAP];
        uint64_t state = 64;
        int r = afz_py_walk_check(place);
        require(r == 0 || r == -ENOTSUP || r == -EAGAIN);
        r = afz_py_walk_find(place, 7, 5, &state);
        require(r == 0 || r == -ENOENT || r == -ENOTSUP || r == -EFAULT);
        int n = afz_py_walk_frames(place, state, frames, CAP);
        require(n >= 0 && n <= CAP);
        for (int i = 0; i < n; i++) {
                check_text(frames[i].file, sizeof frames[i].file);
                check_text(frames[i].function, sizeof frames[i].function);
                require(frames[i].line >= 0);
        }
}

static void start_image(struct image *image, unsigned minor)
{
        unsigned char published[AFZ_PY_PUBLISHED_BYTES];
        struct afz_py_layout l;
        uint64_t frame = 0;
        image_publish(minor, published);
        require((minor < 13
                         ? afz_py_layout_table(minor, &l)
                         : afz_py_layout_published(0x030000f0 | minor << 16, published, &l)) == 0);
        uint64_t interpreter = image_start(image, &l);
        uint64_t note = image_new(image, 1024), other_note = image_new(image, 1024);
        image_put(image, note + 720, &(uint32_t){5}, 4);
        image_put(image, other_note + 720, &(uint32_t){7}, 4);
        image_set(image, image->place.runtime, AFZ_PY_RUNTIME_MAIN_THREAD, note);
        for (int i = 0; i < 4; i++)
                frame = image_frame(image, image_code(image, "/a.py", "f", 1), frame);
        image_thread(image, interpreter, frame, note, 5);
        image_thread(image, interpreter, frame, other_note, 7);
}

/* Ten bytes a change: where, and what: a number, or an address that is somewhere. */
static void fuzz_changes(const uint8_t *data, size_t size)
{
        static struct image image;
        start_image(&image, 9 + data[0] % 6);
        for (size_t i = 1; i + 10 <= size; i += 10) {
                uint16_t where;
                uint64_t what;
                memcpy(&where, data + i, 2);
                memcpy(&what, data + i + 2, 8);
                uint64_t at = IMAGE_BASE + where * 4 % (image.used - 8);
                if (what >> 63)
                        what = IMAGE_BASE + what % image.used;
                image_put(&image, at, &what, 8);
        }
        check_walk(&image.place);
        require(image.reads < MOST_READS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size > 0 && data[0] & 128)
                fuzz_changes(data, size);
        if (size < 24 || size > 8192)
                return 0;
        struct bytes bytes = {.p = data + 1, .n = size - 1, .everywhere = data[0] & 1};
        struct afz_py_place place = {.memory = {.read = read_bytes, .context = &bytes}};
        uint64_t base;
        /* What no layout of ours allows would be no fair question. */
        if (afz_py_layout_table(9 + (data[0] >> 1 & 3), &place.layout) == 0) {
                memcpy(&place.code_type, data + 1, 8);
                memcpy(&place.runtime, data + 9, 8);
                check_walk(&place);
        }
        if (size > AFZ_PY_PUBLISHED_BYTES &&
            afz_py_layout_published(data[0] & 8 ? 0x030d00f0 : 0x030e00f0, data + 1,
                                    &place.layout) == 0)
                check_walk(&place);
        int r = afz_py_find_in(&place, 0);
        require(r == 0 || r == -ENOENT || r == -ENOTSUP || r == -EAGAIN);
        (void)afz_py_find_line((struct afz_span){(const char *)data, size}, AFZ_SPAN("/exe"),
                               &base);
        return 0;
}
