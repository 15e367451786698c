#include "tar_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum {
        HOP_BYTES = 4096,
        PASS_BYTES = 8 << 20, /* are given back at once */
        BLOCK = 512,
        NAME_BYTES = 100,
        PREFIX_BYTES = 155,
        PAX_MAX = AFZ_TAR_WINDOW - BLOCK
};

struct header {
        char name[NAME_BYTES];
        char mode[8], uid[8], gid[8];
        char size[12];
        char mtime[12];
        char sum[8];
        char type;
        char link[100];
        char magic[8];
        char user[32], group[32], major[8], minor[8];
        char prefix[PREFIX_BYTES];
        char unused[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a tar header is one block");

/* What headers before a member say of it. */
struct told {
        char name[AFZ_TAR_NAME_MAX];
        bool has_name, has_bytes;
        uint64_t bytes;
};

/* Some bytes of the file, at most a window of them, without a system call where they are in it. */
static int bytes_at(struct afz_tar *tar, uint64_t at, uint64_t bytes, const uint8_t **ret)
{
        if (bytes > AFZ_TAR_WINDOW || at > tar->bytes || bytes > tar->bytes - at)
                return -ENODATA;
        if (at < tar->window_at || at + bytes > tar->window_at + tar->window_bytes) {
                uint64_t left = tar->bytes - at, end = tar->window_at + tar->window_bytes;
                /* Behind a large member, of which nothing is read, comes another one. */
                uint64_t wanted =
                        at >= tar->window_at && at < end + HOP_BYTES ? AFZ_TAR_WINDOW : HOP_BYTES;
                wanted = wanted < bytes ? bytes : wanted;
                uint64_t n = left < wanted ? left : wanted;
                tar->window_bytes = 0;
                int r = afz_dataset_read(tar->fd, tar->window, n, at, NULL);
                if (r < 0)
                        return r;
                tar->window_at = at, tar->window_bytes = n;
                if (tar->is_passing && at > tar->left_at + PASS_BYTES) {
                        (void)posix_fadvise(tar->fd, (off_t)tar->left_at,
                                            (off_t)(at - tar->left_at), POSIX_FADV_DONTNEED);
                        tar->left_at = at;
                }
        }
        *ret = tar->window + (at - tar->window_at);
        return 0;
}

/* Octal digits, or GNU's: the first bit set, then a number of 95 bits. */
static int number_of(const char *text, size_t length, uint64_t *ret)
{
        const uint8_t *byte = (const uint8_t *)text;
        uint64_t value = 0;
        size_t i = 0;
        if (byte[0] & 0x80) {
                for (i = 1; i < length; i++) {
                        if (value >> 55)
                                return -EBADMSG;
                        value = value << 8 | byte[i];
                }
                *ret = value;
                return byte[0] == 0x80 ? 0 : -EBADMSG; /* 0xff: negative */
        }
        while (i < length && text[i] == ' ')
                i++;
        for (; i < length && text[i] >= '0' && text[i] <= '7'; i++)
                value = value << 3 | (uint64_t)(text[i] - '0'); /* 12 digits have 36 bits */
        for (; i < length; i++)
                if (text[i] != ' ' && text[i] != '\0')
                        return -EBADMSG;
        *ret = value;
        return 0;
}

static bool is_sum_right(const struct header *h)
{
        const uint8_t *byte = (const uint8_t *)h;
        const size_t from = offsetof(struct header, sum), to = from + sizeof h->sum;
        uint64_t told, sum = 0;
        int64_t signed_sum = 0; /* some old programs add signed bytes */
        for (size_t i = 0; i < BLOCK; i++) {
                uint8_t b = i >= from && i < to ? ' ' : byte[i];
                sum += b;
                signed_sum += (int8_t)b;
        }
        return number_of(h->sum, sizeof h->sum, &told) == 0 &&
               (told == sum || (int64_t)told == signed_sum);
}

static bool is_empty(const uint8_t *block)
{
        for (size_t i = 0; i < BLOCK; i++)
                if (block[i] != 0)
                        return false;
        return true;
}

static void put_name(char to[AFZ_TAR_NAME_MAX], const char *text, uint64_t length)
{
        const char *end = memchr(text, '\0', length);
        uint64_t n = end ? (uint64_t)(end - text) : length;
        if (n >= AFZ_TAR_NAME_MAX)
                n = AFZ_TAR_NAME_MAX - 1;
        memcpy(to, text, n);
        to[n] = '\0';
}

static void header_name(const struct header *h, char to[AFZ_TAR_NAME_MAX])
{
        char prefix[PREFIX_BYTES + 1] = "", name[NAME_BYTES + 1] = "";
        memcpy(name, h->name, NAME_BYTES);
        /* GNU's own format has times where POSIX has the prefix. */
        if (memcmp(h->magic, "ustar", 6) == 0)
                memcpy(prefix, h->prefix, PREFIX_BYTES);
        size_t n = strlen(prefix);
        memcpy(to, prefix, n);
        if (n > 0)
                to[n++] = '/';
        memcpy(to + n, name, strlen(name) + 1);
}

static int decimal(const char *text, uint64_t length, uint64_t *ret)
{
        uint64_t value = 0;
        for (uint64_t i = 0; i < length; i++)
                if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
                        return -EBADMSG;
        *ret = value;
        return length > 0 ? 0 : -EBADMSG;
}

/* "28 path=a/long/name.jpg\n": the number counts all of the line. */
static int read_pax(const char *text, uint64_t bytes, struct told *told)
{
        while (bytes > 0 && *text != '\0') {
                uint64_t length;
                const char *space = memchr(text, ' ', bytes);
                if (!space || decimal(text, (uint64_t)(space - text), &length) < 0 ||
                    length > bytes || length < (uint64_t)(space - text) + 3 ||
                    text[length - 1] != '\n')
                        return -EBADMSG;
                const char *key = space + 1, *end = text + length - 1;
                const char *equals = memchr(key, '=', (size_t)(end - key));
                if (!equals)
                        return -EBADMSG;
                uint64_t n = (uint64_t)(equals - key), value = (uint64_t)(end - equals - 1);
                if (n == 4 && memcmp(key, "path", 4) == 0) {
                        put_name(told->name, equals + 1, value);
                        told->has_name = true;
                } else if (n == 4 && memcmp(key, "size", 4) == 0) {
                        if (decimal(equals + 1, value, &told->bytes) < 0)
                                return -EBADMSG;
                        told->has_bytes = true;
                } else if (n > 11 && memcmp(key, "GNU.sparse.", 11) == 0) {
                        return -ENOTSUP;
                }
                text += length, bytes -= length;
        }
        return 0;
}

static int read_told(struct afz_tar *tar, char type, uint64_t bytes, struct told *told)
{
        const uint8_t *text;
        if (bytes > PAX_MAX)
                return -EBADMSG;
        int r = bytes_at(tar, tar->at + BLOCK, bytes, &text);
        if (r < 0)
                return r;
        if (type == 'x')
                return read_pax((const char *)text, bytes, told);
        put_name(told->name, (const char *)text, bytes);
        told->has_name = true;
        return 0;
}

/* A header at tar->at; 1: a member; 2: a header that tells of the next; 3: something else; 0: the
 * end. */
static int read_header(struct afz_tar *tar, struct told *told, struct afz_tar_member *ret,
                       uint64_t *ret_next)
{
        const uint8_t *block;
        struct header h;
        uint64_t bytes, end;
        if (tar->at >= tar->bytes)
                return 0;
        int r = bytes_at(tar, tar->at, BLOCK, &block);
        if (r < 0)
                return r;
        if (is_empty(block))
                return 0;
        memcpy(&h, block, sizeof h);
        if (!is_sum_right(&h) || number_of(h.size, sizeof h.size, &bytes) < 0)
                return -EBADMSG;
        bool is_file = h.type == '0' || h.type == '\0' || h.type == '7';
        bool is_about = h.type == 'x' || h.type == 'L';
        if (is_file && told->has_bytes)
                bytes = told->bytes;
        if (h.type >= '1' && h.type <= '6')
                bytes = 0; /* links, devices, folders: whatever they say */
        if (bytes > INT64_MAX - 2 * BLOCK ||
            __builtin_add_overflow(tar->at + BLOCK, (bytes + BLOCK - 1) / BLOCK * BLOCK, &end))
                return -EBADMSG;
        if (bytes > tar->bytes - tar->at - BLOCK)
                return -ENODATA;
        if (h.type == 'S')
                return -ENOTSUP;
        *ret_next = end;
        if (is_about)
                r = read_told(tar, h.type, bytes, told);
        if (r < 0)
                return r;
        if (!is_file)
                return is_about ? 2 : 3;
        if (told->has_name)
                memcpy(ret->name, told->name, sizeof ret->name);
        else
                header_name(&h, ret->name);
        ret->at = tar->at + BLOCK, ret->bytes = bytes;
        return 1;
}

int afz_tar_next(struct afz_tar *tar, struct afz_tar_member *ret)
{
        struct told told = {0};
        for (;;) {
                uint64_t next = 0;
                int r = read_header(tar, &told, ret, &next);
                if (r <= 0)
                        return r;
                tar->at = next;
                if (r == 1)
                        return 1;
                if (r == 3)
                        told = (struct told){0};
        }
}
