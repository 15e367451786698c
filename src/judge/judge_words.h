#ifndef AFZ_JUDGE_WORDS_H
#define AFZ_JUDGE_WORDS_H
/* Figures for people, as arguments of printf: for the sentences of the judges. */
#include <stdint.h>

#include "quantity.h"

/* "3.1G"; what is below zero reads as 0. */
#define SIZE(bytes)                                                                                \
        afz_format_size((char[AFZ_SIZE_TEXT_CAP]){0}, AFZ_SIZE_TEXT_CAP,                           \
                        afz_judge_positive((double)(bytes)))

/* "2 h 05 min", from milliseconds. */
#define LASTS(ms)                                                                                  \
        afz_format_duration((char[AFZ_DURATION_TEXT_CAP]){0}, AFZ_DURATION_TEXT_CAP,               \
                            afz_judge_positive((double)(ms)*1e6))

/* Whatever a recording made of it: a number that can be written. */
static inline uint64_t afz_judge_positive(double value)
{
        if (!(value > 0))
                return 0;
        return value < 9e18 ? (uint64_t)value : (uint64_t)9e18;
}

#endif
