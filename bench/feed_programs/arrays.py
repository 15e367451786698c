"""Loaders of arrays. Each takes the options of train.py and yields, for each epoch, something that gives (x, y) as NumPy arrays.

All but one have the classes in memory: they are little. "window" is the number of samples that are shuffled together, the same as
Antifreeze has within its budget, so that the orders are alike; chunks of 512 samples in a row are read from all over the file."""
import numpy

from files import Array, copy_of


def none(options):
    """The same program without a loader."""
    x = numpy.zeros((options["batch"], 3072), numpy.uint8)
    y = numpy.zeros(options["batch"], numpy.int64)
    while True:
        yield ((x, y) for _ in range(1000))


def ours(options):
    import antifreeze
    array = Array(options)
    loader = antifreeze.Loader(array.path, labels=array.labels_path, batch=options["batch"], budget=options["budget"], seed=1, as_="numpy",
                               subset=options["subset"] and tuple(options["subset"]))
    options["note"]("window", samples=loader.group_samples, quality=loader.shuffle_quality)
    while True:
        yield loader


def smoothed(x, y):
    """Some milliseconds of NumPy: each row of a picture's becomes softer, six times over."""
    soft = x.astype(numpy.float32)
    for _ in range(6):
        soft[..., 1:-1] = (soft[..., :-2] + soft[..., 1:-1] + soft[..., 2:]) * numpy.float32(1 / 3)
    return soft.astype(numpy.uint8), y


def ours_smoothed(options):
    import antifreeze
    array = Array(options)
    loader = antifreeze.Loader(array.path, labels=array.labels_path, batch=options["batch"], budget=options["budget"], seed=1, as_="numpy",
                               transform=smoothed, workers=options["workers"])
    while True:
        yield loader


# ---- a global shuffle ----

def torch_of(load, change=lambda x, y: (x, y)):
    """A DataLoader whose workers take a whole batch at once: faster than what most people write."""
    def epochs(options):
        import torch
        import torch.utils.data as data
        array = Array(options)
        x, y = load(array), array.labels()

        class Samples(data.Dataset):
            def __len__(self):
                return len(x)

            def __getitems__(self, numbers):
                return [torch.from_numpy(array) for array in change(x[numbers], y[numbers])]

        loader = data.DataLoader(Samples(), options["batch"], shuffle=True, num_workers=options["workers"], collate_fn=lambda batch: batch,
                                 persistent_workers=options["workers"] > 0)
        while True:
            yield ((a.numpy(), b.numpy()) for a, b in loader)
    return epochs


def mapped_without_readahead(array):
    import mmap
    x = numpy.load(array.path, mmap_mode="r")
    x._mmap.madvise(mmap.MADV_RANDOM)
    return x.reshape(array.samples, -1)


def torch_one_by_one(options):
    """A DataLoader as the tutorials write it."""
    import torch.utils.data as data
    array = Array(options)
    x, y = array.mapped(), array.labels()

    class Samples(data.Dataset):
        def __len__(self):
            return len(x)

        def __getitem__(self, number):
            return x[number].copy(), y[number]

    loader = data.DataLoader(Samples(), options["batch"], shuffle=True, num_workers=options["workers"])
    while True:
        yield ((a.numpy(), b.numpy()) for a, b in loader)


def grain_global(options):
    import grain
    array = Array(options)
    x, y = array.mapped(), array.labels()

    class Source:
        def __len__(self):
            return len(x)

        def __getitem__(self, number):
            return x[number], y[number]

    for epoch in range(1 << 30):
        made = grain.MapDataset.source(Source()).seed(epoch).shuffle().batch(options["batch"])
        yield made.to_iter_dataset(grain.ReadOptions(num_threads=2, prefetch_buffer_size=16))


def hugging_face_global(options):
    import datasets
    made = datasets.Dataset.from_file(copy_of("arrow", options)).with_format("arrow")
    for epoch in range(1 << 30):
        yield map(from_arrow, made.shuffle(seed=epoch, keep_in_memory=True).iter(options["batch"]))


