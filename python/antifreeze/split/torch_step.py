"""One forward and backward pass of torch over a batch, in as many parts as memory needs. The Trainer (split/on_transformers.py),
Lightning (split/on_lightning.py) and antifreeze.micro() give it a pass as a Job; step, schedule and callbacks stay theirs.

A pass is tried whole. When memory runs out, the error is let go with all that it holds, what the pass has written is undone
(split/undo.py), and the batch goes through again in halves, and so on; from then on at once. If one sample alone does not fit, the
model is asked to keep less for the way back (split/lighten.py).

Proof before trust: the first part is also done in two uneven ones, and their gradients must be the same but for rounding. That
also tells how the loss is to be weighed: by samples, by what is not masked, or not at all (a sum). Where the parts cannot be
the same by their nature (BatchNorm, dropout, a loss over pairs of samples), the batch is not split unless it was asked for.
"""
import gc
import math
import os
import sys
import threading
import traceback

from .. import policy, room as host
from ..see import oom
from . import cut, lighten, sizing, undo

# How far the gradients of a part may be from those of its two parts, as a share of their length: rounding alone. By precision.
ROUNDING = {"float64": 1e-7, "float32": 2e-4, "tf32": 5e-3, "half": 5e-2}
NOISE = 1e-2  # a weight whose gradient is so small a share of all counts as that large: its own may be nothing but rounding
LOSS_NEAR = .3  # where draws differ (dropout): how near the losses must be for a way of weighing to be believed
MASKED = -100  # what torch's losses pass over, if not told otherwise
TELLING = .02  # of a part: by how much two ways to weigh must differ for a proof to tell them apart
PROOFS = 3  # that did not tell them apart, in as many batches: then it makes no difference

M_MMAP_THRESHOLD = -3  # of glibc's mallopt()
_settled = False

here = threading.local()  # .inside: this thread is in a pass that is cared for


class Refused(Exception):
    """The batch is not to be split, and why."""


class Again(Exception):
    """The pass is to be made anew, weighed in another way."""


class Job:
    """A pass over a batch. A framework has its own kind of this."""
    is_fresh = False  # the pass itself zeroes gradients first
    is_mixed = False  # computes in half precision

    model = batch = None
    masked = None  # which arrays of the batch are labels with masked ones among them, once looked at
    attempt = None  # who runs it: part() calls attempt.look() before it goes back

    def whole(self):
        """The pass as it would be without us."""

    def part(self, piece, batch):
        """The pass over some samples: backward with the loss times piece.weight. Returns the loss, not weighed, without its graph."""

    def joined(self, values, weights):
        """What whole() would have returned."""

    def ways(self):
        """Ways to weigh the loss of a part, the likeliest first."""
        return ("items", "samples", "sum") if self.items(self.batch) else ("samples", "sum")

    def items(self, batch):
        """What the loss is a mean of, if that are not samples: labels that are not masked, where the whole batch has masked ones."""
        if self.masked is None:
            self.masked = [has_masked(array) for array in cut.arrays(self.batch)]
        return sum(int((array != MASKED).sum()) for array, is_masked in zip(cut.arrays(batch), self.masked) if is_masked)

    def mark(self):
        """What else a pass changes, for back()."""

    def back(self, mark):
        pass


class Piece:
    """Samples [start, stop), and the share of their loss. Whoever makes it sets `value`, the loss."""
    is_trial = False  # of the proof: counts for nothing
    is_dry = False  # the loss alone is asked for: no gradients are to be kept or computed
    value = None

    def __init__(self, start, stop, weight, is_first=False, is_last=False):
        self.start, self.stop, self.weight, self.is_first, self.is_last = start, stop, weight, is_first, is_last


class Trial(Piece):
    is_trial = True


class Dry(Trial):
    is_dry = True


def run(job):
    """job.whole(), or as much like it as memory allows."""
    if getattr(here, "inside", False):
        return job.whole()
    shared = distributed(job.model)
    if shared:
        return together(job, shared)
    try:
        attempt = Attempt(job)
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
            refuse(undo.known(job.model), shared)
        raise


