"""Rows of zoo/torch: the seeds' examples in PyTorch. An import of torch is some 250 MB of a budget."""
from row import CLEAN, FAILED, FINISHED, STOPPED, Row

HISTORY = ("leak:retained-history",)
DATA = ("dataset-in-memory",)
REFUSED = {"want_adapt": ("host-exhaustion",)}  # adapt refuses 4 GB at once, the program ends of it, and whether they were data nobody has seen


def clean(name, budget, why, **more):
    return Row(name, CLEAN, budget, FINISHED, FINISHED, why, **more)


ROWS = [
    Row("torch/000-e1/written", HISTORY, "1500M", STOPPED, STOPPED,
        "\"Incorrect\", and it is: 4 MB are kept from every step, 40 GB in all."),
    Row("torch/000-e1/shown", HISTORY, "800M", STOPPED, STOPPED,
        "The same on a small budget, 1 MB a step, kept by a function that is called from the loop.",
        want_adapt=(*HISTORY, "leak:retained-graph"), fast=True),  # in parts there are more operations in that line
    clean("torch/000-e1/correct", "1500M",
          "\"Correct\", and it is: a rolling buffer of 100. It grows for 100 steps, and nothing is foretold meanwhile."),

    clean("torch/000-e2/written", "1G",
          "\"Incorrect: batch size too large\", and it is not: a step with 1024 rows takes some 20 MB."),
    Row("torch/000-e2/shown", ("batch-too-large",), "700M", STOPPED, FINISHED,
        "Where the trouble is real: batches of 24576 between wide layers, some 600 MB a step. In parts it goes through."),
    clean("torch/000-e2/correct", "1G", "\"Correct\": batches of 64.", source="torch/000-e2/written.py", arguments=("64",)),

    Row("torch/000-e3/written", DATA, "2G", STOPPED, FAILED,
        "\"Incorrect\", and it is: 4 GB before the first step. The size is the seed's; the budget is that of a small laptop.", **REFUSED),
    Row("torch/000-e3/written-correct", DATA, "2G", STOPPED, FAILED,
        "\"Correct\", and it is not: pin_memory=True, and the same 4 GB before the first step.",
        source="torch/000-e3/written.py", arguments=("pin_memory",), **REFUSED),
    Row("torch/000-e3/shown", DATA, "1100M", FINISHED, FINISHED, "The same with 560 MB, most of what it may use: it trains to its end, and is told."),
    clean("torch/000-e3/correct", "950M", "Truly correct: a Dataset over a file."),
    clean("torch/000-e3/loader", "950M", "The same with antifreeze.Loader, within 32 MB."),

    clean("torch/001-e1/written", "1G", "A psutil monitor beside a training: harmless.", needs=("psutil",)),

    Row("torch/003-e2/written", ("exception",), "1G", FAILED, FAILED, "Gradient accumulation, called right: `i` is not defined, a NameError in the first batch."),
    Row("torch/003-e2/shown", ("accumulation-broken",), "1G", FINISHED, FINISHED,
        "Repaired so that it runs: the gradients are set to zero before every batch, so that nothing accumulates."),
    clean("torch/003-e2/correct", "1G", "Truly correct: they are set to zero after a step."),

    Row("torch/004-e1/written", DATA, "2G", STOPPED, FAILED,
        "\"A blatant memory leak\", and it is none, but 8 GB of float64 and a copy of 4 GB before the first step. The size is the seed's, the budget is not.", **REFUSED),
    Row("torch/004-e1/shown", DATA, "1150M", FINISHED, FINISHED, "The same with 400 MB and a copy of 200 MB: two copies, one of them float64."),
    clean("torch/004-e1/correct", "1G", "Truly correct: float32 in a file, a chunk at a time."),
    clean("torch/004-e1/loader", "1G", "The same with antifreeze.Loader, within 32 MB."),

    clean("torch/004-e2/written", "1G", "\"Potential leak\", and it is none: a name is given to the next product, and the last one is freed."),
    Row("torch/004-e2/shown", (*HISTORY, "leak:retained-graph"), "900M", STOPPED, STOPPED,
        "Where it is a leak: the products go into a list, 2 MB a step, each with the nodes of the graph that it came from."),
    clean("torch/004-e2/correct", "1G", "Truly correct: the mean of each is kept, as a number."),

    clean("torch/004-e3/written", "1G", "\"Leaky layer\", and it leaks nothing: one tensor of 4 MB, for ever the same."),
    Row("torch/004-e3/shown", ("layer-buffer",), "1G", FINISHED, FINISHED, "120 such layers, 480 MB: constant, and most of what there is.",
        source="torch/004-e3/written.py", arguments=("120",)),
    clean("torch/004-e3/correct", "1G", "Truly correct: a learned number a column."),
]
