#ifndef AFZ_OUT_H
#define AFZ_OUT_H
/* Text on its way out: a buffer given by the caller that is written to a descriptor when full or
 * when flushed, or (fd -1) a plain buffer in memory. No stdio, no allocation, so views may use it
 * in every tick.
 *
 * The first error stays in `err` and everything after it is dropped: write freely, look once at the
 * end. In memory, text beyond cap is cut and err is -ENOSPC.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct afz_out {
        int fd, err;
        size_t len, cap;
        char *buf;
};

static inline struct afz_out afz_out_to(int fd, char *buf, size_t cap)
{
        return (struct afz_out){.fd = fd, .buf = buf, .cap = cap};
}

/* The slow way of afz_out_bytes(): when it does not fit, or after an error. */
void afz_out_overflow(struct afz_out *out, const char *p, size_t n);

/* Inline: a JSON object of one tick is some thousand small pieces. */
static inline void afz_out_bytes(struct afz_out *out, const char *p, size_t n)
{
        if (n == 0)
                return; /* there may be no buffer at all */
        if (out->err != 0 || n > out->cap - out->len) {
                afz_out_overflow(out, p, n);
                return;
        }
        memcpy(out->buf + out->len, p, n);
        out->len += n;
}

static inline void afz_out_char(struct afz_out *out, char c)
{
        afz_out_bytes(out, &c, 1);
}

void afz_out_str(struct afz_out *out, const char *s);
void afz_out_u64(struct afz_out *out, uint64_t v);
void afz_out_i64(struct afz_out *out, int64_t v);

/* For figures and short texts: what is longer than 1023 bytes is cut to that. */
void afz_out_fmt(struct afz_out *out, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Writes what is held; returns 0 or the first error. */
int afz_out_flush(struct afz_out *out);

/* write() until all of it is written: also after a signal, and where another program has made our
 * terminal or pipe non-blocking. */
int afz_write_all(int fd, const void *from, size_t n);

#endif
