#include "operand_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "history.h"
#include "run_id.h"

/* So many are named; a line has room for no more. */
enum { NAMED = 4 };

/* "several runs begin with '2026': 2026..., 2026... and 3 more", the newest first. */
static int say_several(const char *call)
{
        char names[NAMED * (AFZ_RUN_ID_CAP + 2)] = "", more[64] = "";
        struct afz_history *history;
        size_t at = 0, found = 0;
        if (afz_history_new(&history) == 0) {
                for (size_t i = 0; i < afz_history_count(history); i++) {
                        const char *id = afz_history_id(history, i);
                        if (!afz_run_id_fits(id, call) || !afz_history_get(history, i))
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
        return afz_fail(AFZ_EXIT_USAGE, "several runs %s with '%.48s'%s%s",
                        afz_is_digit(call[0]) ? "begin" : "end", call, names, more);
}

/* "20261115-120204-yaww" was started at 12:02:04 UTC; people live in another zone. */
static const char *started(const char *id, char *buf, size_t cap)
{
        struct tm tm = {0};
        time_t s = strptime(id, "%Y%m%d-%H%M%S", &tm) ? timegm(&tm) : -1;
        if (s < 0 || !localtime_r(&s, &tm) || strftime(buf, cap, "%Y-%m-%d %H:%M:%S", &tm) == 0)
                snprintf(buf, cap, "%s", "some time before");
        return buf;
}

/* The newest that can be told of may not be the last: nobody is to take the one for the other. */
static void say_older(const struct afz_run_ref *ref)
{
        char last[AFZ_RUN_ID_CAP], at[32], before[32];
        if (afz_run_unrecorded(last) && strcmp(last, ref->id) > 0)
                afz_say("the last run (%s) was not recorded: this is an older one, of %s",
                        started(last, at, sizeof at), started(ref->id, before, sizeof before));
}

int afz_operand_run(const char *text, struct afz_run_ref *ret)
{
        char last[AFZ_RUN_ID_CAP];
        int r = afz_run_find(text, ret);
        if (r == 0) {
                if (!text)
                        say_older(ret);
                return 0;
        }
        if (r == -ENOENT && !text && afz_run_unrecorded(last))
                return afz_fail(AFZ_EXIT_USAGE,
                                "the last run (%s) was not recorded, and there is no older one",
                                last);
        if (r == -ENOENT && !text)
                return afz_fail(AFZ_EXIT_USAGE,
                                "there is no run yet: 'antifreeze run -- CMD' makes one");
        if (r == -ENOENT && text[0] && strspn(text, "0123456789") == strlen(text))
                return afz_fail(AFZ_EXIT_USAGE,
                                "no living run has a process %.48s (an ID is never digits alone); "
                                "'antifreeze runs' lists them",
                                text);
        if (r == -EACCES)
                return afz_fail(AFZ_EXIT_USAGE,
                                "%.200s: Permission denied: a run is its owner's alone (0700)",
                                text ? text : "the folder of runs");
        if (r == -ENOENT && access(text, F_OK) == 0)
                return afz_fail(AFZ_EXIT_USAGE,
                                "%.200s is neither a run's folder nor a recording (flight.afz)",
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
