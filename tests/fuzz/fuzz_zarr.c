/* Descriptions of Zarr arrays put together from parts that are right, wrong and large, and any
 * text; and any bytes as the chunks and shards of arrays that are described well. */
#include <fcntl.h>
#include <sys/stat.h>

#include "loader_fuzz.h"
#include "zarr_meta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
        const uint8_t *at, *end;
};

static unsigned next(struct input *in)
{
        return in->at < in->end ? *in->at++ : 0;
}

#define PICK(in, list) (list)[next(in) % (sizeof(list) / sizeof *(list))]

static const char *const sizes[] = {"[8]",
                                    "[8,4]",
                                    "[3,2]",
                                    "[1]",
                                    "[4,4,4]",
                                    "[0]",
                                    "[-1]",
                                    "[9223372036854775807]",
                                    "[4294967296,4294967296]",
                                    "[1,1,1,1,1,1,1,1,1]",
                                    "[1,1,1,1,1,1,1,1,1,1]",
                                    "[]",
                                    "{}",
                                    "[1.5]",
                                    "[2,3]"};
static const char *const types[] = {"uint8",     "int16", "float32", "float64", "bool", "float16",
                                    "complex64", "<i2",   ">f4",     "|u1",     "|O"};
static const char *const fills[] = {"0",    "1",    "-1", "1.5",   "\"NaN\"", "\"0x7fc0\"",
                                    "true", "null", "[]", "1e300", "256"};
static const char *const codecs[] = {
        "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}",
        "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}",
        "{\"name\":\"bytes\"}",
        "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}",
        "{\"name\":\"transpose\",\"configuration\":{\"order\":[0]}}",
        "{\"name\":\"transpose\",\"configuration\":{\"order\":[0,99]}}",
        "\"crc32c\"",
        "{\"name\":\"zstd\"}",
        "{\"name\":\"blosc\"}",
        "{\"name\":\"gzip\"}",
        "{\"name\":\"numcodecs.lz4\"}",
        "{\"name\":\"unknown\"}",
        "{}",
};

static size_t put_codecs(struct input *in, char *to, size_t room)
{
        size_t n = 0;
        for (unsigned i = 0, count = 1 + next(in) % 3; i < count; i++)
                n += (size_t)snprintf(to + n, room - n, "%s%s", i ? "," : "", PICK(in, codecs));
        return n;
}

static void compose(struct input *in, char *to, size_t room)
{
        char list[1500], inner[600];
        size_t n = put_codecs(in, list, 600);
        if (next(in) & 1) {
                put_codecs(in, inner, sizeof inner);
                snprintf(list, sizeof list,
                         "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":%s,"
                         "\"codecs\":[%s],\"index_codecs\":[%s%s]}}",
                         PICK(in, sizes), inner, codecs[0], next(in) & 1 ? ",\"crc32c\"" : "");
                n = strlen(list);
        }
        require(n < sizeof list);
        const char *shape = PICK(in, sizes), *chunk = PICK(in, sizes), *type = PICK(in, types),
                   *fill = PICK(in, fills);
        if (next(in) & 1)
                snprintf(to, room,
                         "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":%s,\"data_type\":\"%"
                         "s\",\"fill_value\":%s,\"chunk_grid\":{\"name\":"
                         "\"regular\",\"configuration\":{\"chunk_shape\":%s}},\"chunk_key_"
                         "encoding\":{\"name\":\"default\"},\"codecs\":[%s]}",
                         shape, type, fill, chunk, list);
        else
                snprintf(to, room,
                         "{\"zarr_format\":2,\"shape\":%s,\"chunks\":%s,\"dtype\":\"%s\",\"fill_"
                         "value\":%s,\"order\":\"%c\",\"filters\":null,"
                         "\"compressor\":{\"id\":\"%s\"}}",
                         shape, chunk, type, fill, next(in) & 1 ? 'C' : 'F',
                         next(in) & 1 ? "zlib" : "lz4");
}

static void check_meta(const struct afz_zarr *z)
{
        require(z->dimensions >= 1 && z->dimensions <= AFZ_ZARR_DIMENSIONS &&
                (unsigned)z->dtype < AFZ_DTYPE_COUNT);
        uint64_t bytes = afz_dtype_bytes(z->dtype), shard = 1;
        uint32_t seen = 0;
        char key[256];
        for (uint32_t i = 0; i < z->dimensions; i++) {
                require(z->shape[i] > 0 && z->chunk[i] > 0 && z->file[i] % z->chunk[i] == 0 &&
                        z->order[i] < z->dimensions);
                seen |= 1u << z->order[i];
                bytes *= z->chunk[i], shard *= z->file[i] / z->chunk[i];
        }
        require(seen == (1u << z->dimensions) - 1 && bytes == z->chunk_bytes);
        require(z->shard_chunks == 0 ? shard == 1 : shard == z->shard_chunks);
        afz_zarr_key(z, z->shape, key);
        require(!strstr(key, ".."));
}

