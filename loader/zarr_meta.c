#include "zarr_meta.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config.h"

void afz_zarr_key(const struct afz_zarr *zarr, const uint64_t at[AFZ_ZARR_DIMENSIONS],
                  char ret[256])
{
        int n = snprintf(ret, 256, "%s", zarr->has_prefix ? "c" : "");
        for (uint32_t i = 0; i < zarr->dimensions; i++) {
                if (i > 0 || zarr->has_prefix)
                        ret[n++] = zarr->separator;
                n += snprintf(ret + n, 256 - (size_t)n, "%llu", (unsigned long long)at[i]);
        }
}

#if AFZ_HAVE_JANSSON
#include <jansson.h>

static const struct {
        const char *v2, *v3; /* v2: without the sign of the byte order */
        enum afz_dtype dtype;
} types[] = {
        {"b1", "bool", AFZ_BOOL},   {"i1", "int8", AFZ_I8},     {"i2", "int16", AFZ_I16},
        {"i4", "int32", AFZ_I32},   {"i8", "int64", AFZ_I64},   {"u1", "uint8", AFZ_U8},
        {"u2", "uint16", AFZ_U16},  {"u4", "uint32", AFZ_U32},  {"u8", "uint64", AFZ_U64},
        {"f2", "float16", AFZ_F16}, {"f4", "float32", AFZ_F32}, {"f8", "float64", AFZ_F64},
};

static int type_named(const char *name, bool is_v3, enum afz_dtype *ret)
{
        for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
                if (strcmp(name, is_v3 ? types[i].v3 : types[i].v2) == 0) {
                        *ret = types[i].dtype;
                        return 0;
                }
        return -ENOENT;
}

const char *afz_zarr_type_name(enum afz_dtype dtype)
{
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
                if (types[i].dtype == dtype)
                        return types[i].v3;
        return NULL;
}

int afz_zarr_sizes(const json_t *list, uint32_t dimensions, uint64_t ret[AFZ_ZARR_DIMENSIONS])
{
        size_t count = json_array_size(list); /* 0 for what is no array */
        if (count == 0 || count > AFZ_ZARR_DIMENSIONS || (dimensions && count != dimensions))
                return -EINVAL;
        for (size_t i = 0; i < count; i++) {
                const json_t *size = json_array_get(list, i);
                if (!json_is_integer(size) || json_integer_value(size) < 1)
                        return -EINVAL;
                ret[i] = (uint64_t)json_integer_value(size);
        }
        return (int)count;
}

static int product(const uint64_t *shape, uint32_t dimensions, uint64_t each, uint64_t *ret)
{
        uint64_t all = each;
        for (uint32_t i = 0; i < dimensions; i++)
                if (__builtin_mul_overflow(all, shape[i], &all) || all > INT64_MAX)
                        return -EOVERFLOW;
        *ret = all;
        return 0;
}

static int parse_separator(const json_t *value, char otherwise, char *ret)
{
        const char *text = json_string_value(value);
        if (value && (!text || (strcmp(text, "/") != 0 && strcmp(text, ".") != 0)))
                return -EINVAL;
        *ret = text ? *text : otherwise;
        return 0;
}

static int parse_type2(const json_t *value, struct afz_zarr *z, char why[AFZ_WHY_MAX])
{
        const char *name = json_string_value(value);
        if (!name || !*name || !strchr("<>|", *name) || type_named(name + 1, false, &z->dtype) < 0)
                return afz_why(why, -ENOTSUP,
                               "its elements are of the type %.40s; whole numbers, floating point "
                               "of 2, 4 and 8 "
                               "bytes and bool can be read",
                               name ? name : "(several)");
        z->is_swapped = *name == '>' && afz_dtype_bytes(z->dtype) > 1;
        return 0;
}

