#ifndef AFZ_TEST_LEAK_SERIES_H
#define AFZ_TEST_LEAK_SERIES_H
/* Series of memory use, made by a seed: every shape that training programs show, clean or leaking.
 * For test_leak.c. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "count_of.h"
#include "flight.h"

#define MIB (INT64_C(1) << 20)

/* ---- series ---- */

/* One made run: a level, what rises and what comes and goes on top of it. Sizes in MiB, times in
 * seconds, shares of the run's length. */
struct shape {
        double length_s;
        double level;
        double leak_per_s, leak_from; /* from this share on */
        double warm, warm_tau;        /* saturates; tau as a share */
        double root, logarithm; /* as the root, or the logarithm, of the time since the start */
        double fill, fill_end;  /* linear, and stops at this share */
        double ramp_late;       /* in the last twentieth */
        double tooth, tooth_s;  /* rises and falls at once */
        double pulse, pulse_s;  /* up for a fifth of the time */
        unsigned jumps;         /* of 40 MiB each, at random moments */
        double jump_first, jump_last; /* between these shares */
        double stair, stair_s;        /* a jump by `stair` every so often */
        double records;               /* the largest batch so far, of up to this much */
        double wander;                /* slowly, and held back */
        double noise;                 /* up to so much, either way; now and then less */
        double pace;                  /* how much the steps' pace changes, 0 to 1 */
        bool gaps, teardown;
};

struct maker {
        uint64_t seed;
        double work_s, largest, wandered;
        double jump[8];
        double pace;
};

static double chance(struct maker *m)
{
        m->seed ^= m->seed << 13;
        m->seed ^= m->seed >> 7;
        m->seed ^= m->seed << 17;
        return (double)(m->seed >> 11) / (double)(UINT64_C(1) << 53);
}

static double between(struct maker *m, double low, double high)
{
        return low + (high - low) * chance(m);
}

/* Geometric: as often from 1 to 10 as from 10 to 100. */
static double across(struct maker *m, double low, double high)
{
        double share = chance(m), value = low;
        /* high / low to the power of share, by squaring the root ten times over. */
        double step = high / low;
        for (int bit = 0; bit < 16; bit++) {
                double root = step;
                for (int i = 0; i < 40; i++)
                        root = (root + step / root) / 2;
                step = root;
                share *= 2;
                if (share >= 1) {
                        value *= step;
                        share -= 1;
                }
        }
        return value;
}

static double decay(double x) /* e^-x */
{
        double factor = 1 - x / 1024;
        if (x > 1000)
                return 0;
        for (int i = 0; i < 10; i++)
                factor *= factor;
        return factor;
}

static double root_of(double x)
{
        double root = x > 1 ? x : 1;
        for (int i = 0; i < 40; i++)
                root = (root + x / root) / 2;
        return root;
}

static double log_of(double x) /* 1 or more */
{
        double sum = 0;
        for (; x > 2; x /= 2)
                sum += 0.69314718;
        double y = (x - 1) / (x + 1), term = y;
        for (int i = 1; i < 30; i += 2, term *= y * y)
                sum += 2 * term / i;
        return sum;
}

static double phase(double t, double period)
{
        double turns = t / period;
        return turns - (double)(int64_t)turns;
}

static double comes_and_goes(const struct shape *s, struct maker *m, double t)
{
        double value = 0;
        if (s->tooth_s > 0)
                value += s->tooth * phase(t, s->tooth_s);
        if (s->pulse_s > 0 && phase(t, s->pulse_s) > 0.8)
                value += s->pulse;
        if (s->wander > 0)
                value += m->wandered = 0.995 * m->wandered + s->wander * 0.1 * between(m, -1, 1);
        if (s->noise > 0)
                value += s->noise * (chance(m) * chance(m) * 2 - 0.5);
        return value;
}

static double rises(const struct shape *s, struct maker *m, double t)
{
        double share = t / s->length_s, value = 0;
        double leaks = m->work_s - s->leak_from * s->length_s;
        if (leaks > 0)
                value += s->leak_per_s * leaks;
        if (s->warm > 0)
                value += s->warm * (1 - decay(share / s->warm_tau));
        value += s->root > 0 ? s->root * root_of(share) : 0;
        value += s->logarithm > 0 ? s->logarithm * log_of(1 + t) : 0;
        if (s->fill > 0)
                value += s->fill * (share < s->fill_end ? share / s->fill_end : 1);
        if (share > 0.95)
                value += s->ramp_late * (share - 0.95) * 20;
        for (unsigned i = 0; i < s->jumps; i++)
                value += share > m->jump[i] ? 40 : 0;
        if (s->stair_s > 0)
                value += s->stair * (double)(int64_t)(m->work_s / s->stair_s);
        if (s->records > 0) {
                double batch = s->records * chance(m) * chance(m);
                m->largest = batch > m->largest ? batch : m->largest;
                value += m->largest;
        }
        return value;
}

