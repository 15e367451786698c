/* What could hold a job: cgroups, the systemd manager, and who else may kill. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "count_of.h"
#include "dir.h"
#include "quantity.h"

/* Whether we can make a cgroup below this one and move ourselves there. */
static int may_use(const struct afz_doctor_ctx *ctx, const char *folder)
{
        char path[AFZ_CGROUP_PATH_MAX + 32];
        if (!folder[0])
                return -ENODATA;
        int r = afz_doctor_may(ctx, AFZ_ROOT_CGROUP, folder, W_OK);
        if (r == 0)
                r = afz_path(path, sizeof path, "%s/cgroup.procs", folder);
        return r < 0 ? r : afz_doctor_may(ctx, AFZ_ROOT_CGROUP, path, W_OK);
}

static bool gives_memory(int controllers)
{
        return controllers >= 0 && controllers & 1 << AFZ_CG_MEMORY;
}

enum afz_tier afz_tier_forecast(const struct afz_doctor_ctx *ctx)
{
        const struct afz_cgroup_layout *cg = &ctx->cgroup;
        const struct afz_manager *m = &ctx->manager;
        const char *own = cg->own.dir[AFZ_CG_MEMORY];
        if (cg->kind == AFZ_CGROUP_UNKNOWN)
                return AFZ_TIER_UNKNOWN;
        if (cg->kind == AFZ_CGROUP_V2) {
                if ((m->state == AFZ_MANAGER_ANSWERS || (m->state == AFZ_MANAGER_SEEN && m->bus)) &&
                    gives_memory(m->controllers))
                        return AFZ_TIER_SCOPE;
                if (may_use(ctx, own) == 0 && gives_memory(afz_cgroup_controllers(ctx->env, own)))
                        return AFZ_TIER_CGROUP2;
                /* It might have been the manager, had we been allowed to look. */
                return m->state == AFZ_MANAGER_UNKNOWN ? AFZ_TIER_UNKNOWN : AFZ_TIER_NONE;
        }
        if (cg->own.version == 1 && may_use(ctx, own) == 0)
                return AFZ_TIER_CGROUP1;
        return AFZ_TIER_NONE;
}

AFZ_CHECK(cgroup)
{
        static const char *const v2_boot = "add systemd.unified_cgroup_hierarchy=1 to "
                                           "GRUB_CMDLINE_LINUX in /etc/default/grub, then sudo "
                                           "update-grub and reboot";
        if (ctx->cgroup.kind == AFZ_CGROUP_V2)
                return afz_find(ret, AFZ_FINDING_OK, "cgroup v2 with the memory controller");
        if (ctx->cgroup.kind == AFZ_CGROUP_UNKNOWN)
                return afz_find_unread(ret, "our own place in the cgroups", ctx->cgroup.err);
        if (ctx->box.wsl == 2)
                afz_fix(ret, "in %%UserProfile%%\\.wslconfig, under [wsl2], set "
                             "kernelCommandLine=cgroup_no_v1=all; then, in Windows: wsl "
                             "--shutdown");
        else if (ctx->cgroup.kind == AFZ_CGROUP_V2_NO_MEMORY)
                afz_fix_kernel(ctx, ret,
                               "add cgroup_enable=memory to the kernel's command line (and take "
                               "cgroup_disable=memory out), then reboot");
        else if (ctx->cgroup.kind == AFZ_CGROUP_NONE)
                afz_fix_kernel(ctx, ret, "sudo mount -t cgroup2 none /sys/fs/cgroup");
        else
                afz_fix_kernel(ctx, ret, "%s", v2_boot);
        switch (ctx->cgroup.kind) {
        case AFZ_CGROUP_HYBRID:
                return afz_find(ret, AFZ_FINDING_WARN,
                                "hybrid: cgroup v2 is mounted, but memory is limited by v1, which "
                                "users are not given");
        case AFZ_CGROUP_V1:
                return afz_find(ret, AFZ_FINDING_WARN,
                                "cgroup v1 only: limits work, but users are not given them");
        case AFZ_CGROUP_V2_NO_MEMORY:
                return afz_find(ret, AFZ_FINDING_MISSING,
                                "cgroup v2 without the memory controller: no memory limits");
        default:
                return afz_find(ret, AFZ_FINDING_MISSING, "no cgroups are mounted");
        }
}

