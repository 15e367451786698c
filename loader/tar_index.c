#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "config.h"
#include "file.h"
#include "room.h"
#include "tar.h"
#if AFZ_HAVE_JANSSON
#include <jansson.h>
#endif

enum { LABEL_TEXT_MAX = 64, LABEL_JSON_MAX = 64 << 10 };

/* The members that have one key, one behind the other. */
struct sample {
        char key[AFZ_TAR_NAME_MAX];
        bool has_picture;
        struct tar_sample row;
};

int32_t afz_label_of_text(const char *text, uint64_t bytes)
{
        char copy[LABEL_TEXT_MAX + 1], *end;
        if (bytes == 0 || bytes > LABEL_TEXT_MAX)
                return AFZ_LABEL_NONE;
        memcpy(copy, text, bytes);
        copy[bytes] = '\0';
        errno = 0;
        long value = strtol(copy, &end, 10);
        end += strspn(end, " \t\r\n");
        return end == copy || *end || errno || value <= INT32_MIN || value > INT32_MAX
                       ? AFZ_LABEL_NONE
                       : (int32_t)value;
}

int32_t afz_label_of_json(const char *text, uint64_t bytes)
{
        int32_t label = AFZ_LABEL_NONE;
#if AFZ_HAVE_JANSSON
        static const char *const keys[] = {"label", "cls", "class"};
        json_t *json = json_loadb(text, bytes, JSON_DECODE_ANY, NULL);
        const json_t *value = json;
        for (size_t i = 0; i < sizeof keys / sizeof *keys && json_is_object(value); i++)
                value = json_object_get(json, keys[i]) ? json_object_get(json, keys[i]) : json;
        if (json_is_integer(value) && json_integer_value(value) > INT32_MIN &&
            json_integer_value(value) <= INT32_MAX)
                label = (int32_t)json_integer_value(value);
        json_decref(json);
#else
        (void)text, (void)bytes;
#endif
        return label;
}

static int32_t read_label(int fd, const struct afz_tar_member *member, bool is_json)
{
        if (member->bytes > (is_json ? LABEL_JSON_MAX : LABEL_TEXT_MAX))
                return AFZ_LABEL_NONE;
        char *text = malloc(member->bytes + 1);
        int32_t label = AFZ_LABEL_NONE;
        if (text && afz_dataset_read(fd, text, member->bytes, member->at, NULL) == 0)
                label = is_json ? afz_label_of_json(text, member->bytes)
                                : afz_label_of_text(text, member->bytes);
        free(text);
        return label;
}

/* The name up to the first dot of its last part; what is behind it, or NULL. */
static const char *split_name(const char *name, size_t *ret_key)
{
        const char *slash = strrchr(name, '/');
        const char *dot = strchr(slash ? slash + 1 : name, '.');
        *ret_key = dot ? (size_t)(dot - name) : strlen(name);
        return dot && *ret_key > 0 && dot != (slash ? slash + 1 : name) ? dot + 1 : NULL;
}

static int sample_done(struct afz_dataset *dataset, struct tar_set *set, struct sample *sample)
{
        if (sample->has_picture) {
                struct tar_sample *row = afz_rows_add(&set->samples, dataset);
                if (!row)
                        return -ENOMEM;
                *row = sample->row;
                set->has_labels |= row->label != AFZ_LABEL_NONE;
        }
        sample->has_picture = false;
        sample->row.label = AFZ_LABEL_NONE;
        return 0;
}

static int take_member(struct afz_dataset *dataset, struct tar_set *set, int fd,
                       const struct afz_tar_member *member, struct sample *sample)
{
        size_t length;
        const char *ending = split_name(member->name, &length);
        if (!ending)
                return 0;
        if (strlen(sample->key) != length || memcmp(sample->key, member->name, length) != 0) {
                int r = sample_done(dataset, set, sample);
                if (r < 0)
                        return r;
                memcpy(sample->key, member->name, length);
                sample->key[length] = '\0';
        }
        if (strcasecmp(ending, "cls") == 0 || strcasecmp(ending, "json") == 0) {
                bool is_json = ending[0] == 'j' || ending[0] == 'J';
                int32_t label = read_label(fd, member, is_json);
                if (label != AFZ_LABEL_NONE)
                        sample->row.label = label;
        } else if (afz_image_is_name(member->name) && !sample->has_picture) {
                if (member->at / 512 > UINT32_MAX)
                        return -EFBIG;
                sample->has_picture = true;
                sample->row.block = (uint32_t)(member->at / 512);
                sample->row.bytes =
                        member->bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)member->bytes;
                set->picture_bytes += member->bytes + 1024;
        }
        return 0;
}

static const char *error_text(int error)
{
        switch (error) {
        case -EBADMSG:
                return "it is no tar file, or damaged";
        case -ENODATA:
                return "it is cut off; on_error=\"skip\" takes the samples that are there";
        case -ENOTSUP:
                return "it has sparse files in it";
        case -EFBIG:
                return "it is over 2 TB; several smaller ones can be read";
        default:
                return afz_error_text(error);
        }
}

int afz_tar_index(struct afz_dataset *dataset, struct tar_set *set, uint32_t shard,
                  bool is_cut_fine, char why[AFZ_WHY_MAX])
{
        const struct tar_shard *about = afz_rows_at(&set->shards, shard);
        struct sample sample = {.row = {.label = AFZ_LABEL_NONE, .shard = shard}};
        struct afz_tar_member member;
        struct afz_tar *tar = calloc(1, sizeof *tar);
        if (!tar)
                return -ENOMEM;
        int r = tar->fd = afz_file_open(set->folder, about->name, &tar->bytes);
        dataset->disk_bytes += tar->bytes;
        tar->is_passing = afz_room_is_scarce(dataset->disk_bytes);
        while (r >= 0 && (r = afz_tar_next(tar, &member)) > 0)
                r = take_member(dataset, set, tar->fd, &member, &sample);
        if (r == -ENODATA && is_cut_fine)
                r = 0; /* the member that the cut went through is not taken */
        if (r == 0)
                r = sample_done(dataset, set, &sample);
        if (tar->fd >= 0)
                close(tar->fd);
        free(tar);
        return r < 0 ? afz_why(why, r, "%.250s: %s", about->name, error_text(r)) : 0;
}
