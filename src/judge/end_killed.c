#include "end_killed.h"

#include <stdio.h>

#include "judge_words.h"

/* "python3 (pid 4711)", "one of its processes", "the job". */
static const char *victim(const struct afz_case *c, const struct afz_kill_clue *clue, char *buf,
                          size_t cap)
{
        bool whole = c->facts.end.how != AFZ_END_EXIT;
        if (clue->name)
                snprintf(buf, cap, "%.40s (pid %llu)", clue->name, (unsigned long long)clue->pid);
        else
                snprintf(buf, cap, "%s", whole ? "the job" : "one of its processes");
        return buf;
}

static void say_above(const struct afz_case *c, const struct afz_kill_clue *clue,
                      struct afz_verdict *v)
{
        char who[64], limit[32] = "";
        if (clue->limit_bytes)
                snprintf(limit, sizeof limit, " (%s)", SIZE(clue->limit_bytes));
        snprintf(v->summary, sizeof v->summary,
                 "the kernel killed %s for memory at the limit of the container or session around "
                 "it%s, not at one of Antifreeze's",
                 victim(c, clue, who, sizeof who), limit);
        snprintf(v->fix, sizeof v->fix,
                 "a smaller batch, or streaming the data; or a higher limit there (docker run "
                 "--memory, sbatch --mem, the pod's limit)%s%s%s",
                 clue->limit_bytes ? "; a --budget below " : "",
                 clue->limit_bytes ? SIZE(clue->limit_bytes) : "",
                 clue->limit_bytes ? " lets Antifreeze end it gently first" : "");
        if (clue->place)
                afz_verdict_note(v, "the limit is of the cgroup %.150s", clue->place);
}

static void say_machine(const struct afz_case *c, const struct afz_kill_clue *clue,
                        struct afz_verdict *v)
{
        char who[64];
        snprintf(v->summary, sizeof v->summary,
                 "the whole machine ran out of memory, and the kernel killed %s to save the rest",
                 victim(c, clue, who, sizeof who));
        snprintf(v->fix, sizeof v->fix, "%s",
                 c->facts.watch_only
                         ? "run it without --policy watch: Antifreeze then holds it back before "
                           "that; and a smaller batch, or streaming the data"
                         : "a smaller batch or a smaller --budget, or close other programs; "
                           "`antifreeze doctor` tells how to hold it better");
}

void afz_end_put_killed(const struct afz_case *c, const struct afz_kill_clue *clue,
                        struct afz_verdict *v)
{
        if (clue->of == AFZ_LIMIT_ABOVE) {
                say_above(c, clue, v);
        } else if (clue->of == AFZ_LIMIT_MACHINE) {
                say_machine(c, clue, v);
        } else {
                snprintf(v->summary, sizeof v->summary,
                         "the kernel stopped the job at the limit that protects the machine (%s): "
                         "it grew faster than it could be stopped gently",
                         SIZE(c->budget_bytes));
                snprintf(v->fix, sizeof v->fix,
                         "a smaller batch, or streaming the data; if the RAM is there, --budget "
                         "raises the limit");
        }
        if (c->facts.end.how == AFZ_END_EXIT)
                afz_verdict_note(v, "it then ended with exit status %d", c->facts.end.code);
        if (clue->line)
                afz_verdict_note(v, "the kernel's log: %.170s", clue->line);
}
