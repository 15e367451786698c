#include "lines.h"

#define MIB    (UINT64_C(1) << 20)
#define GIB    (UINT64_C(1) << 30)
#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

/* Every threshold of budget, lines and pace. */
static const struct {
        uint64_t reserve_percent, reserve_least, reserve_most;
        uint64_t low_percent;
        uint64_t headroom_percent, headroom_least, headroom_most, headroom_share;
        uint64_t margin_percent, margin_least, margin_most, margin_share;
        uint64_t slow_percent, swap_last_part;
        uint64_t floor_bytes, container_percent, swap_percent, again_percent, again_bytes;
        uint64_t fill_bytes_per_s, pace_least_ns, pace_most_ns, near_act_ns, near_low_ns;
} limit = {
        .reserve_percent = 10,      /* of RAM: where earlyoom begins to act by default */
        .reserve_least = 256 * MIB, /* less than this and even a console pages */
        .reserve_most = 4 * GIB,    /* a browser and a desktop; beyond it nothing gains */
        .low_percent = 50,          /* of the reserve: half of it is gone, so something is wrong,
                                     * and the other half is left to put it right with */
        .headroom_percent = 10,     /* of the budget: room to take evidence and to save in */
        .headroom_least = 32 * MIB, /* 64 ms at 500 MB/s: a freeze, two looks and a kill */
        .headroom_most = 2 * GIB,   /* 1 s at 2 GB/s; a checkpoint's buffers seldom need more */
        .headroom_share = 25,       /* % of a small budget that it may take at most */
        .margin_percent = 25,       /* of the headroom lies between stop and hard */
        .margin_least = 16 * MIB,   /* 32 ms at 500 MB/s: a late look (8 ms), a kill (12 ms), and
                                     * the bit that the kernel charges beyond our need */
        .margin_most = 256 * MIB,   /* the kernel's charge is never that far from need */
        .margin_share = 50,         /* % of the headroom that it may take at most */
        .slow_percent = 150,        /* of the headroom of RAM: a job that is held at slow, give or
                                     * take what the kernel lets it exceed, is below act */
        .swap_last_part = 8,        /* of the swap allowance is left alone: a job that has all of it
                                     * is parked at slow, stands still, and looks as if it fitted */
        .floor_bytes = 64 * MIB,    /* an interpreter starts in this */
        .container_percent = 90,    /* of what a container has left: its limit kills, too */
        .swap_percent = 25,         /* of the budget: more in swap than that is thrashing */
        .again_percent = 25,        /* a re-reckoned budget lies so far above need ... */
        .again_bytes = 64 * MIB,    /* ... plus this, so that act stays above need as well */
        .fill_bytes_per_s = UINT64_C(10000000000), /* until measured: no machine faults faster */
        .pace_least_ns = 2 * MS,  /* a look costs tens of microseconds: 2 % of a core */
        .pace_most_ns = 100 * MS, /* a person sees the line in time, and it costs nothing */
        .near_act_ns = 10 * MS,   /* a job that sits close below act is not looked at more often
                                   * than this while stop is far: 20 MB at 2 GB/s */
        .near_low_ns = 5 * MS,    /* the same for a machine that stays short */
};

static uint64_t percent(uint64_t value, uint64_t p)
{
        return value / 100 * p + value % 100 * p / 100;
}

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
        return value < least ? least : value > most ? most : value;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t afz_reserve_of(uint64_t ram_total_bytes)
{
        return within(percent(ram_total_bytes, limit.reserve_percent), limit.reserve_least,
                      limit.reserve_most);
}

static uint64_t headroom_of(uint64_t bytes)
{
        uint64_t room = within(percent(bytes, limit.headroom_percent), limit.headroom_least,
                               limit.headroom_most);
        return min_u64(room, percent(bytes, limit.headroom_share));
}

struct afz_lines afz_lines_of(const struct afz_budget *budget, uint64_t ram_total_bytes)
{
        uint64_t kept = headroom_of(budget->ram_bytes); /* of RAM, to save in */
        uint64_t slow = budget->ram_bytes - percent(kept, limit.slow_percent);
        uint64_t hard = plus(budget->ram_bytes - kept,
                             budget->swap_bytes - budget->swap_bytes / limit.swap_last_part);
        if (hard < budget->ram_bytes) /* an allowance too small to matter */
                hard = budget->ram_bytes;
        /* The headroom is RAM's, whatever may go to swap: else a job that is held at slow would be
         * over act as soon as its allowance is large. */
        uint64_t margin =
                within(percent(kept, limit.margin_percent), limit.margin_least, limit.margin_most);
        margin = min_u64(margin, percent(kept, limit.margin_share));
        return (struct afz_lines){
                .act_bytes = hard - kept,
                .stop_bytes = hard - margin,
                .hard_bytes = hard,
                .low_bytes = ram_total_bytes ? percent(min_u64(afz_reserve_of(ram_total_bytes),
                                                               ram_total_bytes),
                                                       limit.low_percent)
                                             : 0,
                .total_bytes = ram_total_bytes,
                .slow_bytes = budget->swap_bytes > 0 ? slow : UINT64_MAX,
                .ram_bytes = budget->ram_bytes,
        };
}

