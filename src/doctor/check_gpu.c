/* GPUs: are they seen, do driver and library agree, may we use them, who holds their memory. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "dir.h"
#include "doctor_thresholds.h"
#include "quantity.h"

enum { NVIDIA = 0x10de, AMD = 0x1002, INTEL = 0x8086, PCI_DISPLAY = 0x03 };

struct pci_gpus {
        unsigned nvidia, amd, intel;
};

static int read_hex(const struct afz_env *env, const char *device, const char *file, uint64_t *ret)
{
        char path[320], buf[32];
        struct afz_span text;
        int r = afz_path(path, sizeof path, "bus/pci/devices/%s/%s", device, file);
        if (r >= 0)
                r = afz_env_read(env, AFZ_ROOT_SYS, path, buf, sizeof buf, &text);
        if (r < 0)
                return r;
        if (afz_span_take_prefix(&text, "0x") < 0)
                return -EINVAL;
        return afz_span_take_hex(&text, ret);
}

/* The display controllers on the PCI bus, whether or not a driver took them. */
static int scan_pci(const struct afz_env *env, struct pci_gpus *ret)
{
        struct pci_gpus found = {0};
        struct afz_dir dir;
        int r = afz_dir_open(&dir, env, AFZ_ROOT_SYS, "bus/pci/devices");
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                uint64_t class, vendor;
                if (read_hex(env, dir.name, "class", &class) < 0 || class >> 16 != PCI_DISPLAY ||
                    read_hex(env, dir.name, "vendor", &vendor) < 0)
                        continue;
                found.nvidia += vendor == NVIDIA;
                found.amd += vendor == AMD;
                found.intel += vendor == INTEL;
        }
        afz_dir_close(&dir);
        if (r < 0)
                return r;
        *ret = found;
        return 0;
}

static enum afz_finding_level say_gpus(const struct afz_gpu_facts *gpu, struct afz_finding *ret)
{
        char names[200] = "";
        size_t n = 0;
        unsigned whole = 0;
        for (uint32_t i = 0; i < gpu->count; i++) {
                const struct afz_gpu_fact *g = &gpu->gpu[i];
                char size[AFZ_SIZE_TEXT_CAP] = "";
                whole += g->parent < 0;
                if (n >= sizeof names)
                        continue;
                if (g->has_memory)
                        afz_format_size(size, sizeof size, g->total_bytes);
                n += (size_t)snprintf(names + n, sizeof names - n, "%s%s%s%s", n ? ", " : "",
                                      g->name, size[0] ? " " : "", size);
        }
        return afz_find(ret, AFZ_FINDING_OK, "%u: %s", whole, names);
}

static enum afz_finding_level no_nvidia_driver(const struct afz_doctor_ctx *ctx,
                                               struct afz_finding *ret)
{
        bool nouveau = afz_doctor_has(ctx, AFZ_ROOT_SYS, "module/nouveau") == 1;
        if (ctx->box.container)
                afz_fix(ret, "docker run --gpus all (needs nvidia-container-toolkit on the host)");
        else
                afz_fix(ret, "sudo ubuntu-drivers install (Ubuntu) or sudo apt install "
                             "nvidia-driver (Debian, non-free), then reboot");
        return afz_find(ret, AFZ_FINDING_MISSING,
                        "an NVIDIA GPU is on the bus, but %s: CUDA does not work",
                        nouveau ? "nouveau has it" : "its driver is not loaded");
}

AFZ_CHECK(gpu)
{
        struct pci_gpus pci = {0};
        int r = scan_pci(ctx->env, &pci);
        bool nvidia_module = afz_doctor_has(ctx, AFZ_ROOT_SYS, "module/nvidia") == 1;
        if (r == 0 && pci.nvidia > 0 && !nvidia_module)
                return no_nvidia_driver(ctx, ret);
        if (ctx->gpu && ctx->gpu->count > 0)
                return say_gpus(ctx->gpu, ret);
        if (r < 0 && (r != -ENOENT || afz_doctor_has(ctx, AFZ_ROOT_SYS, "bus") != 1))
                return afz_find_unread(ret, "the PCI bus", r);
        if (pci.nvidia + pci.amd + pci.intel > 0)
                return afz_find(ret, AFZ_FINDING_UNKNOWN,
                                "on the bus: %u NVIDIA, %u AMD, %u Intel; their drivers told "
                                "nothing",
                                pci.nvidia, pci.amd, pci.intel);
        if (ctx->gpu && ctx->gpu->nvidia.state != AFZ_GPU_ABSENT)
                return afz_find(ret, AFZ_FINDING_UNKNOWN, "the NVIDIA driver tells of none");
        return afz_find(ret, AFZ_FINDING_OK, "none here; training runs on the processor");
}

