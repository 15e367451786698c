/* Tier none's look: one read of statm a process, the rest when it may have changed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "count_of.h"
#include "tier_none.h"

#define MIB (UINT64_C(1) << 20)
#define MS  UINT64_C(1000000)

static const struct {
        uint64_t shared_bytes; /* shared pages moved by this: ask which of them are shmem */
        uint64_t fallen_bytes; /* anonymous memory fell by this: ask whether it went to swap */
        uint64_t status_ns;    /* asked in any case after */
        uint64_t stat_ns;      /* pace of stat: who ran another program, whose session it is */
        unsigned slow_files;   /* so many of these in one look at most */
        uint64_t swap_ns;      /* pace of asking whether the machine has swap at all */
        uint64_t hidden_bytes; /* available memory missing by less is not looked into */
        uint64_t round_ns;     /* between rounds of PSS; urgent ones sooner */
        uint64_t urgent_ns;
        uint64_t round_old_ns;  /* nothing seems to have changed: read again after */
        uint64_t urgent_share;  /* one part in so many of time may go to urgent rounds */
        int64_t urgent_most_ns; /* saved up at most */
        unsigned tries;         /* rounds during which the family changed, before one is taken */
} pace = {
        .shared_bytes = MIB,      /* 0.5 ms of filling at 2 GB/s */
        .fallen_bytes = 4 * MIB,  /* what an allocator gives back all the time is less */
        .status_ns = 1000 * MS,   /* 1 s: 15 us a process */
        .stat_ns = 250 * MS,      /* an exec is seen in statm at once, but for the same program */
        .slow_files = 16,         /* 0.2 ms */
        .swap_ns = 5000 * MS,     /* swapon is a rare event */
        .hidden_bytes = 32 * MIB, /* noise of a desktop */
        .round_ns = 1000 * MS,    /* the gate's own pace for one process */
        .urgent_ns = 100 * MS,    /* a brake lasts longer */
        .round_old_ns = 30000 * MS,
        .urgent_share = 20,         /* 5 % of a core, only while copies are suspected */
        .urgent_most_ns = 200 * MS, /* 8 workers of 500 MB cost 90 ms */
        .tries = 3,
};

static uint64_t apart(uint64_t a, uint64_t b)
{
        return a > b ? a - b : b - a;
}

static uint64_t held(const struct afz_need_proc *p)
{
        return p->anon_bytes + p->swap_bytes;
}

static bool is_family(const struct afz_roster_row *row)
{
        return row->need.inherits || row->need.shares;
}

static int read_row_file(struct afz_none *none, const struct afz_roster_row *row, const char *file,
                         char *buf, size_t cap, struct afz_span *ret)
{
        char path[48];
        snprintf(path, sizeof path, "%llu/%s", (unsigned long long)row->pid, file);
        int r = afz_env_read_record(none->env, AFZ_ROOT_PROC, path, buf, cap, ret);
        return r == -ENOENT ? -ESRCH : r;
}

/* size, resident, shared, text: pages. */
static int read_statm(struct afz_none *none, const struct afz_roster_row *row, uint64_t ret[4])
{
        char buf[128];
        struct afz_span text = {buf, 0};
        int r = 0;
        if (row->statm_fd >= 0) {
                ssize_t n = afz_fd_read_record(row->statm_fd, buf, sizeof buf);
                r = n < 0 ? (int)n : 0;
                text.n = n < 0 ? 0 : (size_t)n;
        } else {
                r = read_row_file(none, row, "statm", buf, sizeof buf, &text);
        }
        for (int i = 0; r == 0 && i < 4; i++)
                r = afz_span_take_u64(&text, &ret[i]);
        return r;
}

static void set_field(void *ctx, int offset, uint64_t value)
{
        uint64_t *field = (uint64_t *)(void *)((char *)ctx + offset);
        *field = value;
}

