/* Zarr of both versions, as its writers leave it and as strangers might. */
#include "config.h"
#include "crc32c.h"
#include "loader_files.h"
#include "zarr_meta.h"

#if AFZ_HAVE_BLOSC
#include <blosc.h>
#endif
#if AFZ_HAVE_LZ4
#include <lz4.h>
#endif
#if AFZ_HAVE_ZLIB
#include <zlib.h>
#endif
#if AFZ_HAVE_ZSTD
#include <zstd.h>
#endif

enum { ENCODED_MAX = 65536 };

static size_t encode(const char *codec, const uint8_t *from, size_t bytes, uint8_t *to)
{
        (void)codec;
#if AFZ_HAVE_BLOSC
        if (strcmp(codec, "blosc") == 0)
                return (size_t)blosc_compress_ctx(5, 1, 2, bytes, from, to, ENCODED_MAX, "lz4", 0,
                                                  1);
#endif
#if AFZ_HAVE_LZ4
        if (strcmp(codec, "lz4") == 0) {
                uint32_t size = (uint32_t)bytes;
                memcpy(to, &size, 4);
                return 4 + (size_t)LZ4_compress_default((const char *)from, (char *)to + 4,
                                                        (int)bytes, ENCODED_MAX - 4);
        }
#endif
#if AFZ_HAVE_ZLIB
        if (strcmp(codec, "gzip") == 0 || strcmp(codec, "zlib") == 0) {
                z_stream z = {.next_in = (Bytef *)(uintptr_t)from,
                              .avail_in = (uInt)bytes,
                              .next_out = to,
                              .avail_out = ENCODED_MAX};
                assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, *codec == 'g' ? 31 : 15, 8,
                                              Z_DEFAULT_STRATEGY),
                                 Z_OK);
                assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
                deflateEnd(&z);
                return ENCODED_MAX - z.avail_out;
        }
#endif
#if AFZ_HAVE_ZSTD
        if (strcmp(codec, "zstd") == 0)
                return ZSTD_compress(to, ENCODED_MAX, from, bytes, 3);
#endif
        memcpy(to, from, bytes);
        return bytes;
}

