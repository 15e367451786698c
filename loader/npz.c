/* Several arrays in one file, as numpy.savez() writes them: each a field, all of the same length.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "direct.h"
#include "file.h"
#include "formats.h"
#include "npy.h"
#include "zarr_copy.h"
#include "zip.h"
#if AFZ_HAVE_JANSSON
#include <jansson.h>
#endif

struct npz {
        struct afz_direct file;
        struct {
                uint64_t at;
                bool is_swapped;
        } array[AFZ_FIELDS_MAX];
};

/* While its directory is gone through. */
struct opening {
        struct afz_dataset *dataset;
        struct npz *npz;
        const char *details;
        char *why;
        bool is_told; /* why */
};

static bool is_npz(const char *path, bool is_folder, const uint8_t *head, uint64_t head_bytes)
{
        size_t n = strlen(path);
        return !is_folder && head_bytes >= 4 && memcmp(head, "PK\3\4", 4) == 0 && n > 4 &&
               strcmp(path + n - 4, ".npz") == 0;
}

/* {"arrays": ["x", "y"]}: those, in the file's order; all without details. */
static int is_asked_for(const char *details, const char *name, char why[AFZ_WHY_MAX])
{
        if (!details)
                return 1;
#if AFZ_HAVE_JANSSON
        json_t *json = json_loads(details, JSON_REJECT_DUPLICATES, NULL);
        const json_t *list = json_object_get(json, "arrays");
        int found = json_object_size(json) == 1 && json_array_size(list) > 0 ? 0 : -EINVAL;
        for (size_t i = 0; found == 0 && i < json_array_size(list); i++) {
                const char *asked = json_string_value(json_array_get(list, i));
                found = asked && strcmp(asked, name) == 0;
        }
        json_decref(json);
        return found < 0 ? afz_why(why, found, "details of a .npz are {\"arrays\": [\"x\", \"y\"]}")
                         : found;
#else
        (void)name;
        return afz_why_left_out(why, "a .npz with details", "jansson", "libjansson-dev");
#endif
}

static int check_member(const struct opening *o, const struct afz_zip_member *member,
                        const struct afz_npy *npy, uint64_t sample_bytes)
{
        uint64_t all;
        const struct afz_dataset *d = o->dataset;
        if (npy->data_at > member->bytes ||
            __builtin_mul_overflow(npy->shape[0], sample_bytes, &all) ||
            all > member->bytes - npy->data_at)
                return afz_why(o->why, -ENODATA, "%.200s: %s is shorter than its header says",
                               d->path, member->name);
        if (d->fields > 0 && npy->shape[0] != d->samples)
                return afz_why(o->why, -EINVAL,
                               "%.200s: %s has %llu samples and %s has %llu: name arrays of one "
                               "length, as in details "
                               "{\"arrays\": [\"%s\"]}",
                               d->path, d->field[0].name, (unsigned long long)d->samples,
                               member->name, (unsigned long long)npy->shape[0], d->field[0].name);
        return 0;
}

static int add_array(struct opening *o, const struct afz_zip_member *member, const char *name,
                     const struct afz_npy *npy)
{
        struct afz_dataset *d = o->dataset;
        struct afz_dataset one = {0}; /* for what a .npy says of itself */
        uint64_t bytes;
        if (d->fields == AFZ_FIELDS_MAX)
                return afz_why(o->why, -E2BIG,
                               "%.200s has more than %d arrays: name some, as in details "
                               "{\"arrays\": [\"%s\"]}",
                               d->path, AFZ_FIELDS_MAX, d->field[0].name);
        memcpy(one.path, d->path, sizeof one.path);
        int r = afz_npy_describe(&one, npy, o->why);
        if (r < 0)
                return r;
        if (afz_shape_bytes(one.field[0].shape, one.field[0].dimensions,
                            afz_dtype_bytes(npy->dtype), &bytes) < 0 ||
            bytes == 0)
                return afz_why(o->why, -EOVERFLOW,
                               "%.200s: samples of %s are of no size, or too large to be true",
                               d->path, name);
        r = check_member(o, member, npy, bytes);
        if (r < 0)
                return r;
        o->npz->array[d->fields].at = member->at + npy->data_at;
        o->npz->array[d->fields].is_swapped = npy->is_swapped;
        d->samples = one.samples;
        d->field[d->fields] = one.field[0];
        d->field[d->fields].bytes = bytes;
        afz_field_name(&d->field[d->fields], name);
        d->fields++;
        return 0;
}

