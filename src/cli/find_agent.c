#include "find_agent.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "find_part.h"

int afz_find_agent(char *ret, size_t cap)
{
        char found[PATH_MAX], real[PATH_MAX];
        if (afz_find_part(&afz_part_agent, found, sizeof found) < 0 || !realpath(found, real))
                return -ENOENT;
        *strrchr(real, '/') = '\0';
        int len = strchr(real, ':') ? -1 : snprintf(found, sizeof found, "%s", real);
        if (len <= 0 || (size_t)len >= cap)
                return -ENOENT;
        memcpy(ret, found, (size_t)len + 1);
        return 0;
}

static int is_ahead(const char *folder, const char *path)
{
        size_t n = strlen(folder);
        return strncmp(path, folder, n) == 0 && (path[n] == ':' || path[n] == '\0');
}

int afz_agent_path(const char *folder, const char *before, char *ret, size_t cap)
{
        int len;
        /* An empty place in the path would be the folder that the program is started in. */
        if (!before || before[0] == '\0')
                len = snprintf(ret, cap, "%s", folder);
        else if (is_ahead(folder, before)) /* a run inside a run */
                len = snprintf(ret, cap, "%s", before);
        else
                len = snprintf(ret, cap, "%s:%s", folder, before);
        return len < 0 || (size_t)len >= cap ? -ENAMETOOLONG : 0;
}

static int is_python(const char *program)
{
        const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
        static const char *const names[] = {"python", "pypy"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                size_t n = strlen(names[i]);
                if (strncmp(name, names[i], n) == 0 &&
                    name[n + strspn(name + n, "0123456789.")] == 0)
                        return 1;
        }
        return 0;
}

/* One word of options, such as "-sI": which of them keeps us out; *ret_last is set when no option
 * comes behind it (-c, -m), *ret_value when the next word is the value of the last (-X dev). */
static const char *kept_out_by(const char *word, int *ret_last, int *ret_value)
{
        for (const char *c = word + 1; *c; c++) {
                switch (*c) {
                case 'I':
                        return "-I";
                case 'E':
                        return "-E";
                case 'S':
                        return "-S";
                case 'c':
                case 'm':
                        *ret_last = 1;
                        return NULL;
                case 'W':
                case 'X':
                        *ret_value = c[1] == '\0';
                        return NULL;
                default:
                        break;
                }
        }
        return NULL;
}

const char *afz_agent_kept_out(const char *const *argv)
{
        if (!argv || !argv[0] || !is_python(argv[0]))
                return NULL;
        for (size_t i = 1; argv[i] && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
                int last = 0, value = 0;
                if (strcmp(argv[i], "--check-hash-based-pycs") == 0) {
                        value = 1;
                } else if (argv[i][1] != '-') {
                        const char *by = kept_out_by(argv[i], &last, &value);
                        if (by || last)
                                return by;
                }
                if (value && argv[i + 1])
                        i++;
        }
        return NULL;
}