static bool has_codec(const char *codec)
{
        static const struct {
                const char *name;
                bool is_here;
        } rows[] = {{"blosc", AFZ_HAVE_BLOSC},
                    {"lz4", AFZ_HAVE_LZ4},
                    {"gzip", AFZ_HAVE_ZLIB},
                    {"zlib", AFZ_HAVE_ZLIB},
                    {"zstd", AFZ_HAVE_ZSTD}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                if (strcmp(codec, rows[i].name) == 0)
                        return rows[i].is_here;
        return true;
}

static size_t with_sum(uint8_t *data, size_t bytes)
{
        uint32_t sum = afz_crc32c(data, bytes);
        memcpy(data + bytes, &sum, 4);
        return bytes + 4;
}

/* The array of all tests: 10 samples of 4 x 3; element (i, y, x) is 100 i + 10 y + x, in chunks of
 * 4 x 2 x 3. */
enum { SAMPLES = 10, HIGH = 4, WIDE = 3, CHUNK = 4, CHUNK_HIGH = 2 };

static int16_t element(int i, int y, int x)
{
        return (int16_t)(100 * i + 10 * y + x);
}

/* A chunk's memory: beyond the array's edge is what nobody looks at. is_turned: dimensions in
 * reverse. */
static size_t chunk_of(int row, int column, bool is_big, bool is_turned, uint8_t *to)
{
        for (int i = 0; i < CHUNK; i++)
                for (int y = 0; y < CHUNK_HIGH; y++)
                        for (int x = 0; x < WIDE; x++) {
                                int16_t value =
                                        element(row * CHUNK + i, column * CHUNK_HIGH + y, x);
                                int at = is_turned ? (x * CHUNK_HIGH + y) * CHUNK + i
                                                   : (i * CHUNK_HIGH + y) * WIDE + x;
                                to[2 * at + is_big] = (uint8_t)value;
                                to[2 * at + !is_big] = (uint8_t)((uint16_t)value >> 8);
                        }
        return CHUNK * CHUNK_HIGH * WIDE * 2;
}

static void check_all(const struct loaded *l, int missing_row, int16_t fill)
{
        const int16_t *got = (const int16_t *)(const void *)l->field[0];
        for (int i = 0; i < SAMPLES; i++)
                for (int y = 0; y < HIGH; y++)
                        for (int x = 0; x < WIDE; x++) {
                                int16_t want = i / CHUNK == missing_row && y < CHUNK_HIGH
                                                       ? fill
                                                       : element(i, y, x);
                                assert_int_equal(got[(i * HIGH + y) * WIDE + x], want);
                        }
}

static void check_parts(struct loaded *l, int missing_row, int16_t fill)
{
        for (uint64_t part = 0; part <= 4; part++) {
                memset(l->field[0], 0xee, l->dataset.samples * l->dataset.field[0].bytes);
                loaded_fill(l, part, 1);
                assert_int_equal(l->bads, 0);
                check_all(l, missing_row, fill);
        }
}

static void put_v2(const struct files *f, const char *codec, bool is_big, bool is_turned)
{
        char text[1024], name[64];
        uint8_t plain[64], encoded[ENCODED_MAX];
        snprintf(text, sizeof text,
                 "{\"zarr_format\":2,\"shape\":[10,4,3],\"chunks\":[4,2,3],\"dtype\":\"%ci2\","
                 "\"order\":\"%c\",\"fill_value\":-7,"
                 "\"filters\":null,\"compressor\":%s%s%s}",
                 is_big ? '>' : '<', is_turned ? 'F' : 'C', *codec ? "{\"id\":\"" : "null", codec,
                 *codec ? "\"}" : "");
        files_text(f, "a.zarr/.zarray", text);
        for (int row = 0; row < 3; row++)
                for (int column = 0; column < 2; column++) {
                        size_t bytes = chunk_of(row, column, is_big, is_turned, plain);
                        snprintf(name, sizeof name, "a.zarr/%d.%d.0", row, column);
                        files_put(f, name, encoded, encode(codec, plain, bytes, encoded));
                }
}

static void test_version_2(void **state)
{
        (void)state;
        static const char *const codecs[] = {"", "blosc", "zstd", "lz4", "gzip", "zlib"};
        for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
                for (int kind = 0; kind < 4; kind++) {
                        struct files f = files_new();
                        put_v2(&f, codecs[i], kind & 1, kind & 2);
                        if (has_codec(codecs[i])) {
                                struct loaded *l = loaded_all(&f, "a.zarr", NULL);
                                assert_int_equal(l->dataset.chunk_samples, CHUNK);
                                assert_int_equal(l->dataset.field[0].dimensions, 2);
                                check_parts(l, -1, 0);
                                unlink(files_path(&f, "a.zarr/1.0.0"));
                                check_parts(l, 1, -7);
                                loaded_free(l);
                        } else {
                                refused(&f, "a.zarr", NULL, -ENOTSUP, "apt-get install");
                        }
                        files_free(&f);
                }
        }
}

/* inner: codecs of a chunk. shard: several chunks of the first dimension in one file. */
static void put_v3_meta(const struct files *f, const char *inner, bool is_sharded,
                        bool is_index_first)
{
        char text[2048], codecs[1500];
        if (is_sharded)
                snprintf(codecs, sizeof codecs,
                         "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,2,3]"
                         ",\"codecs\":[%s],"
                         "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
                         "\"little\"}},{\"name\":\"crc32c\"}],"
                         "\"index_location\":\"%s\"}}",
                         inner, is_index_first ? "start" : "end");
        snprintf(text, sizeof text,
                 "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[10,4,3],\"data_type\":"
                 "\"int16\",\"fill_value\":-7,"
                 "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":%s}},"
                 "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/"
                 "\"}},\"codecs\":[%s],\"attributes\":{}}",
                 is_sharded ? "[8,4,3]" : "[4,2,3]", is_sharded ? codecs : inner);
        files_text(f, "a.zarr/zarr.json", text);
}

#define BYTES     "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BYTES_BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define TURN      "{\"name\":\"transpose\",\"configuration\":{\"order\":[2,1,0]}}"
#define SUM       "{\"name\":\"crc32c\"}"
#define CODEC(x)  "{\"name\":\"" x "\",\"configuration\":{\"level\":1}}"

struct chain_case {
        const char *codecs, *compressor;
        bool is_big, is_turned, is_summed_before, is_summed_after;
};

static const struct chain_case chains[] = {
        {BYTES, ""},
        {BYTES_BIG, "", .is_big = true},
        {TURN "," BYTES, "", .is_turned = true},
        {BYTES "," SUM, "", .is_summed_before = true},
        {BYTES "," CODEC("zstd"), "zstd"},
        {BYTES "," CODEC("gzip"), "gzip"},
        {BYTES "," CODEC("blosc"), "blosc"},
        {BYTES "," CODEC("numcodecs.lz4"), "lz4"},
        {BYTES "," CODEC("zstd") "," SUM, "zstd", .is_summed_after = true},
        {TURN "," BYTES_BIG "," SUM "," CODEC("gzip") "," SUM, "gzip", true, true, true, true},
};

