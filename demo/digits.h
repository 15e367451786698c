/*
 * Digits, 28 by 28 pixels, drawn rather than loaded: the demo needs no download and no file.
 *
 * A digit is a few strokes (lines and arcs) that are shifted, scaled, slanted, turned, thickened
 * and smudged at random. Every sample is a pure function of (seed, set, index): two calls agree to
 * the bit, in any order and in any process, so a loader worker can draw its share alone. The two
 * sets never share a random stream; the held-out set is therefore new to a network trained on the
 * other.
 */
#ifndef AFZ_DIGITS_H
#define AFZ_DIGITS_H

#include <stdint.h>

enum {
        AFZ_DIGIT_SIDE = 28,
        AFZ_DIGIT_PIXELS = AFZ_DIGIT_SIDE * AFZ_DIGIT_SIDE,
        AFZ_DIGIT_CLASSES = 10,
};

enum afz_digit_set { AFZ_DIGITS_TRAINING, AFZ_DIGITS_HELD_OUT };

/* The class of a sample is its index modulo 10, so every run of ten samples holds each class once.
 */
static inline uint8_t afz_digit_label(uint64_t index)
{
        return (uint8_t)(index % AFZ_DIGIT_CLASSES);
}

/* Draws one sample: AFZ_DIGIT_PIXELS values from 0 (paper) to 1 (ink), row by row. Cannot fail. */
void afz_digit_draw(uint64_t seed, enum afz_digit_set set, uint64_t index, float *pixels);

#endif
