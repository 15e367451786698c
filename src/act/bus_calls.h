#ifndef AFZ_BUS_CALLS_H
#define AFZ_BUS_CALLS_H
/* The functions of sd-bus that bus.c uses, with their types as libsystemd has kept them since 221.
 */
#include <stdint.h>

typedef struct afz_sd_bus afz_sd_bus;
typedef struct afz_sd_message afz_sd_message;
typedef struct afz_sd_slot afz_sd_slot;

struct afz_sd_error {
        const char *name, *message;
        int need_free;
};

typedef int afz_sd_handler(afz_sd_message *m, void *ctx, struct afz_sd_error *error);

struct afz_bus_calls {
        int (*open_user)(afz_sd_bus **ret);
        int (*open_system)(afz_sd_bus **ret);
        int (*get_property_string)(afz_sd_bus *bus, const char *to, const char *path,
                                   const char *interface, const char *member,
                                   struct afz_sd_error *ret_error, char **ret);
        int (*match_signal)(afz_sd_bus *bus, afz_sd_slot **ret, const char *from, const char *path,
                            const char *interface, const char *member, afz_sd_handler *handler,
                            void *ctx);
        int (*message_new_method_call)(afz_sd_bus *bus, afz_sd_message **ret, const char *to,
                                       const char *path, const char *interface, const char *member);
        int (*message_append)(afz_sd_message *m, const char *types, ...);
        int (*open_container)(afz_sd_message *m, char type, const char *contents);
        int (*close_container)(afz_sd_message *m);
        int (*message_read)(afz_sd_message *m, const char *types, ...);
        int (*call)(afz_sd_bus *bus, afz_sd_message *m, uint64_t usec,
                    struct afz_sd_error *ret_error, afz_sd_message **ret);
        int (*process)(afz_sd_bus *bus, afz_sd_message **ret);
        int (*wait)(afz_sd_bus *bus, uint64_t usec);
};

/* Loads libsystemd. -ENODATA: there is none, or one too old. */
int afz_bus_load(struct afz_bus_calls *ret);

#endif
