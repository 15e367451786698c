#include "user_frame.h"

#include <stdbool.h>
#include <string.h>

#include "count_of.h"
#include "span.h"

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
}

/* "lib/python3.11/" or "lib/pypy3.10/": the standard library, once packages are out. A folder
 * "python3/" is as good as any. */
static bool is_in_standard_library(const char *file)
{
        static const char *const before[] = {"/lib/python", "/lib64/python", "/lib/pypy"};
        for (unsigned i = 0; i < AFZ_COUNT_OF(before); i++) {
                const char *at = strstr(file, before[i]);
                if (!at)
                        continue;
                at += strlen(before[i]);
                size_t major = strspn(at, "0123456789");
                size_t minor = at[major] == '.' ? strspn(at + major + 1, "0123456789td") : 0;
                if (major > 0 && minor > 0 && at[major + 1 + minor] == '/')
                        return true;
        }
        return strstr(file, "/python3") && strstr(file, ".zip/"); /* python311.zip */
}

static bool has_any(const char *file, const char *const *parts, unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                if (strstr(file, parts[i]))
                        return true;
        return false;
}

/* Packages, and code that libraries write and run. */
static bool is_of_library(const char *file)
{
        static const char *const folders[] = {
                "/site-packages/",
                "/dist-packages/",
                "/.pex/",
                "/python/antifreeze/",  /* our own agent */
                "/.vscode/extensions/", /* debuggers */
                "/.vscode-server/",
                "/.cursor-server/",
                "/pycharm/helpers/",
                "/torchinductor_",             /* torch.compile */
                "/__autograph_generated_file", /* tf.function */
        };
        static const char *const texts[] = {
                "<__array_function__", "<decorator-gen", "<attrs generated",
                "<eval_with_key>", /* torch.fx */
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(texts); i++)
                if (afz_str_starts(file, texts[i]))
                        return true;
        return has_any(file, folders, AFZ_COUNT_OF(folders));
}

/* What pip writes to start a package: its only line says nothing. By where it lies, since a user's
 * own folder may be called bin, too. */
static bool is_entry(const char *file)
{
        static const char *const folders[] = {
                "/venv/bin/", "/.venv/bin/", "/env/bin/",    "/envs/",       "/virtualenvs/",
                "conda/bin/", "conda3/bin/", "/.local/bin/", "/micromamba/",
        };
        const char *name = base_name(file);
        size_t before = (size_t)(name - file);
        if (before < strlen("/bin/") || strncmp(name - strlen("/bin/"), "/bin/", 5) != 0 ||
            strchr(name, '.'))
                return false;
        return afz_str_starts(file, "/usr/") || afz_str_starts(file, "/opt/") ||
               afz_str_starts(file, "/bin/") || has_any(file, folders, AFZ_COUNT_OF(folders));
}

bool afz_frame_is_start(const char *file)
{
        return afz_str_starts(file, "<frozen runpy") || strcmp(base_name(file), "runpy.py") == 0 ||
               is_entry(file);
}

size_t afz_frame_package(const char *file)
{
        static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
        for (unsigned i = 0; i < AFZ_COUNT_OF(folders); i++) {
                const char *at = strstr(file, folders[i]);
                const char *package = at ? at + strlen(folders[i]) : NULL;
                size_t n = package ? strcspn(package, "/") : 0;
                if (package && package[n] == '/')
                        return (size_t)(package - file) + n + 1;
        }
        return 0;
}

bool afz_frame_is_import(const char *file)
{
        return afz_str_starts(file, "<frozen importlib") || strstr(file, "/importlib/_bootstrap");
}

enum afz_frame_owner afz_frame_owner_python(const char *file)
{
        /* The interpreter's own: whose code it runs is told by the frames around. "?": nobody's. */
        if (afz_str_starts(file, "<frozen ") || afz_frame_is_import(file) || file[0] == '\0' ||
            strcmp(file, "?") == 0)
                return AFZ_FRAME_OF_RUNTIME;
        /* "<string>", "<stdin>" and a notebook's cells are the user's own. */
        return is_of_library(file) || is_in_standard_library(file) || is_entry(file)
                       ? AFZ_FRAME_OF_LIBRARY
                       : AFZ_FRAME_OF_USER;
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
                if (afz_str_starts(name, runtime[i]))
                        return true;
        /* "python3.11": the interpreter itself. */
        return afz_str_starts(name, "python") &&
               strspn(name + 6, "0123456789.dmtu") == strlen(name + 6);
}

/* The standard library's templates are in code of the user's own, and so is what many programs put
 * around malloc(). */
static bool is_around(const char *function)
{
        static const char *const wraps[] = {"xmalloc", "xcalloc", "xrealloc", "xstrdup"};
        for (unsigned i = 0; i < AFZ_COUNT_OF(wraps); i++)
                if (strcmp(function, wraps[i]) == 0)
                        return true;
        if (afz_str_starts(function, "void "))
                function += strlen("void ");
        return afz_str_starts(function, "std::") || afz_str_starts(function, "__gnu_cxx::") ||
               afz_str_starts(function, "operator new");
}

enum afz_frame_owner afz_frame_owner_native(const char *module, const char *source,
                                            const char *function)
{
        static const char *const systems[] = {"/lib/", "/lib64/", "/usr/lib", "/opt/", "/snap/"};
        const char *name = base_name(module);
        if (name[0] == '\0' || is_runtime(name))
                return AFZ_FRAME_OF_RUNTIME;
        if (afz_str_starts(source, "/usr/include/") || strstr(source, "/include/c++/") ||
            is_around(function))
                return AFZ_FRAME_OF_LIBRARY;
        if (strstr(module, "/site-packages/") || strstr(module, "/dist-packages/"))
                return AFZ_FRAME_OF_LIBRARY;
        for (unsigned i = 0; i < AFZ_COUNT_OF(systems); i++)
                if (afz_str_starts(module, systems[i]) && strstr(name, ".so"))
                        return AFZ_FRAME_OF_LIBRARY;
        return AFZ_FRAME_OF_USER;
}
