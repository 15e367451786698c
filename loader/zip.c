#include "zip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
        END_BYTES = 22,
        END64_BYTES = 56,
        LOCATOR_BYTES = 20,
        ENTRY_BYTES = 46,
        LOCAL_BYTES = 30,
        COMMENT_MAX = 65535,
        LARGE_ID = 1, /* of the extra field with sizes of 64 bits */
};
static const uint32_t END = 0x06054b50, END64 = 0x06064b50, LOCATOR = 0x07064b50,
                      ENTRY = 0x02014b50, LOCAL = 0x04034b50;

struct directory {
        uint64_t at, bytes;
};

static uint64_t number(const uint8_t *at, unsigned bytes)
{
        uint64_t value = 0;
        while (bytes-- > 0)
                value = value << 8 | at[bytes];
        return value;
}

static int read_end64(int fd, uint64_t locator_at, uint64_t file_bytes, struct directory *ret)
{
        uint8_t locator[LOCATOR_BYTES], end[END64_BYTES];
        int r = afz_dataset_read(fd, locator, sizeof locator, locator_at, NULL);
        if (r < 0 || number(locator, 4) != LOCATOR)
                return r < 0 ? r : -EBADMSG;
        uint64_t at = number(locator + 8, 8);
        if (at > file_bytes || file_bytes - at < sizeof end)
                return -EBADMSG;
        r = afz_dataset_read(fd, end, sizeof end, at, NULL);
        if (r < 0 || number(end, 4) != END64)
                return r < 0 ? r : -EBADMSG;
        *ret = (struct directory){.bytes = number(end + 40, 8), .at = number(end + 48, 8)};
        return 0;
}

/* The last record of the file, before a comment of any length. */
static int find_directory(int fd, uint64_t file_bytes, struct directory *ret)
{
        uint64_t tail = file_bytes < END_BYTES + COMMENT_MAX ? file_bytes : END_BYTES + COMMENT_MAX;
        uint8_t *text = malloc(tail + 1);
        int r = !text ? -ENOMEM : afz_dataset_read(fd, text, tail, file_bytes - tail, NULL);
        bool is_found = false;
        for (uint64_t i = tail; r == 0 && !is_found && i-- >= END_BYTES;) {
                const uint8_t *end = text + i + 1 - END_BYTES;
                if (number(end, 4) != END || number(end + 20, 2) != tail - (i + 1))
                        continue;
                is_found = true;
                uint64_t at = file_bytes - tail + (uint64_t)(end - text);
                *ret = (struct directory){.bytes = number(end + 12, 4), .at = number(end + 16, 4)};
                if (ret->at == UINT32_MAX || ret->bytes == UINT32_MAX ||
                    number(end + 10, 2) == UINT16_MAX)
                        r = at < LOCATOR_BYTES
                                    ? -EBADMSG
                                    : read_end64(fd, at - LOCATOR_BYTES, file_bytes, ret);
        }
        free(text);
        if (r == 0 && (!is_found || ret->bytes > AFZ_ZIP_DIRECTORY_MAX || ret->at > file_bytes ||
                       ret->bytes > file_bytes - ret->at))
                r = -EBADMSG;
        return r;
}

/* Sizes that do not fit into 32 bits are in an extra field, only those, in this order. */
static int read_large(const uint8_t *extra, uint64_t bytes, uint64_t *plain, uint64_t *stored,
                      uint64_t *local)
{
        uint64_t *const values[] = {plain, stored, local};
        while (bytes >= 4) {
                uint64_t id = number(extra, 2), length = number(extra + 2, 2);
                extra += 4, bytes -= 4;
                if (length > bytes)
                        return -EBADMSG;
                for (uint64_t i = 0, at = 0; id == LARGE_ID && i < 3; i++) {
                        if (*values[i] != UINT32_MAX)
                                continue;
                        if (length - at < 8)
                                return -EBADMSG;
                        *values[i] = number(extra + at, 8);
                        at += 8;
                }
                if (id == LARGE_ID)
                        return 0;
                extra += length, bytes -= length;
        }
        return 0;
}

/* The data are behind a second header, whose length is only told there. */
static int find_data(int fd, uint64_t file_bytes, uint64_t local, struct afz_zip_member *member)
{
        uint8_t header[LOCAL_BYTES];
        if (local > file_bytes || file_bytes - local < LOCAL_BYTES)
                return -ENODATA;
        int r = afz_dataset_read(fd, header, sizeof header, local, NULL);
        if (r < 0)
                return r;
        if (number(header, 4) != LOCAL)
                return -EBADMSG;
        member->at = local + LOCAL_BYTES + number(header + 26, 2) + number(header + 28, 2);
        return member->at > file_bytes || member->bytes > file_bytes - member->at ? -ENODATA : 0;
}

static int read_entry(int fd, uint64_t file_bytes, const uint8_t *entry, uint64_t left,
                      uint64_t *ret_bytes, struct afz_zip_member *ret)
{
        if (left < ENTRY_BYTES || number(entry, 4) != ENTRY)
                return -EBADMSG;
        uint64_t name = number(entry + 28, 2), extra = number(entry + 30, 2),
                 comment = number(entry + 32, 2);
        uint64_t stored = number(entry + 20, 4), plain = number(entry + 24, 4),
                 local = number(entry + 42, 4);
        *ret_bytes = ENTRY_BYTES + name + extra + comment;
        if (*ret_bytes > left ||
            read_large(entry + ENTRY_BYTES + name, extra, &plain, &stored, &local) < 0)
                return -EBADMSG;
        bool is_encrypted = number(entry + 8, 2) & 1;
        *ret = (struct afz_zip_member){.bytes = stored};
        ret->is_stored = !is_encrypted && number(entry + 10, 2) == 0 && stored == plain;
        memcpy(ret->name, entry + ENTRY_BYTES,
               name < AFZ_ZIP_NAME_MAX ? name : AFZ_ZIP_NAME_MAX - 1);
        return find_data(fd, file_bytes, local, ret);
}

int afz_zip_walk(int fd, uint64_t file_bytes,
                 int (*each)(void *user, const struct afz_zip_member *member), void *user)
{
        struct directory where = {0};
        int r = find_directory(fd, file_bytes, &where);
        if (r < 0)
                return r;
        uint8_t *text = malloc(where.bytes + 1);
        r = !text ? -ENOMEM : afz_dataset_read(fd, text, where.bytes, where.at, NULL);
        for (uint64_t at = 0, bytes = 0; r == 0 && at < where.bytes; at += bytes) {
                struct afz_zip_member member;
                r = read_entry(fd, file_bytes, text + at, where.bytes - at, &bytes, &member);
                if (r == 0)
                        r = each(user, &member);
        }
        free(text);
        return r;
}
