#include "flight_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crc32.h"

/* Not text, not UTF-8, and whoever turns line ends around damages it where we look. */
static const unsigned char file_magic[8] = {0x89, 'A', 'F', 'Z', '\r', '\n', 0x1a, '\n'};
static const unsigned char frame_magic[4] = {0xf1, 'a', 'f', 'z'};

enum {
        CHUNK = 1 << 16, /* bytes a read, unless a frame is longer */
        /* A file made to deceive could have a frame's head in every few bytes, each with a long
         * length to be summed up. Beyond this much the rest is one hole. */
        VAIN_MAX = 1 << 28,
};

static void put_u32(unsigned char *p, uint32_t v)
{
        for (int i = 0; i < 4; i++)
                p[i] = (unsigned char)(v >> 8 * i);
}

static uint32_t get_u32(const unsigned char *p)
{
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void afz_file_head(unsigned char ret[AFZ_FILE_HEAD], uint32_t names_sum)
{
        memcpy(ret, file_magic, sizeof file_magic);
        put_u32(ret + 8, AFZ_FILE_VERSION);
        put_u32(ret + 12, names_sum);
}

/* Over type, length and payload. */
static uint32_t sum_of(const unsigned char *head, const void *payload, size_t len)
{
        return afz_crc32(afz_crc32(0, head + 4, 8), payload, len);
}

void afz_frame_head(unsigned char ret[AFZ_FRAME_HEAD], enum afz_frame_type type,
                    const void *payload, size_t len)
{
        memcpy(ret, frame_magic, sizeof frame_magic);
        put_u32(ret + 4, (uint32_t)type);
        put_u32(ret + 8, (uint32_t)len);
        put_u32(ret + 12, sum_of(ret, payload, len));
}

/* As many bytes as there are, up to n. */
static ssize_t read_at(int fd, unsigned char *buf, size_t n, uint64_t at)
{
        size_t have = 0;
        while (have < n) {
                ssize_t got = pread(fd, buf + have, n - have, (off_t)(at + have));
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                if (got == 0)
                        break;
                have += (size_t)got;
        }
        return (ssize_t)have;
}

int afz_file_check(int fd, uint32_t *ret_names_sum, unsigned *ret_version)
{
        unsigned char head[AFZ_FILE_HEAD];
        ssize_t n = read_at(fd, head, sizeof head, 0);
        if (n < 0)
                return (int)n;
        if (n < (ssize_t)sizeof head)
                return memcmp(head, file_magic, n < 8 ? (size_t)n : 8) == 0 ? -ENODATA : -EBADMSG;
        if (memcmp(head, file_magic, sizeof file_magic) != 0)
                return -EBADMSG;
        uint32_t version = get_u32(head + 8);
        *ret_version = version;
        if (version != AFZ_FILE_VERSION)
                return -EPROTO;
        *ret_names_sum = get_u32(head + 12);
        return 0;
}

int afz_frames_open(struct afz_frames *ret, int fd, uint64_t from)
{
        unsigned char *buf = malloc(CHUNK);
        if (!buf)
                return -ENOMEM;
        *ret = (struct afz_frames){.fd = fd, .at = from, .buf = buf, .cap = CHUNK, .buf_at = from};
        return 0;
}

void afz_frames_close(struct afz_frames *frames)
{
        free(frames->buf);
        frames->buf = NULL;
}

static int make_room(struct afz_frames *f, size_t n)
{
        if (n <= f->cap)
                return 0;
        size_t cap = n > AFZ_FRAME_MAX / 2 ? AFZ_FRAME_HEAD + AFZ_FRAME_MAX : 2 * n;
        unsigned char *buf = realloc(f->buf, cap);
        if (!buf)
                return -ENOMEM;
        f->buf = buf;
        f->cap = cap;
        return 0;
}

/* Sees to it that n bytes from `at` on are in the buffer, or all there are. Returns how many. */
static ssize_t fill(struct afz_frames *f, uint64_t at, size_t n, const unsigned char **ret)
{
        size_t skip = (size_t)(at - f->buf_at);
        size_t have = skip < f->have ? f->have - skip : 0;
        if (have < n) {
                size_t want = n > CHUNK ? n : CHUNK;
                int r = make_room(f, want);
                if (r < 0)
                        return r;
                if (have)
                        memmove(f->buf, f->buf + skip, have);
                f->buf_at = at;
                f->have = have;
                ssize_t got = read_at(f->fd, f->buf + have, want - have, at + have);
                if (got < 0)
                        return got;
                f->have = have + (size_t)got;
                have = f->have;
                skip = 0;
        }
        *ret = f->buf + skip;
        return (ssize_t)(have < n ? have : n);
}

enum look { WHOLE, DAMAGED, CUT };

/* What begins at `at`: a whole frame, one that the file's end cuts off, or none. */
static int look_at(struct afz_frames *f, uint64_t at, struct afz_frame *ret)
{
        const unsigned char *p;
        ssize_t n = fill(f, at, AFZ_FRAME_HEAD, &p);
        if (n < 0)
                return (int)n;
        if (n < AFZ_FRAME_HEAD)
                return CUT;
        uint32_t len = get_u32(p + 8);
        if (memcmp(p, frame_magic, sizeof frame_magic) != 0 || len > AFZ_FRAME_MAX)
                return DAMAGED;
        n = fill(f, at, AFZ_FRAME_HEAD + len, &p);
        if (n < 0)
                return (int)n;
        if ((size_t)n < AFZ_FRAME_HEAD + len) {
                f->in_vain += (size_t)n;
                return CUT;
        }
        if (get_u32(p + 12) != sum_of(p, p + AFZ_FRAME_HEAD, len)) {
                f->in_vain += len;
                return DAMAGED;
        }
        *ret = (struct afz_frame){get_u32(p + 4), at, p + AFZ_FRAME_HEAD, len};
        return WHOLE;
}

/* The next place from `at` on where a frame might begin; 0: there is none. Sets `zeros` to false
 * when it passes over something else than zeros. */
static int64_t next_magic(struct afz_frames *f, uint64_t at, bool *zeros)
{
        for (;;) {
                const unsigned char *p;
                ssize_t n = fill(f, at, CHUNK, &p);
                if (n < 0)
                        return n;
                for (ssize_t i = 0; i < n; i++) {
                        if (p[i] == frame_magic[0] && i + 4 <= n &&
                            memcmp(p + i, frame_magic, 4) == 0)
                                return (int64_t)(at + (uint64_t)i);
                        *zeros = *zeros && p[i] == 0;
                }
                if (n < CHUNK)
                        return 0;
                at += CHUNK - 3;
        }
}

static int step_behind(struct afz_frames *f, const struct afz_frame *frame)
{
        f->at = frame->at + AFZ_FRAME_HEAD + frame->len;
        return 1;
}

/* A frame stands at `found`, behind something that was none just now. That may have been cut off,
 * and been finished meanwhile: then it is the next one, and there is no hole. */
static int go_on(struct afz_frames *f, uint64_t found, struct afz_frame *ret)
{
        int r = look_at(f, f->at, ret);
        if (r >= 0 && r != WHOLE) {
                f->holes++;
                r = look_at(f, found, ret);
        }
        if (r < 0)
                return r;
        return r == WHOLE ? step_behind(f, ret) : 0;
}

/* Behind something that is no frame. */
static int resync(struct afz_frames *f, bool cut, struct afz_frame *ret)
{
        bool zeros = true;
        uint64_t at = f->at;
        while (f->in_vain < VAIN_MAX) {
                int64_t found = next_magic(f, at, &zeros);
                if (found < 0)
                        return (int)found;
                if (found == 0) {
                        f->holes += !cut && !zeros;
                        return 0;
                }
                int r = look_at(f, (uint64_t)found, ret);
                if (r < 0)
                        return r;
                if (r == WHOLE)
                        return go_on(f, (uint64_t)found, ret);
                at = (uint64_t)found + 1;
                zeros = false;
        }
        f->holes++;
        return 0;
}

int afz_frames_next(struct afz_frames *frames, struct afz_frame *ret)
{
        int r = look_at(frames, frames->at, ret);
        if (r < 0)
                return r;
        if (r != WHOLE)
                return resync(frames, r == CUT, ret);
        return step_behind(frames, ret);
}
