"""One forward and backward pass of torch over a batch, in as many parts as memory needs. The Trainer (split/on_transformers.py),
Lightning (split/on_lightning.py) and antifreeze.micro() give it a pass as a Job; step, schedule and callbacks stay theirs.

A pass is tried whole. When memory runs out, the error is let go with all that it holds, what the pass has written is undone
(split/undo.py), and the batch goes through again in halves, and so on; from then on at once. If one sample alone does not fit, the
model is asked to keep less for the way back (split/lighten.py).

Proof before trust (split/proof.py): one part is also done in two uneven pieces, and their gradients must be the same but for
rounding. That also tells how the loss is to be weighed: by samples, by what is not masked, or not at all (a
sum). Where parts cannot be the same by their nature (BatchNorm, dropout, a loss over pairs of samples), the batch is not split unless
it was asked for. What was shown once may not hold for ever, so it is shown again: at steps 10, 100 and so on, and at 2 and 3 where
parts are small, for each time takes as long as a part.
"""
import gc
import os
import sys
import threading
import traceback
import types
import weakref

from .. import policy, room as host
from ..see import oom
from . import cut, lighten, proof, ranks, sizing, undo

PARTS = 5  # of a batch, for which the second and third step are proved, too: all three take less than two thirds of a step then
MASKED = -100  # what torch's losses pass over, if not told otherwise
TOO_LARGE = "one sample alone does not fit. Less precision (--amp), an optimizer of 8 bits, or more devices would help"
OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

M_MMAP_THRESHOLD = -3  # of glibc's mallopt()
_settled = _packed = False
_courses = weakref.WeakKeyDictionary()  # whose they are, to place to Course

here = threading.local()  # .inside: this thread is in a pass that is cared for


class Refused(Exception):
    """The batch is not to be split, and why."""


class Again(Exception):
    """The pass is to be made anew, weighed in another way."""


class Course:
    """What is known of a training: one for a model, or for a place in the program where one is made."""

    def __init__(self):
        self.splitter = sizing.another()
        self.refused = None  # why its batches are not split
        self.weighing = None  # how parts are weighed, once found
        self.gradients = {}  # which outputs of a plain loop's model have gradients, by which of its inputs do
        self.steps = 0  # that were made in parts
        self.proofs = 0  # that went well
        self.is_told_apart = False  # one of them would have told labels that are not masked from samples

    def is_due(self, parts):
        """Whether the next step, in so many parts, is one of those where a proof is asked for."""
        step = self.steps + 1
        return not self.proofs or step <= 3 and parts >= PARTS or str(step).strip("0") == "1"

    def refuse(self, why):
        if self.refused is None:
            self.refused = why
            tell("refuse", f"the batch is not split: {why}")


def course(of, place=None):
    found = _courses.setdefault(of, {})
    if place not in found:
        found[place] = Course()
        hello()
    return found[place]


def hello():
    """A training begins. If the guard has to end it in its first step, it should know that we could make it smaller."""
    from .. import talk
    talk.poll()


class Job:
    """A pass over a batch. A framework has its own kind of this."""
    is_fresh = False  # the pass itself zeroes gradients first
    is_mixed = False  # computes in half precision
    is_seen = False  # more than the gradients of a part is of use: also of those of which nothing counts

    model = batch = None
    shared = None  # the model as it is wrapped for several ranks
    counted = None  # what items() has found
    attempt = None  # who runs it: part() calls attempt.look() before it goes back

    def whole(self):
        """The pass as it would be without us."""

    def part(self, piece, batch):
        """The pass over some samples: backward with the loss times piece.weight. Returns the loss, not weighed, without its graph."""

    def joined(self, values, weights):
        """What whole() would have returned."""

    def ways(self):
        """Ways to weigh the loss of a part, the likeliest first."""
        return ("items", "samples", "sum") if self.items() else ("samples", "sum")

    def items(self):
        """How much each sample has of what the loss is a mean of, if that are not samples: labels that are not masked, where the
        batch has masked ones. Nothing, if there are none."""
        if self.counted is None:
            rows = [(array != MASKED).flatten(1).sum(1) for array in self.labels()]
            self.counted = sum(rows).tolist() if rows else []
        return self.counted if any(self.counted) else []

    def labels(self):
        return [array for array in cut.arrays(self.batch) if has_masked(array)]

    def mark(self):
        """What else a pass changes, for back()."""

    def back(self, mark):
        pass