def from_arrow(table):
    """Without a copy of the samples; its own numpy format makes other numbers of them."""
    return table["x"].combine_chunks().flatten().to_numpy().reshape(len(table), -1), table["y"].to_numpy()


# ---- within a window ----

def by_hand(array, options, groups):
    """Chunks from all over the file, shuffled together: what one writes oneself."""
    draw = numpy.random.default_rng(len(groups))
    for group in groups:
        samples = numpy.concatenate([array.chunk(chunk) for chunk in group])
        y = numpy.concatenate([array.chunk_labels(chunk) for chunk in group])
        turn = draw.permutation(len(samples))
        for at in range(0, len(turn), options["batch"]):
            part = turn[at:at + options["batch"]]
            yield samples[part], y[part]


def torch_window(options):
    import torch
    import torch.utils.data as data
    array = Array(options)

    class Groups(data.IterableDataset):
        epoch = 0

        def __iter__(self):
            mine, of = (info.id, info.num_workers) if (info := data.get_worker_info()) else (0, 1)
            groups = array.groups(options["window"], self.epoch)
            self.epoch += 1
            for x, y in by_hand(array, options, groups[mine::of]):
                yield torch.from_numpy(x), torch.from_numpy(y)

    loader = data.DataLoader(Groups(), None, num_workers=options["workers"], persistent_workers=options["workers"] > 0)
    while True:
        yield ((a.numpy(), b.numpy()) for a, b in loader)


def tf_data(options):
    """Chunks from all over the file, taken apart, and a buffer. (FixedLengthRecordDataset could begin within the file, but reads all
    that is before.)"""
    import tensorflow
    array, data = Array(options), tensorflow.data
    y = array.labels()

    def rows(chunk):
        x = tensorflow.numpy_function(array.chunk, [chunk], "uint8")
        x.set_shape((None, array.sample_bytes))
        return x

    for epoch in range(1 << 30):
        chunks = numpy.random.default_rng(epoch).permutation(array.chunks)
        made = data.Dataset.from_tensor_slices(chunks).map(rows, num_parallel_calls=2).unbatch()
        made = made.shuffle(options["window"], epoch).batch(options["batch"]).prefetch(data.AUTOTUNE)
        yield ((x, y[number_of(x)]) for x in made.as_numpy_iterator())


def tf_data_in_order(options):
    """As its guide has it: in the order of the file, through a buffer."""
    import tensorflow
    array, data = Array(options), tensorflow.data
    y = array.labels()
    for epoch in range(1 << 30):
        made = data.FixedLengthRecordDataset(array.path, array.sample_bytes, array.data_at, buffer_size=8 << 20)
        made = made.shuffle(options["window"], epoch).batch(options["batch"]).map(lambda raw: tensorflow.io.decode_raw(raw, "uint8"))
        yield ((x, y[number_of(x)]) for x in made.prefetch(data.AUTOTUNE).as_numpy_iterator())


def tf_data_cached(options):
    import tensorflow
    array, data = Array(options), tensorflow.data
    made = data.Dataset.from_tensor_slices((numpy.load(array.path), array.labels())).shuffle(options["window"]).batch(options["batch"])
    while True:
        yield made.prefetch(data.AUTOTUNE).as_numpy_iterator()


def number_of(x):
    return numpy.ascontiguousarray(x[:, :4]).view("<u4").ravel()