class Attempt:
    def __init__(self, job):
        self.job, self.known, self.splitter = job, undo.known(job.model), sizing.splitter
        self.why_uncut = self.kept = self.window = self.mark = None
        self.room_before = self.room_after = None
        self.is_telling = True  # a proof would tell ways to weigh apart
        try:
            self.n = cut.count(job.batch)
        except cut.Uncut as why:
            self.n, self.why_uncut = 1, str(why)

    def sizes(self):
        if self.known.refused or self.why_uncut:
            return [self.n]
        return self.splitter.parts(self.n)

    def opened(self):
        try:
            self.mark = self.job.mark()
            self.window = undo.Window(self.known, self.job.is_fresh)
            self.job.attempt = self
            return True
        except Exception:  # a model that we cannot look into: layers that are lazy
            self.job.attempt = None
            return False

    def go(self):
        while True:
            sizes = self.sizes()
            if not self.opened():
                return self.job.whole()
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
                safely(self.splitter.fits, max(sizes), self.room_before, self.room_after)
                return result
            # Here nothing refers to the pass that failed any more.
            is_clean = safely(self.clean, failure)
            if not is_clean:
                self.refuse("what it had done could not be undone")
            if self.kept and (isinstance(failure, Refused) or not is_clean):
                raise self.kept

    def windows_open(self):
        """One for each model in the pass."""
        return [self.window]

    def parameters(self):
        return list({id(p): p for window in self.windows_open() for p in window.of.parameters}.values())

    def is_proven(self):
        return all(window.of.is_proven for window in self.windows_open())

    def clean(self, error):
        if not isinstance(error, (Refused, Again)):
            self.kept = self.kept or error
        release()
        self.window.undo()
        self.job.back(self.mark)
        return True

    def in_parts(self, sizes):
        values, weights = [], []
        for piece in self.pieces(sizes):
            piece.value = self.job.part(piece, cut.part(self.job.batch, self.n, piece.start, piece.stop))
            if not piece.is_trial:
                values.append(piece.value)
                weights.append(piece.weight)
        return self.job.joined(values, weights)

    def pieces(self, sizes):
        """The parts, one after the other; among them, once, those of the proof."""
        settle()
        self.room_before = self.room_after = room()
        weigh = self.weigher(self.way())
        cuts = [(start, stop, middle, weigh(start, stop)) for start, stop, middle in self.order(sizes)]
        cuts = [one for one in cuts if one[-1]]  # where all labels are masked a mean is none
        for number, (start, stop, middle, weight) in enumerate(cuts):
            piece = Piece(start, stop, weight, number == 0, number == len(cuts) - 1)
            yield piece
            if number == 0 and not self.is_proven():
                yield from self.proof(piece, weigh, middle)
            elif number == 0:
                self.look_again()

    def look_again(self):
        """A layer may have been set to train since the proof."""
        for window in self.windows_open():
            why = why_inexact(window.of.module())
            if why:
                raise Refused(why)

    def order(self, sizes):
        """Where parts start, stop, and would be parted for a proof. The part that tells ways to weigh apart comes first, once: where
        samples and what counts of them (labels that are not masked) are not in proportion."""
        found, start = [], 0
        for size in sizes:
            found.append((start, start + size, start + max(1, size // 3)))
            start += size
        if "items" not in self.job.ways() or self.is_proven():
            return found
        by_items, by_samples = self.weigher("items"), self.weigher("samples")

        def telling(cut_at):
            start, stop, middle = cut_at
            items = by_items(start, stop)  # a part without any is left out
            return abs(by_items(start, middle) / items - by_samples(start, middle) / by_samples(start, stop)) if items else 0.

        best = max(((start, stop, middle) for start, stop, _ in found for middle in range(start + 1, stop)), key=telling, default=None)
        if best:
            found = [best] + [one for one in found if one[0] != best[0]]
            self.is_telling = telling(best) > TELLING
        return found

    def look(self):
        """Called before each backward pass: most of the memory is in use then."""
        now = room()
        if now is not None and (self.room_after is None or now < self.room_after):
            self.room_after = now

    def way(self):
        return self.known.weighing or self.job.ways()[0]

    def weigher(self, way):
        if way == "sum":
            return lambda start, stop: 1
        if way == "items":
            count = lambda start, stop: self.job.items(cut.part(self.job.batch, self.n, start, stop))
            total = count(0, self.n)
            return lambda start, stop: count(start, stop) / total if total else 1
        return lambda start, stop: (stop - start) / self.n

    def proof(self, piece, weigh, middle):
        """Two uneven parts of the first one, from the same start: do they come to the same?"""
        windows, parameters, names = self.windows_open(), self.parameters(), {}
        for window in windows:
            names.update({**window.moved(), **inexact(window.of.module())})
        if names and not policy.is_inexact_allowed():
            raise Refused("; ".join(names.values()))
        whole, mark = [p.grad for p in parameters], self.job.mark()
        after = undo.numbers({which: any(window.of.draws[which] for window in windows) for which in self.known.draws})
        written = [(buffers, name, buffers[name].detach().clone()) for window in windows for buffers, name, *_ in window.buffers]
        self.set_gradients(parameters, [None] * len(parameters))
        for window in reversed(windows):
            window.rewind()
        far = None  # only the losses are known
        if piece.stop - piece.start > 1:
            first, second = Trial(piece.start, middle, weigh(piece.start, middle)), Trial(middle, piece.stop, weigh(middle, piece.stop))
        else:  # two at once do not fit: then by their losses, for which nothing need be kept
            piece, first, second = Dry(0, 2, weigh(0, 2)), Dry(0, 1, weigh(0, 1)), Dry(1, 2, weigh(1, 2))
        yield from (one for one in (piece, first, second) if one.is_trial and one.weight)
        if not piece.is_trial:
            far = distance(whole, [p.grad for p in parameters])
        # Where the whole is no number (a loss that is scaled too much), or counts for nothing, the next step may tell.
        if piece.weight and math.isfinite(number(piece.value)) and (far is None or math.isfinite(length(whole))):
            self.judge(piece, (first, second), names, far)
        self.set_gradients(parameters, whole)
        undo.set_numbers(after)
        with sys.modules["torch"].no_grad():
            for buffers, name, buffer in written:
                buffers[name].copy_(buffer)
        self.job.back(mark)

    @staticmethod
    def set_gradients(parameters, gradients):
        for p, g in zip(parameters, gradients):
            p.grad = g

    def judge(self, piece, halves, names, far):
        """far: by how much the gradients differ; None: only the losses are known."""
        way = self.way()
        best, off = self.best_way(piece, halves)
        far = off if far is None else far
        is_same = far <= tolerance(self.parameters(), self.job.is_mixed) and not names
        if best != way and not is_same and off <= LOSS_NEAR and self.known.weighing is None:
            self.known.weighing = best
            raise Again()
        if is_same and (piece.is_trial is False or best == way):
            self.trust("exact", far)
        elif policy.is_inexact_allowed() and off <= LOSS_NEAR:
            self.trust("inexact", far, names)
        else:
            raise Refused(f"done in parts its gradients are {share(far)} off: samples of one batch act on each other (negatives "
                          "within the batch, mixing of samples, a loss that balances experts), or the loss is no mean")

    def best_way(self, piece, halves):
        """The way of weighing by which the losses of the parts come to that of the whole, and by how much they miss it."""
        found = []
        for way in self.job.ways():
            weigh = self.weigher(way)
            aim = number(piece.value) * weigh(piece.start, piece.stop)
            got = sum(number(half.value) * weigh(half.start, half.stop) for half in halves)
            off = abs(got - aim) / max(abs(aim), 1e-12)
            found.append((0 if off < 1e-5 else off, len(found), way))
        off, _, way = min(found)
        return way, off

    def trust(self, how, far, names=()):
        self.known.proofs += 1
        if not self.is_telling and self.known.proofs < PROOFS:
            return
        for window in self.windows_open():
            window.of.is_proven = True
        self.known.weighing = self.way()
        if how == "exact":
            tell("note", f"the batch in parts was compared with the whole: gradients differ by {share(far)}, which is rounding")
        elif names:
            tell("note", f"the batch is split though it is not exact ({', '.join(names)}), as --allow-inexact asks")
        else:
            tell("note", "the batch is split though it could not be shown to be exact, as --allow-inexact asks")

    def goes_on(self, error, sizes):
        """Whether the pass is made again, after what it failed of."""
        if isinstance(error, (Refused, Again)):
            if isinstance(error, Refused):
                self.refuse(str(error))
            return True
        if not oom.is_oom(error):
            if len(sizes) > 1 and not self.window.lost:  # it may well be because of us
                self.refuse(f"done in parts it fails ({type(error).__name__})")
                return True
            return False
        oom.caught(error, batch=self.n, micro=max(sizes))
        why = self.why_not(error)
        if not why and not self.splitter.failed(max(sizes)) and not lighten.lighten(self.known.module()):
            why = "one sample alone does not fit. Less precision (--amp), an optimizer of 8 bits, or more devices would help"
        if why:
            self.refuse(why)
        return not why

    def why_not(self, error):
        if oom.is_sticky(error):
            return "the device is lost for this process"
        if self.why_uncut:
            return self.why_uncut
        if self.known.refused:
            return self.known.refused
        whys = (why_inexact(window.of.module()) or window.lost for window in self.windows_open())
        return next(filter(None, whys), None)

    def refuse(self, why):
        refuse(self.known, why)


def has_masked(labels):
    """Whether these are labels, and some are masked."""
    if getattr(labels, "ndim", 0) < 2 or not hasattr(labels, "is_floating_point") or labels.is_floating_point() or \
            labels.dtype == sys.modules["torch"].bool:
        return False
    return bool((labels == MASKED).any())


def refuse(known, why):
    if known.refused is None:
        known.refused = why
        tell("refuse", f"the batch is not split: {why}")


def offer():
    """The guard may ask for less from now on."""
    from .. import talk
    talk.offer(shrink=sizing.splitter.shrink)


def tell(kind, sentence):
    from .. import talk
    talk.event(kind, sentence)


def safely(act, *args):
    """What it says; a no, if it fails: no error of ours is the program's."""
    try:
        return act(*args)
    except Exception:
        return False


def number(value):
    return float(value) if value is not None else 0.


def share(part):
    return f"{part * 100:.2g} %"


def forget(error):
    """The error without what it came through: frames hold the tensors of the pass that failed."""
    traceback.clear_frames(error.__traceback__)
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def release():
    """Gives back what a failed pass held."""
    gc.collect()
    host.trim()
    torch = sys.modules["torch"]
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


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


def distance(whole, parts):
    """The largest share by which a weight's gradient is off. None and zero are the same."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        pairs = [(w, p) for w, p in zip(whole, parts) if w is not None or p is not None]
        least, worst = NOISE * length(whole), 0.
        for w, p in pairs:
            off = length([w - p] if w is not None and p is not None else [p if w is None else w])
            if off != off:
                return float("inf")
            worst = max(worst, off / max(length([w]), least, 1e-30))
    return worst


def length(tensors):
    """Of all of them in a row."""
    return math.hypot(*(float(one.detach().float().norm()) for one in tensors if one is not None))


def tolerance(parameters, is_mixed):
    torch = sys.modules["torch"]
    kinds = {p.dtype for p in parameters if p.requires_grad}
    if is_mixed or torch.float16 in kinds or torch.bfloat16 in kinds or torch.is_autocast_enabled():
        return ROUNDING["half"]
    if kinds == {torch.float64}:
        return ROUNDING["float64"]
    if any(p.is_cuda for p in parameters[:1]) and (torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32):
        return ROUNDING["tf32"]
    return ROUNDING["float32"]


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


def why_inexact(model):
    """None: parts are the same as the whole, or need not be."""
    return None if policy.is_inexact_allowed() else "; ".join(inexact(model).values()) or None


def distributed(model):
    """Why all ranks would have to agree; None: there is one."""
    torch = sys.modules["torch"]
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
