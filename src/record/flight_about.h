#ifndef AFZ_FLIGHT_ABOUT_H
#define AFZ_FLIGHT_ABOUT_H
/* The first frame of flight.afz: what was known of the run at its start, and how this file numbers
 * kinds and metrics, so that a later version with other rows in its tables still reads it right.
 */
#include "flight_bytes.h"
#include "flight_sink.h"

enum { AFZ_ABOUT_MAX = 40 * 1024 }; /* bytes, for all texts and names */

/* Our names alone; their sum is in the file's first bytes. */
void afz_names_put(struct afz_put *put);
uint32_t afz_names_sum(void);

void afz_about_put(struct afz_put *put, const struct afz_flight_head *head, uint64_t start_ns);

/* Fills head (whose texts it allocates; what was there is freed), start and names. -EBADMSG;
 * -ENOMEM. */
int afz_about_read(const unsigned char *bytes, size_t len, struct afz_flight_head *ret,
                   uint64_t *ret_start_ns, struct afz_names *ret_names);

/* A head without a word in it, as a file has it whose first frame is damaged. */
int afz_about_none(struct afz_flight_head *ret);

#endif
