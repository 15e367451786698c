#ifndef AFZ_SLOWEST_H
#define AFZ_SLOWEST_H
/* What the figures of an epoch say: who was the slowest, and how fast that one was. Pure. */
#include "antifreeze/loader.h"

enum afz_side afz_slowest_of(const struct afz_loader_times *times);

/* The sentence of afz_loader_slowest(); things: what samples are called. "" for AFZ_SIDE_NONE. */
enum afz_side afz_slowest_say(const struct afz_loader_times *times, uint32_t threads,
                              const char *things, char ret_words[AFZ_WHY_MAX]);

#endif
