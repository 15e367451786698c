#include "bus_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "count_of.h"

#define ROW(member, symbol)                                                                        \
        {                                                                                          \
                symbol, offsetof(struct afz_bus_calls, member)                                     \
        }

static const struct {
        const char *name;
        size_t offset;
} rows[] = {
        ROW(open_user, "sd_bus_open_user"),
        ROW(open_system, "sd_bus_open_system"),
        ROW(get_property_string, "sd_bus_get_property_string"),
        ROW(match_signal, "sd_bus_match_signal"),
        ROW(message_new_method_call, "sd_bus_message_new_method_call"),
        ROW(message_append, "sd_bus_message_append"),
        ROW(open_container, "sd_bus_message_open_container"),
        ROW(close_container, "sd_bus_message_close_container"),
        ROW(message_read, "sd_bus_message_read"),
        ROW(call, "sd_bus_call"),
        ROW(process, "sd_bus_process"),
        ROW(wait, "sd_bus_wait"),
};

int afz_bus_load(struct afz_bus_calls *ret)
{
        struct afz_bus_calls calls;
        void *lib = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
        if (!lib)
                return -ENODATA;
        _Static_assert(sizeof rows / sizeof rows[0] == sizeof calls / sizeof(void *),
                       "a row for each call");
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++) {
                void *symbol = dlsym(lib, rows[i].name);
                if (!symbol)
                        return -ENODATA;
                /* ISO C has no conversion from an object's address to a function's; POSIX promises
                 * that the bytes are the same. */
                memcpy((char *)&calls + rows[i].offset, &symbol, sizeof symbol);
        }
        *ret = calls;
        return 0;
}
