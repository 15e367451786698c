/* What we may see: other processes, their memory, pressure, the kernel's log. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "psi_parse.h"

AFZ_CHECK(processes)
{
        const struct afz_mount *proc = afz_mount_at(&ctx->mounts, "/proc");
        struct afz_span hide;
        if (ctx->mounts.err < 0)
                return afz_find_unread(ret, "the list of mounts", ctx->mounts.err);
        if (!proc)
                return afz_find(ret, AFZ_FINDING_UNKNOWN,
                                "how /proc is mounted is not told by the list of mounts");
        bool hidden = afz_mount_option(proc, "hidepid=", &hide) && !afz_span_eq(hide, "0") &&
                      !afz_span_eq(hide, "off");
        if (!hidden)
                return afz_find(ret, AFZ_FINDING_OK, "all processes are visible");
        if (ctx->uid == 0)
                return afz_find(ret, AFZ_FINDING_OK,
                                "all processes are visible to root (hidepid=%.*s for others)",
                                (int)hide.n, hide.p);
        afz_fix_kernel(ctx, ret, "sudo mount -o remount,hidepid=0 /proc");
        return afz_find(ret, AFZ_FINDING_WARN,
                        "/proc is mounted with hidepid=%.*s: only your own processes are visible, "
                        "others that use memory or the GPU are not",
                        (int)hide.n, hide.p);
}

AFZ_CHECK(ptrace)
{
        uint64_t scope;
        int r = afz_env_read_u64(ctx->env, AFZ_ROOT_PROC, "sys/kernel/yama/ptrace_scope", &scope);
        if (r == -ENOENT && afz_doctor_has(ctx, AFZ_ROOT_PROC, "sys/kernel") == 1)
                return afz_find(ret, AFZ_FINDING_OK,
                                "no Yama: stacks of your own processes can be read");
        if (r < 0)
                return afz_find_unread(ret, "Yama's ptrace_scope", r);
        if (scope == 0)
                return afz_find(ret, AFZ_FINDING_OK,
                                "ptrace_scope 0: stacks of your own processes can be read");
        if (ctx->uid == 0 && scope < 3)
                return afz_find(ret, AFZ_FINDING_OK, "ptrace_scope %" PRIu64 ": root may look",
                                scope);
        if (scope == 1)
                return afz_find(ret, AFZ_FINDING_OK,
                                "ptrace_scope 1: stacks can be read of a job that Antifreeze "
                                "started, not of one it joined");
        if (scope == 2)
                afz_fix_kernel(ctx, ret, "sudo sysctl kernel.yama.ptrace_scope=1");
        else
                afz_fix_kernel(ctx, ret,
                               "set kernel.yama.ptrace_scope=1 in /etc/sysctl.d/ and reboot (it "
                               "cannot be lowered before)");
        return afz_find(ret, AFZ_FINDING_WARN,
                        "ptrace_scope %" PRIu64 ": stacks of a hanging job cannot be read", scope);
}

/* Whether the kernel's command line has this word. */
static bool booted_with(const struct afz_env *env, const char *word)
{
        char buf[8192];
        struct afz_span text, one;
        if (afz_env_read(env, AFZ_ROOT_PROC, "cmdline", buf, sizeof buf, &text) < 0)
                return false;
        while (afz_span_take_word(&text, &one) == 0)
                if (afz_span_eq(one, word))
                        return true;
        return false;
}

static enum afz_finding_level no_psi(const struct afz_doctor_ctx *ctx, struct afz_finding *ret)
{
        bool off = booted_with(ctx->env, "psi=0");
        if (ctx->box.wsl)
                afz_fix(ret, "in %%UserProfile%%\\.wslconfig, under [wsl2], set "
                             "kernelCommandLine=psi=1; then, in Windows: wsl --shutdown");
        else if (off)
                afz_fix_kernel(ctx, ret,
                               "take psi=0 out of GRUB_CMDLINE_LINUX in /etc/default/grub, then "
                               "sudo update-grub and reboot");
        else
                afz_fix_kernel(ctx, ret,
                               "add psi=1 to GRUB_CMDLINE_LINUX in /etc/default/grub, then sudo "
                               "update-grub and reboot");
        return afz_find(ret, AFZ_FINDING_MISSING,
                        "%s: that the machine waits for memory shows later and less surely",
                        off ? "switched off with psi=0" : "not offered by this kernel");
}

AFZ_CHECK(psi)
{
        char buf[512];
        struct afz_span text;
        int r = afz_env_read(ctx->env, AFZ_ROOT_PROC, "pressure/memory", buf, sizeof buf, &text);
        if (r == -EOPNOTSUPP ||
            (r == -ENOENT && afz_doctor_has(ctx, AFZ_ROOT_PROC, "meminfo") == 1))
                return no_psi(ctx, ret);
        if (r == -EACCES || r == -EPERM)
                afz_fix(ret, "run outside the sandbox that hides /proc/pressure");
        if (r < 0)
                return afz_find_unread(ret, "/proc/pressure/memory", r);
        struct afz_psi psi;
        r = afz_psi_parse(text, &psi);
        if (r < 0)
                return afz_find_unread(ret, "/proc/pressure/memory", r);
        return afz_find(ret, AFZ_FINDING_OK, "pressure on memory, CPU and disks can be read");
}

AFZ_CHECK(kernel_log)
{
        int fd = afz_env_open(ctx->env, AFZ_ROOT_DEV, "kmsg", O_NONBLOCK);
        if (fd >= 0) {
                close(fd);
                return afz_find(ret, AFZ_FINDING_OK, "OOM kills and driver errors can be read");
        }
        if (fd != -EACCES && fd != -EPERM && fd != -ENOENT && fd != -ENODATA)
                return afz_find_unread(ret, "/dev/kmsg", fd);
        if (ctx->box.container)
                afz_fix(ret, "docker run --device=/dev/kmsg --cap-add=SYSLOG, if it matters");
        else if (fd == -ENOENT || fd == -ENODATA)
                afz_fix(ret, "run where /dev/kmsg is there");
        else
                afz_fix(ret, "sudo sysctl kernel.dmesg_restrict=0 (lets every user read it)");
        return afz_find(ret, AFZ_FINDING_MISSING,
                        "/dev/kmsg %s: OOM kills and GPU errors that only the kernel reports are "
                        "not seen",
                        fd == -EACCES || fd == -EPERM ? "may not be read" : "is not there");
}
