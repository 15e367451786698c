"""Lightning with automatic optimization: forward and backward run in a closure that the optimizer calls before it writes the
first weight, and there a batch that does not fit goes through in parts (split/torch_step.py). What comes after the closure is not
repeated. Manual optimization is not touched.

Callbacks and hooks are called as often as without us: those around backward once, with the gradients of all samples. What is
logged in training_step() is the mean over the parts, weighed by their samples. --amp becomes Lightning's own setting.
"""
import functools
import sys

from .. import policy
from . import torch_step

ONCE = {"on_before_backward", "on_after_backward"}


def closures(module):
    """lightning.pytorch.loops.optimization.automatic, or the same of pytorch_lightning"""
    if not policy.is_adapting():
        return
    kind = module._AutomaticOptimization
    make, inner = kind._make_closure, module.Closure.closure

    @functools.wraps(make)
    def _make_closure(self, kwargs, optimizer, batch_idx):
        made = make(self, kwargs, optimizer, batch_idx)
        made._antifreeze = self, kwargs
        return made

    @functools.wraps(inner)
    def closure(self, *args, **more):
        zero = self._zero_grad_fn
        try:
            job = Batch(module, self, inner.__get__(self), args, more)
        except Exception:  # no batch, no way back, or not as we know it
            return inner(self, *args, **more)
        try:
            return torch_step.run(job)
        except Exception as error:
            raise torch_step.bare(error)
        finally:  # some optimizers call it several times a step
            self._zero_grad_fn = zero

    kind._make_closure, module.Closure.closure = _make_closure, closure
    torch_step.offer()


def connectors(module):
    """lightning.pytorch.trainer.connectors.accelerator_connector"""
    from . import amp
    if not amp.is_wanted():
        return
    kind = module._AcceleratorConnector
    inner = kind._check_and_init_precision

    @functools.wraps(inner)
    def _check_and_init_precision(self):
        try:
            amp.is_advice_due = False
            is_own = self._precision_plugin_flag is not None or self._precision_flag != "32-true"
            if not is_own and amp.is_worth("cpu" if "CPU" in type(self.accelerator).__name__ else None):
                self._precision_flag = "bf16-mixed"
        except Exception:
            pass
        return inner(self)

    kind._check_and_init_precision = _check_and_init_precision


