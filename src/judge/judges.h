#ifndef AFZ_JUDGES_H
#define AFZ_JUDGES_H
/* The judges, one function and one verdict each; the table of them is in verdicts.c. To add one:
 * docs/add-a-verdict.md.
 */
#include "verdicts.h"

#define AFZ_JUDGE(name) void afz_judge_##name(const struct afz_case *c, struct afz_outcome *ret)

/* What can be a cause. */
AFZ_JUDGE(leak);       /* judge_leak.c: leak */
AFZ_JUDGE(retrace);    /* judge_retrace.c: leak:retrace */
AFZ_JUDGE(graph_kept); /* judge_held.c: leak:retained-graph, leak:gpu, held-after-use */
AFZ_JUDGE(gpu_leak);
AFZ_JUDGE(held);
AFZ_JUDGE(model_large);     /* judge_oom.c: model-too-large */
AFZ_JUDGE(shuffle);         /* judge_shuffle.c: shuffle-buffer */
AFZ_JUDGE(dataset);         /* judge_dataset.c: dataset-in-memory */
AFZ_JUDGE(dataset_in_vram); /* judge_vram.c: dataset-in-vram, gpu-fragmentation */
AFZ_JUDGE(gpu_fragmentation);
AFZ_JUDGE(batch);   /* judge_batch.c: batch-too-large */
AFZ_JUDGE(layer);   /* judge_layer.c: layer-buffer */
AFZ_JUDGE(fd_leak); /* judge_counts.c: fd-leak, thread-leak */
AFZ_JUDGE(thread_leak);
AFZ_JUDGE(log_growth); /* judge_space.c: log-growth, disk-full, shm-full */
AFZ_JUDGE(disk_full);
AFZ_JUDGE(shm_full);
AFZ_JUDGE(gpu_oom); /* judge_gpu.c */
AFZ_JUDGE(gpu_held_by_other);
AFZ_JUDGE(gpu_preallocated);
AFZ_JUDGE(gpu_spill);
AFZ_JUDGE(driver_fault); /* judge_driver.c */
AFZ_JUDGE(overheat);     /* judge_heat.c: overheat, power-limit */
AFZ_JUDGE(power_limit);
AFZ_JUDGE(hang);                 /* judge_hang.c: hang:deadlock, hang:spin, hang:worker-dead */
AFZ_JUDGE(data_stall);           /* judge_stall.c */
AFZ_JUDGE(cpu_oversubscription); /* judge_crowd.c */
AFZ_JUDGE(accumulation);         /* judge_accumulation.c: accumulation-broken */

/* What they lead to. */
AFZ_JUDGE(swap_thrash); /* judge_swap.c: swap-thrash, swap-insufficient */
AFZ_JUDGE(swap_insufficient);
AFZ_JUDGE(end); /* judge_end.c: host-exhaustion, fork-storm, oom-killed, killed-externally,
                 * crash, exception, lost, machine-lost, not-known, clean */

#endif
