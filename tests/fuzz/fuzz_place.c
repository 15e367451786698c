/* Any bytes as a loader's state, with a checksum that is right: what is taken is a place that there
 * can be, and comes out of its own packing again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "order.h"
#include "state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct afz_place *place)
{
        uint8_t packed[AFZ_LOADER_STATE_BYTES];
        struct afz_place again;
        struct afz_order order;
        struct afz_permutation chunks;
        struct afz_group_order group;
        afz_place_pack(place, packed);
        if (afz_place_unpack(packed, &again) < 0 ||
            memcmp(&again.seed, &place->seed, sizeof again.seed) != 0)
                abort();
        afz_order_init(&order, place->seed, place->samples, place->chunk_samples, true);
        if (place->first > order.chunks || place->group > order.chunks - place->first)
                abort();
        if (place->group == 0)
                return;
        afz_order_epoch(&order, place->epoch, &chunks);
        afz_order_group(&order, place->epoch, &chunks, place->first, (uint32_t)place->group,
                        &group);
        if (group.samples == 0 || group.start + group.samples > place->samples)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_place place = {0};
        uint8_t packed[AFZ_LOADER_STATE_BYTES];
        if (size >= sizeof packed && afz_place_unpack(data, &place) == 0)
                check(&place);
        uint64_t number[16] = {0};
        memcpy(number, data, size < sizeof number ? size : sizeof number);
        place = (struct afz_place){.seed = number[0],
                                   .samples = number[1],
                                   .start = number[2],
                                   .chunk_samples = number[3],
                                   .epoch = number[4],
                                   .first = number[5],
                                   .group = number[6],
                                   .offset = number[7],
                                   .shuffle = (uint32_t)number[8] % 4,
                                   .draws = number[9],
                                   .chosen = number[10],
                                   .before = {number[11], number[12]},
                                   .before_size = {number[13], number[14]},
                                   .size = number[15]};
        afz_place_pack(&place, packed);
        if (afz_place_unpack(packed, &place) == 0)
                check(&place);
        return 0;
}