class Batch(torch_step.Job):
    is_seen = True

    def __init__(self, module, closure, inner, args, more):
        loop, kwargs = closure._antifreeze
        if closure._backward_fn is None or next(iter(kwargs)) != "batch":
            raise ValueError("not ours")
        self.module, self.loop, self.closure, self.inner = module, loop, closure, inner
        self.kwargs, self.args, self.more = kwargs, args, more
        self.trainer = loop.trainer
        self.model, self.batch = self.trainer.lightning_module, kwargs["batch"]
        self.is_mixed = "16" in str(getattr(self.trainer, "precision", ""))
        self.outputs, self.logged, self.called = [], [], set()
        self.zero = closure._zero_grad_fn
        self.is_fresh = self.zero is not None
        if self.is_fresh:
            closure._zero_grad_fn = self.zero_once

    @property
    def shared(self):
        return getattr(self.trainer.strategy, "model", None)

    def zero_once(self):
        """The hooks around it are called once; what a failed pass left is gone by undo."""
        zero, self.zero = self.zero, None
        if zero:
            zero()

    def whole(self):
        with self.few_hooks(None):
            return self.inner(*self.args, **self.more)

    def part(self, piece, batch):
        torch = sys.modules["torch"]
        kwargs = type(self.kwargs)(self.kwargs)
        kwargs["batch"] = batch
        mark = self.mark() if piece.is_dry else None
        with torch.set_grad_enabled(not piece.is_dry), self.of_samples(batch):
            output = self.loop._training_step(kwargs)
        loss = output.closure_loss
        if loss is None:
            raise torch_step.Refused("training_step() has returned no loss")
        if not piece.is_trial:
            if piece.is_dry:  # a mean of nothing is no number, and would be none of the whole
                self.back(mark, lambda metric: not torch.isfinite(torch.as_tensor(metric.value)).all())
            self.logged.append((piece.weight, self.on_step()))
            self.outputs.append((piece, detached(output.extra)))
        value = piece.value = loss.detach().clone()
        output.closure_loss = None
        if piece.is_dry:
            return value
        if piece.is_first and self.closure._zero_grad_fn:
            self.closure._zero_grad_fn()
        self.attempt.look()
        with self.few_hooks(piece):
            self.closure._backward_fn(loss if piece.weight == 1 else loss * piece.weight)
        return value

    def joined(self, values, weights):
        self.set_on_step()
        loss = sum(value * weight for value, weight in zip(values, weights))
        return self.module.ClosureResult(loss, extra=self.extra())

    def extra(self):
        """What training_step() returned beside the loss, for on_train_batch_end()."""
        torch = sys.modules["torch"]
        self.outputs.sort(key=lambda output: output[0].start)  # the one that is compared may come first
        pieces = [piece for piece, _ in self.outputs]
        joined = {}
        for key, last in self.outputs[-1][1].items():
            values = [extra.get(key) for _, extra in self.outputs]
            if isinstance(last, torch.Tensor) and all(isinstance(value, torch.Tensor) for value in values):
                if all(value.ndim and value.shape[0] == piece.stop - piece.start for value, piece in zip(values, pieces)):
                    last = torch.cat(values)
                elif not last.ndim and last.is_floating_point():
                    last = sum(value * piece.weight for value, piece in zip(values, pieces) if piece.weight)
            joined[key] = last
        return joined

    def of_samples(self, batch):
        """What is logged meanwhile is weighed by these samples."""
        return Swapped(self.trainer._results, batch=batch, batch_size=None)

    def few_hooks(self, piece):
        """Those around backward: before the first part, however often it is tried, and after the last."""
        call = sys.modules[self.module.__name__.partition(".loops.")[0] + ".trainer.call"]

        def is_due(name):
            if name == "on_after_backward":
                return piece is None or piece.is_last
            return (piece is None or piece.is_first) and name not in self.called

        def only_due(inner):
            @functools.wraps(inner)
            def hook(trainer, name, *args, **kwargs):
                if name in ONCE and not is_due(name):
                    return None
                if name == "on_after_backward" and self.attempt:
                    self.attempt.compare()
                    self.attempt.window.merge()
                result = inner(trainer, name, *args, **kwargs)
                if name in ONCE and inner is callbacks[1]:  # callbacks first, then the module
                    self.called.add(name)
                return result

            return hook

        callbacks = call._call_callback_hooks, call._call_lightning_module_hook
        return Swapped(call, _call_callback_hooks=only_due(callbacks[0]), _call_lightning_module_hook=only_due(callbacks[1]))

    def metrics(self):
        return {key: metric for key, metric in (self.trainer._results or {}).items() if getattr(metric, "is_tensor", False)}

    def on_step(self):
        return {key: metric._forward_cache for key, metric in self.metrics().items() if metric.meta.on_step}

    def set_on_step(self):
        """A value that is logged at each step is that of the last part; it becomes that of all, as it would be over an epoch."""
        metrics = self.metrics()
        for key in self.logged[-1][1]:
            values = [(weight, values[key]) for weight, values in self.logged if values.get(key) is not None]
            total = sum(weight for weight, _ in values)
            meta = metrics[key].meta
            if not total:
                continue
            if meta.is_mean_reduction:
                metrics[key]._forward_cache = sum(value * (weight / total) for weight, value in values)
            elif meta.is_sum_reduction:
                metrics[key]._forward_cache = sum(value for _, value in values)
            elif meta.is_max_reduction or meta.is_min_reduction:
                metrics[key]._forward_cache = functools.reduce(meta.reduce_fx, (value for _, value in values))
            else:
                continue
            if not meta.on_epoch:
                metrics[key].value = metrics[key]._forward_cache

    def mark(self):
        kept = {key: (metric, metric._forward_cache, metric.value, getattr(metric, "cumulated_batch_size", None), metric.has_reset)
                for key, metric in self.metrics().items()}
        return kept, len(self.logged), len(self.outputs)

    def back(self, mark, which=lambda metric: True):
        kept, logged, outputs = mark
        del self.logged[logged:], self.outputs[outputs:]
        for key, metric in self.metrics().items():
            if not which(metric):
                continue
            if key not in kept:
                del self.trainer._results[key]
                continue
            _, metric._forward_cache, metric.value, count, metric.has_reset = kept[key]
            if count is not None:
                metric.cumulated_batch_size = count


class Swapped:
    """Attributes are others for a while."""

    def __init__(self, of, **values):
        self.of, self.values = of, values

    def __enter__(self):
        if self.of is not None:
            self.values = {name: swap(self.of, name, value) for name, value in self.values.items()}

    def __exit__(self, *_):
        if self.of is not None:
            for name, value in self.values.items():
                setattr(self.of, name, value)


def swap(of, name, value):
    before = getattr(of, name)
    setattr(of, name, value)
    return before


def detached(extra):
    return {key: value.detach() if hasattr(value, "detach") else value for key, value in extra.items()}
