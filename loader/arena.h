#ifndef AFZ_ARENA_H
#define AFZ_ARENA_H
/* One piece of memory, taken and touched at once: who has it needs to fear no later moment. */
#include <stdbool.h>
#include <stdint.h>

enum { AFZ_ARENA_PAGE = 4096 };

struct afz_arena {
        uint8_t *at;
        uint64_t bytes;
        bool is_shared;
        int fd; /* if it is */
};

/* is_shared: of a file without a name, which other processes may map. -ENOMEM: not to be had. */
int afz_arena_open(struct afz_arena *ret, uint64_t bytes, bool is_shared);
void afz_arena_close(struct afz_arena *arena);
/* The whole pages of a part go back to the system; they are zeros when they are next touched. */
void afz_arena_give(struct afz_arena *arena, uint64_t at, uint64_t bytes);
/* A child does not get this part, so what we write to it is not copied for one. */
void afz_arena_keep_from_children(struct afz_arena *arena, uint64_t at, uint64_t bytes);

#endif