def hugging_face_window(options):
    import datasets
    datasets.disable_progress_bars()
    made = datasets.Dataset.from_file(copy_of("arrow", options))
    made = made.to_iterable_dataset(num_shards=len(made) // Array(options).per).with_format("arrow")
    for epoch in range(1 << 30):
        yield map(from_arrow, made.shuffle(seed=epoch, buffer_size=options["window"]).iter(options["batch"]))


def grain_window(options):
    import grain
    array = Array(options)
    experimental = grain.experimental

    class Rows(experimental.FlatMapTransform):
        max_fan_out = array.per

        def flat_map(self, chunk):
            return list(zip(array.chunk(chunk), array.chunk_labels(chunk)))

    for epoch in range(1 << 30):
        chunks = grain.MapDataset.range(array.chunks).seed(epoch).shuffle().to_iter_dataset(grain.ReadOptions(1, 1))
        rows = experimental.FlatMapIterDataset(chunks, Rows())
        yield experimental.WindowShuffleIterDataset(rows, window_size=options["window"], seed=epoch).batch(options["batch"])


def spdl_window(options):
    """Its threads read groups of chunks ahead."""
    from spdl.pipeline import PipelineBuilder
    array = Array(options)

    def batches(group):
        yield from by_hand(array, options, [group])

    for epoch in range(1 << 30):
        pipeline = PipelineBuilder().add_source(array.groups(options["window"], epoch)).pipe(batches).add_sink(8).build(num_threads=2)
        yield running(pipeline)


def running(pipeline):
    with pipeline.auto_stop():
        yield from pipeline


def mosaic(options):
    import torch.utils.data as data
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory
    clean_stale_shared_memory()

    class Samples(StreamingDataset):
        def __getitem__(self, number):
            sample = super().__getitem__(number)
            return numpy.frombuffer(sample["x"], numpy.uint8).copy(), sample["y"]

    samples = Samples(local=copy_of("mds", options), shuffle=True, batch_size=options["batch"], shuffle_block_size=options["window"])
    loader = data.DataLoader(samples, options["batch"], num_workers=options["workers"])
    while True:
        yield ((a.numpy(), b.numpy()) for a, b in loader)


def litdata(options):
    # As it comes: 256 samples in a row are mixed. All of a chunk (LITDATA_ITEM_SHUFFLE_WINDOW=full) was fifty times slower.
    import litdata as lit
    samples = lit.StreamingDataset(copy_of("litdata", options), shuffle=True, max_cache_size="1GB")
    loader = lit.StreamingDataLoader(samples, batch_size=options["batch"], num_workers=options["workers"])
    while True:
        yield ((batch["x"].numpy(), batch["y"].numpy()) for batch in loader)


def zarr_dask(options):
    """A window's chunks, taken by Dask's threads."""
    import dask
    import dask.array
    array = Array(options)
    dask.config.set(scheduler="threads", num_workers=2)
    x, y = dask.array.from_zarr(array.path), array.labels()
    draw = numpy.random.default_rng(1)
    for epoch in range(1 << 30):
        def batches(epoch=epoch):
            for group in array.groups(options["window"], epoch):
                parts = [slice(chunk * array.per, (chunk + 1) * array.per) for chunk in group]
                samples = dask.array.concatenate([x[part] for part in parts]).compute().reshape(-1, array.sample_bytes)
                classes = numpy.concatenate([y[part] for part in parts])
                turn = draw.permutation(len(samples))
                for at in range(0, len(turn), options["batch"]):
                    yield samples[turn[at:at + options["batch"]]], classes[turn[at:at + options["batch"]]]
        yield batches()


def torch_zarr(options):
    """A DataLoader whose workers each read groups of chunks with zarr."""
    import zarr
    return torch_window({**options, "zarr": zarr.open_array(Array(options).path, mode="r")})


LOADERS = {"none": none, "ours": ours, "ours_smoothed": ours_smoothed, "torch_smoothed": torch_of(lambda array: numpy.load(array.path), smoothed), "torch_map": torch_of(Array.mapped), "torch_memory": torch_of(Array.loaded),
           "torch_map_random": torch_of(mapped_without_readahead),
           "torch_one_by_one": torch_one_by_one, "grain_global": grain_global, "hugging_face_global": hugging_face_global,
           "torch_window": torch_window, "tf_data": tf_data, "tf_data_in_order": tf_data_in_order, "tf_data_cached": tf_data_cached,
           "hugging_face_window": hugging_face_window, "grain_window": grain_window, "spdl_window": spdl_window, "mosaic": mosaic,
           "litdata": litdata, "zarr_dask": zarr_dask, "torch_zarr": torch_zarr}