static enum afz_finding_level delegation_v2(const struct afz_doctor_ctx *ctx,
                                            struct afz_finding *ret)
{
        char names[64];
        const struct afz_manager *m = &ctx->manager;
        const char *own = ctx->cgroup.own.dir[AFZ_CG_MEMORY];
        int may = may_use(ctx, own), bits = afz_cgroup_controllers(ctx->env, own);
        if (bits < 0)
                return afz_find_unread(ret, "cgroup.controllers of our own cgroup", bits);
        if (may == 0 && gives_memory(bits))
                return afz_find(ret, AFZ_FINDING_OK,
                                "our own cgroup is ours to divide; controllers: %s",
                                afz_cgroup_controllers_text(bits, names, sizeof names));
        if (gives_memory(m->controllers) &&
            (m->state == AFZ_MANAGER_ANSWERS || m->state == AFZ_MANAGER_SEEN))
                return afz_find(ret, AFZ_FINDING_OK,
                                "not our own cgroup, but the systemd manager passes on: %s",
                                afz_cgroup_controllers_text(m->controllers, names, sizeof names));
        if (ctx->box.container)
                afz_fix(ret,
                        "docker run --security-opt writable-cgroups=true (Docker 28 or later), or "
                        "podman run --security-opt unmask=/sys/fs/cgroup");
        else if (m->state == AFZ_MANAGER_ABSENT)
                afz_fix(ret,
                        "start a systemd manager (see systemd below), which passes cgroups on");
        else
                afz_fix(ret, "sudo mkdir -p /etc/systemd/system/user@.service.d && printf "
                             "'[Service]\\nDelegate=cpu memory pids io\\n' | sudo tee "
                             "/etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl "
                             "daemon-reload; then log in again");
        return afz_find(ret, AFZ_FINDING_MISSING, "our own cgroup %s; controllers in it: %s",
                        may == 0 ? "is writable but cannot limit memory" : "is not writable",
                        afz_cgroup_controllers_text(bits, names, sizeof names));
}

AFZ_CHECK(delegation)
{
        const struct afz_cgroup_layout *cg = &ctx->cgroup;
        const char *own = cg->own.dir[AFZ_CG_MEMORY];
        if (cg->kind == AFZ_CGROUP_UNKNOWN)
                return afz_find_unread(ret, "our own cgroup", cg->err);
        if (cg->kind == AFZ_CGROUP_NONE || cg->kind == AFZ_CGROUP_V2_NO_MEMORY)
                return AFZ_FINDING_SKIP;
        if (cg->kind == AFZ_CGROUP_V2)
                return delegation_v2(ctx, ret);
        if (may_use(ctx, own) == 0)
                return afz_find(ret, AFZ_FINDING_OK,
                                "our own v1 memory cgroup is writable; freezer: %s",
                                may_use(ctx, cg->own.dir[AFZ_CG_FREEZER]) == 0 ? "writable"
                                                                               : "not writable");
        afz_fix(ret, "boot with cgroup v2 (see cgroup layout above)");
        return afz_find(ret, AFZ_FINDING_MISSING, "%s",
                        own[0] ? "our own v1 memory cgroup is not writable"
                               : "v1 has no memory controller mounted");
}

AFZ_CHECK(memory_limit)
{
        char limit[AFZ_SIZE_TEXT_CAP], ram[AFZ_SIZE_TEXT_CAP];
        uint64_t bytes;
        int r = afz_cgroup_memory_limit(ctx->env, &ctx->cgroup, &bytes);
        if (r == -ENODATA && ctx->cgroup.kind != AFZ_CGROUP_UNKNOWN)
                return AFZ_FINDING_SKIP;
        if (r < 0)
                return afz_find_unread(ret, "the memory limit of our own cgroup", r);
        if (bytes == UINT64_MAX || (ctx->box.ram_bytes && bytes >= ctx->box.ram_bytes))
                return afz_find(ret, AFZ_FINDING_OK, "none below the machine's RAM");
        afz_format_size(limit, sizeof limit, bytes);
        if (ctx->box.ram_bytes)
                afz_format_size(ram, sizeof ram, ctx->box.ram_bytes);
        else
                snprintf(ram, sizeof ram, "?");
        if (ctx->box.container)
                afz_fix(ret, "docker run --memory=SIZE, or resources.limits.memory in Kubernetes, "
                             "if it should be more");
        else
                afz_fix(ret, "ask for more memory where this session was started (sbatch --mem=, "
                             "systemd MemoryMax=), if it should be more");
        return afz_find(ret, AFZ_FINDING_WARN,
                        "%s of the machine's %s: beyond it the kernel kills, whatever free says",
                        limit, ram);
}

static enum afz_finding_level no_manager(const struct afz_doctor_ctx *ctx, struct afz_finding *ret)
{
        if (ctx->box.wsl == 2)
                afz_fix(ret, "in /etc/wsl.conf set systemd=true under [boot]; then, in Windows: "
                             "wsl --shutdown");
        else if (ctx->box.container)
                afz_fix(ret, "none needed in a container; outside, run antifreeze on the host");
        else if (ctx->manager.system || afz_doctor_may_abs(ctx, "/run/systemd/system", F_OK) < 0)
                afz_fix(ret, "boot with systemd as the first process");
        else
                afz_fix(ret, "sudo apt install dbus-user-session && sudo systemctl start user@%u",
                        (unsigned)ctx->uid);
        return afz_find(ret, AFZ_FINDING_MISSING, "no systemd %s manager: no scopes for jobs",
                        ctx->manager.system ? "system" : "user");
}

