/* Files that say nothing of themselves: records of one size, and packed tokens. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "details.h"
#include "file.h"
#include "flat.h"
#include "formats.h"

static int describe(const struct afz_loader_options *options, const char *example,
                    struct afz_details *ret, char why[AFZ_WHY_MAX])
{
        if (!options->details)
                return afz_why(
                        why, -EINVAL,
                        "the file does not say what a record is, so it has to be said: details=%s",
                        example);
        return afz_details_parse(options->details, ret, why);
}

static int bytes_behind(const struct afz_dataset *dataset, uint64_t skip, uint64_t *ret,
                        char why[AFZ_WHY_MAX])
{
        uint64_t bytes;
        int fd = afz_file_open(AT_FDCWD, dataset->path, &bytes);
        if (fd < 0)
                return afz_why(why, fd, "%.300s: %s", dataset->path, afz_error_text(fd));
        close(fd);
        if (bytes <= skip)
                return afz_why(why, -ENODATA,
                               "%.300s has nothing behind the %llu bytes that are left out",
                               dataset->path, (unsigned long long)skip);
        *ret = bytes - skip;
        return 0;
}

static void name_fields(struct afz_dataset *dataset)
{
        for (uint32_t i = 0; i < dataset->fields; i++)
                if (dataset->field[i].name[0] == '\0') {
                        if (dataset->fields == 1)
                                afz_field_name(&dataset->field[i], dataset->path);
                        else
                                snprintf(dataset->field[i].name, sizeof dataset->field[i].name,
                                         "field%u", i);
                }
}

static int raw_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                    char why[AFZ_WHY_MAX])
{
        struct afz_details details;
        uint64_t bytes, each, record = 0;
        int r = describe(options, "{\"dtype\": \"f4\", \"shape\": [3, 224, 224]}", &details, why);
        if (r < 0)
                return r;
        if (details.length || details.overlap)
                return afz_why(why, -EINVAL,
                               "\"length\" and \"overlap\" are for tokens: format=\"tokens\"");
        r = bytes_behind(dataset, details.skip, &bytes, why);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < details.fields; i++)
                if (afz_shape_bytes(details.field[i].shape, details.field[i].dimensions,
                                    afz_dtype_bytes(details.field[i].dtype), &each) < 0 ||
                    __builtin_add_overflow(record, each, &record))
                        return afz_why(why, -EOVERFLOW,
                                       "%.300s: records that are too large to be true",
                                       dataset->path);
        if (record == 0)
                return afz_why(why, -EINVAL, "%.300s: records of no size", dataset->path);
        if (bytes % record && options->on_error != AFZ_ERROR_SKIP)
                return afz_why(why, -EBADMSG,
                               "%.200s has %llu bytes, which is no whole number of records of "
                               "%llu: the shape or "
                               "dtype is another, or the file is cut off",
                               dataset->path, (unsigned long long)bytes,
                               (unsigned long long)record);
        dataset->samples = bytes / record;
        dataset->fields = details.fields;
        memcpy(dataset->field, details.field, sizeof dataset->field);
        name_fields(dataset);
        return afz_flat_open(dataset, options,
                             &(struct afz_flat){.data_at = details.skip,
                                                .stride = record,
                                                .is_swapped = details.is_swapped},
                             why);
}

static int tokens_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                       char why[AFZ_WHY_MAX])
{
        struct afz_details details;
        uint64_t bytes;
        int r = describe(options, "{\"dtype\": \"u2\", \"length\": 1024, \"overlap\": 1}", &details,
                         why);
        if (r < 0)
                return r;
        if (details.fields != 1 || details.field[0].dimensions || details.length == 0 ||
            details.length > UINT32_MAX || details.overlap > UINT32_MAX)
                return afz_why(why, -EINVAL,
                               "tokens are of one dtype and no shape, and a sample has a "
                               "\"length\" of them");
        r = bytes_behind(dataset, details.skip, &bytes, why);
        if (r < 0)
                return r;
        uint64_t each = afz_dtype_bytes(details.field[0].dtype), tokens = bytes / each;
        if (bytes % each && options->on_error != AFZ_ERROR_SKIP)
                return afz_why(why, -EBADMSG,
                               "%.200s has %llu bytes, which is no whole number of tokens of %llu",
                               dataset->path, (unsigned long long)bytes, (unsigned long long)each);
        if (tokens < details.length + details.overlap)
                return afz_why(why, -ENODATA, "%.200s has %llu tokens, a sample needs %llu",
                               dataset->path, (unsigned long long)tokens,
                               (unsigned long long)(details.length + details.overlap));
        dataset->samples = (tokens - details.overlap) / details.length;
        dataset->fields = 1;
        dataset->field[0] = details.field[0];
        dataset->field[0].dimensions = 1;
        dataset->field[0].shape[0] = details.length + details.overlap;
        name_fields(dataset);
        return afz_flat_open(dataset, options,
                             &(struct afz_flat){.data_at = details.skip,
                                                .stride = details.length * each,
                                                .is_swapped = details.is_swapped},
                             why);
}

const struct afz_format afz_format_raw = {
        .name = "raw",
        .about = "records of one size; details say of what",
        .open = raw_open,
        .close = afz_flat_close,
        .load = afz_flat_load,
};

const struct afz_format afz_format_tokens = {
        .name = "tokens",
        .about = "packed tokens; details say how many make a sample",
        .open = tokens_open,
        .close = afz_flat_close,
        .load = afz_flat_load,
};
