"""Loader(..., transform=fn, workers=2): batches on which a function of the program's has worked.

The function gets the fields of a batch, as the loop would have got them, and gives what the loop gets in their place: an array, a tuple
or a dictionary of them. How large that is shows at the open, on the first batch in the order of the data; types and shapes are to be the
same from then on, but for a smaller number of samples.

It runs in workers, which read batches in the loader's arena and write into slots (feed/transformed.py); arena and slots are within the
budget together. With workers=0 it runs in the program itself. What comes out is the same: the slots take the same part of the budget for
any number of workers, and so the order is the same; and what the function draws is seeded by seed, epoch, batch and rank.
"""
import errno

from . import apply, native
from .quantity import say_bytes
from .slots import Slots
from .transformed import Call, InProgram, InWorkers, say_error
from .workers import Workers

SLOTS_LEAST = 3  # a loop holds the last one while it asks for the next, and one is being made
SLOTS_MOST = 16  # half of them may be held
SLOT_PART = 4  # of the budget, one part in so many, if that is enough for the fewest
LEARN_MOST = 8  # batches that may be left out (on_error="skip") before one shows what the transform gives
IN_ORDER = 1  # AFZ_SHUFFLE_NONE


def open_transformed(files, options, transform, workers, as_):
    """What the Loader reads from in place of a native.Native with these options. as_: whose arrays the transform gets."""
    if not callable(transform):
        raise TypeError(f"transform={transform!r}: a function that gets the fields of a batch, and gives what the loop is to get")
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise ValueError(f"workers={workers!r}: how many processes the transform runs in; 0: in the program itself")
    pool = Workers(workers, transform, as_) if workers else None
    try:
        if pool:
            pool.come_up()
        call = Call(transform, as_, options, pool)
        layout = learn(files, options, call)
        source, slots = fit(files, options, layout, bool(pool))
        return InWorkers(source, call, layout, slots, pool) if pool else InProgram(source, call, layout, slots)
    except BaseException:
        if pool:
            pool.close()
        raise


def learn(files, options, call):
    """The layout of what the transform makes."""
    batch, what = options["batch"], "no sample of them could be read"
    for first in range(0, LEARN_MOST * batch, batch):
        source = open_part(files, options, first, call.is_shared)
        if source is None:
            break
        given = source.next()
        if given is None:  # all of it was left out
            continue
        count = len(given.arrays[0])
        said, what = call.once(source, given.arrays)
        del given
        source.close()
        if said == "done":
            return apply.Layout(*what, count, batch)
        if said == "unfit" or not call.is_skipping:
            call.refuse(said, what, f"the samples from {first} to {first + count - 1} of the data, at the open")
    raise native.LoaderError(f"the transform failed on all batches that it was tried on: {say_error(what)}")


def open_part(files, options, first, is_shared):
    """A batch from there on, in the order of the data; None: there is none."""
    end, subset = first + options["batch"], options["subset"]
    part = {**options, "shuffle": IN_ORDER, "threads": 1, "rank": 0, "ranks": 1, "is_last_dropped": False, "weights": None, "draws": 0,
            "is_shared": is_shared}
    if subset is not None:
        part["subset"] = subset[first:end]
        return native.Native(files, **part) if len(part["subset"]) else None
    part["start"], stop = options["start"] + first, options["start"] + end
    for part["stop"] in (min(stop, options["stop"] or stop), options["stop"]):  # to the end, if there are fewer than a batch
        try:
            return native.Native(files, **part)
        except native.LoaderError as error:
            if error.errno != errno.EINVAL:
                raise
            refused = error
    if first == 0:
        raise refused
    return None


def fit(files, options, layout, is_shared):
    """The loader and its slots within the budget."""
    budget = options["budget_bytes"]
    most = min(SLOTS_MOST, budget // SLOT_PART // layout.bytes)
    for count in sorted({max(SLOTS_LEAST, most), SLOTS_LEAST}, reverse=True):
        rest = max(1, budget - count * layout.bytes)
        try:
            source = native.Native(files, **{**options, "budget_bytes": rest, "is_shared": is_shared})
            break
        except native.LoaderMemoryError:
            if count == SLOTS_LEAST:
                no_room(files, options, layout)
    return source, Slots(count, layout) if is_shared else count


def no_room(files, options, layout):
    """With the floor: what the loader needs without a transform is known when it is open."""
    slots = SLOTS_LEAST * layout.bytes
    words = f"the transform makes batches of {say_bytes(layout.bytes)}, of which {SLOTS_LEAST} have to fit into the budget"
    try:
        source = native.Native(files, **options)
    except native.LoaderMemoryError as error:
        raise native.LoaderMemoryError(f"{error.why}; and {words}, too", error.errno) from None
    floor = source.facts().floor_bytes
    source.close()
    raise native.LoaderMemoryError(f"needs at least {-(-(floor + slots) // 1024)}K, the budget is {say_bytes(options['budget_bytes'])}: "
                                   f"{words}", errno.ENOSPC)