class Piece:
    """Samples [start, stop), and the share of their loss. Whoever makes it sets `value`, the loss."""
    is_first = is_last = False  # of those with gradients
    value = None

    def __init__(self, start, stop, weight, is_trial=False, is_dry=False):
        """is_trial: of a proof, and counts for nothing. is_dry: no gradients are to be kept or computed."""
        self.start, self.stop, self.weight, self.is_trial, self.is_dry = start, stop, weight, is_trial, is_dry


def run(job):
    """job.whole(), or as much like it as memory allows."""
    if getattr(here, "inside", False):
        return job.whole()
    shared = distributed(job.shared or job.model)
    if shared and not ranks.meets_once(job.shared or job.model):
        return together(job, shared)
    try:
        attempt = Attempt(job)
        attempt.is_shared = bool(shared)
    except Exception:  # a model that we cannot look into
        return job.whole()
    here.inside = True
    try:
        return attempt.go()
    finally:
        here.inside = False
        job.attempt = None  # or both would stay, with the batch, until Python looks for circles


def together(job, shared):
    """One of several ranks: nothing is done to it, and the guard restarts them all."""
    try:
        return job.whole()
    except Exception as error:
        if oom.caught(error):
            course(job.model).refuse(shared)
        raise


class Attempt:
    def __init__(self, job, found=None):
        self.job, self.course = job, found or course(job.model)
        self.splitter = self.course.splitter
        self.known = undo.known(job.model) if job.model is not None else None
        self.why_uncut = self.kept = self.window = self.mark = self.proof = None
        self.room_before = self.room_after = None
        self.done, self.tried = set(), set()  # weights that undo() tells of; ways to weigh
        self.is_looked_at = False
        self.is_shared = False  # with other ranks, which are met in the last part
        self.has_met = False  # them, in this try, or may have: it cannot be made again
        try:
            self.n = cut.count(job.batch)
        except cut.Uncut as why:
            self.n, self.why_uncut = 1, str(why)

    def sizes(self):
        if self.course.refused or self.why_uncut:
            return [self.n]
        return self.splitter.parts(self.n)

    def opened(self, sizes):
        is_cut = len(sizes) > 1
        try:
            self.mark, self.is_looked_at = self.job.mark(), not is_cut
            self.proof = proof.Proof(self) if is_cut and self.is_due(sizes) else None
            self.window = self.new_window(self.known, is_cut)
            self.job.attempt = self
            return True
        except Exception:  # a model that we cannot look into: layers that are lazy
            self.job.attempt = None
            return False

    def new_window(self, of, is_cut):
        # What ranks average is what is there, of earlier batches of the step, too.
        return undo.Window(of, self.job.is_fresh, is_apart=is_cut and not self.is_shared, is_whole=self.proof is not None,
                           done=() if self.is_shared else self.done)

    def go(self):
        while True:
            sizes = self.sizes()
            if not self.opened(sizes):
                return self.job.whole()
            self.has_met = self.is_shared and len(sizes) == 1
            try:
                result = self.job.whole() if len(sizes) == 1 else self.in_parts(sizes)
            except Exception as error:
                if not safely(self.goes_on, error, sizes):
                    self.window.put_back()
                    raise
                failure = forget(error)
            except BaseException:
                self.window.put_back()
                raise
            else:
                self.window.close()
                safely(self.fits, sizes)
                return result
            # Here nothing refers to the pass that failed any more.
            is_clean = safely(self.clean, failure)
            if not is_clean:
                self.course.refuse("what it had done could not be undone")
            if self.kept and (isinstance(failure, Refused) or not is_clean):
                raise self.kept

    def fits(self, sizes):
        self.course.steps += len(sizes) > 1
        self.splitter.fits(max(sizes), self.room_before, self.room_after)

    def windows_open(self):
        """One for each model in the pass."""
        return [self.window]

    def parameters(self):
        return list({id(p): p for window in self.windows_open() for p in window.of.parameters}.values())

    def clean(self, error):
        if not isinstance(error, (Refused, Again)):
            self.kept = self.kept or error
        release()
        for window in reversed(self.windows_open()):  # random numbers are those at the first one's beginning
            self.done |= window.undo()
        self.job.back(self.mark)
        if self.is_shared:
            ranks.has_met(self.job.shared or self.job.model)
        return True

    def in_parts(self, sizes):
        values, weights = [], []
        for piece in self.pieces(sizes):
            is_apart = piece.is_trial or not piece.is_last
            self.has_met = self.is_shared and not is_apart
            with ranks.apart(is_apart):
                piece.value = self.job.part(piece, cut.part(self.job.batch, self.n, piece.start, piece.stop))
            if not piece.is_trial and piece.weight:
                values.append(piece.value)
                weights.append(piece.weight)
        return self.job.joined(values, weights)

    def pieces(self, sizes):
        """The parts, one after the other; before them, at times, those of a proof."""
        settle()
        self.room_before = self.room_after = room()
        weigh = self.weigher(self.way())
        if self.proof:
            yield from self.proof.trials(sizes, weigh)
        parts, start = [], 0
        for size in sizes:
            parts.append(Piece(start, start + size, weigh(start, start + size)))
            start += size
        counting = [piece for piece in parts if piece.weight]  # where all labels are masked a mean is none
        if self.proof:
            self.proof.first(counting)
            parts = counting[:1] + [piece for piece in parts if piece is not counting[0]]
        counting[0].is_first = counting[-1].is_last = True
        for piece in parts:
            piece.is_dry = not piece.weight
            if piece.weight or self.job.is_seen:
                yield piece
                self.compare()

    def compare(self):
        """Called when a part is through, before anybody looks at its gradients."""
        shown, self.proof = self.proof, None
        if shown:
            shown.compare()

    def look(self):
        """Called before each backward pass: most of the memory is in use then. A layer may have been set to train since the last."""
        now = room()
        if now is not None and (self.room_after is None or now < self.room_after):
            self.room_after = now
        if not self.is_looked_at:
            self.is_looked_at = True
            whys = (why_inexact(window.of.module()) or acts_at_once(window.of.parameters) for window in self.windows_open())
            why = next(filter(None, whys), None)
            if why:
                raise Refused(why)

    def is_due(self, sizes):
        """A proof is, by the number of steps, or because this batch tells what earlier ones did not."""
        return self.course.is_due(len(sizes)) or not self.course.is_told_apart and proof.is_telling(self, sizes)

    def way(self):
        return self.course.weighing or self.job.ways()[0]

    def weigher(self, way):
        if way == "sum":
            return lambda start, stop: 1
        if way == "items":
            items = self.job.items()
            if items:  # else nothing is masked in this batch
                return lambda start, stop: sum(items[start:stop]) / sum(items)
        return lambda start, stop: (stop - start) / self.n

    def goes_on(self, error, sizes):
        """Whether the pass is made again, after what it failed of."""
        if isinstance(error, (Refused, Again)):
            if isinstance(error, Refused):
                self.course.refuse(str(error))
            return True
        if self.has_met:  # all ranks have to begin anew
            oom.caught(error, batch=self.n, micro=max(sizes))
            return False
        if not oom.is_oom(error):
            if len(sizes) > 1 and not self.window.lost:  # it may well be because of us
                self.course.refuse(f"done in parts it fails ({type(error).__name__})")
                return True
            return False
        return self.ran_out(error, max(sizes))

    def ran_out(self, error, size):
        """Memory did, with `size` samples at once."""
        oom.caught(error, batch=self.n, micro=size)
        why = self.why_not(error)
        if not why and self.proof and self.proof.is_dry:
            why = "no more than one sample fits, so there was nothing to compare it with"
        if not why and not self.splitter.failed(size) and not lightened(*(w.of.module() for w in self.windows_open())):
            why = TOO_LARGE
        if why:
            self.course.refuse(why)
        return not why

    def why_not(self, error):
        if oom.is_sticky(error):
            return "the device is lost for this process"
        if self.why_uncut:
            return self.why_uncut
        if self.course.refused:
            return self.course.refused
        whys = (why_inexact(w.of.module()) or w.lost or acts_at_once(w.of.parameters) for w in self.windows_open())
        return next(filter(None, whys), None)


