#ifndef AFZ_KEY_H
#define AFZ_KEY_H
/* Keys out of the bytes that a terminal sends. Pure. */
#include <stddef.h>

enum afz_keypress {
        AFZ_KEY_NONE,
        /* 1 to 126: the ASCII character itself, control characters included */
        AFZ_KEY_ESCAPE = 0x1b,
        AFZ_KEY_UP = 256,
        AFZ_KEY_DOWN,
        AFZ_KEY_LEFT,
        AFZ_KEY_RIGHT,
        AFZ_KEY_PAGE_UP,
        AFZ_KEY_PAGE_DOWN,
        AFZ_KEY_HOME,
        AFZ_KEY_END,
        AFZ_KEY_OTHER /* something that no view has a use for */
};

/* Takes the next key off buf and says how many bytes it took; AFZ_KEY_NONE (and 0) at the end. A
 * lone escape at the end is the escape key: terminals send a sequence in one piece. */
int afz_key_take(const char *buf, size_t n, size_t *ret_used);

#endif