static int parse_compressor2(const json_t *value, struct afz_zarr *z, char why[AFZ_WHY_MAX])
{
        if (!value || json_is_null(value))
                return 0;
        const char *name = json_string_value(json_object_get(value, "id"));
        int codec = name ? afz_codec_named(name) : -ENOENT;
        if (codec < 0)
                return afz_why(
                        why, -ENOTSUP,
                        "it is compressed by %.40s; blosc, zstd, lz4, gzip and zlib can be read",
                        name ? name : "something without a name");
        z->chain.compressor = (enum afz_codec)codec;
        return 0;
}

static int parse2(const json_t *meta, struct afz_zarr *z, char why[AFZ_WHY_MAX])
{
        const char *order = json_string_value(json_object_get(meta, "order"));
        const json_t *filters = json_object_get(meta, "filters");
        if (afz_zarr_sizes(json_object_get(meta, "chunks"), z->dimensions, z->chunk) < 0)
                return afz_why(why, -EBADMSG, "the sizes of its chunks make no sense");
        if (json_array_size(filters) > 0)
                return afz_why(why, -ENOTSUP,
                               "it is written through filters; only arrays without can be read");
        if (parse_separator(json_object_get(meta, "dimension_separator"), '.', &z->separator) < 0)
                return afz_why(why, -EBADMSG, "its dimension_separator is neither \"/\" nor \".\"");
        if (!order || (strcmp(order, "C") != 0 && strcmp(order, "F") != 0))
                return afz_why(why, -EBADMSG, "its order is neither \"C\" nor \"F\"");
        for (uint32_t i = 0; *order == 'F' && i < z->dimensions; i++)
                z->order[i] = z->dimensions - 1 - i;
        memcpy(z->file, z->chunk, sizeof z->file);
        int r = parse_type2(json_object_get(meta, "dtype"), z, why);
        return r < 0 ? r : parse_compressor2(json_object_get(meta, "compressor"), z, why);
}

static int parse_keys3(const json_t *meta, struct afz_zarr *z)
{
        const json_t *keys = json_object_get(meta, "chunk_key_encoding");
        const char *name = json_string_value(json_object_get(keys, "name"));
        const json_t *separator =
                json_object_get(json_object_get(keys, "configuration"), "separator");
        if (!name || (strcmp(name, "default") != 0 && strcmp(name, "v2") != 0))
                return -EINVAL;
        z->has_prefix = *name == 'd';
        return parse_separator(separator, z->has_prefix ? '/' : '.', &z->separator);
}

static int parse3(const json_t *meta, struct afz_zarr *z, char why[AFZ_WHY_MAX])
{
        const char *node = json_string_value(json_object_get(meta, "node_type"));
        const char *type = json_string_value(json_object_get(meta, "data_type"));
        const json_t *grid = json_object_get(meta, "chunk_grid");
        const char *kind = json_string_value(json_object_get(grid, "name"));
        const json_t *sizes =
                json_object_get(json_object_get(grid, "configuration"), "chunk_shape");
        if (!node || strcmp(node, "array") != 0)
                return afz_why(why, -EBADMSG, "it is not the description of an array");
        if (type_named(type, true, &z->dtype) < 0)
                return afz_why(why, -ENOTSUP,
                               "its elements are of the type %.40s; whole numbers, floating point "
                               "of 16, 32 and 64 "
                               "bits and bool can be read",
                               type ? type : "(its own)");
        if (!kind || strcmp(kind, "regular") != 0)
                return afz_why(why, -ENOTSUP, "its chunks are not all of one size");
        if (afz_zarr_sizes(sizes, z->dimensions, z->file) < 0)
                return afz_why(why, -EBADMSG, "the sizes of its chunks make no sense");
        if (parse_keys3(meta, z) < 0)
                return afz_why(why, -ENOTSUP, "its files are named in a way that is not known");
        if (json_array_size(json_object_get(meta, "storage_transformers")) > 0)
                return afz_why(why, -ENOTSUP, "it uses storage_transformers, which are not known");
        memcpy(z->chunk, z->file, sizeof z->chunk);
        return afz_zarr_codecs(json_object_get(meta, "codecs"), z, why);
}