static size_t encoded_chunk(const struct chain_case *c, int row, int column, uint8_t *to)
{
        uint8_t plain[64];
        size_t bytes = chunk_of(row, column, c->is_big, c->is_turned, plain);
        bytes = c->is_summed_before ? with_sum(plain, bytes) : bytes;
        bytes = encode(c->compressor, plain, bytes, to);
        return c->is_summed_after ? with_sum(to, bytes) : bytes;
}

/* Shards of 2 x 2 chunks, with a hole before the first one. */
static void put_shard(const struct files *f, const struct chain_case *c, int shard,
                      bool is_index_first, int missing_row)
{
        static uint8_t data[4 * ENCODED_MAX];
        char name[64];
        uint64_t index[8];
        size_t at = is_index_first ? sizeof index + 4 : 5;
        for (int i = 0; i < 4; i++) {
                int row = 2 * shard + i / 2;
                index[2 * i] = index[2 * i + 1] = UINT64_MAX;
                if (row > 2 || (row == missing_row && i % 2 == 0))
                        continue;
                index[2 * i] = at;
                index[2 * i + 1] = encoded_chunk(c, row, i % 2, data + at);
                at += index[2 * i + 1];
        }
        size_t index_at = is_index_first ? 0 : at;
        memcpy(data + index_at, index, sizeof index);
        size_t end = index_at + with_sum(data + index_at, sizeof index);
        snprintf(name, sizeof name, "a.zarr/c/%d/0/0", shard);
        files_put(f, name, data, is_index_first ? at : end);
}

static void test_version_3(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
                const struct chain_case *c = &chains[i];
                for (int shards = 0; shards < 3 && has_codec(c->compressor); shards++) {
                        struct files f = files_new();
                        char name[64];
                        uint8_t encoded[ENCODED_MAX];
                        put_v3_meta(&f, c->codecs, shards > 0, shards == 2);
                        for (int row = 0; row < 3 && shards == 0; row++)
                                for (int column = 0; column < 2; column++) {
                                        snprintf(name, sizeof name, "a.zarr/c/%d/%d/0", row,
                                                 column);
                                        files_put(&f, name, encoded,
                                                  encoded_chunk(c, row, column, encoded));
                                }
                        for (int shard = 0; shard < 2 && shards > 0; shard++)
                                put_shard(&f, c, shard, shards == 2, 1);
                        struct loaded *l = loaded_all(&f, "a.zarr", NULL);
                        check_parts(l, shards > 0 ? 1 : -1, -7);
                        loaded_free(l);
                        files_free(&f);
                }
        }
}

/* Each does something to the files of a good array; then its samples 4 to 7 are bad, and no others.
 */
struct harm {
        const char *what;
        size_t cut;    /* to so many bytes */
        size_t at;     /* a byte that is turned over; 0: none */
        size_t append; /* bytes */
};

static void check_harm(const char *codec, const struct harm *harm)
{
        struct files f = files_new();
        static uint8_t bytes[ENCODED_MAX + 4096];
        uint8_t plain[64];
        put_v2(&f, codec, false, false);
        struct loaded *l = loaded_all(&f, "a.zarr", NULL);
        size_t n = encode(codec, plain, chunk_of(1, 0, false, false, plain), bytes);
        if (harm->at)
                bytes[harm->at % n] ^= 0xff;
        n = harm->cut < n ? harm->cut : n;
        memset(bytes + n, 0, harm->append);
        files_put(&f, "a.zarr/1.0.0", bytes, n + harm->append);
        loaded_fill(l, 0, 1);
        if (l->bads != 4 || memchr(l->bad, 1, SAMPLES) != l->bad + 4 || !strstr(l->why, "1.0.0"))
                fail_msg("%s %s: %d bad, %s", codec, harm->what, (int)l->bads, l->why);
        loaded_free(l);
        files_free(&f);
}

