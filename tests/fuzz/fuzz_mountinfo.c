/* Any bytes as /proc/PID/mountinfo; every mount point is looked up in the table, and the bytes are
 * tried as an fdinfo too. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fs_type.h"
#include "job_files.h"
#include "mountinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_mount mount[32];
        struct afz_mount_table table = {.cap = 32, .mount = mount};
        struct afz_span text = {(const char *)data, size};
        uint64_t id;
        bool writes;
        (void)afz_fdinfo_parse(text, &id, &writes);
        afz_mount_table_fill(&table, text);
        for (size_t i = 0; i < table.count; i++) {
                char point[256];
                ssize_t n = afz_mount_unescape(mount[i].point, point, sizeof point);
                if (n < 0)
                        continue;
                if ((size_t)n != strlen(point) || !afz_fs_type_of(&mount[i]))
                        __builtin_trap();
                (void)afz_mount_of_path(&table, point);
                if (!afz_mount_by_id(&table, mount[i].id))
                        __builtin_trap();
        }
        return 0;
}