static enum afz_finding_level mismatch(const struct afz_doctor_ctx *ctx, struct afz_finding *ret)
{
        const struct afz_gpu_status *s = &ctx->gpu->nvidia;
        if (ctx->box.container)
                afz_fix(ret, "start the container anew, so that it gets the host's library "
                             "(docker run --gpus all); if that does not help, reboot the host");
        else
                afz_fix(ret, "sudo reboot; or, with nothing on the GPU: sudo rmmod nvidia_uvm "
                             "nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia");
        return afz_find(ret, AFZ_FINDING_WARN,
                        "the driver in the kernel is %s, the library is %s: CUDA fails with "
                        "\"Driver/library version mismatch\"",
                        s->module[0] ? s->module : "of one version",
                        s->nvml[0] ? s->nvml : "of another");
}

static enum afz_finding_level no_library(const struct afz_doctor_ctx *ctx, struct afz_finding *ret)
{
        if (ctx->box.container)
                afz_fix(ret, "docker run --gpus all, with NVIDIA_DRIVER_CAPABILITIES=compute,"
                             "utility");
        else
                afz_fix(ret, "sudo apt install libnvidia-ml1 (Debian), or the libnvidia-compute-N "
                             "of the driver's version (Ubuntu)");
        return afz_find(ret, AFZ_FINDING_MISSING,
                        "driver %s is loaded, but libnvidia-ml.so.1 is not there: VRAM is not seen",
                        ctx->gpu->nvidia.module);
}

static enum afz_finding_level stuck(const struct afz_gpu_status *s, struct afz_finding *ret)
{
        afz_fix(ret, "sudo dmesg | grep -i -e xid -e nvrm; then stop what runs on the GPU, or "
                     "reboot");
        return afz_find(ret, AFZ_FINDING_WARN, "the driver gives no answer%s%s: it hangs",
                        s->call ? " to " : "", s->call ? s->call : "");
}

AFZ_CHECK(gpu_driver)
{
        const struct afz_gpu_facts *gpu = ctx->gpu;
        if (!gpu)
                return afz_find(ret, AFZ_FINDING_UNKNOWN, "was not asked");
        const struct afz_gpu_status *s = &gpu->nvidia;
        switch (s->state) {
        case AFZ_GPU_ABSENT:
                return AFZ_FINDING_SKIP;
        case AFZ_GPU_MISMATCH:
                return mismatch(ctx, ret);
        case AFZ_GPU_NO_LIBRARY:
                return no_library(ctx, ret);
        case AFZ_GPU_STUCK:
                return stuck(s, ret);
        case AFZ_GPU_STARTING:
                if (gpu->late)
                        return stuck(s, ret);
                break; /* we waited, and whoever asked for us is gone */
        case AFZ_GPU_OK:
                return afz_find(ret, AFZ_FINDING_OK,
                                "driver %s and library %s agree; CUDA up to %d.%d", s->driver,
                                s->nvml, s->cuda_version / 1000, s->cuda_version % 1000 / 10);
        case AFZ_GPU_NO_DEVICE:
                afz_fix(ret, "sudo dmesg | grep -i nvrm");
                return afz_find(ret, AFZ_FINDING_WARN, "driver %s is loaded and sees no GPU",
                                s->driver[0] ? s->driver : s->module);
        default:
                break;
        }
        afz_fix(ret, "nvidia-smi; sudo dmesg | grep -i nvrm");
        return afz_find(ret, AFZ_FINDING_WARN, "driver %s: %s",
                        s->module[0] ? s->module : "unknown",
                        s->error[0] ? s->error : "its library died when it was asked");
}

/* The first node that we may not open for reading and writing; "" when there is none. Returns how
 * many nodes there are. */
