#ifndef AFZ_NETDEV_H
#define AFZ_NETDEV_H
/* Parser of the lines of /proc/net/dev: pure, strict, fuzzed.
 *
 * "  eth0: 936568368 32944 0 0 0 0 0 0  1967247 27610 0 0 0 0 0 0", and on old kernels with the
 * first counter jammed to the colon ("eth0:936568368"). The name ends at the *last* colon: an alias
 * ("eth0:1") has one of its own. The two lines of headings have none, and are -ENODATA. Any line
 * that is not a name and sixteen numbers is -EINVAL.
 */
#include <stdint.h>

#include "span.h"

struct afz_netdev {
        struct afz_span name; /* points into the text */
        uint64_t received_bytes, received_packets, receive_errors, receive_drops;
        uint64_t sent_bytes, sent_packets, send_errors, send_drops;
};

int afz_netdev_parse(struct afz_span line, struct afz_netdev *ret);

#endif
