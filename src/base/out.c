#include "out.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int afz_write_all(int fd, const void *from, size_t n)
{
        const char *p = from;
        while (n > 0) {
                ssize_t w = write(fd, p, n);
                if (w < 0 && errno == EINTR)
                        continue;
                /* Another program may have made our terminal or pipe non-blocking. */
                if (w < 0 && errno == EAGAIN) {
                        (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
                        continue;
                }
                if (w < 0)
                        return -errno;
                p += w;
                n -= (size_t)w;
        }
        return 0;
}

int afz_out_flush(struct afz_out *out)
{
        if (out->err == 0 && out->fd >= 0) {
                out->err = afz_write_all(out->fd, out->buf, out->len);
                out->len = 0;
        }
        return out->err;
}

void afz_out_overflow(struct afz_out *out, const char *p, size_t n)
{
        if (n > 0 && out->cap == 0 && out->err == 0)
                out->err = -ENOSPC; /* no buffer: nothing to flush would ever make room */
        while (n > 0 && out->err == 0) {
                size_t room = out->cap - out->len;
                size_t part = n < room ? n : room;
                memcpy(out->buf + out->len, p, part);
                out->len += part;
                p += part;
                n -= part;
                if (n > 0 && out->fd < 0)
                        out->err = -ENOSPC;
                else if (n > 0)
                        afz_out_flush(out);
        }
}

void afz_out_str(struct afz_out *out, const char *s)
{
        afz_out_bytes(out, s, strlen(s));
}

void afz_out_u64(struct afz_out *out, uint64_t v)
{
        char digits[20];
        size_t at = sizeof digits;
        do {
                digits[--at] = (char)('0' + v % 10);
                v /= 10;
        } while (v > 0);
        afz_out_bytes(out, digits + at, sizeof digits - at);
}

void afz_out_i64(struct afz_out *out, int64_t v)
{
        if (v < 0)
                afz_out_char(out, '-');
        afz_out_u64(out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void afz_out_fmt(struct afz_out *out, const char *format, ...)
{
        char text[1024];
        va_list args;
        va_start(args, format);
        int n = vsnprintf(text, sizeof text, format, args);
        va_end(args);
        if (n > 0)
                afz_out_bytes(out, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}
