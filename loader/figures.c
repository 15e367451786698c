/* What there is, what the time went into, and what that says. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "now.h"
#include "parts.h"
#include "slowest.h"

bool afz_loader_lock(struct afz_loader *l)
{
        return l->pid == getpid() && pthread_mutex_lock(&l->lock) == 0;
}

/* What comes of so many of the data's samples. */
static uint64_t share(uint64_t samples, const struct afz_loader *l)
{
        if (!l->order.chosen)
                return samples;
        return (uint64_t)((double)samples / (double)l->samples *
                          (double)afz_order_stream(&l->order));
}

void afz_loader_facts(const struct afz_loader *l, struct afz_loader_facts *ret)
{
        struct afz_loader *mine = (struct afz_loader *)l; /* for its lock */
        uint64_t batch = (uint64_t)l->options.batch * l->options.ranks;
        bool is_locked = afz_loader_lock(mine);
        uint64_t group = l->now.group * l->order.chunk_samples;
        *ret = (struct afz_loader_facts){
                .samples = afz_order_stream(&l->order),
                .batches = afz_loader_batches(l),
                .budget_bytes = l->options.budget_bytes,
                .floor_bytes = l->plan.floor_bytes,
                .group_samples = group < l->samples ? share(group, l) : afz_order_stream(&l->order),
                .shuffle_quality = afz_order_quality(&l->order, l->now.group, batch),
                .fields = l->fields,
                .threads = l->active,
        };
        if (is_locked)
                pthread_mutex_unlock(&mine->lock);
        memcpy(ret->field, l->field, sizeof ret->field);
}

static uint64_t sample_bytes(const struct afz_loader *l)
{
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < l->fields; i++)
                bytes += l->field[i].bytes;
        return bytes;
}

void afz_loader_times(const struct afz_loader *l, struct afz_loader_times *ret)
{
        struct afz_loader *mine = (struct afz_loader *)l;
        bool is_locked = afz_loader_lock(mine);
        if (is_locked)
                afz_pool_settle(mine, afz_now_ns());
        struct afz_sums s = l->sums, b = l->epoch_sums;
        *ret = (struct afz_loader_times){
                .read_ns = s.read_ns - b.read_ns,
                .read_bytes = s.read_bytes - b.read_bytes,
                .decode_ns = s.decode_ns - b.decode_ns,
                .decode_bytes = s.decode_bytes - b.decode_bytes,
                .gather_ns = s.gather_ns - b.gather_ns,
                .waited_ns = s.waited_ns - b.waited_ns,
                .idle_ns = s.idle_ns - b.idle_ns,
                .skipped = s.skipped - b.skipped,
                .copies = s.copies - b.copies,
                .held = l->held,
                .held_most = l->held_most,
                .epoch = l->began_epoch,
                .epoch_ns = l->returned_ns - l->began_ns,
                .loading_ns = s.loading_ns - b.loading_ns,
                .loaded = s.loaded - b.loaded,
                .loads = s.loads - b.loads,
                .load_waits = s.load_waits - b.load_waits,
                .starved_ns = s.starved_ns - b.starved_ns,
                .gather_bytes = (s.gathered - b.gathered) * sample_bytes(l),
        };
        if (is_locked)
                pthread_mutex_unlock(&mine->lock);
}

enum afz_side afz_loader_slowest(const struct afz_loader *l, char ret_words[AFZ_WHY_MAX])
{
        struct afz_loader_times times;
        struct afz_loader_facts facts;
        afz_loader_times(l, &times);
        afz_loader_facts(l, &facts);
        bool is_pictures = strcmp(facts.field[0].name, "image") == 0;
        return afz_slowest_say(&times, facts.threads, is_pictures ? "pictures" : "samples",
                               ret_words);
}
