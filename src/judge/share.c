#include "share.h"

#include "lines.h"

static uint64_t less(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t pool_of(const struct afz_stake *stake, unsigned count, uint64_t room_bytes)
{
        uint64_t pool = room_bytes, promised = 0;
        for (const struct afz_stake *s = stake; s < stake + count; s++) {
                if (s->fixed)
                        promised = plus(promised, less(s->budget_bytes, s->need_bytes));
                else
                        pool = plus(pool, s->need_bytes);
        }
        return less(pool, promised);
}

void afz_share_divide(struct afz_stake *stake, unsigned count, uint64_t room_bytes)
{
        uint64_t kept = 0;
        unsigned sharing = 0;
        for (struct afz_stake *s = stake; s < stake + count; s++) {
                s->share_bytes = s->budget_bytes;
                if (s->fixed)
                        continue;
                uint64_t least = afz_budget_least(s->need_bytes);
                if (s->budget_bytes == 0 || s->budget_bytes > least)
                        s->share_bytes = least;
                kept = plus(kept, s->share_bytes);
                sharing++;
        }
        uint64_t rest = less(pool_of(stake, count, room_bytes), kept);
        for (struct afz_stake *s = stake; s < stake + count; s++)
                if (!s->fixed)
                        s->share_bytes = plus(s->share_bytes, rest / sharing);
}

uint64_t afz_share_left(const struct afz_stake *stake, unsigned count, uint64_t room_bytes)
{
        uint64_t left = pool_of(stake, count, room_bytes);
        for (const struct afz_stake *s = stake; s < stake + count; s++)
                if (!s->fixed)
                        left = less(left, s->budget_bytes);
        return left;
}

void afz_share_grant(struct afz_stake *stake, unsigned count, uint64_t room_bytes)
{
        uint64_t left = afz_share_left(stake, count, room_bytes);
        for (unsigned i = count; i-- > 0;) {
                struct afz_stake *s = &stake[i];
                if (s->fixed || s->share_bytes <= s->budget_bytes)
                        continue;
                uint64_t more = s->share_bytes - s->budget_bytes;
                if (more > left)
                        more = left;
                s->budget_bytes += more;
                left -= more;
        }
}