static int read_status(struct afz_none *none, struct afz_roster_row *row, uint64_t now_ns)
{
        static const struct afz_key keys[] = {
                {"RssShmem", (int)offsetof(struct afz_need_proc, shmem_bytes), 0},
                {"VmSwap", (int)offsetof(struct afz_need_proc, swap_bytes), 0},
        };
        char buf[4096];
        struct afz_span text;
        row->status_next_ns = now_ns + pace.status_ns + row->pid * 37 % 16 * (pace.status_ns / 64);
        int r = read_row_file(none, row, "status", buf, sizeof buf, &text);
        if (r < 0)
                return r;
        afz_span_each_key(text, keys, AFZ_COUNT_OF(keys), set_field, &row->need);
        row->status_anon_bytes = row->need.anon_bytes;
        row->status_shared_bytes = row->need.shared_bytes;
        return 0;
}

static void set_statm(struct afz_none *none, struct afz_roster_row *row, const uint64_t pages[4])
{
        /* The kernel reads its counters one after the other: where shared has overtaken, there is
         * next to nothing anonymous. */
        uint64_t anon = pages[1] > pages[2] ? pages[1] - pages[2] : 0;
        row->need.anon_bytes = anon * none->page_bytes;
        row->need.shared_bytes = pages[2] * none->page_bytes;
        /* Another program's text is of another size: it has run one. */
        if (row->text_pages != 0 && row->text_pages != pages[3]) {
                afz_need_exec(&row->need);
                row->need.shares = false;
                row->pss = (struct afz_pss_record){0};
        }
        row->text_pages = pages[3];
        row->zombie = pages[0] == 0;
}

/* Somebody was forked from it. What it holds now, for it may have grown since the last look. */
static uint64_t note_parent(struct afz_none *none, struct afz_roster_row *parent)
{
        uint64_t pages[4];
        struct afz_proc_stat st;
        if (read_statm(none, parent, pages) == 0)
                set_statm(none, parent, pages);
        if (!is_family(parent) && afz_roster_stat(none->roster, parent, &st) == 0)
                parent->faults = st.minor_faults;
        parent->need.shares = true;
        return held(&parent->need);
}

void afz_none_joined(void *hold, struct afz_roster_row *row)
{
        struct afz_none *none = hold;
        uint64_t pages[4], now_ns = afz_env_now(none->env), parent_bytes = UINT64_MAX;
        if (read_statm(none, row, pages) == 0)
                set_statm(none, row, pages);
        if (row->need.inherits || row->need.shared_bytes > pace.shared_bytes)
                (void)read_status(none, row, now_ns);
        row->stat_next_ns = now_ns + pace.stat_ns + row->pid * 37 % 16 * (pace.stat_ns / 16);
        struct afz_roster_row *parent = afz_roster_find(none->roster, row->ppid);
        if (row->need.inherits && parent)
                parent_bytes = note_parent(none, parent);
        afz_need_born(&row->need, row->need.inherits, parent_bytes);
        none->round.moved = none->round.changed = true;
        if (none->braked)
                afz_none_stop_row(none, row);
}

/* Its memory is the kernel's again, but for what relatives share. */
static void note_end(struct afz_none *none, struct afz_roster_row *row)
{
        none->left_bytes += afz_need_left(&row->need);
        none->round.moved = none->round.changed = true;
        row->need = (struct afz_need_proc){0};
}

static bool is_status_due(const struct afz_none *none, const struct afz_roster_row *row,
                          uint64_t now_ns)
{
        const struct afz_need_proc *p = &row->need;
        return now_ns >= row->status_next_ns ||
               apart(p->shared_bytes, row->status_shared_bytes) > pace.shared_bytes ||
               (none->has_swap && row->status_anon_bytes > p->anon_bytes + pace.fallen_bytes);
}

static int read_slow(struct afz_none *none, struct afz_roster_row *row, uint64_t now_ns)
{
        struct afz_proc_stat st;
        int r = 0;
        if (none->budget > 0 && is_status_due(none, row, now_ns)) {
                none->budget--;
                r = read_status(none, row, now_ns);
        }
        if (none->budget > 0 && now_ns >= row->stat_next_ns) {
                none->budget--;
                row->stat_next_ns = now_ns + pace.stat_ns;
                r = afz_roster_stat(none->roster, row, &st);
        }
        return r;
}

