#include "find_part.h"

#include <errno.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "count_of.h"
#include "env.h"

static int take(const char *pattern, char *ret, size_t cap)
{
        glob_t found;
        int r = -ENOENT;
        if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
                return r;
        for (size_t i = 0; i < found.gl_pathc && r < 0; i++)
                if (access(found.gl_pathv[i], R_OK) == 0 &&
                    afz_path(ret, cap, "%s", found.gl_pathv[i]) > 0)
                        r = 0;
        globfree(&found);
        return r;
}

int afz_find_part(const struct afz_part *part, char *ret, size_t cap)
{
        char self[512], pattern[640];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        char *slash = NULL;
        if (n > 0) {
                self[n] = '\0';
                slash = strrchr(self, '/');
        }
        if (slash) {
                *slash = '\0';
                for (size_t i = 0; i < AFZ_COUNT_OF(part->beside) && part->beside[i]; i++)
                        if (afz_path(pattern, sizeof pattern, "%s%s%s", self, part->beside[i],
                                     part->name) > 0 &&
                            take(pattern, ret, cap) == 0)
                                return 0;
        }
        if (afz_path(pattern, sizeof pattern, "%s/%s", part->installed, part->name) <= 0)
                return -ENOENT;
        return take(pattern, ret, cap);
}
