#ifndef AFZ_EXPORT_H
#define AFZ_EXPORT_H
/* A recording in the forms that other programs read, one row each: a flight in, text out. Pure: no
 * clock, no I/O of their own. docs/export.md says what each looks like.
 *
 * Whatever the flight holds, what is written is well-formed: names of processes, texts of marks and
 * the command are bytes that anybody may have chosen. Command lines are masked (secret.h). Numbers
 * of metrics, kinds, events and actions that this version does not know are left out.
 */
#include "flight.h"
#include "out.h"

struct afz_exporter {
        const char *name; /* as --format has it */
        void (*put)(const struct afz_flight *flight, struct afz_out *out);
        bool of_sites; /* of what the probe saw, and of nothing else */
};

/* Ends with a row whose name is NULL; the first is the default. */
extern const struct afz_exporter afz_exporters[];

#endif
