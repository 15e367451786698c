#include "find_python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "count_of.h"
#include "env.h"
#include "span.h"

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
}

bool afz_python_is_link(const char *argv0)
{
        return argv0 && strcmp(base_name(argv0), AFZ_PYTHON_NAME) == 0;
}

/* A link to us: that would start itself for ever. */
static bool is_us(const char *path)
{
        struct stat theirs, ours;
        return stat(path, &theirs) == 0 && stat("/proc/self/exe", &ours) == 0 &&
               theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev;
}

static bool is_other_program(const char *path)
{
        struct stat theirs;
        return stat(path, &theirs) == 0 && S_ISREG(theirs.st_mode) && access(path, X_OK) == 0 &&
               !is_us(path);
}

static int look_in(struct afz_span folder, char *ret, size_t cap)
{
        static const char *const names[] = {"python3", "python"};
        char path[1024];
        if (folder.n == 0)
                return -ENOENT;
        for (size_t i = 0; i < AFZ_COUNT_OF(names); i++)
                if (afz_path(path, sizeof path, "%.*s/%s", (int)folder.n, folder.p, names[i]) > 0 &&
                    is_other_program(path) && afz_path(ret, cap, "%s", path) > 0)
                        return 0;
        return -ENOENT;
}

static int look_on_path(const char *path, char *ret, size_t cap)
{
        while (path && *path) {
                size_t n = strcspn(path, ":");
                if (look_in((struct afz_span){path, n}, ret, cap) == 0)
                        return 0;
                path += n + (path[n] == ':');
        }
        return -ENOENT;
}

int afz_find_python(const char *argv0, char *ret, size_t cap)
{
        const char *wish = getenv("ANTIFREEZE_PYTHON"), *venv = getenv("VIRTUAL_ENV");
        const char *slash = argv0 ? strrchr(argv0, '/') : NULL;
        char bin[1024];
        if (wish && *wish && !is_us(wish) && afz_path(ret, cap, "%s", wish) > 0)
                return 0;
        if (slash && look_in((struct afz_span){argv0, (size_t)(slash - argv0)}, ret, cap) == 0)
                return 0;
        if (venv && *venv && afz_path(bin, sizeof bin, "%s/bin", venv) > 0 &&
            look_in(afz_span_str(bin), ret, cap) == 0)
                return 0;
        return look_on_path(getenv("PATH"), ret, cap);
}

/* Modules that are tools. */
static bool is_tool(const char *module)
{
        static const char *const tools[] = {"pip",   "venv", "ensurepip", "site",
                                            "black", "mypy", "sysconfig", "virtualenv"};
        for (size_t i = 0; module && i < AFZ_COUNT_OF(tools); i++)
                if (strcmp(module, tools[i]) == 0)
                        return true;
        return false;
}

bool afz_python_is_program(const char *const *args)
{
        for (; *args && (*args)[0] == '-' && (*args)[1]; args++) {
                const char *word = *args;
                if (word[1] == '-') {
                        if (strcmp(word, "--check-hash-based-pycs") != 0)
                                return false; /* --version, --help */
                        args += args[1] != NULL;
                        continue;
                }
                size_t n = 1 + strcspn(word + 1, "cmVhWX?");
                switch (word[n]) {
                case 'c':
                case 'V':
                case 'h':
                case '?':
                        return false;
                case 'm':
                        return !is_tool(word[n + 1] ? word + n + 1 : args[1]);
                case 'W':
                case 'X':
                        args += word[n + 1] == '\0' && args[1] != NULL;
                        break;
                default:
                        break;
                }
        }
        return true;
}
