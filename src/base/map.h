#ifndef AFZ_MAP_H
#define AFZ_MAP_H
/* A hash map from a number to a number, of a capacity set at birth: it never allocates afterwards.
 * Open addressing with linear probing; removal closes the gap, so there are no tombstones and it
 * does not slow down with age. Pages that were never touched cost nothing, so be generous.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct afz_map;

/* Holds up to max entries. -ENOMEM or 0. */
int afz_map_new(size_t max, struct afz_map **ret);
void afz_map_free(struct afz_map *map);

/* Sets or replaces. -ENOSPC when it is full and the key is new. */
int afz_map_put(struct afz_map *map, uint64_t key, uint64_t value);
bool afz_map_get(const struct afz_map *map, uint64_t key, uint64_t *ret);
bool afz_map_remove(struct afz_map *map, uint64_t key);
void afz_map_clear(struct afz_map *map);
size_t afz_map_count(const struct afz_map *map);

#endif
