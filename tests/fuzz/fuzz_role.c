/* Any bytes as the clues of a role: no crash, and a role that has a name. */
#include <stdint.h>
#include <stdlib.h>

#include "role.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size < 4)
                return 0;
        /* The first bytes say where the rest is cut into four texts. */
        const char *text = (const char *)data + 4;
        size_t n = size - 4, a = n > 0 ? data[0] % n : 0, b = n > a ? a + data[1] % (n - a) : a;
        struct afz_role_guess g = afz_role_guess(&(struct afz_role_clues){
                .comm = {text, a < 15 ? a : 15},
                .cmdline = {text + a, b - a},
                .environ = {text + b, n - b},
                .parent_cmdline = {data[2] & 1 ? text + a : text, data[2] & 1 ? b - a : a},
                .parent_role = (enum afz_role)(data[3] % AFZ_ROLE_COUNT),
                .is_root = data[2] & 2,
        });
        if ((unsigned)g.role >= AFZ_ROLE_COUNT || g.rank < -1 || g.local_rank < -1)
                abort();
        return 0;
}
