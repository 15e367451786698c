"""Whether a batch in parts comes to the same as the whole. The whole may never have fitted, so two cuts are compared, of parts that
do: one as the step is made, the other of smaller, uneven parts whose ends are elsewhere. If what comes of a batch does not depend on
where it is cut, samples do not act on each other, and the losses are weighed as they must be.

It takes a step's time once more, and next to no memory: of the gradients of the one cut only some are kept.
"""
import itertools
import math
import sys

from .. import policy
from . import torch_step

# How far the gradients of two cuts may be apart, as a share of their length: rounding alone. By precision.
ROUNDING = {"float64": 1e-7, "float32": 2e-4, "tf32": 5e-3, "half": 5e-2}
NOISE = 1e-2  # a weight whose gradient is so small a share of all counts as that large: its own may be nothing but rounding
LOSS_NEAR = .3  # where draws differ (dropout): how near the losses must be for a way of weighing to be believed
TELLING = .02  # of a part: by how much two ways to weigh must differ for a proof to tell them apart
KEPT = 1 << 12  # elements of a gradient that are kept, evenly over it, with the length of the whole


class Proof:
    def __init__(self, attempt):
        self.attempt, self.job = attempt, attempt.job
        self.names = {}  # what in the model makes parts differ
        self.others, self.parts, self.gradients = [], [], None
        self.is_dry = False

    def trials(self, most, weigh):
        """The other cut, one part after the other. Then all is as before."""
        before, mark = {id(p): p.grad for p in self.attempt.parameters()}, self.job.mark()
        self.is_dry = most == 1  # two at once do not fit: then by their losses, for which nothing need be kept
        self.set_gradients({})
        yield from self.others_of(another_cut(self.attempt.n, most), weigh)
        self.gradients = self.sketches()
        if self.attempt.is_shared:  # other ranks' gradients are among those of the step itself
            self.rewind({}, mark)
            others, self.others = self.others, []
            yield from self.others_of(even_cut(self.attempt.n, most), weigh)
            self.others, self.parts = others, self.others
            self.compare()
            self.attempt.proof = None
        self.is_dry = False
        self.rewind(before, mark)

    def others_of(self, cuts, weigh):
        for start, stop in cuts:
            piece = torch_step.Piece(start, stop, weigh(start, stop), is_trial=True, is_dry=self.is_dry)
            if piece.weight:
                yield piece
                if not self.others:
                    self.look()
                self.others.append(piece)

    def rewind(self, gradients, mark):
        self.set_gradients(gradients)
        for window in reversed(self.attempt.windows_open()):
            window.rewind()
        self.job.back(mark)

    def set_gradients(self, gradients):
        for p in self.attempt.parameters():
            p.grad = gradients.get(id(p))

    def sketches(self):
        return None if self.is_dry else [sketch(p.grad) for p in self.attempt.parameters()]

    def look(self):
        """After the first of them: has something moved that would do so with each part?"""
        for window in self.attempt.windows_open():
            self.names.update({**window.moved(), **torch_step.inexact(window.of.module())})
        if self.names and not policy.is_inexact_allowed():
            raise torch_step.Refused("; ".join(self.names.values()))

    def compare(self):
        """The parts of the step are through. Raises Refused, or Again."""
        attempt, course, way = self.attempt, self.attempt.course, self.attempt.way()
        far = None if self.gradients is None else distance(self.gradients, self.sketches())
        best, off, own = self.best_way(way)
        if not math.isfinite(off) or far is not None and not math.isfinite(far):
            return  # no numbers (a loss that is scaled too much): the next step may tell
        is_same = (own if far is None else far) <= tolerance(attempt.parameters(), self.job.is_mixed) and not self.names
        if best != way and not is_same and off <= LOSS_NEAR and best not in attempt.tried and not course.is_told_apart:
            attempt.tried |= {way, best}
            course.weighing = best
            raise torch_step.Again()
        if is_same:
            self.trust(course, own if far is None else far)
        elif policy.is_inexact_allowed() and off <= LOSS_NEAR:
            self.trust(course, None)
        else:
            since = "what was the same before is not so any more: " if course.proofs else ""
            raise torch_step.Refused(f"{since}done in parts its gradients are {share(own if far is None else far)} off: samples of one "
                                     "batch act on each other (negatives within the batch, mixing of samples, a loss that balances "
                                     "experts), or the loss is no mean")

    def best_way(self, own):
        """The way of weighing by which the losses of both cuts come to the same, by how much they miss it, and by how much by `own`."""
        found = {}
        for way in self.job.ways():
            weigh = self.attempt.weigher(way)
            one, other = (sum(number(piece.value) * weigh(piece.start, piece.stop) for piece in pieces)
                          for pieces in (self.parts, self.others))
            off = abs(one - other) / max(abs(one), abs(other), 1e-12)
            found[way] = 0 if off < 1e-5 else off
        best = min(found, key=found.get)
        return best, found[best], found.get(own, math.inf)

    def trust(self, course, far):
        course.proofs += 1
        course.is_told_apart = course.is_told_apart or is_telling(self.attempt)
        course.weighing = self.attempt.way()
        if course.proofs > 1:
            return
        if far is not None:
            torch_step.tell("note", f"the batch in parts was compared with other parts: gradients differ by {share(far)}, "
                                     "which is rounding")
        elif self.names:
            torch_step.tell("note", f"the batch is split though it is not exact ({', '.join(self.names)}), as --allow-inexact asks")
        else:
            torch_step.tell("note", "the batch is split though it could not be shown to be exact, as --allow-inexact asks")


