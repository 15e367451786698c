"""Whether a batch in parts comes to the same as the whole. The whole may never have fitted, so one part is compared with its own
samples in two uneven pieces. If what comes of them does not depend on where they are cut, samples do not act on each other, and the
losses are weighed as they must be.

Which part: another one each time, but of those whose two pieces are unlike each other (other classes, more labels that are masked):
of pieces that are alike, much comes to the same that else would not. Where all parts are alike within, it is samples of two of them.

It takes as long as that part once more, and next to no memory: its pieces go first, and of their gradients only some are kept.
"""
import collections
import math
import sys

from .. import policy
from . import cut, torch_step

# How far the gradients of a part and its pieces may be apart, as a share of their length: rounding alone. By precision.
ROUNDING = {"float64": 1e-7, "float32": 2e-4, "tf32": 5e-3, "half": 5e-2}
NOISE = 1e-2  # a weight whose gradient is so small a share of all counts as that large: its own may be nothing but rounding
LOSS_NEAR = .3  # where draws differ (dropout): how near the losses must be for a way of weighing to be believed
TELLING = .02  # how unlike two pieces must be, as a share, for a proof to tell one way to weigh from another
KEPT = 1 << 12  # elements of a gradient that are kept, evenly over it, with the length of the whole


class Proof:
    def __init__(self, attempt):
        self.attempt, self.job = attempt, attempt.job
        self.names = {}  # what in the model makes parts differ
        self.samples = None  # which are compared: (start, middle, stop)
        self.whole, self.pieces, self.gradients = None, [], None
        self.is_dry = False

    def trials(self, sizes, weigh):
        """The pieces, one after the other, the larger one first: if it does not fit, little was done in vain. Then all is as before,
        and the part itself is to come first; unless it cannot be compared, and is tried here, too."""
        before, mark = {id(p): p.grad for p in self.attempt.parameters()}, self.job.mark()
        self.is_dry = max(sizes) == 1  # two at once do not fit: then by their losses, for which nothing need be kept
        self.samples, is_part = chosen(self.attempt, sizes)
        start, middle, stop = self.samples
        self.set_gradients({})
        pieces = self.piece(start, middle, weigh), self.piece(middle, stop, weigh)
        for piece in sorted(pieces, key=lambda piece: piece.start - piece.stop):
            if piece.weight:
                yield piece
                if not self.pieces:
                    self.look()
                self.pieces.append(piece)
        self.gradients = self.sketches()
        if self.is_dry or not is_part or self.attempt.is_shared:  # other ranks' gradients may be among those of the step itself
            self.rewind({}, mark)
            self.whole = self.piece(start, stop, weigh)
            yield self.whole
            self.compare()
            self.attempt.proof = None
        self.is_dry = False
        self.rewind(before, mark)

    def piece(self, start, stop, weigh):
        return torch_step.Piece(start, stop, weigh(start, stop), is_trial=True, is_dry=self.is_dry)

    def first(self, parts):
        """The part that is compared, before the others."""
        if self.whole is None:
            self.whole = next(part for part in parts if part.start == self.samples[0])
            parts.remove(self.whole)
            parts.insert(0, self.whole)

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
        """The part is through as a whole. Raises Refused, or Again."""
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
        """The way of weighing by which the losses of the pieces come to that of the part, by how much they miss it, and by how
        much by `own`."""
        found = {}
        for way in self.job.ways():
            weigh = self.attempt.weigher(way)
            one, other = (sum(number(piece.value) * weigh(piece.start, piece.stop) for piece in pieces)
                          for pieces in ([self.whole], self.pieces))
            off = abs(one - other) / max(abs(one), abs(other), 1e-12)
            found[way] = 0 if off < 1e-5 else off
        best = min(found, key=found.get)
        return best, found[best], found.get(own, math.inf)

    def trust(self, course, far):
        course.proofs += 1
        course.is_told_apart = course.is_told_apart or items_apart(self.job, *self.samples) > TELLING
        course.weighing = self.attempt.way()
        if course.proofs > 1:
            return
        if far is not None:
            torch_step.tell("note", f"a part of the batch was compared with smaller ones: gradients differ by {share(far)}, "
                                     "which is rounding")
        elif self.names:
            torch_step.tell("note", f"the batch is split though it is not exact ({', '.join(self.names)}), as --allow-inexact asks")
        else:
            torch_step.tell("note", "the batch is split though it could not be shown to be exact, as --allow-inexact asks")


def chosen(attempt, sizes):
    """Which samples are to be compared, (start, middle, stop), and whether that is a part."""
    parts, seams = cuts(sizes)
    if max(sizes) == 1:
        return seams[attempt.course.proofs % len(seams)], False
    job, course, items = attempt.job, attempt.course, attempt.job.items()
    parts = [part for part in parts if not items or any(items[part[0]:part[2]])] or parts
    if "items" in job.ways() and not course.is_told_apart:
        apart = lambda samples: items_apart(job, *samples)
    else:
        classes = labels(job.batch, attempt.n)
        apart = lambda samples: max((labels_apart(one, *samples) for one in classes), default=0.)
    telling = [part for part in parts if apart(part) > TELLING]
    if not telling:
        telling = [seam for seam in seams if apart(seam) > TELLING]
        if telling:
            return telling[-course.proofs % len(telling)], False
    parts = telling or parts
    return parts[-course.proofs % len(parts)], True  # the first one, the last, the one before it


def cuts(sizes):
    """(start, middle, stop) of each part that can be cut, and of samples on both sides of where one ends, no more than a part has.
    Of one sample only where it must be, for some layers (BatchNorm, if it was asked for) fail of that."""
    parts, seams, start, most = [], [], 0, max(sizes)
    for size in sizes:
        if start:
            seams.append((max(0, start - max(1, most // 3)), start, start + min(size, max(1, most // 4))))
        if size > 1:
            parts.append((start, start + (max(2, size // 6) if size > 3 else 1), start + size))
        start += size
    return parts, seams


def is_telling(attempt, sizes):
    """Whether this batch would tell one way to weigh from another: samples and what counts of them (labels that are not masked) are
    not in proportion."""
    parts, seams = cuts(sizes)
    return "items" in attempt.job.ways() and any(items_apart(attempt.job, *samples) > TELLING for samples in parts + seams)


def items_apart(job, start, middle, stop):
    """By how much the share of the first piece differs, of samples and of what counts of them."""
    items = job.items()
    total = sum(items[start:stop]) if items else 0
    return abs(sum(items[start:middle]) / total - (middle - start) / (stop - start)) if total else 0.


def labels(batch, n):
    """What may be the classes of the samples: whole numbers, one a sample."""
    return [one.tolist() for one in cut.arrays(batch) if getattr(one, "ndim", 0) == 1 and one.shape[0] == n and
            hasattr(one, "is_floating_point") and not one.is_floating_point() and not one.is_complex()]


def labels_apart(classes, start, middle, stop):
    """The share of samples that would have to be of another class for both pieces to be alike."""
    one, other = collections.Counter(classes[start:middle]), collections.Counter(classes[middle:stop])
    return sum(abs(one[label] / (middle - start) - other[label] / (stop - middle)) for label in one | other) / 2


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