/* True when it lives and was added. */
static bool read_row(struct afz_none *none, struct afz_roster_row *row, uint64_t now_ns)
{
        uint64_t pages[4];
        bool was_zombie = row->zombie;
        int r = read_statm(none, row, pages);
        if (r == 0) {
                set_statm(none, row, pages);
                r = row->zombie ? 0 : read_slow(none, row, now_ns);
        }
        if (r == -ESRCH) {
                if (!was_zombie)
                        note_end(none, row);
                afz_roster_lost(none->roster, row);
                return false;
        }
        if (row->zombie) {
                if (!was_zombie)
                        note_end(none, row);
                return false;
        }
        /* Whatever else went wrong (no descriptor left, say), it lives: with its last figures. */
        afz_need_moved(&row->need);
        return true;
}

struct machine {
        uint64_t available_bytes, shmem_bytes, swap_bytes;
};

static int read_machine(struct afz_none *none, struct machine *ret)
{
        static const struct afz_key keys[] = {
                {"MemAvailable", (int)offsetof(struct machine, available_bytes), 0},
                {"SwapTotal", (int)offsetof(struct machine, swap_bytes), 0},
                {"Shmem", (int)offsetof(struct machine, shmem_bytes), 0},
        };
        char buf[8192];
        struct machine m = {0};
        ssize_t n = none->meminfo_fd >= 0 ? afz_fd_read_record(none->meminfo_fd, buf, sizeof buf)
                                          : -ENODATA;
        if (n < 0)
                return (int)n;
        struct afz_span text = {buf, (size_t)n};
        if (afz_span_each_key(text, keys, AFZ_COUNT_OF(keys), set_field, &m) < AFZ_COUNT_OF(keys))
                return -ENODATA;
        *ret = m;
        return 0;
}

/* What the page faults of the family since the mark can have copied at most. */
static uint64_t fault_bytes(struct afz_none *none)
{
        uint64_t faults = 0;
        for (size_t i = 0; i < afz_roster_slots(none->roster); i++) {
                struct afz_roster_row *row = afz_roster_at(none->roster, i);
                struct afz_proc_stat st;
                if (row->pid == 0 || row->zombie || !is_family(row))
                        continue;
                if (afz_roster_stat(none->roster, row, &st) == 0 && st.minor_faults > row->faults)
                        faults += st.minor_faults - row->faults;
        }
        return faults * none->page_bytes;
}

static void set_mark(struct afz_none *none, const struct machine *m, uint64_t need, uint64_t now_ns)
{
        none->mark.known = true;
        none->mark.t_ns = now_ns;
        none->mark.available_bytes = m->available_bytes;
        none->mark.need_bytes = need;
}

/* Copies on write. Needed only where somebody was forked and runs on. */
static uint64_t hidden_bytes(struct afz_none *none, const struct afz_need_sum *sum,
                             const struct machine *m, uint64_t need, uint64_t now_ns)
{
        /* What no round can check is forgotten after a while: it may have been another's growth. */
        bool stale = none->round.refused && now_ns - none->mark.t_ns > pace.round_old_ns;
        if (!none->mark.known || stale) {
                set_mark(none, m, need, now_ns);
                return 0;
        }
        int64_t fall = (int64_t)none->mark.available_bytes - (int64_t)m->available_bytes;
        int64_t grown = (int64_t)need - (int64_t)none->mark.need_bytes;
        uint64_t most = afz_need_hidden(sum, fall, grown, UINT64_MAX);
        return most < pace.hidden_bytes ? 0 : afz_need_hidden(sum, fall, grown, fault_bytes(none));
}

static bool is_in_round(const struct afz_roster_row *row, const struct afz_need_sum *sum)
{
        if (row->pid == 0 || row->zombie)
                return false;
        return is_family(row) || (sum->with_shmem > 1 && row->need.shmem_bytes > MIB);
}

/* All of a family or nobody: of a parent that was read and a child that was not, the half that they
 * share would be missing. */
