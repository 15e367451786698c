#include "npy.h"

#include <errno.h>
#include <string.h>

#include "file.h"
#include "flat.h"
#include "formats.h"

static const uint8_t MAGIC[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

struct text {
        const char *at, *end;
};

static bool take(struct text *t, const char *word)
{
        size_t n = strlen(word);
        while (t->at < t->end && (*t->at == ' ' || *t->at == '\n'))
                t->at++;
        if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
                return false;
        t->at += n;
        return true;
}

static bool take_quoted(struct text *t, const char **ret, uint64_t *ret_len)
{
        char quote = take(t, "'") ? '\'' : take(t, "\"") ? '"' : '\0';
        const char *end = quote ? memchr(t->at, quote, (size_t)(t->end - t->at)) : NULL;
        if (!end)
                return false;
        *ret = t->at;
        *ret_len = (uint64_t)(end - t->at);
        t->at = end + 1;
        return true;
}

static bool take_number(struct text *t, uint64_t *ret)
{
        uint64_t value = 0;
        (void)take(t, ""); /* spaces */
        const char *from = t->at;
        for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
                if (__builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(*t->at - '0'), &value))
                        return false;
        (void)take(t, "L"); /* as Python 2 wrote large ones */
        *ret = value;
        return t->at > from && value <= INT64_MAX;
}

static int take_shape(struct text *t, struct afz_npy *npy)
{
        if (!take(t, "("))
                return -EBADMSG;
        npy->dimensions = 0;
        while (!take(t, ")")) {
                uint64_t length;
                if (!take_number(t, &length))
                        return -EBADMSG;
                if (npy->dimensions == AFZ_DIMENSIONS_MAX + 1)
                        return -EOVERFLOW;
                npy->shape[npy->dimensions++] = length;
                if (!take(t, ",")) {
                        if (!take(t, ")") ||
                            npy->dimensions == 1) /* (3) is a number, (3,) a shape */
                                return -EBADMSG;
                        break;
                }
        }
        return 0;
}

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static int take_item(struct text *t, struct afz_npy *npy, unsigned *has)
{
        const char *key, *word;
        uint64_t len, word_len;
        if (!take_quoted(t, &key, &len) || !take(t, ":"))
                return -EBADMSG;
        unsigned is = len == 5 && memcmp(key, "descr", 5) == 0             ? HAS_DESCR
                      : len == 13 && memcmp(key, "fortran_order", 13) == 0 ? HAS_ORDER
                      : len == 5 && memcmp(key, "shape", 5) == 0           ? HAS_SHAPE
                                                                           : 0;
        if (is == 0 || *has & is)
                return -EBADMSG;
        *has |= is;
        switch (is) {
        case HAS_DESCR:
                if (take(t, "[")) /* a record of several */
                        return -EINVAL;
                return take_quoted(t, &word, &word_len)
                               ? afz_dtype_parse(word, word_len, &npy->dtype, &npy->is_swapped)
                               : -EBADMSG;
        case HAS_ORDER:
                npy->is_fortran = take(t, "True");
                return npy->is_fortran || take(t, "False") ? 0 : -EBADMSG;
        default:
                return take_shape(t, npy);
        }
}

static int parse_text(struct text t, struct afz_npy *npy)
{
        unsigned has = 0;
        if (!take(&t, "{"))
                return -EBADMSG;
        while (!take(&t, "}")) {
                int r = take_item(&t, npy, &has);
                if (r < 0)
                        return r;
                if (!take(&t, ",")) {
                        if (!take(&t, "}"))
                                return -EBADMSG;
                        break;
                }
        }
        (void)take(&t, "");
        return has == HAS_ALL && t.at == t.end ? 0 : -EBADMSG;
}

