#include "user_frame.h"

#include <stdbool.h>
#include <string.h>

#include "count_of.h"

static bool starts(const char *text, const char *with)
{
        return strncmp(text, with, strlen(with)) == 0;
}

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
}

/* "lib/python3.11/", or "python311.zip/": the standard library, once packages are out. */
static bool is_in_standard_library(const char *file)
{
        static const char *const before[] = {"/lib/python", "/lib64/python"};
        for (unsigned i = 0; i < AFZ_COUNT_OF(before); i++) {
                const char *at = strstr(file, before[i]);
                at = at ? at + strlen(before[i]) : NULL;
                if (at && at[0] >= '2' && at[0] <= '9' && strchr(at, '/'))
                        return true;
        }
        return false;
}

enum afz_frame_owner afz_frame_owner_python(const char *file)
{
        if (starts(file, "<frozen ") || starts(file, "<__array_function__"))
                return AFZ_FRAME_OF_LIBRARY;
        if (strstr(file, "/site-packages/") || strstr(file, "/dist-packages/"))
                return AFZ_FRAME_OF_LIBRARY;
        /* "?": nobody's. "<string>", "<stdin>" and a notebook's cells are the user's own. */
        if (file[0] == '\0' || strcmp(file, "?") == 0)
                return AFZ_FRAME_OF_RUNTIME;
        return is_in_standard_library(file) ? AFZ_FRAME_OF_LIBRARY : AFZ_FRAME_OF_USER;
}

/* What an allocation passes through on its way, by the beginning of its name. */
static bool is_runtime(const char *name)
{
        static const char *const runtime[] = {
                "libc.so",     "libc-2.",     "ld-linux",
                "ld-2.",       "libpthread",  "libdl",
                "libm.so",     "libm-2.",     "librt",
                "libstdc++",   "libc++",      "libgcc_s",
                "libpython",   "libjemalloc", "libtcmalloc",
                "libmimalloc", "libasan",     "libtsan",
                "liblsan",     "libubsan",    "libantifreeze-probe",
                "[vdso]",      "linux-vdso",
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(runtime); i++)
                if (starts(name, runtime[i]))
                        return true;
        /* "python3.11": the interpreter itself. */
        return starts(name, "python") && strspn(name + 6, "0123456789.dmtu") == strlen(name + 6);
}

/* The standard library's templates are in code of the user's own, and so is what many programs put
 * around malloc(). */
static bool is_around(const char *function)
{
        static const char *const wraps[] = {"xmalloc", "xcalloc", "xrealloc", "xstrdup"};
        for (unsigned i = 0; i < AFZ_COUNT_OF(wraps); i++)
                if (strcmp(function, wraps[i]) == 0)
                        return true;
        if (starts(function, "void "))
                function += strlen("void ");
        return starts(function, "std::") || starts(function, "__gnu_cxx::") ||
               starts(function, "operator new");
}

enum afz_frame_owner afz_frame_owner_native(const char *module, const char *source,
                                            const char *function)
{
        static const char *const systems[] = {"/lib/", "/lib64/", "/usr/lib", "/opt/", "/snap/"};
        const char *name = base_name(module);
        if (name[0] == '\0' || is_runtime(name))
                return AFZ_FRAME_OF_RUNTIME;
        if (starts(source, "/usr/include/") || strstr(source, "/include/c++/") ||
            is_around(function))
                return AFZ_FRAME_OF_LIBRARY;
        if (strstr(module, "/site-packages/") || strstr(module, "/dist-packages/"))
                return AFZ_FRAME_OF_LIBRARY;
        for (unsigned i = 0; i < AFZ_COUNT_OF(systems); i++)
                if (starts(module, systems[i]) && strstr(name, ".so"))
                        return AFZ_FRAME_OF_LIBRARY;
        return AFZ_FRAME_OF_USER;
}
