#ifndef AFZ_SPAN_H
#define AFZ_SPAN_H
/* Strict parsing over a borrowed piece of memory.
 *
 * A span is a pointer and a length; it owns nothing and need not end in a NUL. "Take" functions cut
 * something off the front: on success they advance the span, on failure they leave it (and every
 * out-parameter) untouched, so a parser can try, refuse and say so. Nothing here allocates, reads a
 * locale, or accepts what it does not fully understand: "12x" is not 12, and a number that does not
 * fit its type is -ERANGE, never wrapped.
 *
 * Failures: -ENODATA the span is at its end, -EINVAL what stands there is something else,
 * -ERANGE a number too large.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct afz_span {
        const char *p;
        size_t n;
};

/* isdigit() would follow the locale, and take what is no unsigned char for an index. */
static inline bool afz_is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static inline bool afz_str_starts(const char *text, const char *with)
{
        return strncmp(text, with, strlen(with)) == 0;
}

#define AFZ_SPAN(literal) ((struct afz_span){(literal), sizeof(literal) - 1})

struct afz_span afz_span_str(const char *s);
bool afz_span_eq(struct afz_span a, const char *s);
bool afz_span_starts(struct afz_span a, const char *prefix);
bool afz_span_ends(struct afz_span a, const char *suffix);
bool afz_span_has(struct afz_span a, const char *needle);

/* Without leading and trailing blanks, tabs and newlines. */
struct afz_span afz_span_trim(struct afz_span s);

/* What stands behind the last slash: "python3" of "/usr/bin/python3". */
struct afz_span afz_span_base_name(struct afz_span path);

/* Copies at most cap-1 bytes and a NUL; control characters become '?', so that no name can speak to
 * a terminal. Returns the length written. */
size_t afz_span_copy(struct afz_span s, char *buf, size_t cap);

/* The next line without its newline. The kernel ends every line it writes: what stands behind the
 * last newline was cut off in the middle, perhaps in mid-number, and is not a line (-ENODATA). */
int afz_span_take_line(struct afz_span *s, struct afz_span *ret);

/* The next run of bytes that are no blank, tab or newline; leading blanks are passed over. */
int afz_span_take_word(struct afz_span *s, struct afz_span *ret);

/* All up to `sep` (which is taken too); -EINVAL when it does not occur. */
int afz_span_take_until(struct afz_span *s, char sep, struct afz_span *ret);

/* The very bytes of `prefix`. */
int afz_span_take_prefix(struct afz_span *s, const char *prefix);

/* Numbers; leading blanks are passed over, a following digit-like byte is never left half taken. */
int afz_span_take_u64(struct afz_span *s, uint64_t *ret);
int afz_span_take_i64(struct afz_span *s, int64_t *ret);
int afz_span_take_hex(struct afz_span *s, uint64_t *ret);

/* "12.34" as hundredths (1234); more decimals are cut off, fewer are filled up. */
int afz_span_take_hundredths(struct afz_span *s, uint64_t *ret);

/* The whole span is this number and nothing else, blanks around it aside. */
int afz_span_u64(struct afz_span s, uint64_t *ret);
int afz_span_i64(struct afz_span s, int64_t *ret);

/* One row of a "key value" table; `id` is whatever the caller's table means by it. */
struct afz_key {
        const char *name;
        int id;
        uint64_t scale; /* multiplied into the value; 0 stands for 1 */
};

/* Walks lines of the forms "key value", "key: value", "key:  value kB" (as /proc/meminfo, vmstat,
 * memory.stat and status have them) and calls `each` for the keys of the table that are there with
 * a whole number after them. Unknown keys and lines that are not of this form are passed over; a
 * known key with a broken or overflowing number is left out, so that it stays absent. The table is
 * in the order in which the kernel prints the keys, which makes the walk linear; a row out of order
 * is still found. Returns how many keys were handed to `each`. */
size_t afz_span_each_key(struct afz_span text, const struct afz_key *table, size_t rows,
                         void (*each)(void *ctx, int id, uint64_t value), void *ctx);

#endif