int afz_npy_parse(const uint8_t *head, uint64_t bytes, struct afz_npy *ret)
{
        struct afz_npy npy = {0};
        if (bytes < sizeof MAGIC || memcmp(head, MAGIC, sizeof MAGIC) != 0)
                return -EMEDIUMTYPE;
        if (bytes < 12)
                return -EBADMSG;
        if (head[6] < 1 || head[6] > 3)
                return -ENOTSUP;
        uint64_t at = head[6] == 1 ? 10 : 12, len = (uint64_t)head[8] | (uint64_t)head[9] << 8;
        if (head[6] > 1)
                len |= (uint64_t)head[10] << 16 | (uint64_t)head[11] << 24;
        if (len > bytes - at)
                return -EBADMSG;
        struct text text = {(const char *)head + at, (const char *)head + at + len};
        int r = parse_text(text, &npy);
        if (r < 0)
                return r;
        npy.data_at = at + len;
        *ret = npy;
        return 0;
}

int afz_npy_why(int error, const char *path, char why[AFZ_WHY_MAX])
{
        switch (error) {
        case -EINVAL:
                return afz_why(why, error,
                               "%.300s: an array of things that are not plain numbers (records, "
                               "text, complex "
                               "numbers, Python objects): save its columns as arrays of their own",
                               path);
        case -EOVERFLOW:
                return afz_why(why, error, "%.300s: an array of more than %d dimensions", path,
                               AFZ_DIMENSIONS_MAX + 1);
        case -ENOTSUP:
                return afz_why(why, error, "%.300s: a version of .npy that is not known here",
                               path);
        default:
                return afz_why(why, error, "%.300s: its header is damaged, or it is no .npy at all",
                               path);
        }
}

int afz_npy_describe(struct afz_dataset *dataset, const struct afz_npy *npy, char why[AFZ_WHY_MAX])
{
        if (npy->dimensions == 0)
                return afz_why(why, -EINVAL,
                               "%.300s is a single number: there is nothing to take batches of",
                               dataset->path);
        if (npy->is_fortran && npy->dimensions > 1)
                return afz_why(why, -EINVAL,
                               "%.200s has its samples scattered over the whole file "
                               "(fortran_order): save it "
                               "as numpy.save(path, numpy.ascontiguousarray(array))",
                               dataset->path);
        dataset->samples = npy->shape[0];
        dataset->fields = 1;
        dataset->field[0].dtype = npy->dtype;
        dataset->field[0].dimensions = npy->dimensions - 1;
        memcpy(dataset->field[0].shape, npy->shape + 1, (npy->dimensions - 1) * sizeof *npy->shape);
        afz_field_name(&dataset->field[0], dataset->path);
        return 0;
}

static bool is_npy(const char *path, bool is_folder, const uint8_t *head, uint64_t head_bytes)
{
        (void)path;
        return !is_folder && head_bytes >= sizeof MAGIC && memcmp(head, MAGIC, sizeof MAGIC) == 0;
}

int afz_npy_open_as_flat(struct afz_dataset *dataset, const struct afz_loader_options *options,
                         const struct afz_npy *npy, char why[AFZ_WHY_MAX])
{
        int r = afz_npy_describe(dataset, npy, why);
        if (r < 0)
                return r;
        struct afz_flat flat = {.data_at = npy->data_at, .is_swapped = npy->is_swapped};
        if (afz_shape_bytes(npy->shape + 1, npy->dimensions - 1, afz_dtype_bytes(npy->dtype),
                            &flat.stride) < 0)
                return afz_why(why, -EOVERFLOW, "%.300s: samples that are too large to be true",
                               dataset->path);
        return afz_flat_open(dataset, options, &flat, why);
}

static int npy_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                    char why[AFZ_WHY_MAX])
{
        uint8_t head[AFZ_NPY_HEAD_MAX];
        uint64_t file_bytes;
        struct afz_npy npy;
        int64_t bytes = afz_flat_head(dataset->path, head, sizeof head, &file_bytes, why);
        if (bytes < 0)
                return (int)bytes;
        int r = afz_npy_parse(head, (uint64_t)bytes, &npy);
        if (r < 0)
                return afz_npy_why(r, dataset->path, why);
        return afz_npy_open_as_flat(dataset, options, &npy, why);
}

const struct afz_format afz_format_npy = {
        .name = "npy",
        .about = "an array as numpy.save() writes it",
        .is_it = is_npy,
        .open = npy_open,
        .close = afz_flat_close,
        .load = afz_flat_load,
};
