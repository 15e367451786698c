#ifndef AFZ_FILE_H
#define AFZ_FILE_H
/* Files of a dataset, as strangers left them: only a regular file is opened, so that no pipe and no
 * device can hold us up, and nothing is written, ever. */
#include <stdint.h>

#include "format.h"

/* A descriptor, or -errno. folder: AT_FDCWD for a path as it is. -EINVAL: not a regular file. */
int afz_file_open(int folder, const char *path, uint64_t *ret_bytes);
int afz_folder_open(int folder, const char *path);

/* The whole of a small file, with a NUL behind it, from malloc(). -EFBIG: more than most_bytes. */
int afz_file_text(int folder, const char *path, uint64_t most_bytes, char **ret,
                  uint64_t *ret_bytes);

/* "no such file" rather than a number. */
const char *afz_error_text(int error);

/* A path's last part, without the ending, as the name of a field. */
void afz_field_name(struct afz_field *field, const char *path);

/* Where a build lacks a library: returns -ENOTSUP. */
int afz_why_left_out(char why[AFZ_WHY_MAX], const char *path, const char *what,
                     const char *package);

/* Sets `count` samples of a load bad; 0, as load() has to return then. */
int afz_load_bad(const struct afz_load *load, uint32_t from, uint32_t count);

#endif
