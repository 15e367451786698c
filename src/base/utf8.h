#ifndef AFZ_UTF8_H
#define AFZ_UTF8_H
/* UTF-8, strictly (RFC 3629): overlong forms, surrogates and what is cut short are not UTF-8. */
#include <stddef.h>

/* How many bytes the character at the front of these has; 0: they begin with none. */
static inline size_t afz_utf8_length(const char *text, size_t n)
{
        const unsigned char *p = (const unsigned char *)text;
        if (n == 0)
                return 0;
        if (p[0] < 0x80)
                return 1;
        size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
        if (p[0] < 0xc2 || p[0] > 0xf4 || n < length)
                return 0;
        for (size_t i = 1; i < length; i++)
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
        if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
            (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
                return 0;
        return length;
}

#endif
