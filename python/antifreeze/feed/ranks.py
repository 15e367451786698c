"""Which part of the data is this process's, and whether somebody shares them out a second time.

A loader shares its samples out by itself: each rank takes its part of each batch × ranks. What stands between it and the loop may
want to do the same. It is told by who asks for the data, which is looked at once a loop:

- accelerate's dispatcher reads on rank 0 alone and hands a part of it to each: the loader takes no share then;
- a shard of an iterable (accelerate, transformers) takes every n-th of what it is given: refused;
- a torch DataLoader that has a batch size would make batches of batches: refused. Samplers it refuses itself, and Lightning gives
  none to an IterableDataset, which a Loader is.
"""
import os
import sys

from .arguments import whole
from .native import UINT32_MAX

FRAMES_MOST = 24  # from the loader up to the loop that asks
ALONE = 0, 1
DISPATCHER, SHARD = "DataLoaderDispatcher", "IterableDatasetShard"
THEIRS = ("accelerate.", "transformers.")
FETCH = "torch.utils.data._utils.fetch"


def given(rank, ranks):
    """As it was said; None: it was not."""
    if rank is None and ranks is None:
        return None
    if rank is None or ranks is None:
        raise ValueError("rank and ranks belong together")
    ranks = whole("ranks", ranks, 1, UINT32_MAX)
    return whole("rank", rank, 0, ranks - 1), ranks


def found():
    """As torch.distributed or JAX say, once the processes have met; until then, as who started them has left word (torchrun, accelerate;
    srun, where it has started several)."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return of_jax() or left_word("RANK", "WORLD_SIZE") or of_slurm() or ALONE


def of_jax():
    """To ask JAX itself would bring its devices up; what was told to jax.distributed.initialize() is there without."""
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is None:
        return None
    return state.process_id, state.num_processes


def left_word(rank, ranks):
    try:
        return int(os.environ[rank]), int(os.environ[ranks])
    except (KeyError, ValueError):
        return None


def of_slurm():
    """Only where srun has started it: a batch script is told of its job's tasks, too, but is none of them and has no step."""
    share = left_word("SLURM_PROCID", "SLURM_STEP_NUM_TASKS") or left_word("SLURM_PROCID", "SLURM_NTASKS")
    is_task = share and (share[0] > 0 or os.environ.get("SLURM_STEP_ID", "").isdigit())
    return share if is_task and 0 <= share[0] < share[1] else None


def taken(said, frame):
    """The share of a loader that was told `said`, when its data are asked for from here."""
    divider = divider_above(frame)
    if divider == SHARD:
        raise RuntimeError("every n-th batch would be taken of a loader that shares its samples out among ranks by itself. Loop over it "
                           "as it is, without prepare() and without a DataLoader that shards it")
    if divider == DISPATCHER:
        if said and said != ALONE:
            raise RuntimeError(f"accelerate reads on rank 0 alone and hands parts of that to all (dispatch_batches), and this loader was "
                               f"told to be rank {said[0]} of {said[1]}: its samples would be shared out twice. Leave out rank= and "
                               "ranks=, or do not prepare() it")
        return ALONE
    return said or found()


def divider_above(frame):
    """The name of the class that will share out what it gets, if there is one among the callers. Only frames of theirs are looked
    into: to look is to keep what is in there, and the program's own has batches."""
    for _ in range(FRAMES_MOST):
        if frame is None:
            return None
        module = frame.f_globals.get("__name__") or ""
        if module == FETCH and frame.f_locals.get("auto_collation"):
            raise TypeError("what an antifreeze.Loader gives are batches already: a DataLoader around it has batch_size=None")
        if module.startswith(THEIRS):
            names = {kind.__name__ for kind in type(frame.f_locals.get("self")).__mro__}
            if names & {DISPATCHER, SHARD}:
                return DISPATCHER if DISPATCHER in names else SHARD
        frame = frame.f_back
    return None
