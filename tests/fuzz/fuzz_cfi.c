/* Any bytes as a module with an unwind table: no crash, no reading outside, and a rule that is
 * within its bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory {
        const uint8_t *bytes;
        uint64_t size;
};

enum { BASE = 0x10000 };

static uint64_t read_memory(void *context, uint64_t at, void *buf, uint64_t size)
{
        const struct memory *m = context;
        if (at < BASE || at - BASE >= m->size)
                return 0;
        uint64_t left = m->size - (at - BASE), n = size < left ? size : left;
        memcpy(buf, m->bytes + (at - BASE), n);
        return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct afz_cfi_source source = {.read = read_memory};
        /* A head as every linker writes it, so that most inputs get behind it: one row, whose entry
         * follows. */
        static const uint8_t head[20] = {1, 0x1b, 3, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20};
        uint8_t room[4096];
        size_t n = size < sizeof room - sizeof head ? size : sizeof room - sizeof head;
        struct memory memory = {room, sizeof head + n};
        struct afz_cfi_rule rule = {.cfa = 77};
        memcpy(room, head, sizeof head);
        memcpy(room + sizeof head, data, n);
        source.context = &memory;
        for (uint64_t pc = BASE; pc < BASE + 3; pc++) {
                if (afz_cfi_find(&source, BASE, BASE, BASE + memory.size, pc, &rule) < 0)
                        continue;
                struct afz_cfi_rule back;
                if (!afz_cfi_unpack(afz_cfi_pack(&rule, 5), 5, &back) || back.cfa != rule.cfa ||
                    back.ra != rule.ra || back.fp != rule.fp || back.kind != rule.kind)
                        abort();
                if (rule.kind != AFZ_CFI_END && rule.kind != AFZ_CFI_SIGNAL && rule.ra == 0)
                        abort();
        }
        memory.bytes = data; /* and with no head of ours */
        memory.size = size;
        (void)afz_cfi_find(&source, BASE, BASE, BASE + size, BASE + 1, &rule);
        return 0;
}
