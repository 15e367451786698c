#include "state.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum {
        VERSION = 1,
        VERSION_AT = 8, /* behind the magic */
        SHUFFLE_AT = 12,
        NUMBERS_AT = 16,
        OWN = 11, /* numbers before the sizes of groups */
        NUMBERS = OWN + 2 * AFZ_SIZES_MAX + 1,
        SUM_AT = AFZ_LOADER_STATE_BYTES - 8, /* what is in between is 0 */
};

static const uint8_t MAGIC[8] = {'a', 'f', 'z', 'p', 'l', 'a', 'c', 'e'};

static void put(uint8_t *to, uint64_t value, int bytes)
{
        for (int i = 0; i < bytes; i++)
                to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *from, int bytes)
{
        uint64_t value = 0;
        for (int i = 0; i < bytes; i++)
                value |= (uint64_t)from[i] << 8 * i;
        return value;
}

static uint64_t sum(const uint8_t *state)
{
        uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
        for (int i = 0; i < SUM_AT; i++)
                hash = (hash ^ state[i]) * UINT64_C(0x100000001b3);
        return hash;
}

void afz_place_pack(const struct afz_place *place, uint8_t ret[AFZ_LOADER_STATE_BYTES])
{
        uint64_t number[NUMBERS] = {place->seed,          place->samples, place->start,
                                    place->chunk_samples, place->epoch,   place->first,
                                    place->group,         place->offset,  place->batches,
                                    place->draws,         place->chosen};
        memcpy(number + OWN, place->before, sizeof place->before);
        memcpy(number + OWN + AFZ_SIZES_MAX, place->before_size, sizeof place->before_size);
        number[NUMBERS - 1] = place->size;
        memset(ret, 0, AFZ_LOADER_STATE_BYTES);
        memcpy(ret, MAGIC, sizeof MAGIC);
        put(ret + VERSION_AT, VERSION, 4);
        put(ret + SHUFFLE_AT, place->shuffle, 4);
        for (int i = 0; i < NUMBERS; i++)
                put(ret + NUMBERS_AT + 8 * i, number[i], 8);
        put(ret + SUM_AT, sum(ret), 8);
}

/* Each has a size that can be, and comes behind the one before. */
static bool has_sizes(const struct afz_place *place, uint64_t chunks)
{
        for (int i = 0; i < AFZ_SIZES_MAX; i++)
                if (!place->before[i] != !place->before_size[i] || place->before_size[i] > chunks ||
                    place->before[i] > INT64_MAX ||
                    (i > 0 && place->before[i] && place->before[i] <= place->before[i - 1]) ||
                    (i > 0 && place->before[i] && !place->before[i - 1]))
                        return false;
        return place->size <= chunks;
}

int afz_place_unpack(const uint8_t state[AFZ_LOADER_STATE_BYTES], struct afz_place *ret)
{
        uint64_t number[NUMBERS];
        if (memcmp(state, MAGIC, sizeof MAGIC) != 0 || get(state + SUM_AT, 8) != sum(state))
                return -EBADMSG;
        if (get(state + VERSION_AT, 4) != VERSION)
                return -EPROTONOSUPPORT;
        for (int i = 0; i < NUMBERS; i++)
                number[i] = get(state + NUMBERS_AT + 8 * i, 8);
        struct afz_place place = {
                .seed = number[0],
                .samples = number[1],
                .start = number[2],
                .chunk_samples = number[3],
                .epoch = number[4],
                .first = number[5],
                .group = number[6],
                .offset = number[7],
                .batches = number[8],
                .draws = number[9],
                .chosen = number[10],
                .shuffle = (uint32_t)get(state + SHUFFLE_AT, 4),
        };
        memcpy(place.before, number + OWN, sizeof place.before);
        memcpy(place.before_size, number + OWN + AFZ_SIZES_MAX, sizeof place.before_size);
        place.size = number[NUMBERS - 1];
        uint64_t rest = place.chunk_samples ? place.samples % place.chunk_samples : 1;
        uint64_t chunks =
                place.chunk_samples ? place.samples / place.chunk_samples + (rest != 0) : 0;
        if (chunks == 0 || place.chunk_samples > UINT32_MAX || place.samples > INT64_MAX ||
            place.shuffle > AFZ_SHUFFLE_GLOBAL || place.first > chunks ||
            place.group > UINT32_MAX / 2 || place.group > chunks - place.first ||
            place.epoch > INT64_MAX ||
            place.offset > (place.chosen ? place.draws : place.samples) ||
            place.draws > INT64_MAX || !place.chosen != !place.draws || !has_sizes(&place, chunks))
                return -EBADMSG;
        *ret = place;
        return 0;
}