static void test_damaged_chunks(void **state)
{
        (void)state;
        static const char *const codecs[] = {"", "blosc", "zstd", "lz4", "gzip"};
        static const struct harm harms[] = {
                {"empty", .cut = 0},
                {"cut to one byte", .cut = 1},
                {"cut in the middle", .cut = 20},
                {"bytes behind it", .cut = SIZE_MAX, .append = 100},
        };
        for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
                for (size_t k = 0; k < sizeof harms / sizeof *harms && has_codec(codecs[i]); k++)
                        check_harm(codecs[i], &harms[k]);
        if (AFZ_HAVE_ZLIB)
                check_harm("gzip", &(struct harm){"a byte is another", .cut = SIZE_MAX, .at = 25});
}

/* Chunks that say to be larger or smaller than a chunk is. */
static void test_wrong_size(void **state)
{
        (void)state;
        static const char *const codecs[] = {"blosc", "zstd", "lz4", "gzip"};
        static uint8_t plain[ENCODED_MAX / 2], encoded[ENCODED_MAX];
        for (size_t i = 0; i < 4; i++)
                for (size_t bytes = 47; bytes <= 4800; bytes += 4753) {
                        if (!has_codec(codecs[i]))
                                continue;
                        struct files f = files_new();
                        put_v2(&f, codecs[i], false, false);
                        files_put(&f, "a.zarr/1.0.0", encoded,
                                  encode(codecs[i], plain, bytes, encoded));
                        struct loaded *l = loaded_all(&f, "a.zarr", NULL);
                        assert_int_equal(l->bads, 4);
                        loaded_free(l);
                        files_free(&f);
                }
}

static void test_bad_shards(void **state)
{
        (void)state;
        static const struct {
                uint64_t at, bytes;
                bool is_sum_wrong;
        } entries[] = {
                {5, 1 << 20, false},     {UINT64_MAX - 4, 8, false},
                {UINT64_MAX, 48, false}, {5, UINT64_MAX, false},
                {0, 0, false},           {1 << 20, 48, false},
                {5, 47, false},          {5, 48, true},
        };
        for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
                struct files f = files_new();
                uint8_t data[5 + 4 * 48 + 68];
                uint64_t index[8] = {entries[i].at, entries[i].bytes};
                put_v3_meta(&f, BYTES, true, false);
                put_shard(&f, &chains[0], 1, false, -1);
                memset(index + 2, 0xff, sizeof index - 16);
                memset(data, 0, sizeof data);
                memcpy(data + sizeof data - 68, index, sizeof index);
                with_sum(data + sizeof data - 68, sizeof index);
                data[sizeof data - 1] ^= entries[i].is_sum_wrong;
                files_put(&f, "a.zarr/c/0/0/0", data, sizeof data);
                struct loaded *l = loaded_all(&f, "a.zarr", NULL);
                if (l->bads != (entries[i].is_sum_wrong ? 8 : 4))
                        fail_msg("entry %zu: %d bad", i, (int)l->bads);
                files_cut(&f, "a.zarr/c/0/0/0", 10); /* too short for an index */
                loaded_fill(l, 0, 1);
                assert_int_equal(l->bads, 8);
                loaded_free(l);
                files_free(&f);
        }
}

static void test_odd_files(void **state)
{
        (void)state;
        struct files f = files_new();
        put_v2(&f, "", false, false);
        unlink(files_path(&f, "a.zarr/1.0.0"));
        assert_int_equal(mkfifo(files_path(&f, "a.zarr/1.0.0"), 0600),
                         0); /* must not be waited for */
        unlink(files_path(&f, "a.zarr/0.1.0"));
        assert_int_equal(mkdir(files_path(&f, "a.zarr/0.1.0"), 0700), 0);
        struct loaded *l = loaded_all(&f, "a.zarr", NULL);
        assert_int_equal(l->bads, 8);
        loaded_free(l);
        files_free(&f);
}

static void test_group(void **state)
{
        (void)state;
        struct files f = files_new();
        put_v2(&f, "", false, false);
        files_text(&f, "g.zarr/.zgroup", "{\"zarr_format\":2}");
        refused(&f, "g.zarr", NULL, -ENODATA, "without arrays");
        files_text(&f, "g.zarr/x/.zarray", "{}");
        refused(&f, "g.zarr", NULL, -EISDIR, "(x): name one of them");
        files_text(&f, "h.zarr/zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\"}");
        files_text(&f, "h.zarr/y/zarr.json", "{}");
        refused(&f, "h.zarr", NULL, -EISDIR, "h.zarr/y");
        files_free(&f);
}

