#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "count_of.h"

/* The kernel's fixed inode of the first pid namespace: whoever is in it is in no container. */
#define FIRST_PID_NAMESPACE "pid:[4026531836]"

/* x86 has a flag for it, which comes early in cpuinfo: the first processor's lines are enough. */
static void look_at_cpu(const struct afz_env *env, struct afz_box *box)
{
        char buf[8192];
        struct afz_span text, line;
        if (afz_env_read_head(env, AFZ_ROOT_PROC, "cpuinfo", buf, sizeof buf, &text) < 0)
                return;
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_span_starts(line, "flags")) {
                        box->vm_known = true;
                        if (afz_span_has(line, " hypervisor"))
                                box->vm = true;
                        return;
                }
}

/* What the firmware calls the machine. */
static void look_at_firmware(const struct afz_env *env, struct afz_box *box)
{
        static const char *const vms[] = {"QEMU",       "KVM",       "VMware",
                                          "VirtualBox", "Bochs",     "Google",
                                          "Amazon EC2", "Parallels", "Microsoft Corporation",
                                          "Xen",        "OpenStack", "Apple Virtualization"};
        char buf[256];
        struct afz_span text;
        if (afz_env_read(env, AFZ_ROOT_SYS, "class/dmi/id/sys_vendor", buf, sizeof buf, &text) < 0)
                return;
        text = afz_span_trim(text);
        for (size_t i = 0; i < AFZ_COUNT_OF(vms); i++) {
                if (!afz_span_has(text, vms[i]))
                        continue;
                /* Microsoft and Google make real machines too: the processor has the last word. */
                if (!box->vm_known)
                        box->vm = box->vm_known = true;
                if (box->vm)
                        afz_span_copy(text, box->vm_name, sizeof box->vm_name);
                return;
        }
        box->vm_known = true;
}

static const char *container_sign(const struct afz_doctor_ctx *ctx)
{
        static const char *const files[] = {"/run/.containerenv", "/.dockerenv",
                                            "/run/systemd/container"};
        char ns[64], path[40];
        const struct afz_mount *root = afz_mount_at(&ctx->mounts, "/");
        if (root && afz_span_eq(root->type, "overlay"))
                return "its / is an overlay";
        afz_path(path, sizeof path, "%llu/ns/pid", (unsigned long long)ctx->env->self_pid);
        if (afz_env_readlink(ctx->env, AFZ_ROOT_PROC, path, ns, sizeof ns) > 0 &&
            strcmp(ns, FIRST_PID_NAMESPACE) == 0)
                return NULL;
        for (size_t i = 0; i < AFZ_COUNT_OF(files); i++)
                if (afz_doctor_may_abs(ctx, files[i], F_OK) == 0)
                        return files[i];
        return NULL;
}

static int wsl_version(const struct afz_env *env)
{
        char buf[1024];
        struct afz_span text;
        if (afz_env_read(env, AFZ_ROOT_PROC, "version", buf, sizeof buf, &text) < 0)
                return 0;
        if (afz_span_has(text, "microsoft"))
                return 2;
        /* The first WSL is no Linux kernel and writes itself large. */
        return afz_span_has(text, "-Microsoft") ? 1 : 0;
}

static void take_total(void *ctx, int id, uint64_t value)
{
        (void)id;
        *(uint64_t *)ctx = value;
}

static uint64_t ram_bytes(const struct afz_env *env)
{
        static const struct afz_key total = {"MemTotal", 0, 0};
        char buf[16384];
        struct afz_span text;
        uint64_t bytes = 0;
        if (afz_env_read(env, AFZ_ROOT_PROC, "meminfo", buf, sizeof buf, &text) == 0)
                afz_span_each_key(text, &total, 1, take_total, &bytes);
        return bytes;
}

void afz_box_look(const struct afz_doctor_ctx *ctx, struct afz_box *ret)
{
        struct afz_box box = {.ram_bytes = ram_bytes(ctx->env), .wsl = wsl_version(ctx->env)};
        look_at_cpu(ctx->env, &box);
        look_at_firmware(ctx->env, &box);
        box.sign = container_sign(ctx);
        box.container = box.sign != NULL;
        *ret = box;
}