static unsigned look_at_nodes(const struct afz_doctor_ctx *ctx, const char *dir_path,
                              const char *prefix, char *denied, size_t cap)
{
        struct afz_dir dir;
        unsigned nodes = 0;
        int r = afz_dir_open(&dir, ctx->env, AFZ_ROOT_DEV, dir_path);
        denied[0] = '\0';
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                char path[300];
                const char *rest = dir.name + strlen(prefix);
                if (strncmp(dir.name, prefix, strlen(prefix)) != 0 ||
                    (rest[0] && strcmp(rest, "ctl") != 0 && strcmp(rest, "-uvm") != 0 &&
                     !afz_is_digit(rest[0])) ||
                    afz_path(path, sizeof path, "%s/%s", dir_path, dir.name) < 0)
                        continue;
                nodes++;
                if (afz_doctor_may(ctx, AFZ_ROOT_DEV, path, R_OK | W_OK) < 0 && !denied[0])
                        snprintf(denied, cap, "%s", strcmp(dir_path, ".") == 0 ? dir.name : path);
        }
        afz_dir_close(&dir);
        return nodes;
}

AFZ_CHECK(gpu_access)
{
        char denied[300];
        bool nvidia = afz_doctor_has(ctx, AFZ_ROOT_SYS, "module/nvidia") == 1;
        bool amd = afz_doctor_has(ctx, AFZ_ROOT_SYS, "module/amdgpu") == 1;
        if (!nvidia && !amd)
                return AFZ_FINDING_SKIP;
        if (ctx->env->root_fd[AFZ_ROOT_DEV] < 0)
                return afz_find_unread(ret, "/dev", -ENODATA);
        unsigned nodes = nvidia ? look_at_nodes(ctx, ".", "nvidia", denied, sizeof denied)
                                : look_at_nodes(ctx, ".", "kfd", denied, sizeof denied);
        if (!nvidia && !denied[0])
                nodes += look_at_nodes(ctx, "dri", "renderD", denied, sizeof denied);
        if (nodes == 0) {
                afz_fix(ret, ctx->box.container ? "docker run --gpus all (AMD: --device=/dev/kfd "
                                                  "--device=/dev/dri)"
                             : nvidia           ? "sudo nvidia-modprobe -c 0 -u"
                                                : "sudo modprobe amdgpu");
                return afz_find(ret, AFZ_FINDING_MISSING,
                                "the driver is loaded, but /dev has no node for it");
        }
        if (!denied[0])
                return afz_find(ret, AFZ_FINDING_OK, "all device nodes (%u) may be used", nodes);
        afz_fix(ret, "sudo usermod -aG video,render \"$USER\", then log in again");
        return afz_find(ret, AFZ_FINDING_WARN, "/dev/%s may not be opened by you", denied);
}

/* A GPU that is divided shows its parts' memory but leaves the processes to them. */
static bool is_divided(const struct afz_gpu_facts *gpu, const struct afz_gpu_fact *whole)
{
        for (uint32_t i = 0; i < gpu->count; i++)
                if (gpu->gpu[i].parent >= 0 && (uint64_t)gpu->gpu[i].parent == whole->number)
                        return true;
        return false;
}

AFZ_CHECK(gpu_leftover)
{
        unsigned looked_at = 0;
        if (!ctx->gpu || ctx->gpu->count == 0)
                return AFZ_FINDING_SKIP;
        for (uint32_t i = 0; i < ctx->gpu->count; i++) {
                const struct afz_gpu_fact *g = &ctx->gpu->gpu[i];
                char size[AFZ_SIZE_TEXT_CAP];
                if (!g->has_memory || !g->has_processes || is_divided(ctx->gpu, g))
                        continue;
                looked_at++;
                if (g->used_bytes < AFZ_DOCTOR_VRAM_LEFTOVER_BYTES ||
                    (g->processes > 0 && g->unseen == 0))
                        continue;
                afz_format_size(size, sizeof size, g->used_bytes);
                afz_fix(ret, "sudo fuser -v /dev/nvidia* /dev/dri/render* (on the host), then kill "
                             "what is left over; ps -eo pid,stat,comm | grep ' Z' shows zombies");
                if (g->unseen > 0)
                        return afz_find(ret, AFZ_FINDING_WARN,
                                        "GPU %" PRIu64 ": %s in use, also by %u process%s not "
                                        "visible here (pid %" PRIu64 "): another container or user",
                                        g->number, size, g->unseen, g->unseen == 1 ? "" : "es",
                                        g->unseen_pid);
                return afz_find(ret, AFZ_FINDING_WARN,
                                "GPU %" PRIu64 ": %s in use, but no process is seen that holds it: "
                                "one in another container, or a dead one that is a zombie",
                                g->number, size);
        }
        if (looked_at == 0)
                return afz_find(ret, AFZ_FINDING_UNKNOWN,
                                "which processes hold its memory is not told");
        return afz_find(ret, AFZ_FINDING_OK, "all memory in use has a process that holds it");
}