#define V3_SHAPE(shape, chunk, type)                                                               \
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape ",\"data_type\":" type       \
        ",\"fill_value\":0,"                                                                       \
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" chunk "}},"     \
        "\"chunk_key_encoding\":{\"name\":\"default\"},\"codecs\":[" BYTES "]}"
#define V3_CODECS(codecs)                                                                          \
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[8,4],\"data_type\":\"int16\","      \
        "\"fill_value\":0,"                                                                        \
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4,4]}},"         \
        "\"chunk_key_encoding\":{\"name\":\"default\"},\"codecs\":" codecs "}"
#define V2(shape, chunks, more)                                                                    \
        "{\"zarr_format\":2,\"shape\":" shape ",\"chunks\":" chunks ",\"order\":\"C\"," more "}"

static void test_hostile_metadata(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int error;
        } rows[] = {
                {"", -EBADMSG},
                {"{", -EBADMSG},
                {"[]", -ENOTSUP},
                {"{\"zarr_format\":4}", -ENOTSUP},
                {"{\"zarr_format\":3,\"zarr_format\":3}", -EBADMSG},
                {V3_SHAPE("[10]", "[4]", "\"int16\""), 0},
                {V3_SHAPE("[]", "[]", "\"int16\""), -EBADMSG},
                {V3_SHAPE("[0,4]", "[4,4]", "\"int16\""), -EBADMSG},
                {V3_SHAPE("[-1,4]", "[4,4]", "\"int16\""), -EBADMSG},
                {V3_SHAPE("[1.5]", "[4]", "\"int16\""), -EBADMSG},
                {V3_SHAPE("[10]", "[0]", "\"int16\""), -EBADMSG},
                {V3_SHAPE("[10]", "[4,4]", "\"int16\""), -EBADMSG},
                {V3_SHAPE("[9223372036854775808]", "[4]", "\"int16\""), -EBADMSG},
                {V3_SHAPE("[9223372036854775807]", "[4]", "\"int16\""), -EOVERFLOW},
                {V3_SHAPE("[4294967296,4294967296]", "[4,4]", "\"int16\""), -EOVERFLOW},
                {V3_SHAPE("[4]", "[4611686018427387904]", "\"int16\""), -EOVERFLOW},
                {V3_SHAPE("[1,1,1,1,1,1,1,1,1]", "[1,1,1,1,1,1,1,1,1]", "\"int16\""), 0},
                {V3_SHAPE("[1,1,1,1,1,1,1,1,1,1]", "[1,1,1,1,1,1,1,1,1,1]", "\"int16\""), -EBADMSG},
                {V3_SHAPE("[10]", "[4]", "\"complex64\""), -ENOTSUP},
                {V3_SHAPE("[10]", "[4]", "{\"name\":\"struct\"}"), -ENOTSUP},
                {V3_CODECS("[]"), -EBADMSG},
                {V3_CODECS("[" SUM "]"), -EBADMSG},
                {V3_CODECS("[{\"name\":\"bytes\"}]"), -EBADMSG},
                {V3_CODECS("[" BYTES "," BYTES "]"), -EBADMSG},
                {V3_CODECS("[" BYTES "," CODEC("bz2") "]"), -ENOTSUP},
                {V3_CODECS("[" BYTES "," CODEC("zstd") "," CODEC("zstd") "]"), -ENOTSUP},
                {V3_CODECS("[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,0]}}," BYTES
                           "]"),
                 -EBADMSG},
                {V3_CODECS("[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,64]}}," BYTES
                           "]"),
                 -EBADMSG},
                {V3_CODECS("[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[3,"
                           "4],\"codecs\":[" BYTES "],"
                           "\"index_codecs\":[" BYTES "]}}]"),
                 -EBADMSG},
                {V3_CODECS("[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,"
                           "4],\"codecs\":[" BYTES "],"
                           "\"index_codecs\":[" BYTES_BIG "]}}]"),
                 -ENOTSUP},
                {V3_CODECS("[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,"
                           "4],\"codecs\":[" BYTES "],"
                           "\"index_codecs\":[" BYTES "]}},\"crc32c\"]"),
                 -ENOTSUP},
                {V2("[8]", "[4]", "\"dtype\":\"<i2\",\"fill_value\":0"), 0},
                {V2("[8]", "[4]",
                    "\"dtype\":\"<i2\",\"fill_value\":null,\"filters\":[{\"id\":\"delta\"}]"),
                 -ENOTSUP},
                {V2("[8]", "[4]", "\"dtype\":\"<i2\",\"dimension_separator\":\"/../\""), -EBADMSG},
                {V2("[8]", "[4]", "\"dtype\":\"<i2\",\"compressor\":{\"id\":\"lzma\"}"), -ENOTSUP},
                {V2("[8]", "[4]", "\"dtype\":\"|O\""), -ENOTSUP},
                {V2("[8]", "[4]", "\"dtype\":[[\"a\",\"<i2\"]]"), -ENOTSUP},
                {V2("[8]", "[4]", "\"dtype\":\"|u1\",\"fill_value\":256"), -ENOTSUP},
                {V2("[8]", "[4]", "\"dtype\":\"|u1\",\"fill_value\":\"NaN\""), -ENOTSUP},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_zarr zarr;
                char why[AFZ_WHY_MAX] = "";
                int r = afz_zarr_parse(rows[i].text, strlen(rows[i].text), &zarr, why);
                if (r != rows[i].error || (r < 0 && !*why))
                        fail_msg("%s: %d instead of %d: %s", rows[i].text, r, rows[i].error, why);
        }
}

