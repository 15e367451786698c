/* Any bytes as /proc/PID/{stat,statm,io}: no crash, nothing set on failure, and a name that lies in
 * the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proc_stat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
        if (!holds)
                abort();
}

static void try_stat(struct afz_span text)
{
        struct afz_proc_stat st, before;
        memset(&st, 0x5a, sizeof st);
        before = st;
        if (afz_proc_stat_parse(text, &st) < 0) {
                require(memcmp(&st, &before, sizeof st) == 0);
                return;
        }
        require(st.comm.p >= text.p && st.comm.p + st.comm.n < text.p + text.n);
        require(st.comm.p[-1] == '(' && st.comm.p[st.comm.n] == ')');
        require(st.state != '\0' && text.p[text.n - 1] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        /* Most bytes fail at the start; the second form gets past it. */
        static const char head[] = "1 (",
                          tail[] = ") R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1 1 1 1 "
                                   "1 1 1 1 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n";
        static char buf[4096 + sizeof head + sizeof tail];
        struct afz_span text = {(const char *)data, size};
        struct afz_proc_statm m = {7, 7, 7};
        struct afz_proc_io io = {7, 7, 7, 7, 7};
        try_stat(text);
        if (afz_proc_statm_parse(text, &m) < 0)
                require(m.size_pages == 7 && m.shared_pages == 7);
        if (afz_proc_io_parse(text, &io) < 0)
                require(io.read_bytes == 7 && io.cancelled_bytes == 7);
        if (size <= 4096) {
                memcpy(buf, head, sizeof head - 1);
                memcpy(buf + sizeof head - 1, data, size);
                memcpy(buf + sizeof head - 1 + size, tail, sizeof tail - 1);
                try_stat((struct afz_span){buf, sizeof head - 1 + size + sizeof tail - 1});
        }
        return 0;
}
