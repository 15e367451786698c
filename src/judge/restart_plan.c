#include "restart_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

static const struct {
        uint64_t batch_most;
        unsigned backoff_s, backoff_most_s;
} limit = {
        .batch_most = UINT64_C(1) << 32, /* so that no product overflows */
        .backoff_s = 1,                  /* memory needs a moment to come back */
        .backoff_most_s = 30,            /* and a person is waiting */
};

/* The words, and which number each stands for. */
static const struct {
        const char *word;
        size_t offset;
} templates[] = {
        {"{batch}", offsetof(struct afz_restart_plan, batch)},
        {"{accum}", offsetof(struct afz_restart_plan, accum)},
};

int afz_restart_first(uint64_t batch, unsigned most, struct afz_restart_plan *ret)
{
        if (!batch || batch > limit.batch_most)
                return -EINVAL;
        *ret = (struct afz_restart_plan){
                .effective = batch, .batch = batch, .accum = 1, .most = most};
        return 0;
}

bool afz_restart_next(const struct afz_restart_plan *plan, struct afz_restart_plan *ret)
{
        if (plan->attempt >= plan->most || plan->batch <= 1)
                return false;
        struct afz_restart_plan next = *plan;
        next.attempt++;
        next.batch = plan->batch / 2;
        next.accum = (next.effective + next.batch - 1) / next.batch;
        *ret = next;
        return true;
}

void afz_restart_whole(unsigned most, struct afz_restart_plan *ret)
{
        *ret = (struct afz_restart_plan){.most = most};
}

bool afz_restart_leaner(const struct afz_restart_plan *plan, const struct afz_restart_facts *facts,
                        struct afz_restart_plan *ret)
{
        struct afz_restart_plan next = *plan;
        if (facts->learned > next.lean)
                next.lean = facts->learned;
        bool leaner = facts->smaller && !facts->least && next.lean < AFZ_RESTART_LEAN_MOST;
        if (plan->attempt >= plan->most || (!leaner && !facts->saved))
                return false;
        next.lean += leaner;
        next.attempt++;
        *ret = next;
        return true;
}

unsigned afz_restart_halvings(uint64_t batch, uint64_t micro)
{
        unsigned n = 0;
        if (micro == 0)
                return 0;
        for (; micro < batch && n < AFZ_RESTART_LEAN_MOST; n++)
                micro = micro > UINT64_MAX / 2 ? UINT64_MAX : micro * 2;
        return n;
}

uint64_t afz_restart_backoff_ns(const struct afz_restart_plan *plan)
{
        if (!plan->attempt)
                return 0;
        uint64_t s = limit.backoff_s;
        for (unsigned i = 1; i < plan->attempt && s < limit.backoff_most_s; i++)
                s *= 2;
        return (s < limit.backoff_most_s ? s : limit.backoff_most_s) * SECOND;
}

bool afz_restart_usable(const char *const *argv)
{
        for (; *argv; argv++)
                if (strstr(*argv, templates[0].word))
                        return true;
        return false;
}

static uint64_t number(const struct afz_restart_plan *plan, size_t offset)
{
        uint64_t value;
        memcpy(&value, (const char *)plan + offset, sizeof(value));
        return value;
}

/* Does `text` begin with a template? Its length, and the number it stands for. */
static bool template_at(const char *text, const struct afz_restart_plan *plan, size_t *ret_len,
                        uint64_t *ret)
{
        for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++) {
                size_t len = strlen(templates[i].word);
                if (strncmp(text, templates[i].word, len) == 0) {
                        *ret_len = len;
                        *ret = number(plan, templates[i].offset);
                        return true;
                }
        }
        return false;
}

/* One argument into buf; the bytes used, with its end. */
static int expand_one(const char *arg, const struct afz_restart_plan *plan, char *buf, size_t cap,
                      size_t *ret_used)
{
        size_t used = 0, len;
        uint64_t value;
        while (*arg) {
                char digits[24] = {*arg, 0};
                size_t put = 1, step = 1;
                if (template_at(arg, plan, &len, &value)) {
                        put = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value);
                        step = len;
                }
                if (used + put >= cap)
                        return -ENOSPC;
                memcpy(buf + used, digits, put);
                used += put;
                arg += step;
        }
        if (used >= cap)
                return -ENOSPC;
        buf[used] = 0;
        *ret_used = used + 1;
        return 0;
}

/* Most arguments have none; they need no room. */
static bool has_template(const char *arg)
{
        for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++)
                if (strstr(arg, templates[i].word))
                        return true;
        return false;
}

int afz_restart_expand(const char *const *argv, const struct afz_restart_plan *plan,
                       const char **ret_argv, size_t argv_cap, char *buf, size_t cap)
{
        size_t n = 0;
        for (; argv[n]; n++) {
                size_t used = 0;
                if (n + 1 >= argv_cap)
                        return -ENOSPC;
                ret_argv[n] = argv[n];
                if (!has_template(argv[n]))
                        continue;
                int r = expand_one(argv[n], plan, buf, cap, &used);
                if (r < 0)
                        return r;
                ret_argv[n] = buf;
                buf += used;
                cap -= used;
        }
        if (n >= argv_cap)
                return -ENOSPC;
        ret_argv[n] = NULL;
        return 0;
}