static void test_fill_values(void **state)
{
        (void)state;
        static const struct {
                const char *type, *value;
                uint64_t bits;
        } rows[] = {
                {"float32", "\"NaN\"", 0x7fc00000},
                {"float32", "1.5", 0x3fc00000},
                {"float32", "\"0x7fc00001\"", 0x7fc00001},
                {"float16", "65504", 0x7bff},
                {"float16", "65520", 0x7c00},
                {"float16", "0.1", 0x2e66},
                {"float16", "1e-7", 0x0002},
                {"float16", "\"-Infinity\"", 0xfc00},
                {"float64", "-2", 0xc000000000000000},
                {"bool", "true", 1},
                {"int8", "-1", 0xff},
                {"int64", "-1", UINT64_MAX},
                {"uint16", "65535", 65535},
                {"uint8", "3.0", 3},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                char text[1024], why[AFZ_WHY_MAX] = "";
                struct afz_zarr zarr;
                uint64_t bits;
                snprintf(text, sizeof text,
                         "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[8],\"data_type\":"
                         "\"%s\",\"fill_value\":%s,"
                         "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":["
                         "4]}},"
                         "\"chunk_key_encoding\":{\"name\":\"v2\"},\"codecs\":[" BYTES "]}",
                         rows[i].type, rows[i].value);
                if (afz_zarr_parse(text, strlen(text), &zarr, why) != 0)
                        fail_msg("%s %s: %s", rows[i].type, rows[i].value, why);
                memcpy(&bits, zarr.fill, 8);
                assert_int_equal(bits, rows[i].bits);
        }
}

static void test_large_plain_chunks(void **state)
{
        (void)state;
        struct files f = files_new();
        uint8_t *data = malloc(4 << 20);
        for (size_t i = 0; i < 4 << 20; i++)
                data[i] = (uint8_t)(i / 1024);
        files_text(&f, "a.zarr/.zarray",
                   V2("[4096,1024]", "[4096,1024]", "\"dtype\":\"|u1\",\"fill_value\":0"));
        files_put(&f, "a.zarr/0.0", data, 4 << 20);
        struct loaded *l = loaded_all(&f, "a.zarr", NULL);
        assert_true(l->dataset.chunk_samples <=
                    1024); /* of one that is not compressed, parts are read */
        assert_int_equal(l->bads, 0);
        assert_memory_equal(l->field[0], data, 4 << 20);
        files_cut(&f, "a.zarr/0.0", 1 << 20); /* while it is open */
        loaded_fill(l, 0, 1);
        assert_true(l->bads >= 3072);
        loaded_free(l);
        free(data);
        files_free(&f);
}

static void test_crc32c(void **state)
{
        (void)state;
        assert_int_equal(afz_crc32c((const uint8_t *)"123456789", 9), 0xe3069283);
        assert_int_equal(afz_crc32c(NULL, 0), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_crc32c),
                cmocka_unit_test(test_version_2),
                cmocka_unit_test(test_version_3),
                cmocka_unit_test(test_damaged_chunks),
                cmocka_unit_test(test_wrong_size),
                cmocka_unit_test(test_bad_shards),
                cmocka_unit_test(test_odd_files),
                cmocka_unit_test(test_group),
                cmocka_unit_test(test_hostile_metadata),
                cmocka_unit_test(test_fill_values),
                cmocka_unit_test(test_large_plain_chunks),
        };
        if (!AFZ_HAVE_JANSSON) {
                puts("this build has no jansson, without which there is no Zarr");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
