#include "gpu_nvml_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "count_of.h"

#define NAME_(name, args) [AFZ_FN_##name] = #name,

static const char *const fn_name[AFZ_FN_COUNT] = {[AFZ_FN_LOAD] = "loading libnvidia-ml",
                                                  AFZ_NVML_FUNCTIONS(NAME_)};

const char *afz_nvml_fn_name(unsigned fn)
{
        return fn < AFZ_FN_COUNT ? fn_name[fn] : "a function unknown to us";
}

/* WSL keeps its library where the loader does not look by default. */
static const char *const usual_files[] = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1",
                                          "libnvidia-ml.so"};

static void *open_library(const char *file, char *error, size_t error_cap)
{
        size_t count = file ? 1 : AFZ_COUNT_OF(usual_files);
        for (size_t i = 0; i < count; i++) {
                void *lib = dlopen(file ? file : usual_files[i], RTLD_LAZY | RTLD_LOCAL);
                if (lib)
                        return lib;
                const char *words = dlerror();
                if (i == 0)
                        snprintf(error, error_cap, "%s", words ? words : "cannot be loaded");
        }
        return NULL;
}

int afz_nvml_load(const char *file, struct afz_nvml_api *ret, char *error, size_t error_cap)
{
        void *lib = open_library(file, error, error_cap);
        if (!lib)
                return -ENOENT;
        *ret = (struct afz_nvml_api){0};
        for (unsigned i = AFZ_FN_LOAD + 1; i < AFZ_FN_COUNT; i++) {
                /* POSIX promises that a function fits in dlsym's pointer; C does not know. */
                void *symbol = dlsym(lib, fn_name[i]);
                memcpy(&ret->fn[i], &symbol, sizeof symbol);
        }
        void *symbol = dlsym(lib, "nvmlErrorString");
        memcpy(&ret->error_string, &symbol, sizeof symbol);
        return 0;
}

const char *afz_nvml_error(const struct afz_nvml_api *api, int result)
{
        const char *words = api->error_string ? api->error_string(result) : NULL;
        return words ? words : "unknown error";
}
