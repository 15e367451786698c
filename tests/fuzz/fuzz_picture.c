/* Pictures with some bytes changed, read at once and in small pieces, in every way that there is.
 */
#include "config.h"
#include "image.h"
#include "loader_fuzz.h"
#include "pictures.h"
#if AFZ_HAVE_ZLIB
#include <zlib.h>
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libpng looks no further behind a wrong checksum. */
static void put_sums_right(uint8_t *png, size_t bytes)
{
#if AFZ_HAVE_ZLIB
        for (size_t at = 8; bytes > 8 && bytes - at >= 12;) {
                uint64_t length = 0;
                for (size_t i = 0; i < 4; i++)
                        length = length << 8 | png[at + i];
                if (length > bytes - at - 12)
                        return;
                uint32_t sum = (uint32_t)crc32(crc32(0, NULL, 0), png + at + 4, (uInt)length + 4);
                for (int i = 0; i < 4; i++)
                        png[at + 8 + length + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
                at += 12 + length;
        }
#else
        (void)png, (void)bytes;
#endif
}

/* Large, so it is taken once; what is used of it ends where it ends. */
static uint8_t *decode_memory(uint64_t bytes)
{
        enum { MOST = 4 << 20 };
        static uint8_t *memory;
        if (!memory)
                memory = aligned_alloc(64, MOST);
        require(memory && bytes <= MOST);
        return memory + (MOST - bytes) / 64 * 64;
}

static void decode(struct afz_image_plan *plan, const struct afz_dataset *about,
                   const uint8_t *file, size_t bytes, bool is_piecewise)
{
        char why[AFZ_WHY_MAX] = "";
        uint64_t piece = is_piecewise ? 7 : bytes;
        struct afz_scratch scratch = {
                .raw = malloc(piece + 1),
                .raw_bytes = piece,
                .decode = decode_memory(about->decode_bytes),
                .decode_bytes = about->decode_bytes,
        };
        struct afz_image_source source = {
                .have = file, .have_bytes = bytes, .fd = -1, .scratch = &scratch};
        uint8_t *out = malloc(about->field[0].bytes);
        if (is_piecewise) {
                source = (struct afz_image_source){.left = bytes, .scratch = &scratch};
                source.fd = dup(atoi(strrchr(file_of(file, bytes), '/') + 1));
        }
        int r = afz_image_load(plan, &source, 3, 5, out, why);
        require(r == 0 || *why);
        if (source.fd >= 0)
                close(source.fd);
        free(out), free(scratch.raw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static uint8_t file[4096];
        static struct afz_dataset about;
        static struct afz_image_plan plan;
        char why[AFZ_WHY_MAX] = "";
        if (size < 2 || size > 2048)
                return 0;
        size_t which = data[0] % (sizeof pictures / sizeof *pictures);
        struct afz_loader_options options = {
                .budget_bytes = 1 << 20,
                .image = {.width = 1 + data[1] % 40,
                          .height = 1 + data[1] / 8,
                          .is_random_crop = data[1] & 1,
                          .is_flipped = data[1] >> 1 & 1,
                          .is_float = data[1] >> 2 & 1,
                          .jitter = data[1] & 8 ? 0.4f : 0},
        };
        require(afz_image_plan(&options, NULL, &plan, why) == 0);
        afz_image_describe(&plan, &about);
        memcpy(file, pictures[which].data, pictures[which].bytes);
        size_t bytes = changed(file, pictures[which].bytes, data + 2, size - 2);
        put_sums_right(file, bytes);
        decode(&plan, &about, file, bytes, data[0] & 0x80);
        return 0;
}
