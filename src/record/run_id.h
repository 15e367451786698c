#ifndef AFZ_RUN_ID_H
#define AFZ_RUN_ID_H
/* IDs of runs: "20261115-063745-kxqz", the start in UTC and its fraction of a second in letters, so
 * that names sort by time. Never all digits: digits alone are a PID. */
#include <stdbool.h>
#include <stdint.h>

#include "run_page.h"

enum { AFZ_RUN_ID_LENGTH = 20 };

/* wall_ns: CLOCK_REALTIME. Pure. */
void afz_run_id_make(uint64_t wall_ns, char ret[AFZ_RUN_ID_CAP]);

/* Whether a text has the form of an ID: no other name is taken for a run's. */
bool afz_run_id_is(const char *text);

/* How people call a run: by the beginning of its ID ("" is one of every ID), or by its last four
 * letters. */
bool afz_run_id_fits(const char *id, const char *text);

/* "ID.run", "ID.sock", "ID.probe". */
struct afz_run_name {
        char text[AFZ_RUN_ID_CAP + 8];
};
struct afz_run_name afz_run_name(const char *id, const char *suffix);

/* This boot, as /proc/sys/kernel/random/boot_id has it; "" where it cannot be read. */
void afz_boot_id(char ret[AFZ_BOOT_ID_CAP]);

#endif
