/* Which of the data's samples come, and how often: as the options say. */
#include <errno.h>
#include <stdlib.h>

#include "parts.h"

static int take_range(struct afz_loader *l, char *why)
{
        uint64_t all = l->dataset[0].samples, start = l->options.start, stop = l->options.stop;
        if (stop == 0)
                l->options.stop = stop = all;
        if (start >= stop || stop > all)
                return afz_why(why, -EINVAL, "samples %llu to %llu were asked for; there are %llu",
                               (unsigned long long)start, (unsigned long long)stop,
                               (unsigned long long)all);
        l->samples = stop - start;
        return 0;
}

/* The list counts as index. */
static int take_list(struct afz_loader *l, uint64_t count, uint64_t **ret, char *why)
{
        uint64_t bytes;
        if (__builtin_mul_overflow(count, sizeof **ret, &bytes) ||
            bytes > l->options.budget_bytes || !(*ret = malloc(bytes)))
                return afz_why(why, -ENOMEM,
                               "a list of %llu samples does not fit into the budget: each takes 8 "
                               "bytes",
                               (unsigned long long)count);
        l->needs.index_bytes += bytes;
        return 0;
}

/* All that comes lies between the first and the last that is named: the rest need not be in the
 * order. */
static void narrow(struct afz_loader *l)
{
        struct afz_chosen *c = &l->chosen;
        uint64_t first = c->list[0];
        l->options.start = first;
        l->options.stop = c->list[c->count - 1] + 1;
        l->samples = l->options.stop - first;
        for (uint64_t i = 0; i < c->count; i++)
                c->list[i] -= first;
}

static int choose_subset(struct afz_loader *l, const struct afz_loader_options *o, char *why)
{
        uint64_t *list = NULL, bad = 0, all = l->dataset[0].samples;
        if (o->start || o->stop || o->weights)
                return afz_why(why, -EINVAL,
                               "a subset goes neither with a range of samples nor with weights; a "
                               "weight of 0 leaves a sample out");
        if (o->subset_count == 0)
                return afz_why(why, -EINVAL, "a subset of no samples");
        int r = take_list(l, o->subset_count, &list, why);
        if (r < 0)
                return r;
        r = afz_chosen_subset(&l->chosen, list, o->subset, o->subset_count, all, &bad);
        if (r < 0) {
                free(list);
                return afz_why(why, r, "the subset has sample %llu; there are %llu, from 0 on",
                               (unsigned long long)o->subset[bad], (unsigned long long)all);
        }
        narrow(l);
        return 0;
}

static int choose_by_weight(struct afz_loader *l, const struct afz_loader_options *o, char *why)
{
        uint64_t *list = NULL, bad = 0, draws = o->draws ? o->draws : l->samples;
        if (o->weight_count != l->samples)
                return afz_why(why, -EINVAL, "there are %llu weights and %llu samples",
                               (unsigned long long)o->weight_count, (unsigned long long)l->samples);
        if (draws > INT64_MAX)
                return afz_why(why, -EINVAL, "more draws than there can be");
        int r = take_list(l, o->weight_count, &list, why);
        if (r < 0)
                return r;
        r = afz_chosen_weights(&l->chosen, list, o->weights, o->weight_count, draws, &bad);
        if (r == 0)
                return 0;
        free(list);
        return bad == o->weight_count
                       ? afz_why(why, r, "all weights are 0")
                       : afz_why(why, r, "the weight of sample %llu is %g: weights are 0 or more",
                                 (unsigned long long)bad, o->weights[bad]);
}

int afz_part_take(struct afz_loader *l, const struct afz_loader_options *options, char *why)
{
        int r = take_range(l, why);
        if (r == 0 && options->subset)
                r = choose_subset(l, options, why);
        if (r == 0 && options->weights)
                r = choose_by_weight(l, options, why);
        if (r == 0 && options->draws && !options->weights)
                r = afz_why(why, -EINVAL, "a number of draws goes with weights");
        return r;
}
