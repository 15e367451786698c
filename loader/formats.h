#ifndef AFZ_FORMATS_H
#define AFZ_FORMATS_H
/* The formats by name, for the table in formats.c. */
#include "format.h"

extern const struct afz_format afz_format_npy;
extern const struct afz_format afz_format_idx;
extern const struct afz_format afz_format_raw;
extern const struct afz_format afz_format_tokens;
extern const struct afz_format afz_format_npz;
extern const struct afz_format afz_format_zarr;
extern const struct afz_format afz_format_tar;
extern const struct afz_format afz_format_csv;
extern const struct afz_format afz_format_folder;
extern const struct afz_format afz_format_arrow;

#endif