static int64_t value_at(const struct shape *s, struct maker *m, double t, double dt)
{
        if (s->pace > 0 && chance(m) < dt / (s->length_s / 15))
                m->pace = 1 + s->pace * between(m, -1, 1);
        m->work_s += dt * m->pace;
        double value = s->level + rises(s, m, t) + comes_and_goes(s, m, t);
        if (s->teardown && t > s->length_s - 1.5)
                value *= (s->length_s - t) / 1.5;
        return (int64_t)(value * MIB);
}

/* Ten a second, and older ones thinned as in a recording: a second's after five minutes, ten
 * seconds' after an hour. */
static struct afz_column make(const struct shape *s, uint64_t seed)
{
        struct maker m = {.seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .pace = 1};
        struct afz_column column = {.metric = AFZ_HOLD_NEED};
        for (unsigned i = 0; i < AFZ_COUNT_OF(m.jump); i++)
                m.jump[i] = between(&m, s->jump_first, s->jump_last);
        column.cap = (size_t)(s->length_s * 10) + 16;
        column.point = calloc(column.cap, sizeof *column.point);
        assert_non_null(column.point);
        for (double t = 0; t < s->length_s;) {
                double left = s->length_s - t;
                double span = left > 3600 ? 10 : left > 300 ? 1 : 0;
                struct afz_point p = {.t_ms = (uint32_t)(t * 1000),
                                      .span_ms = (uint32_t)(span * 1000)};
                int looks = span > 0 ? 5 : 1;
                double dt = span > 0 ? span / looks : 0.1;
                for (int i = 0; i < looks; i++, t += dt) {
                        int64_t v = value_at(s, &m, t, dt);
                        p.least = i == 0 || v < p.least ? v : p.least;
                        p.most = i == 0 || v > p.most ? v : p.most;
                        p.mean = v;
                }
                double share = t / s->length_s;
                if (s->gaps && ((share > 0.4 && share < 0.46) || (share > 0.8 && share < 0.83)))
                        continue;
                assert_true(column.count < column.cap);
                column.point[column.count++] = p;
        }
        return column;
}

/* ---- kinds: each fills a shape at random ---- */

static void flat(struct shape *s, struct maker *m)
{
        s->noise = across(m, 0.1, s->level * 0.1);
}
static void exponential(struct shape *s, struct maker *m)
{
        s->warm = s->level * across(m, 0.1, 8);
        s->warm_tau = across(m, 0.02, 0.6);
        s->noise = s->warm * across(m, 0.0001, 0.01);
}
static void slow_laws(struct shape *s, struct maker *m)
{
        if (chance(m) < 0.5)
                s->root = s->level * across(m, 0.2, 4);
        else
                s->logarithm = s->level * across(m, 0.05, 1);
        s->noise = across(m, 0.01, 1);
}
static void filled(struct shape *s, struct maker *m)
{
        s->fill = s->level * across(m, 0.1, 10);
        s->fill_end = between(m, 0.05, 0.9);
        s->noise = across(m, 0.01, 2);
        s->teardown = chance(m) < 0.5;
}
static void saw(struct shape *s, struct maker *m)
{
        s->tooth = s->level * across(m, 0.05, 3);
        s->tooth_s = s->length_s * across(m, 0.005, 0.35);
        s->noise = across(m, 0.01, s->tooth * 0.05);
}
static void epochs(struct shape *s, struct maker *m)
{
        s->pulse = s->level * across(m, 0.1, 2);
        s->pulse_s = s->length_s * across(m, 0.01, 0.3);
        s->tooth = s->level * across(m, 0.05, 1);
        s->tooth_s = s->pulse_s;
        s->noise = across(m, 0.01, 4);
}
static void parts(struct shape *s, struct maker *m)
{
        s->jumps = 1 + (unsigned)(chance(m) * 6);
        s->jump_last = between(m, 0.3, 1);
        s->noise = across(m, 0.01, 2);
}
static void largest_batch(struct shape *s, struct maker *m)
{
        s->records = s->level * across(m, 0.1, 2);
        s->noise = across(m, 0.01, 4);
}
static void wanders(struct shape *s, struct maker *m)
{
        s->wander = s->level * across(m, 0.01, 0.3);
}
static void late_peak(struct shape *s, struct maker *m)
{
        s->ramp_late = s->level * across(m, 0.1, 3);
        s->noise = across(m, 0.01, 4);
        s->teardown = chance(m) < 0.5;
}
static void below_notice(struct shape *s, struct maker *m)
{
        s->leak_per_s = s->level * between(m, 0.002, 0.01) / s->length_s;
}
static void warm_saw(struct shape *s, struct maker *m)
{
        exponential(s, m);
        saw(s, m);
        s->tooth_s = s->length_s * across(m, 0.005, 0.06);
}

