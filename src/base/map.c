#include "map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Key 0: empty. What belongs to 0 itself has a place of its own: a flag in each slot would make it
 * half as large again, and the guard locks its maps in memory. */
struct slot {
        uint64_t key, value;
};

struct afz_map {
        size_t mask, max, count;
        bool has_zero;
        uint64_t zero_value;
        struct slot slot[];
};

/* The key itself. Ours are pids, which come in runs: each finds its own slot, and neighbours share
 * pages, so that a large map of few entries takes little memory. */
static size_t home(const struct afz_map *map, uint64_t key)
{
        return (size_t)key & map->mask;
}

int afz_map_new(size_t max, struct afz_map **ret)
{
        size_t slots = 16;
        while (slots < max * 2)
                slots *= 2;
        struct afz_map *map = calloc(1, sizeof *map + slots * sizeof map->slot[0]);
        if (!map)
                return -ENOMEM;
        map->mask = slots - 1;
        map->max = max;
        *ret = map;
        return 0;
}

void afz_map_free(struct afz_map *map)
{
        free(map);
}

static size_t find(const struct afz_map *map, uint64_t key)
{
        size_t i = home(map, key);
        while (map->slot[i].key != 0 && map->slot[i].key != key)
                i = (i + 1) & map->mask;
        return i;
}

int afz_map_put(struct afz_map *map, uint64_t key, uint64_t value)
{
        size_t i = find(map, key);
        bool is_new = key == 0 ? !map->has_zero : map->slot[i].key == 0;
        if (is_new && map->count == map->max)
                return -ENOSPC;
        map->count += is_new;
        if (key == 0) {
                map->has_zero = true;
                map->zero_value = value;
        } else {
                map->slot[i] = (struct slot){key, value};
        }
        return 0;
}

bool afz_map_get(const struct afz_map *map, uint64_t key, uint64_t *ret)
{
        size_t i = find(map, key);
        if (key == 0 ? !map->has_zero : map->slot[i].key == 0)
                return false;
        *ret = key == 0 ? map->zero_value : map->slot[i].value;
        return true;
}

/* Moves back every entry of the run that could no longer be reached across the hole. */
static void close_gap(struct afz_map *map, size_t hole)
{
        for (size_t i = (hole + 1) & map->mask; map->slot[i].key != 0; i = (i + 1) & map->mask) {
                size_t want = home(map, map->slot[i].key);
                if (((i - want) & map->mask) >= ((i - hole) & map->mask)) {
                        map->slot[hole] = map->slot[i];
                        hole = i;
                }
        }
        map->slot[hole].key = 0;
}

bool afz_map_remove(struct afz_map *map, uint64_t key)
{
        size_t i = find(map, key);
        if (key == 0 ? !map->has_zero : map->slot[i].key == 0)
                return false;
        if (key == 0)
                map->has_zero = false;
        else
                close_gap(map, i);
        map->count--;
        return true;
}

void afz_map_clear(struct afz_map *map)
{
        memset(map->slot, 0, (map->mask + 1) * sizeof map->slot[0]);
        map->has_zero = false;
        map->count = 0;
}

size_t afz_map_count(const struct afz_map *map)
{
        return map->count;
}