bool afz_lines_need(const struct afz_lines *lines, const struct afz_pulse *pulse, uint64_t *ret)
{
        uint64_t need, away = 0;
        if (!afz_pulse_get(pulse, AFZ_PULSE_NEED, &need))
                return false;
        (void)afz_pulse_get(pulse, AFZ_PULSE_SWAP, &away);
        *ret = need;
        if (lines->slow_bytes == UINT64_MAX)
                return true;
        uint64_t left = less(lines->ram_bytes, less(need, away));
        uint64_t in_ram = less(lines->hard_bytes, left);
        if (in_ram > need)
                *ret = in_ram;
        return true;
}

uint64_t afz_swap_default(uint64_t ram_bytes, uint64_t swap_free_bytes)
{
        return min_u64(swap_free_bytes / 2, percent(ram_bytes, limit.swap_percent));
}

uint64_t afz_room_of(uint64_t ram_total_bytes, uint64_t available_bytes, uint64_t limit_bytes)
{
        uint64_t room = less(available_bytes, afz_reserve_of(ram_total_bytes));
        return limit_bytes == UINT64_MAX
                       ? room
                       : min_u64(room, percent(limit_bytes, limit.container_percent));
}

uint64_t afz_budget_least(uint64_t need_bytes)
{
        return plus(plus(need_bytes, percent(need_bytes, limit.again_percent)), limit.again_bytes);
}

struct afz_budget afz_budget_default(uint64_t ram_total_bytes, uint64_t available_bytes,
                                     uint64_t promised_bytes, uint64_t limit_bytes,
                                     uint64_t swap_free_bytes, bool *ret_tight)
{
        uint64_t ram =
                less(afz_room_of(ram_total_bytes, available_bytes, limit_bytes), promised_bytes);
        bool tight = ram < limit.floor_bytes;
        if (tight)
                ram = limit.floor_bytes;
        if (ret_tight)
                *ret_tight = tight;
        return (struct afz_budget){
                .ram_bytes = ram,
                .swap_bytes = afz_swap_default(ram, swap_free_bytes),
        };
}

struct afz_budget afz_budget_again(const struct afz_budget *first, uint64_t ram_total_bytes,
                                   uint64_t available_bytes, uint64_t promised_bytes,
                                   uint64_t need_bytes, uint64_t swap_bytes)
{
        struct afz_budget again = *first;
        if (first->given)
                return again;
        uint64_t in_ram = less(need_bytes, swap_bytes);
        uint64_t ram = less(less(plus(available_bytes, in_ram), afz_reserve_of(ram_total_bytes)),
                            promised_bytes);
        /* Against the whole of need: what is in swap now comes back when there is room. */
        uint64_t least = afz_budget_least(need_bytes);
        if (ram < least)
                ram = least;
        again.ram_bytes = min_u64(ram, first->ram_bytes);
        return again;
}

/* Nanoseconds until `bytes` are filled, over `parts`. */
static uint64_t fill_ns(uint64_t bytes, uint64_t bytes_per_s, uint64_t parts)
{
        uint64_t ns = bytes / bytes_per_s >= 3600
                              ? 3600 * SECOND
                              : bytes / bytes_per_s * SECOND +
                                        bytes % bytes_per_s / (bytes_per_s / 1000000 + 1) * 1000;
        return ns / parts;
}

uint64_t afz_pace_ns(const struct afz_lines *lines, const struct afz_pulse *pulse,
                     uint64_t fill_bytes_per_s)
{
        uint64_t fill = fill_bytes_per_s ? fill_bytes_per_s : limit.fill_bytes_per_s;
        uint64_t pace = limit.pace_most_ns, need, available;
        if (afz_lines_need(lines, pulse, &need)) {
                uint64_t to_act = fill_ns(less(lines->act_bytes, need), fill, 2);
                uint64_t to_stop = fill_ns(less(lines->stop_bytes, need), fill, 4);
                uint64_t floor = min_u64(to_stop, limit.near_act_ns);
                pace = min_u64(pace, to_act > floor ? to_act : floor);
        }
        if (lines->low_bytes && afz_pulse_get(pulse, AFZ_PULSE_AVAILABLE, &available)) {
                uint64_t to_low = fill_ns(less(available, lines->low_bytes), fill, 2);
                pace = min_u64(pace, to_low > limit.near_low_ns ? to_low : limit.near_low_ns);
        }
        return pace < limit.pace_least_ns ? limit.pace_least_ns : pace;
}
