#ifndef AFZ_ROWS_H
#define AFZ_ROWS_H
/* An index whose length is known only at its end: pieces, each twice as long as the one before, so
 * that nothing is moved and no more than half is unused. */
#include "format.h"

enum { AFZ_ROWS_PIECES = 40, AFZ_ROWS_FIRST = 256 };

struct afz_rows {
        uint64_t each; /* bytes, at most 4096 */
        uint64_t count;
        uint8_t *piece[AFZ_ROWS_PIECES];
};

/* A new row, all 0, or NULL: over the budget. */
void *afz_rows_add(struct afz_rows *rows, struct afz_dataset *dataset);
void *afz_rows_at(const struct afz_rows *rows, uint64_t index); /* below count */

/* Texts of an index, kept as long as the dataset. NULL: over the budget. */
struct afz_texts {
        char *at;
        uint64_t left;
};
char *afz_texts_keep(struct afz_texts *texts, struct afz_dataset *dataset, const char *text);

/* The names in a folder for which is_wanted says so, in the order of their bytes, the same on every
 * machine. The array is the caller's to free; the names are in `texts`. How many, or -errno. */
int64_t afz_names_in(int folder, const char *path, bool (*is_wanted)(int folder, const char *name),
                     struct afz_texts *texts, struct afz_dataset *dataset, char ***ret);

/* Whether there is any such name. */
bool afz_folder_has(const char *path, bool (*is_wanted)(int folder, const char *name));

#endif