AFZ_CHECK(systemd)
{
        const struct afz_manager *m = &ctx->manager;
        const char *whose = m->system ? "system" : "user";
        switch (m->state) {
        case AFZ_MANAGER_UNKNOWN:
                return afz_find_unread(ret, "the systemd manager's socket", m->err);
        case AFZ_MANAGER_ABSENT:
                return no_manager(ctx, ret);
        case AFZ_MANAGER_ANSWERS:
                return afz_find(ret, AFZ_FINDING_OK, "the %s manager answers (systemd %s)", whose,
                                m->version);
        case AFZ_MANAGER_SILENT:
                afz_fix(ret, m->system ? "systemctl status; sudo systemctl restart dbus.socket"
                                       : "systemctl --user status; export "
                                         "XDG_RUNTIME_DIR=/run/user/$(id -u) if it is not set");
                return afz_find(ret, AFZ_FINDING_WARN, "the %s manager is there but %s (%s)", whose,
                                m->err == -ETIMEDOUT ? "gives no answer" : "cannot be asked",
                                strerror(-m->err));
        default:
                break;
        }
        if (m->bus)
                return afz_find(ret, AFZ_FINDING_OK,
                                "the %s manager and its bus are there; this build has no "
                                "libsystemd to ask it",
                                whose);
        afz_fix(ret, "sudo apt install %s", m->system ? "dbus" : "dbus-user-session");
        return afz_find(ret, AFZ_FINDING_WARN, "the %s manager is there, but no D-Bus socket",
                        whose);
}

AFZ_CHECK(linger)
{
        char path[256];
        const struct afz_manager *m = &ctx->manager;
        if (m->system || m->state == AFZ_MANAGER_ABSENT || m->state == AFZ_MANAGER_UNKNOWN)
                return AFZ_FINDING_SKIP;
        const char *user = ctx->effects->variable(ctx->effects->ctx, "USER");
        if (!user || !user[0] || strchr(user, '/'))
                return afz_find(ret, AFZ_FINDING_UNKNOWN, "USER is not set: whose, is not known");
        int r = afz_path(path, sizeof path, "/var/lib/systemd/linger/%s", user);
        if (r >= 0)
                r = afz_doctor_may_abs(ctx, path, F_OK);
        if (r == 0)
                return afz_find(ret, AFZ_FINDING_OK, "on: jobs outlive your last logout");
        if (r != -ENOENT)
                return afz_find_unread(ret, path, r);
        afz_fix(ret, "loginctl enable-linger");
        return afz_find(ret, AFZ_FINDING_WARN,
                        "off: a job in a scope ends when you log out, also inside tmux or nohup");
}

/* Their names as /proc/PID/comm has them: 15 characters at most. */
static bool is_oom_daemon(struct afz_span comm)
{
        static const char *const names[] = {"earlyoom", "systemd-oomd", "nohang", "oomd", "bustd"};
        for (size_t i = 0; i < AFZ_COUNT_OF(names); i++)
                if (afz_span_eq(comm, names[i]))
                        return true;
        return false;
}

static int find_oom_daemons(const struct afz_env *env, char *buf, size_t cap)
{
        struct afz_dir dir;
        int found = 0, r = afz_dir_open(&dir, env, AFZ_ROOT_PROC, ".");
        size_t n = 0;
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                char path[64], comm[64];
                struct afz_span text;
                uint64_t pid;
                if (afz_dir_name_u64(&dir, &pid) < 0 ||
                    afz_path(path, sizeof path, "%" PRIu64 "/comm", pid) < 0 ||
                    afz_env_read(env, AFZ_ROOT_PROC, path, comm, sizeof comm, &text) < 0 ||
                    !is_oom_daemon(afz_span_trim(text)))
                        continue;
                text = afz_span_trim(text);
                if (n < cap)
                        n += (size_t)snprintf(buf + n, cap - n, "%s%.*s (pid %" PRIu64 ")",
                                              found ? ", " : "", (int)text.n, text.p, pid);
                found++;
        }
        afz_dir_close(&dir);
        return r < 0 ? r : found;
}

AFZ_CHECK(oom_daemons)
{
        char names[160];
        struct afz_finding sight = {0};
        int found = find_oom_daemons(ctx->env, names, sizeof names);
        if (found < 0)
                return afz_find_unread(ret, "the list of processes", found);
        if (found > 0)
                return afz_find(ret, AFZ_FINDING_OK,
                                "%s runs and may kill the job by its own rules before Antifreeze "
                                "acts",
                                names);
        if (ctx->box.container || afz_check_processes(ctx, &sight) != AFZ_FINDING_OK)
                return afz_find(ret, AFZ_FINDING_UNKNOWN,
                                "none seen, but not all processes of the machine are visible");
        return afz_find(ret, AFZ_FINDING_OK, "none runs that would kill the job by its own rules");
}
