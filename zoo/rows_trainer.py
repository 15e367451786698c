"""Rows of the C trainer (demo/afz-trainer): the same pitfalls without Python, and in the freeze lab also without a guard."""
from row import CLEAN, FAILED, FINISHED, STOPPED, Row

LEAK = ("leak",)  # in C, what is kept and what is forgotten look the same


def row(name, want, budget, protect, adapt, why, *arguments, **more):
    return Row(f"trainer/{name}", want, budget, protect, adapt, why, arguments=(*arguments, "--quiet"), **more)


ROWS = [
    row("clean", CLEAN, "256M", FINISHED, FINISHED, "A perceptron learns digits: nothing is wrong.", "--steps", "1000",
        cell="scope/train-clean/disk/user", fast=True),
    row("retain-history", LEAK, "256M", STOPPED, STOPPED, "000-e1: a quarter of a megabyte of activations is kept from every step.", "--retain-history=256K",
        cell="scope/train-history/disk/user", functions=("keep", "retain_history"), fast=True),
    row("whole-dataset", ("dataset-in-memory",), "700M", STOPPED, STOPPED, "004-e1: all samples as double before the first step, and a copy as float.",
        "--whole-dataset=1400M", "--steps", "200", cell="scope/train-dataset/disk/user", functions=("load_as_double",)),
    row("large-batch", ("batch-too-large",), "200M", STOPPED, STOPPED, "000-e2: a batch of 32768, whose activations come and go with each step. Nobody in it can make it smaller.",
        "--large-batch", "--steps", "9", cell="scope/train-batch/disk/user", functions=("floats_new",)),
    row("retain-intermediate", LEAK, "256M", STOPPED, STOPPED, "004-e2: outputs x outputs of every step are kept.", "--retain-intermediate", "--batch", "512",
        functions=("keep", "retain_intermediate")),
    row("leaky-layer", ("layer-buffer",), "330M", FINISHED, FINISHED, "004-e3: 64 layers, each with 4 MB that are no parameter: constant.",
        "--leaky-layer=64", "--steps", "600", functions=("floats_new",)),
    row("slow-disk", ("data-stall",), "256M", FINISHED, FINISHED, "001, point 3: each sample from a disk of 256 kB/s: the steps wait for data.",
        "--slow-disk=256K", "--steps", "180"),
    row("log-everything", ("log-growth", "disk-full"), "256M", FAILED, FAILED, "003: every activation of every step as text, some 600 kB a step, onto a disk of 1 GB.",
        "--log-everything", "--data-dir", "logs", needs=("mount",), within="../causes/logging-disk/small_disk.sh", environment=("LOG_DISK=1G",)),
    row("spin", ("hang:spin",), "256M", FAILED, None, "001, point 5: a loop that waits for a tolerance below zero. It is told after two minutes, no sooner.",
        "--spin=2000", given_up_s=160, limit_s=180),
    row("deadlock", ("hang:deadlock",), "256M", FAILED, None, "002: two threads take two locks in opposite order. It is told after a minute.",
        "--deadlock=100", given_up_s=95),
]
