#include "flight_marks.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "pack.h"

enum { PACK_ROOM = 1 << 18 };

int afz_marks_write(const struct afz_flight *flight,
                    int (*put)(void *ctx, const unsigned char *bytes, size_t len), void *ctx)
{
        struct afz_pack pack = {.cap = PACK_ROOM};
        int r = 0;
        if (flight->marks == 0)
                return 0;
        if (!(pack.buf = malloc(pack.cap)))
                return -ENOMEM;
        afz_pack_start(&pack, 0, flight->mark[0].t_ms * AFZ_NS_PER_MS);
        for (size_t i = 0; i < flight->marks && r >= 0; i++) {
                const struct afz_mark *mark = &flight->mark[i];
                uint64_t t_ns = mark->t_ms * AFZ_NS_PER_MS;
                if (afz_pack_mark(&pack, t_ns, mark->kind, mark->code, mark->text) == 0)
                        continue;
                r = put(ctx, pack.buf, pack.len);
                afz_pack_start(&pack, 0, t_ns);
                (void)afz_pack_mark(&pack, t_ns, mark->kind, mark->code, mark->text);
        }
        if (r >= 0)
                r = put(ctx, pack.buf, pack.len);
        free(pack.buf);
        return r;
}
