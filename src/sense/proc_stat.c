#include "proc_stat.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "count_of.h"

/* Fields of /proc/PID/stat by their number in proc(5). */
enum {
        FIELD_PPID = 4,
        FIELD_PGRP = 5,
        FIELD_SESSION = 6,
        FIELD_FLAGS = 9,
        FIELD_MINFLT = 10,
        FIELD_MAJFLT = 12,
        FIELD_UTIME = 14,
        FIELD_STIME = 15,
        FIELD_NICE = 19,
        FIELD_THREADS = 20,
        FIELD_START = 22,
        FIELD_BLKIO = 42,
        FIELD_COUNT
};

/* Which may be below zero: group and session of a process that is being reaped (-1), tpgid, cutime,
 * cstime, priority, nice, exit_signal and processor. */
static bool may_be_negative(int field)
{
        return field == FIELD_PGRP || field == FIELD_SESSION || field == 8 ||
               (field >= 16 && field <= FIELD_NICE) || field == 38 || field == 39;
}

/* One number with a blank before it; a negative one is kept in two's complement. Written out here
 * and not with afz_span_take_*: forty of these are read for every process in every tick. */
static const char *take_field(const char *p, const char *end, int number, uint64_t *ret)
{
        uint64_t value = 0;
        if (p == end || *p != ' ')
                return NULL;
        bool negative = ++p < end && *p == '-';
        p += negative;
        const char *digits = p;
        for (; p < end && afz_is_digit(*p); p++)
                value = value * 10 + (uint64_t)(*p - '0');
        /* What is longer than 19 digits may have wrapped: the slow way knows. */
        if (p - digits > 19 &&
            afz_span_u64((struct afz_span){digits, (size_t)(p - digits)}, &value) < 0)
                return NULL;
        if (p == digits || p == end || (*p != ' ' && *p != '\n'))
                return NULL;
        if (negative && (value > INT64_MAX || !may_be_negative(number)))
                return NULL;
        *ret = negative ? 0 - value : value;
        return p;
}

int afz_proc_stat_parse(struct afz_span text, struct afz_proc_stat *ret)
{
        static const char states[] = "RSDTtZXxKWPI";
        struct afz_proc_stat st = {0};
        uint64_t field[FIELD_COUNT];

        if (text.n == 0 || text.p[text.n - 1] != '\n')
                return -EINVAL;
        const char *close = memrchr(text.p, ')', text.n);
        struct afz_span head = text;
        if (!close || afz_span_take_u64(&head, &st.pid) < 0 ||
            afz_span_take_prefix(&head, " (") < 0 || head.p > close)
                return -EINVAL;
        st.comm = (struct afz_span){head.p, (size_t)(close - head.p)};

        const char *p = close + 1, *end = text.p + text.n;
        if (end - p < 3 || p[0] != ' ' || !memchr(states, p[1], sizeof states - 1))
                return -EINVAL;
        st.state = p[1];
        p += 2;
        for (int i = FIELD_PPID; i < FIELD_COUNT; i++)
                if (!(p = take_field(p, end, i, &field[i])))
                        return -EINVAL;

        st.ppid = field[FIELD_PPID];
        st.pgrp = field[FIELD_PGRP];
        st.session = field[FIELD_SESSION];
        st.flags = field[FIELD_FLAGS];
        st.minor_faults = field[FIELD_MINFLT];
        st.major_faults = field[FIELD_MAJFLT];
        st.user_ticks = field[FIELD_UTIME];
        st.system_ticks = field[FIELD_STIME];
        st.nice = (int64_t)field[FIELD_NICE];
        st.threads = field[FIELD_THREADS];
        st.start_ticks = field[FIELD_START];
        st.io_wait_ticks = field[FIELD_BLKIO];
        *ret = st;
        return 0;
}

int afz_proc_statm_parse(struct afz_span text, struct afz_proc_statm *ret)
{
        struct afz_proc_statm m;
        struct afz_span line;
        if (afz_span_take_line(&text, &line) < 0 || afz_span_take_u64(&line, &m.size_pages) < 0 ||
            afz_span_take_u64(&line, &m.resident_pages) < 0 ||
            afz_span_take_u64(&line, &m.shared_pages) < 0)
                return -EINVAL;
        *ret = m;
        return 0;
}

enum { IO_KEYS = 5 };

struct io_values {
        uint64_t v[IO_KEYS];
        unsigned seen; /* bits */
};

static void set_io(void *ctx, int id, uint64_t value)
{
        struct io_values *io = ctx;
        io->v[id] = value;
        io->seen |= 1U << id;
}

int afz_proc_io_parse(struct afz_span text, struct afz_proc_io *ret)
{
        static const struct afz_key keys[] = {
                {"rchar", 0, 0},
                {"wchar", 1, 0},
                {"read_bytes", 2, 0},
                {"write_bytes", 3, 0},
                {"cancelled_write_bytes", 4, 0},
        };
        _Static_assert(AFZ_COUNT_OF(keys) == IO_KEYS, "a place for each");
        struct io_values io = {.seen = 0};
        /* Each key once: five times the same one is not five keys. */
        if (afz_span_each_key(text, keys, IO_KEYS, set_io, &io) != IO_KEYS ||
            io.seen != (1U << IO_KEYS) - 1)
                return -EINVAL;
        *ret = (struct afz_proc_io){io.v[0], io.v[1], io.v[2], io.v[3], io.v[4]};
        return 0;
}
