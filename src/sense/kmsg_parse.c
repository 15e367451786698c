#include "kmsg_parse.h"

#include <errno.h>
#include <string.h>

#include "count_of.h"

int afz_kmsg_parse(struct afz_span record, struct afz_kmsg *ret)
{
        struct afz_kmsg k = {0};
        struct afz_span head, priority, sequence, usec, line;
        uint64_t prio;
        if (afz_span_take_until(&record, ';', &head) < 0 ||
            afz_span_take_until(&head, ',', &priority) < 0 ||
            afz_span_take_until(&head, ',', &sequence) < 0 ||
            afz_span_take_until(&head, ',', &usec) < 0)
                return -EINVAL;
        if (afz_span_u64(priority, &prio) < 0 || afz_span_u64(sequence, &k.sequence) < 0 ||
            afz_span_u64(usec, &k.usec) < 0)
                return -EINVAL;
        k.facility = prio >> 3;
        k.level = prio & 7;
        k.text = afz_span_take_line(&record, &line) == 0 ? line : record;
        *ret = k;
        return 0;
}

/* Where the event's number stands. */
enum number { NONE, AFTER, BEFORE };

struct pattern {
        const char *starts; /* the line begins so; NULL: anyhow */
        const char *has;    /* and has this behind it; NULL: nothing needed */
        enum number number; /* right after `has` (or after `starts`), or right before `has` */
        enum afz_event_kind kind;
};

/* clang-format off: one row a line */
static const struct pattern patterns[] = {
        {"Out of memory", "Killed process ", AFTER, AFZ_EVENT_OOM_KILL},
        {"Memory cgroup out of memory", "Killed process ", AFTER, AFZ_EVENT_OOM_KILL},
        {"NVRM: Xid (PCI:", "): ", AFTER, AFZ_EVENT_XID},
        {"mce: [Hardware Error]", NULL, NONE, AFZ_EVENT_MACHINE_CHECK},
        {"{", "}[Hardware Error]: Hardware error from APEI", NONE, AFZ_EVENT_MACHINE_CHECK},
        {"INFO: task ", " blocked for more than ", BEFORE, AFZ_EVENT_HUNG_TASK},
        {NULL, "]: segfault at ", BEFORE, AFZ_EVENT_SEGFAULT},
        {"traps: ", "] general protection", BEFORE, AFZ_EVENT_SEGFAULT},
        {"traps: ", "] trap ", BEFORE, AFZ_EVENT_SEGFAULT},
        {"I/O error, dev ", NULL, NONE, AFZ_EVENT_IO_ERROR},
        {"critical medium error, dev ", NULL, NONE, AFZ_EVENT_IO_ERROR},
        {"critical target error, dev ", NULL, NONE, AFZ_EVENT_IO_ERROR},
        {"blk_update_request: ", " error, dev ", NONE, AFZ_EVENT_IO_ERROR},
        {"print_req_error: ", " error, dev ", NONE, AFZ_EVENT_IO_ERROR},
        {"Buffer I/O error on dev ", NULL, NONE, AFZ_EVENT_IO_ERROR},
};
/* clang-format on */

static int number_before(const char *start, const char *end, uint64_t *ret)
{
        const char *p = end;
        while (p > start && afz_is_digit(p[-1]))
                p--;
        /* "name[123" or "name:123": the name may end in digits of its own. */
        if (p == start || (p[-1] != '[' && p[-1] != ':'))
                return -EINVAL;
        return afz_span_u64((struct afz_span){p, (size_t)(end - p)}, ret);
}

static const char *find(const char *p, const char *end, const char *needle)
{
        return p < end ? memmem(p, (size_t)(end - p), needle, strlen(needle)) : NULL;
}

/* Takes what is behind `has` as rest, or the number before it. A process may be *called* like the
 * words we look for: the first place where they have a number before them is the true one, since
 * both together do not fit into a name. */
static int match_has(const struct pattern *row, struct afz_span *rest, uint64_t *ret_code)
{
        const char *end = rest->p + rest->n, *at = find(rest->p, end, row->has);
        while (at && row->number == BEFORE && number_before(rest->p, at, ret_code) < 0)
                at = find(at + 1, end, row->has);
        if (!at)
                return -ENODATA;
        at += strlen(row->has);
        *rest = (struct afz_span){at, (size_t)(end - at)};
        return 0;
}

static int match(const struct pattern *row, struct afz_span text, uint64_t *ret_code)
{
        *ret_code = 0;
        if (row->starts && afz_span_take_prefix(&text, row->starts) < 0)
                return -ENODATA;
        if (row->has && match_has(row, &text, ret_code) < 0)
                return -ENODATA;
        return row->number == AFTER ? afz_span_take_u64(&text, ret_code) : 0;
}

int afz_kmsg_recognise(const struct afz_kmsg *line, struct afz_kmsg_event *ret)
{
        if (line->facility != 0)
                return -ENODATA;
        for (size_t i = 0; i < AFZ_COUNT_OF(patterns); i++) {
                uint64_t code;
                if (match(&patterns[i], line->text, &code) < 0 || code > INT64_MAX)
                        continue;
                *ret = (struct afz_kmsg_event){patterns[i].kind, (int64_t)code};
                return 0;
        }
        return -ENODATA;
}