static void leak(struct shape *s, struct maker *m)
{
        s->leak_per_s = s->level * across(m, 0.05, 5) / s->length_s;
        s->teardown = chance(m) < 0.5;
}
static double leaked(const struct shape *s)
{
        return s->leak_per_s * s->length_s;
}
static void leak_noise(struct shape *s, struct maker *m)
{
        leak(s, m);
        s->noise = leaked(s) * across(m, 0.01, 0.5);
}
static void leak_saw(struct shape *s, struct maker *m)
{
        leak(s, m);
        s->tooth = leaked(s) * across(m, 0.1, 3);
        s->tooth_s = s->length_s * across(m, 0.005, 0.05);
}
static void leak_epochs(struct shape *s, struct maker *m)
{
        leak(s, m);
        s->pulse = leaked(s) * across(m, 0.1, 2);
        s->pulse_s = s->length_s * across(m, 0.01, 0.08);
        s->noise = leaked(s) * 0.01;
}
static void leak_warm(struct shape *s, struct maker *m)
{
        leak(s, m);
        s->warm = leaked(s) * across(m, 0.2, 2);
        s->warm_tau = across(m, 0.01, 0.06);
        s->noise = leaked(s) * 0.01;
}
static void leak_pace(struct shape *s, struct maker *m)
{
        leak(s, m);
        s->pace = between(m, 0.1, 0.4);
        s->noise = leaked(s) * 0.005;
}
static void leak_stair(struct shape *s, struct maker *m)
{
        s->stair_s = s->length_s / between(m, 24, 200);
        s->stair = s->level * across(m, 0.1, 3) * s->stair_s / s->length_s;
}
static void leak_gaps(struct shape *s, struct maker *m)
{
        leak(s, m);
        s->gaps = true;
}
static void leak_slow(struct shape *s, struct maker *m)
{
        s->level = 1024;
        s->length_s = between(m, 240, 1200);
        s->leak_per_s = 0.1;
        s->noise = across(m, 0.05, 2);
}
static void leak_day(struct shape *s, struct maker *m)
{
        s->length_s = 3600 * between(m, 3, 24);
        s->leak_per_s = across(m, 0.005, 0.2);
        s->tooth = 50;
        s->tooth_s = between(m, 5, 400);
}
static void leak_late(struct shape *s, struct maker *m)
{
        leak_day(s, m);
        s->leak_from = between(m, 0.2, 0.7);
}

static const struct kind {
        const char *name;
        void (*fill)(struct shape *, struct maker *);
        bool leaks;
} kinds[] = {
        {"flat", flat, false},
        {"exponential warm-up", exponential, false},
        {"root, logarithm", slow_laws, false},
        {"buffer that fills and stops", filled, false},
        {"sawtooth", saw, false},
        {"epochs", epochs, false},
        {"loaded in parts", parts, false},
        {"largest batch so far", largest_batch, false},
        {"wanders", wanders, false},
        {"peak at the end", late_peak, false},
        {"below notice", below_notice, false},
        {"warm-up with teeth", warm_saw, false},
        {"leak", leak, true},
        {"leak and noise", leak_noise, true},
        {"leak under teeth", leak_saw, true},
        {"leak under epochs", leak_epochs, true},
        {"leak after warm-up", leak_warm, true},
        {"leak at changing pace", leak_pace, true},
        {"leak in stairs", leak_stair, true},
        {"leak with gaps", leak_gaps, true},
        {"slow leak", leak_slow, true},
        {"slow leak over a day", leak_day, true},
        {"leak that begins late", leak_late, true},
};

#endif
