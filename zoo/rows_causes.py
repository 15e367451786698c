"""Rows of zoo/causes: what the seeds only name."""
from row import CLEAN, FAILED, FINISHED, STOPPED, Row

LEAK = ("leak:retained-history", "leak:retained-graph", "leak")
# A hang is one after a minute of standing still, a loop without end after two; the rest is for the start, on a busy machine.
STANDS = {"given_up_s": 85}
TURNS = {"given_up_s": 165, "limit_s": 200, "options": ("--grace", "2s")}
TORCH = ("torch",)
TENSORFLOW = ("tensorflow",)

GPU = {"needs": ("gpu", *TORCH), "options": ("--gpu-budget", "3G")}
RECORDED = {"within": "fake_driver.sh", "environment": ("ANTIFREEZE_NVML={build}/tests/fake_nvml/libfake-nvml-now.so",)}
# Leaks are run under protect alone, but for one: adapt has nothing else to offer them.


def clean(name, budget, why, **more):
    return Row(name, CLEAN, budget, FINISHED, None, why, **more)


ROWS = [
    Row("causes/thread-deadlock/shown", ("hang:deadlock",), "300M", FAILED, None, "Two threads take two locks in opposite orders.", **STANDS),
    clean("causes/thread-deadlock/correct", "300M", "One order for the locks.", fast=True),
    Row("causes/dataloader-deadlock/shown", ("hang:deadlock",), "1G", FAILED, None, "Workers were forked while a thread held a lock, and wait for it for ever.",
        needs=TORCH, given_up_s=110, options=("--grace", "2s")),
    clean("causes/dataloader-deadlock/correct", "1500M", "Workers are spawned.", needs=TORCH),
    Row("causes/infinite-loop/shown", ("hang:spin",), "800M", FAILED, None, "A search for a smaller loss that never ends once the loss is NaN.",
        needs=TORCH, **TURNS),
    clean("causes/infinite-loop/correct", "800M", "At most ten tries, and no division by 0.", needs=TORCH),
    Row("causes/native-crash/shown", ("crash",), "300M", FAILED, None, "An extension writes behind its array.", libraries=("scale.c",), fast=True),
    clean("causes/native-crash/correct", "300M", "It is told the right length.", libraries=("scale.c",), fast=True),
    Row("causes/logging-disk/shown", ("log-growth", "disk-full"), "300M", FAILED, None, "3 MB of journal a second onto a disk of 64 MB.", needs=("mount",),
        within="small_disk.sh"),
    clean("causes/logging-disk/correct", "300M", "A journal that is written over.", needs=("mount",), within="small_disk.sh"),
    Row("causes/logging-memory/shown", LEAK, "300M", STOPPED, STOPPED, "A MemoryHandler that is never full keeps each record.", fast=True),
    clean("causes/logging-memory/correct", "300M", "It is full after a hundred."),
    Row("causes/stored-intermediates/shown", ("leak:retained-graph", "leak:retained-history"), "700M", STOPPED, None, "Hooks keep the outputs of all layers.", needs=TORCH),
    clean("causes/stored-intermediates/correct", "700M", "They keep two numbers each.", needs=TORCH),
    Row("causes/retracing/shown", ("leak:retrace",), "700M", STOPPED, None, "A Python number as an argument traces a tf.function anew in every step.", needs=TENSORFLOW),
    clean("causes/retracing/correct", "700M", "A tensor does not.", needs=TENSORFLOW),
    Row("causes/growing-variables/shown", ("leak:retrace", *LEAK), "700M", STOPPED, None, "A new tf.Variable in every step.", needs=TENSORFLOW),
    clean("causes/growing-variables/correct", "700M", "One that is assigned to.", needs=TENSORFLOW),
    Row("causes/custom-loss/shown", LEAK, "600M", STOPPED, None, "A Keras loss that remembers all predictions.", needs=TENSORFLOW),
    clean("causes/custom-loss/correct", "600M", "A mean in their place.", needs=TENSORFLOW),
    Row("causes/custom-layer/shown", LEAK, "700M", STOPPED, None, "A layer that remembers all that went through it.", needs=TORCH),
    clean("causes/custom-layer/correct", "700M", "It remembers the last.", needs=TORCH),
    Row("causes/worker-copy/shown", ("leak:worker-copy",), "580M", STOPPED, None, "Workers copy a list of Python objects by looking at it.", needs=TORCH),
    clean("causes/worker-copy/correct", "800M", "Tensors are not copied by a look.", needs=TORCH),
    Row("causes/shm-full/shown", ("shm-full",), "1500M", FAILED, None, "Batches of 28 MB in a /dev/shm of 64 MB.", needs=("mount", *TORCH), within="small_shm.sh"),
    clean("causes/shm-full/correct", "1500M", "Smaller batches, one ahead.", needs=("mount", *TORCH), within="small_shm.sh"),
    clean("causes/shm-full/loader", "1500M", "antifreeze.bound() asks for fewer batches ahead.", needs=("mount", *TORCH), within="small_shm.sh"),
    Row("causes/shm-leak/shown", ("leak:shm",), "700M", STOPPED, None, "Batches are shared and never dropped.", needs=TORCH),
    clean("causes/shm-leak/correct", "700M", "One place that is written over.", needs=TORCH),
    Row("causes/slow-drive/shown", ("data-stall",), "800M", FINISHED, None, "Each batch comes over a wire of 2 MB/s.", needs=("fuse", *TORCH), beside="slow_drive.py"),
    clean("causes/slow-drive/correct", "800M", "The data are copied once.", needs=("fuse", *TORCH), beside="slow_drive.py"),
    Row("causes/slow-disk/shown", ("data-stall",), "800M", FINISHED, None, "Each sample is a file on a disk of 2 MB/s.", needs=("fuse", *TORCH), beside="slow_disk.py"),
    clean("causes/slow-disk/correct", "800M", "All samples in one piece on a fast one.", needs=TORCH),
    Row("causes/recorded-gpu/overheat", ("overheat",), "300M", FINISHED, None, "A GPU at 92 degrees whose clock is held down: what a driver says, played.", **RECORDED),
    Row("causes/recorded-gpu/driver-fault", ("driver-fault",), "300M", FAILED, None, "A GPU that falls off the bus: what a driver says, played.", **RECORDED),
    clean("causes/recorded-gpu/correct", "300M", "A GPU that is cool and whole.", **RECORDED),
    Row("causes/gpu-oom/shown", ("gpu-oom", "batch-too-large"), "24G", FAILED, FINISHED, "60,000 samples at once need 4 GB of the GPU's memory.", want_adapt=("batch-too-large",), **GPU),
    clean("causes/gpu-oom/correct", "24G", "The same update from 15 parts.", **GPU),
    Row("causes/gpu-oom-swallowed/written", ("gpu-oom",), "24G", FINISHED, FINISHED, "Seed 001, example 2: the error is caught, and the program ends with 0.",
        want_adapt=("batch-too-large",), **GPU),
    clean("causes/gpu-oom-swallowed/correct", "24G", "It goes on with a quarter of the batch.", **GPU),
    Row("causes/gpu-model-too-large/shown", ("model-too-large",), "24G", FAILED, FAILED, "Seed 002, example 3: 10 GB of weights, gradients and averages, whatever the batch.", **GPU),
    clean("causes/gpu-model-too-large/correct", "24G", "36 million weights in mixed precision.", **GPU),
    Row("causes/gpu-fragmentation/shown", ("gpu-fragmentation",), "24G", FAILED, None, "2.1 GB are taken, 0.5 in use, and none of it in one piece.", **GPU),
    clean("causes/gpu-fragmentation/correct", "24G", "What is kept lies in one piece.", **GPU),
    Row("causes/gpu-held/shown", ("gpu-held-by-other",), "24G", FAILED, None, "Another program has 95 % of the GPU.", needs=("gpu", *TORCH), beside="holder.py"),
    clean("causes/gpu-held/correct", "24G", "Nobody else is there, and it asks what is free.", needs=("gpu", *TORCH)),
    Row("causes/gpu-dataset/shown", ("dataset-in-vram",), "24G", FAILED, FAILED, "2 GB of rows on the GPU, where 3 are allowed: its steps have room, its evaluation has not.",
        **GPU),
    clean("causes/gpu-dataset/correct", "24G", "Rows in RAM, 16 MB of them on the GPU.", **GPU),
    clean("causes/gpu-dataset/loader", "24G", "Rows on the disk, through antifreeze.Loader.", **GPU),
    # Without frameworks: an emulated machine of 1 GiB is no place for them. lab/job.c has these programs.
    Row("causes/swap-thrash", ("swap-thrash",), "", FINISHED, None,
        "800 MB that are gone through over and over, 400 of RAM, and all the swap that it wants: it pages instead of working, alone, and is told so.",
        cell="scope/epochs/disk/user"),
    Row("causes/swap-insufficient", ("swap-insufficient",), "", (STOPPED, FAILED), None,
        "350 MB that fit, a browser that grows by 490 beside them, and no swap for what nobody uses: one of them has to go, and the kernel may be first.", cell="scope/neighbour/none/user"),
    Row("causes/swap-enough", CLEAN, "", FINISHED, None, "The same with swap: both fit.", cell="scope/neighbour/disk/user"),
]
