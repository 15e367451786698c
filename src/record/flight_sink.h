#ifndef AFZ_FLIGHT_SINK_H
#define AFZ_FLIGHT_SINK_H
/* Where the decoders of packs and blocks put what they read: a flight, as it is or gathered into
 * spans. One sink reads any number of packs and blocks; afz_sink_settle() must follow before the
 * flight is looked at.
 */
#include <stdbool.h>

#include "flight.h"

/* How a file numbers kinds and metrics. What we do not know by that name is passed over. */
enum { AFZ_NAMES_KINDS = 64 };
struct afz_names {
        unsigned char kind[AFZ_NAMES_KINDS]; /* of ours; AFZ_KIND_NONE: we have none */
        uint64_t known[AFZ_NAMES_KINDS];     /* bits: which of its metrics we have */
        unsigned char metric[AFZ_NAMES_KINDS][AFZ_METRICS_PER_KIND]; /* place within our kind */
};

struct afz_pack_reader; /* what a pack is decoded with; see pack_read.c */

struct afz_sink {
        struct afz_flight *flight; /* the caller's */
        struct afz_flight *marks;  /* where marks go; NULL: there, too */
        bool (*wanted)(enum afz_metric metric);
        const struct afz_names *names; /* NULL: numbered as we do */
        uint32_t span_ms;              /* 0: points as they are */
        size_t points;                 /* that were put; spans count once */
        struct afz_pack_reader *reader;
};

void afz_sink_done(struct afz_sink *sink); /* leaves the flight */

/* The metric of ours that the file's number means; false: we have none, or nobody wants it. */
bool afz_sink_metric(const struct afz_sink *sink, unsigned file_kind, unsigned index,
                     enum afz_metric *ret);

/* The kind of ours; AFZ_KIND_NONE: we have none. */
enum afz_kind afz_sink_kind(const struct afz_sink *sink, uint64_t file_kind);

int afz_sink_point(struct afz_sink *sink, struct afz_track *track, enum afz_metric metric,
                   const struct afz_point *point);

/* Sorts what is out of order, and reckons the means of what was gathered. */
int afz_sink_settle(struct afz_sink *sink);

/* Whether a span of it is told by its last value alone: counters, and numbers that are no amount.
 */
bool afz_metric_is_last(enum afz_metric metric);

/* Decodes into the sink. -EBADMSG: damaged; what came before that is in. */
int afz_pack_read(struct afz_sink *sink, const unsigned char *bytes, size_t len);
int afz_block_read(struct afz_sink *sink, const unsigned char *bytes, size_t len);

/* When a pack begins; -EBADMSG. */
int afz_pack_time(const unsigned char *bytes, size_t len, uint32_t *ret_ms);

#endif
