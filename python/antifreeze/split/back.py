"""Part of a batch on its way through a model, of which only the samples are kept: on the way back it is computed again just before
its gradients are (torch's own checkpointing, by samples instead of by layers). If memory runs out there, it is tried again in
halves: nobody has seen anything of it yet, for its gradients are handed over when they are whole.

torch.utils.checkpoint could do the first, but not the second: there the gradients are on their way into the weights by then.
"""
import contextlib
import functools
import sys

from .. import policy
from ..see import oom
from . import cut, proof, sizing, torch_step, undo

OTHER = "Antifreeze computes parts of a batch again on the way back, and the model gave something else than before: it, or what it " \
        "uses, was changed in between (a setting, a weight, the batch)"


def through(call, args, kwargs):
    """What call.again(*args, **kwargs) gives."""
    batch = args, kwargs
    part = Part(call, batch)
    outputs = function().apply(part, batch, *part.weights, *filter(is_wanted, cut.arrays(batch)))
    made, part.made = part.made, None  # with it, part would keep itself alive
    return cut.filled(made, iter(outputs))


@functools.lru_cache(None)
def function():
    class AntifreezePart(sys.modules["torch"].autograd.Function):
        @staticmethod
        def forward(ctx, part, batch, *_):
            outputs = part.forth(*batch)
            ctx.part = part
            # torch lets go of these after the way back, and says so if they were written before it.
            ctx.save_for_backward(*part.weights, *filter(is_tensor, cut.arrays(batch)))
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(*(one for one, is_one in zip(outputs, part.has_gradients(outputs)) if not is_one))
            return tuple(outputs)

        @staticmethod
        def backward(ctx, *gradients):
            part, saved = ctx.part, ctx.saved_tensors
            return (None, None, *part.back(saved[len(part.weights):], gradients))

    return AntifreezePart


class Part:
    def __init__(self, call, batch):
        self.call, self.n = call, cut.count(batch)
        self.weights = [p for p in call.known.parameters if p.requires_grad]
        for p in self.weights:
            spare(p._backward_hooks)
        self.pattern = pattern(batch)
        self.like = cut.filled(batch, iter([cut.Place() if is_tensor(one) else one for one in cut.arrays(batch)]))
        self.numbers, self.casts = undo.numbers(call.known.draws), autocasts()
        self.made = self.rows = None

    def forth(self, args, kwargs):
        with uncached():
            self.made = self.call.again(*args, **kwargs)
        outputs = list(cut.arrays(self.made))
        if not all(map(is_tensor, outputs)):
            raise cut.Uncut("its output is not made of tensors")
        if not policy.is_inexact_allowed():
            self.rows = list(map(lengths, outputs))
        return outputs

    def has_gradients(self, outputs):
        known = self.call.course.gradients.get(self.pattern)
        return known or [one.is_floating_point() or one.is_complex() for one in outputs]

    def back(self, arrays, gradients):
        """The gradients of weights and arrays, given those of the outputs."""
        sums, start = None, 0
        while start < self.n:
            left = self.n - start
            size = sizing.even(left, min(left, self.call.splitter.most or left))[0]
            try:
                found = list(self.some(arrays, start, start + size, gradients))
            except Exception as error:
                if not self.is_tried_again(error, size):
                    raise
                torch_step.forget(error)
            else:
                sums = add(sums, found)
                start += size
                continue
            torch_step.release()  # here nothing refers to what failed any more
        return sums

    def some(self, arrays, start, stop, gradients):
        torch = sys.modules["torch"]
        is_deep = torch.is_grad_enabled()  # gradients of the gradients will be asked for, too
        with self.as_it_was():
            # The way back must end here: behind what came in may be the same weights once more.
            weights, again = self.renamed() if is_deep else (self.weights, self.call.again)
            if not is_deep:
                arrays = [one.detach().requires_grad_(one.requires_grad) for one in arrays]
            args, kwargs = cut.part(cut.filled(self.like, self.places(arrays)), self.n, start, stop)
            with contextlib.ExitStack() as stack:
                for kind, is_on, dtype in self.casts:
                    stack.enter_context(torch.autocast(kind, dtype, enabled=is_on))
                outputs = list(cut.arrays(again(*args, **kwargs)))
            self.compare(outputs, start, stop)
            if is_deep and not is_apart(outputs, self.weights, [*weights, *arrays]):
                raise RuntimeError("Antifreeze cannot compute gradients of gradients of this model in parts: give it a smaller batch")
            wanted = [*weights, *filter(is_wanted, arrays)]
            ends = [(end, gradient[start:stop]) for end, gradient in zip(outputs, gradients)
                    if gradient is not None and end.requires_grad]
            if not ends:
                return [None] * len(wanted)
            ends, gradients = zip(*ends)
            return torch.autograd.grad(ends, wanted, gradients, create_graph=is_deep, allow_unused=True)

    def places(self, arrays):
        given = iter(arrays)
        return iter([next(given) if isinstance(one, cut.Place) else one for one in cut.arrays(self.like)])

    def renamed(self):
        """The weights as tensors that nobody else has, and a call with them."""
        with sys.modules["torch"].enable_grad():
            others = {id(p): p.view_as(p) for p in self.weights}
        named = {name: others[id(p)] for name, p in self.call.module.named_parameters() if id(p) in others}
        return [others[id(p)] for p in self.weights], functools.partial(self.call.again, weights=named)

    def compare(self, outputs, start, stop):
        """A setting of the model may be another one by now: then its gradients would be those of something else."""
        is_mixed = any(is_on for _, is_on, _ in self.casts)
        for then, now in zip(self.rows or (), outputs):
            if then is None:
                continue
            then = then[start:stop]
            if (lengths(now) - then).norm() > proof.tolerance(self.weights, is_mixed) * then.norm():  # a GPU is waited for once
                raise RuntimeError(OTHER)

    def is_tried_again(self, error, size):
        if not oom.is_oom(error) or oom.is_sticky(error):
            return False
        oom.caught(error, batch=self.n, micro=size)
        call = self.call
        if call.splitter.failed(size) or torch_step.lightened(call.module):
            return True
        call.refuse(torch_step.TOO_LARGE)
        return False

    @contextlib.contextmanager
    def as_it_was(self):
        """Random numbers are those of the way there; what it writes and draws is undone, for it has been there once. Hooks see
        gradients when they are whole, and not those of a part."""
        hooks = [(one, dict(one)) for one in (p._backward_hooks for p in self.weights) if one]
        window = undo.Window(self.call.known, has_backward=False)
        undo.set_numbers(self.numbers)
        for one, _ in hooks:
            one.clear()
        try:
            with sys.modules["torch"].enable_grad():
                yield
        finally:
            for one, kept in hooks:
                one.update(kept)
            window.rewind()


