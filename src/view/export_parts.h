#ifndef AFZ_EXPORT_PARTS_H
#define AFZ_EXPORT_PARTS_H
/* What the forms of export.h share: how a subject, a time, a mark and a command are written. */
#include <stdbool.h>

#include "flight.h"
#include "json.h"
#include "metric.h"
#include "out.h"

/* The row of a column's metric; NULL: not of this track's kind, or of no version that we know. */
const struct afz_metric_info *afz_export_metric(const struct afz_track *track,
                                                const struct afz_column *column);
/* NULL: no such kind. */
const struct afz_kind_info *afz_export_kind(const struct afz_track *track);

/* A subject's id as text: "4242" of a process, "0:4242" of a process on a GPU, "8:16" of a disk,
 * "all" of the cores together; "" where there is only ever one. Returns buf. */
enum { AFZ_EXPORT_ID_CAP = 48 };
char *afz_export_id(const struct afz_track *track, char buf[AFZ_EXPORT_ID_CAP]);

/* "12.345" of 12345 ms. */
void afz_export_seconds(struct afz_out *out, uint64_t ms);

/* value / 10^decimals, exactly. */
void afz_export_decimal(struct afz_out *out, int64_t value, unsigned decimals);

/* "event", "action", ...; NULL: no such kind. */
const char *afz_export_mark_kind(const struct afz_mark *mark);
/* What of that kind: "oom-kill", "brake", "attempt 2"; "said". Returns buf. */
enum { AFZ_EXPORT_MARK_CAP = 48 };
char *afz_export_mark_name(const struct afz_mark *mark, char buf[AFZ_EXPORT_MARK_CAP]);

/* Its number: of an event, the event's own (a pid, an Xid); of a stack, the thread. */
int64_t afz_export_mark_code(const struct afz_mark *mark);

/* A command line in JSON, masked and cut to 4 kB. */
void afz_export_command(struct afz_json *j, const char *cmd);

/* The run as members of an open JSON object. */
void afz_export_head(struct afz_json *j, const struct afz_flight *flight);

void afz_export_csv(const struct afz_flight *flight, struct afz_out *out);
void afz_export_jsonl(const struct afz_flight *flight, struct afz_out *out);
void afz_export_openmetrics(const struct afz_flight *flight, struct afz_out *out);
void afz_export_chrome_trace(const struct afz_flight *flight, struct afz_out *out);
void afz_export_collapsed(const struct afz_flight *flight, struct afz_out *out);
void afz_export_speedscope(const struct afz_flight *flight, struct afz_out *out);
void afz_export_pprof(const struct afz_flight *flight, struct afz_out *out);

#endif
