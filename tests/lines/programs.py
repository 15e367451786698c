"""The set of programs: what each is, and what is to be said of it.

A program is a file of a group's folder, or a folder there with several. The lines that are right are marked in its source by a
comment with "the line" in it; "the function" marks one of which only the name can be told, since it was built without -g.
By the contract that is the line where memory that stays was *allocated*: the innermost frame of the user's own code. Where
two lines hold as much, or a wrapper and its caller are both a good answer, both are marked.

`want` is what may be said first, apart from how the run ended (played.py: ENDS); "clean" wants that nothing is said at all.
Programs that hold a data set take four fifths of their budget and more, so that there is a trouble to be told.
There are two sets. Of each, a third of each group was set aside before any of them was ever run, by the sums of their names: the
judges are not tuned to those. Those of the first set have been looked at since, so only the second still has a part that is set aside.
"""
import hashlib
import os
from dataclasses import dataclass, replace

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, "..", "..", "include")

LEAK = ("leak", "leak:retained-history", "leak:retained-graph")  # the kind is told only where there are steps
RETRACE = ("leak:retrace", *LEAK)  # graphs or variables that are made in every step
GRAPH = ("leak:retained-graph", "leak:retained-history", "leak")
SHM = ("leak:shm", "leak")
DATA = ("dataset-in-memory",)
LOADS = ("dataset-in-memory", "host-exhaustion")  # no steps are told, and it is stopped while it loads: either is the truth
CLEAN = ("clean",)


@dataclass(frozen=True)
class Program:
    name: str  # group/file without its ending
    want: tuple
    budget: str
    build: tuple = ("-O2", "-g")  # C and C++
    fast: bool = False  # part of make test
    aside: bool = False
    second: bool = False  # written, without being run under Antifreeze, when all of the first were known

    @property
    def group(self):
        return self.name.split("/")[0]

    @property
    def needs(self):
        return {"c": "cc", "python": "python"}.get(self.group, self.group)

    @property
    def path(self):
        """The file, or the folder."""
        whole = os.path.join(HERE, self.name)
        return next(whole + end for end in ("", ".c", ".cc", ".py") if os.path.exists(whole + end))

    def sources(self):
        if os.path.isfile(self.path):
            return [self.path]
        found = [os.path.join(folder, name) for folder, _, names in os.walk(self.path) for name in names]
        return sorted(f for f in found if f.endswith((".c", ".h", ".cc", ".hh", ".py")))


def row(name, want, budget, **more):
    return Program(name, want, budget, **more)