static int take_member(void *user, const struct afz_zip_member *member)
{
        struct opening *o = user;
        uint8_t head[AFZ_NPY_HEAD_MAX];
        char name[AFZ_ZIP_NAME_MAX];
        struct afz_npy npy;
        size_t length = strlen(member->name);
        if (length <= 4 || strcmp(member->name + length - 4, ".npy") != 0)
                return 0;
        memcpy(name, member->name, length - 4);
        name[length - 4] = '\0';
        o->is_told = true;
        int r = is_asked_for(o->details, name, o->why);
        if (r <= 0)
                return r;
        if (!member->is_stored)
                return afz_why(o->why, -ENOTSUP,
                               "%.200s: %s is compressed as a whole, so that its samples cannot be "
                               "read by themselves: write it "
                               "with numpy.savez instead of savez_compressed, or as Zarr",
                               o->dataset->path, member->name);
        uint64_t bytes = member->bytes < sizeof head ? member->bytes : sizeof head;
        r = afz_dataset_read(o->npz->file.fd, head, bytes, member->at, NULL);
        if (r < 0)
                return afz_why(o->why, r, "%.250s: %s", o->dataset->path, afz_error_text(r));
        r = afz_npy_parse(head, bytes, &npy);
        if (r < 0)
                return afz_npy_why(r, o->dataset->path, o->why);
        return add_array(o, member, name, &npy);
}

static int npz_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                    char why[AFZ_WHY_MAX])
{
        uint64_t sample = 0, largest = 0;
        struct npz *npz = afz_index_take(dataset, 1, sizeof *npz);
        if (!npz)
                return afz_why(why, -ENOMEM, "%.250s: %s", dataset->path, afz_error_text(-ENOMEM));
        int r = afz_direct_open(&npz->file, dataset->path, options->ranks > 1);
        if (r < 0)
                return afz_why(why, r, "%.250s: %s", dataset->path, afz_error_text(r));
        dataset->own = npz;
        struct opening o = {
                .dataset = dataset, .npz = npz, .details = options->details, .why = why};
        r = afz_zip_walk(npz->file.fd, npz->file.bytes, take_member, &o);
        if (r < 0 && o.is_told && *why)
                return r;
        if (r < 0)
                return afz_why(why, r, "%.250s: it is no .npz, or it is cut off or damaged",
                               dataset->path);
        if (dataset->fields == 0)
                return afz_why(
                        why, -ENODATA,
                        "%.250s: there are no arrays in it, or none of those that are asked for",
                        dataset->path);
        for (uint32_t i = 0; i < dataset->fields; i++) {
                sample += dataset->field[i].bytes;
                largest = dataset->field[i].bytes > largest ? dataset->field[i].bytes : largest;
        }
        dataset->chunk_samples = afz_chunk_for(sample, dataset->samples, options->budget_bytes);
        dataset->raw_bytes = dataset->chunk_samples * largest + AFZ_DIRECT_SLACK;
        dataset->is_single = true;
        return 0;
}

static void npz_close(struct afz_dataset *dataset)
{
        struct npz *npz = dataset->own;
        if (npz)
                afz_direct_close(&npz->file);
        dataset->own = NULL;
}

static int npz_load(struct afz_dataset *dataset, const struct afz_load *load,
                    struct afz_scratch *scratch, char why[AFZ_WHY_MAX])
{
        const struct npz *npz = dataset->own;
        for (uint32_t i = 0; i < dataset->fields; i++) {
                const struct afz_field *field = &dataset->field[i];
                uint64_t bytes = load->count * field->bytes;
                int r = afz_direct_read(&npz->file, load->field[i], bytes,
                                        npz->array[i].at + load->first * field->bytes, scratch);
                if (r < 0) {
                        afz_why(why, 0, "%.250s: samples from %llu on: %s", dataset->path,
                                (unsigned long long)load->first, afz_error_text(r));
                        return afz_load_bad(load, 0, load->count);
                }
                if (npz->array[i].is_swapped)
                        afz_swap(load->field[i], bytes, afz_dtype_bytes(field->dtype));
        }
        return 0;
}

const struct afz_format afz_format_npz = {
        .name = "npz",
        .about = "several arrays as numpy.savez() writes them",
        .is_it = is_npz,
        .open = npz_open,
        .close = npz_close,
        .load = npz_load,
};
