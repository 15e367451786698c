"""Cuts a batch into parts, whatever it is made of: tensors and arrays whose first axis are the samples, in tuples, lists and
mappings. Nothing is copied: a part is a view. What cannot be cut with certainty is not cut at all (Uncut says why).
"""
from collections.abc import Mapping

PLAIN = (str, bytes, int, float, bool, complex, type(None))  # the same for all samples


class Place:
    """Where a tensor was that is kept elsewhere."""
    shape = ndim = dtype = __getitem__ = None


class Uncut(Exception):
    """Why a batch cannot be cut."""


def count(batch):
    """The samples of a batch."""
    firsts = set()
    _firsts(batch, firsts)
    several = firsts - {1}
    if not firsts:
        raise Uncut("no tensor of samples is in it")
    if len(several) > 1:
        raise Uncut(f"its tensors differ in their first axis ({', '.join(map(str, sorted(firsts)))})")
    return several.pop() if several else 1


def part(batch, n, start, stop):
    """Samples [start, stop) of n. What has one row, or none, is for all of them."""
    if _is_array(batch):
        return batch[start:stop] if batch.ndim and batch.shape[0] == n else batch
    if isinstance(batch, PLAIN):
        return batch
    if isinstance(batch, Mapping):
        return _mapping_like(batch, {key: part(value, n, start, stop) for key, value in batch.items()})
    if _is_rows(batch):
        return type(batch)(batch[start:stop]) if len(batch) == n else batch
    items = [part(item, n, start, stop) for item in batch]
    return type(batch)(*items) if hasattr(batch, "_fields") else type(batch)(items)


def arrays(batch):
    """All tensors and arrays of it."""
    if _is_array(batch):
        yield batch
    elif isinstance(batch, Mapping):
        for value in batch.values():
            yield from arrays(value)
    elif isinstance(batch, (list, tuple)):
        for item in batch:
            yield from arrays(item)


def filled(like, items):
    """The same with other tensors: the next of items for each, in the order of arrays()."""
    if _is_array(like):
        return next(items)
    if isinstance(like, Mapping):
        return _mapping_like(like, {key: filled(value, items) for key, value in like.items()})
    if isinstance(like, (list, tuple)):
        made = [filled(item, items) for item in like]
        return type(like)(*made) if hasattr(like, "_fields") else type(like)(made)
    return like


def join(parts, sizes, concatenate):
    """The reverse, of what a model gives back for each part: all of it must have the samples as its first axis."""
    first = parts[0]
    if _is_array(first):
        if any(not one.ndim or one.shape[0] != size for one, size in zip(parts, sizes)):
            raise Uncut("its output is not one row a sample")
        return concatenate(parts)
    if first is None:
        return None
    if isinstance(first, Mapping):
        return _mapping_like(first, {key: join([one[key] for one in parts], sizes, concatenate) for key in first})
    if type(first) in (list, tuple) or hasattr(first, "_fields"):
        items = [join(list(column), sizes, concatenate) for column in zip(*parts)]
        return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
    raise Uncut(f"its output is a {type(first).__name__}")


def _firsts(batch, firsts):
    if _is_array(batch):
        if not _is_dense(batch):
            raise Uncut("a sparse or nested tensor is in it")
        if batch.ndim:
            firsts.add(batch.shape[0])
    elif isinstance(batch, Mapping):
        for value in batch.values():
            _firsts(value, firsts)
    elif type(batch) in (list, tuple) or isinstance(batch, tuple) and hasattr(batch, "_fields"):
        if _is_packed(batch):
            raise Uncut("a packed sequence is in it")
        for item in batch:
            _firsts(item, firsts)
    elif not isinstance(batch, PLAIN):
        raise Uncut(f"a {type(batch).__name__} is in it")


def _is_array(thing):
    return hasattr(thing, "shape") and hasattr(thing, "ndim") and hasattr(thing, "dtype") and hasattr(thing, "__getitem__")


def _is_dense(array):
    return not getattr(array, "is_sparse", False) and not getattr(array, "is_nested", False) and \
        not str(getattr(array, "layout", "strided")).startswith("torch.sparse")


def _is_packed(thing):
    return type(thing).__name__ == "PackedSequence"


def _is_rows(items):
    """Whether a list has an item a sample (texts, file names), rather than a field a place."""
    return isinstance(items, (list, tuple)) and not hasattr(items, "_fields") and bool(items) and all(isinstance(item, PLAIN) for item in items)


def _mapping_like(like, items):
    if type(like) is dict:
        return items
    try:
        return type(like)(items)
    except TypeError:
        return items
