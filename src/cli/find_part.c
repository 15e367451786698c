#include "find_part.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "count_of.h"
#include "env.h"
#include "span.h"

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

/* So that glob() takes a folder's name as it is. */
static int escape(struct afz_span path, char *ret, size_t cap)
{
        size_t n = 0;
        for (size_t i = 0; i < path.n && n + 2 < cap; i++) {
                if (strchr("*?[\\", path.p[i]))
                        ret[n++] = '\\';
                ret[n++] = path.p[i];
        }
        ret[n] = '\0';
        return n + 2 < cap ? 0 : -ENAMETOOLONG;
}

int afz_find_part_of(const char *program, const struct afz_part *part, char *ret, size_t cap)
{
        char folder[1024], pattern[1280];
        const char *slash = strrchr(program, '/');
        struct afz_span in = {program, slash ? (size_t)(slash - program) : 0};
        bool known = slash && escape(in, folder, sizeof folder) == 0;
        for (size_t i = 0; known && i < AFZ_COUNT_OF(part->beside) && part->beside[i]; i++)
                if (afz_path(pattern, sizeof pattern, "%s%s%s", folder, part->beside[i],
                             part->name) > 0 &&
                    take(pattern, ret, cap) == 0)
                        return 0;
        if (afz_path(pattern, sizeof pattern, "%s/%s", part->installed, part->name) <= 0)
                return -ENOENT;
        return take(pattern, ret, cap);
}

int afz_find_part(const struct afz_part *part, char *ret, size_t cap)
{
        char self[512];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        self[n > 0 ? n : 0] = '\0';
        return afz_find_part_of(self, part, ret, cap);
}