def is_tensor(one):
    return isinstance(one, sys.modules["torch"].Tensor)


def is_wanted(one):
    return getattr(one, "requires_grad", False)


def pattern(batch):
    """Which outputs have gradients depends on which inputs do."""
    return tuple(map(is_wanted, cut.arrays(batch)))


def lengths(output):
    """A number a row, by which it is known again; None: there is none."""
    if not output.is_floating_point() or not output.ndim:
        return None
    return output.detach().float().flatten(1).norm(dim=1) if output.ndim > 1 else output.detach().float()


def add(sums, found):
    """One by one, and not in place: what was found may share its memory with what came in."""
    for n, more in enumerate(found if sums else ()):
        if more is not None:
            sums[n] = more if sums[n] is None else sums[n] + more
        found[n] = None
    return sums or found


def autocasts():
    """In which precision it is computed here."""
    torch = sys.modules["torch"]
    kinds = ("cuda", "cpu") if torch.cuda.is_initialized() else ("cpu",)
    return [(kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds]


@contextlib.contextmanager
def uncached():
    """Weights that are made smaller where no gradients are asked for must not be taken for those that have some (older torch)."""
    torch = sys.modules["torch"]
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)


def spare(hooks):
    """A weight of which nothing came would tell its hooks so, by a None that nobody expects."""
    for key, hook in (hooks or {}).items():
        if not hasattr(hook, "antifreeze_spares"):
            def spared(gradient, hook=hook):
                return None if gradient is None else hook(gradient)
            spared.antifreeze_spares = True
            hooks[key] = spared


def are_leaves(outputs, tensors):
    """Whether gradients go to nothing but these."""
    ours = set(map(id, tensors))
    return all(id(node.variable) in ours for node in nodes(outputs) if hasattr(node, "variable"))


def is_apart(outputs, tensors, ends):
    """Whether gradients go to none of these by another way than through the ends."""
    others = set(map(id, tensors))
    return not any(id(node.variable) in others for node in nodes(outputs, ends) if hasattr(node, "variable"))


def nodes(outputs, ends=()):
    """Of the graph that leads from the ends to the outputs."""
    seen, due = {one.grad_fn for one in ends}, [one.grad_fn for one in outputs]
    while due:
        node = due.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            due += [one for one, _ in node.next_functions]
