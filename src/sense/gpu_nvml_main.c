/* The life of the NVIDIA helper: load, start, poll until the parent is gone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_nvml_poll.h"

static int say(struct afz_nvml_poller *p, enum afz_gpu_state state, const char *error)
{
        p->report.state = state;
        if (error)
                snprintf(p->report.error, sizeof p->report.error, "%s", error);
        afz_gpu_link_publish(p->link, &p->report);
        return 0;
}

static int start_nvml(struct afz_nvml_poller *p)
{
        int r = NVML_ERROR_FUNCTION_NOT_FOUND;
        for (int i = 0; i < 2 && r == NVML_ERROR_FUNCTION_NOT_FOUND; i++) {
                enum afz_nvml_fn fn = i == 0 ? AFZ_FN_nvmlInit_v2 : AFZ_FN_nvmlInit;
                if (!p->api.fn[fn])
                        continue;
                afz_gpu_link_enter(p->link, fn);
                r = ((afz_sig_nvmlInit *)p->api.fn[fn])();
                afz_gpu_link_leave(p->link);
        }
        return r;
}

static void read_versions(struct afz_nvml_poller *p)
{
        struct afz_gpu_report *r = &p->report;
        if (AFZ_NVML(p, nvmlSystemGetDriverVersion, r->driver, sizeof r->driver) != NVML_SUCCESS)
                r->driver[0] = '\0';
        if (AFZ_NVML(p, nvmlSystemGetNVMLVersion, r->nvml, sizeof r->nvml) != NVML_SUCCESS)
                r->nvml[0] = '\0';
        if (AFZ_NVML(p, nvmlSystemGetCudaDriverVersion_v2, &r->cuda_version) != NVML_SUCCESS &&
            AFZ_NVML(p, nvmlSystemGetCudaDriverVersion, &r->cuda_version) != NVML_SUCCESS)
                r->cuda_version = 0;
}

/* What a failed start means; NVML's words come with it. */
static enum afz_gpu_state failure(int result)
{
        return result == NVML_ERROR_LIB_RM_VERSION_MISMATCH ? AFZ_GPU_MISMATCH : AFZ_GPU_FAILED;
}

int afz_nvml_helper(struct afz_gpu_link *link)
{
        struct afz_nvml_poller *p = calloc(1, sizeof *p);
        if (!p)
                return -ENOMEM;
        p->link = link;
        p->report.state = AFZ_GPU_STARTING;
        char error[AFZ_GPU_ERROR_CAP] = "";
        afz_gpu_link_enter(link, AFZ_FN_LOAD);
        int r = afz_nvml_load(getenv("ANTIFREEZE_NVML"), &p->api, error, sizeof error);
        afz_gpu_link_leave(link);
        if (r < 0)
                return say(p, AFZ_GPU_NO_LIBRARY, error);
        r = start_nvml(p);
        if (r != NVML_SUCCESS)
                return say(p, failure(r), afz_nvml_error(&p->api, r));
        read_versions(p);
        r = afz_nvml_find(p);
        if (r != NVML_SUCCESS)
                return say(p, failure(r), afz_nvml_error(&p->api, r));
        if (p->gpus == 0)
                return say(p, AFZ_GPU_NO_DEVICE, "NVML sees no GPU");
        do {
                afz_nvml_poll(p);
                say(p, AFZ_GPU_OK, NULL);
        } while (afz_gpu_link_wait(link));
        return 0;
}
