"""tf.data: what shuffle() and an in-memory cache() will hold is reckoned when a data set is begun to be read (shuffle_bytes), and under
--policy adapt buffers that tf.data tunes by itself keep to a share of the room.

Elements whose size cannot be told from the shapes (strings, unknown sides) are left out: what is told is a lower bound.
"""
import functools
import sys
import weakref

from ..tell import tell

SHARE = 8  # part of the room that tuned buffers may take; tf.data itself takes half of the machine's memory
LEAST_BYTES = 64 << 20  # below this nothing is gained: a batch or two

_holding = {}  # id of an iterator to (weak reference, bytes)


def iterators(module):
    kind = module.OwnedIterator
    inner = kind.__init__

    @functools.wraps(inner)
    def __init__(self, dataset=None, *args, **kwargs):
        if dataset is not None:
            dataset = limited(dataset)
        inner(self, dataset, *args, **kwargs)
        if dataset is not None:
            note(self, dataset)

    kind.__init__ = __init__


def limited(dataset):
    try:
        from .. import policy, room
        if not policy.is_adapting() or room.room() == room.ALL or dataset.options().autotune.ram_budget is not None:
            return dataset
        options = sys.modules["tensorflow"].data.Options()
        options.autotune.ram_budget = max(LEAST_BYTES, room.room() // SHARE)
        return dataset.with_options(options)
    except Exception:
        return dataset


def note(iterator, dataset):
    try:
        count = held_bytes(dataset)
        key = id(iterator)
        if count:
            _holding[key] = weakref.ref(iterator, lambda _: gone(key)), count
            tell_all()
    except Exception:
        pass


def gone(key, is_ending=sys.is_finalizing):
    if not is_ending() and _holding.pop(key, None):
        tell_all()


def tell_all():
    tell("shuffle_bytes", sum(count for _, count in list(_holding.values())))


def held_bytes(dataset):
    """Of this data set and all that it is made from."""
    total, seen, left = 0, set(), [dataset]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        total += held_by(one)
        left += one._inputs()
    return total


def held_by(dataset):
    name = type(dataset).__name__
    if name == "_ShuffleDataset":
        return elements(dataset, value_of(dataset._buffer_size)) * element_bytes(dataset._input_dataset)
    if name == "CacheDataset" and not value_of(dataset._filename):
        return elements(dataset, None) * element_bytes(dataset._input_dataset)
    return 0


def value_of(tensor):
    value = sys.modules["tensorflow"].get_static_value(tensor)
    return value.item() if hasattr(value, "item") else value


def elements(dataset, most):
    """How many it will have at once; 0: not to be told."""
    count = int(dataset._input_dataset.cardinality())
    known = [number for number in (count, most) if number is not None and number >= 0]
    return min(known) if known else 0


def element_bytes(dataset):
    tf = sys.modules["tensorflow"]
    total = 0
    for spec in tf.nest.flatten(dataset.element_spec):
        shape = getattr(spec, "shape", None)
        if shape is None or shape.rank is None or not getattr(spec, "dtype", None) or spec.dtype == tf.string:
            continue
        sides = list(shape)
        if sides and sides[0] is None:
            sides[0] = batch_of(dataset)
        if None not in sides:
            count = 1
            for side in sides:
                count *= side
            total += count * spec.dtype.size
    return total


def batch_of(dataset):
    """The size of the batches that it gives: of the nearest batch() behind it."""
    for _ in range(32):
        if "Batch" in type(dataset).__name__ and hasattr(dataset, "_batch_size"):
            return value_of(dataset._batch_size)
        inputs = dataset._inputs()
        if len(inputs) != 1:
            return None
        dataset = inputs[0]
    return None
