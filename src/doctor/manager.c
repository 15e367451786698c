#include "manager.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"

/* The folder with the sockets of the user's services. */
static int runtime_dir(const struct afz_doctor_ctx *ctx, char *buf, size_t cap)
{
        const char *dir = ctx->effects->variable(ctx->effects->ctx, "XDG_RUNTIME_DIR");
        if (dir && dir[0] == '/')
                return afz_path(buf, cap, "%s", dir);
        return afz_path(buf, cap, "/run/user/%u", (unsigned)ctx->uid);
}

static int socket_paths(const struct afz_doctor_ctx *ctx, bool system, char private[512],
                        char bus[512])
{
        char dir[400];
        if (system)
                return afz_path(private, 512, "/run/systemd/private") < 0 ||
                                       afz_path(bus, 512, "/run/dbus/system_bus_socket") < 0
                               ? -ENAMETOOLONG
                               : 0;
        if (runtime_dir(ctx, dir, sizeof dir) < 0 ||
            afz_path(private, 512, "%s/systemd/private", dir) < 0 ||
            afz_path(bus, 512, "%s/bus", dir) < 0)
                return -ENAMETOOLONG;
        return 0;
}

/* The controllers that the manager can give to what it starts. */
static int passed_on(const struct afz_doctor_ctx *ctx, bool system)
{
        char folder[256];
        if (ctx->cgroup.kind != AFZ_CGROUP_V2)
                return -ENODATA;
        if (system)
                return afz_cgroup_controllers(ctx->env, ".");
        int r = afz_path(folder, sizeof folder, "./user.slice/user-%u.slice/user@%u.service",
                         (unsigned)ctx->uid, (unsigned)ctx->uid);
        return r < 0 ? r : afz_cgroup_controllers(ctx->env, folder);
}

void afz_manager_look(const struct afz_doctor_ctx *ctx, struct afz_manager *ret)
{
        struct afz_manager m = {.state = AFZ_MANAGER_ABSENT, .system = ctx->uid == 0};
        struct afz_manager_answer answer;
        char private[512], bus[512];
        int r = socket_paths(ctx, m.system, private, bus);
        if (r == 0)
                r = afz_doctor_may_abs(ctx, private, F_OK);
        m.bus = r == 0 && afz_doctor_may_abs(ctx, bus, F_OK) == 0;
        m.err = r;
        m.controllers = passed_on(ctx, m.system);
        if (r == -ENOENT || r == -ENOTDIR) {
                m.state = AFZ_MANAGER_ABSENT;
        } else if (r < 0) {
                m.state = AFZ_MANAGER_UNKNOWN;
        } else {
                m.err = ctx->effects->ask_manager(ctx->effects->ctx, m.system, &answer);
                m.state = m.err == -ENODATA ? AFZ_MANAGER_SEEN
                          : m.err < 0       ? AFZ_MANAGER_SILENT
                                            : AFZ_MANAGER_ANSWERS;
                if (m.err >= 0)
                        afz_span_copy(afz_span_str(answer.version), m.version, sizeof m.version);
        }
        *ret = m;
}
