"""Which lines of the program hold a GPU's memory, by the history that torch's own allocator can keep: for each block the stack of
who asked for it.

By torch's word that takes 2 us a block, too much for steps of a millisecond with hundreds of them. So it is on until the first
steps are over, or for 20 s where there are none: what stays is made there (weights, the optimizer's state, data that lies on the
GPU), and a batch that is too large fails there. Later it is on where memory has come near to what there is, for a two hundredth
of the time at most. When memory runs out, the blocks that are in use are added up by the innermost line of the program's own. A
program that keeps this history itself is left alone.
"""
import functools
import gc
import os
from time import perf_counter_ns

from .. import clock
from . import oom

FIRST_STEPS = 3
NEAR = 0.6  # of the device or its budget, at the peak
EACH_NS = 2_000  # for one allocation
SHARE = 200  # of the time, one part
EVERY_NS = 1_000_000_000  # between two looks at the allocator's figures
UNTIL_NS = 20_000_000_000  # from when on a program without steps does not train
AGAIN_NS = 10_000_000_000  # between two sums, which take some milliseconds: a search for a batch that fits fails often
MOST = 5  # lines that are told
LEAST_PART = 50  # a line that holds less than so much of all says nothing
LONGEST = 120  # of a path, its end: all of them go into one packet

is_on = False
is_theirs = False  # the program records by itself
_torch = None
_set = None  # torch's function
_began_ns = _spent_ns = _due_ns = _summed_ns = 0
_counted = 0  # allocations, at the last look
_has_left = False  # without_steps() has nothing more to do


def start(torch):
    """CUDA has just come up."""
    global _torch, _set, _began_ns
    if _torch is not None or torch._C._cuda_isHistoryEnabled():
        return
    memory = torch.cuda.memory
    inner = memory._record_memory_history

    @functools.wraps(inner)
    def _record_memory_history(*args, **kwargs):
        global is_theirs
        is_theirs = True
        return inner(*args, **kwargs)

    _torch, _set, _began_ns = torch, inner, perf_counter_ns()
    memory._record_memory_history = _record_memory_history
    switch(True)
    clock.turns.append(turn)
    gc.callbacks.append(without_steps)
    oom.lines = lines


def switch(on):
    global is_on
    if on != is_on and not is_theirs:
        if on:
            _set("state", context="state", stacks="python", max_entries=1)
        else:
            _set(None)
        is_on = on


def turn():
    """Between two steps."""
    global _due_ns
    now = perf_counter_ns()
    if now >= _due_ns and not is_theirs:
        _due_ns = now + EVERY_NS
        try:
            switch(is_worth_it(now, *figures()))
        except Exception:
            pass


def without_steps(_phase, _about):
    """Python collects its garbage: who only evaluates has no turns, and comes by here. An error here would be printed; and while
    Python goes through its list, only the last of it can leave without another's call being missed."""
    global _has_left
    if _has_left or not clock.count and perf_counter_ns() < _began_ns + UNTIL_NS:
        return
    try:
        if gc.callbacks[-1] is without_steps:
            gc.callbacks.pop()
        else:
            _has_left = True
        if not clock.count:
            switch(False)
    except Exception:
        pass


def is_worth_it(now, allocations, most, limit):
    global _spent_ns, _counted
    if is_on:
        _spent_ns += (allocations - _counted) * EACH_NS
    _counted = allocations
    return clock.count <= FIRST_STEPS or most >= NEAR * limit and _spent_ns <= (now - _began_ns) // SHARE


def figures():
    """Of the device in use: allocations so far, the most that was allocated, and what there is."""
    cuda = _torch.cuda
    device = cuda.current_device()
    stats = cuda.memory.memory_stats_as_nested_dict(device)
    limit = cuda.get_device_properties(device).total_memory
    budget = os.environ.get("ANTIFREEZE_GPU_BUDGET", "")
    return (stats["allocation"]["all"]["allocated"], stats["allocated_bytes"]["all"]["peak"],
            min(limit, int(budget)) if budget.isdigit() and int(budget) else limit)


def lines():
    """Memory has just run out: what is to be told of the lines that hold it; {}: nothing. From here on it is kept, for one who
    goes on may come back."""
    global _summed_ns
    now = perf_counter_ns()
    if _torch is None or is_theirs or _summed_ns and now < _summed_ns + AGAIN_NS:
        return {}
    _summed_ns = now
    held, total = add_up(_torch.cuda.memory._snapshot())
    switch(True)
    return keys(held, total)


def add_up(snapshot):
    """Bytes in use by line, FILE:LINE:FUNCTION; None: of those of no line that is known. And all of them."""
    held, total, own = {}, 0, {}
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"].startswith("active"):
                place = place_of(block.get("frames") or (), own)
                held[place] = held.get(place, 0) + block["size"]
                total += block["size"]
    return held, total


def place_of(frames, own):
    """The innermost comes first."""
    for frame in frames:
        path = frame["filename"]
        if path not in own:
            own[path] = oom.is_own_path(path)
        if own[path]:
            return f"{path[-LONGEST:]}:{frame['line']}:{frame['name']}"
    return None


def keys(held, total):
    """Of an event: total_bytes, and a_at with a_bytes for the largest, b_at for the next, ..."""
    largest = sorted((size, place) for place, size in held.items() if place and size * LEAST_PART >= total)[:-MOST - 1:-1]
    told = {"total_bytes": total} if largest else {}
    for letter, (size, place) in zip("abcdefgh", largest):
        told[letter + "_at"], told[letter + "_bytes"] = place, size
    return told
