#ifndef AFZ_JSON_VIEW_H
#define AFZ_JSON_VIEW_H
/* A tick as one JSON object on one line, and the table of its metrics.
 *
 *      {"schema":1,"t_ns":…,"wall_ns":…,"tick":…,"job_pid":…|null,
 *       "limit":{"kind":"disk","text":"…"},
 *       "host":{"mem_total_bytes":…,…},"vm":{…,"rates":{"swap_in_bytes_per_s":…,…}},"psi":{…},
 *       "cpu":{…all cores…},"cpus":[{"core":0,…},…],"job":{…},
 *       "processes":[{"pid":…,"start":…,"name":…,"command":…,"note":…,"state":"S",…},…],
 *       "cgroups":[…],"disks":[…],"filesystems":[…],"interfaces":[…],
 *       "thermometers":[…],"supplies":[…],"gpus":[…],"gpu_processes":[…],"self":{…},
 *       "events":[{"t_ns":…,"kind":"oom-kill","code":…,"text":…},…],"events_missed":0,
 *       "unavailable":[{"sense":"gpu","why":"…"},…],
 *       "lines":null|{"live_bytes":…,"step_count":…|null,"growth_s":…|null,"processes_count":…,
 *                     "probe":"…","top":[{"name":"train.py:33 in load()","live_bytes":…,
 *                     "growth_bytes":…|null,"memory":"heap","processes_count":…},…]}}
 *
 * "lines" is which lines of the program hold its memory, of a run that has the probe; "sites" stays
 * empty here (it is in recordings).
 *
 * Every metric of a kind is there under its name, which ends in its unit; one that is not known is
 * null, so that a script sees that it exists. A counter's rate stands in "rates" under its name and
 * "_per_s"; it too is null where there is none. A kind of which nothing was read is null, or [] if
 * there can be many. Integers are exact; beyond 2^53 a reader that turns them into doubles rounds.
 */
#include <stddef.h>
#include <stdint.h>

#include "lines_now.h"
#include "out.h"
#include "window.h"

enum { AFZ_JSON_SCHEMA = 1 };

struct afz_json_view {
        size_t events_seen;                /* of window->events; start with 0 */
        const struct afz_lines_now *lines; /* NULL: not known */
};

/* wall_ns: the time of day as ns since 1970, UTC. Ends in a newline. */
void afz_json_tick(struct afz_json_view *view, struct afz_out *out, const struct afz_window *window,
                   uint64_t wall_ns);

/* The metric table:
 * [{"kind":"host","key":"host","name":…,"unit":…,"type":"gauge|counter|fact","meaning":…},…] */
void afz_json_metrics(struct afz_out *out);

#endif
