#include "rows.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"

enum { TEXT_PIECE = 16 << 10 };

static void *slot(const struct afz_rows *rows, uint64_t index, uint32_t *ret_piece)
{
        /* Piece k has FIRST << k rows and begins at FIRST * (2^k - 1). */
        uint64_t k = 63 - (uint64_t)__builtin_clzll(index / AFZ_ROWS_FIRST + 1);
        *ret_piece = (uint32_t)k;
        if (k >= AFZ_ROWS_PIECES || !rows->piece[k])
                return NULL;
        return rows->piece[k] + (index - AFZ_ROWS_FIRST * ((UINT64_C(1) << k) - 1)) * rows->each;
}

void *afz_rows_add(struct afz_rows *rows, struct afz_dataset *dataset)
{
        uint32_t piece;
        void *row = slot(rows, rows->count, &piece);
        if (!row) {
                if (piece >= AFZ_ROWS_PIECES)
                        return NULL;
                rows->piece[piece] =
                        afz_index_take(dataset, (uint64_t)AFZ_ROWS_FIRST << piece, rows->each);
                row = rows->piece[piece];
        }
        rows->count += row != NULL;
        return row;
}

void *afz_rows_at(const struct afz_rows *rows, uint64_t index)
{
        uint32_t piece;
        return slot(rows, index, &piece);
}

char *afz_texts_keep(struct afz_texts *texts, struct afz_dataset *dataset, const char *text)
{
        uint64_t bytes = strlen(text) + 1;
        if (bytes > texts->left) {
                uint64_t piece = bytes > TEXT_PIECE ? bytes : TEXT_PIECE;
                char *at = afz_index_take(dataset, piece, 1);
                if (!at)
                        return NULL;
                texts->at = at, texts->left = piece;
        }
        char *kept = texts->at;
        memcpy(kept, text, bytes);
        texts->at += bytes, texts->left -= bytes;
        return kept;
}

static int by_bytes(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_add(char ***names, size_t *count, char *name)
{
        if ((*count & (*count - 1)) == 0) { /* 0, 1, 2, 4, ...: full */
                char **more = realloc(*names, (*count ? *count * 2 : 1) * sizeof *more);
                if (!more)
                        return -ENOMEM;
                *names = more;
        }
        (*names)[(*count)++] = name;
        return 0;
}

int64_t afz_names_in(int folder, const char *path, bool (*is_wanted)(int folder, const char *name),
                     struct afz_texts *texts, struct afz_dataset *dataset, char ***ret)
{
        char **names = NULL;
        size_t count = 0;
        int r = 0, fd = afz_folder_open(folder, path);
        if (fd < 0)
                return fd;
        DIR *dir = fdopendir(fd);
        if (!dir) {
                r = -errno;
                close(fd);
                return r;
        }
        for (struct dirent *entry; r == 0 && (errno = 0, entry = readdir(dir));) {
                if (entry->d_name[0] == '.' || !is_wanted(fd, entry->d_name))
                        continue;
                char *kept = afz_texts_keep(texts, dataset, entry->d_name);
                r = kept ? names_add(&names, &count, kept) : -ENOMEM;
        }
        closedir(dir);
        if (r < 0) {
                free(names);
                return r;
        }
        if (count > 1)
                qsort(names, count, sizeof *names, by_bytes);
        *ret = names;
        return (int64_t)count;
}

bool afz_folder_has(const char *path, bool (*is_wanted)(int folder, const char *name))
{
        bool has = false;
        DIR *dir = opendir(path);
        for (struct dirent *entry; dir && !has && (entry = readdir(dir));)
                has = entry->d_name[0] != '.' && is_wanted(dirfd(dir), entry->d_name);
        if (dir)
                closedir(dir);
        return has;
}
