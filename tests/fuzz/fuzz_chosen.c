/* Any bytes as weights or as a subset: an epoch's groups meet and make up its length, and what
 * comes is a sample of its chunk that has some weight. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "order.h"

enum { MOST = 64, TRIED = 16, CHUNKS_MOST = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void go_through(struct afz_order *order, uint64_t epoch)
{
        const struct afz_chosen *chosen = order->chosen;
        struct afz_permutation chunks;
        uint64_t mass = 0, at = 0;
        afz_order_epoch(order, epoch, &chunks);
        for (uint64_t first = 0; first < order->chunks; first += CHUNKS_MOST) {
                uint64_t left = order->chunks - first;
                struct afz_chosen_chunk table[CHUNKS_MOST + 1];
                struct afz_group_order group;
                afz_order_group(order, epoch, &chunks, first,
                                (uint32_t)(left < CHUNKS_MOST ? left : CHUNKS_MOST), &group);
                mass = afz_order_choose(order, epoch, &chunks, mass, table, &group);
                if (group.start != at)
                        abort();
                at += group.samples;
                for (uint64_t i = 0; i < group.samples && i < TRIED; i++) {
                        uint32_t chunk, row;
                        afz_group_at(&group, i, &chunk, &row);
                        uint64_t number = afz_permutation_at(&chunks, first + chunk);
                        uint64_t sample = number * order->chunk_samples + row;
                        if (row >= afz_order_chunk_samples(order, number) ||
                            afz_chosen_mass(chosen, sample, sample + 1) == 0)
                                abort();
                }
        }
        if (at != chosen->draws || mass != chosen->total)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        uint64_t head[2] = {0}, list[MOST], subset[MOST] = {0}, bad;
        double weights[MOST] = {0};
        if (size < sizeof head)
                return 0;
        memcpy(head, data, sizeof head);
        size -= sizeof head;
        uint64_t count = size / 8 < MOST ? size / 8 : MOST;
        if (count == 0)
                return 0;
        memcpy(weights, data + sizeof head, count * 8);
        struct afz_chosen chosen;
        struct afz_order order;
        afz_order_init(&order, head[0], count, 1 + head[1] % 9, head[0] & 1);
        order.chosen = &chosen;
        if (afz_chosen_weights(&chosen, list, weights, count, 1 + head[1] % INT64_MAX, &bad) == 0)
                go_through(&order, head[1]);
        for (uint64_t i = 0; i < count; i++)
                subset[i] = data[sizeof head + i];
        if (afz_chosen_subset(&chosen, list, subset, count, count, &bad) == 0)
                go_through(&order, head[1]);
        return 0;
}