static void ask_round(struct afz_none *none, const struct afz_need_sum *sum, uint64_t now_ns)
{
        struct afz_aide_row *ask = afz_aide_rows(none->aide);
        size_t n = 0;
        none->round.next_ns = now_ns + pace.round_ns;
        for (size_t i = 0; i < afz_roster_slots(none->roster); i++) {
                struct afz_roster_row *row = afz_roster_at(none->roster, i);
                if (!is_in_round(row, sum))
                        continue;
                uint64_t rss = row->need.anon_bytes + row->need.shared_bytes;
                none->round.refused = !afz_pss_gate_open(&none->gate, &row->pss, now_ns, rss);
                if (none->round.refused)
                        return;
                ask[n++] = (struct afz_aide_row){
                        .pid = row->pid, .start_ticks = row->start_ticks, .place = (uint32_t)i};
        }
        if (n == 0 || afz_aide_ask(none->aide, AFZ_AIDE_PSS, n, 0) < 0)
                return;
        none->round.asked = true;
        none->round.rows = n;
        none->round.moved = false;
}

/* While copies are suspected, the truth is worth more time than the gate gives. */
static void buy_time(struct afz_none *none, uint64_t now_ns)
{
        uint64_t since = now_ns - none->round.credit_ns;
        none->round.credit_ns = now_ns;
        if (since > 1000 * MS)
                since = 1000 * MS; /* it was not urgent before */
        none->gate.credit_ns += (int64_t)(since / pace.urgent_share);
        if (none->gate.credit_ns > pace.urgent_most_ns)
                none->gate.credit_ns = pace.urgent_most_ns;
        for (size_t i = 0; i < afz_roster_slots(none->roster); i++) {
                struct afz_roster_row *row = afz_roster_at(none->roster, i);
                if (row->pid != 0 && row->pss.next_ns > row->pss.taken_ns + pace.urgent_ns)
                        row->pss.next_ns = row->pss.taken_ns + pace.urgent_ns;
        }
}

static void think_of_round(struct afz_none *none, const struct afz_need_sum *sum, uint64_t hidden,
                           uint64_t now_ns)
{
        bool urgent = hidden > 0;
        uint64_t next_ns = none->round.next_ns, age_ns = now_ns - none->round.taken_ns;
        if (none->round.asked || !afz_aide_idle(none->aide))
                return;
        if (sum->inheriting == 0 && sum->with_shmem < 2)
                return; /* RSS says it all */
        if (urgent)
                next_ns = next_ns - pace.round_ns + pace.urgent_ns;
        if (now_ns < next_ns)
                return;
        if (urgent)
                buy_time(none, now_ns);
        if (urgent || none->round.changed || age_ns > pace.round_old_ns ||
            sum->shmem_more_bytes > pace.hidden_bytes)
                ask_round(none, sum, now_ns);
}

static struct afz_roster_row *asked_row(struct afz_none *none, const struct afz_aide_row *answer)
{
        struct afz_roster_row *row = afz_roster_at(none->roster, answer->place);
        bool same = row->pid == answer->pid && row->start_ticks == answer->start_ticks;
        return same ? row : NULL;
}

/* True when a round was taken, so that everything is to be measured from here. */
static bool take_round(struct afz_none *none, uint64_t now_ns)
{
        if (!none->round.asked || !afz_aide_idle(none->aide))
                return false;
        const struct afz_aide_row *answer = afz_aide_rows(none->aide);
        bool whole = true;
        none->round.asked = false;
        for (size_t i = 0; i < none->round.rows; i++) {
                struct afz_roster_row *row = asked_row(none, &answer[i]);
                whole &= !row || answer[i].result == 0 || answer[i].result == -ESRCH;
                if (row)
                        afz_pss_gate_took(&none->gate, &row->pss, now_ns, answer[i].cost_ns,
                                          row->need.anon_bytes + row->need.shared_bytes);
        }
        /* A child that was born meanwhile has taken its share of what was read. */
        bool again = none->round.moved && none->round.tries < pace.tries;
        none->round.refused = !whole;
        none->round.tries = again ? none->round.tries + 1 : 0;
        if (!whole || again)
                return false;
        none->round.changed = none->round.moved;
        none->round.taken_ns = now_ns;
        none->left_bytes = 0;
        for (size_t i = 0; i < none->round.rows; i++) {
                struct afz_roster_row *row = asked_row(none, &answer[i]);
                if (!row || answer[i].result < 0)
                        continue;
                if (!answer[i].inherits && row->need.inherits)
                        afz_need_exec(&row->need);
                afz_need_take_pss(&row->need, &answer[i].pss);
                row->need.swap_bytes = answer[i].pss.rss_swap_bytes;
                row->faults = answer[i].faults;
        }
        return true;
}

