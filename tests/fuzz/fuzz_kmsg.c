/* Any bytes as a record of /dev/kmsg, and as the text of a kernel's line. */
#include <stddef.h>
#include <stdint.h>

#include "kmsg_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_kmsg line, whole = {.text = {(const char *)data, size}};
        struct afz_kmsg_event event;
        if (afz_kmsg_parse(whole.text, &line) == 0) {
                int r = afz_kmsg_recognise(&line, &event);
                if (r == 0 && (line.facility != 0 || event.code < 0))
                        __builtin_trap();
        }
        (void)afz_kmsg_recognise(&whole, &event);
        return 0;
}
