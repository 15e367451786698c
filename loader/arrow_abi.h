#ifndef AFZ_ARROW_ABI_H
#define AFZ_ARROW_ABI_H
/* Arrow's C data interface and C stream interface, as its specification lays them out
 * (arrow.apache.org/docs/format/CDataInterface.html, CStreamInterface.html): columns of another
 * library, in place. Who gets one of these releases it, by its own function, exactly once; one
 * whose release is NULL has been.
 *
 * They say how many entries a buffer has, not how many bytes: that part is the other side's word.
 */
#include <stdint.h>

struct afz_arrow_schema {
        const char *format, *name, *metadata;
        int64_t flags, n_children;
        struct afz_arrow_schema **children, *dictionary;
        void (*release)(struct afz_arrow_schema *);
        void *private_data;
};

struct afz_arrow_array {
        int64_t length, null_count, offset, n_buffers, n_children;
        const void **buffers;
        struct afz_arrow_array **children, *dictionary;
        void (*release)(struct afz_arrow_array *);
        void *private_data;
};

struct afz_arrow_stream {
        /* 0, else an errno; an array whose release is NULL: the end. */
        int (*get_schema)(struct afz_arrow_stream *, struct afz_arrow_schema *ret);
        int (*get_next)(struct afz_arrow_stream *, struct afz_arrow_array *ret);
        const char *(*get_last_error)(struct afz_arrow_stream *); /* may be NULL */
        void (*release)(struct afz_arrow_stream *);
        void *private_data;
};

#endif
