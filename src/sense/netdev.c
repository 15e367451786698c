#include "netdev.h"

#include <errno.h>
#include <string.h>

enum { COUNTERS = 16, PER_DIRECTION = 8 };

int afz_netdev_parse(struct afz_span line, struct afz_netdev *ret)
{
        const char *colon = line.n > 0 ? memrchr(line.p, ':', line.n) : NULL;
        if (!colon)
                return afz_span_has(line, "|") ? -ENODATA : -EINVAL;
        size_t before = (size_t)(colon - line.p);
        struct afz_span name = afz_span_trim((struct afz_span){line.p, before});
        struct afz_span rest = {colon + 1, line.n - before - 1};
        if (name.n == 0 || memchr(name.p, ' ', name.n) || memchr(name.p, '/', name.n))
                return -EINVAL;
        uint64_t v[COUNTERS];
        for (size_t i = 0; i < COUNTERS; i++)
                if (afz_span_take_u64(&rest, &v[i]) < 0)
                        return -EINVAL;
        if (afz_span_trim(rest).n > 0)
                return -EINVAL;
        const uint64_t *sent = v + PER_DIRECTION;
        *ret = (struct afz_netdev){
                .name = name,
                .received_bytes = v[0],
                .received_packets = v[1],
                .receive_errors = v[2],
                .receive_drops = v[3],
                .sent_bytes = sent[0],
                .sent_packets = sent[1],
                .send_errors = sent[2],
                .send_drops = sent[3],
        };
        return 0;
}
