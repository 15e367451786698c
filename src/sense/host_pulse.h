#ifndef AFZ_HOST_PULSE_H
#define AFZ_HOST_PULSE_H
/* The machine's part of a fast look (hold.h): three small files, kept open. Cheap enough for every
 * two milliseconds; what is not there stays absent.
 */
#include "env.h"
#include "hold.h"

struct afz_host_pulse {
        int meminfo_fd, pressure_fd, vmstat_fd;
};

/* -ENODATA where there is no /proc/meminfo. */
int afz_host_pulse_open(const struct afz_env *env, struct afz_host_pulse *ret);
void afz_host_pulse_close(struct afz_host_pulse *pulse);

/* Sets AVAILABLE, SWAP_FREE, STALL; with_paging also SWAP_INS, for which the kernel adds up every
 * core's counters. */
int afz_host_pulse_read(const struct afz_host_pulse *pulse, bool with_paging,
                        struct afz_pulse *ret);

#endif
