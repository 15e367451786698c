#include "digits.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "rng.h"

#define PI 3.14159265F

enum {
        MAX_STROKES = 3,
        ARC_SEGMENTS = 12, /* a full circle of 20 pixels shows no corners at 12 chords and a pen of
                              2 pixels */
};

struct point {
        float x, y;
};

/* In a unit box, y downwards; angles in degrees, 0 to the right and 90 down. An arc with from == to
 * is no stroke. */
struct stroke {
        enum { NOTHING, LINE, ARC } kind;
        union {
                struct {
                        struct point a, b;
                } line;
                struct {
                        struct point centre, radius;
                        float from, to;
                } arc;
        };
};

/* clang-format off */
#define L(x0, y0, x1, y1)         {.kind = LINE, .line = {{x0, y0}, {x1, y1}}}
#define A(cx, cy, rx, ry, f0, f1) {.kind = ARC, .arc = {{cx, cy}, {rx, ry}, f0, f1}}

static const struct stroke glyphs[AFZ_DIGIT_CLASSES][MAX_STROKES] = {
        [0] = {A(.50F, .50F, .32F, .45F, 0, 360)},
        [1] = {L(.35F, .25F, .55F, .05F), L(.55F, .05F, .55F, .95F)},
        [2] = {A(.50F, .30F, .30F, .25F, 180, 400), L(.73F, .46F, .20F, .95F), L(.20F, .95F, .82F, .95F)},
        [3] = {A(.45F, .28F, .30F, .23F, 200, 450), A(.45F, .73F, .33F, .23F, 270, 520)},
        [4] = {L(.60F, .05F, .20F, .65F), L(.20F, .65F, .85F, .65F), L(.65F, .35F, .65F, .95F)},
        [5] = {L(.78F, .07F, .30F, .07F), L(.30F, .07F, .27F, .48F), A(.48F, .67F, .30F, .27F, 225, 510)},
        [6] = {A(.50F, .70F, .28F, .25F, 0, 360), A(.75F, .70F, .53F, .65F, 180, 260)},
        [7] = {L(.20F, .07F, .80F, .07F), L(.80F, .07F, .40F, .95F)},
        [8] = {A(.50F, .28F, .24F, .22F, 0, 360), A(.50F, .73F, .29F, .24F, 0, 360)},
        [9] = {A(.50F, .30F, .27F, .25F, 0, 360), L(.77F, .30F, .65F, .95F)},
};
/* clang-format on */

/* The hand that writes one sample: an affine map from the unit box to pixels, and a pen. */
struct hand {
        float xx, xy, yy, yx;
        struct point shift;
        float pen;    /* half the width of a stroke, in pixels */
        float ink;    /* 1 is black */
        float smudge; /* the largest noise on a pixel */
        float wobble; /* how far an end of a stroke strays, in unit boxes */
};

/* Ranges are as wide as they can be while a person still reads nearly every digit: wide enough that
 * the network needs several hundred steps, which is what makes the falling loss worth watching. */
static struct hand hand_pick(struct afz_rng *rng)
{
        const float width = afz_rng_between(rng, 12, 20), height = afz_rng_between(rng, 15, 22);
        const float slant = afz_rng_between(rng, -.4F, .4F), turn = afz_rng_between(rng, -.2F, .2F);
        const float c = cosf(turn), s = sinf(turn);

        return (struct hand){
                .xx = c * width,
                .xy = -c * slant * height - s * height,
                .yx = s * width,
                .yy = c * height - s * slant * height,
                .shift = {AFZ_DIGIT_SIDE / 2.0F + afz_rng_between(rng, -3, 3),
                          AFZ_DIGIT_SIDE / 2.0F + afz_rng_between(rng, -3, 3)},
                .pen = afz_rng_between(rng, .5F, 1.7F),
                .ink = afz_rng_between(rng, .6F, 1),
                .smudge = afz_rng_between(rng, 0, .45F),
                .wobble = .05F,
        };
}

static struct point hand_place(const struct hand *hand, struct point p)
{
        const float u = p.x - .5F, v = p.y - .5F;

