"""What a batch becomes: the loader's memory as arrays of the program's framework. Nothing is copied where the framework can do
without, and the memory is not used again before the last that refers to it is gone.
"""
import sys

FRAMEWORKS = ("numpy", "torch", "tensorflow", "jax")


def asked(as_, device):
    """The framework (None: it is seen later) and the GPU (None: none) that a program has asked for."""
    if as_ is not None and as_ not in FRAMEWORKS:
        raise ValueError(f"as_={as_!r}: it is one of {', '.join(FRAMEWORKS)}")
    if device is None or str(device) == "cpu":
        return as_, None
    if not str(device).startswith("cuda") or as_ not in (None, "torch"):
        raise ValueError(f"device={device!r}: \"cuda\", for torch; other devices and frameworks copy what they are given themselves")
    return "torch", device


def framework(as_):
    """Torch if the program has it, else NumPy, where it was not said."""
    return as_ or ("torch" if "torch" in sys.modules else "numpy")


def converter(name):
    """From a NumPy array; None: it stays one."""
    if name == "torch":
        import torch
        return lambda array: torch.from_numpy(torch_can(torch, array))
    if name == "tensorflow":
        from tensorflow.experimental import dlpack
        return lambda array: dlpack.from_dlpack(array.__dlpack__())
    if name == "jax":
        import jax
        return jax.dlpack.from_dlpack  # which copies what JAX has no numbers for: of 64 bits, unless it was told so
    return None


def put_together(keys, arrays):
    """What the loop gets."""
    if keys:
        return dict(zip(keys, arrays))
    return arrays[0] if keys is None else tuple(arrays)


def torch_can(torch, array):
    """Older versions have no unsigned numbers but bytes."""
    if array.dtype.kind == "u" and array.dtype.itemsize > 1 and not hasattr(torch, array.dtype.name):
        return array.astype("int64" if array.dtype.itemsize > 2 else "int32")
    return array


def be_a_dataset(kind):
    """A torch DataLoader asks only an IterableDataset for what comes next."""
    data = sys.modules.get("torch.utils.data")
    if data is not None and not issubclass(kind, data.IterableDataset):
        data.IterableDataset.register(kind)


def tf_dataset(loader):
    """A tf.data.Dataset whose elements are whole batches. Each way through it is an epoch, or what is left of one."""
    import tensorflow
    batch = loader.batch if loader.drop_last else None  # else the last is shorter
    specs = [tensorflow.TensorSpec((batch, *shape), dtype) for _, dtype, shape, _ in loader.fields]
    options = tensorflow.data.Options()
    # They are ready already, and state_dict() is to be the place where the program is.
    options.experimental_optimization.inject_prefetch = False
    if loader.ranks > 1:  # it has its share
        options.experimental_distribute.auto_shard_policy = tensorflow.data.experimental.AutoShardPolicy.OFF
    made = tensorflow.data.Dataset.from_generator(lambda: begin_some(loader), output_signature=put_together(loader._keys, specs))
    made = made.with_options(options)
    # Told, not asserted as by assert_cardinality(): after a state was loaded, the first are fewer.
    made.cardinality = lambda: tensorflow.constant(len(loader), tensorflow.int64)
    return made


def begin_some(loader):
    """A loop that has batches: Keras stops in front of an epoch's end, and an epoch of which nothing is left is an error to it."""
    epoch, done, batches = loader.progress
    if done == batches:
        loader.set_epoch(epoch + 1)
    return loader._begin(None)