def set_aside(programs):
    """Marks the third of each group whose names have the lowest sums."""
    aside = set()
    for group in {p.group for p in programs}:
        names = sorted((p.name for p in programs if p.group == group), key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        aside.update(names[:(len(names) + 2) // 3])
    return [replace(p, aside=p.name in aside) for p in programs]


FIRST = [
    row("c/gradient_history", LEAK, "256M"),
    row("c/tokens", LEAK, "256M"),
    row("c/growing_log", LEAK, "256M"),
    row("c/early_return", LEAK, "256M", fast=True),
    row("c/inlined", LEAK, "256M", fast=True),
    row("c/own_malloc", LEAK, "256M"),
    row("c/tail_call", LEAK, "256M"),
    row("c/hash_cache", LEAK, "1G"),
    row("c/threads", LEAK, "256M"),
    row("c/forked_workers", LEAK, "256M"),
    row("c/tree_search", LEAK, "256M"),
    row("c/getline_kept", LEAK, "256M"),
    row("c/plugin", LEAK, "256M"),
    row("c/no_debug", LEAK, "256M", build=("-O2",)),
    row("c/stripped", LEAK, "256M", build=("-O2", "-s", "-rdynamic")),
    row("c/vector_history", LEAK, "256M"),
    row("c/string_map", LEAK, "256M"),
    row("c/pool_template", LEAK, "256M"),
    row("c/shared_cycle", LEAK, "256M"),
    row("c/callbacks", LEAK, "1G"),
    row("c/dataset_double", DATA, "180M"),
    row("c/dataset_file", DATA, "190M"),
    row("c/batch_large", ("batch-too-large",), "220M"),
    row("c/clean_scratch", CLEAN, "256M"),
    row("c/clean_ring", CLEAN, "256M"),
    row("c/clean_lru", CLEAN, "256M", fast=True),

    row("python/results_list", LEAK, "256M"),
    row("python/closures", LEAK, "256M", fast=True),
    row("python/class_cache", LEAK, "256M"),
    row("python/lru_cache_unbounded", LEAK, "256M"),
    row("python/tee_stream", LEAK, "256M"),
    row("python/decorated", LEAK, "256M"),
    row("python/dataclass_events", LEAK, "1G"),
    row("python/package", LEAK, "256M", fast=True),
    row("python/kept_errors", LEAK, "256M"),
    row("python/slow_consumer", LEAK, "256M"),
    row("python/json_records", LEAK, "300M"),
    row("python/logging_handler", LEAK, "256M"),
    row("python/pool_fork", LEAK, "256M"),
    row("python/spawned", LEAK, "300M"),
    row("python/asyncio_tasks", LEAK, "256M"),
    row("python/cycles_no_gc", LEAK, "256M"),
    row("python/sessions", LEAK, "1G"),
    row("python/sqlite_memory", LEAK, "256M"),
    row("python/pickled_checkpoints", LEAK, "300M"),
    row("python/ctypes_buffers", LEAK, "256M"),
    row("python/text_grows", LEAK, "256M"),
    row("python/shared_segments", SHM, "256M"),
    row("python/worker_copies", ("leak:worker-copy", "leak", "dataset-in-memory"), "330M"),
    row("python/whole_csv", LOADS, "150M"),
    row("python/corpus_twice", LOADS, "160M"),
    row("python/clean_deque", CLEAN, "256M"),
    row("python/clean_stream", CLEAN, "256M"),
    row("python/clean_epochs", CLEAN, "256M"),
    row("python/clean_lru", CLEAN, "256M"),
    row("python/clean_pool", CLEAN, "256M"),

    row("numpy/history_copy", LEAK, "300M"),
    row("numpy/views", LEAK, "300M"),
    row("numpy/concatenate", LEAK, "400M"),
    row("numpy/augment", LEAK, "300M"),
    row("numpy/frames", LEAK, "300M"),
    row("numpy/replay", LEAK, "1G"),
    row("numpy/dataset_wide", LOADS, "450M"),
    row("numpy/dataset_npz", LOADS, "180M"),
    row("numpy/lists_of_lists", LOADS, "200M"),
    row("numpy/clean_temporaries", CLEAN, "300M"),
    row("numpy/clean_memmap", CLEAN, "300M"),
    row("numpy/clean_preallocated", CLEAN, "300M"),

    row("torch/history", LEAK, "800M"),
    row("torch/validation_graph", GRAPH, "800M"),
    row("torch/total_loss", GRAPH, "800M"),
    row("torch/hidden_state", GRAPH, "800M"),
    row("torch/gradient_list", LEAK, "800M"),
    row("torch/best_states", LEAK, "800M"),
    row("torch/forward_hooks", LEAK, "800M"),
    row("torch/folds", LEAK, "800M"),
    row("torch/replay_tensors", LEAK, "800M"),
    row("torch/all_logits", LEAK, "800M"),
    row("torch/custom_function", LEAK, "800M"),
    row("torch/ranks", LEAK, "1400M"),
    row("torch/worker_cache", ("leak", "leak:retained-history", "leak:worker-copy"), "1200M"),
    row("torch/shared_tensors", SHM, "800M"),
    row("torch/dataset_twice", DATA, "1100M"),
    row("torch/dataset_whole", DATA, "800M"),
    row("torch/big_batch", ("batch-too-large",), "1050M"),
    row("torch/layer_buffer", ("layer-buffer",), "950M"),
    row("torch/clean_training", CLEAN, "800M"),
    row("torch/clean_rolling", CLEAN, "800M"),
    row("torch/clean_loader", CLEAN, "1500M"),
    row("torch/clean_epochs", CLEAN, "800M"),

    row("tensorflow/from_slices", DATA, "1150M"),
    row("tensorflow/fit_array", DATA, "900M"),
    row("tensorflow/gradients", LEAK, "1G"),
    row("tensorflow/outputs", LEAK, "1G"),
    row("tensorflow/callback_weights", LEAK, "1200M"),
    row("tensorflow/variables", RETRACE, "1G"),
    row("tensorflow/predictions", LEAK, "1G"),
    row("tensorflow/layer_buffer", ("layer-buffer",), "1G"),
    row("tensorflow/big_batch", ("batch-too-large",), "1050M"),
    row("tensorflow/clean_fit", CLEAN, "1500M"),
    row("tensorflow/clean_generator", CLEAN, "1500M"),
]

SECOND = [
    row("c/checkpoint_stream", LEAK, "256M"),
    row("c/epoch_arena", LEAK, "256M"),
    row("c/cooccurrence", LEAK, "300M"),
    row("c/rewind_field", LEAK, "256M"),
    row("c/unmapped_part", LEAK, "256M"),
    row("c/joined_results", LEAK, "384M"),
    row("c/summaries", LEAK, "400M"),
    row("c/kv_cache", LEAK, "320M"),
    row("c/metrics_deque", LEAK, "256M"),
    row("c/augmentations", LEAK, "300M"),
    row("c/prioritized", LEAK, "256M"),
    row("c/futures_kept", LEAK, "256M"),
    row("c/dataset_records", DATA, "178M"),
    row("c/dataset_images", DATA, "245M"),
    row("c/dataset_windows", DATA, "225M"),
    row("c/clean_known_tiles", CLEAN, "256M"),
    row("c/clean_spill", CLEAN, "256M"),
    row("c/clean_curriculum", CLEAN, "256M"),

    row("python/default_argument", LEAK, "320M"),
    row("python/confusion_tables", LEAK, "300M"),
    row("python/executor_results", LEAK, "256M"),
    row("python/ancestors", LEAK, "256M"),
    row("python/fold_registry", LEAK, "320M"),
    row("python/averaged_copies", LEAK, "300M"),
    row("python/paused_readers", LEAK, "256M"),
    row("python/episode_tapes", LEAK, "256M"),
    row("python/word_groups", LEAK, "256M"),
    row("python/put_off", LEAK, "300M"),
    row("python/encoded_corpus", DATA, "212M"),
    row("python/feature_store", LOADS, "212M"),
    row("python/clean_vocabulary", CLEAN, "256M"),
    row("python/clean_journal", CLEAN, "256M"),
    row("python/clean_shards", CLEAN, "256M"),

    row("numpy/attention_maps", LEAK, "320M"),
    row("numpy/restarts", LEAK, "300M"),
    row("numpy/sample_images", LEAK, "300M"),
    row("numpy/saved_in_memory", LEAK, "300M"),
    row("numpy/bagging", LEAK, "384M"),
    row("numpy/padded_batches", LEAK, "300M"),
    row("numpy/dataset_one_hot", DATA, "284M"),
    row("numpy/dataset_patches", LOADS, "310M"),
    row("numpy/dataset_features", DATA, "345M"),
    row("numpy/clean_replay_ring", CLEAN, "300M"),
    row("numpy/clean_evaluations", CLEAN, "300M"),

    row("torch/eval_scores", GRAPH, "800M"),
    row("torch/gan_losses", GRAPH, "800M"),
    row("torch/activation_stats", GRAPH, "800M"),
    row("torch/curvature_log", GRAPH, "800M"),
    row("torch/warm_restarts", LEAK, "800M"),
    row("torch/writer_images", LEAK, "800M"),
    row("torch/collate_cache", LEAK, "800M"),
    row("torch/prefetch_thread", LEAK, "800M"),
    row("torch/memory_bank", LEAK, "800M"),
    row("torch/rollouts", LEAK, "800M"),
    row("torch/confusion", LEAK, "800M"),
    row("torch/drop_connect", LEAK, "800M"),
    row("torch/padded_corpus", DATA, "800M"),
    row("torch/album", DATA, "800M"),
    row("torch/turned_ahead", DATA, "800M"),
    row("torch/windows", DATA, "800M"),
    row("torch/clean_curriculum", CLEAN, "800M"),
    row("torch/clean_replay_ring", CLEAN, "800M"),
    row("torch/clean_episodes", CLEAN, "800M"),
    row("tensorflow/retraces", RETRACE, "800M"),
    row("tensorflow/iou_meters", RETRACE, "800M"),
    row("tensorflow/saliency", LEAK, "800M"),
    row("tensorflow/feature_store", LEAK, "800M"),
    row("tensorflow/trials", LEAK, "800M"),
    row("tensorflow/sample_images", LEAK, "800M"),
    row("tensorflow/one_hot", DATA, "800M"),
    row("tensorflow/preloaded", DATA, "800M"),
    row("tensorflow/listed", DATA, "800M"),
    row("tensorflow/clean_cache", CLEAN, "800M"),
    row("tensorflow/clean_epoch_scores", CLEAN, "800M"),
]

PROGRAMS = FIRST + set_aside([replace(p, second=True) for p in SECOND])
