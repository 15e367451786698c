#ifndef AFZ_TAR_H
#define AFZ_TAR_H
/* Pictures in tar files, as webdataset names them: key.jpg with key.cls or key.json beside it.
 * tar.c opens and loads; tar_index.c walks the members once and keeps 16 bytes a sample. */
#include "image.h"
#include "rows.h"
#include "tar_read.h"

enum { AFZ_LABEL_NONE = INT32_MIN };

struct tar_sample {
        uint32_t block; /* of 512 bytes: where its picture begins */
        uint32_t bytes;
        int32_t label; /* AFZ_LABEL_NONE: it has none */
        uint32_t shard;
};

struct tar_shard {
        char *name; /* in the folder */
};

struct tar_set {
        int folder; /* AT_FDCWD, and one shard, where a file was given */
        struct afz_rows shards, samples;
        struct afz_texts texts;
        struct afz_image_plan plan;
        bool has_labels;
        uint64_t picture_bytes; /* of all, with what lies between */
};

/* All members of one shard. */
int afz_tar_index(struct afz_dataset *dataset, struct tar_set *set, uint32_t shard,
                  bool is_cut_fine, char why[AFZ_WHY_MAX]);
/* {"label": 3}, also as "cls" or "class"; AFZ_LABEL_NONE else. */
int32_t afz_label_of_json(const char *text, uint64_t bytes);
int32_t afz_label_of_text(const char *text, uint64_t bytes);

#endif
