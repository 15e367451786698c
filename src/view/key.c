#include "key.h"

#include <stdint.h>

static int of_letter(char letter)
{
        switch (letter) {
        case 'A':
                return AFZ_KEY_UP;
        case 'B':
                return AFZ_KEY_DOWN;
        case 'C':
                return AFZ_KEY_RIGHT;
        case 'D':
                return AFZ_KEY_LEFT;
        case 'H':
                return AFZ_KEY_HOME;
        case 'F':
                return AFZ_KEY_END;
        default:
                return AFZ_KEY_OTHER;
        }
}

static int of_number(unsigned number)
{
        switch (number) {
        case 1:
        case 7:
                return AFZ_KEY_HOME;
        case 4:
        case 8:
                return AFZ_KEY_END;
        case 5:
                return AFZ_KEY_PAGE_UP;
        case 6:
                return AFZ_KEY_PAGE_DOWN;
        default:
                return AFZ_KEY_OTHER;
        }
}

/* "ESC [ parameters letter", of which only the first parameter and the letter matter. */
static int take_sequence(const char *buf, size_t n, size_t *ret_used)
{
        unsigned number = 0;
        int first = 1;
        size_t i = 2;
        for (; i < n && buf[i] >= 0x20 && buf[i] <= 0x3f; i++) {
                if (buf[i] < '0' || buf[i] > '9')
                        first = 0;
                else if (first && number < 1000)
                        number = number * 10 + (unsigned)(buf[i] - '0');
        }
        if (i == n) {
                *ret_used = n;
                return AFZ_KEY_OTHER;
        }
        *ret_used = i + 1;
        return buf[i] == '~' ? of_number(number) : of_letter(buf[i]);
}

int afz_key_take(const char *buf, size_t n, size_t *ret_used)
{
        if (n == 0) {
                *ret_used = 0;
                return AFZ_KEY_NONE;
        }
        unsigned char c = (unsigned char)buf[0];
        if (c == AFZ_KEY_ESCAPE && n > 2 && buf[1] == '[')
                return take_sequence(buf, n, ret_used);
        if (c == AFZ_KEY_ESCAPE && n > 2 && buf[1] == 'O') {
                *ret_used = 3;
                return of_letter(buf[2]);
        }
        *ret_used = 1;
        return c > 0 && c < 0x7f ? c : AFZ_KEY_OTHER;
}
