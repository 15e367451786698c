"""A plain torch loop, unchanged: nobody tells us where its step begins, but its model is called, and there memory runs out.

Then the batch goes through the model in parts, and of each part only its samples are kept: on the way back it is computed again
(split/back.py), and in smaller parts where memory runs out there. The model's output is put together, and the program goes on
with it as if nothing had been: its loss is that of the whole batch, whatever it is. It takes about a third more time, so
antifreeze.micro(), which need not compute anything twice, is better where a loop can be changed.

Only the outermost call in training is cared for, and only if the model's output has a row a sample. Proof before trust: the
rows of a part must be the same when it is parted once more; again at step 10, 100 and so on, each time in other rows.
"""
import functools
import itertools
import sys
import threading

from .. import policy
from ..see import oom
from . import amp, back, cut, proof, sizing, torch_step, undo

LARGE = 16 << 20  # bytes that a pass keeps: with less it is not the model's batch that matters
LOOKERS = ("torch.", "wandb.", "comet_ml.", "clearml.", "aim.", "mlflow.", "torchinfo.", "torchsummary.")  # their hooks look, no more
WAY_BACK = .3  # of what a pass keeps: what computing its gradients takes for a while beside them

here = threading.local()  # .depth: calls that this thread is in; .loop: the antifreeze.micro() that it is in
_installed = False


def modules(module):
    """torch.nn.modules.module"""
    if policy.is_adapting():
        install(module)
        torch_step.offer()


def install(module=None):
    global _installed
    if _installed:
        return
    _installed = True
    torch = sys.modules["torch"]
    kind = (module or torch.nn.modules.module).Module
    inner = kind.__call__

    @functools.wraps(inner)
    def __call__(self, *args, **kwargs):
        # torch.compile reads this along with the model, and takes the call as it was.
        if torch.compiler.is_compiling():
            return inner(self, *args, **kwargs)
        if getattr(here, "depth", 0) or not self.training or not torch.is_grad_enabled() or is_cared_for(torch):
            return inner(self, *args, **kwargs)
        try:
            return outermost(inner, self, args, kwargs)
        except Exception as error:
            raise torch_step.bare(error)

    kind.__call__ = __call__
    undo.see_changes(module or torch.nn.modules.module)


def is_cared_for(torch):
    """By one that knows more of it; or it is computed again on a way back; or it is traced, and all that we do would be, too."""
    return getattr(torch_step.here, "inside", False) or torch._C._current_graph_task_id() != -1 or \
        torch._C._get_tracing_state() is not None


def outermost(inner, module, args, kwargs):
    here.depth, call = 1, None
    try:
        call = made(inner, module, args, kwargs)
        return call.go() if call else inner(module, *args, **kwargs)
    finally:
        here.depth = 0
        if call:
            call.let_go()


def made(inner, module, args, kwargs):
    """A call that is ours, or None."""
    try:
        call = Call(inner, module, args, kwargs)
        if amp.is_advice_due and call.is_ours():
            amp.advise(module)
        return call if call.is_ours() and call.opened() else None
    except Exception:  # a model that we cannot look into, or arguments (torch.fx)
        return None