def another_cut(n, most):
    """Where its parts start and stop, none larger than `most` (two, if that is one). One as large as that comes first: if it does not
    fit, nothing was done in vain. The others are smaller, of two sizes in turn; of one sample only where it must be, for some layers
    (BatchNorm, if it was asked for) fail of that."""
    if most == 1:
        yield from even_cut(n, 2)
        return
    small = max(2, most // 3) if most > 3 else 1
    start = min(small, n - most)
    yield start, start + most
    yield 0, start
    start += most
    for size in itertools.cycle((small, (most + 1) // 2)):
        if start >= n:
            return
        if start + size == n - 1 and size < most:
            size += 1
        yield start, min(start + size, n)
        start += size


def even_cut(n, most):
    for start in range(0, n, most):
        yield start, min(start + most, n)


def is_telling(attempt):
    """Whether this batch would tell one way to weigh from another: samples and what counts of them (labels that are not masked) are
    not in proportion."""
    if "items" not in attempt.job.ways() or attempt.splitter.most is None:
        return False
    by_items, by_samples = attempt.weigher("items"), attempt.weigher("samples")
    parts = even_cut(attempt.n, attempt.splitter.most)
    return any(abs(by_items(*part) - by_samples(*part)) > TELLING * by_samples(*part) for part in parts)


def sketch(gradient):
    """Its length, some of its elements, and by how much those are to be stretched to be as long as all; None and zero are the same."""
    if gradient is None:
        return 0., None, 1.
    flat = gradient.detach().reshape(-1)
    flat = flat if flat.dtype.itemsize > 2 else flat.float()
    some = flat[::max(1, flat.numel() // KEPT)].clone()
    return float(flat.norm()), some, math.sqrt(flat.numel() / max(1, some.numel()))


def distance(one, other):
    """The largest share by which a weight's gradient is off."""
    least, worst = NOISE * math.hypot(*(length for length, _, _ in one)), 0.
    for (length, some, stretch), (other_length, other_some, _) in zip(one, other):
        if some is None or other_some is None:
            off = max(length, other_length)
        else:
            off = max(abs(length - other_length), float((some - other_some).norm()) * stretch)
        if off != off:
            return float("inf")
        worst = max(worst, off / max(length, least, 1e-30))
    return worst


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


def number(value):
    return float(value) if value is not None else 0.


def share(part):
    return f"{part * 100:.2g} %"
