/* The list of codecs in Zarr v3: from the array's side to the file's. */
#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "zarr_meta.h"

#if AFZ_HAVE_JANSSON
#include <jansson.h>

struct reading {
        struct afz_zarr *zarr;
        bool has_bytes; /* the array's side is done: what follows works on bytes */
        bool is_inside; /* of a shard */
        char *why;
};

static int list_read(struct reading *r, const json_t *list);

static int read_bytes(struct reading *r, const json_t *about)
{
        const char *endian = json_string_value(json_object_get(about, "endian"));
        bool is_single = afz_dtype_bytes(r->zarr->dtype) == 1;
        if (r->has_bytes ||
            (endian && strcmp(endian, "little") != 0 && strcmp(endian, "big") != 0) ||
            (!endian && !is_single))
                return afz_why(r->why, -EBADMSG, "its codec \"bytes\" makes no sense");
        r->zarr->is_swapped = !is_single && *endian == 'b';
        r->has_bytes = true;
        return 0;
}

static int read_transpose(struct reading *r, const json_t *about)
{
        const json_t *order = json_object_get(about, "order");
        uint32_t n = r->zarr->dimensions, seen = 0;
        for (uint32_t i = 0; i < n && json_array_size(order) == n; i++) {
                const json_t *value = json_array_get(order, i);
                json_int_t at = json_is_integer(value) ? json_integer_value(value) : -1;
                if (at < 0 || at >= (json_int_t)n || seen >> at & 1)
                        break;
                seen |= 1u << at;
                r->zarr->order[i] = (uint32_t)at;
        }
        for (uint32_t i = 0; i < n; i++)
                if (r->has_bytes || !(seen >> i & 1))
                        return afz_why(r->why, -EBADMSG, "its codec \"transpose\" makes no sense");
        return 0;
}

static int read_index_codecs(struct reading *r, const json_t *list)
{
        struct afz_zarr index = {.dtype = AFZ_U64, .dimensions = 1};
        struct reading inner = {.zarr = &index, .is_inside = true, .why = r->why};
        int error = list_read(&inner, list);
        if (error < 0)
                return error;
        if (index.is_swapped || index.chain.compressor != AFZ_CODEC_NONE ||
            index.chain.outer_sums > 0 || index.chain.inner_sums > 1)
                return afz_why(r->why, -ENOTSUP,
                               "the index of its shards is written in a way that is not known");
        r->zarr->has_index_sum = index.chain.inner_sums > 0;
        return 0;
}

static int read_sharding(struct reading *r, const json_t *about)
{
        struct afz_zarr *z = r->zarr;
        const char *place = json_string_value(json_object_get(about, "index_location"));
        if (r->is_inside || r->has_bytes)
                return afz_why(r->why, -ENOTSUP, "it has shards inside of shards");
        if (afz_zarr_sizes(json_object_get(about, "chunk_shape"), z->dimensions, z->chunk) < 0)
                return afz_why(r->why, -EBADMSG,
                               "the sizes of the chunks in its shards make no sense");
        for (uint32_t i = 0; i < z->dimensions; i++)
                if (z->file[i] % z->chunk[i] != 0 || z->order[i] != i)
                        return afz_why(r->why, -EBADMSG,
                                       "its shards do not consist of whole chunks");
        if (place && strcmp(place, "start") != 0 && strcmp(place, "end") != 0)
                return afz_why(r->why, -EBADMSG,
                               "the index of its shards is neither at the start nor at the end");
        z->is_index_first = place && *place == 's';
        z->shard_chunks = 1; /* counted when all sizes are known to fit */
        int error = read_index_codecs(r, json_object_get(about, "index_codecs"));
        if (error < 0)
                return error;
        struct reading inner = {.zarr = z, .is_inside = true, .why = r->why};
        error = list_read(&inner, json_object_get(about, "codecs"));
        r->has_bytes = true;
        return error;
}

static int read_bytes_codec(struct reading *r, const char *name)
{
        struct afz_chain *chain = &r->zarr->chain;
        if (!r->has_bytes)
                return afz_why(r->why, -EBADMSG, "its codec %.40s comes before there are bytes",
                               name);
        if (!r->is_inside && r->zarr->shard_chunks > 0)
                return afz_why(r->why, -ENOTSUP,
                               "its shards as a whole are compressed or summed: they cannot be "
                               "read in parts");
        if (strcmp(name, "crc32c") == 0) {
                uint32_t *sums = chain->compressor == AFZ_CODEC_NONE ? &chain->inner_sums
                                                                     : &chain->outer_sums;
                return ++*sums > 4 ? afz_why(r->why, -ENOTSUP,
                                             "it has more checksums than anyone needs")
                                   : 0;
        }
        int codec = afz_codec_named(name);
        if (codec < 0)
                return afz_why(r->why, -ENOTSUP,
                               "it is written with the codec %.40s; bytes, transpose, "
                               "sharding_indexed, blosc, zstd, "
                               "lz4, gzip, zlib and crc32c can be read",
                               name);
        if (chain->compressor != AFZ_CODEC_NONE)
                return afz_why(r->why, -ENOTSUP, "it is compressed twice");
        chain->compressor = (enum afz_codec)codec;
        return 0;
}

