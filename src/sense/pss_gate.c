#include "pss_gate.h"

static const struct {
        uint64_t longest_ns;    /* a reading expected to hold the map for longer is not made */
        double byte_ns;         /* what a byte costs, as long as this process has not told */
        uint64_t untried_bytes; /* RSS up to which that is believed without having tried */
        uint64_t telling_bytes; /* RSS from which a reading tells what a byte costs */
        uint64_t every_ns;      /* no process more often than this */
        uint64_t share;         /* one part in this many of all time may be spent */
        int64_t credit_ns;      /* to begin with, and never more */
} limit = {
        .longest_ns = 50000000, /* 50 ms: half of the slowest tick, below what is felt */
        .byte_ns = 82.0 / 4096, /* 82 ns a page: the 210 GB that took 4.5 s */
        .untried_bytes = UINT64_C(2) << 30,  /* 43 ms at that price */
        .telling_bytes = UINT64_C(64) << 20, /* 1.3 ms: the fixed costs no longer show */
        .every_ns = 1000000000,              /* 1 s: growth in between is seen in RSS anyway */
        .share = 2000,          /* 0.05 % of a core, a sixth of what a watch may cost */
        .credit_ns = 250000000, /* 250 ms: a tree of 500 workers is read once at start */
};

void afz_pss_gate_init(struct afz_pss_gate *gate, uint64_t now_ns)
{
        gate->credit_ns = limit.credit_ns;
        gate->last_ns = now_ns;
}

static void accrue(struct afz_pss_gate *gate, uint64_t now_ns)
{
        if (now_ns > gate->last_ns) {
                uint64_t more = (now_ns - gate->last_ns) / limit.share;
                int64_t room = limit.credit_ns - gate->credit_ns;
                gate->credit_ns += more < (uint64_t)room ? (int64_t)more : room;
        }
        gate->last_ns = now_ns;
}

/* A large reading tells what a byte costs here; a small one only what it cost itself. */
static double expected_ns(const struct afz_pss_record *record, uint64_t rss_bytes)
{
        double cost = (double)record->cost_ns, then = (double)record->cost_bytes;
        if (record->cost_bytes >= limit.telling_bytes)
                return cost / then * (double)rss_bytes;
        double grown = (double)rss_bytes - then;
        return cost + (grown > 0 ? grown * limit.byte_ns : 0);
}

/* One reading may have been slow because the machine was. A process that should be quick gets
 * another try when what it took has become a small share of the time since. */
static bool is_forgiven(const struct afz_pss_record *record, uint64_t now_ns, uint64_t rss_bytes)
{
        return rss_bytes <= limit.untried_bytes && now_ns > record->taken_ns &&
               (now_ns - record->taken_ns) / limit.share >= record->cost_ns;
}

bool afz_pss_gate_open(struct afz_pss_gate *gate, const struct afz_pss_record *record,
                       uint64_t now_ns, uint64_t rss_bytes)
{
        accrue(gate, now_ns);
        if (gate->credit_ns <= 0 || now_ns < record->next_ns)
                return false;
        if (record->taken_ns == 0)
                return rss_bytes <= limit.untried_bytes;
        return expected_ns(record, rss_bytes) <= (double)limit.longest_ns ||
               is_forgiven(record, now_ns, rss_bytes);
}

void afz_pss_gate_took(struct afz_pss_gate *gate, struct afz_pss_record *record, uint64_t now_ns,
                       uint64_t cost_ns, uint64_t rss_bytes)
{
        gate->credit_ns -= (int64_t)cost_ns;
        record->taken_ns = now_ns;
        record->next_ns = now_ns + limit.every_ns;
        record->cost_ns = cost_ns;
        record->cost_bytes = rss_bytes;
}