def has_masked(labels):
    """Whether these are labels, and some are masked."""
    if getattr(labels, "ndim", 0) < 2 or not hasattr(labels, "is_floating_point") or labels.is_floating_point() or \
            labels.dtype == sys.modules["torch"].bool:
        return False
    return bool((labels == MASKED).any())


def offer():
    """The guard may ask for less from now on."""
    from .. import talk
    talk.offer(shrink=sizing.shrink)


def tell(kind, sentence):
    from .. import talk
    talk.event(kind, sentence)


def safely(act, *args):
    """What it says; a no, if it fails: no error of ours is the program's."""
    try:
        return act(*args)
    except Exception:
        return False


def forget(error):
    """The error without what the frames hold that it came through: the tensors of the pass that failed."""
    seen, due = set(), [error]
    while due:
        one = due.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            traceback.clear_frames(one.__traceback__)
            due += [one.__context__, one.__cause__]
    return error


def bare(error):
    """The error as it would be without us: no frames of ours among those that it came through."""
    try:
        frames, trace = [], error.__traceback__
        while trace:
            if not trace.tb_frame.f_code.co_filename.startswith(OURS):
                frames.append(trace)
            trace = trace.tb_next
        for frame in reversed(frames):
            trace = types.TracebackType(trace, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
        return error.with_traceback(trace)
    except Exception:
        return error


def release():
    """Gives back what a failed pass held."""
    gc.collect()
    host.trim()
    torch = sys.modules["torch"]
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def lightened(*models):
    """One sample alone did not fit. Whether less may be needed from now on."""
    return any([*map(lighten.lighten, models), pack()])


def pack():
    """The GPU's allocator of torch keeps pieces of blocks that fit nothing else: over a third of the budget was seen lost to them,
    where one sample takes most of it. From now on its blocks can grow, and what is free in them is free for all. Whether that is new."""
    global _packed
    torch = sys.modules["torch"]
    if _packed or not torch.cuda.is_initialized():
        return False
    _packed = True
    try:
        before = next(filter(None, map(os.environ.get, ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"))), "")
        if "expandable_segments:True" in before:
            return False
        settings = ",".join(filter(None, (*(one for one in before.split(",") if "expandable" not in one), "expandable_segments:True")))
        give = getattr(torch._C, "_accelerator_setAllocatorSettings", None) or torch._C._cuda_cudaCachingAllocator_set_allocator_settings
        give(settings)
        return True
    except Exception:  # another torch, or another allocator
        return False


def settle():
    """The C library keeps freed blocks of some MiB in a heap, and by and by the parts of a batch lie all over it: eight parts were
    seen to take twice what the whole had. From now on blocks of a MiB come from the kernel and go back to it."""
    global _settled
    if _settled or sys.modules["torch"].cuda.is_initialized():
        return
    _settled = True
    try:
        import ctypes
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 20)
    except Exception:  # another C library
        pass


def inexact(model):
    """What in a model makes parts differ from the whole: a word to a sentence."""
    torch = sys.modules["torch"]
    found = {}
    for layer in model.modules() if model is not None else ():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            if layer.training:
                found["BatchNorm"] = "it has BatchNorm, whose means are those of what goes through at once"
        elif isinstance(layer, torch.nn.modules.dropout._DropoutNd):
            if layer.training and layer.p > 0:
                found["dropout"] = "it has dropout, which draws other random numbers for parts than for the whole"
        elif type(layer).__name__ == "_SpectralNorm" or any(type(hook).__name__ == "SpectralNorm" for hook in
                                                            layer._forward_pre_hooks.values()):
            found["spectral norm"] = "it has spectral norm, which moves on with each pass"
    return found


def acts_at_once(parameters):
    """Why a gradient must not come in parts; None: it may."""
    if any(getattr(p, "_post_accumulate_grad_hooks", None) for p in parameters):
        return "something acts on each gradient as soon as it is there (an optimizer inside of backward)"
    if any(p.grad is not None and p.grad.is_sparse for p in parameters):
        return "its gradients are sparse"
    return None


def why_inexact(model):
    """None: parts are the same as the whole, or need not be."""
    return None if policy.is_inexact_allowed() else "; ".join(inexact(model).values()) or None


def distributed(model):
    """Why all ranks would have to agree; None: there is one, or it is about what is this rank's own."""
    torch = sys.modules["torch"]
    if ranks.is_inside():
        return None
    if torch.distributed.is_available() and torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
        return "several processes train together, and one cannot decide for all"
    if type(model).__name__ in ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel"):
        return "the model is spread over several devices"
    return None


def room():
    """Bytes that may still be taken: of the GPU where it is in use, else of the host. None: not known."""
    try:
        torch = sys.modules["torch"]
        if not torch.cuda.is_initialized():
            return host.room()
        free, total = torch.cuda.mem_get_info()
        taken = torch.cuda.memory_allocated()
        free += torch.cuda.memory_reserved() - taken
        budget = os.environ.get("ANTIFREEZE_GPU_BUDGET", "")
        return max(0, min(free, (int(budget) if budget.isdigit() else total) - taken))
    except Exception:
        return None
