/* What kind of machine this is. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "checks.h"
#include "doctor_thresholds.h"
#include "quantity.h"

/* "0-3,8" has five; -EINVAL for anything else. */
static int count_list(struct afz_span s, uint64_t *ret)
{
        uint64_t n = 0;
        s = afz_span_trim(s);
        while (s.n > 0) {
                struct afz_span part, low;
                uint64_t a, b;
                if (afz_span_take_until(&s, ',', &part) < 0) {
                        part = s;
                        s.n = 0;
                }
                if (afz_span_take_until(&part, '-', &low) < 0)
                        low = part;
                if (afz_span_u64(low, &a) < 0 || afz_span_u64(part, &b) < 0)
                        return -EINVAL;
                if (b < a || b - a > UINT16_MAX)
                        return -EINVAL;
                n += b - a + 1;
        }
        if (n == 0)
                return -EINVAL;
        *ret = n;
        return 0;
}

static int cores_online(const struct afz_env *env, uint64_t *ret)
{
        char buf[4096];
        struct afz_span text;
        int r = afz_env_read(env, AFZ_ROOT_SYS, "devices/system/cpu/online", buf, sizeof buf,
                             &text);
        return r < 0 ? r : count_list(text, ret);
}

/* Those that we may run on; a batch system or a container may allow fewer. */
static int cores_allowed(const struct afz_env *env, uint64_t *ret)
{
        char buf[8192];
        struct afz_span text, line;
        int r = afz_doctor_read_self(env, "status", buf, sizeof buf, &text);
        if (r < 0)
                return r;
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_span_take_prefix(&line, "Cpus_allowed_list:") == 0)
                        return count_list(line, ret);
        return -ENODATA;
}

static void say_cores(const struct afz_env *env, char *buf, size_t cap)
{
        uint64_t online, allowed;
        int have_online = cores_online(env, &online), have_allowed = cores_allowed(env, &allowed);
        if (have_online == 0 && have_allowed == 0 && allowed < online)
                afz_path(buf, cap, "%" PRIu64 " of %" PRIu64 " cores", allowed, online);
        else if (have_online == 0 || have_allowed == 0)
                afz_path(buf, cap, "%" PRIu64 " cores", have_online == 0 ? online : allowed);
        else
                afz_path(buf, cap, "an unknown number of cores");
}

AFZ_CHECK(machine)
{
        const struct afz_box *box = &ctx->box;
        char size[AFZ_SIZE_TEXT_CAP], cores[64];
        say_cores(ctx->env, cores, sizeof cores);
        if (box->ram_bytes == 0)
                return afz_find_unread(ret, "the size of RAM (/proc/meminfo)", -ENODATA);
        const char *vm = box->vm         ? "in a virtual machine"
                         : box->vm_known ? "on bare metal"
                                         : "bare metal or virtual: not told";
        return afz_find(ret, AFZ_FINDING_OK, "%s of RAM, %s; %s%s%s%s%s%s%s",
                        afz_format_size(size, sizeof size, box->ram_bytes), cores, vm,
                        box->vm_name[0] ? " (" : "", box->vm_name, box->vm_name[0] ? ")" : "",
                        box->container ? ", in a container (" : "", box->container ? box->sign : "",
                        box->container ? ")" : "");
}

AFZ_CHECK(kernel)
{
        char buf[256], name[96];
        struct afz_span text, part;
        uint64_t major, minor;
        int r = afz_env_read(ctx->env, AFZ_ROOT_PROC, "sys/kernel/osrelease", buf, sizeof buf,
                             &text);
        if (r < 0)
                return afz_find_unread(ret, "the kernel's version", r);
        text = afz_span_trim(text);
        afz_span_copy(text, name, sizeof name);
        size_t digits = 0;
        if (afz_span_take_until(&text, '.', &part) < 0 || afz_span_u64(part, &major) < 0)
                return afz_find_unread(ret, "the kernel's version", -EINVAL);
        while (digits < text.n && afz_is_digit(text.p[digits]))
                digits++;
        if (afz_span_u64((struct afz_span){text.p, digits}, &minor) < 0)
                return afz_find_unread(ret, "the kernel's version", -EINVAL);
        if (major > AFZ_DOCTOR_KERNEL_MAJOR ||
            (major == AFZ_DOCTOR_KERNEL_MAJOR && minor >= AFZ_DOCTOR_KERNEL_MINOR))
                return afz_find(ret, AFZ_FINDING_OK, "Linux %s", name);
        afz_fix_kernel(ctx, ret, "install a kernel of version %d.%d or later and reboot",
                       AFZ_DOCTOR_KERNEL_MAJOR, AFZ_DOCTOR_KERNEL_MINOR);
        return afz_find(ret, AFZ_FINDING_WARN, "Linux %s is older than %d.%d: much cannot be seen",
                        name, AFZ_DOCTOR_KERNEL_MAJOR, AFZ_DOCTOR_KERNEL_MINOR);
}

AFZ_CHECK(wsl)
{
        char size[AFZ_SIZE_TEXT_CAP] = "?";
        if (ctx->box.wsl == 0)
                return AFZ_FINDING_SKIP;
        if (ctx->box.wsl == 1) {
                afz_fix(ret, "in Windows: wsl --set-version <distribution> 2");
                return afz_find(ret, AFZ_FINDING_MISSING,
                                "WSL 1 is no Linux kernel: nothing can be contained in it");
        }
        if (ctx->box.ram_bytes)
                afz_format_size(size, sizeof size, ctx->box.ram_bytes);
        afz_fix(ret,
                "in %%UserProfile%%\\.wslconfig, under [wsl2], set memory= (leave Windows 4GB) and "
                "swap=; then, in Windows: wsl --shutdown");
        return afz_find(ret, AFZ_FINDING_WARN,
                        "WSL2 sees %s of RAM, by default half of what Windows has; .wslconfig "
                        "sets it and cannot be seen from here",
                        size);
}
