#include "verdict_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"
#include "json_read.h"

/* Ours are some KB. */
enum { MOST_BYTES = 256 << 10 };

int afz_verdict_text_read(int dir_fd, const char *path, char **ret, size_t *ret_bytes)
{
        struct stat st;
        int fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = fstat(fd, &st) < 0 ? -errno : 0;
        if (r == 0 && (!S_ISREG(st.st_mode) || st.st_size > MOST_BYTES))
                r = -EBADMSG;
        size_t cap = r == 0 ? (size_t)st.st_size + 1 : 0;
        char *text = r == 0 ? malloc(cap) : NULL;
        if (r == 0 && !text)
                r = -ENOMEM;
        /* One read: it is never written to, only replaced. */
        ssize_t n = r == 0 ? afz_fd_read_head(fd, text, cap) : r;
        close(fd);
        if (n >= 0 && n != st.st_size)
                n = -EBADMSG;
        if (n < 0) {
                free(text);
                return (int)n;
        }
        *ret = text;
        *ret_bytes = (size_t)n;
        return 0;
}

int afz_verdict_text_tell(struct afz_span text, struct afz_out *out)
{
        struct afz_json_value doc;
        if (afz_json_read(text, &doc) < 0 || doc.type != AFZ_JSON_OBJECT)
                return -EBADMSG;
        for (size_t i = 0; i < doc.raw.n; i++) {
                unsigned char c = (unsigned char)doc.raw.p[i];
                unsigned char next = i + 1 < doc.raw.n ? (unsigned char)doc.raw.p[i + 1] : 0;
                if (c < 0x20)
                        continue; /* between values: in a string it would have been refused */
                if (c == 0xc2 && next < 0xa0) { /* U+0080 to U+009F are controls, too */
                        afz_out_fmt(out, "\\u%04x", (unsigned)next);
                        i++;
                } else if (c == 0x7f) {
                        afz_out_str(out, "\\u007f");
                } else {
                        afz_out_char(out, (char)c);
                }
        }
        afz_out_char(out, '\n');
        return 0;
}
