#include "idx.h"

#include <errno.h>
#include <string.h>

#include "flat.h"
#include "formats.h"

enum { HEAD_MAX = 4 + 4 * (AFZ_DIMENSIONS_MAX + 1) };

int afz_idx_parse(const uint8_t *head, uint64_t bytes, struct afz_npy *ret)
{
        static const struct {
                uint8_t code;
                enum afz_dtype dtype;
        } types[] = {{8, AFZ_U8},   {9, AFZ_I8},   {11, AFZ_I16},
                     {12, AFZ_I32}, {13, AFZ_F32}, {14, AFZ_F64}};
        struct afz_npy idx = {0};
        size_t type = 0;
        if (bytes < 4 || head[0] != 0 || head[1] != 0)
                return -EMEDIUMTYPE;
        while (type < sizeof types / sizeof *types && types[type].code != head[2])
                type++;
        if (type == sizeof types / sizeof *types)
                return -EMEDIUMTYPE;
        if (head[3] > AFZ_DIMENSIONS_MAX + 1)
                return -EOVERFLOW;
        idx.dtype = types[type].dtype;
        idx.is_swapped = afz_dtype_bytes(idx.dtype) > 1;
        idx.dimensions = head[3];
        idx.data_at = 4 + 4 * (uint64_t)head[3];
        if (bytes < idx.data_at)
                return -EBADMSG;
        for (uint32_t i = 0; i < idx.dimensions; i++) {
                const uint8_t *at = head + 4 + 4 * i;
                idx.shape[i] = (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 |
                               (uint64_t)at[2] << 8 | at[3];
        }
        *ret = idx;
        return 0;
}

/* Four bytes are little to go by, so the name has a word, too: train-images-idx3-ubyte, t10k.idx.
 */
static bool is_idx(const char *path, bool is_folder, const uint8_t *head, uint64_t head_bytes)
{
        struct afz_npy idx;
        const char *name = strrchr(path, '/');
        return !is_folder && strstr(name ? name : path, "idx") &&
               afz_idx_parse(head, head_bytes, &idx) == 0 && idx.dimensions > 0;
}

static int idx_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                    char why[AFZ_WHY_MAX])
{
        uint8_t head[HEAD_MAX];
        uint64_t file_bytes;
        struct afz_npy idx;
        int64_t bytes = afz_flat_head(dataset->path, head, sizeof head, &file_bytes, why);
        if (bytes < 0)
                return (int)bytes;
        int r = afz_idx_parse(head, (uint64_t)bytes, &idx);
        if (r < 0)
                return afz_why(why, r,
                               "%.300s is no IDX file, or its header is damaged; one that is "
                               "packed has to be unpacked "
                               "before: gunzip",
                               dataset->path);
        return afz_npy_open_as_flat(dataset, options, &idx, why);
}

const struct afz_format afz_format_idx = {
        .name = "idx",
        .about = "IDX, as MNIST has it",
        .is_it = is_idx,
        .open = idx_open,
        .close = afz_flat_close,
        .load = afz_flat_load,
};