class Call:
    def __init__(self, inner, module, args, kwargs):
        self.inner, self.module, self.args, self.kwargs = inner, module, args, kwargs
        self.known, self.loop = undo.known(module), getattr(here, "loop", None)
        self.window = self.why_uncut = self.kept = self.sizes = None
        try:
            self.n = cut.count((args, kwargs))
        except cut.Uncut as why:
            self.n, self.why_uncut = 1, str(why)

    def is_ours(self):
        """Losses are modules, too, and so is much that has nothing to train."""
        if self.known.has_weights is None:
            self.known.has_weights = next(self.module.parameters(), None) is not None
        if not self.known.has_weights:
            return False
        self.course = torch_step.course(self.module, "call")
        self.splitter = (self.loop or self).course.splitter
        return not (self.course.refused and self.loop is None)

    @property
    def refused(self):
        return self.course.refused or self.loop and self.loop.course.refused

    def refuse(self, why):
        if not self.refused:
            self.course.refuse(why)

    def opened(self):
        if self.loop is not None:
            self.loop.entered(self.known)
        else:  # a loop makes parts itself; this is for one that does not fit
            self.sizes = self.cut_sizes()
        self.window = self.new_window()
        return True

    def is_cut(self):
        return bool(self.sizes) and len(self.sizes) > 1

    def new_window(self):
        return undo.Window(self.known, has_backward=False, is_whole=self.is_cut() and self.course.is_due(len(self.sizes)))

    def go(self):
        while True:
            before = self.look()
            try:
                result = self.in_parts() if self.is_cut() else self.inner(self.module, *self.args, **self.kwargs)
            except Exception as error:
                if not torch_step.safely(self.goes_on, error):
                    raise
                failure = torch_step.forget(error)
            else:
                if self.sizes or not self.is_tight(before):
                    torch_step.safely(self.close)
                    return result
                failure, result = None, None
            is_ours = isinstance(failure, (torch_step.Refused, cut.Uncut))
            if failure and not is_ours:
                self.kept = self.kept or failure
            try:
                torch_step.release()
                self.window.undo()
                self.sizes = self.cut_sizes()
                self.window = self.new_window()
            except Exception as error:
                self.sizes, is_ours = None, True
                self.refuse(f"what it had done could not be undone ({type(error).__name__})")
            if is_ours and self.kept:
                raise self.kept

    def close(self):
        self.window.close()
        if self.sizes and self.loop is None:
            self.course.steps += self.is_cut()
            self.splitter.fits(max(self.sizes))

    def look(self):
        """Bytes that are left; None: not known, or not looked at this time (on a GPU that takes as long as a small step)."""
        if self.loop is not None or not self.window.is_whole and sys.modules["torch"].cuda.is_initialized():
            return None
        return torch_step.room()

    def is_tight(self, before):
        """Whether the way back is not likely to fit: there it would be too late, for the program makes it."""
        after = self.look()
        if before is None or after is None or before == torch_step.host.ALL or before - after < LARGE:
            return False
        try:
            gradients = sum(p.numel() * p.element_size() for p in self.known.parameters if p.requires_grad and p.grad is None)
            if after >= gradients + (before - after) * WAY_BACK or self.why_not(None):
                return False
            self.splitter.parts(self.n)
            return self.splitter.shrink()
        except Exception:
            return False

    def cut_sizes(self):
        """None: as it is."""
        if self.splitter.most is None and not self.splitter.lean or self.refused or self.why_uncut:
            return None
        # Inside of a loop this is but one of its parts, and not the batch.
        return self.splitter.parts(self.n) if self.loop is None else sizing.even(self.n, min(self.n, self.splitter.most or self.n))

    def in_parts(self):
        torch_step.settle()
        why = beside(self.module) or torch_step.why_inexact(self.module)  # a layer may have been set to train, or a hook, since
        if not why and not self.has_own_weights():
            why = "it is called with other weights than its own"
        if why:
            raise torch_step.Refused(why)
        n, start, results = sum(self.sizes), 0, []
        size = max(self.sizes)
        if self.course.is_due(len(self.sizes)):
            self.prove(self.course.steps * size % (n - size + 1), size)  # not the same rows each time
        for size in self.sizes:
            args, kwargs = cut.part((self.args, self.kwargs), n, start, start + size)
            results.append(back.through(self, args, kwargs))
            start += size
        return cut.join(results, self.sizes, sys.modules["torch"].cat)

    def again(self, *args, weights=None, **kwargs):
        """The call itself. On the way back it is made in a thread of autograd's."""
        depth, here.depth = getattr(here, "depth", 0), 1
        try:
            if weights is None:
                return self.inner(self.module, *args, **kwargs)
            return sys.modules["torch"].func.functional_call(self.module, weights, args, kwargs)
        finally:
            here.depth = depth

    def has_own_weights(self):
        """torch.func.functional_call gives it others for a while, and on the way back they would be gone."""
        kind = sys.modules["torch"].nn.Parameter
        return all(p is known and isinstance(p, kind) for p, known in itertools.zip_longest(self.module.parameters(), self.known.parameters))

    def let_go(self):
        """Parts know it until the way back, and the batch must not stay that long."""
        self.args = self.kwargs = self.kept = self.window = None

    def rows(self, start, stop):
        return cut.part((self.args, self.kwargs), self.n, start, stop)

    def look_into(self, samples):
        """A pass with one sample or two: whether it gives more than its output, and to whom gradients go."""
        batch = self.rows(0, samples)
        arrays = [one.detach().clone().requires_grad_(one.requires_grad) if back.is_tensor(one) else one for one in cut.arrays(batch)]
        args, kwargs = cut.filled(batch, iter(arrays))
        outputs = list(cut.arrays(self.inner(self.module, *args, **kwargs)))
        self.course.gradients[back.pattern(batch)] = list(map(back.is_wanted, outputs))
        why = beside(self.module)
        if any(getattr(one, "_version", 0) for one in arrays) or len(list(cut.arrays((args, kwargs)))) != len(arrays):
            why = "it writes into what it is given"
        elif not back.are_leaves(outputs, [*self.known.parameters, *arrays]):
            why = "it uses a tensor that is to be trained and is not one of its own"
        elif any(type(node).__name__ == "CheckpointFunctionBackward" for node in back.nodes(outputs)):
            why = "it has checkpoints of its own that cannot be computed in parts (use_reentrant=True)"
        del outputs
        self.window.rewind()
        if why:
            raise torch_step.Refused(why)

    def prove(self, first, size):
        torch = sys.modules["torch"]
        names, far = torch_step.inexact(self.module), 0.
        self.look_into(2 if "BatchNorm" in names else 1)  # which needs something to make a mean of
        if not names:
            if size == 1:  # by itself it shows nothing
                first, size = 0, min(self.n, 2)
            with torch.no_grad(), back.uncached():
                args, kwargs = self.rows(first, first + size)
                whole = self.inner(self.module, *args, **kwargs)
                names.update(self.window.moved())
                kept = self.window.kept_lists()
                if kept:  # on the way back it would be counted once more
                    raise torch_step.Refused(f"it keeps figures of what goes through it ({kept}), and parts go through twice")
                cut.join([whole], [size], torch.cat)
                middle = max(1, size // 3)
                for start, stop in ((0, middle), (middle, size)) if size > 1 else ():
                    args, kwargs = self.rows(first + start, first + stop)
                    part = self.inner(self.module, *args, **kwargs)
                    cut.join([part], [stop - start], torch.cat)
                    far = max(far, apart(cut.part(whole, size, start, stop), part))
            self.window.rewind()
            if far > proof.tolerance(list(self.module.parameters()), torch.is_autocast_enabled()):
                names["samples"] = f"samples of one batch act on each other in it: in parts its output is {proof.share(far)} off"
        if names and not policy.is_inexact_allowed():
            raise torch_step.Refused("; ".join(names.values()))
        self.course.proofs += 1
        if self.course.proofs > 1:
            return
        if names:
            torch_step.tell("note", f"the batch is split though it is not exact ({', '.join(names)}), as --allow-inexact asks")
        elif size > 1:
            torch_step.tell("note", f"the batch in parts was compared with the whole: outputs differ by {proof.share(far)}, "
                                     "which is rounding")

    def goes_on(self, error):
        size = max(self.sizes or [self.n])
        if isinstance(error, (torch_step.Refused, cut.Uncut)):
            self.refuse(str(error))
            return True
        if not oom.is_oom(error):
            if self.is_cut() and not self.window.lost:  # it may well be because of us
                self.refuse(f"done in parts it fails ({type(error).__name__})")
                return True
            return False
        why = self.why_not(error)
        if why is None:
            oom.caught(error, batch=self.n, micro=size)
            if self.loop is None:
                self.splitter.parts(self.n)
            if not self.splitter.failed(size) and not torch_step.lightened(self.module):
                why = torch_step.TOO_LARGE
        if why:
            oom.caught(error)
            self.refuse(why)
        return not why

    def why_not(self, error):
        if error is not None and oom.is_sticky(error):
            return "the device is lost for this process"
        if self.refused:
            return self.refused
        return torch_step.distributed(self.module) or self.why_uncut or beside(self.module) or torch_step.why_inexact(self.module) or \
            self.window.lost


def apart(whole, part):
    """The largest share by which an output is off."""
    worst = 0.
    for one, other in zip(cut.arrays(whole), cut.arrays(part)):
        if one.is_floating_point():
            length = float(one.float().norm())
            worst = max(worst, float((one - other).float().norm()) / max(length, 1e-30))
    return worst


def beside(module):
    """Why a pass gives more than its output, which would be of one part only: what a forward() keeps for a loss, and hooks."""
    torch = sys.modules["torch"]
    for name, layer in module.named_modules():
        made = set()  # weights that torch's own hooks make anew in each pass: weight_norm, prune
        for hooks in layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks, layer._backward_pre_hooks:
            for hook in hooks.values():
                if not f"{getattr(hook, '__module__', '')}.".startswith(LOOKERS):
                    return f"a hook would see one part at a time: {named(hook)} of {name or type(layer).__name__}"
                made |= {getattr(hook, "name", None), getattr(hook, "_tensor_name", None)}
        for key, value in layer.__dict__.items():
            values = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
            if key not in made and any(isinstance(one, torch.Tensor) and one.grad_fn is not None for one in values):
                return f"it keeps a tensor beside its output, which would be that of one part ({type(layer).__name__}.{key})"
    return None


def named(hook):
    return getattr(hook, "__qualname__", type(hook).__qualname__)
