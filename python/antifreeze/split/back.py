"""Part of a batch on its way through a model, of which only the samples are kept: on the way back it is computed again just before
its gradients are (torch's own checkpointing, by samples instead of by layers). If memory runs out there, it is tried again in
halves: nobody has seen anything of it yet, for its gradients are handed over when they are whole.

torch.utils.checkpoint could do the first, but not the second: there the gradients are on their way into the weights by then.
"""
import contextlib
import functools
import sys

from ..see import oom
from . import cut, sizing, torch_step, undo


def through(call, args, kwargs):
    """What call.again(*args, **kwargs) gives."""
    part = Part(call, args, kwargs)
    outputs = function().apply(part, *part.wanted)
    made, part.made = part.made, None  # with it, part would keep itself alive
    return cut.filled(made, iter(outputs))


@functools.lru_cache(None)
def function():
    class AntifreezePart(sys.modules["torch"].autograd.Function):
        @staticmethod
        def forward(ctx, part, *_):
            ctx.part = part
            ctx.set_materialize_grads(False)
            outputs = part.forth()
            ctx.mark_non_differentiable(*(one for one in outputs if not one.is_floating_point() and not one.is_complex()))
            return tuple(outputs)

        @staticmethod
        def backward(ctx, *gradients):
            return (None, *ctx.part.back(gradients))

    return AntifreezePart


class Part:
    def __init__(self, call, args, kwargs):
        self.call, self.batch, self.n = call, (args, kwargs), cut.count((args, kwargs))
        arrays = [array for array in cut.arrays(self.batch) if getattr(array, "requires_grad", False)]
        self.wanted = [p for p in call.known.parameters if p.requires_grad] + arrays
        self.numbers, self.casts = undo.numbers(call.known.draws), autocasts()
        self.made = None

    def forth(self):
        args, kwargs = self.batch
        self.made = self.call.again(*args, **kwargs)
        outputs = list(cut.arrays(self.made))
        if not all(hasattr(one, "requires_grad") for one in outputs):
            raise cut.Uncut("its output is not made of tensors")
        return outputs

    def back(self, gradients):
        """The gradients of all that is wanted, given those of the outputs."""
        sums, start = [None] * len(self.wanted), 0
        due = sizing.even(self.n, min(self.n, self.call.splitter.most or self.n))  # others have shown what fits, perhaps
        while due:
            size = due.pop(0)
            try:
                found = self.some(start, start + size, gradients)
            except Exception as error:
                if not self.is_tried_again(error, size):
                    raise
                torch_step.forget(error)
                due[:0] = sizing.even(size, self.call.splitter.most or size)
            else:
                for n, more in enumerate(found):
                    if more is not None:  # not in place: it may share its memory with what came in
                        sums[n] = more if sums[n] is None else sums[n] + more
                start += size
                continue
            found = None
            torch_step.release()  # here nothing refers to what failed any more
        return sums

    def some(self, start, stop, gradients):
        torch = sys.modules["torch"]
        is_deep = torch.is_grad_enabled()  # gradients of the gradients will be asked for, too
        with self.as_it_was():
            args, kwargs = cut.part(self.batch, self.n, start, stop)
            outputs = cut.arrays(self.call.again(*args, **kwargs))
            ends = [(end, gradient[start:stop]) for end, gradient in zip(outputs, gradients)
                    if gradient is not None and end.requires_grad]
            if not ends:
                return [None] * len(self.wanted)
            ends, gradients = zip(*ends)
            return torch.autograd.grad(ends, self.wanted, gradients, create_graph=is_deep, allow_unused=True)

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
        """On the way there: random numbers, and the precision. Hooks see gradients when they are whole, and not those of a part."""
        torch = sys.modules["torch"]
        now = undo.numbers(self.call.known.draws)
        hooks = [(one, dict(one)) for one in (tensor._backward_hooks for tensor in self.wanted) if one]
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.enable_grad())
            for kind, dtype in self.casts:
                stack.enter_context(torch.autocast(kind, dtype))
            undo.set_numbers(self.numbers)
            for one, _ in hooks:
                one.clear()
            try:
                yield
            finally:
                for one, kept in hooks:
                    one.update(kept)
                undo.set_numbers(now)


def autocasts():
    """What is computed in less precision here."""
    torch = sys.modules["torch"]
    kinds = ("cuda", "cpu") if torch.cuda.is_initialized() else ("cpu",)
    return [(kind, torch.get_autocast_dtype(kind)) for kind in kinds if torch.is_autocast_enabled(kind)]


def is_apart(outputs, parameters):
    """Whether gradients go to nothing but these. A tensor from elsewhere would not be told of its own."""
    ours = {id(p) for p in parameters}
    seen, due = set(), [one.grad_fn for one in outputs]
    while due:
        node = due.pop()
        if node is not None and node not in seen:
            seen.add(node)
            if id(getattr(node, "variable", None)) not in ours and hasattr(node, "variable"):
                return False
            due += [one for one, _ in node.next_functions]
    return True
