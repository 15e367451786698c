"""Rows of zoo/tensorflow: the seeds' examples in TensorFlow and Keras."""
from row import CLEAN, FAILED, FINISHED, STOPPED, Row

BATCH = ("batch-too-large",)
DATA = ("dataset-in-memory",)
REFUSED = {"want_adapt": (*DATA, "host-exhaustion")}  # what is refused before the first step may be anything
LEAK = ("leak:retained-history", "leak:retained-graph", "leak")


def clean(name, budget, why, **more):
    return Row(name, CLEAN, budget, FINISHED, FINISHED, why, **more)


ROWS = [
    clean("tensorflow/001-e2/written", "800M", "A training inside a try that swallows running out of memory: harmless while it fits."),
    Row("tensorflow/001-e2/shown", BATCH, "800M", STOPPED, FINISHED,
        "The seed catches ResourceExhaustedError. On a processor none is raised: Linux grants what is not there. 40,960 samples at once need 1 GB."),
    clean("tensorflow/001-e2/correct", "800M", "A batch that fits, and an error that is not swallowed."),
    Row("tensorflow/001-e3/written", ("exception",), "800M", FAILED, FAILED, "The seed calls it efficient; it uses a function before its definition.",
        needs=("dask", "zarr")),
    Row("tensorflow/001-e3/shown", ("data-stall",), "1G", FINISHED, FINISHED,
        "Repaired, it goes through a Dask array row by row, and unpacks a whole chunk for each row.", needs=("dask", "zarr")),
    clean("tensorflow/001-e3/correct", "1G", "Whole chunks, each read once.", needs=("dask", "zarr")),
    clean("tensorflow/001-e3/loader", "1G", "The same Zarr through antifreeze.Loader.", needs=("dask", "zarr")),
    clean("tensorflow/002-e1/written", "1500M", "The seed calls a batch of 1024 too large for RAM: a step needs 20 MB, the rows 188 MB, twice."),
    Row("tensorflow/002-e1/shown", BATCH, "900M", STOPPED, FINISHED, "Real at 49,152 rows at once: a step needs some 900 MB."),
    Row("tensorflow/002-e1/shown-data", DATA, "1000M", STOPPED, (STOPPED, FAILED), "What the seed does not say: from_tensor_slices() holds the rows a second time. Real at 140,000 rows.",
        **REFUSED),
    clean("tensorflow/002-e1/correct", "700M", "A batch of 256, and rows that are read as they are needed."),
    clean("tensorflow/002-e1/loader", "700M", "The same rows through antifreeze.Loader, within 32 MB."),
    clean("tensorflow/002-e2/written", "800M", "The seed says that tensors must be deleted; names are bound anew in every step, and nothing accumulates."),
    Row("tensorflow/002-e2/shown", LEAK, "560M", STOPPED, STOPPED, "With an append of the gradients it is the leak that the seed speaks of, 0.8 MB a step."),
    clean("tensorflow/002-e2/correct", "800M", "One tf.function a step; numbers are kept, not tensors."),
    clean("tensorflow/002-e3/written", "1G", "Inside tf.device('/GPU:0') without a GPU it runs on the processor. On a GPU: causes/gpu-*."),
    Row("tensorflow/002-e3/shown", ("model-too-large",), "1100M", STOPPED, (STOPPED, FAILED), "Real at 70 million weights: 1.1 GB with Adam, whatever the batch."),
    clean("tensorflow/002-e3/correct", "800M", "Wide layers as two narrow ones each, with SGD."),
    clean("tensorflow/003-e1/written", "800M", "The seed calls a batch of 1024 potentially too large: a step needs 10 MB."),
    Row("tensorflow/003-e1/shown", BATCH, "900M", STOPPED, STOPPED, "Real at 40,960 rows at once in a loop of one's own: some 900 MB. Such a loop is not made in parts."),
    clean("tensorflow/003-e1/correct", "800M", "The same update from 20 parts, whose gradients are added up."),
    clean("tensorflow/003-e1/loader", "800M", "Rows through antifreeze.Loader, within 16 MB."),
    clean("tensorflow/003-e3/written", "900M", "The seed praises use_bias=False, which saves 128 bytes, and tf.data, which holds all pictures twice. At 1500 pictures: nothing is wrong."),
    Row("tensorflow/003-e3/shown", DATA, "1000M", STOPPED, (STOPPED, FAILED), "Real at 9000 pictures, 440 MB, held twice.", **REFUSED),
    Row("tensorflow/003-e3/shown-shuffle", ("shuffle-buffer",), "620M", (FINISHED, STOPPED), (FINISHED, STOPPED), "shuffle(8000) holds 8000 pictures, 390 MB."),
    clean("tensorflow/003-e3/correct", "700M", "Pictures are read as they are needed; the order is shuffled, not the pictures."),
    clean("tensorflow/003-e3/loader", "700M", "Pictures through antifreeze.Loader, within 16 MB."),
]
