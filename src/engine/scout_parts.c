#include "scout_parts.h"

#include <stdio.h>
#include <string.h>

/* The server appends its own to what it has; most people's environments have a few KiB. */
#define ENVIRON_CAP 65536

/* The last part of the path, with what could move a cursor replaced. */
static void take_name(struct afz_span path, char *ret, size_t cap)
{
        afz_span_copy(afz_span_base_name(path), ret, cap);
        for (char *c = ret; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = '?';
}

static void read_name(const struct afz_env *env, uint64_t pid, char *ret, size_t cap)
{
        static const char variable[] = "JPY_SESSION_NAME=";
        char path[40], buf[ENVIRON_CAP];
        struct afz_span text;
        ret[0] = '\0';
        snprintf(path, sizeof path, "%llu/environ", (unsigned long long)pid);
        if (afz_env_read(env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) < 0)
                return;
        while (text.n > 0) {
                const char *end = memchr(text.p, '\0', text.n);
                struct afz_span row = {text.p, end ? (size_t)(end - text.p) : text.n};
                size_t used = row.n + (end ? 1 : 0);
                text.p += used;
                text.n -= used;
                if (afz_span_take_prefix(&row, variable) == 0)
                        take_name(row, ret, cap);
        }
}

void afz_scout_parts_name(const struct afz_env *env, struct afz_scout_report *report)
{
        for (unsigned i = 0; i < report->parts; i++) {
                if (report->part_named[i] == report->part_pid[i])
                        continue;
                read_name(env, report->part_pid[i], report->part_name[i],
                          sizeof report->part_name[i]);
                report->part_named[i] = report->part_pid[i];
        }
}
