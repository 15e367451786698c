#include "operand_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "history.h"

/* So many are named; a line has room for no more. */
enum { NAMED = 4 };

/* "several runs begin with '2026': 2026..., 2026... and 3 more", the newest first. */
static int say_several(const char *prefix)
{
        char names[NAMED * (AFZ_RUN_ID_CAP + 2)] = "", more[64] = "";
        struct afz_history *history;
        size_t at = 0, found = 0;
        if (afz_history_new(&history) == 0) {
                for (size_t i = 0; i < afz_history_count(history); i++) {
                        const char *id = afz_history_id(history, i);
                        if (strncmp(id, prefix, strlen(prefix)) != 0 ||
                            !afz_history_get(history, i))
                                continue;
                        if (found++ < NAMED)
                                at += (size_t)snprintf(names + at, sizeof names - at, "%s%s",
                                                       at ? ", " : ": ", id);
                }
                afz_history_free(history);
        }
        if (found > NAMED)
                snprintf(more, sizeof more, " and %zu more ('antifreeze runs' lists them)",
                         found - NAMED);
        return afz_fail(AFZ_EXIT_USAGE, "several runs begin with '%.48s'%s%s", prefix, names, more);
}

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
                return afz_fail(AFZ_EXIT_USAGE,
                                "there is no run '%.200s'; 'antifreeze runs' lists them", text);
        if (r == -ENOTUNIQ)
                return say_several(text);
        return afz_fail(AFZ_EXIT_USAGE, "the run cannot be found: %s", strerror(-r));
}

int afz_fail_unreadable(const struct afz_run_ref *ref, int error)
{
        return afz_fail(AFZ_EXIT_USAGE, "nothing can be read of run %s%s%s: %s", ref->id,
                        ref->dir[0] ? " in " : "", ref->dir,
                        error == -EBADMSG  ? "its files are damaged"
                        : error == -EPROTO ? "another version of Antifreeze wrote it"
                                           : strerror(-error));
}
