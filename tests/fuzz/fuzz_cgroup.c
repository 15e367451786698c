/* Any bytes as /proc/PID/cgroup: no crash, nothing written on failure, an absolute path that stands
 * in the text on success. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char *const controllers[] = {"", "memory", "cpu", "name=systemd"};
        struct afz_span text = {(const char *)data, size};
        for (size_t i = 0; i < 4; i++) {
                char path[64] = "untouched";
                int r = afz_cgroup_parse(text, controllers[i], path, sizeof path);
                if (r < 0 && strcmp(path, "untouched") != 0)
                        abort();
                if (r >= 0 && path[0] != '/')
                        abort();
        }
        return 0;
}
