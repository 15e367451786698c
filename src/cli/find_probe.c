#include "find_probe.h"

#include <errno.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "count_of.h"
#include "env.h"

#define LIBRARY "libantifreeze-probe.so"

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

int afz_find_probe(char *ret, size_t cap)
{
        static const char *const beside[] = {"/probe/", "/../lib/antifreeze/",
                                             "/../lib64/antifreeze/", "/../lib/*/antifreeze/"};
        char self[512], pattern[640];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        char *slash = NULL;
        if (n > 0) {
                self[n] = '\0';
                slash = strrchr(self, '/');
        }
        if (slash) {
                *slash = '\0';
                for (size_t i = 0; i < AFZ_COUNT_OF(beside); i++)
                        if (afz_path(pattern, sizeof pattern, "%s%s" LIBRARY, self, beside[i]) >
                                    0 &&
                            take(pattern, ret, cap) == 0)
                                return 0;
        }
        return take(AFZ_PROBE_DIR "/" LIBRARY, ret, cap);
}
