#ifndef AFZ_QUANTITY_H
#define AFZ_QUANTITY_H
/* Sizes, shares and durations as people write and read them.
 *
 * Reading is strict: the whole string must be one number and at most one unit; no blanks, no sign,
 * no exponent, and nothing that does not fit. A fraction is allowed where the unit is larger than
 * the base unit ("1.5G"), has at most nine digits, and what is smaller than one byte or one
 * nanosecond is dropped. Writing never needs more than the sizes below. All functions are pure: no
 * allocation, no locale, no clock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for the longest text of each kind, with its final NUL. */
enum {
        AFZ_SIZE_TEXT_CAP = 6,      /* "1023M" */
        AFZ_DURATION_TEXT_CAP = 16, /* "213504 d 00 h" */
};

/* Either an absolute size or a share of some total, such as RAM. */
struct afz_size_or_percent {
        bool is_percent;
        uint64_t bytes;     /* when !is_percent */
        uint32_t permyriad; /* when is_percent: hundredths of a percent, 0 to 10000 */
};

/* "4096", "12G", "1.5GiB", "512k", "512KB": K/M/G/T/P/E are powers of 1024 in every spelling and
 * either case; a bare number is bytes. -EINVAL: not a size. -ERANGE: does not fit in 64 bits.
 * *ret_bytes is set only on success. */
int afz_parse_size(const char *text, uint64_t *ret_bytes);

/* As afz_parse_size(), or "75%" / "12.5%" with at most two decimals; -ERANGE above 100%. */
int afz_parse_size_or_percent(const char *text, struct afz_size_or_percent *ret);

/* "250ms", "30s", "1.5h": ns, us, ms, s, m (also min), h, d; a bare number is seconds. Lower case
 * only: "M" would look like a size. Errors as in afz_parse_size(). */
int afz_parse_duration(const char *text, uint64_t *ret_ns);

/* Digits only, the whole string. Errors as in afz_parse_size(). */
int afz_parse_u64(const char *text, uint64_t *ret);

/* The bytes meant, of a total; a percentage rounds down. Cannot overflow. */
uint64_t afz_size_or_percent_of(struct afz_size_or_percent amount, uint64_t total_bytes);

/* At most five characters: "0B", "512K", "9.8G", "128G"; rounded to the nearest. Returns buf, so
 * that it can stand in an argument list. A buffer that is too small gets a cut text, always
 * NUL-terminated (cap must not be 0). */
char *afz_format_size(char *buf, size_t cap, uint64_t bytes);

/* "850 us", "250 ms", "3.2 s", "42 s", "1 min 30 s", "11 min", "2 h 05 min", "3 d 04 h"; two units
 * at most, rounded to the nearest. Returns buf, as afz_format_size() does. */
char *afz_format_duration(char *buf, size_t cap, uint64_t ns);

#endif
