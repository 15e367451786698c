#include "operand_run.h"

#include <errno.h>
#include <string.h>

#include "commands.h"

int afz_operand_run(const char *text, struct afz_run_ref *ret)
{
        int r = afz_run_find(text, ret);
        if (r == 0)
                return 0;
        if (r == -ENOENT && !text)
                return afz_fail(AFZ_EXIT_USAGE,
                                "there is no run yet: 'antifreeze run -- CMD' makes one");
        if (r == -ENOENT && text[0] && strspn(text, "0123456789") == strlen(text))
                return afz_fail(AFZ_EXIT_USAGE,
                                "no living run has a process %.48s (an ID is never digits alone)",
                                text);
        if (r == -ENOENT)
                return afz_fail(AFZ_EXIT_USAGE, "there is no run '%.200s'", text);
        if (r == -ENOTUNIQ)
                return afz_fail(AFZ_EXIT_USAGE, "several runs begin with '%.48s'", text);
        return afz_fail(AFZ_EXIT_USAGE, "the run cannot be found: %s", strerror(-r));
}
