"""The Trainer of Hugging Face: a batch that does not fit goes through its training_step() in parts (split/torch_step.py), and
--amp becomes its own setting. Steps, schedule and callbacks are the Trainer's; its arguments are never changed in mid-run.

With num_items_in_batch the loss of a part is already its share of the whole, so the parts add up. Some models are given it and
take a mean all the same; the proof finds that out.
"""
import functools
import sys

from .. import policy
from . import ranks, torch_step


def callbacks(module):
    """transformers.trainer_callback, which the Trainer's own module imports before it is complete: it is looked at when the
    training begins."""
    if not policy.is_adapting():
        return
    kind = module.CallbackHandler
    begin = kind.on_train_begin

    @functools.wraps(begin)
    def on_train_begin(self, *args, **kwargs):
        trainer()
        return begin(self, *args, **kwargs)

    kind.on_train_begin = on_train_begin


def arguments(module):
    """transformers.training_args"""
    from . import amp
    if not amp.is_wanted():
        return
    kind = module.TrainingArguments
    inner = kind.__post_init__

    @functools.wraps(inner)
    def __post_init__(self):
        try:
            amp.is_advice_due = False
            own = self.bf16 or self.fp16 or self.bf16_full_eval or self.fp16_full_eval
            if not own and amp.is_worth("cpu" if getattr(self, "use_cpu", False) else None):
                self.bf16 = True
        except Exception:
            pass
        inner(self)

    kind.__post_init__ = __post_init__


def trainer():
    """Wraps the Trainer's training_step(), once."""
    try:
        kind = sys.modules["transformers.trainer"].Trainer
        inner = kind.training_step
        if getattr(inner, "_antifreeze", False):
            return
    except Exception:
        return

    @functools.wraps(inner)
    def training_step(self, model, inputs, *args, **kwargs):
        try:
            job = Batch(inner, self, model, inputs, args, kwargs)
        except Exception:
            return inner(self, model, inputs, *args, **kwargs)
        try:
            return torch_step.run(job)
        except Exception as error:
            raise torch_step.bare(error)

    training_step._antifreeze = True
    kind.training_step = training_step
    torch_step.offer()


class Batch(torch_step.Job):
    def __init__(self, inner, trainer, model, inputs, args, kwargs):
        self.inner, self.trainer, self.given, self.args, self.kwargs = inner, trainer, model, args, kwargs
        self.shared, self.model = model, ranks.own(model)
        self.inputs = inputs
        # compute_loss() takes the labels out of what it is given.
        self.batch = dict(inputs)
        self.is_mixed = getattr(trainer.args, "bf16", False) or getattr(trainer.args, "fp16", False)

    def whole(self):
        return self.inner(self.trainer, self.given, self.inputs, *self.args, **self.kwargs)

    def ways(self):
        ways = ("items", "samples") if self.items() else ("samples",)
        is_shared = self.args and self.args[0] is not None or self.kwargs.get("num_items_in_batch") is not None
        return ("sum", *ways) if is_shared else (*ways, "sum")

    def labels(self):
        labels = self.batch.get("labels")
        if getattr(labels, "ndim", 0) < 2 or labels.is_floating_point():
            return []
        return [labels[..., 1 if getattr(self.trainer, "_loss_shifts_labels", False) else 0:]]

    def part(self, piece, batch):
        accelerator = self.trainer.accelerator
        backward = accelerator.backward

        def weighed(loss, **kwargs):
            self.attempt.look()
            if not piece.is_dry:
                backward(loss if piece.weight == 1 else loss * piece.weight, **kwargs)

        torch = sys.modules["torch"]
        accelerator.backward = weighed
        try:
            with torch.set_grad_enabled(not piece.is_dry):
                return self.inner(self.trainer, self.given, self.like(batch), *self.args, **self.kwargs)
        finally:
            del accelerator.backward

    def like(self, batch):
        """As the collator has made it: some are more than a dict."""
        try:
            return type(self.inputs)(batch)
        except Exception:
            return batch

    def joined(self, values, weights):
        return sum(value * weight for value, weight in zip(values, weights))