/* What holds for both versions once the parts are there. */
static int check(struct afz_zarr *z, char why[AFZ_WHY_MAX])
{
        uint64_t all, shard_bytes, each = afz_dtype_bytes(z->dtype);
        if (product(z->shape, z->dimensions, each, &all) < 0 ||
            product(z->chunk, z->dimensions, each, &z->chunk_bytes) < 0 ||
            product(z->file, z->dimensions, each, &shard_bytes) < 0)
                return afz_why(why, -EOVERFLOW, "its sizes are too large to be true");
        if (z->shard_chunks > 0)
                z->shard_chunks = shard_bytes / z->chunk_bytes;
        return 0;
}

static int parse(const json_t *meta, struct afz_zarr *z, char why[AFZ_WHY_MAX])
{
        const char *node = json_string_value(json_object_get(meta, "node_type"));
        json_int_t version = json_integer_value(json_object_get(meta, "zarr_format"));
        if (version != 2 && version != 3)
                return afz_why(why, -ENOTSUP, "it is Zarr of a version other than 2 and 3");
        if (version == 3 && node && strcmp(node, "group") == 0)
                return afz_why(why, -ENODATA, "it is a group");
        int n = afz_zarr_sizes(json_object_get(meta, "shape"), 0, z->shape);
        if (n < 0)
                return afz_why(
                        why, -EBADMSG,
                        "its shape makes no sense, or has no samples, or more than %d dimensions",
                        AFZ_ZARR_DIMENSIONS);
        z->dimensions = (uint32_t)n;
        for (uint32_t i = 0; i < z->dimensions; i++)
                z->order[i] = i;
        int r = version == 2 ? parse2(meta, z, why) : parse3(meta, z, why);
        if (r == 0)
                r = check(z, why);
        if (r == 0 && afz_zarr_fill(json_object_get(meta, "fill_value"), z->dtype, z->fill) < 0)
                r = afz_why(why, -ENOTSUP, "its fill_value is not a number of its type");
        return r;
}

int afz_zarr_parse(const char *text, size_t bytes, struct afz_zarr *ret, char why[AFZ_WHY_MAX])
{
        json_error_t error;
        struct afz_zarr z = {0};
        json_t *meta = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
        if (!meta)
                return afz_why(why, -EBADMSG, "its description is not JSON (line %d: %.100s)",
                               error.line, error.text);
        int r = parse(meta, &z, why);
        json_decref(meta);
        if (r == 0)
                *ret = z;
        return r;
}

/* A name that leads nowhere else. */
static bool is_name(const char *name)
{
        return name && *name && *name != '.' && !strchr(name, '/') &&
               strlen(name) < AFZ_ZARR_NAME_MAX;
}

int afz_zarr_group(const char *text, size_t bytes, struct afz_zarr_names *ret)
{
        json_t *meta = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
        const json_t *made = json_object_get(json_object_get(meta, "attributes"), AFZ_ZARR_RECIPE);
        const json_t *arrays = json_object_get(made, "arrays");
        size_t count = json_array_size(arrays);
        struct afz_zarr_names names = {0};
        while (count <= AFZ_FIELDS_MAX && names.count < count) {
                const char *name = json_string_value(
                        json_object_get(json_array_get(arrays, names.count), "name"));
                if (!is_name(name))
                        break;
                snprintf(names.name[names.count++], AFZ_ZARR_NAME_MAX, "%s", name);
        }
        json_decref(meta);
        if (count == 0 || names.count < count)
                return -ENOENT;
        *ret = names;
        return 0;
}
#else
int afz_zarr_group(const char *text, size_t bytes, struct afz_zarr_names *ret)
{
        (void)text, (void)bytes, (void)ret;
        return -ENOENT;
}

int afz_zarr_parse(const char *text, size_t bytes, struct afz_zarr *ret, char why[AFZ_WHY_MAX])
{
        (void)text, (void)bytes, (void)ret;
        return afz_why(why, -ENOTSUP, "this build has no jansson");
}
#endif