        return (struct point){hand->shift.x + hand->xx * u + hand->xy * v,
                              hand->shift.y + hand->yx * u + hand->yy * v};
}

static struct point stray(struct afz_rng *rng, float wobble, struct point p)
{
        p.x += afz_rng_between(rng, -wobble, wobble);
        p.y += afz_rng_between(rng, -wobble, wobble);
        return p;
}

static float distance_to_segment(struct point p, struct point a, struct point b)
{
        const float dx = b.x - a.x, dy = b.y - a.y;
        const float length2 = dx * dx + dy * dy;
        float t = length2 > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / length2 : 0;

        t = t < 0 ? 0 : t > 1 ? 1 : t;

        const float ex = p.x - a.x - t * dx, ey = p.y - a.y - t * dy;

        return sqrtf(ex * ex + ey * ey);
}

static int clamp_pixel(float x)
{
        return x < 0 ? 0 : x > AFZ_DIGIT_SIDE - 1 ? AFZ_DIGIT_SIDE - 1 : (int)x;
}

/* Looks only at the pixels that the pen can reach: drawing is as cheap as the stroke is short. */
static void draw_segment(float *pixels, const struct hand *hand, struct point a, struct point b)
{
        const float reach = hand->pen + 1;
        const int x0 = clamp_pixel(fminf(a.x, b.x) - reach),
                  x1 = clamp_pixel(fmaxf(a.x, b.x) + reach);
        const int y0 = clamp_pixel(fminf(a.y, b.y) - reach),
                  y1 = clamp_pixel(fmaxf(a.y, b.y) + reach);

        for (int y = y0; y <= y1; y++)
                for (int x = x0; x <= x1; x++) {
                        const struct point p = {(float)x + .5F, (float)y + .5F};
                        const float cover = hand->pen + .5F - distance_to_segment(p, a, b);
                        float *pixel = &pixels[y * AFZ_DIGIT_SIDE + x];

                        *pixel = fmaxf(*pixel, hand->ink * fminf(fmaxf(cover, 0), 1));
                }
}

static void draw_stroke(float *pixels, const struct hand *hand, struct afz_rng *rng,
                        const struct stroke *stroke)
{
        if (stroke->kind == LINE) {
                draw_segment(pixels, hand,
                             hand_place(hand, stray(rng, hand->wobble, stroke->line.a)),
                             hand_place(hand, stray(rng, hand->wobble, stroke->line.b)));
        } else if (stroke->kind == ARC) {
                const struct point centre = stray(rng, hand->wobble, stroke->arc.centre);
                const struct point radius = stray(rng, hand->wobble, stroke->arc.radius);
                struct point last = {0};

                for (int i = 0; i <= ARC_SEGMENTS; i++) {
                        const float part = (float)i / ARC_SEGMENTS;
                        const float degrees =
                                stroke->arc.from + (stroke->arc.to - stroke->arc.from) * part;
                        const struct point p = {centre.x + radius.x * cosf(degrees * PI / 180),
                                                centre.y + radius.y * sinf(degrees * PI / 180)};
                        const struct point here = hand_place(hand, p);

                        if (i > 0)
                                draw_segment(pixels, hand, last, here);
                        last = here;
                }
        }
}

void afz_digit_draw(uint64_t seed, enum afz_digit_set set, uint64_t index, float *pixels)
{
        struct afz_rng rng = afz_rng_seeded(seed, (uint64_t)set, index);
        const struct hand hand = hand_pick(&rng);
        const struct stroke *strokes = glyphs[afz_digit_label(index)];

        memset(pixels, 0, AFZ_DIGIT_PIXELS * sizeof(*pixels));
        for (size_t i = 0; i < MAX_STROKES; i++)
                draw_stroke(pixels, &hand, &rng, &strokes[i]);
        for (size_t i = 0; i < AFZ_DIGIT_PIXELS; i++) {
                const float noisy = pixels[i] + afz_rng_between(&rng, -hand.smudge, hand.smudge);

                pixels[i] = fminf(fmaxf(noisy, 0), 1);
        }
}