static void check_group(const char *text, size_t bytes)
{
        struct afz_zarr_names names;
        if (afz_zarr_group(text, bytes, &names) < 0)
                return;
        require(names.count >= 1 && names.count <= AFZ_FIELDS_MAX);
        for (uint32_t i = 0; i < names.count; i++)
                require(names.name[i][0] && names.name[i][0] != '.' && !strchr(names.name[i], '/'));
}

static void put_file(const char *folder, const char *name, const void *data, size_t bytes)
{
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        require(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
        close(fd);
}

static char folder[] = "/tmp/afz-fuzz-XXXXXX";

static void remove_folder(void)
{
        static const char *const names[] = {".zarray", "zarr.json", "0.0", "1.0",
                                            "c.0.0",   "c.1.0",     "."};
        char path[64];
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                snprintf(path, sizeof path, "%s/%s", folder, names[i]);
                remove(i + 1 < sizeof names / sizeof *names ? path : folder);
        }
}

static const char *own_folder(void)
{
        static bool is_made;
        if (!is_made) {
                require(mkdtemp(folder) != NULL);
                atexit(remove_folder);
                is_made = true;
        }
        return folder;
}

#define SHARDED(inner)                                                                             \
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[12,4],\"data_type\":\"int16\","     \
        "\"fill_value\":0,\"chunk_grid\":{\"name\":\"regular\","                                   \
        "\"configuration\":{\"chunk_shape\":[8,4]}},\"chunk_key_encoding\":{\"name\":\"default\"," \
        "\"configuration\":{\"separator\":\".\"}},"                                                \
        "\"codecs\":[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,2],"     \
        "\"index_location\":\"start\",\"codecs\":[{\"name\":"                                      \
        "\"bytes\",\"configuration\":{\"endian\":\"big\"}}" inner                                  \
        "],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":"                   \
        "\"little\"}}]}}]}"
#define WHOLE(compressor)                                                                          \
        "{\"zarr_format\":2,\"shape\":[9,3],\"chunks\":[5,3],\"dtype\":\"<i2\",\"fill_value\":1,"  \
        "\"order\":\"F\",\"filters\":null,\"compressor\":" compressor "}"

static void fuzz_chunks(struct input *in)
{
        static const char *const metas[] = {
                WHOLE("null"),
                WHOLE("{\"id\":\"blosc\"}"),
                WHOLE("{\"id\":\"lz4\"}"),
                WHOLE("{\"id\":\"zstd\"}"),
                WHOLE("{\"id\":\"gzip\"}"),
                SHARDED(""),
                SHARDED(",{\"name\":\"zstd\"}"),
                SHARDED(",\"crc32c\""),
        };
        static unsigned last = UINT32_MAX;
        const struct afz_loader_options options = {.format = "zarr", .budget_bytes = 1 << 20};
        unsigned which = next(in) % (sizeof metas / sizeof *metas);
        bool is_v3 = which >= 5;
        if (which != last) {
                char path[64];
                snprintf(path, sizeof path, "%s/zarr.json", own_folder());
                unlink(path);
                put_file(own_folder(), is_v3 ? "zarr.json" : ".zarray", metas[which],
                         strlen(metas[which]));
                last = which;
        }
        put_file(own_folder(), is_v3 ? "c.0.0" : "0.0", in->at, (size_t)(in->end - in->at));
        fuzz_dataset(own_folder(), &options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input in = {data, data + size};
        struct afz_zarr zarr;
        char why[AFZ_WHY_MAX] = "", text[4096];
        if (size > 4096)
                return 0;
        if (next(&in) & 1) {
                fuzz_chunks(&in);
                return 0;
        }
        if (afz_zarr_parse((const char *)data, size, &zarr, why) == 0)
                check_meta(&zarr);
        check_group((const char *)data, size);
        compose(&in, text, sizeof text);
        int r = afz_zarr_parse(text, strlen(text), &zarr, why);
        require(r == 0 || *why);
        if (r == 0)
                check_meta(&zarr);
        return 0;
}
