"""Who takes part in bench/feed.py: a row a loader, as feed_programs/arrays.py and pictures.py know it."""
from collections import namedtuple

Row = namedtuple("Row", "how workers name module order")  # order: "global", "window", or ours

OURS = Row("ours", 0, "**antifreeze.Loader**", None, "ours")

ARRAYS = [OURS,
          Row("torch_map", 0, "torch DataLoader over mmap, no workers", "torch", "global"),
          Row("torch_map", 1, "torch DataLoader over mmap, 1 worker", "torch", "global"),
          Row("torch_map", 2, "torch DataLoader over mmap, 2 workers", "torch", "global"),
          Row("torch_map_random", 0, "torch DataLoader over mmap, MADV_RANDOM, no workers", "torch", "global"),
          Row("torch_map_random", 2, "torch DataLoader over mmap, MADV_RANDOM, 2 workers", "torch", "global"),
          Row("torch_one_by_one", 2, "torch DataLoader, sample by sample, 2 workers", "torch", "global"),
          Row("torch_memory", 0, "torch DataLoader, data in memory", "torch", "global"),
          Row("grain_global", 0, "Grain over mmap", "grain", "global"),
          Row("hugging_face_global", 0, "Hugging Face datasets, map-style", "datasets", "global"),
          Row("torch_window", 0, "a window by hand in a DataLoader, no workers", "torch", "window"),
          Row("torch_window", 1, "a window by hand in a DataLoader, 1 worker", "torch", "window"),
          Row("torch_window", 2, "a window by hand in a DataLoader, 2 workers", "torch", "window"),
          Row("tf_data", 0, "tf.data, chunks taken apart and a buffer", "tensorflow", "window"),
          Row("tf_data_in_order", 0, "tf.data, in order through a buffer", "tensorflow", "window"),
          Row("hugging_face_window", 0, "Hugging Face datasets, iterable", "datasets", "window"),
          Row("grain_window", 0, "Grain, chunks and a window", "grain", "window"),
          Row("spdl_window", 0, "SPDL, a window by hand in its threads", "spdl", "window"),
          Row("mosaic", 2, "mosaicml-streaming, 2 workers", "streaming", "window"),
          Row("litdata", 0, "LitData, no workers", "litdata", "window"),
          Row("litdata", 2, "LitData, 2 workers", "litdata", "window")]

ZARR = [OURS,
        Row("zarr_dask", 0, "Zarr + Dask, 2 threads", "dask", "window"),
        Row("torch_zarr", 0, "zarr-python in a DataLoader, no workers", "zarr", "window"),
        Row("torch_zarr", 2, "zarr-python in a DataLoader, 2 workers", "zarr", "window")]

PICTURES = [OURS,
            Row("web_dataset", 0, "webdataset, Pillow, no workers", "webdataset", "window"),
            Row("web_dataset", 2, "webdataset, Pillow, 2 workers", "webdataset", "window"),
            Row("tf_data", 0, "tf.data", "tensorflow", "window"),
            Row("spdl", 0, "SPDL, FFmpeg, 2 threads", "spdl", "window"),
            Row("hugging_face", 0, "Hugging Face datasets, webdataset", "datasets", "window")]

CACHED = [OURS,
          Row("torch_memory", 0, "torch DataLoader, data in memory, no workers", "torch", "global"),
          Row("torch_memory", 2, "torch DataLoader, data in memory, 2 workers", "torch", "global"),
          Row("torch_map", 0, "torch DataLoader over mmap, no workers", "torch", "global"),
          Row("torch_map", 2, "torch DataLoader over mmap, 2 workers", "torch", "global"),
          Row("torch_window", 0, "a window by hand in a DataLoader, no workers", "torch", "window"),
          Row("tf_data_cached", 0, "tf.data, from memory", "tensorflow", "window"),
          Row("grain_global", 0, "Grain over mmap", "grain", "global"),
          Row("spdl_window", 0, "SPDL, a window by hand in its threads", "spdl", "window")]

ACCURACY = [Row("torch_map", 0, "a global shuffle (torch)", "torch", "global"),
            OURS,
            Row("torch_window", 0, "a window by hand", "torch", "window"),
            Row("tf_data", 0, "tf.data, chunks taken apart and a buffer", "tensorflow", "window"),
            Row("tf_data_in_order", 0, "tf.data, in order through a buffer", "tensorflow", "window")]

COPIES = ("hugging_face_global", "hugging_face_window", "mosaic", "litdata")  # that read formats of their own, made by files.py

MODULES = {"torch": "torch", "tensorflow": "tensorflow-cpu tensorflow", "zarr": "zarr", "dask": "dask", "datasets": "datasets",
           "webdataset": "webdataset", "streaming": "mosaicml-streaming", "litdata": "litdata", "spdl": "spdl", "grain": "grain",
           "ffcv": "ffcv"}  # a module, and the packages that have it
