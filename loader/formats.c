/* What can be read: a row a format. They are asked in this order whether a path is theirs; the ones
 * that look at the first bytes come before those that go by a name. */
#include "formats.h"

#include <stddef.h>

const struct afz_format *const afz_formats[] = {
        &afz_format_npy,   &afz_format_npz,    &afz_format_idx,
        &afz_format_arrow, &afz_format_zarr,   &afz_format_tar,
        &afz_format_csv,   &afz_format_folder, /* any folder that nobody else took */
        &afz_format_raw,   &afz_format_tokens, NULL,
};