static void add_rows(struct afz_none *none, uint64_t now_ns, struct afz_need_sum *sum)
{
        none->budget = pace.slow_files;
        for (size_t i = 0; i < afz_roster_slots(none->roster); i++) {
                struct afz_roster_row *row = afz_roster_at(none->roster, i);
                if (row->pid == 0 || !read_row(none, row, now_ns))
                        continue;
                if (none->braked)
                        afz_none_stop_row(none, row);
                afz_need_add(sum, &row->need);
        }
}

static uint64_t left_bytes(struct afz_none *none, const struct afz_need_sum *sum)
{
        if (sum->inheriting == 0)
                none->left_bytes = 0;
        return none->left_bytes < sum->inherit_bytes ? none->left_bytes : sum->inherit_bytes;
}

/* Of the machine's shared memory since the last round, or since we began. */
static uint64_t shmem_growth(const struct afz_none *none, const struct machine *m)
{
        uint64_t then = none->shmem_bytes;
        return m->shmem_bytes > then ? m->shmem_bytes - then : 0;
}

void afz_none_begin(struct afz_none *none)
{
        struct machine m;
        if (read_machine(none, &m) < 0)
                return;
        none->has_swap = m.swap_bytes > 0;
        none->shmem_bytes = m.shmem_bytes;
}

int afz_none_look(void *hold, struct afz_pulse *ret)
{
        struct afz_none *none = hold;
        struct afz_need_sum sum = {0};
        struct machine m = {0};
        uint64_t now_ns = afz_env_now(none->env), hidden = 0;
        int r = afz_roster_update(none->roster, false, afz_none_joined, none);
        if (r < 0)
                return r;
        bool measured_anew = take_round(none, now_ns);
        add_rows(none, now_ns, &sum);
        bool machine = sum.inheriting > 0 || sum.with_shmem > 1 || now_ns >= none->swap_next_ns;
        machine = machine && read_machine(none, &m) == 0;
        if (machine && measured_anew)
                none->shmem_bytes = m.shmem_bytes;
        if (machine) {
                none->has_swap = m.swap_bytes > 0;
                none->swap_next_ns = now_ns + pace.swap_ns;
        }
        uint64_t need = afz_need_total(&sum, machine ? shmem_growth(none, &m) : UINT64_MAX) +
                        left_bytes(none, &sum);
        if (measured_anew)
                none->mark.known = false;
        if (machine && sum.slack_bytes > 0)
                hidden = hidden_bytes(none, &sum, &m, need, now_ns);
        else
                none->mark.known = false; /* nobody shares: the next family is measured anew */
        think_of_round(none, &sum, hidden, now_ns);
        afz_pulse_set(ret, AFZ_PULSE_NEED, need + hidden);
        afz_pulse_set(ret, AFZ_PULSE_SWAP, sum.swap_bytes);
        afz_pulse_set(ret, AFZ_PULSE_PROCESSES, sum.processes);
        return 0;
}

int afz_none_look_part(void *hold, unsigned part, uint64_t *ret_need_bytes)
{
        struct afz_none *none = hold;
        struct afz_need_sum sum = {0};
        for (size_t i = 0; i < afz_roster_slots(none->roster); i++) {
                struct afz_roster_row *row = afz_roster_at(none->roster, i);
                if (row->pid != 0 && !row->zombie && row->part == part + 1)
                        afz_need_add(&sum, &row->need);
        }
        if (sum.processes == 0)
                return -ESRCH;
        *ret_need_bytes = afz_need_total(&sum, UINT64_MAX);
        return 0;
}
