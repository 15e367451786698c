/* Numbers into rows of another stride, and of a wider type. */
#include <string.h>

#include "arrow_take.h"

static bool is_signed(enum afz_dtype dtype)
{
        return dtype == AFZ_I8 || dtype == AFZ_I16 || dtype == AFZ_I32 || dtype == AFZ_I64;
}

static bool is_whole(enum afz_dtype dtype)
{
        return dtype <= AFZ_I64;
}

bool afz_arrow_holds(enum afz_dtype to, enum afz_dtype from)
{
        if (to == from)
                return true;
        if (to == AFZ_F16 || from == AFZ_F16 || to == AFZ_BOOL)
                return false;
        if (!is_whole(to))
                return true; /* rounded where it has to be, as NumPy would */
        if (from == AFZ_BOOL)
                return true;
        if (!is_whole(from) || (is_signed(from) && !is_signed(to)))
                return false;
        return afz_dtype_bytes(to) > afz_dtype_bytes(from);
}

/* The other side's buffers begin where they like, so that each number is fetched as bytes. */
#define GET(name, type)                                                                            \
        static inline type get_##name(const uint8_t *from, uint64_t i)                             \
        {                                                                                          \
                type number;                                                                       \
                memcpy(&number, from + i * sizeof number, sizeof number);                          \
                return number;                                                                     \
        }
/* clang-format off */
GET(u8, uint8_t) GET(u16, uint16_t) GET(u32, uint32_t) GET(u64, uint64_t)
GET(i8, int8_t) GET(i16, int16_t) GET(i32, int32_t) GET(i64, int64_t)
GET(f32, float) GET(f64, double)

static inline uint8_t get_bit(const uint8_t *from, uint64_t i)
{
        return from[i >> 3] >> (i & 7) & 1;
}
/* clang-format on */

#define COPY(type, get)                                                                            \
        for (uint64_t row = 0, i = run->first; row < run->rows; row++) {                           \
                uint8_t *to = run->to + row * run->stride;                                         \
                for (uint64_t k = 0; k < run->numbers; k++, i++) {                                 \
                        type number = (type)get(run->from, i);                                     \
                        memcpy(to + k * sizeof number, &number, sizeof number);                    \
                }                                                                                  \
        }                                                                                          \
        break

/* clang-format off */
#define FROM_WHOLE(type)                      \
        case AFZ_U8: COPY(type, get_u8);      \
        case AFZ_I8: COPY(type, get_i8);      \
        case AFZ_U16: COPY(type, get_u16);    \
        case AFZ_I16: COPY(type, get_i16);    \
        case AFZ_U32: COPY(type, get_u32);    \
        case AFZ_I32: COPY(type, get_i32);    \
        case AFZ_U64: COPY(type, get_u64);    \
        case AFZ_I64: COPY(type, get_i64);    \
        case AFZ_BOOL: COPY(type, get_bit);
#define FROM_FLOAT(type)                      \
        case AFZ_F32: COPY(type, get_f32);    \
        case AFZ_F64: COPY(type, get_f64);
#define NOTHING(type)

#define TO(name, type, FROM_MORE)                                   \
        static void to_##name(const struct afz_arrow_run *run)      \
        {                                                           \
                switch (run->from_dtype) {                          \
                FROM_WHOLE(type)                                    \
                FROM_MORE(type)                                     \
                default: break;                                     \
                }                                                   \
        }
TO(u8, uint8_t, NOTHING) TO(u16, uint16_t, NOTHING) TO(u32, uint32_t, NOTHING)
TO(u64, uint64_t, NOTHING) TO(i16, int16_t, NOTHING) TO(i32, int32_t, NOTHING)
TO(i64, int64_t, NOTHING) TO(f32, float, FROM_FLOAT) TO(f64, double, FROM_FLOAT)

typedef void copier(const struct afz_arrow_run *run);
/* clang-format on */

/* As they are: by their size alone. */
static void copy_same(const struct afz_arrow_run *run)
{
        static copier *const by_bytes[] = {[1] = to_u8, [2] = to_u16, [4] = to_u32, [8] = to_u64};
        static const enum afz_dtype as[] = {
                [1] = AFZ_U8, [2] = AFZ_U16, [4] = AFZ_U32, [8] = AFZ_U64};
        uint64_t bytes = afz_dtype_bytes(run->to_dtype), row_bytes = run->numbers * bytes;
        struct afz_arrow_run same = *run;
        if (run->stride == row_bytes) {
                memcpy(run->to, run->from + run->first * bytes, run->rows * row_bytes);
                return;
        }
        same.from_dtype = as[bytes];
        by_bytes[bytes](&same);
}

void afz_arrow_copy(const struct afz_arrow_run *run)
{
        /* Signed bytes are only made of bits, which are 0 and 1 without a sign as well. */
        static copier *const to[AFZ_DTYPE_COUNT] = {
                [AFZ_U8] = to_u8,   [AFZ_I8] = to_u8,   [AFZ_U16] = to_u16, [AFZ_I16] = to_i16,
                [AFZ_U32] = to_u32, [AFZ_I32] = to_i32, [AFZ_U64] = to_u64, [AFZ_I64] = to_i64,
                [AFZ_F32] = to_f32, [AFZ_F64] = to_f64, [AFZ_BOOL] = to_u8,
        };
        if (run->from_dtype == run->to_dtype && run->to_dtype != AFZ_BOOL)
                copy_same(run);
        else
                to[run->to_dtype](run);
}
