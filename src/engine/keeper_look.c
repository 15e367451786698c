/* A look at all books: what each line holds, and what each process tells of itself. */
#include "clock.h"
#include "keeper_state.h"
#include "recorder.h"

static const struct {
        uint64_t ghost_ns;    /* a book of the dead is kept so long, for the last look */
        uint64_t together_ns; /* who died so long before the last one died with it */
        unsigned reads;       /* of page maps, a look: some 2 ms */
} rule = {
        .ghost_ns = 3 * AFZ_NS_PER_S,
        .together_ns = AFZ_NS_PER_S,
        .reads = 2048,
};

/* ---- a site of a book ---- */

static uint64_t part_of(uint64_t bytes, double share)
{
        return (uint64_t)((double)bytes * share);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

/* Of what a site says, what is really there. What has come and gone between two looks could not be
 * asked for: it was there as much as what is now, or as most was lately. */
static void count_there(struct afz_held *h, unsigned place, const struct afz_book_look *look,
                        struct afz_site_count *ret)
{
        double share = h->resident.known ? (double)h->resident.share[place] : 1;
        double most = h->resident.known ? (double)h->resident.most[place] : 1;
        uint64_t high, low;
        ret->counted_bytes = part_of(look->large_bytes, share);
        ret->live_bytes = look->live_bytes - look->large_bytes + ret->counted_bytes;
        ret->blocks = look->live_blocks;
        if (look->live_bytes > 0)
                share = (double)ret->live_bytes / (double)look->live_bytes;
        ret->early_bytes = part_of(look->early_bytes, share);
        afz_book_water(h->book, place, look->live_bytes, &high, &low);
        ret->high_bytes = larger(part_of(high, share > most ? share : most), ret->live_bytes);
        ret->low_bytes = low < look->live_bytes ? part_of(low, share) : ret->live_bytes;
}

static void count_ages(const struct afz_block_sums *sums, unsigned place, bool steps,
                       struct afz_site_count *ret)
{
        ret->aged_bytes = sums->bytes[place];
        ret->aged_s = sums->bytes_s[place];
        ret->stepped_bytes = steps ? sums->bytes[place] : 0;
        ret->stepped_steps = sums->bytes_steps[place];
}

/* What there is of a process at a place, and what it says there is. */
struct sums {
        uint64_t live_bytes, book_bytes;
};

/* Who has no steps, as a loader's worker, is before the job's first one only as others tell it. */
static void set_early(const struct afz_keeping *k, const struct afz_held *h, unsigned place,
                      struct afz_book_look *look)
{
        double all = k->sums.bytes[place];
        if (h->inside.now.step == 0 && k->stepped_ns > 0 && all > 0)
                look->early_bytes = part_of(look->early_bytes, k->sums.early_bytes[place] / all);
}

static void add_site(struct afz_keeping *k, struct afz_held *h, unsigned place, bool counts,
                     struct sums *sums)
{
        struct afz_book_look look;
        if (!afz_book_look(h->book, place, h->number[place] == 0, &look) || look.total_bytes == 0)
                return;
        if (h->number[place] == 0)
                h->number[place] = 1 + afz_sites_number(k->sites, h->book, &look);
        struct afz_site_count count = {.total_bytes = look.total_bytes};
        if (counts) {
                set_early(k, h, place, &look);
                count_there(h, place, &look, &count);
                count_ages(&k->sums, place, h->inside.now.step > 0, &count);
        }
        sums->live_bytes += count.live_bytes;
        sums->book_bytes += look.live_bytes;
        afz_sites_add(k->sites, h->number[place] - 1, &count);
}

/* ---- a book ---- */

/* Whether the kernel is asked for its blocks. */
static bool is_asked(const struct afz_held *h)
{
        return h->dead_ns == 0 && h->resident.known && atomic_load(&h->book->samples) > 0;
}

static void add_sites(struct afz_keeping *k, struct afz_held *h, uint64_t t_ns, bool counts,
                      unsigned *reads)
{
        struct sums sums = {0};
        const struct afz_block_clock clock = {
                .age_s = (t_ns - h->given_ns) / AFZ_NS_PER_S,
                .step = h->inside.now.step,
                .early_s = k->stepped_ns > h->given_ns
                                   ? (k->stepped_ns - h->given_ns) / AFZ_NS_PER_S
                                   : 0,
        };
        if (counts)
                afz_blocks_look(&k->sums, h->book, &clock, is_asked(h) ? &h->resident : NULL,
                                reads);
        for (unsigned i = 0; i < AFZ_BOOK_SITES; i++)
                add_site(k, h, i, counts, &sums);
        if (counts)
                afz_inside_there(&h->inside, sums.live_bytes, sums.book_bytes);
}

/* When the job's first step was made: as good as looks can tell. */
static void look_for_steps(struct afz_keeping *k, const struct afz_held *h)
{
        if (k->stepped_ns == 0 && h->inside.now.step > 0)
                k->stepped_ns = larger(k->looked_ns, h->given_ns);
}

static void add_book(struct afz_keeping *k, struct afz_held *h, uint64_t t_ns, bool counts,
                     unsigned *reads)
{
        if (counts)
                afz_inside_look(&h->inside, h->book);
        look_for_steps(k, h);
        if (atomic_load(&h->book->samples) > 0)
                add_sites(k, h, t_ns, counts, reads);
}

static uint64_t last_death(const struct afz_keeping *k)
{
        uint64_t last = 0;
        for (unsigned i = 0; i < k->books; i++)
                if (k->held[i]->dead_ns > last)
                        last = k->held[i]->dead_ns;
        return last;
}

/* What a process held when it died is told once; at the end, of all that died with the last. */
static bool counts(const struct afz_keeping *k, const struct afz_held *h, bool last)
{
        if (h->dead_ns == 0 || !h->told)
                return true;
        return last && h->dead_ns + rule.together_ns >= last_death(k);
}

/* What may be asked of the kernel is shared evenly; what one leaves goes to those after it. */
static void add_books(struct afz_keeping *k, uint64_t t_ns, bool last)
{
        unsigned reads = rule.reads, asked = 0;
        for (unsigned i = 0; i < k->books; i++)
                asked += is_asked(k->held[i]);
        for (unsigned i = 0; i < k->books; i++) {
                struct afz_held *h = k->held[i];
                unsigned part = asked > 0 ? reads / asked : 0, left = part;
                asked -= asked > 0 && is_asked(h);
                add_book(k, h, t_ns, counts(k, h, last), &left);
                reads -= part - left;
        }
}

/* ---- the look ---- */

static void record_insides(struct afz_keeping *k, uint64_t t_ns, bool last)
{
        struct afz_inside_one one[AFZ_KEEPER_BOOKS];
        unsigned n = 0;
        for (unsigned i = 0; i < k->books; i++) {
                struct afz_held *h = k->held[i];
                if (h->dead_ns > 0 && h->told)
                        continue;
                one[n++] = (struct afz_inside_one){
                        .inside = &h->inside,
                        .pid = (uint64_t)h->pid,
                        .before_ns = h->given_ns > k->looked_ns ? h->given_ns : k->looked_ns,
                };
        }
        afz_recorder_sites_begin(k->order->recorder, t_ns);
        afz_inside_record(k->order->recorder, one, n, t_ns, last, &k->insides);
        afz_recorder_sites_end(k->order->recorder);
}

/* For the guard: of those that live, or died since the last look. */
static void tell_steps(struct afz_keeping *k)
{
        uint64_t step = 0, saved = AFZ_TOLD_NOT;
        for (unsigned i = 0; i < k->books; i++) {
                const struct afz_held *h = k->held[i];
                const struct afz_book_inside *now = &h->inside.now;
                if (h->dead_ns > 0 && h->told)
                        continue;
                step = larger(step, now->step);
                if (now->step > 0 && now->told[AFZ_TOLD_SAVED_STEP] != AFZ_TOLD_NOT)
                        saved = saved == AFZ_TOLD_NOT
                                        ? now->told[AFZ_TOLD_SAVED_STEP]
                                        : larger(saved, now->told[AFZ_TOLD_SAVED_STEP]);
        }
        if (step == 0)
                return;
        atomic_store(&k->order->shared->saved_step, saved);
        atomic_store(&k->order->shared->step, step);
}

void afz_keeper_look(struct afz_keeping *k, uint64_t t_ns, bool last)
{
        afz_sites_begin(k->sites);
        add_books(k, t_ns, last);
        tell_steps(k);
        record_insides(k, t_ns, last); /* first: at the end, names may take all the time there is */
        afz_keeper_record(&k->record, t_ns, last);
        afz_past_keep(&k->past, k->sites, t_ns);
        k->looked_ns = t_ns;
        for (unsigned i = k->books; i-- > 0;) {
                struct afz_held *h = k->held[i];
                h->told = h->dead_ns > 0;
                if (!last && h->dead_ns > 0 && h->dead_ns + rule.ghost_ns < t_ns)
                        afz_keeper_fold(k, i);
        }
}