static int codec_read(struct reading *r, const json_t *codec)
{
        const char *name = json_is_string(codec)
                                   ? json_string_value(codec)
                                   : json_string_value(json_object_get(codec, "name"));
        const json_t *about = json_object_get(codec, "configuration");
        if (!name)
                return afz_why(r->why, -EBADMSG, "one of its codecs has no name");
        if (strcmp(name, "bytes") == 0)
                return read_bytes(r, about);
        if (strcmp(name, "transpose") == 0)
                return read_transpose(r, about);
        if (strcmp(name, "sharding_indexed") == 0)
                return read_sharding(r, about);
        return read_bytes_codec(r, name);
}

static int list_read(struct reading *r, const json_t *list)
{
        enum { CODECS_MAX = 16 };
        size_t count = json_array_size(list);
        int error = count == 0 || count > CODECS_MAX
                            ? afz_why(r->why, -EBADMSG, "its list of codecs makes no sense")
                            : 0;
        for (size_t i = 0; i < count && error == 0; i++)
                error = codec_read(r, json_array_get(list, i));
        if (error == 0 && !r->has_bytes)
                return afz_why(r->why, -EBADMSG,
                               "none of its codecs says how numbers become bytes");
        return error;
}

int afz_zarr_codecs(const json_t *list, struct afz_zarr *zarr, char why[AFZ_WHY_MAX])
{
        struct reading r = {.zarr = zarr, .why = why};
        return list_read(&r, list);
}

/* The same bits as NumPy would have: rounded to the nearest, ties to even. */
static uint16_t half_of(double value)
{
        uint16_t sign = signbit(value) ? 0x8000 : 0;
        value = fabs(value);
        if (isnan(value))
                return 0x7e00;
        if (value >= 65520) /* half way to what would be beyond 65504 */
                return sign | 0x7c00;
        if (value < 0x1p-14)
                return sign | (uint16_t)nearbyint(value * 0x1p24);
        int exponent;
        double part = frexp(value, &exponent); /* 0.5 to 1 */
        return (uint16_t)(sign | (((exponent + 13) << 10) + (int)nearbyint(part * 2048)));
}

static int number_of(const json_t *value, double *ret)
{
        const char *text = json_string_value(value);
        if (json_is_number(value))
                *ret = json_number_value(value);
        else if (text && strcmp(text, "NaN") == 0)
                *ret = NAN;
        else if (text && strcmp(text, "Infinity") == 0)
                *ret = INFINITY;
        else if (text && strcmp(text, "-Infinity") == 0)
                *ret = -INFINITY;
        else
                return -EINVAL;
        return 0;
}

static int fill_float(const json_t *value, enum afz_dtype dtype, uint8_t ret[8])
{
        double number;
        if (number_of(value, &number) < 0)
                return -EINVAL;
        float single = (float)number;
        uint16_t half = half_of(number);
        if (dtype == AFZ_F64)
                memcpy(ret, &number, sizeof number);
        else if (dtype == AFZ_F32)
                memcpy(ret, &single, sizeof single);
        else
                memcpy(ret, &half, sizeof half);
        return 0;
}

/* "0x7fc00000": the bits themselves. */
static int fill_bits(const char *text, uint64_t each, uint8_t ret[8])
{
        char *end;
        if (strncmp(text, "0x", 2) != 0 || strlen(text) != 2 + 2 * each ||
            strspn(text + 2, "0123456789abcdefABCDEF") != 2 * each)
                return -EINVAL;
        uint64_t bits = htole64(strtoull(text + 2, &end, 16));
        memcpy(ret, &bits, each);
        return 0;
}

int afz_zarr_fill(const json_t *value, enum afz_dtype dtype, uint8_t ret[8])
{
        static const struct {
                int64_t least, most;
        } range[AFZ_DTYPE_COUNT] = {
                [AFZ_U8] = {0, UINT8_MAX},   [AFZ_I8] = {INT8_MIN, INT8_MAX},
                [AFZ_U16] = {0, UINT16_MAX}, [AFZ_I16] = {INT16_MIN, INT16_MAX},
                [AFZ_U32] = {0, UINT32_MAX}, [AFZ_I32] = {INT32_MIN, INT32_MAX},
                [AFZ_U64] = {0, INT64_MAX},  [AFZ_I64] = {INT64_MIN, INT64_MAX},
                [AFZ_BOOL] = {0, 1},
        };
        uint64_t each = afz_dtype_bytes(dtype);
        memset(ret, 0, 8);
        if (!value || json_is_null(value))
                return 0;
        if (json_is_string(value) && strncmp(json_string_value(value), "0x", 2) == 0)
                return fill_bits(json_string_value(value), each, ret);
        if (dtype == AFZ_F16 || dtype == AFZ_F32 || dtype == AFZ_F64)
                return fill_float(value, dtype, ret);
        bool is_whole = json_is_real(value) &&
                        json_real_value(value) == rint(json_real_value(value)) &&
                        fabs(json_real_value(value)) < 0x1p53;
        int64_t number = json_is_boolean(value) ? json_boolean_value(value)
                         : is_whole             ? (int64_t)json_real_value(value)
                                                : json_integer_value(value);
        if ((!json_is_integer(value) && !json_is_boolean(value) && !is_whole) ||
            number < range[dtype].least || number > range[dtype].most)
                return -EINVAL;
        uint64_t bits = htole64((uint64_t)number);
        memcpy(ret, &bits, each); /* both machines that we build for are little-endian */
        return 0;
}
#endif
