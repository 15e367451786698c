/* A .npz with some bytes changed, with and without sizes of 64 bits; and any bytes. */
#include "loader_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(uint8_t **at, uint64_t value, int bytes)
{
        for (int i = 0; i < bytes; i++, value >>= 8)
                *(*at)++ = (uint8_t)value;
}

static void put_entry(uint8_t **at, uint64_t local, uint64_t bytes, bool is_large)
{
        put(at, 0x02014b50, 4), put(at, 0, 16);
        put(at, is_large ? UINT32_MAX : bytes, 4), put(at, is_large ? UINT32_MAX : bytes, 4);
        put(at, 5, 2), put(at, is_large ? 28 : 0, 2), put(at, 0, 10);
        put(at, is_large ? UINT32_MAX : local, 4);
        memcpy(*at, "x.npy", 5), *at += 5;
        if (is_large)
                put(at, 1, 2), put(at, 24, 2), put(at, bytes, 8), put(at, bytes, 8),
                        put(at, local, 8);
}

static size_t good_npz(uint8_t *to, bool is_large)
{
        static const char array[] =
                "\x93NUMPY\1\0\x3a\0{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }   \n"
                "aabbcc";
        uint8_t *at = to;
        put(&at, 0x04034b50, 4), put(&at, 0, 22), put(&at, 5, 2), put(&at, 0, 2);
        memcpy(at, "x.npy", 5), at += 5;
        memcpy(at, array, sizeof array - 1), at += sizeof array - 1;
        uint64_t directory = (uint64_t)(at - to);
        put_entry(&at, 0, sizeof array - 1, is_large);
        uint64_t end = (uint64_t)(at - to);
        if (is_large) {
                put(&at, 0x06064b50, 4), put(&at, 44, 8), put(&at, 0, 12), put(&at, 1, 8),
                        put(&at, 1, 8);
                put(&at, end - directory, 8), put(&at, directory, 8);
                put(&at, 0x07064b50, 4), put(&at, 0, 4), put(&at, end, 8), put(&at, 1, 4);
        }
        put(&at, 0x06054b50, 4), put(&at, 0, 4), put(&at, 1, 2), put(&at, 1, 2);
        put(&at, is_large ? UINT32_MAX : end - directory, 4),
                put(&at, is_large ? UINT32_MAX : directory, 4), put(&at, 0, 2);
        return (size_t)(at - to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static uint8_t zip[1024];
        struct afz_loader_options options = {.format = "npz", .budget_bytes = 1 << 20};
        if (size == 0 || size > 4096)
                return 0;
        size_t bytes = changed(zip, good_npz(zip, data[0] & 1), data + 1, size - 1);
        fuzz_dataset(file_of(zip, bytes), &options);
        fuzz_dataset(file_of(data, size), &options);
        return 0;
}
