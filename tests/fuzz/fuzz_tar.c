/* A tar file with some bytes changed, its checksums put right again; and any bytes. */
#include "loader_fuzz.h"
#include "pictures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCK = 512, MOST = 16 * BLOCK };

static size_t member(uint8_t *to, const char *name, char type, const void *data, size_t bytes)
{
        memset(to, 0, BLOCK);
        memcpy(to, name, strlen(name));
        for (size_t i = 11, left = bytes; i-- > 0; left >>= 3)
                to[124 + i] = (uint8_t)(48 + (left & 7));
        to[156] = (uint8_t)type;
        memcpy(to + 257, "ustar", 5);
        memcpy(to + BLOCK, data, bytes);
        return BLOCK + (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

static size_t good_tar(uint8_t *to)
{
        static const char pax[] = "14 path=a.png\n12 size=100\n";
        size_t n = member(to, "pax", 'x', pax, sizeof pax - 1);
        n += member(to + n, "1.png", '0', picture_palette, sizeof picture_palette);
        n += member(to + n, "a.cls", '0', "3\n", 2);
        n += member(to + n, "long", 'L', "b.jpg", 6);
        n += member(to + n, "cut", '0', picture_grey, sizeof picture_grey);
        n += member(to + n, "b.json", '0', "{\"label\": 4}", 12);
        return n;
}

static void put_sums_right(uint8_t *tar, size_t bytes)
{
        for (size_t at = 0; at + BLOCK <= bytes; at += BLOCK) {
                unsigned sum = 0;
                if (memcmp(tar + at + 257, "ustar", 5) != 0)
                        continue;
                memset(tar + at + 148, ' ', 8);
                for (size_t i = 0; i < BLOCK; i++)
                        sum += tar[at + i];
                snprintf((char *)tar + at + 148, 8, "%06o", sum);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static uint8_t tar[MOST + BLOCK];
        struct afz_loader_options options = {
                .format = "tar", .budget_bytes = 1 << 20, .image = {.width = 4, .height = 4}};
        if (size == 0 || size > 4096)
                return 0;
        options.on_error = data[0] & 1 ? AFZ_ERROR_SKIP : AFZ_ERROR_RAISE;
        memset(tar, 0, sizeof tar);
        size_t bytes = changed(tar, good_tar(tar), data + 1, size - 1);
        put_sums_right(tar, bytes);
        fuzz_dataset(file_of(tar, bytes), &options);
        fuzz_dataset(file_of(data, size), &options);
        return 0;
}
