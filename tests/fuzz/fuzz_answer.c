/* Any bytes as the answer of a run's keeper: it is refused, or every text of it ends and is
 * printable, and its rows are in range. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "keeper_ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_text(const char *text, size_t cap)
{
        size_t n = strnlen(text, cap);
        if (n == cap)
                abort();
        for (size_t i = 0; i < n; i++)
                if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
                        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct afz_keeper_answer answer;
        size_t n = size < sizeof answer ? size : sizeof answer;
        memset(&answer, 0, sizeof answer);
        if (n > 0)
                memcpy(&answer, data, n);
        if (size > 0 && data[size - 1] % 4 != 0) /* mostly, it gets past the door */
                answer.magic = afz_keeper_ask_magic;
        if (afz_keeper_answer_check(&answer, sizeof answer) < 0)
                return 0;
        require_text(answer.words, sizeof answer.words);
        if (answer.rows > AFZ_KEEPER_ROWS || answer.live_bytes > INT64_MAX)
                abort();
        for (uint32_t i = 0; i < answer.rows; i++) {
                require_text(answer.row[i].name, sizeof answer.row[i].name);
                if (answer.row[i].live_bytes > INT64_MAX)
                        abort();
        }
        return 0;
}
